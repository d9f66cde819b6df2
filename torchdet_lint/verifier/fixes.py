"""The runtime fix of every rule, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def environment(codes: Iterable[str], seed: int, base_env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that the fixes of `codes` set before the interpreter starts."""
    del codes, seed, base_env
    return {}
