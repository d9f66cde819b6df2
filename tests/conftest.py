from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def small_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a small folder: `verify` gives each of its runs a copy of the one where it stands."""
    monkeypatch.chdir(tmp_path)
