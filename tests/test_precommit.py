"""The hooks as users get them: real pre-commit in projects that pin this repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAULTY = "import torch\n\nx = 1  # noqa: TDL201\n"
CLEAN = "import torch\n\nx = 1\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This working tree as a repository of its own, so that what is not committed yet is tested too."""
    place = tmp_path_factory.mktemp("hooks")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    git(place, "init")
    git(place, "add", "-A")
    git(place, "commit", "-m", "state")
    return place


@pytest.fixture(scope="module")
def index() -> None:
    """An isolated environment has to be filled from the package index."""
    command = [sys.executable, "-m", "pip", "index", "versions", "tomli"]
    probe = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if probe.returncode:
        pytest.skip("the package index cannot be reached: " + probe.stderr.strip()[-200:])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment that it installs the hooks into, once for all tests."""
    return tmp_path_factory.mktemp("pre-commit")


def configure(folder: Path, hooks: Path, hook: str, *more: str) -> None:
    """Let the project in `folder` use a hook of the repository `hooks`, as a user pins it."""
    command = ["git", "rev-parse", "HEAD"]
    revision = subprocess.run(command, cwd=hooks, capture_output=True, text=True, check=True).stdout.strip()
    lines = [f"- repo: {hooks}", f"  rev: {revision}", "  hooks:", f"  - id: {hook}", *(f"    {line}" for line in more)]
    (folder / ".pre-commit-config.yaml").write_text("\n".join(["repos:", *lines, ""]))


SEEDING = """\
import random
import torch

def everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)
"""
TRAIN = """\
import torch
from core.seeding import everything
from data.loaders import loader

if __name__ == "__main__":
    everything(1)
    for batch in loader(torch.rand(8, 2)):
        print(batch)
"""
LOADERS = "from torch.utils.data import DataLoader\n\ndef loader(data):\n    return DataLoader(data, shuffle=True)\n"
BENCHMARK = "import torch\ntorch.backends.cudnn.benchmark = True\n"
LISTED = "import os\nimport torch\nnames = [name for name in os.listdir('.')]\nprint(names[0])\n"
PACKAGES = {
    "pyproject.toml": "[tool.torchdet-lint]\nextend-exclude = ['legacy']\nmin-severity = 'note'\n",
    "app/train.py": TRAIN,
    "core/__init__.py": "",
    "core/seeding.py": SEEDING,
    "data/__init__.py": "",
    "data/loaders.py": LOADERS,
    "one/pyproject.toml": "[tool.torchdet-lint]\nignore = ['TDL2']\n",
    "one/a.py": BENCHMARK + LISTED,
    "two/torchdet-lint.toml": "ignore = ['TDL3']\n",
    "two/a.py": BENCHMARK + LISTED,
    "legacy/old.py": BENCHMARK,
    "notebooks/look.ipynb": json.dumps(
        {
            "cells": [
                {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
                for source in ("import torch", "torch.backends.cudnn.benchmark = True")
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ),
}


@pytest.mark.usefixtures("index")
def test_a_project_of_five_packages(hooks: Path, home: Path, tmp_path: Path) -> None:
    """What the hook says of each commit is what the linter says of the whole project."""
    pytest.importorskip("pre_commit")
    for name, text in PACKAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    configure(tmp_path, hooks, "torchdet-lint", "args: [--output-format, concise, --no-cache]")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home), "PYTHONPATH": ""}

    def hook(*words: str) -> list[str]:
        command = [sys.executable, "-m", "pre_commit", "run", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        found = sorted(line for line in done.stdout.splitlines() if re.search(r":\d+: TDL\d+ ", line))
        assert done.returncode == (1 if found else 0), done.stdout + done.stderr
        return found

    def whole() -> list[str]:
        command = [sys.executable, "-m", "torchdet_lint", ".", "--quiet", "--output-format", "concise", "--no-cache"]
        mine = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=mine, capture_output=True, text=True, check=False)
        return sorted(done.stdout.splitlines())

    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    everything = whole()
    codes = {(line.split(":")[0], re.search(r"TDL\d+", line)[0]) for line in everything}  # type: ignore[index]
    assert {("one/a.py", "TDL304"), ("two/a.py", "TDL201"), ("notebooks/look.ipynb", "TDL201")} <= codes
    assert not {("one/a.py", "TDL201"), ("two/a.py", "TDL304"), ("legacy/old.py", "TDL201")} & codes
    assert hook("--all-files") == everything
    git(tmp_path, "commit", "-m", "all", "--no-verify")

    # Each part alone, as commits name it: nothing is lost and nothing is added.
    parts = [
        ["app/train.py", "core/seeding.py"],
        ["data/loaders.py", "legacy/old.py"],
        ["one/a.py", "notebooks/look.ipynb"],
    ]
    told = [line for part in parts for line in hook("--files", *part)]
    assert sorted(told) == [line for line in everything if not line.startswith("two/")]

    # Of a file that is staged in part the staged part is linted, and the rest is put back.
    both = PACKAGES["data/loaders.py"].replace("shuffle=True", "shuffle=False")
    (tmp_path / "data/loaders.py").write_text(both)
    git(tmp_path, "add", "data/loaders.py")
    (tmp_path / "data/loaders.py").write_text(both + BENCHMARK)
    assert hook() == []
    assert (tmp_path / "data/loaders.py").read_text() == both + BENCHMARK
    git(tmp_path, "checkout", "HEAD", "--", "data/loaders.py")

    # A removed seed is told of where it was, and in the whole project where it is missed.
    (tmp_path / "core/seeding.py").write_text(SEEDING.replace("    torch.manual_seed(seed)\n", ""))
    git(tmp_path, "add", "core/seeding.py")
    (line,) = hook()
    assert line.startswith("core/seeding.py:4:1: TDL101 `everything` does not seed torch: app/train.py:7 calls it")
    assert [line.split(" ")[0] for line in whole() if "TDL101" in line] == ["app/train.py:7:18:"]


@pytest.mark.usefixtures("index")
def test_the_hook_that_fixes_says_what_it_fixed(hooks: Path, home: Path, tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    git(tmp_path, "init")
    (tmp_path / "train.py").write_text(FAULTY)
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "notes.txt").write_text(FAULTY)
    git(tmp_path, "add", "-A")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home), "PYTHONPATH": ""}

    def hook(name: str) -> subprocess.CompletedProcess[str]:
        configure(tmp_path, hooks, name)
        command = [sys.executable, "-m", "pre_commit", "run", name, "--all-files", "--verbose"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    found = hook("torchdet-lint")
    assert found.returncode == 1, found.stdout + found.stderr
    assert "train.py:3:8: TDL002" in found.stdout
    assert "notes.txt" not in found.stdout
    assert "clean.py" not in found.stdout
    fixed = hook("torchdet-lint-fix")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert "Fixed 1 finding:\n  1 × TDL002 unused-suppression\n" in fixed.stdout
    assert (tmp_path / "train.py").read_text() == CLEAN
    assert (tmp_path / "notes.txt").read_text() == FAULTY
    git(tmp_path, "add", "-A")
    assert hook("torchdet-lint-project").returncode == 0
