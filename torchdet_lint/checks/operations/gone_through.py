"""The argument of a call -> the numbers that it may be, where they are in sight: those that a loop goes through, as
`for size in (1, 2, 3, 6)`, the default of a parameter, and what calls pass for it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, is_public, passed_by_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module, Value
    from torchdet_lint.module.names import Binding

_DEPTH = 4
_CALLS = 8


def numbers(module: Module, value: Value) -> list[int]:
    """The numbers that `value` is, each once for every place that gives it; none where they are out of sight."""
    return list(_single(module, value.node, _DEPTH))


def numbers_by_place(module: Module, value: Value) -> list[list[int]] | None:
    """The same of each element, where `value` is evidently a tuple or a list; else None."""
    node = value.node
    if isinstance(node, cst.Attribute):
        kept = module.self_attribute(node, value.scope)
        node = kept[0].node if len(kept) == 1 else node
    elif isinstance(node, cst.Name):
        binding = _only_binding(module, node)
        plain = binding is not None and binding.kind == "assign" and not binding.path
        node = binding.value if plain and binding is not None and binding.value is not None else node
    if not isinstance(node, (cst.Tuple, cst.List)) or not all(type(one) is cst.Element for one in node.elements):
        return None
    return [list(_single(module, one.value, _DEPTH)) for one in node.elements]


def _single(module: Module, node: cst.BaseExpression, depth: int) -> Iterator[int]:
    """What `node` is, one number at a time."""
    constant = module.value(node).constant
    if isinstance(constant, int) and not isinstance(constant, bool):
        yield constant
    elif isinstance(node, cst.Attribute) and depth:
        kept = module.self_attribute(node, module.scope_of(node))
        if len(kept) == 1:
            yield from _single(module, kept[0].node, depth - 1)
    elif isinstance(node, cst.Name) and depth:
        yield from _bound(module, node, depth)


def _bound(module: Module, node: cst.Name, depth: int) -> Iterator[int]:
    """What a name is, one number at a time."""
    binding = _only_binding(module, node)
    if binding is None:
        yield from _of_branches(module, node)
    elif binding.kind == "loop" and binding.value is not None and not binding.path:
        for there, one in _several(module, binding.value, depth):
            yield from _single(there, one, depth - 1)
    elif binding.kind == "parameter" and isinstance(binding.node, cst.Param):
        given = list(_given(module, binding.node))
        found = [list(_single(there, one, depth - 1)) for there, one in given]
        default = binding.node.default
        # What a call passes that only the run knows is often the same.
        if default is not None and not all(found):
            found.append(list(_single(module, default, 0)))
        yield from (number for passed in found for number in passed)


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
    names = passed_by_place(module, function)
    calls = list(itertools.islice(CallEdges(module).callers_with_files(function), _CALLS))
    given = [(there, call.argument(parameter.name.value, names)) for there, call in calls]
    yield from ((there, value.node) for there, value in given if value is not None)
    left = not given or any(value is None for _, value in given)
    if parameter.default is not None and (left or _may_be_left(module, function)):
        yield module, parameter.default


def _may_be_left(module: Module, function: cst.FunctionDef) -> bool:
    """Whether others than those in sight may call `function`, or make objects of the class of which it is the
    constructor: those that use a package, or derive from the class."""
    class_ = module.enclosing_class(function)
    name = class_.name if class_ is not None else function.name.value
    return is_public(module, name) or bool(class_ is not None and module.heirs is not None and module.heirs(name))
