"""A number of runs -> what it shows: how many are needed, what they find, and between which bounds a rate lies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RATE = 0.01
"""The rate of differing runs that has to be found."""
SURENESS = 0.99
"""With which probability it has to be found."""
CONFIDENCE = 0.95
"""The confidence of the intervals."""


def runs_needed(rate: float = RATE, sureness: float = SURENESS) -> int:
    """How many runs show at least one that differs with probability `sureness`, where runs differ at `rate`."""
    return math.ceil(math.log(1 - sureness) / math.log(1 - rate))


def findable(runs: int, sureness: float = SURENESS) -> float:
    """The lowest rate that `runs` runs find with probability `sureness`; 1.0 where there was no second run."""
    return 1.0 if runs < 2 else 1 - (1 - sureness) ** (1 / runs)


def interval(differing: int, runs: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a rate of which `differing` of `runs` were seen."""
    if runs == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if differing == 0 else _solve(lambda rate: _at_least(differing, runs, rate) < tail)
    high = 1.0 if differing == runs else _solve(lambda rate: 1 - _at_least(differing + 1, runs, rate) > tail)
    return low, high


def settled(differing: int, runs: int, width: float = 0.2) -> bool:
    """Whether the rate of something that differs is known well enough: further runs would not change what is said."""
    if differing == 0 or runs < 40:
        return False
    low, high = interval(differing, runs)
    return high - low <= width


def _solve(below: Callable[[float], bool]) -> float:
    """The rate up to which `below(rate)` holds, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if below(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_least(count: int, runs: int, rate: float) -> float:
    """The probability of `count` or more among `runs` at `rate`."""
    if count <= 0 or rate >= 1.0:
        return 1.0
    if count > runs or rate <= 0.0:
        return 0.0
    return _incomplete_beta(float(count), float(runs - count + 1), rate)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(1.0 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / (1.0 + term * d or tiny)
            c = 1.0 + term / c or tiny
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return front * fraction / a
