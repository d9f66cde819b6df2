"""`run --strict`: a draw that the program has not seeded raises, with its line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

HOME = Path(__file__).parents[2]


def run(folder, source, *options):
    (folder / "program.py").write_text(source)
    command = [sys.executable, "-m", "torchdet_lint", "run", *options, "program.py"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join([str(HOME), os.environ["PYTHONPATH"]])}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize(
    ("source", "line", "code"),
    [
        ("import torch\ntorch.ones(2)\ntorch.nn.Linear(2, 2)\n", 3, "TDL101"),
        ("import torch\nx = torch.nn.functional.dropout(torch.ones(9))\n", 2, "TDL101"),
        ("import numpy as np\nnp.random.rand(3)\n", 2, "TDL102"),
        ("import random\nfrom random import shuffle\nshuffle([1, 2])\n", 3, "TDL103"),
        ("import numpy as np, torch\ntorch.manual_seed(0)\nnp.random.seed()\nnp.random.rand(3)\n", 4, "TDL102"),
    ],
)  # fmt: skip
def test_the_first_unseeded_draw_raises_with_its_line(tmp_path, source, line, code):
    done = run(tmp_path, source, "--strict")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"program.py:{line}: {code}" in last
    assert "UnseededDrawError" in last


def test_a_seeded_program_runs_as_it_is(tmp_path):
    source = """
import random, tempfile
import numpy as np
import torch
random.seed(1); np.random.seed(2); torch.manual_seed(3)
tempfile.mkstemp()
loader = torch.utils.data.DataLoader(torch.arange(8), shuffle=True, num_workers=2)
print(random.random(), np.random.rand(), torch.rand(1).item(), [batch.item() for batch in loader])
print(torch.rand(2, generator=torch.Generator()), np.random.default_rng(4).random(), random.Random(5).random())
"""
    plain = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=tmp_path)
    done = run(tmp_path, source, "--strict", "--no-fix=TDL301,TDL302")
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr


def test_strict_and_a_seeding_fix_contradict_each_other(tmp_path):
    done = run(tmp_path, "", "--strict", "--fix=TDL101,TDL304")
    assert done.returncode == 2
    assert done.stderr == "torchdet-lint: error: run: --strict and --fix=TDL101 contradict each other\n"
