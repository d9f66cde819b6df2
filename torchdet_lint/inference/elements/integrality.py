"""A tensor that was made of zeros or ones -> whether only whole numbers are written into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module import names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.inference.abstract_values import AbstractValue
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope


class Integrality:
    """What functions write into tensors of zeros and ones; `infer` gives an expression's abstract value."""

    def __init__(self, module: Module, infer: Callable[[cst.BaseExpression], AbstractValue]) -> None:
        self.module = module
        self.infer = infer
        self._written: dict[tuple[int, str], list[tuple[int, cst.Name]]] = {}

    def stay(self, node: cst.Name, bindings: Sequence[Binding], home: Scope) -> bool:
        """Whether only whole numbers are written into a tensor between where it was made and `node`."""
        assert home.node is not None
        key = (id(home), node.value)
        if key not in self._written:
            places = [
                place for place in self.module.names_under(home.node, node.value) if self._writes(place) is not None
            ]
            self._written[key] = sorted(((self.module.order_of(place), place) for place in places), key=_first)
        if not self._written[key]:
            return True
        made = min((binding.order for binding in bindings), default=0)
        until = self.module.order_of(node)
        if any(isinstance(ancestor, (cst.For, cst.While)) for ancestor in self.module.ancestors(node)):
            until = self._written[key][-1][0]
        return all(self._writes(place) for order, place in self._written[key] if made < order <= until)

    def _writes(self, place: cst.Name) -> bool | None:
        """Whether what is written into the tensor of that name there is whole; None where nothing is."""
        parent: cst.CSTNode | None = self.module.parent(place)
        outer = self.module.parent(parent) if parent is not None else None
        if isinstance(parent, cst.Subscript) and parent.value is place:
            if isinstance(outer, cst.AugAssign) and outer.target is parent:
                return not isinstance(outer.operator, cst.DivideAssign) and self._is_whole(outer.value)
            if isinstance(outer, cst.AssignTarget):
                statement = self.module.parent(outer)
                return isinstance(statement, cst.Assign) and self._is_whole(statement.value)
        while isinstance(parent, cst.Subscript):
            parent, outer = outer, self.module.parent(outer) if outer is not None else None
        if isinstance(parent, cst.Attribute) and isinstance(outer, cst.Call) and outer.func is parent:
            name = parent.attr.value
            if not name.endswith("_") or name in ("zero_", "requires_grad_"):
                return None
            return name == "fill_" and bool(outer.args) and self._is_whole(outer.args[0].value)
        if isinstance(parent, cst.Arg) and isinstance(outer, cst.Call):
            out = parent.keyword is not None and parent.keyword.value == "out"
            written = names.dotted(outer.func).endswith("_") and outer.args[0] is parent
            written = written and any("()" not in name for name in self.module.resolve(outer.func))
            return False if out or written else None
        return None

    def _is_whole(self, node: cst.BaseExpression) -> bool:
        constant = self.module.value(node).constant
        inferred = self.infer(node)
        return inferred.is_whole or (isinstance(constant, float) and constant.is_integer())


def _first(pair: tuple[int, cst.Name]) -> int:
    return pair[0]
