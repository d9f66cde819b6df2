"""The statements of a file -> its tree, with what is around each node, and where names and attributes are read."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children, walk
from torchdet_lint.program.effects import STARTED
from torchdet_lint.program.syntax.shapes import FUNCTIONS, functions_in, last_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Tree:
    """The tree of one file."""

    def __init__(self, path: str, statements: Sequence[ast.stmt]) -> None:
        self.path = path
        self._statements = statements
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: dict[int, list[ast.Call]] = {}
        self._calls_in: dict[str, dict[str, list[ast.Call]]] = {}
        self._names: dict[ast.AST, dict[str, list[ast.expr]]] = {}
        self._globals: dict[ast.AST, set[str]] = {}
        self._bound: dict[ast.AST | None, dict[str, list[ast.expr | None]]] = {}
        self._at_top: dict[str, list[ast.Name]] | None = None
        # By attribute, where it is read.
        self.attributes: dict[str, list[ast.Attribute]] = {}
        self.functions = {name: node for name, node in functions_in(statements) if isinstance(node, FUNCTIONS)}
        for statement in statements:
            for node in walk(statement):
                if isinstance(node, ast.Call):
                    self.calls.setdefault(node.lineno, []).append(node)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    self.attributes.setdefault(node.attr, []).append(node)
                self.parents.update(dict.fromkeys(children(node), node))

    def calls_in(self, name: str) -> dict[str, list[ast.Call]]:
        """The calls in a function, or at top level, by the word that is called."""
        if name not in self._calls_in:
            found = self._calls_in[name] = {}
            for node in self._nodes_in(name):
                if isinstance(node, ast.Call):
                    found.setdefault(last_word(node.func), []).append(node)
        return self._calls_in[name]

    def _nodes_in(self, name: str) -> Iterator[ast.AST]:
        if name == STARTED:
            outside = (one for one in self._statements if not isinstance(one, (*FUNCTIONS, ast.ClassDef)))
            return (node for one in outside for node in walk(one))
        function = self.functions.get(name)
        return walk(function) if function is not None else iter(())

    def call_at(self, row: int, column: int, word: str) -> ast.Call | None:
        """The one call of a `word` that begins at a row and a column."""
        found = [
            call
            for call in self.calls.get(row, ())
            if call.col_offset == column and last_word(call.func) == word and not isinstance(call.func, ast.Call)
        ]
        return found[0] if len(found) == 1 else None

    def around(self, node: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions around `node`, from the inside."""
        return [one for one in self._above(node) if isinstance(one, FUNCTIONS)]

    def names(self, function: ast.AST) -> dict[str, list[ast.expr]]:
        """The names that a function reads, or one within it, and where."""
        if function not in self._names:
            found = self._names[function] = {}
            for node in walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    found.setdefault(node.id, []).append(node)
        return self._names[function]

    def keeps(self, function: ast.AST, name: str) -> bool:
        """Whether a name that is bound in a function is no variable of the file."""
        if function not in self._globals:
            self._globals[function] = _globals_of(function)
        return name not in self._globals[function]

    def bound(self, function: ast.AST | None, name: str) -> list[ast.expr | None]:
        """What a name is bound to in a function, or in the file (None: anything)."""
        if function not in self._bound:
            found = self._bound[function] = {}
            roots = [function] if function is not None else self._statements
            for node in (one for root in roots for one in walk(root)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    above = self.parents.get(node)
                    plain = isinstance(above, ast.AnnAssign) or (
                        isinstance(above, ast.Assign) and node in above.targets
                    )
                    found.setdefault(node.id, []).append(above.value if plain else None)  # type: ignore[union-attr]
                elif isinstance(node, ast.arg):
                    found.setdefault(node.arg, []).append(None)
        return self._bound[function].get(name, [])

    def is_at_top(self, node: ast.AST) -> bool:
        """Whether `node` stands in no function and no class."""
        return not any(isinstance(one, (*FUNCTIONS, ast.ClassDef)) for one in self._above(node))

    def reads_at_top(self, name: str) -> list[ast.Name]:
        """Where what the top level calls `name` is read, anywhere in the file."""
        if self._at_top is None:
            self._at_top = {}
            for one in _flat(self._statements):
                own = _own(one) if isinstance(one, FUNCTIONS) else set()
                for node in walk(one):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
                        self._at_top.setdefault(node.id, []).append(node)
        return self._at_top.get(name, [])

    def reads_after(self, statement: ast.Assign, name: str) -> list[ast.Name]:
        """Where `name`, bound by `statement` in a function, is read afterwards, there or in a function within it; what
        a loop binds may be read above, and what the top level binds anywhere in the file."""
        around = self.around(statement)
        if not around:
            return self.reads_at_top(name)
        loops = any(isinstance(one, (ast.For, ast.AsyncFor, ast.While)) for one in self._above(statement))
        last = 0 if loops else statement.end_lineno or 0
        return [read for read in reads_in(around[-1], name) if read.lineno > last]

    def bound_anew(self, node: ast.AST, name: str) -> int:
        """The last row of the statement behind the one around `node`, in the same block, that binds `name` anew in
        every run; 0 where there is none."""
        statement = next((one for one in (node, *self._above(node)) if isinstance(one, ast.stmt)), None)
        block = _block_of(statement, self.parents.get(statement)) if statement is not None else []
        for one in block[block.index(statement) + 1 :] if statement in block else ():
            match one:
                case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name:
                    return one.end_lineno or 0
                case ast.Assign() | ast.AnnAssign() | ast.Expr():
                    continue
            break
        return 0

    def qualified(self, node: ast.AST) -> str:
        """The name of the function in which `node` stands, with those of the classes and functions around that; empty
        where it stands in none."""
        around = [one for one in self._above(node) if isinstance(one, (*FUNCTIONS, ast.ClassDef))]
        if not around or isinstance(around[0], ast.ClassDef):
            return ""
        return ".".join(one.name for one in reversed(around))

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)


def reads_in(function: ast.AST, name: str) -> list[ast.Name]:
    """Where `name` is read in a function, or in one within it."""
    return [
        node
        for node in walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _block_of(statement: ast.stmt, parent: ast.AST | None) -> list[ast.stmt]:
    """The statements of the block in which a statement stands that `parent` holds."""
    blocks = (getattr(parent, field, ()) for field in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if isinstance(block, list) and statement in block), [])


def _flat(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file, with those of classes for these."""
    for one in statements:
        if isinstance(one, ast.ClassDef):
            yield from _flat(one.body)
        else:
            yield one


def _own(function: ast.AST) -> set[str]:
    """The parameters and variables of a function, and of those within it, that are nowhere those of the file."""
    nodes = list(walk(function))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return own - _globals_of(function)


def _globals_of(function: ast.AST) -> set[str]:
    """The names that a function, or one within it, says are those of the file."""
    return {name for node in walk(function) if isinstance(node, ast.Global) for name in node.names}
