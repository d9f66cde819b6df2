"""A seed that is drawn, and the function of another file that is called with it."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

HELPER = """
import random
import numpy as np
import torch

def setup_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

def rows(seed):
    return torch.rand(3, generator=torch.Generator().manual_seed(seed))
"""
MAIN = """
import random
import numpy as np
import torch
from helper import rows, setup_seed

def main():
    for prompt in ("a", "b"):
        {call}
        print(prompt, torch.rand(3))

if __name__ == "__main__":
    {first}
    main()
"""


@pytest.mark.parametrize(
    ("first", "call", "told"),
    [
        ("pass", "setup_seed(random.randint(0, 9))", True),
        ("pass", "setup_seed(np.random.randint(9))", True),
        ("setup_seed(3)", "setup_seed(random.randint(0, 9))", False),
        ("random.seed(3)", "setup_seed(random.randint(0, 9))", False),
        ("setup_seed(3)", "rows(random.randint(0, 9))", False),
    ],
)
def test_seed_that_is_drawn_from_what_the_called_function_seeds(project, first, call, told):
    folder = project(helper_DOT_py=HELPER, main_DOT_py=MAIN.format(first=first, call=call))
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    assert ("TDL105" in {one.code for one in found}) == told
