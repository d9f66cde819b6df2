"""`--watch`, as somebody at a terminal sees it: it lints again when a file of the project is saved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torchdet_lint.cli import watch
from torchdet_lint.cli.main import main

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("src").mkdir()
    Path("src/a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")


def test_a_change_is_linted(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    command = [sys.executable, "-m", "torchdet_lint", "--watch", "src", "--output-format", "concise"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None

        def until(text: str) -> str:
            assert process.stdout is not None
            told = ""
            while text not in told:
                line = process.stdout.readline()
                assert line, told
                told += line
            return told

        try:
            assert "src/a.py:2:1: TDL201 " in until("Ctrl-C")
            Path("src/a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = False\n")
            assert "No nondeterminism found in 1 file." in until("Ctrl-C")
            Path("pyproject.toml").write_text("[tool.torchdet-lint]\nselekt = []\n")
            assert "unknown key 'selekt'" in until("Ctrl-C")
            Path("pyproject.toml").write_text("")
            assert "No nondeterminism found in 1 file." in until("Ctrl-C")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/a.py", True),
        ("src/a.ipynb", True),
        ("pyproject.toml", True),
        ("conf/train.yaml", True),
        ("requirements-dev.txt", True),
        ("notes.txt", False),
        (".torchdet_cache/files.py", False),
        (".venv/lib/a.py", False),
    ],
)
def test_what_matters(path: str, wanted: bool, tmp_path: Path) -> None:
    assert watch.matters(str(tmp_path / path)) == wanted


@pytest.mark.parametrize("more", [["--fix"], ["--diff"], ["--add-noqa"], ["--output-file", "x"], ["-"]])
def test_it_writes_nothing(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--watch", *more]) == 2
    assert capsys.readouterr().err.startswith("torchdet-lint: error: --watch goes ")


def test_without_watchfiles_it_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert main(["--watch"]) == 2
    assert capsys.readouterr().err == (
        "torchdet-lint: error: `--watch` needs watchfiles: install it with `pip install 'torchdet-lint[watch]'`\n"
    )
