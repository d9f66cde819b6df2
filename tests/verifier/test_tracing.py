"""What TorchScript traces while our modes listen is the graph that it traces without."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

from torchdet_lint.verifier.ops.dispatch import OpMode  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.remedies.memory import fill_mode  # noqa: E402
from torchdet_lint.verifier.trace import Trace  # noqa: E402

WEIGHT = torch.ones(2, 1, 3, 3)
NET = torch.nn.Sequential(
    torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 3)
).eval()
RECURRENT = torch.nn.LSTM(4, 5).requires_grad_(False)
PROGRAMS = {
    "convolution": lambda x: torch.conv2d(x, WEIGHT),
    "transposed": lambda x: torch.conv_transpose2d(x, WEIGHT.transpose(0, 1)),
    "net": NET,
    "recurrent": lambda x: RECURRENT(x[0])[0],
    "in place": lambda x: x.clone().add_(1).view(2, 8),
    "number": lambda x: x[0] * x.shape[-1] + x.sum().item(),
    "memory": lambda x: torch.empty_like(x).copy_(x) + torch.zeros(x.shape),
}


def traced(program):
    made = torch.jit.trace(program, torch.ones(1, 1, 4, 4))
    graph = str(made.inlined_graph if isinstance(made, torch.jit.ScriptModule) else made.graph)
    # The comments name lines, of which a mode has its own, and each trace counts its names.
    return [
        line.partition(" #")[0] for line in re.sub(r"___torch_mangle_\d+\.|(?<=[a-z])\.\d+", "", graph).splitlines()
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graph_is_the_same(tmp_path, name):
    expected = traced(PROGRAMS[name])
    with Recorder(tmp_path / "a.tdtrace"):
        assert traced(PROGRAMS[name]) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_under_other_modes_too(name):
    expected = traced(PROGRAMS[name])
    with OpMode(lambda function, args, kwargs: function(*args, **kwargs)), fill_mode(0xFF):
        assert traced(PROGRAMS[name]) == expected


def test_what_is_traced_is_recorded_and_works_for_other_inputs(tmp_path):
    images = torch.rand(2, 1, 4, 4)
    with Recorder(tmp_path / "a.tdtrace"):
        made = torch.jit.trace(NET, torch.ones(1, 1, 4, 4))
        assert torch.equal(made(images), NET(images))
    opened = Trace(tmp_path / "a.tdtrace")
    sites = opened.sites(opened.main)
    assert sum(sites[one.site].op == "aten.convolution" for one in opened.records(opened.main)) >= 3
    assert not [note for note in opened.notes if "missed" in note]
