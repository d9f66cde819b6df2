"""A call that unpacks a dictionary, `interpolate(x, size, **self.options)` -> the dictionaries that it may be."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.syntax import parameter_behind
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Call, Module, Value

# Attributes and parameters are looked through so many times, and so many calls of one function.
_DEEP = 6
_CALLS = 12


def unpacked(module: Module, call: Call) -> Iterator[dict[str, Value]]:
    """The entries of what `call` unpacks, where an attribute has it from a base class or a constructor, or callers of
    the function around give it."""
    for arg in call.node.args:
        if arg.star == "**":
            yield from _entries(module, module.value_at(arg.value, call.scope, call.order), _DEEP)


def _entries(module: Module, value: Value, depth: int) -> Iterator[dict[str, Value]]:
    if isinstance(value.node, cst.Name):
        module.load_where(None, value.node.value)
    entries = module.dictionary(value.node, value.scope, value.order)
    if entries:
        yield entries
        return
    for there, given in _given(module, value) if depth > 0 else ():
        yield from _entries(there, given, depth - 1)


def _given(module: Module, value: Value) -> Iterator[tuple[Module, Value]]:
    """What an attribute of `self` or a parameter stands for, each with its file."""
    node = value.node
    if isinstance(node, cst.Attribute) and dotted(node.value) == "self":
        class_ = module.resolver.class_of(node.value, value.scope)
        if class_ is not None:
            yield from CallEdges(module).kept(module, class_, node.attr.value)
        return
    parameter = parameter_behind(node, value.scope)
    home = value.scope.home(parameter.name.value) if parameter is not None else None
    function = home.node if home is not None else None
    if parameter is None or not isinstance(function, cst.FunctionDef):
        return
    if parameter.default is not None:
        yield module, module.value(parameter.default)
    names = positional(function)[module.enclosing_class(function) is not None :]
    for there, call in itertools.islice(CallEdges(module).callers_with_files(function), _CALLS):
        given = call.argument(parameter.name.value, names)
        if given is not None:
            yield there, given
