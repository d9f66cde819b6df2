"""The recorder on a real GPU: nothing that runs without it ends with it, and what it names is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA")

START = "import torch, torch.nn as nn, torch.nn.functional as F\ntorch.manual_seed(0)\n"

EQUAL = {
    "graph": """
given = torch.randn(8, 8, device="cuda")
weight = torch.randn(8, 8, device="cuda")
(given @ weight).relu()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = (given @ weight).relu()
for step in range(3):
    given.copy_(torch.randn(8, 8))
    graph.replay()
    print(out.sum().item())
""",
    "graphed_callables": """
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
sample = torch.randn(4, 8, device="cuda")
model = torch.cuda.make_graphed_callables(model, (sample,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
""",
    "ctc": """
x = torch.randn(20, 2, 5, device="cuda", requires_grad=True)
targets = torch.randint(1, 5, (2, 6), device="cuda")
loss = F.ctc_loss(x.log_softmax(2), targets, torch.tensor([20, 18]), torch.tensor([6, 5]))
print(loss.item())
""",
    "mlp": """
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 16, device="cuda")).square().mean().backward()
    optimizer.step()
print(sum(p.sum().item() for p in model.parameters()))
""",
}


def verify(folder, source, *options):
    (folder / "program.py").write_text(START + source)
    command = [sys.executable, "-m", "torchdet_lint", "verify", "--output-format", "json", *options, "program.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", EQUAL)
def test_a_program_that_repeats_is_equal(tmp_path, name):
    report = verify(tmp_path, EQUAL[name])
    assert report["verdict"] == "identical", report


@pytest.mark.parametrize(
    ("source", "line", "rule"),
    [
        (
            """
index = torch.randint(0, 100, (2_000_000,), device="cuda")
values = torch.randn(2_000_000, device="cuda")
print(torch.zeros(100, device="cuda").index_add_(0, index, values).sum().item())
""",
            6,
            "TDL402",
        ),
        (
            """
image = torch.randn(8, 16, 64, 64, device="cuda", requires_grad=True)
F.interpolate(image, size=(301, 299), mode="bicubic").square().sum().backward()
print(image.grad.sum().item())
""",
            5,
            "TDL403",
        ),
    ],
)
def test_a_cause_on_the_gpu_is_named(tmp_path, source, line, rule):
    report = verify(tmp_path, source)
    assert report["verdict"] == "diverged", report
    cause = report["causes"][0]
    assert (cause["rule"], cause["forward_line"] or cause["line"]) == (rule, line)
