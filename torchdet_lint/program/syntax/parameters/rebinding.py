"""A parameter that its function gives another value, `if rate is None: rate = 1.0` -> what it is where it is read.

The statements count that run in every call: those of the function itself, and of a `with`. What stands in another
block leaves the value open.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.events import BUILT_IN, COMPARED, EACH, LISTED, PLAIN, Rebinding
from torchdet_lint.program.syntax.scopes import bound_above, constant
from torchdet_lint.program.syntax.shapes import is_device_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from torchdet_lint.program.syntax.scopes import Scope

# What nobody knows.
OPEN: tuple[Rebinding, ...] = (Rebinding("", None, None, None),)
# A name for a value may stand for another one, so often.
_DEEP = 3
# Methods that change the elements of a list.
_REFILLS = frozenset({"append", "clear", "extend", "insert", "pop", "remove"})
# A parameter that is given more values than so many is not followed.
_VALUES = 8


class _Question(NamedTuple):
    """A test of what a name stands for: its kind, what it compares with, and whether it is that test or its opposite;
    `also` is what joins it with others, `and` or `or`."""

    name: str
    kind: str
    value: Any
    holds: bool
    also: type[ast.boolop] | None = None


def remade(node: ast.expr, scope: Scope, depth: int = _DEEP) -> tuple[str, tuple[Rebinding, ...]] | None:
    """The parameter that `node` is made of, and what became of it: `OPEN` where nobody knows. None where `node` is the
    parameter as it came, or something else."""
    if scope.kind != "function" or depth == 0:
        return None
    if isinstance(node, ast.Name):
        return _read(node, scope, depth)
    if not isinstance(node, (ast.BoolOp, ast.IfExp)):
        return None
    chosen = _choice(node, scope)
    if chosen is None:
        return "", OPEN
    name, rebinding = chosen
    own, before = _read(name, scope, depth) or (name.id, ())
    return (own, (*before, rebinding)) if _is_parameter(own, scope) else ("", OPEN)


def compared(operator: ast.cmpop, value: Any) -> tuple[str, bool] | None:
    """The kind of test that compares with `value`, and whether it is that or its opposite; None for no such test."""
    if isinstance(operator, (ast.Is, ast.Eq, ast.IsNot, ast.NotEq)):
        return ("equal", isinstance(operator, (ast.Is, ast.Eq))) if isinstance(value, PLAIN) else None
    if isinstance(operator, (ast.In, ast.NotIn)):
        return ("among", isinstance(operator, ast.In)) if isinstance(value, list) else None
    kind = type(operator).__name__
    return (kind, True) if kind in COMPARED and isinstance(value, (int, float)) else None


def _read(node: ast.Name, scope: Scope, depth: int) -> tuple[str, tuple[Rebinding, ...]] | None:
    """The same of a name."""
    bounds = scope.bindings.get(node.id, ())
    if not _is_parameter(node.id, scope):
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
        return remade(value, scope, depth - 1) if value is not None and node.id not in scope.lent else None
    others = [one for one in bounds if one.kind not in ("parameter", "default")]
    others = [one for one in others if not is_device_of(one.value, node.id)]
    values = [one.value for one in others if one.kind == "value" and one.value is not None]
    if len(values) < len(others) or len(values) > _VALUES or (others and node.id in scope.lent):
        return node.id, OPEN
    given = bound_above(node, others, scope)
    if not given:
        return None if given is not None else (node.id, OPEN)
    above = {id(one.value) for one in given}
    if scope.rebound is None:
        scope.rebound = _steps(scope)
    steps = [one for one in scope.rebound.get(node.id, ()) if all(id(value) in above for value in one[0])]
    known = above == {id(value) for step in steps for value in step[0]}
    return node.id, tuple(rebinding for _, rebinding in steps) if known else OPEN


def _steps(scope: Scope) -> dict[str, list[tuple[tuple[ast.expr, ...], Rebinding]]]:
    """What the statements of a function make of its parameters, in order."""
    found: dict[str, list[tuple[tuple[ast.expr, ...], Rebinding]]] = {}
    for node in _always_run(scope.node.body):
        asked = _question(node.test, scope) if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and asked is not None:
            arms = [_assigned(node.body, asked.name), _assigned(node.orelse, asked.name)]
            values = tuple(value for arm in arms for value in arm)
            then, otherwise = (_made(arm[-1], asked.name, scope) if arm else () for arm in arms)
            if values:
                found.setdefault(asked.name, []).append((values, _rebinding(asked, then, otherwise)))
        elif (given := _assignment(node)) is not None:
            name, value = given
            made, chosen = _made(value, name, scope), _choice(value, scope)
            if chosen is not None and chosen[0].id == name:
                found.setdefault(name, []).append(((value,), chosen[1]))
            elif made is not None:
                found.setdefault(name, []).append(((value,), Rebinding("true", None, made, made)))
    return found


def _always_run(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body that run whenever it does."""
    for node in body:
        if isinstance(node, (ast.With, ast.AsyncWith)):
            yield from _always_run(node.body)
        else:
            yield node


def _assigned(body: Sequence[ast.stmt], name: str) -> list[ast.expr]:
    """What the statements of a block assign to `name`."""
    given = [told for node in body if (told := _assignment(node)) is not None]
    return [value for target, value in given if target == name]


def _assignment(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """The name that a statement assigns to, and the value."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            return name, value
    return None


def _choice(node: ast.expr, scope: Scope) -> tuple[ast.Name, Rebinding] | None:
    """The name that `node` makes a choice by, between it and something else, and the choice: `rate or 1.0`,
    `1.0 if rate is None else rate`."""
    match node:
        case ast.BoolOp(values=[ast.Name() as name, *others]):
            other = _made(others[0], name.id, scope) if len(others) == 1 else None
            is_or = isinstance(node.op, ast.Or)
            return name, Rebinding("true", None, () if is_or else other, other if is_or else ())
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked = _question(test, scope)
            if (asked is None or not _is_parameter(asked.name, scope)) and (kept := _kept(body, orelse, scope)):
                return kept
            if asked is not None:
                then, otherwise = (_made(arm, asked.name, scope) for arm in (body, orelse))
                name = ast.copy_location(ast.Name(asked.name, ast.Load()), test)
                return name, _rebinding(asked, then, otherwise)
    return None


def _kept(body: ast.expr, orelse: ast.expr, scope: Scope) -> tuple[ast.Name, Rebinding] | None:
    """The parameter in one arm of a conditional expression with a constant in the other, `mask if self.masks else
    None`, and what it is whatever the test says: the constant, where the parameter is that too."""
    for own, other in ((body, orelse), (orelse, body)):
        known = constant(other, scope)
        if isinstance(own, ast.Name) and _is_parameter(own.id, scope) and known is not None:
            return (own, Rebinding("equal", known[0], known, None)) if isinstance(known[0], PLAIN) else None
    return None


def _is_parameter(name: str, scope: Scope) -> bool:
    return any(bound.kind == "parameter" for bound in scope.bindings.get(name, ()))


def _made(value: ast.expr, name: str, scope: Scope) -> tuple[Any, ...] | None:
    """What `name` becomes where it is given `value`, as in a `Rebinding`."""
    match value:
        case ast.Name(id=own) if own == name:
            return ()
        case ast.List(elts=[ast.Name(id=own)]) if own == name:
            return (LISTED,) if not is_refilled(name, scope) else None
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Name(id=own))]) if own == name:
            return (EACH,) if not is_refilled(name, scope) else None
    known = constant(value, scope)
    if known is not None and isinstance(known[0], list):
        return known if not is_refilled(name, scope) else None
    return known if known is not None and isinstance(known[0], PLAIN) else None


def is_refilled(name: str, scope: Scope) -> bool:
    """Whether a function may give a list that it calls `name` other elements."""
    return name in refilled(scope)


def refilled(scope: Scope) -> Counter[str]:
    """The names of lists that a function may give other elements, and in how many places."""
    if scope.refilled is None:
        scope.refilled = Counter(_refilled(scope.node))
    return scope.refilled


def _refilled(function: ast.AST) -> Iterator[str]:
    """The names of lists of which a function calls a method that changes them, or assigns or deletes elements."""
    for node in walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _REFILLS:
                yield name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name


def _rebinding(asked: _Question, then: tuple[Any, ...] | None, otherwise: tuple[Any, ...] | None) -> Rebinding:
    if not asked.holds:
        then, otherwise = otherwise, then
    if asked.also is not None and then != otherwise:
        # Where this part holds of `and`, another one may not, and where it does not of `or`, another one may.
        leaves_open = asked.holds is (asked.also is ast.And)
        then, otherwise = (None, otherwise) if leaves_open else (then, None)
    return Rebinding(asked.kind, asked.value, then, otherwise)


def _question(test: ast.expr, scope: Scope) -> _Question | None:
    """What a test asks of a name, if it asks something of one."""
    match test:
        case ast.Name(id=name):
            return _Question(name, "true", None, holds=True)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            asked = _question(inner, scope)
            return asked._replace(holds=not asked.holds) if asked is not None and asked.also is None else None
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds], keywords=[]):
            told_of = _built_in(kinds, scope)
            return _Question(name, "is", told_of, holds=True) if told_of else None
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]),
            ops=[operator],
            comparators=[ast.Constant(value=0)],
        ):
            is_empty = isinstance(operator, ast.Eq)
            compares = is_empty or isinstance(operator, (ast.Gt, ast.NotEq))
            return _Question(name, "true", None, holds=not is_empty) if compares else None
        case ast.Compare(left=ast.Name(id=name), ops=[operator], comparators=[other]):
            known = constant(other, scope)
            told = compared(operator, known[0]) if known is not None else None
            return _Question(name, told[0], known[0], told[1]) if known is not None and told is not None else None
        case ast.BoolOp(op=operator, values=[first, *_]):
            asked = _question(first, scope)
            return asked._replace(also=type(operator)) if asked is not None and asked.also is None else None
    return None


def _built_in(kinds: ast.expr, scope: Scope) -> list[str]:
    """The names of Python's own classes in `isinstance(x, kinds)`, where it is known whether a constant is one."""
    named = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    found = [one.id for one in named if isinstance(one, ast.Name) and one.id in BUILT_IN and scope.home(one.id) is None]
    return found if len(found) == len(named) and scope.home("isinstance") is None else []
