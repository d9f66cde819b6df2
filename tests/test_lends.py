"""An import that a fix leaves unread -> whether it stays, for another file that has it from there."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import repair

UTILS = """\
import random
import time
import torch


def seed():
    torch.manual_seed(random.randint(0, 9) + int(time.time()))
"""


@pytest.mark.parametrize(
    ("head", "stays"),
    [
        ("from utils import seed, time\n", True),
        ("from utils import (\n    seed,\n    time,\n)\n", True),
        ("from utils import *\n", True),
        ("from utils import seed\nimport utils\ntime = utils.time\n", True),
        ("from utils import seed\nimport time\n", False),
        ("from utils import seed\nfrom time import time\n", False),
    ],
)
def test_import_stays_for_a_file_that_has_it_from_there(head, stays, tmp_path):
    (tmp_path / "utils.py").write_text(UTILS)
    (tmp_path / "main.py").write_text(f"{head}\nseed()\nprint(time)\n")
    settings = Settings(root=str(tmp_path), select=("TDL105",), unsafe_fixes=True, jobs=1)
    text = repair.repair([str(tmp_path)], settings).texts[str(tmp_path / "utils.py")].decode()
    assert "+ 0)" in text
    assert ("import time\n" in text) == stays
