"""The completion scripts, asked by the shells themselves, where these are installed."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.cli.completion import FOLDER, SHELLS
from torchdet_lint.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

# The words after `torchdet-lint`, and how the last of them goes on.
ASKED = {
    "veri": "verify",
    "train": "train.py",
    "--output-format sar": "sarif",
    "--select TDL304": "TDL304",
    "src --unsa": "--unsafe-fixes",
    "check train": "train.py",
    "rule TDL304": "TDL304",
    "config basel": "baseline",
    "verify --most": "--most-runs",
    "verify trai": "train.py",
    "completion fi": "fish",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def installed(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


def test_bash(folder: Path) -> None:
    asked = "\n".join(f"ask {words}" for words in ASKED)
    script = f"""
    source {FOLDER / "torchdet-lint.bash"}
    ask() {{
        COMP_WORDS=(torchdet-lint "$@"); COMP_CWORD=$#; COMPREPLY=()
        _shtab_torchdet_lint torchdet-lint "${{@: -1}}" x 2>/dev/null
        [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -o default "${{@: -1}}"))
        echo "$*: ${{COMPREPLY[@]}}"
    }}
    complete -p torchdet-lint | grep -q -- "-o default" || echo "no files"
    {asked}
    """
    done = subprocess.run([installed("bash"), "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{words}: {wanted}" for words, wanted in ASKED.items()]


def test_fish(folder: Path) -> None:
    asked = "\n".join(f"complete -C {shlex.quote(f'torchdet-lint {words}')}; echo ==" for words in ASKED)
    script = f"source {FOLDER / 'torchdet-lint.fish'}\n{asked}"
    command = [installed("fish"), "--no-config", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    offered = [[line.partition("\t")[0] for line in part.split("\n") if line] for part in done.stdout.split("==\n")]
    assert offered[:-1] == [[wanted] for wanted in ASKED.values()]


def test_zsh(folder: Path) -> None:
    functions = folder / "functions"
    functions.mkdir()
    shutil.copy(FOLDER / "torchdet-lint.zsh", functions / "_torchdet-lint")
    shell = installed("zsh")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", HISTFILE="/dev/null")
        os.execv(shell, [shell, "-f", "-i"])

    def told(line: str, mark: str) -> str:
        os.write(terminal, line.encode())
        out, end = b"", time.monotonic() + 30
        while mark.encode() not in out and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                out += os.read(terminal, 4096)
        return out.decode(errors="replace")

    try:
        begin = f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep"
        told(f"{begin}; torchdet-lint() {{ print -r -- GOT[\"$*\"] }}; print RE''ADY\n", "READY")
        for words, wanted in ASKED.items():
            before = words.rpartition(" ")[0]
            whole = f"GOT[{before}{' ' * bool(before)}{wanted}]"
            assert whole in told(f"torchdet-lint {words}\t\n", "GOT["), words
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == (FOLDER / f"torchdet-lint.{shell}").read_text()


def test_another_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "ksh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
