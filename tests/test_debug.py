"""What the analysis says of a line, for those who wonder why nothing was reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from torchdet_lint import debug

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
import os, torch
from torch.utils.data import DataLoader

def counted(index, n):
    return torch.zeros(n, dtype=torch.long, device="cuda").index_add_(0, index, torch.ones_like(index))

names = os.listdir(".")
loader = DataLoader(names, num_workers=2, worker_init_fn=counted)
first = names[0]
torch.backends.cudnn.benchmark = True
"""


def told(path: Path, place: str, capsys: pytest.CaptureFixture[str]) -> str:
    path.write_text(PROGRAM)
    assert debug.main(["--isolated", f"{path}:{place}"]) == 0
    return capsys.readouterr().out


def test_values_and_why_an_op_is_not_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(tmp_path / "a.py", "5", capsys)
    assert "tensor, integer, on cuda" in out
    assert "TDL402 is silent about torch.Tensor.index_add_ (forward): the tensors hold integers" in out


def test_where_an_order_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(tmp_path / "a.py", "7", capsys)
    assert "picked in line 9" in out
    assert "TDL304 warning" in out


def test_which_condition_of_a_table_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(tmp_path / "a.py", "8", capsys)
    assert "torch.utils.data.DataLoader" in out
    assert "TDL308 is silent about DataLoader: it asks that `in_order`" in out


def test_a_finding_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "TDL201 error" in told(tmp_path / "a.py", "10", capsys)


def test_a_line_without_expressions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no expression begins on this line" in told(tmp_path / "a.py", "3", capsys)


def test_a_cell_of_a_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["import torch", "y = 1\ntorch.backends.cudnn.benchmark = True"]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert debug.main(["--isolated", f"{path}:2:2"]) == 0
    assert "TDL201 error" in capsys.readouterr().out


@pytest.mark.parametrize("text", [None, "def f(:\n"])
def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None) -> None:
    path = tmp_path / "a.py"
    if text is not None:
        path.write_text(text)
    assert debug.main([f"{path}:1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_order_is_followed_into_other_files_as_a_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text("def first(names):\n    return names[0]\n")
    main = tmp_path / "main.py"
    main.write_text(
        "import os\nimport torch\nfrom own import first\n\nnames = os.listdir()\ntorch.load(first(names))\n"
    )
    assert debug.main(["--isolated", f"{main}:5"]) == 0
    assert "its order is  picked in line 6" in capsys.readouterr().out
