"""The argument of a call -> the numbers that it is one after another, where a loop goes through them in sight: the
sizes of a pyramid of poolings, `for size in (1, 2, 3, 6)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, is_static
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module, Value
    from torchdet_lint.module.names import Binding

_DEPTH = 4
_CALLS = 8


def numbers(module: Module, value: Value) -> list[int]:
    """The numbers that `value` is, each once for every place that gives it; none where they are out of sight."""
    node = value.node
    if isinstance(node, (cst.Tuple, cst.List)) and node.elements:
        first = node.elements[0].value
        if not all(one.value.deep_equals(first) for one in node.elements):
            return []
        node = first
    return list(_single(module, node, _DEPTH))


def _single(module: Module, node: cst.BaseExpression, depth: int) -> Iterator[int]:
    """What `node` is, one number at a time."""
    if isinstance(node, cst.Integer):
        yield node.evaluated_value
    if not isinstance(node, cst.Name) or not depth:
        return
    binding = _only_binding(module, node)
    if binding is None:
        yield from _of_branches(module, node)
        return
    if binding.kind == "loop" and binding.value is not None and not binding.path:
        for there, one in _several(module, binding.value, depth):
            yield from _single(there, one, depth - 1)
    elif binding.kind == "parameter" and isinstance(binding.node, cst.Param):
        for there, one in _given(module, binding.node):
            yield from _single(there, one, depth - 1)


def _of_branches(module: Module, node: cst.Name) -> Iterator[int]:
    """The numbers of which a name is one, where nothing else is assigned to it: by the arms of an `if`."""
    home = module.scope_of(node).home(node.value)
    values = [one.value if one.kind == "assign" else None for one in home.bindings[node.value]] if home else []
    if all(isinstance(value, cst.Integer) for value in values):
        yield from (value.evaluated_value for value in values if isinstance(value, cst.Integer))


def _several(module: Module, node: cst.BaseExpression, depth: int) -> Iterator[tuple[Module, cst.BaseExpression]]:
    """The elements of the list or tuple that `node` is, each with its file."""
    elements = module.elements(node, module.scope_of(node), module.order_of(node))
    for one in elements or ():
        yield module, one
    if elements is None and isinstance(node, cst.Attribute) and depth:
        kept = module.self_attribute(node, module.scope_of(node))
        if len(kept) == 1:
            yield from _several(module, kept[0].node, depth - 1)
    if elements is not None or not isinstance(node, cst.Name) or not depth:
        return
    binding = _only_binding(module, node)
    if binding is not None and isinstance(binding.node, cst.Param):
        for there, one in _given(module, binding.node):
            yield from _several(there, one, depth - 1)


def _only_binding(module: Module, node: cst.Name) -> Binding | None:
    """What a name is bound to, where that is one thing."""
    home = module.scope_of(node).home(node.value)
    bindings = home.bindings[node.value] if home is not None else ()
    return bindings[0] if len(bindings) == 1 else None


def _given(module: Module, parameter: cst.Param) -> Iterator[tuple[Module, cst.BaseExpression]]:
    """What the calls of a function in sight give its parameter, and its default where one leaves it or none is seen."""
    function = module.enclosing_function(parameter)
    if function is None:
        return
    bound = module.enclosing_class(function) is not None and not is_static(function)
    names = positional(function)[bound:]
    calls = list(CallEdges(module).callers_with_files(function))[:_CALLS]
    given = [(there, call.argument(parameter.name.value, names)) for there, call in calls]
    yield from ((there, value.node) for there, value in given if value is not None)
    if parameter.default is not None and (not given or any(value is None for _, value in given)):
        yield module, parameter.default
