"""What git tracks is linted, whatever its ignore files say: the index is read as git writes it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.source.discovery import SUFFIXES, Excluded, Exclusion, discover
from torchdet_lint.source.tracked import Tracked, tracked

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
NAMES = (
    "a.py",
    "data/prepare.py",
    "data/" + "long_" * 40 + "/" + "long_" * 40 + "name.py",
    "data/ä.ipynb",
    "data/notes.txt",
    "src/b.py",
)


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (*NAMES, "data/untracked.py", "build/generated.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    (root / ".gitignore").write_text("data/\nbuild/\n")
    return root


def listed(root: Path) -> set[str]:
    files, errors = discover([str(root)], Exclusion(root=str(root)))
    assert errors == []
    return {file.path.removeprefix(f"{root}/") for file in files}


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
def test_tracked_files_are_not_ignored(tree: Path, version: str, hashes: str) -> None:
    git(tree, "init", f"--object-format={hashes}")
    assert listed(tree) == {"a.py", "src/b.py"}
    git(tree, "add", "--force", *NAMES)
    if version == "3":
        git(tree, "update-index", "--skip-worktree", "data/prepare.py")
    else:
        git(tree, "update-index", f"--index-version={version}")
    assert (tree / ".git/index").read_bytes()[4:8] == bytes([0, 0, 0, int(version)])
    python = {name for name in NAMES if name.endswith(SUFFIXES)}
    assert tracked(str(tree), SUFFIXES).files == {f"{tree}/{name}" for name in python}
    assert listed(tree) == python
    excluded = Excluded(Exclusion(root=str(tree)))
    assert not excluded.leaves_out(str(tree / "data/prepare.py"))
    assert excluded.leaves_out(str(tree / "data/untracked.py"))


def test_a_second_work_tree_has_an_index_elsewhere(tree: Path) -> None:
    git(tree, "init")
    git(tree, "add", "--force", ".gitignore", *NAMES)
    git(tree, "commit", "-m", "state")
    git(tree, "worktree", "add", "../other")
    other = tree.parent / "other"
    (other / "data/new.py").write_text("x = 1\n")
    assert listed(other) == {name for name in NAMES if name.endswith(SUFFIXES)}


def test_what_the_configuration_excludes_stays_out(tree: Path) -> None:
    git(tree, "init")
    git(tree, "add", "--force", *NAMES)
    files, _ = discover([str(tree)], Exclusion(root=str(tree), patterns=("data",)))
    assert {file.path.removeprefix(f"{tree}/") for file in files} == {"a.py", "src/b.py"}


@pytest.mark.parametrize(
    "data",
    [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"DIRC\0\0\0\4\0\0\0\1" + b"\xff" * 70],
    ids=["empty", "short", "many", "bytes"],
)
def test_an_index_that_is_damaged_lists_nothing(tree: Path, data: bytes) -> None:
    git(tree, "init")
    (tree / ".git/index").write_bytes(data)
    assert tracked(str(tree), SUFFIXES) == Tracked()
    assert listed(tree) == {"a.py", "src/b.py"}
