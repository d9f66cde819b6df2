"""A file -> the sets that it goes through and that classes of other files make: they implement a method which is
abstract in a class of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.given.given_sets import GivenSet, kind_given
from torchdet_lint.dataflow.call_edges import CallEdges, Callee
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module

_ABSTRACT = lazy(r"abstractmethod|raise NotImplementedError")
_CALLED = lazy(r"\bself\.(\w+)[ \t]*\(")


def implemented_sets(module: Module) -> Iterator[GivenSet]:
    """The calls in `module` of its abstract methods that give a set where a class of another file implements them."""
    if module.heirs is None or not _ABSTRACT.search(module.text):
        return
    called = frozenset(_CALLED.findall(module.text))
    methods = [
        (unit.piece.owner, unit.piece.name)
        for unit in module.units
        if unit.piece.kind == "function"
        and unit.piece.owner >= 0
        and unit.piece.name in called
        and _ABSTRACT.search(module.texts[unit.index])
    ]
    if not methods:
        return
    module.loading.wake()
    module.load_statements()
    for owner, name in methods:
        class_ = module.loading.facts.top_classes[owner]
        if kind := _kind_below(module, class_, name):
            yield from (
                GivenSet(node, kind, Follower(module).uses(node, is_set=True)) for node in _calls(module, class_, name)
            )


def _kind_below(module: Module, class_: Class, name: str) -> str:
    """What the set holds that a class of another file returns for the method `name` of `class_`; empty where none of
    them returns one."""
    for there, heir in CallEdges(module).heirs(class_):
        function = there.definition(name, heir) if name in heir.methods else None
        if function is not None and (kind := kind_given(module, Callee(there, function))):
            return kind
    return ""


def _calls(module: Module, class_: Class, name: str) -> list[cst.Call]:
    """The calls of `self.name` in the methods of `class_`."""
    module.load_where(lambda text: f"self.{name}" in text, name)
    return [
        call.node
        for call in module.method_calls(name)
        if isinstance(call.node.func, cst.Attribute)
        and isinstance(call.node.func.value, cst.Name)
        and call.node.func.value.value == "self"
        and module.enclosing_class(call.node) is class_
    ]
