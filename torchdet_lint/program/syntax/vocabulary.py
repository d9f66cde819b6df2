"""The catalogue -> what it says of the names in a file, as far as a summary asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.catalogue.tables.devices import Devices
    from torchdet_lint.catalogue.tables.programs import Programs
    from torchdet_lint.prefilter.library import Library


class Vocabulary(NamedTuple):
    """`wrappers` are the callables that return what they are given, `no_grad` the context managers that switch
    gradients off, `enable_grad` those that switch them on, `set_grad` those that do what they are told; `roots` are the
    packages that the catalogue speaks of; `applying` is where libraries have data sets whose rows the transforms make
    that they are given as `applied`, `holding` are the data sets that hold others, and functions that make such;
    `of_tensors` are attributes and methods of tensors; `canonical` is `Library.canonical`."""

    programs: Programs
    devices: Devices
    wrappers: frozenset[str]
    no_grad: frozenset[str]
    enable_grad: frozenset[str]
    set_grad: frozenset[str]
    roots: frozenset[str]
    applying: tuple[str, ...]
    applied: tuple[str, ...]
    holding: frozenset[str]
    of_tensors: frozenset[str]
    canonical: Callable[[str], str]

    @classmethod
    def of(cls, library: Library) -> Vocabulary:
        """What `library` says."""
        facts, tensors = library.facts, library.facts.tensors
        return cls(
            facts.programs,
            facts.devices,
            frozenset(facts.wrappers),
            frozenset(tensors.no_grad),
            tensors.enable_grad,
            frozenset(tensors.gradient_switches),
            frozenset(library.roots),
            tuple(facts.workers.applying),
            tuple(facts.workers.applied),
            frozenset(facts.workers.holding),
            frozenset((*tensors.distinctive, *tensors.facts_of_tensors, *tensors.keeping_values, *tensors.reducing)),
            library.canonical,
        )
