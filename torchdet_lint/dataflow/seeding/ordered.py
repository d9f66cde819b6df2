"""What seeds and what binds names in one function -> what of it stands above and below a place."""

from __future__ import annotations

import ast
import bisect
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Place = tuple[int, int]


class Seeding(NamedTuple):
    """A call that seeds `libraries`; `value` is what it is given, where that is in sight."""

    call: ast.Call
    libraries: frozenset[str]
    value: ast.expr | None

    @property
    def is_constant(self) -> bool:
        """Whether the seed is a number that is written there."""
        return isinstance(self.value, ast.Constant) and isinstance(self.value.value, int)


class Ordered:
    """Calls that seed, in the order of the source."""

    def __init__(self, seedings: Iterable[Seeding]) -> None:
        self.seedings = sorted(seedings, key=lambda one: start_of(one.call))
        self.starts = [start_of(one.call) for one in self.seedings]

    def above(self, place: Place) -> Iterator[Seeding]:
        """Those above `place`, the nearest first."""
        return (self.seedings[at] for at in range(bisect.bisect_left(self.starts, place) - 1, -1, -1))

    def below(self, place: Place) -> Iterator[Seeding]:
        """Those below `place`, the nearest first."""
        return (self.seedings[at] for at in range(bisect.bisect_right(self.starts, place), len(self.seedings)))


class Seedings:
    """The calls of one function that seed: of torch, with a name, and with a number."""

    def __init__(self, seedings: Sequence[Seeding]) -> None:
        self.torch = Ordered(one for one in seedings if "torch" in one.libraries)
        self.named = Ordered(one for one in seedings if root_of(one.value) is not None)
        self.constant = Ordered(one for one in seedings if one.is_constant)


class Stores:
    """The statements of one function that bind a name, or an attribute of an object."""

    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        found = {start_of(one): one for one in statements}
        self.starts = sorted(found)
        self.first_end = min(map(end_of, found.values()), default=None)
        self._statements = set(found.values())

    def __bool__(self) -> bool:
        return bool(self.starts)

    def between(self, one: Place, other: Place) -> bool:
        """Whether a statement starts between two places."""
        low, high = sorted((one, other))
        return bisect.bisect_right(self.starts, low) < bisect.bisect_left(self.starts, high)

    def hold(self, around: Iterable[ast.AST]) -> bool:
        """Whether one of `around` is such a statement."""
        return any(node in self._statements for node in around)


def root_of(value: ast.expr | None) -> str | None:
    """`args` of `args.seed`; None for what is no dotted name."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else None


def start_of(node: ast.expr | ast.stmt) -> Place:
    """The row and column at which `node` starts."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Place:
    """The row and column at which `node` ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
