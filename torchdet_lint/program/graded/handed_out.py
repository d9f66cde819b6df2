"""A function that makes an object and gives it back -> whether the code in sight only applies the object."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children, walk
from torchdet_lint.program.effects import STARTED
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import FUNCTIONS, functions_in, last_word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from torchdet_lint.program.files import ProjectFiles

# An object goes through so many functions at most.
_DEPTH = 4


class HandedOut:
    """Follows objects through the names of functions, the attributes of what makes them, what gives them back, and what
    they are handed to."""

    def __init__(
        self,
        called: Mapping[tuple[str, int], set[tuple[str, str]]],
        keeping: Collection[str],
        settled: Collection[str],
        project: ProjectFiles,
        started: str = "",
    ) -> None:
        """`called` are the functions, by file and name, that the calls of a row of a file call; `keeping` the last
        words of what gives back the object that it is given, or of which it is a method; `settled` the methods that
        run nothing of a layer; and `started` the file of the only program, whose top level nothing else reads."""
        self._called = called
        self._keeping = keeping
        self._settled = settled
        self._project = project
        self._started = started
        self._trees: dict[str, _Tree] = {}
        self._seen: set[ast.expr] = set()
        # The attributes that keep what was followed last.
        self.kept: set[str] = set()

    def only_applied(self, path: str, maker: str, class_: str) -> bool:
        """Whether each object of `class_` that the function or method `maker` of a file makes is only applied: there,
        where that gives it back, in the functions that it is handed to, and where the file reads the attribute that
        keeps it."""
        self._seen.clear()
        self.kept.clear()
        tree = self._tree(path)
        made = tree.calls_in(maker).get(class_, ())
        return bool(made) and all(self._applied(tree, node, _DEPTH) for node in made)

    @cached_property
    def _sites(self) -> dict[tuple[str, str], list[tuple[str, int]]]:
        """The rows that call each function."""
        found: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for site, keys in self._called.items():
            for key in keys:
                found.setdefault(key, []).append(site)
        return found

    def _tree(self, path: str) -> _Tree:
        if path not in self._trees:
            self._trees[path] = _Tree(path, parsed_body(self._project.text(path)))
        return self._trees[path]

    def _applied(self, tree: _Tree, node: ast.expr, depth: int) -> bool:
        """Whether the object that is the value of `node` is only applied."""
        match tree.parents.get(node):
            case ast.Call(func=function) as call:
                return node is function or self._taken(tree, node, "", call, depth)
            case ast.keyword(arg=str() as name) as given:
                taker = tree.parents[given]
                return isinstance(taker, ast.Call) and self._taken(tree, node, name, taker, depth)
            case ast.Attribute(attr=name) as method:
                moved = tree.parents.get(method)
                if not isinstance(moved, ast.Call) or moved.func is not method:
                    # What an object keeps is asked for its sizes.
                    return isinstance(node, ast.Attribute) and name not in ("forward", "__call__")
                return self._applied(tree, moved, depth) if name in self._keeping else name in self._settled
            case ast.Assign(targets=[ast.Name(id=name)]) as statement if (
                tree.around(statement) or tree.path == self._started
            ):
                return all(self._followed(tree, read, depth) for read in tree.reads_after(statement, name))
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
                self.kept.add(name)
                return all(self._followed(tree, read, depth) for read in tree.attributes.get(name, ()))
            case ast.Return() as given:
                return self._given_back(tree, given, depth)
            case ast.Expr() | ast.Compare():
                return True
        return False

    def _followed(self, tree: _Tree, read: ast.expr, depth: int) -> bool:
        if read in self._seen:
            return True
        self._seen.add(read)
        return self._applied(tree, read, depth)

    def _taken(self, tree: _Tree, node: ast.expr, name: str, call: ast.Call, depth: int) -> bool:
        """Whether what `call` calls only applies its argument `node`, called `name`, or gives it back for that."""
        word = last_word(call.func)
        if word in self._keeping:
            return self._applied(tree, call, depth)
        found = [key for key in self._called.get((tree.path, call.lineno), ()) if key[1] == word]
        if len(found) != 1 or not depth or any(isinstance(one, ast.Starred) for one in call.args):
            return False
        there = self._tree(found[0][0])
        function = there.functions.get(word)
        if function is None:
            return False
        if not name:
            parameters = [*function.args.posonlyargs, *function.args.args]
            at = call.args.index(node)
            name = parameters[at].arg if at < len(parameters) else ""
        reads = _reads(function, name)
        return bool(reads) and all(self._followed(there, read, depth - 1) for read in reads)

    def _given_back(self, tree: _Tree, given: ast.Return, depth: int) -> bool:
        """Whether all functions that call the one that gives an object back only apply it."""
        function = tree.around(given)[0]
        if not depth or tree.functions.get(function.name) is not function:
            return False
        sites = self._sites.get((tree.path, function.name), ())
        for path, row in sites:
            there = self._tree(path)
            made = [one for one in there.calls.get(row, ()) if last_word(one.func) == function.name]
            if not made or not all(self._applied(there, one, depth - 1) for one in made):
                return False
        return bool(sites)


class _Tree:
    """The tree of one file."""

    def __init__(self, path: str, statements: Sequence[ast.stmt]) -> None:
        self.path = path
        self._statements = statements
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: dict[int, list[ast.Call]] = {}
        self._calls_in: dict[str, dict[str, list[ast.Call]]] = {}
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

    def around(self, node: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions around `node`, from the inside."""
        return [one for one in self._above(node) if isinstance(one, FUNCTIONS)]

    def reads_after(self, statement: ast.Assign, name: str) -> list[ast.Name]:
        """Where `name`, bound by `statement` in a function, is read afterwards, there or in a function within it; what
        a loop binds may be read above, and what the top level binds anywhere in the file."""
        around = self.around(statement)
        if not around:
            return [read for one in _global(self._statements, name) for read in _reads(one, name)]
        loops = any(isinstance(one, (ast.For, ast.AsyncFor, ast.While)) for one in self._above(statement))
        last = 0 if loops else statement.end_lineno or 0
        return [read for read in _reads(around[-1], name) if read.lineno > last]

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)


def _reads(function: ast.AST, name: str) -> list[ast.Name]:
    """Where `name` is read in a function, or in one within it."""
    return [
        node
        for node in walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _global(statements: Sequence[ast.stmt], name: str) -> Iterator[ast.stmt]:
    """The statements of a file, or of a class, in which `name` stands for what the top level binds: without the
    functions that bind it themselves."""
    for one in statements:
        if isinstance(one, ast.ClassDef):
            yield from _global(one.body, name)
        elif not (isinstance(one, FUNCTIONS) and _binds(one, name)):
            yield one


def _binds(function: ast.AST, name: str) -> bool:
    """Whether `name` is a parameter or a variable of a function, or of one within it, and nowhere that of the file."""
    nodes = list(walk(function))
    if any(isinstance(node, ast.Global) and name in node.names for node in nodes):
        return False
    stores = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return name in stores or any(isinstance(node, ast.arg) and node.arg == name for node in nodes)
