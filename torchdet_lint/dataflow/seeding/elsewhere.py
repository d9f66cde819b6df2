"""What a file calls of other files of the project -> whether that seeds torch, at once or in a method later."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.neighbours import taken_whole
from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.seeding.later_seeds import CONSTRUCTORS
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module

# So far what a function calls is followed from file to file, and so many files are read for it.
_DEEP = 3
_FILES = 24
_SEEDS = "seed"


class Elsewhere:
    """The files that one file imports from, and what they do to torch's generator."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.chains = module.shared(CallChain)
        self.conventions = module.library.facts.conventions
        self._rows = {name for row in module.library.facts.seeds if "torch" in row.seeds for name in row.names}
        self._known: dict[tuple[str, bool], bool] = {}

    @functools.cached_property
    def modules(self) -> list[Module]:
        """The files of the project from which this one imports something, directly or through another one."""
        found: dict[str, Module] = {}
        level = [self.module]
        for _ in range(2):
            named = [(one, name) for one in level for name in _named(one.shared(CallChain))]
            level = []
            for one, name in named:
                place = _defined(one, name) if len(found) < _FILES else None
                if place is not None and place[0].source.path not in found:
                    found[place[0].source.path] = place[0]
                    level.append(place[0])
        return list(found.values())

    def seeds(self, call: ast.Call, *, later: bool) -> bool:
        """Whether `call` is one of a function of another file that seeds torch; `later`: of a class, of which a method
        does so."""
        name = self.chains.name_of(call.func)
        if (name, later) not in self._known:
            self._known[name, later] = self._seeds(self.module, name, later=later, depth=_DEEP)
        return self._known[name, later]

    def _seeds(self, module: Module, name: str, *, later: bool, depth: int) -> bool:
        found = _defined(module, name)
        return found is not None and _SEEDS in found[0].text and self._seeds_in(*found, later=later, depth=depth)

    def _seeds_in(self, module: Module, name: str, *, later: bool, depth: int) -> bool:
        """Whether the function or class `name` of `module`, or a class that it derives from, seeds torch."""
        if depth == 0:
            return False
        chains = module.shared(CallChain)
        calls = (call for body in _bodies(chains, name, later=later) for call in walk(body))
        return any(self._is_seed(module, call, depth - 1) for call in calls if isinstance(call, ast.Call)) or any(
            self._seeds_named(module, base, later=later, depth=depth - 1) for base in _bases(chains, name)
        )

    def _is_seed(self, module: Module, call: ast.Call, depth: int) -> bool:
        name = module.shared(CallChain).name_of(call.func)
        if name in self._rows or self.conventions.seeds.fullmatch(name.rpartition(".")[2]):
            return True
        return any(self._seeds_named(module, name, later=later, depth=depth) for later in (False, True))

    def _seeds_named(self, module: Module, name: str, *, later: bool, depth: int) -> bool:
        inside = self._seeds if "." in name else self._seeds_in
        return depth > 0 and inside(module, name, later=later, depth=depth)


def _defined(module: Module, name: str) -> tuple[Module, str] | None:
    """The file that defines what `module` calls `name`, where it is another one of the project, and its name there."""
    root, dot, _ = name.partition(".")
    if module.neighbour is None or not name or root in module.library.roots | STANDARD:
        return None
    if dot:
        return module.neighbour(name)
    if not module.scope.stars or name in BUILTINS or _defines(module.shared(CallChain), name):
        return None
    everything = map(module.neighbour, taken_whole(cst.Name(name), module))
    return next((found for found in everything if found is not None and found[0] is not module), None)


def _defines(chains: CallChain, name: str) -> bool:
    """Whether a file has a function or a class `name` of its own, or imports one."""
    own = chains.tree.body if chains.tree is not None else ()
    return name in chains.imported or any(getattr(one, "name", "") == name for one in own)


def _named(chains: CallChain) -> dict[str, None]:
    """What a file imports, and what it calls by dotted names."""
    return dict.fromkeys((*chains.imported.values(), *(chains.name_of(one.func) for one in chains.places.values())))


def _bodies(chains: CallChain, name: str, *, later: bool) -> Iterator[ast.AST]:
    """The function `name` of a file, or what its class of that name does to make an object; `later`: afterwards."""
    assert chains.tree is not None
    for node in chains.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            first = _at_first(node)
            yield from (one for one in node.body if (getattr(one, "name", "") in first) is not later)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name and not later:
            yield node


def _bases(chains: CallChain, name: str) -> list[str]:
    """What the class `name` of a file derives from."""
    classes = chains.tree.body if chains.tree is not None else ()
    found = (one for one in classes if isinstance(one, ast.ClassDef) and one.name == name)
    return [chains.name_of(base) for one in found for base in one.bases]


def _at_first(class_: ast.ClassDef) -> set[str]:
    """The constructors of `class_`, and the methods of its own that they call."""
    methods = {one.name: one for one in class_.body if isinstance(one, ast.FunctionDef)}
    first: set[str] = set()
    queue = [name for name in CONSTRUCTORS if name in methods]
    while queue:
        name = queue.pop()
        first.add(name)
        called = (one.func for one in walk(methods[name]) if isinstance(one, ast.Call))
        own = {one.attr for one in called if isinstance(one, ast.Attribute) and getattr(one.value, "id", "") == "self"}
        queue += sorted(own & methods.keys() - first)
    return first
