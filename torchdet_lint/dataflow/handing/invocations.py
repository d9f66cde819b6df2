"""A method or a constructor -> the calls that run it, those of what its class derives from and of what derives from it
among them, in whichever file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.module.tree import is_super

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

# So many classes that derive from one are looked at.
_HEIRS = 12


def heirs_of(module: Module, class_: Class) -> list[tuple[Module, Class]]:
    """The classes that derive from `class_`, in its file and in those around it."""
    edges = CallEdges(module)
    return [*edges.derived(class_), *edges.heirs(class_)][:_HEIRS]


def calls_through_self(module: Module, name: str, class_: Class) -> Iterator[tuple[Module, Call]]:
    """The calls `self.name(…)` that run the method `name` of `class_`: in its own methods, in those of the classes that
    it derives from, and of those that derive from it and have no such method themselves."""
    below = [one for one in heirs_of(module, class_) if name not in one[1].methods]
    for there, relative in (*CallEdges(module).ancestors(module, class_), *below):
        there.look_for(name)
        for call in there.method_calls(name):
            own = call.receiver is not None and bare(call.receiver) == "self"
            if own and there.enclosing_class(call.node) is relative:
                yield there, call


def makings(module: Module, class_: Class) -> Iterator[tuple[Module, Call]]:
    """The calls that run the constructor of `class_`: that make an object of it, or of a class that derives from it and
    has no constructor, and the one of the next constructor in those that have their own."""
    yield from _calls_of_class(module, class_)
    for there, heir in heirs_of(module, class_):
        if "__init__" not in heir.methods:
            yield from _calls_of_class(there, heir)
            continue
        there.look_for("super")
        for call in there.calls:
            function = call.node.func
            next_one = isinstance(function, cst.Attribute) and call.attribute == "__init__" and is_super(function.value)
            if next_one and there.enclosing_class(call.node) is heir:
                yield there, call


def _calls_of_class(module: Module, class_: Class) -> Iterator[tuple[Module, Call]]:
    for node in module.shared(Relatives).calls_of(class_.name):
        if (call := module.call_at(node)) is not None:
            yield module, call
    if module.callers is not None and class_.outer is module.scope:
        yield from module.callers(class_.name)
