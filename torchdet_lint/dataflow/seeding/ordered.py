"""What seeds and what binds names in one function -> what of it stands above and below a place."""

from __future__ import annotations

import ast
import bisect
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from torchdet_lint.prefilter.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Place = tuple[int, int]


class Seeding(NamedTuple):
    """A call that seeds `libraries`; `value` is what it is given, where that is in sight. The function may be one
    that `asks` about its seed, which may be None then."""

    call: ast.Call
    libraries: frozenset[str]
    value: ast.expr | None
    asks: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the seed is a number that is written there."""
        return isinstance(self.value, ast.Constant) and isinstance(self.value.value, int)

    @property
    def varies(self) -> bool:
        """Whether the seed is in sight, and something else than a number that is written there."""
        return self.value is not None and not self.is_constant


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
    """The calls of one function that seed: of torch, with a name, and with a number; and whether a seed `varies`."""

    def __init__(self, seedings: Sequence[Seeding]) -> None:
        self.torch = Ordered(one for one in seedings if "torch" in one.libraries)
        self.named = Ordered(one for one in seedings if root_of(one.value) is not None)
        self.constant = Ordered(one for one in seedings if one.is_constant)
        self.varies = any(one.varies for one in seedings)


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

    def any(self, fits: Callable[[ast.stmt], bool]) -> bool:
        """Whether one of the statements is such."""
        return any(map(fits, self._statements))

    def hold(self, around: Iterable[ast.AST]) -> bool:
        """Whether one of `around` is such a statement."""
        return any(node in self._statements for node in around)


def namespaces(body: ast.AST) -> dict[str, ast.expr]:
    """The names of `body` that stand for the attributes of an object, and that: `options = vars(args)`."""
    found: dict[str, ast.expr] = {}
    for node in walk(body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            owner = _owner_of(node.value)
            if owner is not None:
                found[node.targets[0].id] = owner
    return found


def as_member(node: ast.expr, spaces: Mapping[str, ast.expr] = MappingProxyType({})) -> ast.expr:
    """`args.seed` for `args.__dict__["seed"]`, `vars(args)["seed"]` and the same by a name that `spaces` know; another
    expression as it is."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return node
    key = node.slice.value
    owner = spaces.get(node.value.id) if isinstance(node.value, ast.Name) else _owner_of(node.value)
    named = owner is not None and isinstance(key, str) and key.isidentifier()
    member = ast.Attribute(owner, str(key), node.ctx) if named and owner is not None else None
    return ast.copy_location(member, node) if member is not None else node


def _owner_of(node: ast.expr | None) -> ast.expr | None:
    """`args` of `args.__dict__` and `vars(args)`; None for another expression."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars":
        return node.args[0] if node.args else None
    return None


def root_of(value: ast.expr | None) -> str | None:
    """`args` of `args.seed` and of `args["seed"]`; None for what is no dotted name."""
    while isinstance(value, ast.Attribute) or _is_entry(value):
        value = value.value
    return value.id if isinstance(value, ast.Name) else None


def _is_entry(node: ast.expr | None) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def start_of(node: ast.expr | ast.stmt) -> Place:
    """The row and column at which `node` starts."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Place:
    """The row and column at which `node` ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
