"""Uses of an order -> the first that makes it part of a result, and the note that tells so."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from torchdet_lint.finding import RelatedNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.dataflow.uses import Use
    from torchdet_lint.finding import Severity


ORDERED = (
    "indexed", "picked", "first", "numbered", "joined", "printed", "written", "saved", "drawn", "gathered", "returned",
    "yielded", "handed", "kept", "summed", "trained", "dealt",
)  # fmt: skip
_TOLD = {
    "indexed": "a position in it is used here",
    "picked": "one of them is taken here",
    "first": "the first that fits is taken here",
    "saved": "it is saved or collated here",
    "numbered": "numbers are given out in its order here",
    "joined": "it becomes one text here",
    "printed": "it is printed here",
    "written": "it is written here in this order",
    "drawn": "it is drawn from or shuffled here: the same seed picks other elements",
    "gathered": "it becomes an array, a table or a data set here",
    "returned": "it is returned in this order",
    "yielded": "it is yielded in this order",
    "called": "it is passed on in this order",
    "handed": "it goes in this order to code that is not in sight",
    "summed": "floats are added up in its order here, which rounds differently",
    "trained": "the optimizer makes its steps in this order here",
    "dealt": "random numbers are dealt out in its order here",
    "initialised": "what is made here takes random numbers in its order",
    "kept": "it is kept in this order in an object that other code may read",
}


def telling(use: Use) -> tuple[RelatedNode, ...]:
    """What the report says of the place where the order is used."""
    told = _TOLD[use.kind]
    if use.file:
        told = f"it goes to `{PurePath(use.file).name}` here: {told.removesuffix(' here').replace(' here', '')} there"
    return (RelatedNode(use.node, told),)


def first_ordered(uses: Sequence[Use]) -> Use | None:
    """The first of `uses` that makes the order part of a result, or else that prints it."""
    ordered = [use for use in uses if use.kind in ORDERED]
    return next((use for use in ordered if use.kind != "printed"), ordered[0] if ordered else None)


def severity_of(use: Use | None) -> Severity | None:
    """That of an order that is only printed: no result hangs on it."""
    return "note" if use is not None and use.kind == "printed" else None
