"""What the parent and a measuring process say to each other, plain data: one line of JSON each."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchdet_lint.verifier.probe.programs import Program

Ending = Literal["ran", "raises", "unavailable", "out of memory", "crashes", "hangs"]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Run `program` in `mode` up to `runs` times, but for about `seconds` at most. `salt` varies what is provoked."""

    program: Program
    device: str
    mode: str
    runs: int
    seconds: float
    salt: int = 0


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How far two results lie apart: units in the last place and absolute at most, and how many of how many elements.

    `ulp` is None where the elements that differ are not floating-point numbers, or are not finite.
    """

    ulp: int | None = None
    absolute: float = 0.0
    elements: int = 0
    of: int = 0


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a task.

    `digests` are provocation, digest of the result and how often; `inputs` is the digest of what went in; `seconds`
    the median of a run; `note` says what was raised or is missing, `warned` that the mode warned.
    """

    ending: Ending
    digests: tuple[tuple[str, str, int], ...] = ()
    inputs: str = ""
    seconds: float = 0.0
    difference: Difference | None = None
    note: str = ""
    warned: bool = False
