"""What a body does, as plain data: the whole-program half reads nothing else of a file, and the cache keeps it."""

from __future__ import annotations

from typing import Any

import msgspec

MODULE = ""
GUARD = 1_000_000
# Of `torch.cuda`, what is no use of a device.
DEVICE_QUERIES = ("is_", "get_", "device_count", "manual_seed", "seed", "initial_seed", "empty_cache", "set_rng_state")
Names = tuple[str, ...]


class Argument(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """An argument: the names it stands for, and its value where that is a constant (`known`)."""

    names: Names = ()
    known: bool = False
    value: Any = None


class Event(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One thing that a body does.

    `kind`: `call` (of `names`), `import`, `set` (an attribute `names` is given `positional[0]`), `env` (the variable
    `names[0]` is set), `cuda` (a text speaks of the device: `names[0]` is `evident` or `possible`), `update`
    (`p.grad += …`). Rows count from 1, columns from 0 in bytes, as `ast` has them; `statement` is the row of the
    statement. `branch` holds the arms of `if`s around it: `n` and `-n` exclude each other. `deferred` events run
    later or in another order (a lambda), `locked` ones stand in a `with …lock…:`, `idle` ones in a statement whose draw
    changes no result, `trained` ones run only `if self.training`.
    """

    kind: str
    row: int
    column: int
    statement: int
    names: Names = ()
    positional: tuple[Argument, ...] = ()
    keywords: dict[str, Argument] = {}
    opaque: bool = False
    branch: tuple[int, ...] = ()
    deferred: bool = False
    locked: bool = False
    idle: bool = False
    trained: bool = False


class Body(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a function does. `uses` are the parameters that it calls or calls methods of; `first` is what its first
    parameter is: `self`, `class` or nothing. `inner` are the functions defined in it, by qualified name."""

    row: int
    events: tuple[Event, ...] = ()
    returns: Names = ()
    parameters: Names = ()
    uses: Names = ()
    first: str = ""
    decorators: tuple[Names, ...] = ()
    inner: Names = ()


class Kind(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A class: the names of its bases, its methods by name, which of them are properties, and its inner functions."""

    bases: Names = ()
    methods: dict[str, str] = {}
    properties: Names = ()


class Memo(msgspec.Struct, array_like=True):
    """All that was asked of one file so far: it is what the cache keeps of it."""

    bodies: dict[str, Body | None] = {}
    kinds: dict[str, Kind | None] = {}
    globals: dict[str, Names] = {}
    attributes: dict[str, Names] = {}
    stars: Names | None = None
    dispatch: dict[str, Names] | None = None
    configs: tuple[tuple[str, str], ...] | None = None
