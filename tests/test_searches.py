"""One question about one place takes the same work in a long file as in a short one.

`test_shapes.py` counts calls, and a loop that walks a list makes none. Here every bytecode of the package counts, and
every comparison with what is asked for, which the searches in C make too.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst as cst
import pytest

import torchdet_lint
from torchdet_lint.catalogue import loading
from torchdet_lint.dataflow.seeding.ordered import Ordered, Seeding, Stores
from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.fixes.layout import Layout
from torchdet_lint.module.module import Module
from torchdet_lint.prefilter.library import Library
from torchdet_lint.source.decoding import Cell, Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE = str(Path(torchdet_lint.__file__).parent)
LIBRARY = Library(loading.load())
SMALL, LARGE = 40, 320
# A bisection takes three steps more where there is eight times as much.
MORE = 120


class Steps:
    """The steps that a question takes: bytecodes of the package, and comparisons with an `int` of this."""

    def __init__(self) -> None:
        self.count = 0

    def place(self, value: int) -> int:
        """A number of which every comparison counts."""
        steps = self

        def counted(name: str) -> Callable[[int, object], Any]:
            def compare(self: int, other: object) -> Any:
                steps.count += 1
                return getattr(int, name)(self, other)

            return compare

        methods: dict[str, Any] = {
            name: counted(name) for name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
        }
        methods["__hash__"] = int.__hash__
        number: int = type("Counted", (int,), methods)(value)
        return number

    def of(self, ask: Callable[[], object]) -> int:
        """How many steps `ask` takes."""
        self.count = 0
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            ask()
        finally:
            sys.settrace(before)
        return self.count

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        self.count += event == "opcode"
        return self._trace


def module_of(text: str) -> Module:
    return Module(Source("example.py", text), LIBRARY)


def function(row: str, parts: int, head: str = "") -> Module:
    """A module of one function with `row` in it so many times, below `head`."""
    rows = "".join(f"    {row}\n".replace("{i}", str(at)) for at in range(parts))
    return module_of(f"import random\nimport torch\n{head}def f(args, x):\n{rows}    return x\nf(1, 2)\n")


def seedings(parts: int) -> list[Seeding]:
    calls = [node for node in ast.walk(ast.parse("f(0)\n" * parts)) if isinstance(node, ast.Call)]
    return [Seeding(call, frozenset({"torch"}), call.args[0]) for call in calls]


def module_of_tuples(parts: int) -> tuple[Module, list[cst.Tuple]]:
    """A module, and the tuples in parentheses in it: `ast` counts those as part of them, and libcst does not."""
    module = function("x = (x, random.Random({i}))", parts)
    calls = [call.node for call in module.calls_to("random.Random")]
    tuples = [one for call in calls for one in module.ancestors(call) if isinstance(one, cst.Tuple)]
    assert len(tuples) == parts
    return module, tuples


def call_in_row(parts: int, steps: Steps) -> Callable[[], object]:
    module = function("torch.rand({i})", parts)
    module.places.calls_at(4, 4)
    row = steps.place(3 + parts // 2)
    return lambda: module.places.calls_at(row, 4)


def statement_in_row(parts: int, steps: Steps) -> Callable[[], object]:
    module = function("torch.rand({i})", parts)
    module.places.node_at(4)
    row = steps.place(3 + parts // 2)
    return lambda: module.places.node_at(row)


def place_only_libcst_knows(parts: int, steps: Steps) -> Callable[[], object]:
    module, tuples = module_of_tuples(parts)
    module.span(tuples[0])
    return lambda: module.span(tuples[parts // 2])


def same_long_line_again(parts: int, steps: Steps) -> Callable[[], object]:
    module = function(f"x = (random.Random(), {'x, ' * parts})", 1)
    call = next(iter(module.calls_to("random.Random"))).node
    node = next(one for one in module.ancestors(call) if isinstance(one, cst.Tuple))
    module.span(node)
    return lambda: module.span(node)


def row_of_a_cell(parts: int, steps: Steps) -> Callable[[], object]:
    source = Source(
        "example.ipynb", "x = 1\n" * parts, cells=tuple(Cell(at, at, 1, 0, 0, "") for at in range(1, parts))
    )
    row = steps.place(parts // 2)
    return lambda: (source.place(row), source.cell(row))


def statement_of_a_layout(parts: int, steps: Steps) -> Callable[[], object]:
    layout = Layout(module_of("import os\n" * parts + "x = 1\n"))
    layout.top_row(1), layout.below_imports(2)
    row = steps.place(parts // 2)
    return lambda: (layout.top_row(row), layout.last_above(row), layout.below_imports(row), layout.location(row))


def seeding_above(parts: int, steps: Steps) -> Callable[[], object]:
    ordered = Ordered(seedings(parts))
    place = steps.place(parts // 2), 0
    return lambda: (next(ordered.above(place)), next(ordered.below(place)))


def binding_between(parts: int, steps: Steps) -> Callable[[], object]:
    stores = Stores(ast.parse("x = 1\n" * parts).body)
    place = steps.place(parts // 2), 0
    return lambda: stores.between(place, (parts // 2 + 3, 0))


def seed_of_a_generator(row: str, head: str = "") -> Callable[[int, Steps], Callable[[], object]]:
    """The seed for a generator in the middle of a function of many, once another has been asked for."""

    def made(parts: int, steps: Steps) -> Callable[[], object]:
        module = function(row, parts, head)
        calls = [call.node for call in module.calls_to("random.Random")]
        seeds = module.shared(ProgramSeeds)
        assert seeds.seed(calls[0], "python").text
        return lambda: seeds.seed(calls[parts // 2], "python")

    return made


QUESTIONS = {
    "call-in-row": call_in_row,
    "statement-in-row": statement_in_row,
    "place-only-libcst-knows": place_only_libcst_knows,
    "same-long-line-again": same_long_line_again,
    "row-of-a-cell": row_of_a_cell,
    "statement-of-a-layout": statement_of_a_layout,
    "seeding-above": seeding_above,
    "binding-between": binding_between,
    "seed-by-name": seed_of_a_generator("random.seed(args.seed); x = random.Random()"),
    "seed-by-number": seed_of_a_generator("random.seed({i}); x = random.Random(); y = random.Random({i})"),
    "seed-by-other-name": seed_of_a_generator("torch.manual_seed(args.s{i}); y = args.s{i}; x = random.Random()"),
    "seed-by-name-bound-again": seed_of_a_generator("args = 1; random.seed(args); x = random.Random()"),
    "seed-at-the-top": seed_of_a_generator("x = random.Random()", "SEED = 1\nrandom.seed(SEED)\n"),
    "seed-of-none": seed_of_a_generator("x = random.Random()"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_takes_the_same_work_in_a_long_file(name: str) -> None:
    taken = []
    for parts in (SMALL, LARGE):
        steps = Steps()
        taken.append(steps.of(QUESTIONS[name](parts, steps)))
    assert taken[0] > 0
    assert taken[1] < taken[0] + MORE, taken


@pytest.mark.parametrize(
    ("row", "head"),
    [
        ("s(args.a); x = random.Random()", "def s(v):\n{rows}"),
        ("torch.manual_seed({i}); x = random.Random()", ""),
        ("random.seed({i}); x = random.Random(); y = random.Random({i})", ""),
    ],
    ids=["by-a-function-that-seeds-often", "torch", "by-number"],
)
def test_the_seeds_of_all_generators_take_work_in_proportion(row: str, head: str) -> None:
    taken = []
    for parts in (SMALL, 4 * SMALL):
        module = function(row, parts, head.replace("{rows}", "    random.seed(v)\n" * parts))
        calls = [call.node for call in module.calls_to("random.Random")]
        seeds = module.shared(ProgramSeeds)
        taken.append(Steps().of(lambda seeds=seeds, calls=calls: [seeds.seed(node, "python") for node in calls]))
    assert taken[1] < 5 * taken[0], taken
