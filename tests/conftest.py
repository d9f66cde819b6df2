from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def project(tmp_path):
    """Writes files into a folder, `train_DOT_py="…"`, which it gives."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_DOT_", ".")).write_text(text)
        return tmp_path

    return write
