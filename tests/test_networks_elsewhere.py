"""Losses of four dimensions whose network, class or call stands in another file: who gives what is known through base
classes, those that derive from them, methods, tables and modules."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

NETS = """\
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, cfg=None):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv(x)


class Deep(Net):
    pass


def unet(cfg=None):
    return Net(cfg)


NETS = {"net": Net, "deep": Deep}
"""
FLAT = """\
import torch.nn as nn


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.conv(x).mean((2, 3)).flatten(1))


NETS = {"flat": Flat}
"""
INSTANCE = "import nets\n\n\ndef instance(module, name, cfg):\n    return getattr(module, cfg[name])(cfg)\n"
PICK = "from nets import NETS\n\n\ndef pick():\n    kind = NETS[cfg.net]\n    return kind(cfg)\n"
BOTH = "from flat import Flat\nfrom nets import Net\n\n\ndef a():\n    return Flat()\n\n\ndef b():\n    return Net()\n"
PARTS = NETS.partition("class Deep")[0] + FLAT.partition("\n")[2].replace("nn.Conv2d(3, 8, 3)", "Net()")
STEPS = "optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n"
HEAD = "import torch\nimport torch.nn.functional as F\n\nfrom data import loader\n"


def losses(folder, files):
    """The files and rows in which a loss of four dimensions is reported."""
    for name, text in ({"nets.py": NETS, "flat.py": FLAT} | files).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    said = ("cross_entropy", "nll_loss", "CrossEntropyLoss")
    own = [one for one in found if one.code == "TDL401" and any(word in one.message for word in said)]
    return {(one.filename.rpartition("/")[2], one.location.row) for one in own}


def train(made, imports):
    body = f"    net = {made}.cuda()\n    optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
    loop = "    for x, y in loader:\n        if True:\n            loss = F.cross_entropy(net(x), y)\n"
    return f"{HEAD}{imports}\n\nif __name__ == '__main__':\n{body}{loop}            {STEPS}"


@pytest.mark.parametrize(
    ("made", "imports"),
    [
        ("NETS[cfg.net]()", "from nets import NETS\n"),
        ("NETS['deep'](cfg)", "from nets import NETS\n"),
        ("nets.NETS[cfg.net](cfg)", "import nets\n"),
        ("nets.__dict__[cfg.net](cfg)", "import nets\n"),
        ("nets.__dict__['Deep'](cfg)", "import nets\n"),
        ("getattr(nets, cfg.net)(cfg)", "import nets\n"),
        ("getattr(zoo, cfg.net)(cfg)", "import zoo\n"),
        ("getattr(stars, cfg.net)(cfg)", "import stars\n"),
        ("getattr(layers, cfg.net)(cfg)", "import layers\n"),
        ("zoo.NETS[cfg.net](cfg)", "import zoo\n"),
        ("instance(nets, 'net', cfg)", INSTANCE),
        ("pick()", PICK),
    ],
)  # fmt: skip
def test_a_network_that_a_table_or_a_module_of_another_file_gives(tmp_path, made, imports):
    files = {
        "main.py": train(made, imports),
        "zoo/__init__.py": "from .kinds import Wide, NETS\n",
        "zoo/kinds.py": NETS.replace("Deep", "Wide"),
        "stars/__init__.py": "from .kinds import *\n",
        "stars/kinds.py": NETS,
        "layers.py": NETS.partition("\n\n\ndef unet")[0],
    }
    assert {name for name, _ in losses(tmp_path, files)} == {"main.py"}


@pytest.mark.parametrize(
    ("made", "imports"),
    [
        ("NETS[cfg.net]()", "from flat import NETS\n"),
        ("getattr(flat, cfg.net)()", "import flat\n"),
        ("getattr(flat, 'Flat')()", "import flat\n"),
        ("getattr(both, cfg.net)()", "import both\n"),
        ("getattr(nets, 'unknown')()", "import nets\n"),
        ("getattr(parts, cfg.net)()", "import parts\n"),
        ("OTHER[cfg.net]()", "from nets import OTHER\n"),
        ("getattr(torch.nn, cfg.net)()", ""),
        ("getattr(helpers, cfg.net)()", "import helpers\n"),
    ],
)
def test_a_network_that_may_give_rows_is_left_alone(tmp_path, made, imports):
    files = {
        "main.py": train(made, imports),
        "both.py": BOTH,
        # What a class of the file makes for itself is not what somebody picks there.
        "parts.py": PARTS,
        "helpers.py": "import torch.nn as nn\n\n\ndef conv(cfg=None):\n    return nn.Conv2d(3, 3, 3)\n",
    }  # fmt: skip
    assert losses(tmp_path, files) == set()


BASE = f"""\
import torch
import torch.nn.functional as F


class Base:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def fit(self, loader, optimizer):
        for x, y in loader:
            loss = self.compute_loss(self.net(x), y)
            {STEPS}"""
HEIR = """\
import torch.nn.functional as F

from base import Base


class Seg(Base):
    def compute_loss(self, out, y):
        return F.nll_loss(out, y)
"""
MAKES = """\
import torch

from data import loader
from nets import Net
from flat import Flat
from seg import Seg

if __name__ == "__main__":
    net = {made}.cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    Seg({given}).fit(loader, optimizer)
"""
OWN = HEIR + "\n    def __init__(self, net, optimizer, rate):\n        super().__init__(net, optimizer)\n"
INNER = HEIR + "\n    def again(self, out, y):\n        return self.compute_loss(out, y)\n"
LAST = "return self.last(out, y)\n\n    def last(self, a, b):\n        return F.nll_loss(a, b)"


@pytest.mark.parametrize(
    ("heir", "given"),
    [
        (HEIR, "net, optimizer"),
        (OWN, "net, optimizer, 1"),
        (INNER, "net, optimizer"),
        (HEIR.replace("return F.nll_loss(out, y)", LAST), "net, optimizer"),
    ],
)  # fmt: skip
def test_the_loss_of_a_derived_class_is_given_what_the_base_computes(tmp_path, heir, given):
    files = {"base.py": BASE, "seg.py": heir}
    made = MAKES.format(made="Net()", given=given)
    assert {name for name, _ in losses(tmp_path, {**files, "main.py": made})} == {"seg.py"}
    assert losses(tmp_path, {**files, "main.py": MAKES.format(made="Flat()", given=given)}) == set()


def test_a_method_is_given_a_network_and_what_that_gives(tmp_path):
    runner = """\
import torch.nn.functional as F


class Runner:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def fit(self, loader):
        for x, y in loader:
            self.step(self.net, x, y)

    def step(self, net, x, y):
        out = net(x)
        loss = F.cross_entropy(out, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
    main = MAKES.replace("seg import Seg", "runner import Runner")
    main = main.replace("Seg({given}).fit(loader, optimizer)", "Runner(net, optimizer).fit(loader)")
    assert losses(tmp_path, {"runner.py": runner, "main.py": main.format(made="Net()")}) == {("runner.py", 15)}
    assert losses(tmp_path, {"runner.py": runner, "main.py": main.format(made="Flat()")}) == set()


OPEN = """\
import torch
import torch.nn.functional as F


class Base:
    def __init__(self):
        {}

    def fit(self, loader, optimizer):
        for x, y in loader:
            loss = F.cross_entropy({}(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
LEFT = "\n    def build(self):\n        {}\n"
BUILDS = "from base import Base\nfrom nets import Net\nfrom flat import Flat\n\n\nclass Seg(Base):\n"


MADE = OPEN.format("self.net = self.build()", "self.net")
MAKE = "    def build(self):\n        return {}.cuda()\n"
SETS = "    def __init__(self):\n        self.net = {}.cuda()\n"
PREDICTS = "\n    def predict(self, x):\n        return self.net(x).relu()\n"
FITS = """\
import torch

from data import loader
from seg import Seg

if __name__ == "__main__":
    seg = Seg()
    seg.fit(loader, torch.optim.SGD(seg.net.parameters(), 0.1))
"""


@pytest.mark.parametrize(
    ("base", "heir"),
    [
        (MADE + LEFT.format("raise NotImplementedError"), MAKE),
        (MADE + LEFT.format('"""The network."""'), MAKE),
        (MADE + LEFT.format("pass"), MAKE),
        (MADE, MAKE),
        (OPEN.format("self.net = None", "self.net"), SETS),
        (OPEN.format("pass", "self.predict"), SETS + PREDICTS),
        (OPEN.format("self.net = self.build()", "self.predict"), MAKE + PREDICTS),
    ],
)
def test_a_base_runs_the_networks_of_those_that_derive_from_it(tmp_path, base, heir):
    files = {"base.py": base, "main.py": FITS}
    assert losses(tmp_path, {**files, "seg.py": BUILDS + heir.format("Net()")}) == {("base.py", 11)}
    assert losses(tmp_path, {**files, "seg.py": BUILDS + heir.format("Flat()")}) == set()


def test_a_method_that_does_something_is_not_left_open(tmp_path):
    base = OPEN.format("self.net = self.build()", "self.net") + LEFT.format("return make()")
    heir = BUILDS + MAKE.format("Net()")
    assert losses(tmp_path, {"base.py": base, "seg.py": heir, "main.py": FITS}) == set()
