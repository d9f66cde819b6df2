"""The calls of a file -> which of them seed, what, and with what: those that stand above and below a place."""

from __future__ import annotations

import ast
import functools
import itertools
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.seeding.elsewhere import Elsewhere
from torchdet_lint.dataflow.seeding.later_seeds import LaterSeeds
from torchdet_lint.dataflow.seeding.ordered import Seeding, Seedings, as_member, start_of
from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.dataflow.seeding.call_chain import Function, Site
    from torchdet_lint.dataflow.seeding.ordered import Ordered
    from torchdet_lint.module.module import Module

_SEEDS = "seed"
# Of their parts one runs and not the others.
_CHOICES = (ast.If, ast.IfExp, ast.Try, ast.Match)
_DEEP = 3
# So many seedings on either side of a place are looked at for one whose seed it can read.
NEAREST = 20


class SeedCalls:
    """What the calls of one file seed."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.conventions = module.library.facts.conventions
        self.chains = module.shared(CallChain)
        self._rows = {name: row for row in module.library.facts.seeds for name in row.names}
        self._known_seedings: dict[ast.AST, Seedings] = {}
        self._known_libraries: dict[tuple[str, int], frozenset[str]] = {}
        self._known_to_ask: dict[Function, bool] = {}

    def seeding(self, call: ast.Call, depth: int = 0) -> Seeding | None:
        """What a call seeds: a function of the catalogue, of this file, or one that says so by its name."""
        found = self._seeding(call, depth)
        return found._replace(value=as_member(found.value)) if found is not None and found.value is not None else found

    def _seeding(self, call: ast.Call, depth: int) -> Seeding | None:
        name = self.chains.name_of(call.func)
        row = self._rows.get(name)
        first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
        if row is not None:
            if not row.seeds or row.entropy or row.lazy:
                return None
            value = next((one.value for one in call.keywords if one.arg == row.argument), first)
            if value is None and (row.optional or row.argument):
                return None
            return Seeding(call, frozenset(row.seeds), value)
        last = name.rpartition(".")[2]
        function = name if isinstance(call.func, ast.Name) else last
        local = self.chains.functions.get(function, [])
        if local:
            libraries = self._seeded_by(function, depth + 1)
            return Seeding(call, libraries, self._passed(call, local[0]), self._asks(local[0])) if libraries else None
        if last and first is not None and self.conventions.seeds.fullmatch(last):
            return Seeding(call, frozenset(("python", "numpy", "torch")), first, self._asks_elsewhere(name))
        if name and depth < _DEEP and isinstance(self.chains.parents.get(call), ast.Expr):
            libraries = self._seeded_elsewhere(name, depth + 1)
            return Seeding(call, libraries, first, self._asks_elsewhere(name)) if libraries else None
        return None

    def _asks_elsewhere(self, name: str) -> bool:
        """Whether a function of another file of the project asks about its seed."""
        found = self.module.neighbour(name) if self.module.neighbour is not None and "." in name else None
        if found is None:
            return False
        other = found[0].shared(SeedCalls)
        return any(map(other._asks, other.chains.functions.get(found[1], ())))

    def _asks(self, function: Function) -> bool:
        """Whether a function of the file asks about its seed."""
        if function not in self._known_to_ask:
            self._known_to_ask[function] = _decides(function)
        return self._known_to_ask[function]

    def _seeded_elsewhere(self, name: str, depth: int) -> frozenset[str]:
        """The libraries that a function of another file of the project seeds and leaves seeded."""
        if (name, depth) not in self._known_libraries:
            found = self.module.neighbour(name) if self.module.neighbour is not None and "." in name else None
            libraries: frozenset[str] = frozenset()
            if found is not None and _SEEDS in found[0].text:
                other = found[0].shared(SeedCalls)
                if found[1] in other.chains.functions:
                    libraries = other._seeded_by(found[1], depth)
            self._known_libraries[name, depth] = libraries
        return self._known_libraries[name, depth]

    def _seeded_by(self, name: str, depth: int) -> frozenset[str]:
        """The libraries whose global generators the functions `name` of the file seed and leave seeded."""
        if depth > _DEEP:
            return frozenset()
        if (name, depth) not in self._known_libraries:
            found: set[str] = set()
            for function in self.chains.functions[name]:
                if not self.chains.suspends(function) and not self._manages(function):
                    for call in self.chains.within(function):
                        seeding = self.seeding(call, depth + 1)
                        found |= seeding.libraries if seeding is not None else set()
            self._known_libraries[name, depth] = frozenset(found)
        return self._known_libraries[name, depth]

    def _manages(self, function: Function) -> bool:
        """Whether `function` is decorated as a context manager, which does nothing when it is called bare."""
        return any("contextmanager" in ast.unparse(one) for one in function.decorator_list)

    def _passed(self, call: ast.Call, function: Function) -> ast.expr | None:
        """What `call` gives for the parameter of `function` that holds the seed."""
        parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        for place, name in enumerate(parameters):
            if "seed" in name.lower():
                named = next((one.value for one in call.keywords if one.arg == name), None)
                return named or (call.args[place] if place < len(call.args) else None)
        return None

    def within(self, site: Site) -> Seedings:
        """What is seeded in the function of a place."""
        body = site.function if site.function is not None else self.chains.tree
        assert body is not None
        if body not in self._known_seedings:
            found = [seeding for call in self.chains.within(body) if (seeding := self.seeding(call)) is not None]
            self._known_seedings[body] = Seedings(found)
        return self._known_seedings[body]

    def above(self, seedings: Ordered, site: Site) -> Iterator[Seeding]:
        """Those of `seedings` that are done above a place, the nearest first."""
        around = set(self.chains.around(site.node))
        return (one for one in seedings.above(start_of(site.node)) if one.call not in around)

    def near(self, seedings: Ordered, site: Site) -> Iterator[Seeding]:
        """Those of `seedings` next to a place: above it, then below, the nearest first."""
        yield from itertools.islice(self.above(seedings, site), NEAREST)
        yield from itertools.islice(seedings.below(start_of(site.node)), NEAREST)

    def seeds_torch(self, chain: Sequence[Site], *, repeatably: bool = False) -> bool:
        """Whether torch is seeded above one of the places, `repeatably`: by something else than a clock and its like,
        which become the configured seed."""
        above = (one for site in chain for one in self.above(self.within(site).torch, site))
        return any(not (repeatably and self._is_entropy(one.value)) for one in above)

    def _is_entropy(self, value: ast.expr | None) -> bool:
        """Whether a clock is read, or something like it, to work `value` out."""
        entropy = self.module.library.facts.entropy
        calls = [one for one in walk(value) if isinstance(one, ast.Call)] if value is not None else []
        return any(self.chains.name_of(one.func) in entropy for one in calls)

    def seeds_torch_again(self, chain: Sequence[Site]) -> bool:
        """Whether torch is seeded below one of the places, perhaps for what is drawn then: a generator of its own would
        not follow that seed."""
        return self.seeds_torch_below(chain) or self._later_seeds.below(chain)

    def seeds_torch_below(self, chain: Sequence[Site]) -> bool:
        """Whether torch is evidently seeded below one of the places."""
        below = any(True for site in chain for _ in self.within(site).torch.below(start_of(site.node)))
        return below or self._later_seeds.evidently_below(chain)

    @functools.cached_property
    def _later_seeds(self) -> LaterSeeds:
        calls = list(self.chains.places.values())
        rows = ((call, self._rows.get(self.chains.name_of(call.func))) for call in calls)
        seeding = [call for call, row in rows if row is not None and "torch" in row.seeds]
        seeding += [call for call in calls if self.other_files.seeds(call, later=False)]
        any_time = any(self.other_files.seeds(call, later=True) for call in calls)
        return LaterSeeds(self.chains, seeding, any_time=any_time)

    @functools.cached_property
    def other_files(self) -> Elsewhere:
        """The files that this one imports."""
        return Elsewhere(self.module)

    @functools.cached_property
    def written(self) -> list[tuple[Seeding, str]]:
        """What the calls of the file that speak of a seed seed with, as it is written."""
        calls = (self.seeding(call) for call in self.chains.places.values() if _SEEDS in dotted_name(call.func))
        return [(one, ast.unparse(one.value)) for one in calls if one is not None and one.value is not None]

    def seeds_otherwise(self, node: ast.AST) -> bool:
        """Whether something is seeded where `node` does not run: in another arm of a statement around it, or by a
        function of the file that is called there."""
        inner = node
        while (around := self.chains.parents.get(inner)) is not None:
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            if isinstance(around, _CHOICES) and not is_main_guard(around):
                others = (arm for arm in _arms(around) if not any(inner is one for one in arm))
                if any(map(self._seeds_in, others)):
                    return True
            inner = around
        return False

    def _seeds_in(self, arm: Sequence[ast.AST]) -> bool:
        """Whether a call in `arm` hands something a seed, by what it is called, or a function of the file does that it
        calls."""
        words = [
            dotted_name(node.func).rpartition(".")[2]
            for one in arm
            for node in walk(one)
            if isinstance(node, ast.Call) and (node.args or node.keywords or isinstance(node.func, ast.Name))
        ]
        return any(_SEEDS in word.lower() or word in self._seeding_functions for word in words)

    @functools.cached_property
    def _seeding_functions(self) -> frozenset[str]:
        """The functions of the file that call something which is called after a seed."""
        return frozenset(
            name
            for name, functions in self.chains.functions.items()
            if any(_SEEDS in dotted_name(call.func).lower() for one in functions for call in self.chains.within(one))
        )


def _arms(node: ast.AST) -> Iterator[Sequence[ast.AST]]:
    """The parts of a statement, or of a conditional expression, of which one runs and not the others."""
    if isinstance(node, ast.If):
        yield [node.test]
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.IfExp):
        yield from ([node.test], [node.body], [node.orelse])
    elif isinstance(node, ast.Try):
        yield [*node.body, *node.orelse]
        yield from ([one] for one in node.handlers)
    elif isinstance(node, ast.Match):
        yield from ([case] for case in node.cases)


def _decides(function: Function) -> bool:
    """Whether a function decides something by its first parameter: `if seed is None`, `seed or 0`."""
    taken = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg not in ("self", "cls")]
    tests = (
        one.values[0] if isinstance(one, ast.BoolOp) else one.test
        for one in walk(function)
        if isinstance(one, (ast.BoolOp, ast.If, ast.IfExp))
    )
    return any(isinstance(part, ast.Name) and part.id in taken[:1] for test in tests for part in walk(test))
