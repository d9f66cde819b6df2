"""A plan -> its tallies: fresh processes one after the other, each of which takes its part of every cell's runs."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from typing import TYPE_CHECKING

from torchdet_lint.verifier.probe.batches import Task
from torchdet_lint.verifier.probe.child import Child
from torchdet_lint.verifier.probe.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.verifier.probe.plan import Cell

_LEAST_SECONDS = 0.02
_COMPILED_PROCESSES = 2
_COMPILED_PART = 0.2
_COMPILED_PATIENCE = 10
_SPINNING = 3


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much may be spent: `runs` a cell, `budget` seconds altogether (a first pass over all cells is always made),
    `timeout` seconds for one answer, `memory` bytes, at least `processes` fresh processes, `threads` (0: torch's)."""

    runs: int
    budget: float
    timeout: float = 30.0
    memory: int = 4 * 2**30
    processes: int = 6
    threads: int = 0


@dataclasses.dataclass
class Sitting:
    """The cells by key, their tallies, and what they are measured on.

    `progress` is told the part that is done and the call under way; `saved` that something is new, and whether to keep
    it at once. `first` is a process that has started already, whose threads sleep: it takes the first round.
    """

    device: str
    cells: dict[str, Cell]
    tallies: dict[str, Tally]
    limits: Limits
    progress: Callable[[float, str], None] = lambda _part, _what: None
    saved: Callable[[bool], None] = lambda _now: None
    first: Child | None = None

    def measure(self) -> None:
        """Run until every cell has its runs or the time is over. Raises `ChildError` where no process starts.

        What has to be compiled comes last, in a part of the time and in fewer processes.
        """
        compiled = [cell for cell in self.cells.values() if cell.compiles]
        plain = [cell for cell in self.cells.values() if not cell.compiles]
        part = _COMPILED_PART if compiled and plain else float(bool(compiled))
        begin = time.monotonic()
        self._phase(plain, self.limits.processes, begin, begin + self.limits.budget * (1 - part))
        self._phase(compiled, _COMPILED_PROCESSES, begin, begin + self.limits.budget)
        self.progress(1.0, "")

    def _phase(self, cells: Sequence[Cell], processes: int, begin: float, end: float) -> None:
        """Share the time until `end` among `processes` rounds; what they leave over goes to further rounds."""
        for number in itertools.count():
            wanted = self._open(cells, number)
            now = time.monotonic()
            if not wanted or (number and now >= end):
                return
            rounds = max(1, processes - number)
            self._round(wanted, number, rounds, begin, now + max(0.0, end - now) / rounds)

    def _open(self, cells: Sequence[Cell], number: int) -> list[Cell]:
        """What is still to do: in the first round what bears most comes first, later what is cheap, so that the time
        which it leaves over goes to the rest.
        """
        wanted = [cell for cell in cells if not self.tallies.setdefault(cell.key, Tally()).finished(self.limits.runs)]
        if number:
            return sorted(wanted, key=lambda cell: self.tallies[cell.key].median)
        return sorted(wanted, key=lambda cell: -cell.weight)

    def _round(self, cells: Sequence[Cell], number: int, rounds: int, begin: float, end: float) -> None:
        """One fresh process, which takes a part of the runs of every cell; another one wherever it is lost."""
        child, self.first = self.first or self._child(number), None
        try:
            weight = sum(cell.weight for cell in cells)
            for cell in cells:
                left = end - time.monotonic()
                if number and left <= 0:
                    break
                if not child.alive:
                    child = self._child(number)
                self._ask(child, cell, number, rounds, max(_LEAST_SECONDS, left * cell.weight / weight))
                weight -= cell.weight
                self.progress(min(1.0, (time.monotonic() - begin) / self.limits.budget), cell.program.call)
                self.saved(False)
        finally:
            child.close()
            self.saved(True)

    def _child(self, number: int) -> Child:
        """A fresh process. Threads that spin while they wait take five times the processor time on a machine that does
        other work too, so that they do in a part of the processes only.
        """
        spins = number % _SPINNING == 1
        return Child(self.device, threads=self.limits.threads, memory=self.limits.memory, spins=spins)

    def _ask(self, child: Child, cell: Cell, number: int, rounds: int, seconds: float) -> None:
        tally = self.tallies[cell.key]
        patience = self.limits.timeout * (_COMPILED_PATIENCE if cell.compiles else 1)
        task = Task(
            program=cell.program,
            device=self.device,
            mode=cell.mode,
            runs=max(2, math.ceil((self.limits.runs - tally.runs) / rounds)),
            seconds=seconds,
            salt=len(tally.leading),
        )
        tally.add(child.ask(task, patience + seconds))
