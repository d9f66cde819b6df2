"""A function that makes an object and gives it back -> whether the code in sight only applies the object."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from torchdet_lint.program.objects.trees import Tree, reads_in
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import last_word

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
        self._trees: dict[str, Tree] = {}
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

    def _tree(self, path: str) -> Tree:
        if path not in self._trees:
            self._trees[path] = Tree(path, parsed_body(self._project.text(path)))
        return self._trees[path]

    def _applied(self, tree: Tree, node: ast.expr, depth: int) -> bool:
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
            case ast.Assign(targets=[target]) as statement:
                return self._bound(tree, statement, target, depth)
            case ast.Tuple(elts=parts) as row if isinstance(back := tree.parents.get(row), ast.Return):
                return self._given_back(tree, back, depth, parts.index(node))
            case ast.Return() as given:
                return self._given_back(tree, given, depth)
            case ast.Expr() | ast.Compare():
                return True
        return False

    def _bound(self, tree: Tree, statement: ast.Assign, target: ast.expr, depth: int) -> bool:
        """Whether what `statement` binds to `target`, a name or an attribute of `self`, is only applied."""
        match target:
            case ast.Name(id=name) if tree.around(statement) or tree.path == self._started:
                return all(self._followed(tree, read, depth) for read in tree.reads_after(statement, name))
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                self.kept.add(name)
                return all(self._followed(tree, read, depth) for read in tree.attributes.get(name, ()))
        return False

    def _unpacked(self, tree: Tree, call: ast.Call, place: int, depth: int) -> bool:
        """The same of what stands at a `place` of what `call` gives, which a statement takes apart."""
        match tree.parents.get(call):
            case ast.Assign(targets=[ast.Tuple(elts=parts)]) as statement if len(parts) > place and not any(
                isinstance(one, ast.Starred) for one in parts
            ):
                return self._bound(tree, statement, parts[place], depth)
        return False

    def _followed(self, tree: Tree, read: ast.expr, depth: int) -> bool:
        if read in self._seen:
            return True
        self._seen.add(read)
        return self._applied(tree, read, depth)

    def _taken(self, tree: Tree, node: ast.expr, name: str, call: ast.Call, depth: int) -> bool:
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
        reads = reads_in(function, name)
        return bool(reads) and all(self._followed(there, read, depth - 1) for read in reads)

    def _given_back(self, tree: Tree, given: ast.Return, depth: int, place: int = -1) -> bool:
        """Whether all functions that call the one that gives an object back, at a `place` among others, only apply
        it."""
        function = tree.around(given)[0]
        if not depth or tree.functions.get(function.name) is not function:
            return False
        sites = self._sites.get((tree.path, function.name), ())
        for path, row in sites:
            there = self._tree(path)
            made = [one for one in there.calls.get(row, ()) if last_word(one.func) == function.name]
            applied = (
                self._applied(there, one, depth - 1) if place < 0 else self._unpacked(there, one, place, depth - 1)
                for one in made
            )
            if not made or not all(applied):
                return False
        return bool(sites)
