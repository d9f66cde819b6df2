"""What SECURITY.md promises and no other file tries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.cli.main import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]


def test_linting_runs_no_code_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bomb = "import torch\nopen('ran', 'w')\nfrom helper import *\nif __name__ == '__main__':\n    torch.rand(2)\n"
    for name in ("helper.py", "torch.py", "conftest.py", "setup.py", "sitecustomize.py", "train.py", "yaml.py"):
        Path(name).write_text(bomb)
    assert main([".", "--fix", "--unsafe-fixes", "-q"]) in (0, 1)
    assert not Path("ran").exists()


def test_every_test_that_is_named_is_there() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [name for name in named if f"def {name}(" not in tests] == []
