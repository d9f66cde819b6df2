"""The tree of a unit -> its nodes in source order, each with the scope that it stands in, and what holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import libcst as cst

from torchdet_lint.module.facts import UNIT
from torchdet_lint.module.names import Binding, Scope
from torchdet_lint.module.tree import FIELDS, LEAVES, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchdet_lint.module.facts import Facts, Unit

State = tuple[Scope, bool, int]
"""The scope of a node, whether it runs only on some paths, and whether it may run again."""


class Done(NamedTuple):
    """A marker on the walk's stack: what is to be bound once the children before it were seen."""

    binder: Callable[[], None]


Stack = list[tuple["cst.CSTNode | Done", Scope, bool, int]]


class Walk:
    """The pass over one unit.

    `handlers` has for a class of nodes the function that notes what such a node says; it gives the state for the
    children, or None where it has put them on the stack itself.
    """

    def __init__(self, facts: Facts, unit: Unit, handlers: Mapping[type, Any]) -> None:
        self.facts = facts
        self.unit = unit
        self.handlers = handlers
        self.order = unit.index * UNIT
        self.parents = facts.parents
        self.scopes = facts.scopes
        self.orders = facts.orders

    def run(self, root: cst.Module) -> None:
        """Walk `root`, the tree of the unit; the statements of a class stand in an `if` that holds them."""
        unit = self.unit
        scope = unit.scope or self.facts.scope
        self.header = unit.piece.kind == "header"
        # The stack holds (node, scope, conditional, looped); a child is pushed after its later siblings.
        body = root.body
        if unit.inside:
            wrapper = body[0]
            assert isinstance(wrapper, cst.If) and isinstance(wrapper.body, cst.IndentedBlock)
            self.parents[id(wrapper)] = root
            self.parents[id(wrapper.body)] = wrapper
            body = wrapper.body.body  # type: ignore[assignment]
            holder: cst.CSTNode = wrapper.body
        else:
            holder = root
        stack: Stack = []
        for statement in reversed(body):
            self.parents[id(statement)] = holder
            stack.append((statement, scope, False, 0))
        self._walk(stack)

    def _walk(self, stack: Stack) -> None:
        parents, fields = self.parents, FIELDS
        handlers = self.handlers
        while stack:
            node: Any
            node, scope, conditional, looped = stack.pop()
            kind = type(node)
            if kind is Done:
                node.binder()
                continue
            self.order += 1
            handler = handlers.get(kind)
            if handler is not None:
                inner = handler(self, node, scope, conditional, looped, stack)
                if inner is None:
                    continue
                scope, conditional, looped = inner
            for name in reversed(fields[kind]):
                child = getattr(node, name)
                found = type(child)
                if found in PLAIN:
                    continue
                if found is tuple or found is list:
                    for item in reversed(child):
                        parents[id(item)] = node
                        if type(item) not in LEAVES:
                            stack.append((item, scope, conditional, looped))
                    continue
                parents[id(child)] = node
                if found not in LEAVES:
                    stack.append((child, scope, conditional, looped))

    def bind(self, scope: Scope, name: str, binding: Binding) -> None:
        """Bind `name` where a statement in `scope` binds it: not in a comprehension."""
        home = scope.function if scope.kind == "comprehension" and binding.kind != "loop" else scope
        home.bind(name, binding)

    def targets(self, target: cst.CSTNode, scope: Scope, make: Binding, path: tuple[int, ...] = ()) -> None:
        """Bind every name in an assignment target."""
        if isinstance(target, cst.Name):
            self.bind(scope, target.value, make._replace(path=path) if path else make)
        elif isinstance(target, (cst.Tuple, cst.List)):
            unpack = make._replace(kind="unpack") if make.kind == "assign" else make
            for index, element in enumerate(target.elements):
                self.targets(element.value, scope, unpack, (*path, index))
        elif isinstance(target, cst.StarredElement):
            self.targets(target.value, scope, make._replace(kind="other"), path)
