"""A seed that stands at one place of a file -> its text as another place can read it."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, TypeGuard

from torchdet_lint.dataflow.seeding.ordered import Stores, as_member, namespaces, root_of, start_of
from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.skeleton import imported
from torchdet_lint.prefilter.syntax import children, walk

if TYPE_CHECKING:
    from torchdet_lint.dataflow.seeding.call_chain import CallChain, Function, Site
    from torchdet_lint.dataflow.seeding.ordered import Seeding


class ReadableSeeds:
    """What the places of one file can read of the seeds in it."""

    def __init__(self, chains: CallChain, text: str) -> None:
        self.chains = chains
        self.text = text
        self._known_stores: dict[ast.AST, dict[str, set[ast.stmt]]] = {}
        self._known_binders: dict[tuple[ast.AST, str, str], Stores] = {}
        self._known_names: dict[ast.AST, set[str]] = {}

    def at(self, seeding: Seeding, site: Site, place: Site) -> str:
        """The seed that `seeding` is given, as `place` can read it; empty where it cannot, where that is a literal, and
        where it may be `None`."""
        root = root_of(seeding.value)
        if seeding.value is None or root is None or self.perhaps(seeding.call):
            return ""
        here = site.function is place.function
        if not here and (site.function is not None or self.bound_inside(place, root) or self._is_guarded(root)):
            return ""
        text = ast.unparse(seeding.value)
        return self.quoted(text) if self._bound_before(text, root, site, seeding.call) else ""

    def quoted(self, text: str) -> str:
        """An expression of the file, in the quotes that the file has there."""
        other, file = text.replace("'", '"'), self.text
        return other if text not in file and (other in file or file.count('"') > file.count("'")) else text

    def perhaps(self, call: ast.Call, unless: str = "") -> bool:
        """Whether `call` runs on some condition other than the main guard, and than one that speaks of `unless`."""
        around: ast.AST | None = self.chains.parents.get(call)
        while around is not None and not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(around, ast.match_case):
                return True
            if isinstance(around, ast.If) and not is_main_guard(around):
                excused = unless and unless in ast.unparse(around.test)
                if not excused:
                    return True
            around = self.chains.parents.get(around)
        return False

    def _bound_before(self, text: str, root: str, site: Site, seeding: ast.Call) -> bool:
        """Whether `text`, whose first name is `root`, is bound above `site`, and there is what it is at `seeding`."""
        function = site.function
        stores = self._stores(function, text, root) if function is not None else Stores(())
        known = function is not None and any(
            node.arg == root for node in walk(function.args) if isinstance(node, ast.arg)
        )
        if not stores and not known:
            assert self.chains.tree is not None
            stores = self._stores(self.chains.tree, text, root)
            if function is not None:
                return bool(stores) or root in self._imports_at_top
        place = start_of(site.node)
        if not (stores or known) and root in self._imports_at_top:
            return self._imports_at_top[root] < place
        if stores.between(place, start_of(seeding)) or stores.hold(self.chains.around(site.node)):
            return False
        return known or (stores.first_end is not None and stores.first_end < place)

    @functools.cached_property
    def _imports_at_top(self) -> dict[str, tuple[int, int]]:
        """The names that statements at top level import, each with the place where the first of these starts."""
        found: dict[str, tuple[int, int]] = {}
        for statement in self.chains.tree.body if self.chains.tree is not None else ():
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for name, _ in imported(statement):
                    found.setdefault(name, start_of(statement))
        return found

    def _is_guarded(self, name: str) -> bool:
        """Whether `name` is bound in a main guard alone: where another file imports this one, it is not."""
        assert self.chains.tree is not None

        def is_open(statement: ast.stmt) -> bool:
            return not any(map(is_main_guard, self.chains.around(statement)))

        return not self._stores(self.chains.tree, name, name).any(is_open)

    def _stores(self, body: ast.AST, text: str, root: str) -> Stores:
        """The statements of `body` that give `root`, or the attribute `text` of it, a value."""
        if body not in self._known_stores:
            found: dict[str, set[ast.stmt]] = {}
            queue = children(body)
            spaces = namespaces(body)
            while queue:
                node = queue.pop()
                if _stores(node):
                    found.setdefault(ast.unparse(as_member(node, spaces)), set()).add(self._statement(node))
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                    queue.extend(children(node))
            self._known_stores[body] = found
        if (body, text, root) not in self._known_binders:
            known = self._known_stores[body]
            self._known_binders[body, text, root] = Stores(known.get(text, set()) | known.get(root, set()))
        return self._known_binders[body, text, root]

    def _statement(self, node: ast.AST) -> ast.stmt:
        return next(one for one in self.chains.around(node) if isinstance(one, ast.stmt))

    def bound_inside(self, place: Site, name: str) -> bool:
        """Whether a function around `place` has a `name` of its own."""
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return any(name in self._names_of(one) for one in self.chains.around(place.node) if isinstance(one, functions))

    def _names_of(self, function: Function) -> set[str]:
        """The parameters and the names that are bound in a function, those of functions in it too."""
        if function not in self._known_names:
            nodes = list(walk(function))
            stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            self._known_names[function] = stored | {node.arg for node in nodes if isinstance(node, ast.arg)}
        return self._known_names[function]


def _stores(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        return False
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
