"""The names that a file binds -> those that stand for a module, or for a function that seeds workers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.module.tree import named_parameters
from torchdet_lint.prefilter.skeleton import SyntaxFault, imported, parsed
from torchdet_lint.prefilter.syntax import walk

if TYPE_CHECKING:
    import re

    import libcst as cst

    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


class BoundNames:
    """An index of the names of one file, for all of its fixes; made anew when more of the file is parsed."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._parsed = -1
        self._by_target: dict[str, dict[str, None]] = {}
        self._by_root: dict[str, list[Binding]] = {}
        self._inside: dict[int, list[tuple[str, list[Binding]]]] = {}
        self._worker_functions: list[str] | None = None
        self._worker_imports: list[str] | None = None

    def _index(self) -> None:
        if self._parsed == len(self.module.parsed):
            return
        self._parsed = len(self.module.parsed)
        self._by_target, self._by_root, self._inside, self._worker_imports = {}, {}, {}, None
        for name, bindings in self.module.scope.bindings.items():
            for binding in bindings:
                if binding.kind == "import":
                    self._by_target.setdefault(binding.target, {})[name] = None
                    self._by_root.setdefault(binding.target.partition(".")[0], []).append(binding)

    def of(self, target: str) -> list[str]:
        """The names that the file's top level gives to the module or attribute `target`."""
        self._index()
        return list(self._by_target.get(target, ()))

    def imports_of(self, root: str) -> list[Binding]:
        """The imports of the package `root` and of what is in it, at top level."""
        self._index()
        return self._by_root.get(root, [])

    def imported_inside(self, scope: Scope) -> list[tuple[str, list[Binding]]]:
        """The names of a function that only imports bind, and these imports, by name."""
        self._index()
        if id(scope) not in self._inside:
            self._inside[id(scope)] = [
                (name, bindings)
                for name, bindings in sorted(scope.bindings.items())
                if all(binding.kind == "import" for binding in bindings)
            ]
        return self._inside[id(scope)]

    def only_inside(self, name: str) -> bool:
        """Whether nothing but functions binds `name` in the file, and these by importing the module of that name, which
        the top level may import as well."""
        if name in self.module.scope.bindings:
            return False
        try:
            tree = parsed(self.module.text)
        except SyntaxFault:
            return False
        imports: set[str] = set()
        for node in walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.update(target for bound, target in imported(node) if bound == name)
            elif name in _bound_by(node):
                return False
        return imports == {name}

    def worker_functions(self, named: re.Pattern[str]) -> list[str]:
        """The functions of the file whose names are `named`, that seed what they run in and ask for one argument."""
        if self._worker_functions is None:
            self._worker_functions = []
            for _, node in self.module.load_functions(named.search):
                if (
                    node.params.params
                    and required_parameters(node.params) <= 1
                    and "seed" in self.module.code(node.body)
                ):
                    self._worker_functions.append(node.name.value)
        return self._worker_functions

    def worker_imports(self, named: re.Pattern[str]) -> list[str]:
        """What the file imports under such a name, by name."""
        self._index()
        if self._worker_imports is None:
            self._worker_imports = [
                name
                for name, bindings in sorted(self.module.scope.bindings.items())
                if named.search(name)
                and "seed" in name
                and all(binding.kind == "import" and not binding.conditional for binding in bindings)
            ]
        return self._worker_imports


def required_parameters(parameters: cst.Parameters) -> int:
    """How many arguments a function must be given."""
    return sum(parameter.default is None for parameter in named_parameters(parameters))


def _bound_by(node: ast.AST) -> list[str]:
    """The names that `node` itself, which is no import, binds."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [getattr(node, "name", "")] if isinstance(node, _NAMED) else []
