"""The marks of a stream -> the step, the pass, the task and the losses of its records."""

from __future__ import annotations

import bisect
import collections
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.verifier.trace.format import Mark


_LOCKSTEP = ("replaced", "reordered", "unfollowed")


class Timeline:
    """The marks of a stream, to be asked where a record stands."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        counts = collections.Counter(mark.name for mark in marks if mark.kind == "step")
        self._main = max(counts, key=lambda name: counts[name], default="")
        self._steps = [mark.at for mark in marks if mark.kind == "step" and mark.name == self._main]
        self._passes = [(mark.at, mark.number) for mark in marks if mark.kind == "pass"]
        self._expected = _blocks(marks)
        self.tasks = sorted((mark.at, mark.at + mark.number, mark.name) for mark in marks if mark.kind == "task")
        """From where to where a task of asyncio made the records, and which."""
        self.seeded = next((mark.name for mark in marks if mark.kind == "seed"), "")
        """Where the process first seeded torch; empty where that is not known."""
        self.in_lockstep = any(mark.kind == "followed" for mark in marks)
        """Whether the run went on with another's values where its own differed."""
        self.replaced_at = frozenset(mark.at for mark in marks if mark.kind == "replaced")
        """After which records it did."""
        self._own = {mark.at: bool(mark.number) for mark in marks if mark.kind in _LOCKSTEP}
        ends = [(mark.at, mark.name) for mark in marks if mark.kind == "unfollowed"]
        self.alone_after: float = ends[0][0] if ends else math.inf
        self.alone_because = ends[0][1] if ends else ""
        """The record after which the run went on by itself, and why."""
        self._losses = [(mark.at, mark.value) for mark in marks if mark.kind == "loss"]

    @property
    def replaced(self) -> int:
        """After how many records it did."""
        return len(self.replaced_at)

    def step(self, index: int) -> int:
        """The step, from 1, of the optimizer that makes the most of them; 0 where none makes any."""
        return bisect.bisect_right(self._steps, index) + 1 if self._steps else 0

    def epoch(self, index: int) -> int:
        """Which pass over its data, from 1, the loader was in that began one last; 0 before the first."""
        at = bisect.bisect_right(self._passes, (index, math.inf))
        return self._passes[at - 1][1] if at else 0

    def reason(self, index: int) -> str:
        """Why the program says that this record may differ; empty where it does not."""
        at = bisect.bisect_right(self._expected, (index, math.inf, ""))
        begin, end, reason = self._expected[at - 1] if at else (0, 0, "")
        return reason if begin <= index < end else ""

    def task(self, index: int) -> str:
        """The task of asyncio that made a record; empty where none did."""
        at = bisect.bisect_right(self.tasks, (index, math.inf, ""))
        begin, end, name = self.tasks[at - 1] if at else (0, 0, "")
        return name if begin <= index < end else ""

    def follows(self, index: int) -> bool:
        """Whether all that differed before this record had been replaced."""
        return self.in_lockstep and index <= self.alone_after

    def parts(self, index: int) -> bool | None:
        """Whether a run in lockstep differed at this record though it had read nothing astray; None where it did not
        differ.
        """
        return self._own.get(index)

    @property
    def losses(self) -> list[tuple[int, float]]:
        """The step and the value of every loss, in order."""
        return [(self.step(index), value) for index, value in self._losses]

    @property
    def steps(self) -> Sequence[int]:
        """After how many records each step ended."""
        return self._steps


def most_steps(marks: Iterable[Mark]) -> int:
    """The most steps that one optimizer made, by the marks of every stream."""
    return max((mark.number for mark in marks if mark.kind == "step"), default=0)


def _blocks(marks: Sequence[Mark]) -> list[tuple[float, float, str]]:
    """The outermost blocks that may differ, as (from, to, reason); one that does not end lasts to the end."""
    found: list[tuple[float, float, str]] = []
    depth = 0
    for mark in marks:
        if mark.kind != "expected":
            continue
        depth += 1 if mark.number else -1
        if mark.number and depth == 1:
            found.append((mark.at, math.inf, mark.name))
        elif not depth and found:
            found[-1] = (found[-1][0], mark.at, found[-1][2])
    return found
