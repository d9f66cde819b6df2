"""`rules/facts/orders.toml` -> what callables do with the order of what they are given."""

from __future__ import annotations

import functools
import re

import msgspec

from torchdet_lint.catalogue.conditions import Table


class Orders(Table, frozen=True, kw_only=True, dict=True):
    """What becomes of an order, by the qualified name of what takes it (`consumers`: kind → names), and by the last
    word where that is all one knows (`words`: role → words). `texts` makes a text of a dictionary. `files` is what
    lists files, `sets` what is done with a set. A word with a part in `sorting` sorts; what is
    in `among` looks for elements in its second argument. `elements` and `names` say what
    a collection holds: by the call that gives it, by its name."""

    sorting: tuple[str, ...] = ()
    among: frozenset[str] = frozenset()
    consumers: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    words: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    texts: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    files: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    sets: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    elements: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    names: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)

    @functools.cached_property
    def kinds(self) -> dict[str, str]:
        """Qualified name → what it does with an order."""
        return {name: kind for kind, names in self.consumers.items() for name in sorted(names)}

    def sorts(self, text: str) -> bool:
        """Whether something that is named in `text` sorts."""
        text = text.lower()
        return any(part in text for part in self.sorting)

    @functools.cached_property
    def endings(self) -> dict[str, re.Pattern[str]]:
        """Role → a pattern for the names whose last word is one of `names`, the word "list" or its like left out where
        they are numbers."""
        behind = {"numbers": "(?:_?(?:list|set|array|arr))?"}
        return {
            role: re.compile(rf"(?:^|_)(?:{'|'.join(sorted(words))}){behind.get(role, '')}$")
            for role, words in self.names.items()
        }
