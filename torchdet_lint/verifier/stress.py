"""The two sides of a stress pair: both legal, and opposite."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def environment(side: str, base_env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of one side of a stress pair."""
    del base_env
    if not side:
        return {}
    return {"PYTHONHASHSEED": {"A": "1", "B": "2"}[side], "MALLOC_PERTURB_": {"A": "85", "B": "170"}[side]}
