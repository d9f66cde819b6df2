"""`rules/facts/hints.toml` -> what names say where nothing else is known: patterns and words."""

from __future__ import annotations

import msgspec

from torchdet_lint.catalogue.conditions import Table

_NOTHING = r"(?!)"


class Hints(Table, frozen=True, kw_only=True):
    """Patterns and words; each is explained where it stands, in `rules/facts/hints.toml`."""

    seeds: str = _NOTHING
    seeds_not: str = _NOTHING
    seeds_itself: str = _NOTHING
    mode: str = _NOTHING
    complete: frozenset[str] = frozenset()
    methods: dict[str, str] = msgspec.field(default_factory=dict)
    options: str = _NOTHING
    devices: frozenset[str] = frozenset()
    arguments: str = _NOTHING
    networks: tuple[str, ...] = ()
    no_networks: tuple[str, ...] = ()
    beside_networks: str = _NOTHING
    training: str = _NOTHING
    optimizers: str = _NOTHING
    given_a_model: str = _NOTHING
    loading: str = _NOTHING
    initialiser: str = _NOTHING
    maker: str = _NOTHING
    writing: str = _NOTHING
    downloading: str = _NOTHING
