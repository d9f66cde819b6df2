"""The shapes of `benchmarks/shapes.py`, by the number of calls that they take instead of seconds."""

from __future__ import annotations

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

SHAPES = """
    simple-lines one-name draws draws-apart settings
    settings-in-pairs settings-off setattr-settings index-add scatter-in-place
    cumsum interpolate hash-calls imports from-imports
    stars aliases chained-aliases seeds-by-time seed-calls
    generators used-noqa used-noqa-201 unused-noqa comments
    blank-lines docstrings strings f-strings subscript-stores
    attribute-stores one-attribute-store body-settings body-empties body-empties-filled-in-loops
    body-listdirs body-one-set body-items body-items-apart body-ifs
    body-if-else body-whiles body-withs body-returns body-lambdas
    body-functions body-calls-of-itself body-globals body-matches body-string-sums
    body-yields methods-with-own-attribute self-a-in-one-method attributes-in-one-method buffers
    layers match-cases-that-bind match-constants elif-chain elif-chain-at-top
    except-handlers parameters annotated-parameters arguments keywords
    list-display rows-of-a-list dictionary-of-empties set-display statements-on-one-line
    targets
""".split()


def calls(name: str, parts: int) -> int:
    """How many calls linting the shape takes, those of built-in functions included."""
    run = shapes.work("lint", shapes.SHAPES[name].make(parts))
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_with_the_program(name: str) -> None:
    parts = max(shapes.SHAPES[name].parts // 8, 2)
    first = calls(name, 1)
    small, large = calls(name, 2 * parts) - first, calls(name, 4 * parts) - first
    sizes = [len(text) for n in (2, 4) for text in shapes.SHAPES[name].make(n * parts).values()]
    assert sizes[-1] > sizes[0]
    assert math.log2(max(large, 1000) / max(small, 1000)) < 1.35, (small, large)


def test_there_are_shapes_enough() -> None:
    assert len(shapes.SHAPES) >= 120
    assert set(SHAPES) <= shapes.SHAPES.keys()
