"""What functions of other files return, and that a record of the cache holds only as long as they stay as they are."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.catalogue import loading
from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.inference.cross_file import CrossFile
from torchdet_lint.module.module import Target
from torchdet_lint.prefilter.library import Library
from torchdet_lint.source.modules import ModuleMap, Relied, Still

if TYPE_CHECKING:
    from torchdet_lint.inference.abstract_values import AbstractValue

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n\n"
GUARDED = "try:\n    from torch import arange\nexcept ImportError:\n    arange = None\n\n"
FROZEN = "    with torch.no_grad():\n        y = F.softmax(x)\n"
ROOT = str(Path("/project").resolve())


def _at(name: str) -> str:
    return str(Path(ROOT) / name)


@functools.cache
def library() -> Library:
    return Library(loading.load())


def elsewhere(files: dict[str, str]) -> CrossFile:
    given = {_at(name): text.encode() for name, text in files.items()}
    return CrossFile(library(), Target(), ModuleMap(ROOT, given), given.get)


def returned(helpers: str) -> AbstractValue | None:
    return elsewhere({"helpers.py": HEAD + helpers}).returned("helpers.made", _at("main.py"))


@pytest.mark.parametrize(
    ("helpers", "what", "dtype", "gradient"),
    [
        ("def made(x) -> Tensor:\n    return x\n", "tensor", "unknown", "unknown"),
        ("def made(x) -> torch.LongTensor:\n    return x\n", "tensor", "integer", "no"),
        ("def made(x) -> 'Tensor':\n    return x\n", "tensor", "unknown", "unknown"),
        ("def made(x) -> Tensor | None:\n    return x\n", "tensor", "unknown", "unknown"),
        ("def made(\n    x: int, y=')',\n) -> Tensor:  # comment\n    return x\n", "tensor", "unknown", "unknown"),
        ("def made(x) -> np.ndarray:\n    return x\n", "other", "unknown", "no"),
        ("def made(x) -> int:\n    return x\n", "other", "unknown", "no"),
        ("def made(x: Tensor) -> Tensor:\n    return x.argmax(-1)\n", "tensor", "integer", "no"),
        ("def made(x: Tensor) -> Tensor:\n    '''A\n\nB'''\n    return x.argmax()\n", "tensor", "unknown", "unknown"),
        ("@torch.no_grad()\ndef made(x) -> Tensor:\n    return x\n", "tensor", "unknown", "no"),
        (f"def made(x) -> Tensor:\n{FROZEN}    return y\n", "tensor", "floating", "no"),
        ("def made(n):\n    return torch.arange(n)\n", "tensor", "integer", "no"),
        ("def made(n):\n    y = np.zeros(n)\n\n    # A comment.\n# Another.\n    return y\n", "other", "unknown", "no"),
        ("def made(n):\n    return deep(n)\n\ndef deep(n):\n    return torch.arange(n)\n", "tensor", "integer", "no"),
        ("from torch import arange as count\ndef made(n):\n    return count(n)\n", "tensor", "integer", "no"),
        (f"{GUARDED}def made(n):\n    return arange(n)\n", "tensor", "integer", "no"),
        ("def made(x: Tensor):\n    return x.bool()\n\n\nmade.version = 3\n", "tensor", "bool", "no"),
        ("def made(x): return torch.arange(x)\n", "unknown", "unknown", "unknown"),
        ("class Thing:\n    pass\n\ndef made(x):\n    return Thing()\n", "other", "unknown", "no"),
    ],
)  # fmt: skip
def test_what_a_function_returns(helpers: str, what: str, dtype: str, gradient: str) -> None:
    kind = returned(helpers)
    assert kind is not None if what != "unknown" else kind is None
    assert kind is None or (kind.what, kind.dtype, kind.gradient) == (what, dtype, gradient)


@pytest.mark.parametrize(
    "helpers",
    [
        "def made(x):\n    return x\n",
        "def made(x):\n    return made(x)\n",
        "def made(x):\n    return other(x)\n\ndef other(x):\n    return made(x)\n",
        "def made(x):\n    return TABLE\n",
        "def other(x):\n    return torch.arange(x)\n",
        "def made(x) -> Thing:\n    return x\n",
        "def made(x):\n    yield torch.arange(x)\n",
        "async def made(x):\n    return torch.arange(x)\n",
        "if torch:\n    def made(x):\n        return torch.arange(x)\n",
        "def made(x):\n    return '''\nno\n''' + torch.arange(x)\n",
        "def made(x) -> (\n",
        "class made:\n    pass\n",
    ],
)
def test_where_nothing_is_evident(helpers: str) -> None:
    assert returned(helpers) is None


def test_names_are_followed_through_the_files() -> None:
    known = elsewhere({
        "pkg/__init__.py": "from .ids import numbers as made\nfrom .more import *\n",
        "pkg/ids.py": "from far import arange\n\ndef numbers(n):\n    return arange(n)\n",
        "pkg/more.py": "import torch\n\ndef labels(x):\n    return torch.argmax(x, -1)\n",
        "far.py": "import torch\n\ndef arange(n):\n    return torch.arange(n)\n",
    })  # fmt: skip
    for name in ("pkg.made", "pkg.labels", ".pkg.made", "pkg.ids.numbers"):
        kind = known.returned(name, _at("main.py"))
        assert kind is not None
        assert (kind.what, kind.dtype) == ("tensor", "integer")
    for name in ("pkg.nothing", "pkg.ids", "pkg.ids.Class.method", "einops.rearrange"):
        assert known.returned(name, _at("main.py")) is None


@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("Frozen", "no"),
        ("Frozen.within", "no"),
        ("Frozen.later", "no"),
        ("Frozen.live", "unknown"),
        ("Derived.within", "no"),
        ("Derived", "no"),
        ("Layer", "no"),
        ("Normalized", "unknown"),
        ("Normalized.scaled", "unknown"),
        ("Frozen.through", "no"),
    ],
)
def test_what_objects_and_their_methods_give(name: str, gradient: str) -> None:
    long = "".join(f"    def method_{number}(self, x):\n        return x + {number}\n\n" for number in range(80))
    known = elsewhere({
        "helpers.py": HEAD + "from torch import nn\n\n\nclass Frozen:\n    @torch.no_grad()\n"
        "    def __call__(self, x):\n        return self.net(x)\n\n" + long +
        "    @torch.inference_mode()\n    def within(self, x):\n        return self.net(x)\n\n"
        "    def later(self, x):\n        with torch.no_grad():\n            y = self.net(x)['tokens']\n"
        "        return y.reshape(1, -1)\n\n    def live(self, x):\n        return self.net(x)\n\n"
        "    def through(self, x):\n        return self.within(x)\n\n\n"
        "class Derived(Frozen):\n    def other(self):\n        return 1\n\n\n"
        "class Layer(nn.Module):\n    @torch.no_grad()\n    def forward(self, x):\n        return self.net(x)\n\n\n"
        "class Normalized(nn.Module):\n    def forward(self, pixel_values):\n        return pixel_values / 255\n\n"
        "    def scaled(self, pixel_values):\n        return pixel_values / 255\n",
    })  # fmt: skip
    kind = known.returned(f"helpers.{name}", _at("main.py"))
    assert (kind.gradient if kind is not None else "unknown") == gradient
    for nothing in ("Frozen.nothing", "Frozen.within.shape", "Nothing.within"):
        assert known.returned(f"helpers.{nothing}", _at("main.py")) is None


def test_a_circle_gives_the_same_from_every_side() -> None:
    text = (
        HEAD
        + "def a(x):\n    return b(x) if x else torch.arange(x)\n\ndef b(x):\n    return a(x) if x else x.argmax()\n"
    )
    main = _at("main.py")
    first, second = elsewhere({"helpers.py": text}), elsewhere({"helpers.py": text})
    one = [first.returned(f"helpers.{name}", main) for name in ("a", "b", "a")]
    two = [second.returned(f"helpers.{name}", main) for name in ("b", "a", "b")]
    assert one == [two[1], two[0], two[1]]


def test_what_was_looked_at_is_told_once() -> None:
    files = {"helpers.py": "from other import made\n", "other.py": HEAD + "def made(n):\n    return torch.arange(n)\n"}
    known = elsewhere(files)
    main = _at("main.py")
    for _ in range(2):
        assert known.returned("helpers.made", main) is not None
        looks = known.relied()
        assert [(look.name, Path(look.path).name) for look in looks] == [
            ("other.made", "other.py"),
            ("helpers.made", "helpers.py"),
        ]
        assert all(look.content for look in looks)
    known.returned("nowhere.made", main)
    assert known.relied() == (Relied(main, "nowhere.made"),)


def test_a_look_holds_as_long_as_it_finds_the_same() -> None:
    main, helpers = _at("main.py"), _at("helpers.py")
    texts = {helpers: b"def made(): ..."}
    known = CrossFile(library(), Target(), ModuleMap(ROOT, texts), texts.get)
    known.returned("helpers.made", main)
    known.returned("late.made", main)
    looks = known.relied()

    def still(texts: dict[str, bytes]) -> list[bool]:
        return [Still(ModuleMap(ROOT, texts), texts.get).holds(look) for look in looks]

    assert still(texts) == [True, True]
    assert still({helpers: b"def made(): return 3"}) == [False, True]
    assert still({**texts, _at("late.py"): b""}) == [True, False]
    assert still({}) == [False, True]


MAIN = """import torch
from helpers import made

def loss(logits, index):
    return made(logits).gather(0, index)
"""


def test_the_cache_asks_again_where_another_file_changed(tmp_path: Path) -> None:
    settings = Settings(root=str(tmp_path), cache_dir=str(tmp_path / "cache"), select=("TDL403",), jobs=1)
    (tmp_path / "main.py").write_text(MAIN)

    def found() -> list[str]:
        return [finding.code for finding in run.run([str(tmp_path)], settings).findings]

    assert found() == ["TDL403"]
    for made, expected in (
        ("def made(x) -> int:\n    return 3\n", []),
        ("import torch\n\ndef made(x):\n    return torch.softmax(x, -1)\n", ["TDL403"]),
        ("import torch\n\ndef made(x):\n    return torch.argmax(x, -1)\n", []),
    ):
        (tmp_path / "helpers.py").write_text(made)
        assert found() == expected
        assert found() == expected
    (tmp_path / "helpers.py").unlink()
    assert found() == ["TDL403"]


def test_a_text_that_stands_for_another_file_counts(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "helpers.py").write_text("import torch\n\ndef made(x):\n    return torch.softmax(x, -1)\n")
    settings = Settings(root=str(tmp_path), select=("TDL403",), jobs=1)
    assert len(run.run([str(tmp_path)], settings).findings) == 1
    texts = {str(tmp_path / "helpers.py"): b"def made(x) -> int:\n    return 3\n"}
    assert not run.run([str(tmp_path)], settings, texts=texts).findings


STARS = {
    "basics.py": "import numpy as np\nfrom torch.nn import *\nfrom middle import *\nfrom helpers import made\n",
    "middle.py": "from basics import *\nimport torch.nn.functional as F\n\nclass torch:\n    pass\n",
    "helpers.py": "def made(x): ...\n",
}


@pytest.mark.parametrize(
    ("name", "means"),
    [("np", "numpy"), ("F", "torch.nn.functional"), ("LSTM", "torch.nn.LSTM"), ("torch", ""), ("made", ""), ("x", "")],
)
def test_what_a_name_means_by_a_star(name: str, means: str) -> None:
    assert elsewhere(STARS).starred(name, ("basics",), _at("main.py")) == means
    assert elsewhere(STARS).starred(name, ("elsewhere",), _at("main.py")) == ""


def test_the_cache_asks_again_what_a_name_means_by_a_star(tmp_path: Path) -> None:
    settings = Settings(root=str(tmp_path), cache_dir=str(tmp_path / "cache"), select=("TDL201",), jobs=1)
    (tmp_path / "main.py").write_text("from helpers import *\n\ncudnn.benchmark = True\n")

    def found() -> int:
        return len(run.run([str(tmp_path / "main.py")], settings).findings)

    assert found() == 0
    for helpers, expected in (("from torch.backends import cudnn\n", 1), ("from mine import cudnn\n", 0)):
        (tmp_path / "helpers.py").write_text(helpers)
        assert [found(), found()] == [expected, expected]


OPTIONS = """import sys
import torch
import yaml

with open(f"configs/{sys.argv[1]}.yaml") as file:
    torch.backends.cudnn.benchmark = yaml.safe_load(file)["fast"]
"""


def test_the_cache_asks_again_where_a_file_of_options_changed(tmp_path: Path) -> None:
    settings = Settings(root=str(tmp_path), cache_dir=str(tmp_path / "cache"), select=("TDL201",), jobs=1)
    (tmp_path / "main.py").write_text(OPTIONS)
    (tmp_path / "configs").mkdir()

    def found() -> list[str]:
        messages = [finding.message for finding in run.run([str(tmp_path)], settings).findings]
        return ["perhaps" if "may be on" in message else "on" for message in messages]

    for name, text, expected in (
        ("", "", ["perhaps"]),
        ("small.yaml", "fast: false\n", []),
        ("large.yaml", "fast: false\n", []),
        ("large.yaml", "fast: true\n", ["perhaps"]),
        ("small.yaml", "fast: true\n", ["on"]),
        ("small.yaml", "{", ["perhaps"]),
    ):
        if name:
            (tmp_path / "configs" / name).write_text(text)
        assert [found(), found()] == [expected, expected]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"import models\nif __name__ == '__main__': pass\n", "tool/models.py"),
        (b"import models\n", "models.py"),
        (b"import models\nfrom . import other\nif __name__ == '__main__': pass\n", "models.py"),
    ],
)
def test_script_in_a_package_finds_first_what_lies_beside_it(text, found):
    script = _at("tool/train.py")
    texts = {_at(name): b"" for name in ("models.py", "tool/__init__.py", "tool/models.py")} | {script: text}
    place = ModuleMap(ROOT, texts, texts.get).locate("models", script)
    assert place is not None
    assert place.path == _at(found)


@pytest.mark.parametrize(
    ("told", "name", "found"),
    [
        ('{"facenet": "."}', "facenet.models.net", "models/net.py"),
        ('{"facenet": "."}', "facenet", "__init__.py"),
        ("{'': 'lib'}", "tools.draw", "lib/tools/draw.py"),
        ("{'': 'lib', 'facenet': '.'}", "facenet.models.net", "models/net.py"),
        ("{'facenet': '../outside'}", "facenet.models", None),
        ("{'facenet': folder}", "facenet.models", None),
        ("folders", "net", None),
    ],
)
def test_packages_lie_where_the_setup_script_says(told, name, found):
    names = ("__init__.py", "models/__init__.py", "models/net.py", "lib/tools/__init__.py", "lib/tools/draw.py")
    script = _at("examples/train.py")
    text = f"setup(\n    packages=['facenet'],\n    # package_dir={{'': 'models'}}\n    package_dir={told},\n)\n"
    setup = {_at("setup.py"): text.encode()}
    texts = {_at(one): b"" for one in names} | {script: b"import facenet\n"} | setup
    place = ModuleMap(ROOT, texts, texts.get).locate(name, script)
    assert (place.path if place is not None else None) == (_at(found) if found else None)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("project.nets.small", "nets/small.py"),
        ("project.tools", "tools.py"),
        ("project", None),
        ("other.tools", None),
        ("project.missing", None),
    ],
)
def test_a_project_may_be_used_from_the_folder_above_it(name, found):
    script = _at("nets/train.py")
    texts = {_at(one): b"" for one in ("tools.py", "nets/small.py", "nets/train.py")}
    place = ModuleMap(ROOT, texts, texts.get).locate(name, script)
    assert (place.path if place is not None else None) == (_at(found) if found else None)


@pytest.mark.parametrize(
    ("name", "setup", "found"),
    [
        ("kit.find", "kit/setup.py", "kit/kit/__init__.py"),
        ("kit", "kit/pyproject.toml", "kit/kit/__init__.py"),
        ("kit.io", "kit/setup.py", "kit/kit/io.py"),
        ("kit.find", "setup.py", None),
        ("torch.nn", "torch/setup.py", None),
        ("tools.draw", "tools/setup.py", None),
    ],
)
def test_a_package_may_be_installed_from_a_folder_of_its_name(name, setup, found):
    script = _at("main.py")
    names = ("kit/kit/__init__.py", "kit/kit/io.py", "torch/torch/__init__.py", "tools/other.py", setup)
    texts = {_at(one): b"" for one in names} | {script: b""}
    place = ModuleMap(ROOT, texts, texts.get).locate(name, script)
    assert (place.path if place is not None else None) == (_at(found) if found else None)
