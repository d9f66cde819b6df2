"""The tallies of a measurement under way -> a file beside its own, from which it goes on after whatever ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.catalogue.measured import Machine
from torchdet_lint.verifier.probe.tally import Tally

if TYPE_CHECKING:
    from pathlib import Path


class Journal(msgspec.Struct, kw_only=True):
    """The tallies by cell; they count only on the machine and for the release of the linter that they come from."""

    machine: Machine
    version: str
    seconds: float = 0.0
    tallies: dict[str, Tally] = {}


def beside(output: Path) -> Path:
    """Where the journal of the measurement `output` is."""
    return output.with_name(f"{output.name}.part")


def load(path: Path) -> Journal | None:
    """The journal at `path`, or None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Journal)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def write(path: Path, data: bytes) -> None:
    """Put `data` at `path`, whole or not at all."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(data)
    fresh.replace(path)


def save(path: Path, journal: Journal) -> None:
    """Write the journal, whole or not at all."""
    write(path, msgspec.json.encode(journal))
