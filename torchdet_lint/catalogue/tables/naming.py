"""The `[programs.naming]` of `rules/facts/programs.toml` -> what becomes of a number that only names something."""

from __future__ import annotations

import functools
import re

import msgspec

from torchdet_lint.catalogue.conditions import Table


class NamingWords(Table, frozen=True, kw_only=True, dict=True):
    """What each list is for stands in the file."""

    draws: frozenset[str] = frozenset()
    spells: frozenset[str] = frozenset()
    writes: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    savers: str = "(?!)"
    opens: str = ""
    reads: frozenset[str] = frozenset()
    asks: frozenset[str] = frozenset()
    places: str = "(?!)"
    marks: str = "(?!)"
    addresses: tuple[str, ...] = ()
    named: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    starts: dict[str, int] = msgspec.field(default_factory=dict)

    @functools.cached_property
    def saves(self) -> re.Pattern[str]:
        """The last word of the name of a function that saves something: match."""
        return re.compile(self.savers)

    @functools.cached_property
    def is_place(self) -> re.Pattern[str]:
        """The name, in lower case, of a text that says where something goes: search."""
        return re.compile(self.places)

    @functools.cached_property
    def is_mark(self) -> re.Pattern[str]:
        """The name, in lower case, of what tells one run from others: search."""
        return re.compile(self.marks)
