"""A class of the file -> what its body and methods declare and register."""

from __future__ import annotations

import itertools
import operator
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.names import dotted, first_parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.calls import Call, Calls
    from torchdet_lint.module.facts import Class


class Declarations:
    """The attributes of the classes of one file that no assignment gives."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.resolver = calls.resolver
        self.relations = self.resolver.relations
        self.loading = calls.loading
        self.facts = calls.facts
        self._registering = self.resolver.library.facts.memory.registering
        self._seen = 0
        self._by_literal: dict[str, list[Call]] = {}

    def declared(self, class_: Class, name: str) -> Iterator[cst.BaseExpression]:
        """The annotations of attribute `name` in the body and methods of `class_` and of its bases in the file."""
        written = re.compile(rf"\b{name}\s*:")
        for relative in self.resolver.family(class_):
            for unit in self.loading.holding(name):
                if (
                    unit.root is None
                    and unit.piece.owner == relative.index >= 0
                    and name in self.loading.words[unit.index]
                    and written.search(self.facts.skeleton.text(unit.piece))
                ):
                    self.loading.load(unit)
            for node, scope in list(self.facts.declared.get(name, ())):
                if isinstance(node.target, cst.Name):
                    mine = scope is relative.scope
                else:
                    mine = scope.function.outer is relative.scope and first_parameter(scope.function) == dotted(
                        node.target
                    ).removesuffix(f".{name}")
                if mine:
                    yield node.annotation.annotation

    def fields(self, class_: Class) -> list[tuple[str, cst.BaseExpression]]:
        """The names that the body of `class_` itself annotates, in their order, and the annotations."""
        for unit in class_.units:
            if unit.piece.kind == "statements":
                self.loading.load(unit)
        found = [
            (self.relations.order_of(node), name, node.annotation.annotation)
            for name, there in self.facts.declared.items()
            for node, scope in there
            if scope is class_.scope
        ]
        return [(name, annotation) for _, name, annotation in sorted(found, key=operator.itemgetter(0))]

    def registrations(self, class_: Class, name: str) -> Iterator[Call]:
        """The calls `self.register_buffer("name", …)` and `register_parameter` in the methods of `class_`."""
        for relative in self.resolver.family(class_):
            for unit in self.loading.holding(name):
                words = self.loading.words[unit.index]
                if (
                    unit.piece.owner == relative.index >= 0
                    and name in words
                    and not words.isdisjoint(self._registering)
                ):
                    self.loading.load(unit)
            yield from (call for call in self._registered(name) if call.scope.function.outer is relative.scope)

    def _registered(self, name: str) -> list[Call]:
        """The calls that register `name`, in whatever class, in the units that are parsed so far."""
        calls = self.calls.taken()
        for call in itertools.islice(calls, self._seen, None):
            literal = call.node.args[0].value if call.node.args else None
            if call.attribute in self._registering and isinstance(literal, cst.SimpleString):
                self._by_literal.setdefault(str(literal.evaluated_value), []).append(call)
        self._seen = len(calls)
        return list(self._by_literal.get(name, ()))
