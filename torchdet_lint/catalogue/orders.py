"""The `[orders]` of `rules/facts/`: what callables do with the order of what they are given."""

from __future__ import annotations

import functools

import msgspec

from torchdet_lint.catalogue.conditions import Table


class Orders(Table, frozen=True, kw_only=True, dict=True):
    """What becomes of an order, by the qualified name of what takes it (`consumers`: kind → names), and by the last
    word where that is all one knows (`words`: role → words); `sets` is what is done with a set. A word with a part in
    `sorting` sorts."""

    sorting: tuple[str, ...] = ()
    consumers: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    words: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    sets: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)

    @functools.cached_property
    def kinds(self) -> dict[str, str]:
        """Qualified name → what it does with an order."""
        return {name: kind for kind, names in self.consumers.items() for name in sorted(names)}

    def sorts(self, text: str) -> bool:
        """Whether something that is named in `text` sorts."""
        text = text.lower()
        return any(part in text for part in self.sorting)
