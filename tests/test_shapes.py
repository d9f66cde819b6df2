"""The shapes of `benchmarks/shapes.py`, by the number of calls that they take instead of seconds."""

from __future__ import annotations

import cProfile
import functools
import importlib.util
import math
import sys
from pathlib import Path
from unittest import mock

import pytest

from torchdet_lint.module.tree import Spare

_SPEC = importlib.util.spec_from_file_location("shapes", Path(__file__).parents[1] / "benchmarks" / "shapes.py")
assert _SPEC is not None
assert _SPEC.loader is not None
shapes = importlib.util.module_from_spec(_SPEC)
sys.modules["shapes"] = shapes
_SPEC.loader.exec_module(shapes)

EXPONENT = 1.12
# Few parts of these are not enough to see that they grow in a straight line.
TOO_FEW = frozenset(
    """body-fors body-if-else body-matches body-tries body-whiles chained-calls
    conditional-chain files-alone files-from-one files-in-a-chain for-clauses match-cases-that-bind
    methods-with-own-attribute methods-with-self-x nested-conditionals nested-fors nested-fors-in-a-function
    nested-functions-side-by-side nested-tries nested-whiles nested-withs notebook-cells""".split()
)
OF_FEW = 1.35
# Up to some number of parts each is looked at beside each other: so many parts there must be to see where that ends.
ENOUGH = {
    "binary-chain": 60,
    "body-empties-filled-in-loops": 30,
    "body-ops-under-ifs": 90,
    "body-tries": 40,
    "chained-draws": 20,
    "chained-subscripts": 60,
    "datasets": 60,
    "dictionary-arguments": 60,
    "files-of-registries": 80,
    "files-without-gradients": 60,
    "lambdas": 60,
    "nested-calls": 6,
    "nested-dictionaries": 5,
    "nested-functions-side-by-side": 60,
    "nested-fors-in-a-function": 10,
    "nested-library-calls": 20,
    "nested-sets": 10,
    "noqa-for-the-file": 40,
    "notebook-settings": 40,
    "set-comprehensions": 75,
    "sets-in-lists-that-are-saved": 60,
    "switches-handed-on": 12,
    "texts-handed-on": 8,
    "set-names": 60,
    "union-of-sets": 20,
    "used-noqa": 80,
}
# What is a straight line to the call.
STRAIGHT = frozenset(
    """body-empties-filled-in-loops body-listdirs-one-list body-sets body-zips chained-draws dictionary-arguments
    lambdas nested-library-calls
    nested-sets noqa-for-the-file notebook-settings set-names union-annotation used-noqa""".split()
)
AT_MOST = 1.07


@pytest.fixture(autouse=True)
def nothing_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without other files, which would be searched for importers of the program."""
    monkeypatch.chdir(tmp_path)


@functools.cache
def warm(name: str, mode: str) -> None:
    """Have what is made once in a process made for the shape."""
    shapes.work(mode, shapes.SHAPES[name].make(1))()


def calls(name: str, parts: int, mode: str = "lint") -> int:
    """How many calls the mode takes for the shape, those of built-in functions included, once it is warm."""
    warm(name, mode)
    run = shapes.work(mode, shapes.SHAPES[name].make(parts))
    profile = cProfile.Profile()
    with mock.patch("torchdet_lint.module.loading.SPARE", Spare()):  # A tree that an earlier run left costs no parsing.
        profile.runcall(run)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_work_grows_with_the_program(name: str) -> None:
    parts = ENOUGH.get(name, max(shapes.SHAPES[name].parts // 8, 2))
    first = calls(name, 1)
    small, large = calls(name, 2 * parts) - first, calls(name, 4 * parts) - first
    sizes = [sum(map(len, shapes.SHAPES[name].make(n * parts).values())) for n in (2, 4)]
    assert sizes[1] > sizes[0]
    grown = math.log(max(large, 1000) / max(small, 1000)) / math.log(max(sizes[1] / sizes[0], 2))
    limit = AT_MOST if name in STRAIGHT else OF_FEW if name in TOO_FEW else EXPONENT
    assert grown < limit, (small, large)


@pytest.mark.parametrize(
    ("mode", "name"),
    [("fix", "unused-noqa"), ("fix", "notebook-one-cell"), ("report", "notebook-settings"), ("report", "loaders")],
)
def test_a_fix_and_a_report_grow_with_the_findings(mode: str, name: str) -> None:
    first, small, large = (calls(name, parts, mode) for parts in (1, 40, 80))
    assert (large - first) / (small - first) < 2.1, (small, large)


def test_there_are_shapes_enough() -> None:
    assert len(shapes.SHAPES) >= 120
    assert ENOUGH.keys() | STRAIGHT | TOO_FEW <= shapes.SHAPES.keys()


def test_the_text_is_not_searched_again_for_each_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is one call, however long the text: it is counted by itself."""
    searched = []

    class Counted:
        def search(self, text: str) -> None:
            searched.append(text)

    monkeypatch.setattr("torchdet_lint.dataflow.seeding.program_seeds._PYTHON_GLOBALLY", Counted())
    shapes.work("lint", shapes.SHAPES["random-instances"].make(20))()
    assert len(searched) == 1
