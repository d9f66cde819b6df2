"""`--add-noqa`: every finding gets a comment that silences it, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdet_lint.cli.main import main
from torchdet_lint.source.suppress import extended

FAST = "torch.backends.cudnn.benchmark = True"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def added(text: str, *arguments: str) -> str:
    Path("a.py").write_text(f"import torch\n{text}\n")
    assert main(["a.py", "--no-cache", *(arguments or ("--add-noqa",)), "-q"]) == 0
    assert main(["a.py", "--no-cache", "-q"]) == 0
    return Path("a.py").read_text().removeprefix("import torch\n").removesuffix("\n")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (FAST, f"{FAST}  # noqa: TDL201"),
        (f"{FAST}  # type: ignore", f"{FAST}  # type: ignore  # noqa: TDL201"),
        (f"{FAST}  # noqa: E501 well-known", f"{FAST}  # noqa: E501, TDL201 well-known"),
        (f"{FAST}  # noqa: todo", f"{FAST}  # noqa: todo  # noqa: TDL201"),
        (f"{FAST[:-4]}\\\n  True  ", f"{FAST[:-4]}\\\n  True  # noqa: TDL201"),
        (f"x = '''\n# noqa: X1'''; {FAST}", f"x = '''\n# noqa: X1'''; {FAST}  # noqa: TDL201"),
        ("x = 1", "x = 1"),
    ],
)
def test_each_finding_gets_a_comment(text: str, after: str) -> None:
    assert added(text) == after


def test_the_reason_stands_behind_the_codes() -> None:
    text = (
        "from torch.utils.data import DataLoader\nfrom data import x\nlist(DataLoader(x, shuffle=True, num_workers=2))"
    )
    (line,) = (line for line in added(text, "--add-noqa=until we retrain").split("\n") if "noqa" in line)
    assert line.endswith("  # noqa: TDL101, TDL301, TDL302 until we retrain")


def test_the_path_is_no_reason(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(f"import torch\n{FAST}\n")
    assert main(["--no-cache", "--add-noqa", "a.py"]) == 0
    assert capsys.readouterr().out == "Suppressed 1 finding in 1 file.\n"
    assert Path("a.py").read_text().endswith("# noqa: TDL201\n")


def test_with_diff_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(f"import torch\n{FAST}\n")
    assert main(["--no-cache", "--add-noqa", "--diff", "a.py"]) == 0
    assert f"+{FAST}  # noqa: TDL201\n" in capsys.readouterr().out
    assert Path("a.py").read_text() == f"import torch\n{FAST}\n"


def test_cells_of_a_notebook() -> None:
    cells = [{"cell_type": "code", "source": ["import torch\n", f"{FAST}"], "metadata": {}, "outputs": []}]
    Path("n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    assert main(["n.ipynb", "--no-cache", "--add-noqa", "-q"]) == 0
    assert json.loads(Path("n.ipynb").read_text())["cells"][0]["source"][1] == f"{FAST}  # noqa: TDL201"
    assert main(["n.ipynb", "--no-cache", "-q"]) == 0


def test_what_no_comment_can_suppress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import torch\nx = 1  # noqa: TDL201\n")
    Path("b.py").write_text("x = (\n")
    assert main([".", "--no-cache", "--add-noqa"]) == 0
    out = capsys.readouterr().out
    assert "Suppressed 0 findings in 0 files." in out
    assert "a.py:2: TDL002 stays: no comment there can suppress it." in out
    assert "b.py:1: TDL001 stays: no comment there can suppress it." in out


@pytest.mark.parametrize("reason", ["a # b", "E501 is why", "two\nlines", "cudnn-benchmark"])
def test_a_reason_that_would_be_read_as_something_else(reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(f"import torch\n{FAST}\n")
    assert main(["--no-cache", f"--add-noqa={reason}", "a.py"]) == 2
    assert "--add-noqa: the reason must be one line" in capsys.readouterr().err
    assert Path("a.py").read_text() == f"import torch\n{FAST}\n"


def test_codes_are_added_once() -> None:
    assert extended("# noqa: TDL201 x", ["TDL201", "TDL301"], {}) == "# noqa: TDL201, TDL301 x"
