"""The marks of two runs -> the losses of both side by side."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from torchdet_lint.verifier.trace import Timeline

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


def losses(a: Timeline, b: Timeline, *, early: bool = False) -> Losses | None:
    """The losses of two runs by their order; None where neither has any. With `early` those that run A has besides are
    none of run B's yet.
    """
    one, two = a.losses, b.losses
    if not one and not two:
        return None
    pairs = [Loss(step, x, y) for (step, x), (_, y) in zip(one, two, strict=False)]
    differing = [number for number, pair in enumerate(pairs) if not same(pair.a, pair.b)]
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
        0 if early else abs(len(one) - len(two)),
        len(differing) - len(finite),
    )


def same(a: float, b: float) -> bool:
    """Whether two losses are equal, bit for bit, or both are no number."""
    return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))


def _relative(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0
