"""What a call prints -> whether it is nothing but times: differences of a clock, and what is worked out of them."""

from __future__ import annotations

import ast
import enum
import functools
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.syntax.shapes import FUNCTIONS, SIZES, last_word, statements_in
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope

# So many functions and names are followed, one within the other.
_DEEP = 12
# What makes one number or text of several times, or writes one in another way.
_WORKS_OUT = frozenset({
    "array", "average", "float", "format", "int", "item", "join", "max", "mean", "median", "min", "percentile",
    "quantile", "round", "sorted", "std", "stdev", "str", "sum", "tensor", "timedelta", "total_seconds", "tqdm",
})  # fmt: skip
_COUNTS = frozenset({"len", "range", "trange"})
_NUMBERS = "enumerate"
_GROWS = frozenset({"append", "extend"})
_ELAPSED = "elapsed_time"
_GLOBAL = lazy(r"(?m)^[ \t]+global[ \t]+([^#\n]+)")


class Kind(enum.IntEnum):
    """What a value is: the same in every run as far as is in sight, a time, or anything else."""

    CONSTANT = 0
    TIME = 1
    OTHER = 2


class Times:
    """The times that the functions of one file work out."""

    def __init__(self, names: Resolver) -> None:
        self.names = names
        self._given: dict[Scope, dict[str, list[ast.expr | None]]] = {}
        self._known: dict[tuple[Scope, str], Kind] = {}
        self._open: list[tuple[Scope, str]] = []

    def shown(self, values: Iterable[ast.expr], scope: Scope) -> Kind:
        """What the values are that a call in `scope` shows."""
        return self._all(values, scope, _DEEP)

    @functools.cached_property
    def _globals(self) -> frozenset[str]:
        """The names that functions of the file may bind at its top level."""
        found = _GLOBAL.findall("".join(self.names.scopes.hollow.lines))
        return frozenset(name.strip() for names in found for name in names.split(","))

    def _all(self, parts: Iterable[ast.expr], scope: Scope, depth: int) -> Kind:
        found = Kind.CONSTANT
        for part in parts:
            found = max(found, self._kind(part, scope, depth))
            if found is Kind.OTHER:
                break
        return found

    def _kind(self, node: ast.expr, scope: Scope, depth: int) -> Kind:
        if depth <= 0:
            return Kind.OTHER
        match node:
            case ast.Constant():
                return Kind.CONSTANT
            case ast.Name(id=name):
                return self._named(name, scope, depth - 1)
            case ast.Call():
                return self._called(node, scope, depth - 1)
            case ast.Attribute(attr=attribute) if attribute in SIZES:
                return Kind.CONSTANT
            case ast.Subscript(value=value):
                return self._kind(value, scope, depth - 1)
        parts = _parts(node)
        return self._all(parts, scope, depth - 1) if parts is not None else Kind.OTHER

    def _named(self, name: str, scope: Scope, depth: int) -> Kind:
        home = scope.home(name)
        if home is None or home.kind == "class" or (home.kind == "module" and name in self._globals):
            return Kind.OTHER
        key = (home, name)
        if self._open[-1:] == [key]:
            # It is made of itself: `total = total + end`.
            return Kind.CONSTANT
        if key not in self._known:
            self._known[key] = Kind.OTHER
            self._open.append(key)
            given = self._assigned(home).get(name, [None])
            bound = {one.kind for one in home.bindings[name]}
            known = None not in given and bound.isdisjoint(("import", "parameter", "def", "class"))
            values = [value for value in given if value is not None]
            self._known[key] = self._all(values, home, depth) if known else Kind.OTHER
            self._open.pop()
        return self._known[key]

    def _called(self, call: ast.Call, scope: Scope, depth: int) -> Kind:
        word = last_word(call.func)
        if word == _ELAPSED or not self.names.words.clocks.isdisjoint(self.names.resolve(call.func, scope)):
            return Kind.TIME
        if word in _COUNTS:
            return Kind.CONSTANT
        if word in _WORKS_OUT:
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            of_module = isinstance(owner, ast.Name) and scope.is_of_others(owner.id)
            owners = [owner] if owner is not None and not of_module else []
            return self._all((*owners, *call.args, *(one.value for one in call.keywords)), scope, depth)
        function = self._function(call.func, scope)
        return self._returned(function, depth) if function is not None else Kind.OTHER

    def _function(self, function: ast.expr, scope: Scope) -> Scope | None:
        """The function of the file that a call by its name runs."""
        home = scope.home(function.id) if isinstance(function, ast.Name) else None
        bounds = home.bindings[function.id] if home is not None and isinstance(function, ast.Name) else ()
        if len(bounds) != 1 or bounds[0].kind != "def":
            return None
        found = self.names.scopes.function(bounds[0].target)
        return found if found is not None and found.kind == "function" else None

    def _returned(self, function: Scope, depth: int) -> Kind:
        key = (function, "")
        if key not in self._known:
            self._known[key] = Kind.OTHER
            if isinstance(function.node, FUNCTIONS) and not function.node.decorator_list:
                given = [one.value for one in statements_in(function.node.body) if isinstance(one, ast.Return)]
                values = [value for value in given if value is not None]
                self._known[key] = self._all(values, function, depth) if values else Kind.OTHER
        return self._known[key]

    def _assigned(self, scope: Scope) -> dict[str, list[ast.expr | None]]:
        """The values that the names of a scope are given, or that are put into their lists; None: not in sight."""
        if scope not in self._given:
            found = self._given[scope] = {}
            for statement in statements_in(list(scope.node.body)) if hasattr(scope.node, "body") else ():
                for name, value in _given(statement):
                    found.setdefault(name, []).append(value)
            for name in _changed(scope.node, self.names.words.tells):
                found.setdefault(name, []).append(None)
        return self._given[scope]


def _parts(node: ast.expr) -> Sequence[ast.expr] | None:
    """The values of which an expression works out its own; None: it is no such expression."""
    match node:
        case ast.JoinedStr(values=values) | ast.BoolOp(values=values):
            return values
        case ast.Tuple(elts=values) | ast.List(elts=values):
            return values
        case ast.FormattedValue(value=value) | ast.UnaryOp(operand=value) | ast.Starred(value=value):
            return [value]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.IfExp(body=left, orelse=right):
            return [left, right]
    return None


def _given(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement gives values, and these."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _bound(target, value)
        case ast.For(target=ast.Tuple(elts=[number, target]), iter=ast.Call(func=ast.Name(id=word), args=[value])) if (
            word == _NUMBERS
        ):
            yield from _bound(number, ast.Constant(0))
            yield from _bound(target, value)
        case ast.AugAssign(target=target, value=value) | ast.For(target=target, iter=value):
            yield from _bound(target, value)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield from _bound(target, value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=values)):
            for value in values:
                yield name, value if method in _GROWS else None
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            for name in names:
                yield name, None
        case ast.With(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _bound(item.optional_vars, None)


def _changed(body: ast.AST, tells: Collection[str]) -> Iterator[str]:
    """The names that an expression binds, and the lists that a call is handed which may change them."""
    quiet = _WORKS_OUT | _COUNTS | _GROWS | {*tells}
    lists, lent = set[str](), set[str]()
    for node in walk(body):
        match node:
            case ast.NamedExpr(target=ast.Name(id=name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if any(isinstance(part, ast.List) for part in walk(value)):
                    lists.add(name)
            case ast.Call() if last_word(node.func) not in quiet:
                given = (*node.args, *(one.value for one in node.keywords))
                lent.update(one.id for one in given if isinstance(one, ast.Name))
    yield from sorted(lists & lent)


def _bound(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        pairs = len(values) == len(target.elts)
        for place, part in enumerate(target.elts):
            yield from _bound(part, values[place] if pairs else value)
    elif isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        yield target.value.id, value
