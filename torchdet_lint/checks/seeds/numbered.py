"""The findings of a file -> the same, with different seeds for the generators that their fixes make of torch's seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.dataflow.seeding.taken_seeds import APART
from torchdet_lint.finding import SetArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change, Violation
    from torchdet_lint.module.module import Module


def numbered(module: Module, found: Sequence[tuple[Rule, Violation]]) -> list[tuple[Rule, Violation]]:
    """`found` with what is added to torch's seed in each fix. Safe fixes take the first numbers, since a number of an
    unsafe one may never be written."""
    told = list(found)
    open_ones = [at for at, (_, one) in enumerate(told) if any(map(_is_open, one.changes))]
    for at in sorted(open_ones, key=lambda at: (told[at][1].applicability or told[at][0].fix) != "safe"):
        rule, one = told[at]
        told[at] = rule, one._replace(changes=tuple(_filled(module, change) for change in one.changes))
    return told


def _is_open(change: Change) -> bool:
    return isinstance(change, SetArgument) and APART.search(change.value) is not None


def _filled(module: Module, change: Change) -> Change:
    if not isinstance(change, SetArgument):
        return change
    seeds = module.shared(ProgramSeeds)
    return change._replace(value=APART.sub(lambda match: seeds.offset(match[1] or ""), change.value))
