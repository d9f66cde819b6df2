"""A test -> what it makes sure of: in its branch, and `isinstance` and its kin behind an assertion or a way out too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.inference.abstract_values import TENSOR, AbstractValue, joined
from torchdet_lint.module import names
from torchdet_lint.module.relations import LEAVING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.inference.annotations import Annotations
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Binding, Scope

_TESTS = frozenset({"builtins.isinstance", "torch.is_tensor", "torch.overrides.is_tensor_like"})


class _Check(NamedTuple):
    """A test of the type of a name, and the node in which, behind the test, it holds."""

    order: int
    inferred: AbstractValue
    within: cst.CSTNode


def tests_around(module: Module, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The tests of the `if`s in whose branches `node` stands, innermost first, and whether each holds there."""
    for around, inner in module.deciding(node):
        if isinstance(around, (cst.If, cst.IfExp)) and inner is not around.test:
            yield around.test, inner is around.body


def settled_by(test: cst.BaseExpression, *, holds: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The parts of `test` that are settled where it holds, or does not, and whether each holds there: both sides of an
    `and` that holds, and of an `or` that does not."""
    stack = [(test, holds)]
    while stack:
        one, true = stack.pop()
        if isinstance(one, cst.UnaryOperation) and isinstance(one.operator, cst.Not):
            stack.append((one.expression, not true))
        elif isinstance(one, cst.BooleanOperation) and isinstance(one.operator, cst.And if true else cst.Or):
            stack += [(one.left, true), (one.right, true)]
        else:
            yield one, true


class _Compared(NamedTuple):
    """The texts that a name is one of behind a test, or the types of one of which it is, and the place of the test."""

    order: int
    name: str
    texts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class Comparisons:
    """The tests of the names in one file for texts and types: by the `if` around, by an assertion, or by one that
    leaves."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._tests_types = "isinstance(" in module.text or "type(" in module.text
        self._sure: dict[int, list[_Compared]] = {}

    def texts(self, node: cst.BaseExpression, scope: Scope) -> tuple[str, ...]:
        """The texts of which the name `node`, or the attribute, is one where it stands, by the nearest test."""
        return next((one.texts for one in self._holding(node, scope) if one.texts), ())

    def types(self, node: cst.BaseExpression, scope: Scope) -> tuple[str, ...]:
        """The types, as they are written, of one of which the name `node` is where it stands, by the nearest test."""
        if not self._tests_types:
            return ()
        filters = (one for one in self._filtered(node) if one.name == names.dotted(node))
        return next((one.types for one in (*filters, *self._holding(node, scope)) if one.types), ())

    def _holding(self, node: cst.BaseExpression, scope: Scope) -> Iterator[_Compared]:
        """What the tests on the way to the name `node` make sure of, the nearest first."""
        name, order = names.dotted(node), self.module.order_of(node)
        for around, inner in self.module.deciding(node) if name else ():
            found: list[_Compared] = []
            if isinstance(around, (cst.If, cst.IfExp)) and inner is not around.test:
                holds = inner is around.body
                found = list(self._compared(around.test, holds=holds, order=self.module.order_of(around)))
            elif isinstance(around, cst.IndentedBlock):
                here = self.module.order_of(inner)
                found = [one for one in reversed(self._of(around)) if one.order < here]
            for one in found:
                if one.name == name and not self._bound_between(name, scope, one.order, order):
                    yield one

    def _filtered(self, node: cst.BaseExpression) -> Iterator[_Compared]:
        """What the conditions of the comprehension make sure of, of whose elements `node` is part."""
        inner: cst.CSTNode = node
        for around in self.module.ancestors(node):
            if isinstance(around, (cst.GeneratorExp, cst.ListComp, cst.SetComp)):
                if inner is around.elt:
                    loop: cst.CompFor | None = around.for_in
                    while loop is not None:
                        for one in loop.ifs:
                            yield from self._compared(one.test, holds=True, order=0)
                        loop = loop.inner_for_in
                return
            if isinstance(around, (cst.BaseStatement, cst.BaseSmallStatement, cst.Lambda)):
                return
            inner = around

    def _bound_between(self, name: str, scope: Scope, start: int, end: int) -> bool:
        home = scope.home(name)
        return any(start < binding.order < end for binding in (home.bindings[name] if home is not None else ()))

    def _of(self, block: cst.IndentedBlock) -> list[_Compared]:
        """What the statements of `block` make sure of for those behind them."""
        if id(block) not in self._sure:
            found: list[_Compared] = []
            for statement in block.body:
                order = self.module.order_of(statement)
                small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
                if isinstance(small, cst.Assert):
                    found += self._compared(small.test, holds=True, order=order)
                elif (
                    isinstance(statement, cst.If) and statement.orelse is None and _leaves_or_binds(statement.body, "")
                ):
                    found += self._compared(statement.test, holds=False, order=order)
            self._sure[id(block)] = found
        return self._sure[id(block)]

    def _compared(self, test: cst.BaseExpression, *, holds: bool, order: int) -> Iterator[_Compared]:
        for one, true in settled_by(test, holds=holds):
            if isinstance(one, cst.Call) and true and names.dotted(one.func) == "isinstance" and len(one.args) == 2:
                yield _Compared(order, names.dotted(one.args[0].value), types=_types(one.args[1].value))
            elif isinstance(one, cst.Comparison) and len(one.comparisons) == 1:
                asked = one.comparisons[0]
                same = (cst.In, cst.Equal, cst.Is) if true else (cst.NotIn, cst.NotEqual, cst.IsNot)
                if not isinstance(asked.operator, same):
                    continue
                if isinstance(one.left, cst.Call) and names.dotted(one.left.func) == "type" and len(one.left.args) == 1:
                    tested = names.dotted(one.left.args[0].value)
                    yield _Compared(order, tested, types=_types(asked.comparator))
                elif texts := _texts(asked.comparator):
                    yield _Compared(order, names.dotted(one.left), texts)


class Narrowing:
    """The tests of types in the functions of one file."""

    def __init__(self, module: Module, annotations: Annotations) -> None:
        self.module = module
        self.annotations = annotations
        self._tested = "isinstance" in module.text or "is_tensor" in module.text
        self._checks: dict[int, dict[str, list[_Check]]] = {}

    def narrowed(self, inferred: AbstractValue, binding: Binding, node: cst.Name, home: Scope) -> AbstractValue:
        """The value that `binding` gives to the name `node`, with what a test on the way says where it is unknown."""
        if not self._tested or inferred.what != "unknown":
            return inferred
        checks = self._of(home).get(node.value)
        if not checks:
            return inferred
        order = self.module.order_of(node)
        between = [check for check in checks if binding.order < check.order <= order]
        around = {id(node), *(id(ancestor) for ancestor in self.module.ancestors(node))} if between else ()
        return next((check.inferred for check in between if id(check.within) in around), inferred)

    def tests(self, name: str, home: Scope) -> bool:
        """Whether a function tests the type of one of its names."""
        return self._tested and name in self._of(home)

    def _of(self, home: Scope) -> dict[str, list[_Check]]:
        key = id(home)
        if key not in self._checks:
            found: dict[str, list[_Check]] = {}
            for call in self.module.calls_in(home):
                if call.node.args and isinstance(call.node.args[0].value, cst.Name) and _TESTS.intersection(call.own):
                    found.setdefault(call.node.args[0].value.value, []).extend(self._made_sure(call))
            self._checks[key] = found
        return self._checks[key]

    def _made_sure(self, call: Call) -> Iterator[_Check]:
        """Where what `call` tests holds."""
        inferred = self._meant(call)
        if inferred.what == "unknown":
            return
        node: cst.CSTNode = call.node
        parent = self.module.parent(node)
        while isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And):
            if parent.left is node:
                yield _Check(call.order, inferred, parent.right)
            node, parent = parent, self.module.parent(parent)
        if isinstance(parent, (cst.If, cst.IfExp)) and parent.test is node:
            yield _Check(self.module.order_of(parent), inferred, parent.body)
        elif isinstance(parent, cst.Assert) and parent.test is node:
            yield from self._from_here_on(call, inferred, self.module.statement(parent))
        elif isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not) and node is call.node:
            choice, name = self.module.parent(parent), names.dotted(call.node.args[0].value)
            alone = isinstance(choice, cst.If) and choice.test is parent and choice.orelse is None
            if alone and isinstance(choice, cst.If) and _leaves_or_binds(choice.body, name):
                yield from self._from_here_on(call, inferred, choice)

    def _from_here_on(self, call: Call, inferred: AbstractValue, statement: cst.CSTNode) -> Iterator[_Check]:
        block = self.module.parent(statement)
        if block is not None:
            yield _Check(call.order, inferred, block)

    def _meant(self, call: Call) -> AbstractValue:
        if "builtins.isinstance" not in call.own:
            return TENSOR
        if len(call.node.args) != 2:
            return AbstractValue()
        types = call.node.args[1].value
        if isinstance(types, cst.Tuple):
            return joined(self.annotations.infer(element.value) for element in types.elements)
        return self.annotations.infer(types)


def _texts(node: cst.BaseExpression) -> tuple[str, ...]:
    """The texts that `node` is or holds."""
    parts = [one.value for one in node.elements] if isinstance(node, (cst.List, cst.Tuple, cst.Set)) else [node]
    return tuple(str(part.evaluated_value) for part in parts if isinstance(part, cst.SimpleString))


def _types(node: cst.BaseExpression) -> tuple[str, ...]:
    """The types that `node` is or holds; `int | float` too."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return _types(node.left) + _types(node.right)
    parts = [one.value for one in node.elements] if isinstance(node, (cst.List, cst.Tuple, cst.Set)) else [node]
    return tuple(map(names.dotted, parts))


def _leaves_or_binds(body: cst.BaseSuite, name: str) -> bool:
    """Whether the last statement of `body` leaves, or gives `name` another value."""
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if isinstance(small, LEAVING):
        return True
    if not isinstance(small, cst.Assign):
        return False
    return any(isinstance(target.target, cst.Name) and target.target.value == name for target in small.targets)
