"""Records that differ, one after the other -> how many there are in each stretch of a run, in bounded memory."""

from __future__ import annotations

import msgspec

from torchdet_lint.verifier.trace import Site

CELLS = 1024


class Lane(msgspec.Struct, frozen=True):
    """One thread or process of run A: `cells[i]` of the records from `i * width` on differ. `parted` are stretches in
    which run B goes another way, as (from, to); `lasting` says that the difference does not heal; `steps` are the
    records after which some of the optimizer's steps ended, as (record, step).
    """

    name: str
    records: int
    width: int
    cells: tuple[int, ...]
    lasting: bool
    parted: tuple[tuple[int, int], ...] = ()
    steps: tuple[tuple[int, int], ...] = ()


class Heat(msgspec.Struct, frozen=True):
    """One op at one line: how many of its executions differ, and whether that is a cause."""

    site: Site
    kind: str
    differing: int
    compared: int
    index: int
    step: int
    stream: str


class Picture(msgspec.Struct, frozen=True):
    """All that a page shows of a comparison besides the report: `environments` are those of both runs, complete."""

    lanes: tuple[Lane, ...] = ()
    heat: tuple[Heat, ...] = ()
    environments: tuple[dict[str, str], dict[str, str]] = ({}, {})


class Histogram:
    """Counts by position, in at most `CELLS` cells: their width doubles as the positions grow."""

    def __init__(self) -> None:
        self.width = 1
        self.cells: list[int] = []

    def add(self, position: int) -> None:
        """Count one at `position`, from 0."""
        while position // self.width >= CELLS:
            self.cells = [sum(self.cells[at : at + 2]) for at in range(0, len(self.cells), 2)]
            self.width *= 2
        cell = position // self.width
        if cell >= len(self.cells):
            self.cells.extend([0] * (cell + 1 - len(self.cells)))
        self.cells[cell] += 1
