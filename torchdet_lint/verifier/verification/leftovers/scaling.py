"""The output under two clocks of which one goes faster -> the lines that tell times."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from torchdet_lint.verifier.verification.leftovers.leftovers import lines_of
from torchdet_lint.verifier.verification.leftovers.masking import BARE

if TYPE_CHECKING:
    from pathlib import Path

_NOISE, _MOST_OFF = 1e-6, 0.02
"""How far off a number may be, of its size: where all its digits are printed (seconds since 1970 have six decimals as a
float), and where it is rounded."""
_NUMBER = re.compile(r"[-+]?\d+(?:\.(\d+))?(?:[eE]([-+]?\d+))?")


def lines_of_times(slow: Path, fast: Path, factor: int) -> frozenset[int]:
    """The numbers, from 1, of the lines that tell times: they differ by bare numbers alone, each of which is as large
    under the `fast` clock as under the slow one, `factor` times as large, or that part of it. None where any other line
    differs.
    """
    found = set[int]()
    for number, (one, two) in enumerate(itertools.zip_longest(lines_of(slow), lines_of(fast)), 1):
        if one == two:
            continue
        if one is None or two is None or BARE.sub("", one) != BARE.sub("", two):
            return frozenset()
        before, after = BARE.findall(one), BARE.findall(two)
        pairs = zip(before, after, strict=False)
        if len(before) != len(after) or not all(
            _is_scaled(float(a), float(b), factor, _rounding(a, b)) for a, b in pairs
        ):
            return frozenset()
        found.add(number)
    return frozenset(found)


def _is_scaled(a: float, b: float, factor: int, rounding: float) -> bool:
    if a == b:
        return True
    small, large = sorted((a, b), key=abs)
    off = max(_NOISE * abs(large), min(factor * rounding, _MOST_OFF * abs(large)))
    return abs(large - factor * small) <= off


def _rounding(one: str, two: str) -> float:
    """By how much the longer of two printed numbers may be off; a whole number is what it is."""
    found = [_NUMBER.search(text) for text in (one, two)]
    digits = [(len(match[1] or ""), int(match[2] or "0")) for match in found if match is not None]
    return max((10.0 ** (exponent - decimals) for decimals, exponent in digits if decimals), default=0.0)
