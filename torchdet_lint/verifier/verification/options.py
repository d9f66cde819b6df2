"""How the runs of a verification are made and compared: plain data."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from torchdet_lint.finding import why_no_report
from torchdet_lint.verifier.launch.interventions import Interventions
from torchdet_lint.verifier.verification.outcome import VerifyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.verifier.probe.validity import Valid
    from torchdet_lint.verifier.verification.outcome import Mode


class Progress(Protocol):
    """Called with the run's name, the bytes of trace so far, and those of the run before (0: not known)."""

    def __call__(self, name: str, done: int, expected: int, /) -> None:
        """Show it."""


@dataclass(frozen=True)
class VerifyOptions:
    """What `verify_program` is asked for; it says what each option does."""

    runs: int = 2
    mode: Mode = "pair"
    interventions: Interventions = field(default_factory=Interventions)
    timeout: float | None = None
    progress: Progress | None = None
    keep: Path | None = None
    lint: bool = True
    environment: Mapping[str, str] | None = None
    steps: int = 0
    in_place: bool = False
    workdir: Path | None = None
    valid: Valid | None = None
    values: bool = False
    replay: int = 0
    prove: bool = False
    times: bool = False
    early_end: bool = False
    eager: bool = False
    diagnose: bool = False

    def __post_init__(self) -> None:
        """Refuse what shows nothing."""
        if self.runs < 2:
            raise VerifyError("--runs must be at least 2: one run alone shows nothing")


def new_file(text: str) -> Path:
    """A file that can be written, as far as can be told before the runs. Raises `argparse.ArgumentTypeError`."""
    path = Path(text)
    if path.is_dir():
        why = "is a folder"
    elif not path.parent.is_dir():
        why = "no such folder"
    else:
        writable = os.access(path if path.exists() else path.parent, os.W_OK)
        why = why_no_report(text) or ("" if writable else "cannot be written")
    if why:
        raise argparse.ArgumentTypeError(f"{text}: {why}")
    return path
