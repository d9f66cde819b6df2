"""A test -> what it makes sure of: in its branch, and `isinstance` and its kin behind an assertion or a way out too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.inference.abstract_values import TENSOR, AbstractValue, joined
from torchdet_lint.module import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.inference.annotations import Annotations
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Binding, Scope

_LEAVING = (cst.Raise, cst.Return, cst.Continue, cst.Break)
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


def _leaves_or_binds(body: cst.BaseSuite, name: str) -> bool:
    """Whether the last statement of `body` leaves, or gives `name` another value."""
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if isinstance(small, _LEAVING):
        return True
    if not isinstance(small, cst.Assign):
        return False
    return any(isinstance(target.target, cst.Name) and target.target.value == name for target in small.targets)
