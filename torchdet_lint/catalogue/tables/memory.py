"""`rules/facts/memory.toml` → what a text says of memory that is allocated without a value."""

from __future__ import annotations

import functools
import re

from torchdet_lint.catalogue.conditions import Table


class Memory(Table, frozen=True, kw_only=True, dict=True):
    """Words of a text; what each list is for stands in the file."""

    allocators: frozenset[str] = frozenset()
    initialising: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()

    @functools.cached_property
    def goes_through_parts(self) -> re.Pattern[str]:
        """A loop over all parts of a model: search."""
        return re.compile(rf"\b(?:for|zip)\b[^:\n]*\b(?:{'|'.join(self.parts)})\(")
