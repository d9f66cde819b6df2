"""The `[programs]` of `rules/facts/programs.toml` -> names that say what a program does, compiled to patterns."""

from __future__ import annotations

import functools
import re

import msgspec

from torchdet_lint.catalogue.conditions import Table
from torchdet_lint.catalogue.tables.naming import NamingWords


class Programs(Table, frozen=True, kw_only=True, dict=True):
    """What each list is for stands in the file."""

    containers: frozenset[str] = frozenset()
    falls_back: frozenset[str] = frozenset()
    alike: frozenset[str] = frozenset()
    moves: tuple[str, ...] = ()
    movers: str = ""
    modules: frozenset[str] = frozenset()
    optimizers: frozenset[str] = frozenset()
    checkpoints: frozenset[str] = frozenset()
    fitted: frozenset[str] = frozenset()
    fits: str = ""
    segments: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    samples: dict[str, str] = msgspec.field(default_factory=dict)
    configures: dict[str, str] = msgspec.field(default_factory=dict)
    parses: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    instantiates: frozenset[str] = frozenset()
    obeys: frozenset[str] = frozenset()
    locates: frozenset[str] = frozenset()
    finders: str = "(?!)"
    imports: frozenset[str] = frozenset()
    reads_imports: frozenset[str] = frozenset()
    runs_code: frozenset[str] = frozenset()
    makers_by_text: str = "(?!)"
    configured: frozenset[str] = frozenset()
    configured_by: dict[str, str] = msgspec.field(default_factory=dict)
    commands: tuple[str, ...] = ()
    registers: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    family_heads: frozenset[str] = frozenset()
    builders: str = "(?!)"
    evaluates: frozenset[str] = frozenset()
    dispatches: frozenset[str] = frozenset()
    starts_itself: frozenset[str] = frozenset()
    hands_over: frozenset[str] = frozenset()
    lazy: frozenset[str] = frozenset()
    idle: tuple[str, ...] = ()
    redraws: frozenset[str] = frozenset()
    shares: frozenset[str] = frozenset()
    keeps_rows: str = "(?!)"
    from_0_to_1: frozenset[str] = frozenset()
    between_bounds: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    traces: frozenset[str] = frozenset()
    summarizes: frozenset[str] = frozenset()
    without_memory: frozenset[str] = frozenset()
    picks: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    joins: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()
    afresh: frozenset[str] = frozenset()
    tells: frozenset[str] = frozenset()
    clocks: frozenset[str] = frozenset()
    quiet: tuple[str, ...] = ()
    waits: frozenset[str] = frozenset()
    colours: str = "(?!)"
    pictures: str = "(?!)"
    naming: NamingWords = NamingWords()

    @functools.cached_property
    def makers(self) -> frozenset[str]:
        """The class, or else the function, in each of `fields`."""
        return frozenset(_class_or_function(*name.split(".")[-2:]) for name in self.fields)

    @functools.cached_property
    def draws_idly(self) -> re.Pattern[str]:
        """The text, in lower case, of a statement whose draws change no result: search."""
        return re.compile("|".join(self.idle))

    @functools.cached_property
    def makes_colours(self) -> re.Pattern[str]:
        """The text, in lower case, of a statement that makes colours: search."""
        return re.compile(self.colours)

    @functools.cached_property
    def draws_pictures(self) -> re.Pattern[str]:
        """The text of a file that draws pictures: search."""
        return re.compile(self.pictures)

    @functools.cached_property
    def draws_nothing_lasting(self) -> re.Pattern[str]:
        """The name of a function that makes a seed, or a name that nobody has taken: search."""
        return re.compile(rf"(?:{'|'.join(self.picks)})\w*_seed$|(?:^|_)(?:{'|'.join(self.names)})$")

    @functools.cached_property
    def moves_what(self) -> re.Pattern[str]:
        """The last word of the name of a function that moves its first argument and gives it back: search."""
        return re.compile(self.movers)

    @functools.cached_property
    def finds_by_text(self) -> re.Pattern[str]:
        """The last word of the name of a function that gives what a text names: search."""
        return re.compile(self.finders)

    @functools.cached_property
    def makes_by_text(self) -> re.Pattern[str]:
        """The last word of the name of a function that may make something of what a text names: match."""
        return re.compile(self.makers_by_text)

    @functools.cached_property
    def loads_code(self) -> frozenset[str]:
        """Functions that import or run what a text, a file or a configuration names."""
        return self.imports | self.reads_imports | self.runs_code | self.locates | self.instantiates | self.obeys

    @functools.cached_property
    def may_import(self) -> re.Pattern[str]:
        """The text of a file that may call one of these: search."""
        return re.compile(rf"\b(?:{'|'.join(sorted({name.rpartition('.')[2] for name in self.loads_code}))})\b")

    @functools.cached_property
    def keeps(self) -> re.Pattern[str]:
        """The name of a class that keeps what it is given to make rows of it: search."""
        return re.compile(self.keeps_rows)

    @functools.cached_property
    def builds(self) -> re.Pattern[str]:
        """The last word of the name of a library's function that makes what is registered there: search."""
        return re.compile(self.builders)

    def family_of(self, package: str) -> str:
        """What `package` shares its registries with: the beginning of its name, or all of it."""
        return next((family for family in self.families if package.startswith(family)), package)

    def takes_from(self, package: str, other: str) -> bool:
        """Whether what is registered with a registry of `other` may be made by one of `package`, of the same family:
        each has its own, and one of the whole family that stands above."""
        return package == other or not self.family_heads.isdisjoint((package, other))

    @functools.cached_property
    def may_trace(self) -> re.Pattern[str]:
        """The text of a function that may call one of `traces`: search."""
        last = sorted({name.rpartition(".")[2] for name in self.traces} | self.summarizes)
        return re.compile(rf"\b(?:{'|'.join(last)})[ \t]*\(")

    @functools.cached_property
    def decorates_command(self) -> re.Pattern[str]:
        """The text of a decorator that makes a function a command: search."""
        return re.compile(rf"^[ \t]*@[\w.]+\.(?:{'|'.join(self.commands)})\b", re.MULTILINE)

    @functools.cached_property
    def calls_register(self) -> re.Pattern[str]:
        """The text of a call that registers a function as a command: search."""
        return re.compile(rf"\.(?:{'|'.join(self.registers)})\b")


def _class_or_function(owner: str, name: str) -> str:
    return owner if owner[:1].isupper() else name
