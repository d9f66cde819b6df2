"""A warm answer is the cold one, whatever happened to the files in between: looks that found nothing count too."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from torchdet_lint.cli.main import main

TRAIN = """
import torch
from helper import setup
def main():
    setup()
    torch.rand(3)
if __name__ == "__main__":
    main()
"""
SEEDS = "import torch\ndef setup():\n    torch.manual_seed(0)\n"
IDLE = "def setup():\n    pass\n"

POOL: dict[str, tuple[str, ...]] = {
    "train.py": (
        TRAIN,
        TRAIN.replace("helper", "pkg.helper"),
        TRAIN.replace("from helper import setup", "import data"),
    ),
    "other.py": (
        ("import torch\nfrom base import *\ndef main():\n    setup()\n    x = make()\n    x.index_add_(0, x, x)\n"
        "    torch.empty(3)\nif __name__ == '__main__':\n    main()\n"),
        ("import torch\nfrom data import make\n"
        "loader = torch.utils.data.DataLoader(make(), num_workers=2, shuffle=True)\n"
        "if __name__ == '__main__':\n    for _ in loader: torch.rand(2)\n"),
    ),
    "app.py": (
        ("import hydra, torch\n@hydra.main(config_path='conf', config_name='config')\ndef main(cfg):\n"
        "    trainer = hydra.utils.instantiate(cfg.trainer)\n    trainer.fit()\n    torch.rand(2)\nmain()\n"),
    ),
    "cli.py": (
        ("from lightning.pytorch.cli import LightningCLI\nfrom data import make\n"
        "if __name__ == '__main__':\n    LightningCLI(make)\n"),
    ),
    "helper.py": (SEEDS, IDLE, "from base import *\n", "def f(:\n"),
    "helper/__init__.py": ("", SEEDS, "from .inner import setup\n"),
    "helper/inner.py": (SEEDS, IDLE),
    "src/helper.py": (SEEDS, IDLE),
    "src/helper/__init__.py": (IDLE, SEEDS),
    "pkg/__init__.py": ("", "from . import helper\n"),
    "pkg/helper.py": (SEEDS, IDLE, "from helper import setup\n", "from ..helper import *\n"),
    "base.py": ("from chain import *\n", SEEDS, "from torch import *\nfrom chain import *\n"),
    "chain.py": (SEEDS, IDLE, "from end import *\n", "def make():\n    return [1]\n"),
    "end.py": (SEEDS, "from torch import manual_seed, empty as make\ndef setup():\n    manual_seed(1)\n"),
    "data.py": (
        "import torch\ndef make():\n    return torch.zeros(3)\n",
        ("import torch\nclass make(torch.utils.data.Dataset):\n"
        "    def __getitem__(self, i):\n        return torch.rand(3)\n"),
        "def setup():\n    pass\n",
    ),
    "pkg/files.py": (
        "import os\ndef names(folder):\n    return os.listdir(folder)\n",
        "import os\nclass Base:\n    def __init__(self, folder):\n        self.files = os.listdir(folder)\n",
    ),
    "pkg/many.py": (
        "from .files import names\nprint(sorted(names('x')))\n",
        "from .files import names as n\nprint(n('x')[0])\n",
    ),
    "use.py": (
        "from pkg.files import names\nprint(names('x')[0])\n",
        "import pkg.files\nprint(len(pkg.files.names('x')))\n",
    ),
    "heir.py": ("from pkg.files import Base\nclass Heir(Base):\n    def first(self):\n        return self.files[0]\n",),
    "trainers.py": ("import lightning\ndef build(**more):\n    return lightning.Trainer(deterministic=True)\n",),
    "conf/config.yaml": (
        "trainer:\n  _target_: lightning.Trainer\n  deterministic: true\n",
        "defaults: [trainer: fast]\n",
        "trainer:\n  _target_: trainers.build\n",
    ),
    "conf/trainer/fast.yaml": ("_target_: lightning.Trainer\n", "_target_: trainers.build\nbenchmark: true\n"),
    "config.yaml": (
        "seed_everything: 1\ntrainer:\n  deterministic: true\nmodel: {}\n",
        "trainer:\n  benchmark: true\nmodel: {}\n",
    ),
    "random.py": ("class Random:\n    pass\ndef random():\n    return 1\n",),
    "glob.py": ("def glob(name):\n    return []\n",),
    "shadows.py": (
        "import glob, random\nprint(glob.glob('x')[0], random.Random(), random.random())\n",
        "from random import Random\nfrom glob import glob\nprint(glob('x')[0], Random())\n",
    ),
    "note.ipynb": (
        json.dumps({"cells": [{"cell_type": "code", "source": TRAIN.replace("main()", "run()")}]}),
        "{",
    ),
    ".gitignore": ("helper.py\n", "src/\n", "*.ipynb\n"),
    "requirements.txt": ("torch==1.9\n", "torch>=2.0\n"),
    "pyproject.toml": (
        "[tool.torchdet-lint]\nentry-points = ['other.py']\n",
        "[tool.torchdet-lint]\nseed-functions = ['helper.setup']\n",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Linted:
    """Lints with a cache and without."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "--output-format", "json", "--min-severity", "note"])
        return status, *self.capsys.readouterr()

    def same(self, *arguments: str) -> tuple[int, str, str]:
        """The answer, which is the same warm, cold, and warm once more."""
        warm, cold = self(*arguments), self(*arguments, "--no-cache")
        assert warm == cold
        assert self(*arguments) == cold
        return cold


@pytest.fixture
def linted(capsys: pytest.CaptureFixture[str]) -> Linted:
    return Linted(capsys)


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def codes(told: tuple[int, str, str]) -> list[str]:
    return [finding["code"] for finding in json.loads(told[1])]


@pytest.mark.parametrize("project", [True, False], ids=["project", "folder"])
@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("helper.py", {}),
        ("helper/__init__.py", {}),
        ("helper/__init__.py", {"helper.py": IDLE}),
        ("src/helper.py", {}),
        ("src/helper/__init__.py", {"src/helper.py": IDLE}),
        ("chain.py", {"helper.py": "from base import *\n", "base.py": "from chain import *\n"}),
        ("helper/inner.py", {"helper/__init__.py": "from .inner import *\n"}),
    ],
)
def test_what_was_not_there_is_seen_when_it_is(
    folder: Path, linted: Linted, name: str, extra: dict[str, str], *, project: bool
) -> None:
    """In a project the files around are known too; without one only the looks that found nothing tell."""
    if not project:
        (folder / ".git").rmdir()
    put(folder, "train.py", TRAIN)
    for other, text in extra.items():
        put(folder, other, text)
    assert "TDL101" in codes(linted.same("train.py"))
    put(folder, name, SEEDS)
    assert "TDL101" not in codes(linted.same("train.py"))
    (folder / name).unlink()
    assert "TDL101" in codes(linted.same("train.py"))
    put(folder, name, SEEDS)
    assert "TDL101" not in codes(linted.same("train.py"))


def test_a_helper_that_cannot_be_parsed_is_seen_when_it_can(folder: Path, linted: Linted) -> None:
    put(folder, "train.py", TRAIN)
    (folder / "helper.py").write_bytes(b"\xff\n")
    assert "TDL101" in codes(linted.same("train.py"))
    put(folder, "helper.py", SEEDS)
    assert "TDL101" not in codes(linted.same("train.py"))


def test_the_end_of_a_chain_of_stars_is_seen(folder: Path, linted: Linted) -> None:
    put(folder, "use.py", "from base import *\nx = empty(3)\nprint(x.sum())\n")
    put(folder, "base.py", "from torch import empty\nfrom extra import *\n")
    before = linted.same("use.py")
    put(folder, "torch.py", "")
    put(folder, "torch/__init__.py", "def empty(n):\n    return [0] * n\n")
    linted.same("use.py")
    shutil.rmtree(folder / "torch")
    (folder / "torch.py").unlink()
    assert linted.same("use.py") == before


def test_python_s_own_cache_changes_nothing(folder: Path, linted: Linted, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "train.py", TRAIN)
    cold = linted.same("train.py")
    (folder / "__pycache__").mkdir()
    put(folder, "events.log", "")
    monkeypatch.setattr("torchdet_lint.engine.program_run.ProgramRun.run", lambda _: pytest.fail("looked again"))
    assert linted("train.py") == cold


LISTING = "import os\ndef names(folder):\n    return os.listdir(folder)\n"
LOADER = (
    "import torch\nclass Fast(torch.utils.data.DataLoader):\n    def __init__(self, data, **options):\n"
    "        super().__init__(data, num_workers=2, **options)\n"
)


def test_a_look_for_callers_is_kept(folder: Path, linted: Linted, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pkg", "pkg/deep", "other"):
        put(folder, f"{package}/__init__.py", "")
    put(folder, "pkg/deep/files.py", LISTING + LOADER)
    put(folder, "pkg/deep/many.py", "from .files import names\nprint(sorted(names('x')))\n")
    put(folder, "use.py", "from pkg.deep.files import Fast, names\nprint(len(names('x')), Fast([]))\n")
    cold = linted.same(".")
    monkeypatch.setattr("torchdet_lint.engine.linter.Linter.record", lambda *_: pytest.fail("looked again"))
    assert linted(".") == cold


def test_a_caller_that_was_not_there_is_seen_when_it_is(folder: Path, linted: Linted) -> None:
    put(folder, "pkg/__init__.py", "")
    put(folder, "pkg/files.py", LISTING)
    put(folder, "use.py", "from pkg.files import names\nprint(sorted(names('x')))\n")
    assert codes(linted.same(".")) == []
    for name in ("more.py", "pkg/more.py"):
        put(folder, name, "from pkg.files import names\nprint(names('x')[0])\n")
        assert codes(linted.same(".")) == ["TDL304"]
        (folder / name).unlink()
        assert codes(linted.same(".")) == []


def test_paths_are_those_of_the_folder_that_asks(folder: Path, linted: Linted, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "deep/train.py", TRAIN.replace("helper", "model"))
    put(folder, "deep/model.py", "import torch\ndef setup():\n    torch.rand(2)\n")
    put(folder, "late.py", "import torch\nimport deep.seeds\ndef main():\n    torch.rand(2)\n    deep.seeds.setup()\n"
        "if __name__ == '__main__':\n    main()\n")  # fmt: skip
    put(folder, "deep/seeds.py", SEEDS)
    (folder / "away").mkdir()
    answers = []
    for place, asked in (("", "."), ("away", ".."), ("deep", str(folder)), ("deep", ".."), ("", str(folder))):
        monkeypatch.chdir(folder / place)
        told = linted.same(asked)
        answers.append(told[1])
        related = [other for finding in json.loads(told[1]) for other in finding["related"]]
        assert related
        assert all(Path(other["filename"]).is_file() for other in related)
        assert "\\u0000" not in told[1]
        assert "\0" not in told[1]
    assert len(set(answers)) > 2


def _step(folder: Path, chance: random.Random) -> str:
    """One edit of the project."""
    name = chance.choice(sorted(POOL))
    path = folder / name
    kind = chance.choice(["write", "write", "write", "remove", "remove folder", "move"])
    there = sorted(str(found.relative_to(folder)) for found in folder.rglob("*.py") if ".git" not in found.parts)
    if kind == "remove" and path.is_file():
        path.unlink()
    elif kind == "remove folder" and path.parent != folder:
        shutil.rmtree(path.parent, ignore_errors=True)
    elif kind == "move" and there:
        source = folder / chance.choice(there)
        target = folder / chance.choice([name for name in sorted(POOL) if name.endswith(".py")])
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
        name = f"{source} to {target}"
    else:
        put(folder, name, chance.choice(POOL[name]))
    return f"{kind} {name}"


def _walk(folder: Path, linted: Linted, monkeypatch: pytest.MonkeyPatch, steps: int, seed: int) -> int:
    """Edit at random, and compare after each edit; the number of different answers."""
    chance = random.Random(seed)
    for name in sorted(POOL):
        if chance.random() < 0.6:
            put(folder, name, chance.choice(POOL[name]))
    (folder / "elsewhere").mkdir()
    edits: list[str] = []
    answers: set[str] = set()
    asked = ["."]
    for step in range(steps):
        edits.append(_step(folder, chance))
        if chance.random() < 0.4:
            name = chance.choice(["train.py", "other.py", "app.py", "cli.py"])
            put(folder, name, chance.choice(POOL[name]))
        if step % 10 == 0:  # the same files for a while: one answer about the whole program is kept
            there = sorted(path.relative_to(folder) for path in folder.rglob("*.py") if ".git" not in path.parts)
            few = chance.sample(there, min(len(there), chance.choice([1, 1, 2, 3])))
            asked = chance.choice([["."], ["train.py"], ["train.py", "other.py"], [str(path) for path in few]])
        away = chance.random() < 0.2
        monkeypatch.chdir(folder / "elsewhere" if away else folder)
        named = [str(folder / path) if away and step % 2 else os.path.relpath(folder / path) for path in asked]
        warm = linted(*named)
        cold = linted(*named, "--no-cache")
        assert warm == cold, (seed, named, edits[-5:])
        answers.add(cold[1])
    return len(answers)


@pytest.mark.parametrize("seed", range(3))
def test_edits_at_random(folder: Path, linted: Linted, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    if seed == 2:
        (folder / ".git").rmdir()
    assert _walk(folder, linted, monkeypatch, 40, seed) > 3


@pytest.mark.slow  # `make cache-walk`
@pytest.mark.parametrize("project", [True, False], ids=["project", "folder"])
def test_a_thousand_edits(folder: Path, linted: Linted, monkeypatch: pytest.MonkeyPatch, *, project: bool) -> None:
    if not project:
        (folder / ".git").rmdir()
    assert _walk(folder, linted, monkeypatch, 1000, 1000) > 100
