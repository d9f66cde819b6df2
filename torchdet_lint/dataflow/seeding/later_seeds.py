"""The calls of a file that seed torch -> where torch may be seeded again, below a place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.seeding.ordered import start_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.dataflow.seeding.call_chain import CallChain, Function, Site
    from torchdet_lint.dataflow.seeding.ordered import Place

CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_IN_WORKERS = "worker_init_fn"


class LaterSeeds:
    """The last place in the file and in each function of it at which torch is seeded, there or by what is called."""

    def __init__(self, chains: CallChain, seeding: Iterable[ast.Call], *, any_time: bool) -> None:
        self.chains = chains
        # Whether what is out of sight here may seed torch at any time.
        self.any_time = any_time
        self.last: dict[Function | None, Place] = {}
        # Functions that seed torch and are handed on: nobody sees when they run.
        self.handed: set[Function] = set()
        queue: list[ast.expr] = list(seeding)
        while queue:
            node = queue.pop()
            function = self._function(node)
            if function is not None and function not in self.last:
                queue += self._calls(function)
            self.last[function] = max(self.last.get(function, (0, 0)), start_of(node))

    def below(self, chain: Sequence[Site]) -> bool:
        """Whether torch may be seeded again after a run came to the place to which `chain` leads."""
        if self.any_time or self.evidently_below(chain):
            return True
        return len(self.handed) > sum(site.function in self.handed for site in chain)

    def evidently_below(self, chain: Sequence[Site]) -> bool:
        """Whether torch is seeded in the file after a run came to the place to which `chain` leads."""
        return any(self.last.get(site.function, (0, 0)) > start_of(site.node) for site in chain)

    def _calls(self, function: Function) -> list[ast.expr]:
        """The calls of `function`, by its name, or that of its class for a constructor; it is kept if it is handed
        on."""
        class_ = self.chains.parents.get(function)
        method = isinstance(class_, ast.ClassDef)
        found: list[ast.expr] = []
        if isinstance(class_, ast.ClassDef) and function.name in CONSTRUCTORS:
            found += filter(None, map(self._call_of, self.chains.uses.get(class_.name, ())))
        for use in self.chains.uses.get(f".{function.name}" if method else function.name, ()):
            around = self.chains.parents.get(use)
            if (call := self._call_of(use)) is not None:
                found.append(call)
            elif not (isinstance(around, ast.keyword) and around.arg == _IN_WORKERS):
                self.handed.add(function)
        return found

    def _call_of(self, name: ast.expr) -> ast.Call | None:
        """The call of what is read as `name`, if it is called."""
        call = self.chains.parents.get(name)
        return call if isinstance(call, ast.Call) and call.func is name else None

    def _function(self, node: ast.AST) -> Function | None:
        functions = (
            one for one in self.chains.around(node) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        return next(functions, None)
