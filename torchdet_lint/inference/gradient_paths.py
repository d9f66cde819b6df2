"""The result of an op -> where it goes, and whether a gradient can come back from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse

if TYPE_CHECKING:
    from torchdet_lint.inference.infer import Inference
    from torchdet_lint.module.module import Module

_STEPS = 40
# Through so many networks the gradient is followed.
_MOST = 3
# What makes networks, and layers, of a library.
_NETWORKS = ("torchvision.models.", "timm.create_model", "torch.nn.")


class GradientPaths:
    """Follows a value through arithmetic, torch's functions and the names of a function."""

    def __init__(self, module: Module, inference: Inference) -> None:
        self.module = module
        self.facts = inference.facts
        self.definitions = module.shared(DefUse)
        self.seen: set[int] = set()
        self.networks = 0

    def ends(self, node: cst.BaseExpression) -> bool:
        """Whether the value of `node` is evidently of use only where no gradient comes back: compared, made whole,
        detached."""
        if id(node) in self.seen:
            return True
        self.seen.add(id(node))
        if len(self.seen) > _STEPS:
            return False
        parent = self.module.parent(node)
        if isinstance(parent, cst.ComparisonTarget):
            parent = self.module.parent(parent)
        if isinstance(parent, cst.Comparison):
            return True
        if isinstance(parent, cst.Attribute):
            return self._attribute(parent)
        if isinstance(parent, cst.Subscript):
            return parent.value is not node or self.ends(parent)
        if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
            return self.ends(parent)
        if isinstance(parent, cst.Element):
            # `torch.stack((a, b))`
            parent = self.module.parent(self.module.parent(parent) or parent)
        if isinstance(parent, cst.Arg):
            return self._argument(parent)
        if isinstance(parent, cst.Assign):
            return all(self._bound(target.target, parent) for target in parent.targets)
        return False

    def _attribute(self, node: cst.Attribute) -> bool:
        name = node.attr.value
        call = self.module.parent(node)
        if name in self.facts.facts_of_tensors:
            return True
        if isinstance(call, cst.Call) and call.func is node:
            return (
                name in self.facts.without_gradient
                or name in self.facts.of_sparse
                or (not name.endswith("_") and self.ends(call))
            )
        return name in ("T", "mT") and self.ends(node)

    def _argument(self, arg: cst.Arg) -> bool:
        """An argument of a function of torch: what it gives carries the gradient on, unless it is whole or a choice."""
        parent = self.module.parent(arg)
        call = self.module.call_at(parent) if isinstance(parent, cst.Call) else None
        if call is None:
            return False
        modules = self.facts.modules
        for name in call.own:
            owner, _, last = name.rpartition(".")
            if owner in modules:
                return last in self.facts.without_gradient or self.ends(call.node)
            if self._is_network(name):
                self.networks += 1
                return self.networks <= _MOST and self.ends(call.node)
        return False

    def _is_network(self, name: str) -> bool:
        """Whether what is called is a network that a library has made: it hands the gradient on, and takes no other."""
        made, called, methods = name.partition("()")
        moves = self.module.library.facts.programs.moves
        return (
            bool(called)
            and made.startswith(_NETWORKS)
            and all(method in moves for method in methods.replace("()", "").split(".")[1:])
        )

    def _bound(self, target: cst.BaseExpression, statement: cst.Assign) -> bool:
        """A name of a function, wherever it is read afterwards."""
        if not isinstance(target, cst.Name) or self.module.enclosing_function(statement) is None:
            return False
        if self._comes_round(target.value, statement):
            return False
        loads = self.definitions.loads_after(target, statement)
        return bool(loads) and all(self.ends(load) for load in loads)

    def _comes_round(self, name: str, statement: cst.Assign) -> bool:
        """Whether a loop around may read the value above the statement that binds it."""
        order = self.module.order_of(statement)
        for loop in self.module.ancestors(statement):
            if not isinstance(loop, (cst.For, cst.While)):
                continue
            found = [node for node in self.module.names_under(loop, name) if self.module.order_of(node) < order]
            reads = any(not isinstance(self.module.parent(node), cst.AssignTarget) for node in found)
            if reads and not self._begins(min(found, key=self.module.order_of), loop):
                return True
        return False

    def _begins(self, first: cst.Name, loop: cst.For | cst.While) -> bool:
        """Whether the first place of a name in a loop gives it a new value in every round."""
        binder = self.module.parent(self.module.parent(first) or first)
        return (
            isinstance(binder, cst.Assign)
            and self.module.parent(self.module.statement(first)) is loop.body
            and not self.module.names_under(binder.value, first.value)
        )
