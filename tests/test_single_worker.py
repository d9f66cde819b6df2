"""A generator that the workers get a copy of: what is said of several workers, of one, and of one that is kept."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

PROGRAM = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(7)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index + self.rng.normal()

torch.manual_seed(0)
for x in DataLoader(Noisy(), {options}):
    print(x)
"""


@pytest.mark.parametrize(
    ("options", "severity", "said", "fixable"),
    [
        ("num_workers=2", "error", "copied to every worker", True),
        ("num_workers=1", "error", "anew in each epoch", True),
        ("num_workers=1, persistent_workers=True", "note", "no numbers are drawn twice", False),
        ("num_workers=2, persistent_workers=True", "error", "copied to every worker", True),
    ],
)
def test_a_single_worker_shares_its_copy_with_no_other(tmp_path, options, severity, said, fixable):
    (tmp_path / "train.py").write_text(PROGRAM.format(options=options))
    settings = Settings(root=str(tmp_path), jobs=1, cache_dir="", min_severity="note")
    (finding,) = [one for one in run.run([str(tmp_path)], settings).findings if one.code == "TDL301"]
    assert finding.severity == severity
    assert said in finding.message
    assert (finding.fix is not None) is fixable
