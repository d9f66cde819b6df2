"""A seed that differs in every run, of a generator from which no program draws: a note."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

if TYPE_CHECKING:
    from pathlib import Path

MAIN = """
import random
import time
import numpy as np
import torch
{above}

torch.manual_seed(0)
{lines}
print(torch.rand(3))
"""


def severities(folder: Path, lines: str, above: str = "", files: dict[str, str] | None = None) -> set[str]:
    """The severities of the seeds that differ in every run, of a program and some `files` beside it."""
    for name, text in {"main.py": MAIN.format(lines=lines, above=above), **(files or {})}.items():
        (folder / name).write_text(text)
    settings = Settings(root=str(folder), jobs=1, cache_dir="", min_severity="note")
    found = run.run([str(folder)], settings).findings
    return {one.severity for one in found if one.code == "TDL105"}


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ("random.seed()", "note"),
        ("np.random.seed()\nrandom.seed(None)", "note"),
        ("random.seed(time.time())\nprint(np.random.rand())", "note"),
        ("random.seed()\ntorch.save(3, f'{random.random()}.pt')", "note"),
        ("random.seed()\nprint(random.random())", "error"),
        ("np.random.seed()\nseed = np.random.randint(9)\ntorch.manual_seed(seed)", "error"),
        ("seed = int(time.time())\nrandom.seed(seed)\nnp.random.seed(seed)\nprint(random.random())", "error"),
        ("seed = int(time.time())\nrandom.seed(seed)\ntorch.manual_seed(seed)", "error"),
        ("torch.cuda.seed()", "error"),
        ("rows = random.Random()\nrows.seed()", "error"),
        ("def init(worker):\n    random.seed()\n\ntorch.utils.data.DataLoader([1], worker_init_fn=init)", "error"),
    ],
)
def test_a_seed_of_which_nothing_is_drawn(lines: str, severity: str, tmp_path: Path) -> None:
    assert severities(tmp_path, lines) == {severity}


@pytest.mark.parametrize(
    ("above", "text", "severity"),
    [
        ("import other", "import random\n", "note"),
        ("import other", "import random\nrandom.random()\n", "error"),
        ("import other", "import albumentations\n", "error"),
        ("import albumentations", "", "error"),
        ("import matplotlib.pyplot as plt\nfrom tqdm import tqdm", "", "note"),
        ("import importlib, sys\nimportlib.import_module(sys.argv[1])", "", "error"),
    ],
)
def test_what_the_program_imports_may_draw(above: str, text: str, severity: str, tmp_path: Path) -> None:
    assert severities(tmp_path, "random.seed()", above, {"other.py": text} if text else {}) == {severity}


def test_what_no_program_runs_may_be_meant_for_others(tmp_path: Path) -> None:
    other = "import random\n\ndef fresh():\n    random.seed()\n"
    assert severities(tmp_path, "", files={"other.py": other}) == {"error"}
    assert severities(tmp_path, "fresh()", "from other import fresh", {"other.py": other}) == {"note"}
