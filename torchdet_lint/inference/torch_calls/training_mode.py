"""A call of something of which nothing is known -> whether it is a network that was put in training mode before."""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module import names

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module

# A callable that has these is a network.
_MODES = ("train", "eval")


class TrainingMode:
    """The statements of one file that put a network in training mode, or in evaluation mode."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._set: dict[tuple[int, str], list[tuple[int, bool]]] = {}

    def holds(self, node: cst.Call) -> bool:
        """Whether the last statement of the function above the call `node` that chooses a mode of what it calls is
        `….train()`."""
        called = names.dotted(node.func)
        if not called or ".train(" not in self.module.text:
            return False
        chosen = self._chosen(self._around(node), called)
        index = bisect(chosen, (self.module.order_of(node), False))
        return index > 0 and chosen[index - 1][1]

    def _around(self, node: cst.CSTNode) -> cst.CSTNode:
        """The function around `node`, or its statement at top level."""
        function = self.module.enclosing_function(node)
        if function is not None:
            return function
        outermost = node
        for ancestor in self.module.ancestors(node):
            if not isinstance(ancestor, cst.Module):
                outermost = ancestor
        return outermost

    def _chosen(self, around: cst.CSTNode, called: str) -> list[tuple[int, bool]]:
        """Where under `around` a mode of `called` is chosen, in order, and whether it is that of training."""
        key = id(around), called
        if key not in self._set:
            self._set[key] = sorted(
                (self.module.order_of(attribute), self._trains(call))
                for mode in _MODES
                for attribute in self.module.attributes_under(around, mode)
                if isinstance(call := self.module.parent(attribute), cst.Call)
                and call.func is attribute
                and names.dotted(attribute.value) == called
            )
        return self._set[key]

    @staticmethod
    def _trains(call: cst.Call) -> bool:
        """Whether a call of `train` or `eval` chooses training mode: `train()` and `train(True)`."""
        given = call.args[0].value if call.args else None
        on = given is None or (isinstance(given, cst.Name) and given.value == "True")
        return on and isinstance(call.func, cst.Attribute) and call.func.attr.value == "train"
