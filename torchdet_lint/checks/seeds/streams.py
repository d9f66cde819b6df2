"""The data sets of Hugging Face that a file reads as a stream -> the calls that shuffle them without a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.trace import origins
from torchdet_lint.prefilter.triggers import spellings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Call as Row
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Call, Module, Value

_MADE_OF_ONE = "to_iterable_dataset"
_LOADS = "datasets.load_dataset"
_MAKES = "datasets.IterableDataset."
_JOINS = frozenset(("datasets.concatenate_datasets", "datasets.interleave_datasets"))
_DEEP = 12


def streamed_shuffles(module: Module, rule: Rule) -> Iterator[tuple[Call, Row]]:
    """The calls of `shuffle` of a streamed data set that meet a row of the rule."""
    if not (any(way in module.text for mark in rule.marks for way in spellings(mark)) and module.imports("datasets")):
        return
    module.load_where(lambda part: ".shuffle(" in part, "shuffle")
    for row in rule.calls:
        for call in module.method_calls("shuffle") if row.variant == "streamed" else ():
            receiver = call.receiver
            if receiver is None or not module.meets(call, row.when, row.parameters):
                continue
            if _is_streamed(module, module.value_at(receiver, call.scope, call.order), 0):
                yield call, row


def _is_streamed(module: Module, value: Value, depth: int) -> bool:
    """Whether `value` is evidently a streamed data set, a split of one, or one that a method makes of one."""
    found = list(origins(module, value)) if depth < _DEEP else []
    return bool(found) and all(_makes_stream(module, one, depth) for one in found)


def _makes_stream(module: Module, value: Value, depth: int) -> bool:
    node = value.node
    if isinstance(node, cst.Subscript):
        return _is_streamed(module, module.value_at(node.value, value.scope, value.order), depth + 1)
    call = module.call_at(node)
    if call is None:
        return False
    if call.attribute == _MADE_OF_ONE or any(name.startswith(_MAKES) for name in call.names):
        return True
    if _LOADS in call.names:
        streaming = call.argument("streaming")
        return streaming is not None and streaming.known and bool(streaming.constant)
    if not _JOINS.isdisjoint(call.names):
        joined = call.argument("datasets", ("datasets",))
        parts = joined.node.elements if joined is not None and isinstance(joined.node, cst.List) else []
        values = [module.value_at(part.value, value.scope, value.order) for part in parts]
        return bool(values) and all(_is_streamed(module, one, depth + 1) for one in values)
    if call.attribute not in module.library.facts.workers.handing or call.receiver is None:
        return False
    return _is_streamed(module, module.value_at(call.receiver, value.scope, value.order), depth + 1)
