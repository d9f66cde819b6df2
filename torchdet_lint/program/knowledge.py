"""The catalogue -> its tables of draws, seeds and runners by name."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, Literal

from torchdet_lint.catalogue.conditions import condition_holds
from torchdet_lint.catalogue.facts import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.facts import Runner, Seed
    from torchdet_lint.catalogue.ops import Op, Spelling
    from torchdet_lint.catalogue.tables.hints import Hints
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.program.events import Argument, Event


# The rows of layers that add up messages, by segments where they are given a sparse adjacency.
_LAYERS = ("torch_geometric.nn.GCNConv", "torch_geometric.nn.EdgeConv(aggr='add')")


def _estimators(library: Library) -> Iterator[Draw]:
    """What draws from NumPy's generator for it is given no `random_state`: an object later, a function at once."""
    rule = library.catalogue.rules.get("TDL107")
    for row in rule.calls if rule is not None else ():
        if row.variant or row.severity is not None:
            continue
        for name in row.names:
            at: Literal["call", "iteration"] = "iteration" if name.rpartition(".")[2][0].isupper() else "call"
            yield Draw(names=(name,), parameters=row.parameters, library="numpy", at=at, when=row.when)


def _matches(name: str, prefix: str, suffix: str) -> bool:
    """Whether `name` is one word between `prefix` and `suffix`."""
    return (
        name.startswith(prefix)
        and name.endswith(suffix)
        and len(name) > len(prefix) + len(suffix)
        and "." not in name[len(prefix) : len(name) - len(suffix)]
    )


class Words:
    """The catalogue's hints, ready to be searched."""

    def __init__(self, hints: Hints) -> None:
        self.seeds = re.compile(hints.seeds)
        self.seeds_not = re.compile(hints.seeds_not)
        self.seeds_itself = re.compile(hints.seeds_itself)
        self.options = re.compile(hints.options)
        self.mode = re.compile(hints.mode)
        self.complete = hints.complete
        self.methods = hints.methods
        self.devices = hints.devices
        self.arguments = re.compile(hints.arguments)
        self.networks = hints.networks
        self.no_networks = hints.no_networks
        self.beside_networks = re.compile(hints.beside_networks)
        self.training = re.compile(hints.training)
        self.optimizers = re.compile(hints.optimizers)
        self.given_a_model = re.compile(hints.given_a_model)
        self.loading = re.compile(hints.loading)
        self.initialiser = re.compile(hints.initialiser)
        self.maker = re.compile(hints.maker)
        self.writing = re.compile(hints.writing)
        self.downloading = re.compile(hints.downloading)


@functools.lru_cache(maxsize=4)
def tables_of(library: Library, seed_functions: tuple[str, ...]) -> Tables:
    """The tables of a library and the user's own seeding functions, made once."""
    return Tables(library, seed_functions)


class Tables:
    """The catalogue's tables by name."""

    def __init__(self, library: Library, seed_functions: Iterable[str] = ()) -> None:
        """`seed_functions` are the user's own seeding functions."""
        self.library = library
        self.seed_functions = frozenset(seed_functions)
        facts = library.facts
        self.draws: dict[str, list[Draw]] = {}
        self.seeds: dict[str, list[Seed]] = {}
        self.runners: dict[str, list[Runner]] = {}
        estimators = list(_estimators(library))
        self.estimators = frozenset(name for draw in estimators for name in draw.names)
        for draw in (*facts.draws, *estimators):
            for name in draw.names:
                self.draws.setdefault(name, []).append(draw)
        for seed in facts.seeds:
            for name in seed.names:
                self.seeds.setdefault(name, []).append(seed)
        for runner in facts.runners:
            for name in runner.names:
                self.runners.setdefault(name, []).append(runner)
        # What runs the data that it is given in processes of its own, if it is told so.
        self.loaders = frozenset(name for name, rows in self.runners.items() if any(row.workers for row in rows))
        self.fluent = frozenset(facts.fluent)
        self.modes_off = frozenset(facts.modes_off)
        self.hints = Words(facts.hints)
        self.words = facts.programs
        self.devices = facts.devices
        self.tensor_draws = frozenset(
            name.rpartition(".")[2] for name in self.draws if name.startswith("torch.Tensor.")
        )
        others = {name.rpartition(".")[2] for draw in facts.draws if draw.library != "torch" for name in draw.names}
        self.own_tensor_draws = self.tensor_draws - others
        self._patterns = tuple(sorted((*name.split("*", 1), name) for name in self.draws if "*" in name))
        self._no_draws = frozenset(name for draw in facts.draws for name in draw.excluding)
        self.everywhere: dict[str, list[tuple[Op, Spelling]]] = {}
        for op in facts.ops:
            for spelling in op.spellings if op.aggregate else ():
                self.everywhere.setdefault(spelling.name, []).append((op, spelling))
        self.messages = {name for name, rows in self.everywhere.items() if rows[0][0].op in _LAYERS}
        self._generators = frozenset(facts.workers.generators)
        self._known = self.draws.keys() | self.seeds.keys() | self.runners.keys() | self.everywhere.keys()
        self._spellings: dict[str, tuple[str, ...]] = {}

    def speaks_of(self, name: str) -> bool:
        """Whether a table has a row for `name`."""
        return name in self._known or any(one in self._known for one in self.spellings(name))

    def is_generator(self, name: str) -> bool:
        """Whether `name` stands for a generator that somebody made: `numpy.random.default_rng()`."""
        made = name.removesuffix("()").removesuffix(".manual_seed").removesuffix(".spawn").removesuffix("()")
        return name.endswith("()") and made in self._generators

    def makes(self, name: str) -> bool:
        """Whether `name` is of a library whose functions are all known."""
        return name.partition(".")[0] in self.hints.complete

    def spellings(self, name: str) -> tuple[str, ...]:
        """The names of `name` in the tables: its own, and those that it has in the library classes it derives from."""
        known = self._spellings.get(name)
        if known is None:
            base, call, method = name.rpartition("().")
            if call:
                found = [f"{one}().{method}" for one in self.library.ancestors(base)]
            else:
                found = list(self.library.ancestors(name))
                if name.endswith(".*"):
                    found.append(name)
            bare = name.removesuffix("()")
            if bare not in self.draws and bare not in self._no_draws:  # a row for the name itself says when it draws
                found += [pattern for prefix, suffix, pattern in self._patterns if _matches(name, prefix, suffix)]
            known = self._spellings[name] = tuple(dict.fromkeys(found))
        return known

    def argument(self, event: Event, name: str, parameters: Sequence[str]) -> Argument | None:
        """What is passed for `name`, by keyword or by place."""
        if name in event.keywords:
            return event.keywords[name]
        if name in parameters:
            place = parameters.index(name)
            if place < len(event.positional):
                return event.positional[place]
        return None

    def given(self, event: Event, name: str, parameters: Sequence[str]) -> bool:
        """Whether anything is passed for `name`."""
        return self.argument(event, name, parameters) is not None

    def is_told_to_seed(self, name: str, file: str) -> bool:
        """Whether the user says that the function `name` of `file` seeds: by its last name, or with the module's."""
        if not self.seed_functions:
            return False
        if not self.seed_functions.isdisjoint((name, name.rpartition(".")[2])):
            return True
        module = file.removesuffix(".py").removesuffix(f"{os.sep}__init__").replace(os.sep, ".")
        return any("." in told and f".{module}.{name}".endswith(f".{told}") for told in self.seed_functions)

    def draws_iterated(self, name: str, event: Event) -> list[Draw]:
        """The draws of what a call of `name` makes when it is iterated."""
        draws = (draw for draw in self.draws.get(name, ()) if draw.at == "iteration")
        return [draw for draw in draws if self.meets(event, draw.when, draw.parameters)]

    def meets(self, event: Event, conditions: Sequence[Condition], parameters: Sequence[str]) -> bool:
        """Whether the arguments of `event` meet all of `conditions`."""
        for condition in conditions:
            value = self.argument(event, condition.argument, parameters)
            if not condition_holds(
                condition, passed=value is not None, opaque=event.opaque, known=value is not None and value.known,
                value=value.value if value is not None else None,
            ):  # fmt: skip
                return False
        return True
