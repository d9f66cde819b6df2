"""What gives values and indices: the values alone are the same in every run."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.api import lint, lint_source

if TYPE_CHECKING:
    from pathlib import Path

    from torchdet_lint.finding import Finding

MEDIAN = """\
import torch

def outer(x: torch.Tensor):
    noise = torch.rand(3, 4, device="cuda")
{}
    return noise

def loss(rows: torch.Tensor):
    return outer(rows).sum()
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


def linted(folder: Path) -> list[Finding]:
    return lint(folder, isolated=True, cache_dir="", select=["TDL401"])


@pytest.mark.parametrize(
    ("called", "severity"),
    [
        ("", "warning"),
        ("# spread(rows)\n", "warning"),
        ("def loss(rows):\n    return spread(rows)\n", "error"),
        ("kinds = {'spread': spread}\n", "error"),
    ],
)
def test_it_is_the_gradient_of_the_values_that_differs_and_none_flows_where_nobody_calls(
    tmp_path: Path, called: str, severity: str
) -> None:
    source = "import torch\n\ndef spread(x: torch.Tensor):\n    return x - x.median(0)[0]\n\n"
    (tmp_path / "metrics.py").write_text(source + called)
    found = linted(tmp_path)
    assert [(one.severity, one.message.startswith("The gradient of `torch.Tensor.median`")) for one in found] == [
        (severity, True)
    ]


def test_another_file_or_the_package_may_call_it(tmp_path: Path) -> None:
    source = "import torch\n\ndef spread(x: torch.Tensor):\n    return x - x.median(0)[0]\n"
    for name, text in (("metrics.py", source), ("train.py", "from metrics import spread\nspread(1)\n")):
        (tmp_path / name).write_text(text)
    assert [one.severity for one in linted(tmp_path)] == ["error"]
    (tmp_path / "train.py").unlink()
    (tmp_path / "__init__.py").write_text("from .metrics import *\n")
    assert [one.severity for one in linted(tmp_path)] == ["error"]


@pytest.mark.parametrize(("taken", "reported"), [(".values", False), (".indices", True)])
def test_values_are_silent_where_nothing_raises(taken: str, reported: bool) -> None:
    source = MEDIAN.format(f"    noise = noise.median(0){taken}")
    assert bool(lint_source(source, select=["TDL4"], torch_version="1.7")) is reported
