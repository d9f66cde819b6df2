"""The catalogue -> what it says of the names in a file, as far as a summary asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.catalogue.tables.devices import Devices
    from torchdet_lint.catalogue.tables.programs import Programs
    from torchdet_lint.prefilter.library import Library


class Vocabulary(NamedTuple):
    """`wrappers` are the callables that return what they are given; `canonical` is `Library.canonical`."""

    programs: Programs
    devices: Devices
    wrappers: frozenset[str]
    canonical: Callable[[str], str]

    @classmethod
    def of(cls, library: Library) -> Vocabulary:
        """What `library` says."""
        facts = library.facts
        return cls(facts.programs, facts.devices, frozenset(facts.wrappers), library.canonical)
