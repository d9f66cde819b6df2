"""A node of a file's tree -> what holds it: parent, statement, function, class, scope, unit, and its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Class, Facts, Unit
    from torchdet_lint.module.names import Scope


_STATEMENTS = frozenset({cst.SimpleStatementLine, *cst.BaseCompoundStatement.__subclasses__()})


class Relations:
    """How the nodes of the parsed units stand to each other."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._parents = facts.parents
        self._scopes = facts.scopes
        self._orders = facts.orders

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds `node`; None for the root of a unit."""
        return self._parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around `node`, innermost first, up to the unit's root."""
        current = self._parents.get(id(node))
        while current is not None:
            yield current
            current = self._parents.get(id(current))

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost `def` whose body holds `node`."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, cst.FunctionDef):
                return ancestor
        return None

    def enclosing_class(self, node: cst.CSTNode) -> Class | None:
        """The innermost class around `node`, methods of it included."""
        return self.enclosing_class_of_scope(self.scope_of(node))

    def enclosing_class_of_scope(self, scope: Scope | None) -> Class | None:
        """The innermost class whose body or method `scope` is in."""
        classes = self._facts.classes
        while scope is not None:
            if scope in classes:
                return classes[scope]
            scope = scope.outer
        return None

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement that holds `node` (itself, if it is one)."""
        parents = self._parents
        while type(node) not in _STATEMENTS:
            outer = parents.get(id(node))
            if outer is None:
                break
            node = outer
        return node

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope in which the names of `node` are looked up."""
        parents, scopes = self._parents, self._scopes
        before, current = node, node
        while True:
            scope = scopes.get(id(current))
            if scope is not None and not (
                isinstance(current, (cst.FunctionDef, cst.ClassDef)) and before is not current.body
            ):
                return scope
            before = current
            outer = parents.get(id(current))
            if outer is None:
                break
            current = outer
        unit = self._facts.roots.get(id(before))
        return (unit.scope if unit is not None else None) or self._facts.scope

    def inner_scope(self, node: cst.CSTNode) -> Scope | None:
        """The scope that a function, lambda, comprehension or class makes."""
        return self._scopes.get(id(node))

    def order_of(self, node: cst.CSTNode) -> int:
        """The place of `node` in the source, comparable with a binding's."""
        parents, orders = self._parents, self._orders
        current: cst.CSTNode | None = node
        while current is not None:
            order = orders.get(id(current))
            if order is not None:
                return order
            current = parents.get(id(current))
        return 0

    def unit_of(self, node: cst.CSTNode) -> Unit:
        """The unit that `node` was parsed in."""
        parents = self._parents
        root: cst.CSTNode = node
        while id(root) in parents:
            root = parents[id(root)]
        return self._facts.roots[id(root)]
