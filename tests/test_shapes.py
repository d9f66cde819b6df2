"""The shapes of `benchmarks/shapes.py`, by the number of calls that they take instead of seconds."""

from __future__ import annotations

import cProfile
import importlib.util
import math
import sys
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("shapes", Path(__file__).parents[1] / "benchmarks" / "shapes.py")
assert _SPEC is not None
assert _SPEC.loader is not None
shapes = importlib.util.module_from_spec(_SPEC)
sys.modules["shapes"] = shapes
_SPEC.loader.exec_module(shapes)

EXPONENT = 1.35


def calls(name: str, parts: int) -> int:
    """How many calls linting the shape takes, those of built-in functions included."""
    run = shapes.work("lint", shapes.SHAPES[name].make(parts))
    profile = cProfile.Profile()
    profile.runcall(run)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_work_grows_with_the_program(name: str) -> None:
    parts = max(shapes.SHAPES[name].parts // 8, 2)
    first = calls(name, 1)
    small, large = calls(name, 2 * parts) - first, calls(name, 4 * parts) - first
    sizes = [sum(map(len, shapes.SHAPES[name].make(n * parts).values())) for n in (2, 4)]
    assert sizes[1] > sizes[0]
    grown = math.log(max(large, 1000) / max(small, 1000)) / math.log(max(sizes[1] / sizes[0], 2))
    assert grown < EXPONENT, (small, large)


def test_there_are_shapes_enough() -> None:
    assert len(shapes.SHAPES) >= 120
