"""The files of `rules/facts/runtime/` -> what the verifier knows of torch's ops and of what programs print.

The linter does not read them. The recorder, which runs inside the user's program, reads nothing else of the catalogue
and needs no other package for that: a program may start the Python of another environment, which has torch alone.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, NamedTuple

from torchdet_lint import reading
from torchdet_lint.catalogue.texts import RULES_DIRECTORY, CatalogueError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Words = tuple[str, ...]


class Dispatch(NamedTuple):
    """What the ops of aten are; each list is explained where it stands, in `dispatch.toml`."""

    empty: Words
    views: Words
    binds: Words
    picks: Words
    resizing: Words
    lifts: Words
    silent: Words
    collectives: Words
    overwrites: Words
    drawless: Words
    fills: Words
    unused: Words
    undeclared_writes: dict[str, Words]
    filled: dict[str, str]
    scratch: dict[str, tuple[int, ...]]
    backward: dict[str, str]
    packages: dict[str, str]
    composed: dict[str, dict[str, str]]
    forward: dict[str, str]
    spelled: dict[str, str]
    folded: dict[str, Words]
    folded_draws: dict[str, Words]


class Surroundings(NamedTuple):
    """What a run depends on, and what may differ in what it prints; each list is explained in `surroundings.toml`."""

    variables: Words
    libraries: Words
    timed: Words
    timed_keys: Words
    measured_keys: Words
    units: Words


@functools.cache
def dispatch() -> Dispatch:
    """`dispatch.toml`. Raises `CatalogueError` where it cannot be read, or has other keys than these."""
    return Dispatch(**_read("dispatch", Dispatch._fields))


@functools.cache
def surroundings() -> Surroundings:
    """`surroundings.toml`. Raises `CatalogueError` where it cannot be read, or has other keys than these."""
    return Surroundings(**_read("surroundings", Surroundings._fields))


def _read(name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    path = RULES_DIRECTORY / "facts" / "runtime" / f"{name}.toml"
    try:
        table = tomllib.loads(reading.read(str(path), reading.LARGEST_CONFIGURATION).decode())[name]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    if table.keys() != set(keys):
        raise CatalogueError(f"{path}: the keys must be {', '.join(keys)}")
    return {key: _frozen(value) if isinstance(value, dict) else tuple(value) for key, value in table.items()}


def _frozen(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
