"""The arguments of a call of torch -> their abstract values, and the type and the device that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.inference import devices
from torchdet_lint.inference.abstract_values import UNKNOWN, AbstractValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.inference.abstract_values import Device, Dtype
    from torchdet_lint.module.module import Call, Module

# What stands for sizes where `view` takes a type or sizes.
_SIZES = (cst.List, cst.Tuple, cst.Integer, cst.UnaryOperation, cst.BinaryOperation)


class TorchArguments:
    """The arguments of the calls of torch in one file; `infer` gives the abstract value of an expression."""

    def __init__(self, module: Module, infer: Callable[[cst.BaseExpression], AbstractValue]) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self.infer = infer

    def kind_of(self, call: Call, position: int, keyword: str = "input") -> AbstractValue:
        """The abstract value of the argument at `position`, or of the one called `keyword`."""
        arguments = call.arguments
        if keyword in arguments.keywords:
            return self.infer(arguments.keywords[keyword].node)
        if position < len(arguments.positional):
            return self.infer(arguments.positional[position].node)
        return UNKNOWN

    def is_method(self, call: Call) -> bool:
        """Whether it is a method of a tensor, not a function of torch."""
        return not any(name.rpartition(".")[0] in self.facts.modules for name in call.own)

    def dtype(self, call: Call) -> Dtype | None:
        """The type that `dtype=`, `.to(…)` or `.type(…)` names."""
        node: cst.BaseExpression | None = None
        keywords = call.arguments.keywords
        if "dtype" in keywords:
            node = keywords["dtype"].node
        elif call.attribute in ("to", "type", "view", "type_as") and call.arguments.positional:
            node = call.arguments.positional[0].node
            if call.attribute == "view" and (len(call.arguments.positional) > 1 or isinstance(node, _SIZES)):
                return None
            other = self.infer(node)
            if call.attribute in ("to", "type_as") and other.is_tensor:
                return other.dtype
        if node is None:
            return None
        followed = self.module.followed(node, call.scope, call.order)
        if followed is not None and isinstance(followed.node, cst.IfExp):
            node = devices.choices(self.module, followed.node)[0]
        for name in self.module.resolve(node):
            owner, _, last = name.rpartition(".")
            if owner in ("torch", "builtins", "numpy"):
                found = self.facts.dtypes.get(last)
                return found if found in ("integer", "bool", "floating") else None  # type: ignore[return-value]
        if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return self.infer(node.value).dtype
        return None if "dtype" not in keywords and devices.names_a_device(self.module, node) else "unknown"

    def device(self, call: Call, default: Device) -> Device:
        """The device that `device=` names."""
        value = call.arguments.keywords.get("device")
        return devices.named_device(self.module, value.node) if value is not None else default

    def moved(self, bare: str, first: AbstractValue, call: Call) -> Device:
        """The device on which `cpu`, `cuda` or `to` puts a tensor."""
        if bare in ("cpu", "cuda"):
            return "cpu" if bare == "cpu" else "cuda"
        target = call.arguments.keywords.get("device")
        if target is None and call.arguments.positional:
            target = call.arguments.positional[0]
            if any(name.startswith("torch.") and "()" not in name for name in target.names):
                return first.device
            if isinstance(target.node, cst.Attribute) and target.node.attr.value == "dtype":
                return first.device
            if self.infer(target.node).is_tensor:
                return self.infer(target.node).device
        if target is None:
            return first.device
        return devices.named_device(self.module, target.node)
