"""A node of a file's tree -> what holds it: parent, statement, function, class, scope, unit, and its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.choices.asserted import Asserted, asserted_in, told_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Class, Facts, Unit
    from torchdet_lint.module.names import Scope


_STATEMENTS = frozenset({cst.SimpleStatementLine, *cst.BaseCompoundStatement.__subclasses__()})
_BLOCKS = frozenset({cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite})
_DECIDING = frozenset({*_BLOCKS, cst.FunctionDef, cst.With, cst.If, cst.IfExp})
_CHOICES = (cst.If, cst.IfExp)
LEAVING = (cst.Return, cst.Raise, cst.Continue, cst.Break)
"""The statements that never run on into the one below them."""


class Relations:
    """How the nodes of the parsed units stand to each other."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._parents = facts.parents
        self._scopes = facts.scopes
        self._orders = facts.orders
        # What was found on the way up from a node, for all nodes on that way: an expression may be deep.
        self._deciding: dict[int, tuple[cst.CSTNode, cst.CSTNode] | None] = {}
        self._left: dict[int, float] = {}
        self._asserted: dict[int, list[Asserted]] = {}
        self._homes: dict[int, Scope] = {}
        self._places: dict[int, int] = {}

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds `node`; None for the root of a unit."""
        return self._parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around `node`, innermost first, up to the unit's root."""
        current = self._parents.get(id(node))
        while current is not None:
            yield current
            current = self._parents.get(id(current))

    def contains(self, outer: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether `node` is a part of `outer`, or of a part of it."""
        parents, orders, start = self._parents, self._orders, self.order_of(outer)
        current = parents.get(id(node))
        while current is not None and current is not outer:
            if orders.get(id(current), start) < start:
                return False
            current = parents.get(id(current))
        return current is not None

    def deciding(self, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        """The functions, blocks, `with`s, conditions and the root around `node`, innermost first, each with its part
        that holds `node`."""
        step = self._decides(node)
        while step is not None:
            yield step
            step = self._decides(step[0])

    def is_dead(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in an arm that a constant rules out, `if False:`, the `else` of `if True:`, or what the
        function asserts above; or in a function below a statement of the same block that always leaves: `raise
        NotImplementedError`."""
        way = list(self.deciding(node))
        if any(
            isinstance(around, _CHOICES)
            and inner is not around.test
            and _told(around.test) is (inner is not around.body)
            for around, inner in way
        ):
            return True
        function = next((at for at, (around, _) in enumerate(way) if isinstance(around, cst.FunctionDef)), 0)
        return any(
            isinstance(around, cst.IndentedBlock) and self.order_of(inner) > self._left_at(around)
            for around, inner in way[:function]
        ) or self._is_asserted_away(way[:function])

    def _is_asserted_away(self, way: list[tuple[cst.CSTNode, cst.CSTNode]]) -> bool:
        """Whether one of the choices on the `way` up in a function goes against what stands asserted above it there, of
        a name that is bound once."""
        known = [
            one
            for around, inner in way
            if isinstance(around, cst.IndentedBlock)
            for one in self._asserted_in(around)
            if self.order_of(one.statement) < self.order_of(inner)
            and len(self.scope_of(one.statement).bindings.get(one.name, ())) == 1
        ]
        return bool(known) and any(
            isinstance(around, _CHOICES)
            and inner is not around.test
            and told_by(around.test, known) is (inner is not around.body)
            for around, inner in way
        )

    def _asserted_in(self, block: cst.IndentedBlock) -> list[Asserted]:
        if id(block) not in self._asserted:
            self._asserted[id(block)] = [*asserted_in(block.body)]
        return self._asserted[id(block)]

    def _left_at(self, block: cst.IndentedBlock) -> float:
        """The order of the first statement of `block` that always leaves it; infinite where none does."""
        if id(block) not in self._left:
            leaving = (self.order_of(one) for one in block.body if _leaves(one))
            self._left[id(block)] = next(leaving, float("inf"))
        return self._left[id(block)]

    def _decides(self, node: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode] | None:
        """The first of `deciding`, which all nodes on the way there have in common."""
        known, parents = self._deciding, self._parents
        passed: list[int] = []
        key, inner, found = id(node), node, None
        while key not in known:
            outer = parents.get(key)
            if outer is None:
                break
            passed.append(key)
            if type(outer) in _DECIDING:
                found = (outer, inner)
                break
            key, inner = id(outer), outer
        else:
            found = known[key]
        for one in passed:
            known[one] = found
        return found

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost `def` whose body holds `node`."""
        for around, _ in self.deciding(node):
            if isinstance(around, cst.FunctionDef):
                return around
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

    def block(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The block that holds the statement of `node`: of `if x: y = 1`, what follows the colon."""
        outer = self._parents.get(id(node))
        while outer is not None and type(outer) not in _BLOCKS:
            if type(node) in _STATEMENTS:
                return outer
            node, outer = outer, self._parents.get(id(outer))
        return outer

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope in which the names of `node` are looked up."""
        parents, scopes, known = self._parents, self._scopes, self._homes
        passed: list[int] = []
        before, current = node, node
        while True:
            key = id(current)
            home = scopes.get(key)
            if home is not None and (
                before is current.body if isinstance(current, (cst.FunctionDef, cst.ClassDef)) else True
            ):
                break
            home = known.get(key)
            if home is not None:
                break
            outer = parents.get(key)
            if outer is None:
                unit = self._facts.roots.get(key)
                home = (unit.scope if unit is not None else None) or self._facts.scope
                break
            passed.append(key)
            before, current = current, outer
        for one in passed:
            known[one] = home
        return home

    def inner_scope(self, node: cst.CSTNode) -> Scope | None:
        """The scope that a function, lambda, comprehension or class makes."""
        return self._scopes.get(id(node))

    def order_of(self, node: cst.CSTNode) -> int:
        """The place of `node` in the source, comparable with a binding's."""
        parents, orders, known = self._parents, self._orders, self._places
        passed: list[int] = []
        key = id(node)
        while (place := orders.get(key) or known.get(key)) is None:
            outer = parents.get(key)
            if outer is None:
                place = 0
                break
            passed.append(key)
            key = id(outer)
        for one in passed:
            known[one] = place
        return place

    def unit_of(self, node: cst.CSTNode) -> Unit:
        """The unit that `node` was parsed in."""
        return self._facts.roots[id(self._root(node))]

    def is_mine(self, node: cst.CSTNode) -> bool:
        """Whether `node` is one of this file."""
        return id(self._root(node)) in self._facts.roots

    def _root(self, node: cst.CSTNode) -> cst.CSTNode:
        parents = self._parents
        root: cst.CSTNode = node
        while id(root) in parents:
            root = parents[id(root)]
        return root


def _told(test: cst.BaseExpression) -> bool | None:
    """Whether `test` holds, where a constant decides it: `0`, `not True`, `debug and False`; else None."""
    turned = False
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, turned = test.expression, not turned
    held = _constant(test)
    if isinstance(test, cst.BooleanOperation):
        ends = isinstance(test.operator, cst.Or)
        held = ends if ends in (_constant(test.left), _constant(test.right)) else None
    return None if held is None else held is not turned


def _constant(node: cst.BaseExpression) -> bool | None:
    if isinstance(node, cst.Integer):
        return node.evaluated_value != 0
    return {"True": True, "False": False, "None": False}.get(node.value) if isinstance(node, cst.Name) else None


def _leaves(statement: cst.CSTNode) -> bool:
    """Whether a statement never runs on into the one below it."""
    while isinstance(statement, cst.If):
        other = statement.orelse
        if other is None or not _is_left(statement.body):
            return False
        if isinstance(other, cst.Else):
            return _is_left(other.body)
        statement = other
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], LEAVING)


def _is_left(block: cst.BaseSuite) -> bool:
    if isinstance(block, cst.SimpleStatementSuite):
        return isinstance(block.body[-1], LEAVING)
    return any(map(_leaves, block.body))
