"""An import that several folders of a project answer: what it reaches, and what all of the modules of that name do."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

TRAIN = """
import numpy as np
import torch
from custom import Custom

if __name__ == "__main__":
    torch.manual_seed(0)
    model = Custom().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 3, 8, 8).cuda()).sum().backward()
    optimizer.step()
"""
NET = """
import numpy as np
from torch import nn

class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        START
        self.layer = LAYER

    def forward(self, x):
        return self.layer(x)
"""
LINEAR = NET.replace("LAYER", "nn.Linear(3, 3)")
PLAIN = LINEAR.replace("START", "self.size = 3")
CONVOLUTION = NET.replace("LAYER", "nn.Conv2d(3, 3, 1)").replace("START", "self.size = 3")
DRAWS = LINEAR.replace("START", "self.size = np.random.rand()")
SEEDS = LINEAR.replace("START", "np.random.seed(0)")
NOISE = TRAIN.replace("optimizer.step()", "print(np.random.rand())")


def findings(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="", min_severity="warning")).findings
    return {one.code: one.severity for one in found if one.filename.endswith("train.py")}


@pytest.mark.parametrize(
    ("modules", "severity"),
    [
        ({"a/custom.py": CONVOLUTION, "b/custom.py": CONVOLUTION}, "error"),
        ({"a/custom.py": PLAIN, "b/custom.py": CONVOLUTION}, "error"),
        ({"a/custom.py": CONVOLUTION}, "error"),
        ({"python/custom/__init__.py": "from .net import Custom\n", "python/custom/net.py": CONVOLUTION}, "error"),
        ({"a/custom.py": PLAIN, "b/custom.py": PLAIN}, "warning"),
        ({}, "warning"),
        # What is not defined there, what a package holds, and what lies in too many folders.
        ({"a/custom.py": CONVOLUTION.replace("Custom", "Other")}, "warning"),
        ({"a/__init__.py": "", "a/custom.py": CONVOLUTION}, "warning"),
        ({f"{name}/custom.py": CONVOLUTION for name in "abcdef"}, "warning"),
    ],
)
def test_the_ops_of_all_modules_that_an_import_may_mean_are_in_reach(modules, severity, tmp_path):
    assert findings(tmp_path, {"tools/train.py": TRAIN, **modules})["TDL203"] == severity


@pytest.mark.parametrize(
    ("train", "modules", "drawn"),
    [
        (TRAIN, {"a/custom.py": DRAWS, "b/custom.py": DRAWS}, True),
        (TRAIN, {"a/custom.py": DRAWS, "b/custom.py": PLAIN}, False),
        (NOISE, {"a/custom.py": SEEDS, "b/custom.py": SEEDS}, False),
        (NOISE, {"a/custom.py": SEEDS, "b/custom.py": PLAIN}, True),
    ],
)
def test_a_draw_or_a_seed_counts_where_all_modules_that_an_import_may_mean_have_it(train, modules, drawn, tmp_path):
    assert ("TDL102" in findings(tmp_path, {"tools/train.py": train, **modules})) is drawn
