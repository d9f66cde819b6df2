"""The tree of a file -> where it binds what it reads at top level: nowhere, if it is a part of something, or below; and
what the arms of a function bind a name to."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.syntax import children, defaults_of, walk
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.program.syntax.scopes import NAMES, followed
from torchdet_lint.program.syntax.shapes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torchdet_lint.program.syntax.scopes import Scope

    Arms = tuple[int, ...]

_BINDS_OUTSIDE = ("global", "exec", "globals", "locals", "vars")
# What a shell adds to the builtins, and Python 2 had.
_ELSEWHERE = frozenset({
    "display", "get_ipython", "exit", "quit", "_", "In", "Out",
    "basestring", "cmp", "execfile", "long", "raw_input", "reduce", "reload", "unichr", "unicode", "xrange",
})  # fmt: skip
_KNOWN = _ELSEWHERE | BUILTINS


def is_part(tree: ast.Module) -> bool:
    """Whether the top level of a file reads a name that neither the file nor Python binds: started, it raises."""
    read = set(_read(tree))
    if not read.isdisjoint({"exec", "globals", "locals", "vars"}):
        return False
    unbound = {name for name in read if name not in _KNOWN and not name.startswith("__")}
    for node in walk(tree) if unbound else ():
        for name in _bound(node):
            if name == "*":
                return False
            unbound.discard(name)
        if not unbound:
            return False
    return bool(unbound)


def _bound(node: ast.AST) -> Iterable[str]:
    """The names that `node` binds itself, `*` for those that nobody knows."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0],)
    if isinstance(node, ast.Name):
        return (node.id,) if not isinstance(node.ctx, ast.Load) else ()
    if isinstance(node, ast.arg):
        return (node.arg,)
    if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return (node.name,) if node.name else ()
    if isinstance(node, ast.Global):
        return node.names
    return (node.rest,) if isinstance(node, ast.MatchMapping) and node.rest else ()


class FirstBound:
    """The rows of the statements at top level that first bind names; of no name where a function of the `text` may bind
    some. What is in functions is not looked at, and no statement before somebody asks for a name that those above it do
    not bind."""

    def __init__(self, body: list[ast.stmt], text: str) -> None:
        outside = any(True for word in _BINDS_OUTSIDE for _ in places(word, text))
        self._left = iter(body if not outside else ())
        self._rows: dict[str, int] = {}

    def is_below(self, name: str, row: int) -> bool:
        """Whether the file binds `name` only below `row`."""
        rows = self._rows
        while name not in rows:
            statement = next(self._left, None)
            if statement is None:
                return False
            self._note(statement)
        if rows[name] <= row:
            return False
        for statement in self._left:
            self._note(statement)
        return "*" not in rows

    def _note(self, statement: ast.stmt) -> None:
        rows, stack = self._rows, list[ast.AST]([statement])
        while stack:
            node = stack.pop()
            if isinstance(node, ast.alias):
                rows.setdefault(node.asname or node.name.partition(".")[0], statement.lineno)
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                rows.setdefault(node.name, min((statement.lineno, *(one.lineno for one in node.decorator_list))))
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                rows.setdefault(node.id, statement.lineno)
            stack.extend(children(node) if not isinstance(node, FUNCTIONS) else ())


class Picked:
    """What the statements of one function that are walked so far bind to single names."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._bound: dict[str, list[tuple[ast.expr, Arms]]] = {}
        self._known: dict[str, list[tuple[ast.expr, Arms]]] = {}

    def note(self, node: ast.stmt, branch: Arms) -> None:
        """Note a statement of a function that stands in the arms `branch`."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._bound.setdefault(node.targets[0].id, []).append((node.value, branch))

    def values(
        self, function: ast.expr, split: Callable[[ast.IfExp], list[tuple[ast.expr, Arms]]]
    ) -> list[tuple[ast.expr, Arms]]:
        """What `function` may be, each with its arms; nothing where the arms say nothing of it."""
        if not isinstance(function, ast.Name):
            return []
        name = function.id
        bound = self._bound.get(name, ())
        if not bound or len(bound) != len(self.scope.bindings.get(name, ())):
            return []
        if name not in self._known:
            self._known[name] = [
                (part, (*branch, *arms))
                for value, branch in bound
                for part, arms in (split(value) if isinstance(value, ast.IfExp) else [(value, ())])
            ]
        known = self._known[name]
        return known if len(known) > 1 and any(arms for _, arms in known) else []


class Table(NamedTuple):
    """The entries of a dictionary that is written out in `scope`, and the expression `key` that picks one."""

    key: ast.expr
    entries: list[tuple[ast.Constant, ast.expr]]
    scope: Scope


def table_of(function: ast.expr, scope: Scope) -> Table | None:
    """The table that `function` comes out of, as `NETS[name]`, `NETS.get(name)`, or a name for that; or None."""
    taken, where = followed(function, scope)
    match taken:
        case ast.Subscript(value=holder, slice=key):
            pass
        case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key], keywords=[]):
            pass
        case _:
            return None
    table, home = followed(holder, where)
    if where is not scope or not isinstance(table, ast.Dict) or not 1 < len(table.keys) <= NAMES:
        return None
    entries = [
        (one, value) for one, value in zip(table.keys, table.values, strict=True) if isinstance(one, ast.Constant)
    ]
    return Table(key, entries, home) if len(entries) == len(table.keys) else None


def _read(tree: ast.Module) -> Iterator[str]:
    """The names that a file reads at top level, outside of what runs only on a condition or when it is called."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, FUNCTIONS):
            stack += [*node.decorator_list, *(default for _, default in defaults_of(node.args))]
        elif isinstance(node, ast.AnnAssign):
            stack += [node.value] if node.value is not None else []
        elif isinstance(node, ast.If):
            stack.append(node.test)
        elif not isinstance(node, (ast.Lambda, ast.Try)):
            stack.extend(children(node))


def before_failure(body: list[ast.stmt], scope: Scope) -> list[ast.stmt]:
    """The statements of a main guard above the first that calls a function of the file with nothing at all, though that
    needs something: no run gets further."""
    bound: dict[str, list[ast.AST]] = {}
    if any(_called_with_nothing(statement) for statement in body):
        for node in walk(scope.node):
            for name in _bound(node):
                bound.setdefault(name, []).append(node)
    return list(itertools.takewhile(lambda one: not _needs_more(bound.get(_called_with_nothing(one), ())), body))


def _called_with_nothing(statement: ast.stmt) -> str:
    """The name that a statement calls with no arguments, and does no more; empty for another statement."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[])):
            return name
    return ""


def _needs_more(bound: Sequence[ast.AST]) -> bool:
    """Whether all that is `bound` to a name is one function, which has parameters without a default."""
    function = bound[0] if len(bound) == 1 else None
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    given = function.args
    return len(given.posonlyargs) + len(given.args) > len(given.defaults) or None in given.kw_defaults
