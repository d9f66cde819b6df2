"""What is in a registry for a program: what is registered in the files that it imports, by whatever name."""

from __future__ import annotations

import pytest

from torchdet_lint.api import lint_source
from torchdet_lint.config import Settings
from torchdet_lint.engine import run

REGISTRY = """
class Registry:
    def __init__(self):
        self._map = {}

    def register(self):
        def put(made):
            self._map[made.__name__] = made
            return made
        return put

    def get(self, name):
        return self._map[name]

NETS = Registry()
"""
LINEAR = """
from torch import nn
from lib.registry import NETS

@NETS.register()
class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
"""
CONVOLUTION = """
from torch import nn
from lib.registry import NETS

@NETS.register()
class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(2, 2, 1)
"""
TRAIN = """
import sys
import torch
import lib.nets
from lib.registry import NETS
IMPORTS

def main():
    torch.manual_seed(0)
    model = NETS.get(sys.argv[1])().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2, 3, 3).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""


def messages(folder, files, imports=""):
    files = {
        "lib/__init__.py": "",
        "lib/registry.py": REGISTRY,
        "lib/nets.py": LINEAR,
        "other/__init__.py": "from .nets import Convolution\n",
        "other/nets.py": CONVOLUTION,
        "train.py": TRAIN.replace("IMPORTS", imports),
    } | files
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    return {one.filename.rpartition("/")[2]: one.message for one in found if one.code == "TDL203"}


PACKAGE = {"other/__init__.py": ""}
BY_FOLDER = """
import importlib, os
for file in os.listdir(os.path.dirname(__file__)):
    if file.endswith(".py"):
        name = file[:-3]
        importlib.import_module(CALL)
"""
BY_ALL = """
import glob, os
__all__ = [os.path.basename(file)[:-3] for file in glob.glob(os.path.dirname(__file__) + "/*.py")]
"""
UNUSED = "import importlib\n\ndef load(name):\n    return importlib.import_module(name)\n"
LAZILY = "import importlib\n\ndef __getattr__(name):\n    return importlib.import_module('other.nets')\n"
RELATIVE = BY_FOLDER.replace("CALL", "'.' + name, package=__name__")
CONFIGURATION = {"configs/small.py": "custom_imports = dict(imports=['other.nets'], allow_failed_imports=False)\n"}


@pytest.mark.parametrize(
    ("imports", "files", "counted"),
    [
        ("", {}, False),
        ("", PACKAGE, False),
        ("import other", PACKAGE, False),
        ("import lib.tools", {"lib/tools.py": UNUSED}, False),
        ("import importlib\nimportlib.import_module('lib.nets')", {}, False),
        ("import importlib\nplugin = importlib.import_module(f'lib.{sys.argv[2]}')", {}, False),
        ("import yaml\nplugins = yaml.safe_load(open('plugins.yaml'))", {}, False),
        ("import other", {}, True),
        ("import other.nets", {}, True),
        ("from other import nets", PACKAGE, True),
        ("from other import *", PACKAGE | {"other/__init__.py": "__all__ = ['nets']\n"}, True),
        ("from other import *", PACKAGE | {"other/__init__.py": BY_ALL}, True),
        ("from other import *", PACKAGE | {"other/__init__.py": BY_FOLDER.replace("CALL", "'other.' + name")}, True),
        ("import other", PACKAGE | {"other/__init__.py": BY_FOLDER.replace("CALL", "f'{__name__}.{name}'")}, True),
        ("import other", PACKAGE | {"other/__init__.py": RELATIVE}, True),
        ("import other", PACKAGE | {"other/__init__.py": BY_FOLDER.replace("CALL", "path_of(name)")}, True),
        ("import importlib\nimportlib.import_module('other.nets')", {}, True),
        ("import importlib\nimportlib.import_module('.nets', 'other')", {}, True),
        ("__import__('other.nets')", {}, True),
        ("import importlib\nplugin = importlib.import_module(f'other.{sys.argv[2]}')", {}, True),
        ("import importlib\nplugin = importlib.import_module(sys.argv[2])", {}, True),
        ("import runpy\nplugin = runpy.run_path(sys.argv[2])", {}, True),
        ("from mmengine import Config\nsettings = Config.fromfile(sys.argv[2])", {}, False),
        ("from mmengine import Config\nsettings = Config.fromfile(sys.argv[2])", CONFIGURATION, True),
        ("", CONFIGURATION, False),
        ("def plugins():\n    import other", {}, True),
        ("import middle", {"middle.py": "import other\n"}, True),
        (
            "from lib import lazily",
            {"lib/lazily.py": LAZILY},
            True,
        ),
    ],
)  # fmt: skip
def test_a_registry_holds_what_the_files_register_that_a_program_imports(imports, files, counted, tmp_path):
    (message,) = messages(tmp_path, files, imports).values()
    assert ("Conv2d" in message) is counted


def test_each_program_has_what_it_imports(tmp_path):
    other = {"train_other.py": "import other\nfrom train import main\n\nif __name__ == '__main__':\n    main()\n"}
    found = messages(tmp_path, other)
    assert {name: "Conv2d" in message for name, message in found.items()} == {"train.py": False, "train_other.py": True}


def test_what_no_import_in_sight_leads_to_is_there_where_nothing_else_is(tmp_path):
    (message,) = messages(tmp_path, {"lib/nets.py": ""}).values()
    assert "Conv2d" in message


@pytest.mark.parametrize("imports", ["", "import other", "import middle"])
def test_a_program_that_is_linted_alone_has_what_its_imports_register(imports, tmp_path):
    files = {"middle.py": "import other\n"}
    whole = messages(tmp_path, files, imports)["train.py"]
    settings = Settings(root=str(tmp_path), jobs=1, cache_dir=str(tmp_path / "cache"))

    def alone():
        found = run.run([str(tmp_path / "train.py")], settings).findings
        return [one.message for one in found if one.code == "TDL203"]

    assert alone() == [whole]
    # What is kept of the run is not asked any more once a file that it read has changed.
    (tmp_path / "lib/nets.py").write_text("")
    (tmp_path / "other/nets.py").write_text("")
    (message,) = alone()
    assert message.endswith("without `torch.use_deterministic_algorithms(True)`")


KEYED = """
import sys
import torch

ENGINES = {}

REGISTER

def register_other(name):
    def add(made):
        ENGINES[name.lower()] = made
        return made
    return add

DECORATORS[0]
def train():
    return torch.rand(2)

DECORATORS[1]
def extract():
    return torch.ones(2)

def taken(name):
    return ENGINES[name]

def run(name, *rest):
    engine = TAKEN
    return engine()

def worker(rank, name):
    run(name)

def outer(name="extract", size=3):
    run(name, size)

if __name__ == "__main__":
    CALL
"""
BY_NAME = """
def register(name):
    def add(made):
        ENGINES[name] = made
        return made
    return add
"""
BY_DEFAULT = """
def register(name=None):
    def add(made):
        key = name or made.__name__
        ENGINES[key] = made
        return made
    return add
"""
BY_ITSELF = """
def register(made):
    ENGINES[made.__name__] = made
    return made
"""
NAMED = ('@register("train")', '@register("extract")')


def draws(call, register=BY_NAME, decorators=NAMED, taken="ENGINES[name]"):
    first, second = decorators
    source = KEYED.replace("REGISTER", register, 1).replace("DECORATORS[0]", first).replace("DECORATORS[1]", second)
    source = source.replace("TAKEN", taken).replace("CALL", call)
    return bool(lint_source(source, select=["TDL101"]))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('ENGINES["extract"]()', False),
        ('ENGINES["train"]()', True),
        ('run("extract")', False),
        ('run("train")', True),
        ("run(sys.argv[1])", True),
        ('run("train")\n    run("extract")', True),
        ("outer()", False),
        ('outer("extract", 2)', False),
        ('outer("train", 2)', True),
        ('run(*["extract", 2])', True),
        ('torch.multiprocessing.spawn(worker, args=("extract",))', False),
        ('torch.multiprocessing.spawn(worker, args=("train",))', True),
        ('ENGINES["other"]()', True),
    ],
)
def test_a_key_that_a_decorator_writes_down(call, expected):
    assert draws(call) is expected


@pytest.mark.parametrize("taken", ["ENGINES[name]", "ENGINES.get(name)", "taken(name)"])
@pytest.mark.parametrize(
    ("register", "decorators", "known"),
    [
        (BY_NAME, NAMED, True),
        (BY_NAME, ('@register(name="train")', '@register(name="extract")'), True),
        (BY_DEFAULT, ('@register("train")', '@register(name="extract")'), True),
        (BY_DEFAULT, ("@register()", "@register()"), True),
        (BY_ITSELF, ("@register", "@register"), True),
        (BY_NAME, ("@register(sys.argv[1])", '@register("extract")'), False),
        (BY_NAME, ("@register(**options)", '@register("extract")'), False),
        (BY_NAME, ('@register_other("train")', '@register("extract")'), False),
        (BY_NAME.replace("[name]", "[name + '_engine']"), NAMED, False),
    ],
)
def test_what_a_function_that_registers_makes_the_key_of(register, decorators, known, taken):
    assert draws('run("train")', register, decorators, taken)
    assert draws('run("extract")', register, decorators, taken) is not known


def test_a_key_across_files(tmp_path):
    made = "import torch\nfrom .registry import register\n\n@register('{}')\ndef make():\n    return torch.{}(2)\n"
    files = {
        "engines/__init__.py": "from . import extract, train\nfrom .registry import run\n",
        "engines/registry.py": f"ENGINES = {{}}\n{BY_NAME}\ndef run(name):\n    return ENGINES[name]()\n",
        "engines/train.py": made.format("train", "rand"),
        "engines/extract.py": made.format("extract", "ones"),
        "one.py": "from engines import run\n\nif __name__ == '__main__':\n    run('extract')\n",
        "two.py": "from engines import run\n\nif __name__ == '__main__':\n    run('train')\n",
        "three.py": (
            "import engines\nfrom engines.registry import ENGINES\n\n"
            "if __name__ == '__main__':\n    ENGINES['extract']()\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1, cache_dir="")).findings
    assert {one.filename.rpartition("/")[2] for one in found if one.code == "TDL101"} == {"two.py"}


METHODS = """
import torch

class Registry:
    def __init__(self):
        self._kept = {}

    def _keep(self, name, made):
        self._kept[name] = made

    def register(self, made=None, name=None, group=None):
        if made is not None:
            self._keep(name or made.__name__, made)
            return made

        def put(made):
            self._keep(name or made.__name__, made)
            return made
        return put

    def get(self, name):
        return self._kept[name]

    __getitem__ = get

RUNS = Registry()
kinds = ["drawn"]

@RUNS.register(name="drawn")
def first():
    print(torch.rand(2))

@RUNS.register(name="fixed", group="plain")
def second():
    print(torch.ones(2))

@RUNS.register()
def third():
    print(torch.rand(2))

@RUNS.register(group="plain")
def fourth():
    print(torch.zeros(2))
"""
FIFTH = """
@RUNS.register(name=kinds[0])
def fifth():
    print(torch.rand(2))
"""


@pytest.mark.parametrize(
    ("run_", "more", "draws"),
    [
        ('RUNS.get("fixed")()', "", False),
        ('RUNS.get("drawn")()', "", True),
        ('RUNS["fixed"]()', "", False),
        ('RUNS["third"]()', "", True),
        ('RUNS["fourth"]()', "", False),
        ('RUNS["first"]()', "", True),
        ('RUNS["fixed"]()', FIFTH, True),
        ("RUNS.get(kinds[0])()", "", True),
    ],
)
def test_what_a_method_of_a_registry_is_given_as_a_name_is_the_key(run_: str, more: str, draws: bool) -> None:
    program = f"{METHODS}{more}\nif __name__ == '__main__':\n    {run_}\n"
    assert bool(lint_source(program, select=["TDL101"])) is draws


HEAD = """
import torch
from torch import nn
from PACKAGE.registry import MODELS

@MODELS.register_module()
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.LAYER

    def forward(self, x):
        return self.net(x)
"""
BUILDING = """
import sys
import torch
import det.heads
import seg.heads
from PACKAGE.registry import MODELS

if __name__ == "__main__":
    net = MODELS.build(dict(type=sys.argv[1])).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.randn(2, 3, 4, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("built_with", "also", "counted"),
    [
        ("mmdet", "", ("Conv2d",)),
        ("mmseg", "", ("AdaptiveMaxPool2d",)),
        ("mmengine", "", ("Conv2d", "AdaptiveMaxPool2d")),
        ("mmpose", "", ("Conv2d", "AdaptiveMaxPool2d")),
        ("mmdet", "mmengine", ("Conv2d", "Embedding")),
    ],
)
def test_each_library_of_a_family_has_registries_of_its_own(built_with, also, counted, tmp_path):
    files = {
        "det/__init__.py": "from . import more" if also else "",
        "det/heads.py": HEAD.replace("PACKAGE", "mmdet").replace("LAYER", "Conv2d(3, 3, 1)"),
        "det/more.py": HEAD.replace("PACKAGE", also or "mmdet").replace("LAYER", "Embedding(3, 3)") if also else "",
        "seg/__init__.py": "",
        "seg/heads.py": HEAD.replace("PACKAGE", "mmseg").replace("LAYER", "AdaptiveMaxPool2d(2)"),
        "train.py": BUILDING.replace("PACKAGE", built_with),
    }
    (message,) = messages(tmp_path, files).values()
    layers = ("Conv2d", "AdaptiveMaxPool2d", "Embedding")
    assert tuple(layer for layer in layers if layer in message) == counted


BUILDS = """
import sys
import torch

class Registry:
    def __init__(self):
        self.table = {}

    def register(self, name=None):
        def put(made):
            self.table[name or made.__name__] = made
            return made
        return put

    def build(self, config):
        return self.table[config.name](config)

NETS, OTHERS = Registry(), Registry()

@NETS.register()
class Net(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

def main(config):
    print(REGISTRY.build(config))

if __name__ == "__main__":
    main(sys.argv)
"""


@pytest.mark.parametrize(("registry", "draws"), [("NETS", True), ("OTHERS", False)])
def test_a_registry_that_builds_in_the_file_where_it_is_filled(registry: str, draws: bool) -> None:
    assert bool(lint_source(BUILDS.replace("REGISTRY", registry), select=["TDL101"])) is draws
