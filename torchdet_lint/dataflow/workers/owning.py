"""A call of a package whose random transforms hold a generator of their own -> whether what it makes draws from it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torchdet_lint.catalogue.tables.conventions import Owning

_OPERATIONS = (ast.BinOp, ast.UnaryOp)


def package_of(name: str, packages: Mapping[str, Owning]) -> Owning | None:
    """The row of the package that `name` is of, if there is one."""
    while name and name not in packages:
        name = name.rpartition(".")[0]
    return packages.get(name)


def draws_own(name: str, call: ast.Call, package: Owning) -> bool:
    """Whether what `call` of `name` makes draws from the generator that it holds."""
    if any(f"{one.arg}={ast.unparse(one.value)}" in package.still for one in call.keywords):
        return False
    last = name.rpartition(".")[2]
    if any(word in last for word in package.chances):
        return _is_chance(call)
    if any(word in last for word in package.random) and not any(word in last for word in package.others):
        return True
    ranged = package.ranges and not any(word in last for word in package.listing)
    return ranged and any(_is_range(one) for one in _given(call))


def draws_nothing(name: str, package: Owning) -> bool:
    """Whether what makes `name` draws from no generator, whatever it is given."""
    words = (*package.random, *package.chances, *package.others, *package.running)
    return package.closed and not any(word in name.rpartition(".")[2] for word in words)


def holds_at(attribute: str, base: str, package: Owning) -> bool:
    """Whether an object of a class that is derived from `base` holds its generator at this attribute."""
    return attribute == package.attribute and any(word in base.rpartition(".")[2] for word in package.random)


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """What `call` is given, what its dictionaries hold too."""
    for one in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from one.values if isinstance(one, ast.Dict) else (one,)


def _is_chance(call: ast.Call) -> bool:
    """Whether the probability that `call` is given, the first number, may be another one than 0 and 1."""
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("p", "prob"))]
    numbers = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, (int, float))]
    return bool(values) and (not numbers or numbers[0] not in (0, 1))


def _is_range(node: ast.expr) -> bool:
    """Whether `node` is a pair of numbers between which one is drawn, or a list of which one is picked."""
    if isinstance(node, ast.List):
        return len(node.elts) > 1 and all(map(_is_number, node.elts)) and _differ(node.elts)
    if not isinstance(node, ast.Tuple):
        return False
    if len(node.elts) == 2 and _differ(node.elts):
        return all(_is_number(one) or isinstance(one, _OPERATIONS) for one in node.elts) or any(
            isinstance(one, _OPERATIONS) for one in node.elts
        )
    return any(_is_range(one) for one in node.elts)


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def _differ(nodes: Iterable[ast.expr]) -> bool:
    return len({ast.dump(node) for node in nodes}) > 1
