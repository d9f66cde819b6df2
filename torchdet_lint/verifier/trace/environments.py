"""The headers of two runs -> what differs between the environments that they tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def flat(header: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a run, its variables under their names with a dollar sign."""
    values = dict(header.get("environment", {}))
    variables = values.pop("variables", {})
    return {**{k: str(v) for k, v in values.items()}, **{f"${k}": str(v) for k, v in variables.items()}}


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What differs between two tables, by name; what one has not is empty there."""
    return {name: (a.get(name, ""), b.get(name, "")) for name in sorted({*a, *b}) if a.get(name) != b.get(name)}
