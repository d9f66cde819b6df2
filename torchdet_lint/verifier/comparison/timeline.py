"""The marks of two runs -> the step and the pass of a record, and the losses of both runs side by side."""

from __future__ import annotations

import bisect
import collections
import math
import struct
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.verifier.trace import Mark

MOST_ROWS = 400


class Loss(msgspec.Struct, frozen=True):
    """What `backward` was called on in both runs, in optimizer step `step` (from 1)."""

    step: int
    a: float
    b: float


class Losses(msgspec.Struct, frozen=True):
    """The losses of both runs: how many there are in both, how many differ, the first that does, the largest absolute
    and relative difference, the last pair. `rows` are at most `MOST_ROWS` of them, evenly taken, the first that differs
    among them. `unpaired` counts those that one run alone has; `not_finite` pairs of which one is no finite number.
    """

    compared: int
    differing: int
    largest: float
    relative: float
    first: Loss | None = None
    last: Loss | None = None
    rows: tuple[Loss, ...] = ()
    unpaired: int = 0
    not_finite: int = 0


class Timeline:
    """The marks of a stream, to be asked where a record stands."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        counts = collections.Counter(mark.name for mark in marks if mark.kind == "step")
        self._main = max(counts, key=lambda name: counts[name], default="")
        self._steps = [mark.at for mark in marks if mark.kind == "step" and mark.name == self._main]
        self._passes = [(mark.at, mark.number) for mark in marks if mark.kind == "pass"]
        self._expected = _blocks(marks)
        self._losses = [(mark.at, mark.value) for mark in marks if mark.kind == "loss"]

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

    @property
    def losses(self) -> list[tuple[int, float]]:
        """The step and the value of every loss, in order."""
        return [(self.step(index), value) for index, value in self._losses]

    @property
    def steps(self) -> Sequence[int]:
        """After how many records each step ended."""
        return self._steps


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


def losses(a: Timeline, b: Timeline) -> Losses | None:
    """The losses of two runs by their order; None where neither has any."""
    one, two = a.losses, b.losses
    if not one and not two:
        return None
    pairs = [Loss(step, x, y) for (step, x), (_, y) in zip(one, two, strict=False)]
    differing = [number for number, pair in enumerate(pairs) if not _same(pair.a, pair.b)]
    finite = [
        pairs[number] for number in differing if math.isfinite(pairs[number].a) and math.isfinite(pairs[number].b)
    ]
    sizes = [(abs(pair.a - pair.b), _relative(pair.a, pair.b)) for pair in finite]
    stride = max(1, math.ceil(len(pairs) / (MOST_ROWS - 2)))
    chosen = sorted({*range(0, len(pairs), stride), *differing[:1], *([len(pairs) - 1] if pairs else [])})
    return Losses(
        len(pairs),
        len(differing),
        max((size for size, _ in sizes), default=0.0),
        max((relative for _, relative in sizes), default=0.0),
        pairs[differing[0]] if differing else None,
        pairs[-1] if pairs else None,
        tuple(pairs[number] for number in chosen),
        abs(len(one) - len(two)),
        len(differing) - len(finite),
    )


def _same(a: float, b: float) -> bool:
    return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))


def _relative(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0
