"""`torchdet-lint completion SHELL` -> the script that completes the commands, options and codes in that shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.cli.console import CLEAN, emit
from torchdet_lint.cli.options import Parser

if TYPE_CHECKING:
    import argparse

SHELLS = ("bash", "zsh", "fish")
FOLDER = Path(__file__).parent / "completions"


def completion_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = Parser(
        prog="torchdet-lint completion",
        description="Print a script that completes commands, options and codes. Write it to a file that the shell "
        "reads: "
        "~/.local/share/bash-completion/completions/torchdet-lint, _torchdet-lint in a folder of zsh's $fpath, or "
        "~/.config/fish/completions/torchdet-lint.fish.",
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that completes")
    return parser


def completion(given: argparse.Namespace) -> int:
    """Print the script; the exit status."""
    emit([(FOLDER / f"torchdet-lint.{given.shell}").read_text(encoding="utf-8")])
    return CLEAN
