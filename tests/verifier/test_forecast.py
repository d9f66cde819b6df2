"""The forecast: one run on the CPU, and the lines of it that would vary on CUDA."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
lstm = nn.LSTM(8, 8)
x = torch.randn(5, 3, 8, requires_grad=True)
y, _ = lstm(x)                                                                              # TDL404
q = y.transpose(0, 1)[:, None]
a = F.scaled_dot_product_attention(q, q, q)                                                 # TDL405
image = torch.randn(1, 2, 8, 8, requires_grad=True)
up = F.interpolate(image, scale_factor=2, mode="bilinear")                                  # TDL403
pool = F.adaptive_avg_pool2d(up, 3)                                                         # TDL403
one = F.adaptive_avg_pool2d(up, 1)
g = torch.gather(y.reshape(-1, 8), 0, torch.zeros(4, 8, dtype=torch.long))                  # TDL403
index = torch.tensor([0, 0, 1])
s = torch.zeros(3).index_add(0, index, torch.ones(3))                                       # TDL402
n = torch.zeros(3, dtype=torch.long).index_add(0, index, torch.ones(3, dtype=torch.long))
row = torch.cumsum(torch.rand(5), 0)                                                        # TDL402
rows = torch.cumsum(torch.rand(5, 4), 0)
weighted = torch.bincount(index, torch.ones(3))                                             # TDL401
counted = torch.bincount(index)
with torch.no_grad():
    F.interpolate(image, scale_factor=2, mode="bilinear")
    F.scaled_dot_product_attention(q, q, q)
(a.sum() + pool.sum() + one.sum() + g.sum()).backward()
"""


def forecast(folder, source, *options):
    (folder / "program.py").write_text(source)
    command = [sys.executable, "-m", "torchdet_lint", "forecast", *options, "program.py"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ["PYTHONPATH"]])}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=120)


def test_the_lines_that_would_vary_are_those_that_are_marked(tmp_path):
    done = forecast(tmp_path, PROGRAM, "--output-format", "json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    found = {(place["line"], place["rule"]) for place in report["places"] if not place["aggregate"]}
    marked = {
        (number, line.rpartition("# ")[2]) for number, line in enumerate(PROGRAM.splitlines(), 1) if "# TDL" in line
    }
    assert found == marked
    assert {place["file"] for place in report["places"]} == {"program.py"}
    assert report["schema"] == "torchdet-lint/forecast/1"


def test_an_older_release_is_judged_by_its_own_rows(tmp_path):
    source = "import torch\ntorch.manual_seed(0)\ntorch.kthvalue(torch.rand(5), 2)\n"
    old = forecast(tmp_path, source, "--torch-version", "2.9")
    assert old.returncode == 1
    assert "program.py:3: TDL401 nondeterministic-op: torch.kthvalue, once" in old.stdout
    new = forecast(tmp_path, source)
    assert new.returncode == 0
    assert new.stdout.startswith("0 places would differ on cuda")


@pytest.mark.parametrize(
    ("source", "options", "status", "says"),
    [
        ("raise SystemExit(4)", (), 3, "the program ended with exit status 4"),
        ("print(1)", ("--torch-version", "new"), 2, "'new' is not a torch release"),
        ("print(1)", (), 3, "did not import torch"),
    ],
)
def test_what_cannot_be_forecast_is_told_in_one_line(tmp_path, source, options, status, says):
    done = forecast(tmp_path, source, *options)
    assert done.returncode == status
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_the_run_sees_no_gpu(tmp_path):
    source = "import os\nassert [os.environ[n] for n in ('CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES')] == ['', '']\n"
    done = forecast(tmp_path, "import torch\ntorch.ones(1)\n" + source)
    assert done.returncode == 0, done.stderr
