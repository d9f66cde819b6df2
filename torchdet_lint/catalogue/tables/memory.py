"""`rules/facts/memory.toml` -> what a text says of memory that is allocated without a value."""

from __future__ import annotations

import functools
import re

import msgspec

from torchdet_lint.catalogue.conditions import Table


class Memory(Table, frozen=True, kw_only=True, dict=True):
    """Words of a text; what each list is for stands in the file."""

    allocators: frozenset[str] = frozenset()
    initialising: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    strided: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    not_a_number: frozenset[str] = frozenset()
    registering: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()
    extents: tuple[str, ...] = ()
    counts: frozenset[str] = frozenset()
    counting: frozenset[str] = frozenset()
    counting_methods: frozenset[str] = frozenset()
    largest: frozenset[str] = frozenset()
    ranges: frozenset[str] = frozenset()
    progress: frozenset[str] = frozenset()
    masks: frozenset[str] = frozenset()
    zeroed: dict[str, str] = msgspec.field(default_factory=dict)

    @functools.cached_property
    def goes_through_parts(self) -> re.Pattern[str]:
        """A loop over all parts of a model: search."""
        return re.compile(rf"\b(?:for|zip)\b[^:\n]*\b(?:{'|'.join(self.parts)})[ \t]*\(")

    @functools.cached_property
    def makes_tensor_of_size(self) -> re.Pattern[str]:
        """The beginning of a call of a tensor's class that is given extents, or may be: search."""
        size = "|".join(self.extents)
        extents = (
            rf"\((?!\s*\[)(?:\s*\d|[^()\n]*,|\s*(?:[\w.]+\.)?(?:(?:{size})\s*\)|size[ \t]*\(|shape\b|len[ \t]*\())"
        )
        classes = "|".join(self.classes)
        legacy = rf"Tensor(?=[ \t]*{extents})|(?:{classes})Tensor(?=[ \t]*(?:{extents}|\(\s*\w+\s*\)))"
        return re.compile(rf"(?<![\w.])(?:\w+\.(?:cuda\.)?)?(?:{legacy})")

    @functools.cached_property
    def is_extent(self) -> re.Pattern[str]:
        """The text of an expression that is evidently an extent: fullmatch."""
        size = "|".join(self.extents)
        return re.compile(rf"(?:[\w.]+\.)?(?:{size})|len[ \t]*\(.*\)|[\w.]+\.(?:size[ \t]*\(.*\)|shape(?:\[.*\])?)")

    @functools.cached_property
    def names_count(self) -> re.Pattern[str]:
        """The name of a variable that may be an integer by the row that binds, annotates or counts up to it: findall,
        the one or the other of two names."""
        words = "|".join(sorted({name.rpartition(".")[2] for name in (*self.counting, *self.counting_methods)}))
        made = rf"=(?!=)[^=\n]{{0,80}}?(?:\b(?:{words})[ \t]*\(|\.shape\b)"
        given = r"=[ \t]*\d+[ \t]*[,)\n]"
        return re.compile(
            rf"\brange[ \t]*\(\s*(\w+)\s*\)|\b([^\W\d]\w*)[ \t]*(?::[^=\n]{{0,20}}\bint\b|{made}|{given})"
        )
