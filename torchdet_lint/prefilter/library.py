"""The catalogue -> look-ups by name: what an analysis asks about the names that it meets."""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.catalogue.ops import reported_as, status_at
from torchdet_lint.prefilter.triggers import op_names, triggers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchdet_lint.catalogue.facts import Draw, Runner, Seed
    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.catalogue.ops import Op, Spelling
    from torchdet_lint.catalogue.rules import Rule

BUILTINS = frozenset(dir(builtins))


class Operation(NamedTuple):
    """A spelling of an op, the code that reports it and its status in the target release."""

    code: str
    op: Op
    spelling: Spelling
    status: str
    method: bool


_PACKAGES = ("F", "T", "cudnn", "nn", "np", "optim", "transforms")


@functools.lru_cache(maxsize=4)
def library_of(catalogue: Catalogue) -> Library:
    """The library of a catalogue, compiled once."""
    return Library(catalogue)


class Library:
    """The catalogue compiled for look-ups: canonical names, signatures, base classes, and the words that matter."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.facts = catalogue.facts
        self._canonical: dict[str, str] = {}
        self._meant: dict[str, frozenset[str]] = {}
        self.fills = frozenset(word for rule in catalogue.rules.values() for word in rule.words.get("fills", ()))
        rows = (*self.facts.ops, *(op for rule in catalogue.rules.values() for op in rule.ops))
        self.layers = frozenset(
            spelling.name.rpartition(".")[2] for op in rows for spelling in op.spellings if spelling.forward
        )
        self._words: dict[str, Meant | None] = {}
        self._settings = frozenset(
            name for rule in catalogue.rules.values() for row in rule.settings for name in row.names
        )
        self.signatures = self.facts.signatures
        self.bases = self.facts.bases
        self._operations: dict[tuple[int, int], dict[str, list[Operation]]] = {}
        self.known = frozenset(self._known_names())
        self.roots = frozenset(name.partition(".")[0] for name in self.known)
        self.triggers = triggers_of(catalogue)
        last = (name.rpartition(".")[2] for name in self.known)
        # What files take from one another though it is a library's: its classes, and the usual names of its packages.
        self.handed_on = self.roots.union(_PACKAGES, (word for word in last if word[:1].isupper()))

    def canonical(self, name: str) -> str:
        """The one spelling under which the catalogue knows `name`: `pytorch_lightning.Trainer` and its like."""
        found = self._canonical.get(name)
        if found is None:
            found = self._canonical[name] = self._canonicalise(name)
        return found

    def starred(self, module: str, name: str) -> str:
        """What `name` is by `from module import *`, in its one spelling, where the catalogue says so; else empty."""
        full = self.canonical(f"{module}.{name}")
        brought = f"{self.canonical(module)}.{name}" in self.facts.canonical
        return full if brought or full in self.known else ""

    def _canonicalise(self, name: str) -> str:
        table = self.facts.canonical
        for _ in range(4):
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                prefix = ".".join(parts[:end])
                if prefix in table:
                    name = ".".join([table[prefix], *parts[end:]])
                    break
            else:
                return name
        return name

    def operations(self, target: tuple[int, int]) -> dict[str, list[Operation]]:
        """The ops that vary in release `target` of torch, by name: a method of a tensor is found under `.name`, an op
        that is found where an instance is called under `name()`."""
        if target not in self._operations:
            found: dict[str, list[Operation]] = {}
            rows = [(op.rule, op) for op in self.facts.ops]
            rows += [(op.rule or code, op) for code, rule in self.catalogue.rules.items() for op in rule.ops]
            for rule, op in rows:
                status = status_at(op, target)
                if op.aggregate or op.silent_because or status in ("absent", "deterministic"):
                    continue
                code = rule or reported_as(op, status)
                for spelling in op.spellings:
                    owner, _, last = spelling.name.rpartition(".")
                    method = owner.rpartition(".")[2][:1].isupper()
                    key = f".{last}" if method else spelling.name + ("()" if spelling.forward else "")
                    found.setdefault(key, []).append(Operation(code, op, spelling, status, method))
            self._operations[target] = found
        return self._operations[target]

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def instances(self, target: tuple[int, int]) -> frozenset[str]:
        """The classes whose instances are called for an op that varies in release `target`."""
        return frozenset(name[:-2] for name in self.operations(target) if name.endswith("()"))

    def meant(self, word: str) -> Meant | None:
        """What the catalogue means by `word`; None for a word that may mean something wherever it stands."""
        if word not in self._words:
            full = self.triggers.names.get(word)
            self._words[word] = None if full is None else Meant.of(full, self.canonical, self._settings)
        return self._words[word]

    @functools.cached_property
    def seeding(self) -> frozenset[str]:
        """The names of everything that seeds a global generator."""
        return frozenset(name for seed in self.facts.seeds for name in seed.names)

    def meant_by(self, rule: Rule) -> frozenset[str]:
        """The names in the rows of calls of `rule`."""
        if rule.code not in self._meant:
            self._meant[rule.code] = frozenset(name for row in rule.calls for name in row.names)
        return self._meant[rule.code]

    def ancestors(self, name: str) -> Iterator[str]:
        """`name` and the library classes it derives from, nearest first."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            yield name
            name = self.bases.get(name, "")

    def _known_names(self) -> Iterator[str]:
        for rule in self.catalogue.rules.values():
            for row in rule.calls:
                yield from row.names
            for setting in rule.settings:
                yield from setting.names
            yield from op_names(rule.ops)
        yield from op_names(self.facts.ops)
        rows: tuple[Draw | Seed | Runner, ...] = (*self.facts.draws, *self.facts.seeds, *self.facts.runners)
        for draw in rows:
            yield from draw.names
        yield from self.facts.signatures
        yield from self.facts.bases
        yield from self.facts.canonical


class Meant(NamedTuple):
    """The canonical names that end in one word, whether any is a method (of a class, or of what a call returns), and
    whether any is a setting, which is assigned where the others are called."""

    names: frozenset[str]
    method: bool
    setting: bool

    @classmethod
    def of(cls, names: frozenset[str], canonical: Callable[[str], str], settings: frozenset[str]) -> Meant:
        """Make it of names as the catalogue writes them."""
        owners = [name.rpartition(".")[0] for name in names]
        method = any("()" in owner or owner.rpartition(".")[2][:1].isupper() for owner in owners)
        return cls(frozenset(map(canonical, names)), method, not settings.isdisjoint(names))
