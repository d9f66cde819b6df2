"""A place in a function, and the constants that the function is given -> whether that place is passed by."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.program.events import holds
from torchdet_lint.program.syntax.shapes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.program.objects.trees import Tree


def passed_by(tree: Tree, node: ast.expr, given: Mapping[str, Any]) -> bool:
    """Whether `node` stands in an arm of an `if`, or of a conditional expression, that does not run in the function
    around where that is `given` constants for its parameters."""
    inner: ast.AST = node
    while given and (above := tree.parents.get(inner)) is not None and not isinstance(above, (*FUNCTIONS, ast.Lambda)):
        if isinstance(above, (ast.IfExp, ast.If)) and inner is not above.test:
            told = _told(tree, above.test, given)
            in_body = inner is above.body or (isinstance(above.body, list) and inner in above.body)
            if told is not None and told is not in_body:
                return True
        inner = above
    return False


def _told(tree: Tree, test: ast.expr, given: Mapping[str, Any]) -> bool | None:
    """Whether a test of a parameter holds; None where nobody knows."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            told = _told(tree, inner, given)
            return None if told is None else not told
        case ast.Compare(left=asked, ops=[ast.Eq() | ast.Is()], comparators=[ast.Constant(value=value)]):
            return _holds(tree, asked, given, "equal", value)
        case ast.Compare(left=asked, ops=[ast.NotEq() | ast.IsNot()], comparators=[ast.Constant(value=value)]):
            told = _holds(tree, asked, given, "equal", value)
            return None if told is None else not told
        case ast.BoolOp(op=operator, values=values):
            decides = isinstance(operator, ast.Or)
            parts = [_told(tree, one, given) for one in values]
            return decides if decides in parts else None if None in parts else not decides
    return _holds(tree, test, given, "true", None)


def _holds(tree: Tree, asked: ast.expr, given: Mapping[str, Any], kind: str, value: Any) -> bool | None:
    """Whether a parameter that is bound nowhere else, or an option that one holds, is true, or equal to `value`."""
    name = dotted_name(asked)
    first = name.partition(".")[0]
    around = tree.around(asked)
    if name not in given or first == "self" or not around or len(tree.bound(around[0], first)) != 1:
        return None
    known = given[name]
    if isinstance(known, tuple):
        return None
    return holds(kind, value, known)
