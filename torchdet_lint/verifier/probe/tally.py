"""The batches of one cell, over all processes and sittings -> what they show together."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.catalogue.measured import Outcome, Result
from torchdet_lint.verifier.probe import statistics
from torchdet_lint.verifier.probe.batches import Batch, Difference

if TYPE_CHECKING:
    from torchdet_lint.verifier.probe.plan import Cell

OTHERS = "other"
_MOST_DIGESTS = 200
_FATAL = ("crashes", "hangs", "out of memory")
_ENOUGH_FATAL = 2


class Tally(msgspec.Struct, kw_only=True):
    """What was seen of one cell: digests by provocation, the most frequent one of each process, how processes ended."""

    digests: dict[str, dict[str, int]] = {}
    leading: list[str] = []
    endings: dict[str, int] = {}
    inputs: list[str] = []
    seconds: list[float] = []
    difference: Difference | None = None
    note: str = ""
    warned: bool = False

    def add(self, batch: Batch) -> None:
        """Count one batch, the work of one process."""
        self.endings[batch.ending] = self.endings.get(batch.ending, 0) + 1
        self.warned |= batch.warned
        self.note = batch.note or self.note
        if batch.ending != "ran":
            return
        mine: collections.Counter[str] = collections.Counter()
        known = {digest for counts in self.digests.values() for digest in counts}
        for provocation, digest, count in batch.digests:
            mine[digest] += count
            kept = digest if digest in known or len(known) < _MOST_DIGESTS else OTHERS
            known.add(kept)
            counts = self.digests.setdefault(provocation, {})
            counts[kept] = counts.get(kept, 0) + count
        self.leading.append(_leading(mine)[0])
        if batch.inputs not in self.inputs:
            self.inputs.append(batch.inputs)
        self.seconds.append(batch.seconds)
        if batch.difference is not None and (
            self.difference is None or (batch.difference.ulp or 0) >= (self.difference.ulp or 0)
        ):
            self.difference = batch.difference

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return sum(count for counts in self.digests.values() for count in counts.values())

    @property
    def median(self) -> float:
        """The median of the seconds that a run took; 0.0 where none ran."""
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else 0.0

    @property
    def differing(self) -> int:
        """How many had other bits than the most frequent result."""
        return self.runs - _leading(self._together())[1]

    def finished(self, runs: int) -> bool:
        """Whether more runs, of `runs` that are wanted, would change nothing that is said."""
        if any(self.endings.get(fatal, 0) >= _ENOUGH_FATAL for fatal in _FATAL):
            return True
        if self.endings.get("raises") or self.endings.get("unavailable") or len(self.inputs) > 1:
            return True
        return self.runs >= runs or (len(self.leading) > 1 and statistics.settled(self.differing, self.runs))

    def result(self, cell: Cell) -> Result:
        """What it comes to."""
        runs, together = self.runs, self._together()
        leader, _ = _leading(together)
        differing = self.differing
        low, high = statistics.interval(differing, runs)
        outcome, note = self._outcome(differing)
        apart = self.difference if self.difference is not None and differing else Difference()
        return Result(
            control=cell.control,
            mode=cell.mode,
            direction=cell.program.direction,
            dtype=cell.program.dtype,
            layout=cell.program.layout,
            outcome=outcome,
            runs=runs,
            differing=differing,
            low=round(low, 5),
            high=round(high, 5),
            finds=round(statistics.findable(runs), 5),
            processes=len(self.leading),
            processes_differing=sum(digest != leader for digest in self.leading),
            ulp=apart.ulp,
            absolute=float(f"{apart.absolute:.4g}"),
            elements=apart.elements,
            of=apart.of,
            seconds=float(f"{self.median:.3g}"),
            warned=self.warned,
            note=note,
            provoked={
                name: (sum(counts.values()), sum(counts.values()) - counts.get(leader, 0))
                for name, counts in sorted(self.digests.items())
            },
        )

    def _together(self) -> collections.Counter[str]:
        together: collections.Counter[str] = collections.Counter()
        for counts in self.digests.values():
            together.update(counts)
        together.pop(OTHERS, None)
        return together

    def _outcome(self, differing: int) -> tuple[Outcome, str]:
        for fatal in _FATAL:
            if times := self.endings.get(fatal):
                return fatal, f"{self.note} ({times} of {sum(self.endings.values())} processes)"  # type: ignore[return-value]
        if self.endings.get("raises"):
            return "raises", self.note
        if self.endings.get("unavailable"):
            return "unavailable", self.note
        if len(self.inputs) > 1:
            return "unavailable", "its inputs were not the same in all processes"
        if not self.runs:
            return "not run", "the time was over"
        return ("differs" if differing else "equal"), ""


def _leading(counts: collections.Counter[str]) -> tuple[str, int]:
    """The most frequent digest, the first by name of several, and how often it was seen."""
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
