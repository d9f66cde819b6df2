"""A list or dictionary of a function -> what it is filled with, and whether no index is put in twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.syntax import names_in
from torchdet_lint.inference.abstract_values import AbstractValue, by_key, joined, text_of
from torchdet_lint.inference.elements.distinct_indices import follow_each_other
from torchdet_lint.module import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Scope


# Methods that put something into a dictionary.
_FILLING = frozenset({"setdefault", "update"})
# Methods that put something into a list.
_GROWING = frozenset({"append", "extend", "insert"})


class Containers:
    """The lists and dictionaries that functions start empty; `infer` gives the abstract value of what is put in."""

    def __init__(self, module: Module, infer: Callable[[cst.BaseExpression], AbstractValue]) -> None:
        self.module = module
        self.infer = infer

    def filled(self, name: str, home: Scope) -> AbstractValue:
        """What the function `home` puts into the list or dictionary `name`, by `append` or by key."""
        entries, grouped = self._appended(name, home)
        appended = len(entries) == 1
        keyed: list[tuple[str, cst.BaseExpression]] = []
        for target, value in self.module.assignments_in(home):
            if isinstance(target, cst.Subscript) and names.dotted(target.value) == name:
                entries.append(value)
                keyed.append((_key_of(target), value))
                appended = False
        if grouped and not entries:
            group = self._of(grouped)
            return AbstractValue(
                what="other", each=self._once(group, grouped[0], name, home) if len(grouped) == 1 else group
            )
        if not entries:
            return AbstractValue(what="other")
        found = self._of(entries)
        if keyed and all(key for key, _ in keyed) and not self.changes(name, home):
            found = replace(found, entries=by_key((key, self.infer(value)) for key, value in keyed))
        return self._once(found, entries[0], name, home) if appended else found

    def changes(self, name: str, home: Scope, *, by_key: bool = False) -> bool:
        """Whether the function `home` puts something into the dictionary `name` by a method, or `by_key`."""
        called = any(
            call.attribute in _FILLING and isinstance(call.receiver, cst.Name) and call.receiver.value == name
            for call in self.module.calls_in(home)
        )
        return called or (
            by_key
            and any(
                isinstance(target, cst.Subscript) and names.dotted(target.value) == name
                for target, _ in self.module.assignments_in(home)
            )
        )

    def grows(self, name: str, home: Scope) -> bool:
        """Whether the function `home` puts something into the list `name`, or replaces an element of it."""
        return any(
            call.attribute in _GROWING and isinstance(call.receiver, cst.Name) and call.receiver.value == name
            for call in self.module.calls_in(home)
        ) or any(
            isinstance(target, cst.Subscript) and names.dotted(target.value) == name
            for target, _ in self.module.assignments_in(home)
        )

    def _of(self, entries: list[cst.BaseExpression]) -> AbstractValue:
        return AbstractValue(what="other", each=joined(self.infer(entry) for entry in entries))

    def _appended(self, name: str, home: Scope) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression]]:
        """What is appended to `name`, and what to a list in the dictionary `name`."""
        entries: list[cst.BaseExpression] = []
        grouped: list[cst.BaseExpression] = []
        for call in self.module.calls_in(home):
            receiver = call.receiver
            if call.attribute != "append" or receiver is None or len(call.node.args) != 1:
                continue
            if isinstance(receiver, cst.Name) and receiver.value == name:
                entries.append(call.node.args[0].value)
            elif _group_of(receiver) == name:
                grouped.append(call.node.args[0].value)
        return entries, grouped

    def _once(self, found: AbstractValue, entry: cst.BaseExpression, name: str, home: Scope) -> AbstractValue:
        """`found`, which says that no number occurs twice where the loop counts up what it puts in."""
        if not self._counted(entry, name, home):
            return found
        return AbstractValue(what="other", each=found.each, distinct=True)

    def _counted(self, entry: cst.BaseExpression, name: str, home: Scope) -> bool:
        created = [binding.node for binding in home.bindings[name] if binding.node is not None]
        beside = {id(ancestor) for node in created for ancestor in self.module.ancestors(node)}
        loops = [
            ancestor
            for ancestor in self.module.ancestors(entry)
            if isinstance(ancestor, (cst.For, cst.While)) and id(ancestor) not in beside
        ]
        if not loops or not isinstance(loops[0], cst.For):
            return False
        if isinstance(entry, cst.Name):
            return len(loops) == 1 and self._counter(loops[0]) == entry.value
        call = self.module.call_at(entry)
        if call is None or "torch.arange" not in call.names or len(call.arguments.positional) != 2:
            return False
        start, stop = (self.module.code(value.node) for value in call.arguments.positional)
        if not any(follow_each_other(start, stop, counter) for counter in names_in(loops[0].target)):
            return False
        told = set(names_in(call.arguments.positional[0].node))
        return all(isinstance(loop, cst.For) and not told.isdisjoint(names_in(loop.target)) for loop in loops)

    def _counter(self, loop: cst.For) -> str:
        """The name that counts the rounds of a loop over a range or an enumeration."""
        called = self.module.resolve(loop.iter.func) if isinstance(loop.iter, cst.Call) else ()
        if called == ("builtins.range",) and isinstance(loop.target, cst.Name):
            return loop.target.value
        if called == ("builtins.enumerate",) and isinstance(loop.target, cst.Tuple) and loop.target.elements:
            first = loop.target.elements[0].value
            return first.value if isinstance(first, cst.Name) else ""
        return ""


def _key_of(node: cst.Subscript) -> str:
    """The constant text by which `node` takes an entry; else nothing."""
    index = node.slice[0].slice
    return text_of(index.value) if len(node.slice) == 1 and isinstance(index, cst.Index) else ""


def _group_of(receiver: cst.BaseExpression) -> str:
    """`x` of `x[key]` and of `x.setdefault(key, [])`."""
    if isinstance(receiver, cst.Subscript):
        return names.dotted(receiver.value)
    if isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Attribute):
        return names.dotted(receiver.func.value) if receiver.func.attr.value == "setdefault" else ""
    return ""
