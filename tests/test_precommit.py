"""The hooks as users get them: `pre-commit try-repo` of this repository on a scratch one."""

from __future__ import annotations

import os
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


@pytest.mark.usefixtures("index")
def test_try_repo(hooks: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("pre_commit")
    scratch = tmp_path_factory.mktemp("scratch")
    git(scratch, "init")
    (scratch / "train.py").write_text(FAULTY)
    (scratch / "clean.py").write_text(CLEAN)
    (scratch / "notes.txt").write_text(FAULTY)
    git(scratch, "add", "-A")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(scratch.parent / "pre-commit")}

    def hook(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), name, "--all-files", "--verbose"]
        return subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)

    found = hook("torchdet-lint")
    assert found.returncode == 1, found.stdout + found.stderr
    assert "train.py:3:8: TDL002" in found.stdout
    assert "notes.txt" not in found.stdout
    assert "clean.py" not in found.stdout
    fixed = hook("torchdet-lint-fix")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert (scratch / "train.py").read_text() == CLEAN
    assert (scratch / "notes.txt").read_text() == FAULTY
    git(scratch, "add", "-A")
    assert hook("torchdet-lint").returncode == 0
