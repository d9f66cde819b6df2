"""A comparison with a random number from 0 to 1, `random.random() < rate` -> what the number is compared with."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope

_ITEM = "item"
_LESS = (ast.Lt, ast.LtE)
_GREATER = (ast.Gt, ast.GtE)


class Chance(NamedTuple):
    """A random number from 0 to 1 is `drawn`, and the test asks whether it is less than a `bound`, or greater."""

    drawn: ast.expr
    bound: ast.expr
    less: bool


def chance(test: ast.expr, names: Resolver, scope: Scope) -> Chance | None:
    """What a test compares a random number from 0 to 1 with, if it does that."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (*_LESS, *_GREATER)):
        return None
    first, second = test.left, test.comparators[0]
    less = isinstance(test.ops[0], _LESS)
    if _is_drawn(first, names, scope):
        return Chance(first, second, less)
    return Chance(second, first, not less) if _is_drawn(second, names, scope) else None


def _is_drawn(node: ast.expr, names: Resolver, scope: Scope) -> bool:
    """Whether `node` draws a number from 0 to 1, or several, from a library's generator."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == _ITEM and isinstance(function.value, ast.Call):
        return _is_drawn(function.value, names, scope)
    drawn = names.resolve(function, scope)
    if names.words.between_bounds.issuperset(drawn) and drawn:
        return not node.args and not node.keywords
    return bool(drawn) and names.words.from_0_to_1.issuperset(drawn)
