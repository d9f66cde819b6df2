"""The constants that a function or an object is given -> what of it does not run."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.catalogue.conditions import condition_holds
from torchdet_lint.dataflow.workers.project_file import spans, way_to
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import combined, defaults_of, respelling, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torchdet_lint.catalogue.facts import Draw
    from torchdet_lint.dataflow.workers.project_file import Function
    from torchdet_lint.dataflow.workers.scopes import Scope

_DEEP = 4
# Before the name of a flag among constants: it is known whether that holds, not what it is.
_FLAG = "?"


class Constants:
    """Which parameters and attributes are constants, and what of a function does not run where they are; each function
    is walked only once."""

    def __init__(self) -> None:
        self._read = functools.cache(_reading)

    def given(self, scope: Scope) -> dict[str, object]:
        """The parameters of the function of `scope` that are given a constant and keep it, and it."""
        return _Given(self._read).of(scope)

    def attributes(self, attributes: Mapping[str, Sequence[tuple[ast.expr, Scope]]]) -> dict[str, object]:
        """Those of the attributes of an object that are evidently one constant, as `self.mode`, and it."""
        found = {}
        given = _Given(self._read)
        for name, bounds in attributes.items():
            told = [given.value(*bound) for bound in bounds]
            if told and told[0] is not None and all(one == told[0] for one in told):
                found[f"self.{name}"] = told[0][0]
        return found

    def dead_in_call(self, function: Function, given: Mapping[str, tuple[ast.expr, Scope]]) -> tuple[ast.AST, ...]:
        """What of `function` does not run where its parameters are the constants that it is `given`, by whichever name
        the caller was given them, or that it has by default."""
        inner = _Given(self._read)
        values = {name: _constant(value) for name, value in defaults_of(function.args)}
        values |= {name: inner.value(*bound) for name, bound in given.items()}
        return self.dead(function, {name: value[0] for name, value in values.items() if value is not None})

    def dead(self, function: Function, constants: Mapping[str, object]) -> tuple[ast.AST, ...]:
        """What of `function` does not run where what is written `mode` or `self.mode` is one of the `constants`: arms
        of an `if`, what follows one that leaves, and parts of reading."""
        if not constants:
            return ()
        reading = self._read(function)
        known = {name: constants[name] for name in reading.asked & constants.keys()}
        if not known:
            return ()
        for name, value in reading.flags:
            if (holds := _holds(value, known)) is not None:
                known[_FLAG + name] = holds
        return tuple(_dead(reading, known))


class _Given:
    """The constants that scopes are given, worked out once for each of them."""

    def __init__(self, read: Callable[[Function], _Reading]) -> None:
        self._read = read
        self._known: dict[tuple[int, int], dict[str, object]] = {}

    def of(self, scope: Scope, depth: int = 0) -> dict[str, object]:
        """As `Constants.given`."""
        key = (id(scope), depth)
        if key not in self._known:
            given = scope.given or {}
            changed = scope.left_open
            if given and scope.function is not None:
                changed |= self._read(scope.function).bound
            found = ((name, self.value(*bound, depth)) for name, bound in given.items() if name not in changed)
            self._known[key] = {name: told[0] for name, told in found if told is not None}
        return self._known[key]

    def value(self, value: ast.expr, scope: Scope, depth: int = 0) -> tuple[object] | None:
        """The constant that `value` evidently is, in a tuple."""
        if isinstance(value, ast.Attribute):
            own = scope.instance.constants if scope.instance is not None else {}
            return (own[name],) if (name := dotted_name(value)) in own else None
        if isinstance(value, ast.Name) and isinstance(scope.function, ast.FunctionDef):
            asked = value.id in self._read(scope.function).asked
            if asked and (compared := _held_to(value, scope.function)) is not None:
                return compared
        if (respelt := respelling(value)) is not None and depth <= _DEEP:
            told = self.value(respelt[0], scope, depth + 1)
            return (getattr(told[0], respelt[1])(),) if told is not None and isinstance(told[0], str) else None
        if depth > _DEEP or scope.given is None or scope.function is None:
            return _constant(value)
        if isinstance(value, ast.Name):
            known = self.of(scope, depth + 1)
            return (known[value.id],) if value.id in known else None
        if isinstance(value, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            holds = _holds(value, self.of(scope, depth + 1))
            return None if holds is None else (holds,)
        return _constant(value)


def _held_to(name: ast.Name, function: ast.FunctionDef) -> tuple[object] | None:
    """The constant that `name` is where it stands, by the `if` around it: `if mode == "test": Rows(mode)`."""
    found: tuple[object] | None = None
    for _, around in way_to(name, function):
        if isinstance(around, ast.If) and spans(around.body, name):
            match around.test:
                case ast.Compare(left=ast.Name(id=name.id), ops=[ast.Eq()], comparators=[ast.Constant(value=value)]):
                    found = (value,)
    return found


def is_left_to_chance(draw: Draw, call: ast.Call) -> bool:
    """Whether what `call` makes draws, by the conditions of its row: `RandomRotation((90, 90))` always turns alike."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return True
    given = dict(zip(draw.parameters, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords if one.arg is not None}
    for condition in draw.when:
        node = given.get(condition.argument)
        told = _literal(node) if node is not None else None
        known, value = told is not None, told[0] if told is not None else None
        if not condition_holds(condition, passed=node is not None, opaque=False, known=known, value=value):
            return False
    return True


def _literal(node: ast.expr) -> tuple[object] | None:
    """What `node` is if that is written down, in a 1-tuple, or None."""
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _constant(value: ast.expr) -> tuple[object] | None:
    return (value.value,) if isinstance(value, ast.Constant) else None


class _Reading(NamedTuple):
    """What a function binds, and what its conditions read and it never binds, as they are written; its flags, which are
    names that it binds once, to a condition; the expressions with a condition, and the blocks with an `if`."""

    bound: frozenset[str]
    asked: frozenset[str]
    flags: list[tuple[str, ast.expr]]
    expressions: list[ast.IfExp | ast.BoolOp]
    blocks: list[list[ast.stmt]]


def _reading(function: Function) -> _Reading:
    bound: set[str] = set()
    asked: set[str] = set()
    flags: dict[str, ast.expr | None] = dict.fromkeys(_not_local(function))
    expressions: list[ast.IfExp | ast.BoolOp] = []
    blocks: list[list[ast.stmt]] = []
    for node in walk(function):
        if isinstance(node, (ast.Name, ast.Attribute)):
            if not isinstance(node.ctx, ast.Load):
                name = dotted_name(node)
                if name in bound:
                    flags[name] = None
                bound.add(name)
            continue
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Compare() | ast.BoolOp() | ast.UnaryOp() as value):
                flags.setdefault(name, value)
                asked |= _names_in(value)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            expressions.append(node)
        if isinstance(node, (ast.If, ast.IfExp)):
            asked |= _names_in(node.test)
        elif isinstance(node, ast.BoolOp):
            asked |= _names_in(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, ())
            if isinstance(block, list) and any(isinstance(one, ast.If) for one in block):
                blocks.append(block)
    told = [(name, value) for name, value in flags.items() if value is not None]
    told.sort(key=lambda flag: flag[1].lineno)
    return _Reading(frozenset(bound), frozenset(asked - bound), told, expressions, blocks)


def _not_local(function: Function) -> Iterator[str]:
    """The names that a function binds which have a value before that."""
    for node in walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names


def _names_in(test: ast.expr) -> set[str]:
    return {dotted_name(node) for node in walk(test) if isinstance(node, (ast.Name, ast.Attribute))}


def _dead(reading: _Reading, constants: Mapping[str, object]) -> Iterator[ast.AST]:
    for node in reading.expressions:
        if isinstance(node, ast.BoolOp):
            decided = [_holds(value, constants) is isinstance(node.op, ast.Or) for value in node.values]
            yield from node.values[decided.index(True) + 1 :] if True in decided else ()
        elif (holds := _holds(node.test, constants)) is not None:
            yield node.orelse if holds else node.body
    for block in reading.blocks:
        yield from _dead_in(block, constants)


def _dead_in(block: Sequence[ast.stmt], constants: Mapping[str, object]) -> Iterator[ast.stmt]:
    """The statements of a block, or of the arms of an `if` in it, that do not run."""
    for place, node in enumerate(block):
        holds = _holds(node.test, constants) if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and holds is not None:
            runs, rest = (node.body, node.orelse) if holds else (node.orelse, node.body)
            yield from rest
            if runs and isinstance(runs[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                yield from block[place + 1 :]
                return


def _holds(test: ast.expr, constants: Mapping[str, object]) -> bool | None:
    """Whether `test` holds, as far as it asks for nothing but what the `constants` tell."""
    return combined(test, lambda part: _tells(part, constants))


def _tells(test: ast.expr, constants: Mapping[str, object]) -> bool | None:
    match test:
        case ast.Compare(left=ast.Name() | ast.Attribute() as left, ops=[op], comparators=[right]):
            try:
                allowed = ast.literal_eval(right)
            except (ValueError, TypeError):
                return None
            return _compares(constants[name], op, allowed) if (name := dotted_name(left)) in constants else None
        case ast.Call(func=ast.Attribute(value=owner, attr="startswith"), args=[ast.Constant(value=str() as start)]):
            value = constants.get(dotted_name(owner))
            return value.startswith(start) if isinstance(value, str) else None
        case ast.Name() | ast.Attribute():
            name = dotted_name(test)
            found = constants.get(_FLAG + name, constants.get(name))
            return bool(found) if name in constants or _FLAG + name in constants else None
    return None


def _compares(value: object, op: ast.cmpop, other: Any) -> bool | None:
    match op:
        case ast.Eq() | ast.Is():
            return bool(value == other)
        case ast.NotEq() | ast.IsNot():
            return bool(value != other)
        case ast.In() if isinstance(other, (tuple, list, set)):
            return value in other
        case ast.NotIn() if isinstance(other, (tuple, list, set)):
            return value not in other
    return None
