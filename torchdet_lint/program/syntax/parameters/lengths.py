"""A list that a call passes, or a test of one that a function is given -> how many elements it has, or must have."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.events import AS_GIVEN, LENGTH, Test
from torchdet_lint.program.syntax.parameters.rebinding import compared, is_refilled, refilled
from torchdet_lint.program.syntax.scopes import bound_above, constant, followed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.program.syntax.scopes import Scope

# What gives as many elements as it is given.
_AS_MANY = frozenset({"enumerate", "list", "reversed", "sorted", "tuple"})
_GIVEN = ("parameter", "default")
_LEAVES = (ast.Break, ast.Continue)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# What a list is made of may be made of something else, so often.
_DEEP = 4


def length_of(node: ast.expr, scope: Scope) -> int:
    """How many elements the display has that `node` is, or a name of the function that is given one and keeps it;
    `AS_GIVEN` for a parameter, -1 where nobody knows."""
    if isinstance(node, ast.Name) and scope.kind == "function" and _as_it_came(node, scope):
        return AS_GIVEN
    display, home = followed(node, scope)
    if not isinstance(display, (ast.List, ast.Tuple)) or any(isinstance(one, ast.Starred) for one in display.elts):
        return -1
    kept = display is node or (
        home is scope and isinstance(node, ast.Name) and node.id not in scope.lent and not is_refilled(node.id, scope)
    )
    return len(display.elts) if kept else -1


def length_tested(test: ast.expr, scope: Scope, dead: int, dead_otherwise: int) -> Iterator[Test]:
    """What `test` asks about the number of elements of a parameter, `len(styles) < 2`, or whether it has any, `if
    styles:`: `dead` is the arm that does not run where it holds."""
    if scope.kind != "function" or not (dead or dead_otherwise):
        return
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        known = constant(test.comparators[0], scope) if (own := _counted(test.left, scope)) else None
        kind, holds = (compared(test.ops[0], known[0]) if known is not None else None) or ("", True)
        if known is not None and kind:
            first, second = (dead, dead_otherwise)[:: 1 if holds else -1]
            yield Test(f"{own}{LENGTH}", kind, known[0], first, second)
    elif own := _counted(test, scope) or (_as_it_came(test, scope) if isinstance(test, ast.Name) else ""):
        yield Test(f"{own}{LENGTH}", "true", None, dead, dead_otherwise)


def _counted(node: ast.expr, scope: Scope) -> str:
    """The parameter of which `node` is the number of elements, by a name of its own too; or nothing."""
    if isinstance(node, ast.Name):
        bounds = scope.bindings.get(node.id, ())
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
        node = value if value is not None and node.id not in scope.lent else node
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as name], keywords=[]) if scope.home("len") is None:
            return _as_it_came(name, scope)
    return ""


def _as_it_came(node: ast.Name, scope: Scope) -> str:
    """The parameter that `node` is, if it has as many elements there as it came with; or nothing."""
    bounds = scope.bindings.get(node.id, ())
    if not any(bound.kind == "parameter" for bound in bounds) or node.id in scope.lent or is_refilled(node.id, scope):
        return ""
    above = bound_above(node, bounds, scope)
    starred = (scope.node.args.vararg, scope.node.args.kwarg)
    if above is None or any(one is not None and one.arg == node.id for one in starred):
        return ""
    values = [bound.value if bound.kind == "value" else None for bound in above if bound.kind not in _GIVEN]
    return node.id if all(value is not None and _is_as_long(value, node.id, scope) for value in values) else ""


def _is_as_long(node: ast.expr, name: str, scope: Scope, depth: int = _DEEP) -> bool:
    """Whether `node` has as many elements as `name`: `[f(x) for x in name]`, `list(name)`, a list to which a loop over
    `name` adds one each time."""
    if depth == 0:
        return False
    match node:
        case ast.Name(id=own) if own != name:
            over = _filled(scope).get(own)
            return over is not None and _is_as_long(over, name, scope, depth - 1)
        case ast.ListComp(generators=[ast.comprehension(iter=over, ifs=[])]):
            return _is_as_long(over, name, scope, depth - 1)
        case ast.Call(func=ast.Name(id=function), args=[over, *_]) if function in _AS_MANY:
            return scope.home(function) is None and _is_as_long(over, name, scope, depth - 1)
        case ast.IfExp(body=body, orelse=orelse):
            return all(_is_as_long(one, name, scope, depth - 1) for one in (body, orelse))
    return isinstance(node, ast.Name)


def _filled(scope: Scope) -> dict[str, ast.expr]:
    """The lists, empty at first, to which one loop of the function adds one element each time, and nothing else does;
    with what it goes through."""
    if scope.filled is None:
        scope.filled = {}
        within: set[int] = set()
        for loop in walk(scope.node):
            if not isinstance(loop, _LOOPS):
                continue
            inside = [one for part in loop.body for one in walk(part)]
            within.update(id(one) for one in inside if isinstance(one, _LOOPS))
            once = isinstance(loop, ast.For) and id(loop) not in within
            if isinstance(loop, ast.For) and once and not any(isinstance(one, _LEAVES) for one in inside):
                scope.filled.update((name, loop.iter) for name in map(_added_to, loop.body) if name)
        for name in [*scope.filled]:
            made = [one.value for one in scope.bindings.get(name, ()) if one.kind == "value"]
            empty = len(made) == 1 and isinstance(made[0], ast.List) and not made[0].elts
            if not empty or refilled(scope)[name] != 1 or name in scope.lent:
                del scope.filled[name]
    return scope.filled


def _added_to(statement: ast.stmt) -> str:
    """The list to which a statement adds one element."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"))):
            return name
    return ""
