"""What gives values and indices: the values alone are the same in every run."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.api import lint_source

MEDIAN = """\
import torch

def outer(x: torch.Tensor):
    noise = torch.rand(3, 4, device="cuda")
{}
    return noise
"""


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ("noise = noise.median(0)[0]", "warning"),
        ("noise = torch.median(noise, 0).values", "warning"),
        ("noise = torch.nanmedian(noise, dim=0).values", "warning"),
        ("middle, _ = noise.median(0)\nnoise = middle", "warning"),
        ("both = noise.median(0)\nnoise = both[0] + both.values", "warning"),
        ("with torch.no_grad():\n    noise = x.median(0).values", "warning"),
        ("noise = (noise * x.detach()).median(0).values", "warning"),
        ("noise = (noise * x).median(0).values", "error"),
        ("noise = x.median(0)[0]", "error"),
        ("noise = noise.median(0)[1]", "error"),
        ("noise = noise.median(0).indices", "error"),
        ("noise = noise.median(0)", "error"),
        ("middle, index = noise.median(0)\nnoise = middle[index]", "error"),
        ("both = noise.median(0)\nnoise = both[0] + both[1]", "error"),
        ("both = noise.median(0)\nshow(both)\nnoise = both.values", "error"),
        ("first, *_ = noise.median(0)", "warning"),
        ("noise = other = noise.median(0)", "error"),
    ],
)
def test_the_values_of_a_median_alone_only_raise(lines: str, severity: str) -> None:
    source = MEDIAN.format(textwrap.indent(lines, "    "))
    found = lint_source(source, select=["TDL401"])
    assert [one.severity for one in found] == [severity]
    assert ("although its values are the same" in found[0].message) is (severity == "warning")


@pytest.mark.parametrize(("taken", "reported"), [(".values", False), (".indices", True)])
def test_values_are_silent_where_nothing_raises(taken: str, reported: bool) -> None:
    source = MEDIAN.format(f"    noise = noise.median(0){taken}")
    assert bool(lint_source(source, select=["TDL4"], torch_version="1.7")) is reported
