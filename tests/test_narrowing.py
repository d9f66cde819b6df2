"""What a call gives, with the constants that it passes: program by program, not all that a function may make."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

if TYPE_CHECKING:
    from torchdet_lint.finding import Finding

PARTS = """\
import random
from torch.utils.data import Dataset

class Plain(Dataset):
    def __getitem__(self, index):
        return index

class Wrapped(Dataset):
    def __init__(self, data):
        self.data = data

    def __getitem__(self, index):
        return self.data.__getitem__(index)

class Drawn(Plain):
    def __getitem__(self, index):
        return random.randrange(9)

    @classmethod
    def load(cls, path, strict=False):
        if strict:
            print(path)
        return path

def get(p, wrap=False, draw=False):
    data = Plain()
    if wrap:
        data = Wrapped(data)
    if draw:
        data = Drawn()
    return data

def chosen(kind, p=None):
    if kind == "plain":
        return Plain()
    return Drawn()

def passed(kind, draw=True):
    return get(kind, draw=draw)

def pair(draw):
    return get(0), get(0, draw=draw)

def far(kind, draw=True):
    return passed(kind, draw)
"""
MAIN = """\
import sys
from torch.utils.data import DataLoader
from parts import Drawn, chosen, far, get, pair, passed

args = sys.argv
shared = get(args, draw=True)

def run(draw=False):
    {body}

def main():
    run()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("get(args)", False),
        ("get(args, draw=True)", True),
        ("get(args, draw=args)", True),
        ("get(*args)", True),
        ("get(args, wrap=True)", False),
        ("get(args, wrap=True, draw=True)", True),
        ("get(args, draw=draw)", False),
        ("chosen('plain')", False),
        ("chosen('other')", True),
        ("chosen(args)", True),
        ("passed(args, False)", False),
        ("passed(args)", True),
        ("pair(False)[0]", False),
        ("pair(True)[0]", True),
        ("far(args, False)", False),
        ("far(args)", True),
        ("shared", True),
        ("Drawn.load(args)", True),
    ],
)
def test_a_call_gives_what_its_constants_leave(project, made, draws):
    body = f"data = {made}\n    for x in DataLoader(data):\n        print(x)"
    if made == "shared" or "get(" not in made:
        source = MAIN.format(body=body)
    else:
        source = MAIN.replace("shared = get(args, draw=True)\n", "").format(body=body)
    project(parts_DOT_py=PARTS, main_DOT_py=source)
    folder = project()
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert result.errors == ()
    assert [finding.code for finding in result.findings] == (["TDL103"] if draws else [])


CHOSEN = """\
import random
import sys

args = sys.argv

def drawn(scale, draw=True, also=1.0):
    {body}

if __name__ == "__main__":
    print(drawn({given}))
"""


@pytest.mark.parametrize(
    ("body", "given", "draws"),
    [
        ("return random.random() if draw else scale", "1, False", False),
        ("return random.random() if draw else scale", "1", True),
        ("return random.random() if draw else scale", "1, args", True),
        ("return scale if not draw else random.random()", "1, draw=False", False),
        ("return scale if draw else random.random()", "1, draw=False", True),
        ("return scale if draw is None else random.random()", "1, None", False),
        ("return random.random() if args else scale", "1, False", True),
        ("return random.random() * scale", "0", False),
        ("return scale * random.random()", "0.0", False),
        ("return 1 + (also + random.random()) * scale", "0", False),
        ("return random.random() * scale", "0.1", True),
        ("return random.random() * scale", "len(args)", True),
        ("return random.random() + scale", "0", True),
        ("scale += 1\n    return random.random() * scale", "0", True),
        ("return scale * also if draw else random.random()", "0", False),
    ],
)
def test_what_counts_of_an_expression_hangs_on_what_the_function_is_given(project, body, given, draws):
    folder = project(main_DOT_py=CHOSEN.format(body=body, given=given))
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert [finding.code for finding in result.findings] == (["TDL103"] if draws else [])


WRAPPED = """\
import torch

class Wrapper:
    def __init__(self, opt, rate):
        self.opt, self.rate = opt, rate

    @classmethod
    def create(cls, function, model, rate):
        opt = function(model.parameters())
        opt = cls(opt, rate)
        return opt

    def step(self):
        self.opt.step()

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, 3, 3).cuda()
    optimizer = Wrapper.create(torch.optim.Adam, model, 0.1)
    model(torch.ones(1, 3, 8, 8, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_what_wraps_an_optimizer_of_the_same_name_steps_with_it(project):
    folder = project(main_DOT_py=WRAPPED)
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL203",)))
    assert [finding.code for finding in result.findings] == ["TDL203"]


ROWS = """\
import random

class Plain:
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        yield from self.rows

class Shuffled(Plain):
    def __iter__(self):
        random.shuffle(self.rows)
        yield from self.rows

class Corpus:
    def __init__(self, rows):
        self.rows = rows

    def rows_of(self, split, *args, **kwargs):
        if split == "train":
            kwargs["rows"] = self.rows
            rows = Shuffled(*args, **kwargs)
        elif split in ["valid", "test"]:
            rows = Plain(self.rows)
        return rows

def corpus_of(rows):
    return Corpus(rows)
"""


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize(
    "made",
    [
        "rows = Corpus([1, 2]).rows_of('{split}')",
        "corpus = Corpus([1, 2])\nrows = corpus.rows_of('{split}')",
        "corpus = corpus_of([1, 2])\nrows = corpus.rows_of('{split}')",
        "def load():\n    corpus = Corpus([1, 2])\n    return corpus.rows_of('{split}')\n\nrows = load()",
        "corpus = Corpus([1, 2])\n\ndef load(split):\n    return corpus.rows_of(split)\n\nrows = load('{split}')",
    ],
)
def test_a_method_gives_what_its_constants_leave(project, made, split):
    main = f"from rows import Corpus, corpus_of\n\n{made}\n\ndef total(rows):\n    return sum(row for row in rows)\n\n"
    folder = project(main_DOT_py=main.format(split=split) + "print(total(rows))\n", rows_DOT_py=ROWS)
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    assert [one.code for one in found] == (["TDL103"] if split == "train" else [])


KINDS = """\
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width, kind="linear", **others):
        super().__init__()
        if kind == "linear":
            self.layer = nn.Linear(width, 3)
        elif kind == "conv":
            self.layer = nn.Conv1d(width, 3, 3)

if __name__ == "__main__":
    torch.manual_seed(0)
    options = {options}
    net = Net(3, {passed}).cuda()
    net(torch.ones(3, 3).cuda()).sum().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
"""


@pytest.mark.parametrize(
    ("options", "passed", "severity"),
    [
        ("dict(sys.argv)", "kind='linear', **options", "warning"),
        ("dict(sys.argv)", "kind='conv', **options", "error"),
        ("dict(sys.argv)", "**options", "error"),
        ("{'kind': 'linear', **dict(sys.argv)}", "**options", "error"),
        ("{'kind': 'linear'}\n    options['kind'] = sys.argv[1]", "**options", "error"),
        ("{'kind': 'linear'}", "**options", "warning"),
    ],
)
def test_what_is_written_beside_options_out_of_sight_is_known(project, options, passed, severity):
    folder = project(main_DOT_py=KINDS.replace("{options}", options).replace("{passed}", passed))
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    assert [one.severity for one in found if one.code == "TDL203"] == [severity]


MODELS = """\
import random
from dataclasses import dataclass

class A:
    def forward(self, x):
        return x

class B:
    def forward(self, x):
        return x + random.random()

def make(cfg):
    if cfg.type == "a":
        return A()
    return B()

def pick(kind):
    if kind == "a":
        return A
    return B

def bound(kind):
    net = A if kind == "a" else B
    return net

def either(kind):
    return A if kind == "a" else B

def picked(cfg):
    net = pick(cfg.type)
    return net()

def outer(cfg):
    return make(cfg)

class CfgA:
    type = "a"

class CfgB(CfgA):
    type = "b"

class CfgC(CfgA):
    size = 3

class Kept:
    def __init__(self, type="a"):
        self.type = type

class Told:
    def __init__(self):
        self.type = "a"

@dataclass
class Data:
    size: int = 3
    type: str = "a"

class Worked:
    @property
    def type(self):
        return read()

class Usual:
    KIND = "a"

class Switch:
    def __init__(self, noisy=False):
        self.noisy = noisy

class Off:
    noisy = False

@dataclass
class Switches:
    size: int = 3
    noisy: bool = False

class Capital:
    NOISY = False

def switched(cfg):
    if cfg.noisy:
        net = B()
    else:
        net = A()
    return net

def kept_on(cfg):
    if not cfg.noisy:
        return A()
    return B()

def twice(cfg):
    return switched(cfg)

def capital(cfg):
    return B() if cfg.NOISY else A()

"""


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("make(CfgA())", False),
        ("make(CfgB())", True),
        ("make(CfgC())", False),
        ("make(CfgA)", False),
        ("make(Told())", False),
        ("make(Kept())", False),
        ("make(Kept('b'))", True),
        ("make(Kept(type='a'))", False),
        ("make(Kept(read()))", True),
        ("make(Kept(*read()))", True),
        ("make(Data())", False),
        ("make(Data(type='b'))", True),
        ("make(Data(type='a'))", False),
        ("make(Data(type=read()))", True),
        ("make(Data(3, 'b'))", True),
        ("make(Worked())", True),
        ("make(read())", True),
        ("make(CfgA() if read() else CfgB())", True),
        ("outer(CfgA())", False),
        ("outer(CfgB())", True),
        ("picked(CfgA())", False),
        ("picked(CfgB())", True),
        ("pick('a')()", False),
        ("pick('b')()", True),
        ("pick(CfgA().type)()", False),
        ("pick(CfgB.type)()", True),
        ("pick(Usual.KIND)()", True),
        ("bound('a')()", False),
        ("bound('b')()", True),
        ("either('a')()", False),
        ("either('b')()", True),
        ("switched(Switch())", False),
        ("switched(Switch(False))", False),
        ("switched(Switch(noisy=True))", True),
        ("switched(Switch(read()))", True),
        ("switched(Off)", False),
        ("switched(Off())", False),
        ("switched(Switches(3))", True),
        ("switched(Switches(size=2))", False),
        ("switched(Switches(noisy=True))", True),
        ("kept_on(Switch())", False),
        ("kept_on(Switch(True))", True),
        ("twice(Switch())", False),
        ("twice(Switch(True))", True),
        ("capital(Capital())", True),
    ],
)
def test_a_factory_makes_what_an_object_leaves_of_it(tmp_path, made: str, draws: bool) -> None:
    assert bool(_of_models(tmp_path, made)) is draws


@pytest.mark.parametrize("change", ["cfg.type = read()", "setattr(cfg, name, 'b')"])
def test_what_another_function_gives_an_object_is_open(tmp_path, change: str) -> None:
    assert _of_models(tmp_path, "make(CfgA())", f"def turn(cfg):\n    {change}\n")


def test_what_a_file_that_is_imported_gives_an_object_is_open(tmp_path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "turns.py").write_text("def turn(cfg):\n    cfg.noisy = True\n")
    more = "import turns\n\ndef turned(cfg):\n    turns.turn(cfg)\n    return switched(cfg)\n"
    assert not _of_models(tmp_path, "switched(Switch())")
    assert _of_models(tmp_path, "turned(Switch())", more)


def test_what_an_arm_puts_into_a_table_is_given_with_it(tmp_path) -> None:
    lines = ["nets = read(path)", "if path:", "    net = B()", "    nets = dict(net=net)", "return nets"]
    loaded = f"def loaded(path):\n{textwrap.indent(chr(10).join(lines), '    ')}\n"
    used = "def used():\n    net = loaded('a')['net']\n    return net\n"
    assert _of_models(tmp_path, "used()", f"{loaded}{used}")


def _of_models(tmp_path, made: str, more: str = "") -> tuple[Finding, ...]:
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    (folder / "models.py").write_text(MODELS + more)
    (folder / "main.py").write_text(
        f"from models import *\n\nif __name__ == '__main__':\n    print({made}.forward(1))\n"
    )
    return run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",))).findings
