"""An expression -> the device that it names; a test -> the one that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module import names

if TYPE_CHECKING:
    from torchdet_lint.inference.abstract_values import Device
    from torchdet_lint.module.module import Module

_ASKED = "is_available"
_AVAILABLE = f"torch.cuda.{_ASKED}"


def asks_for_cuda(module: Module, test: cst.BaseExpression) -> bool | None:
    """Whether `test` is evidently true (or false) on CUDA, as `x.is_cuda`, `x.device.type == "cpu"` and what comes from
    `torch.cuda.is_available()` are."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = asks_for_cuda(module, test.expression)
        return None if inner is None else not inner
    if _is_of_cuda(module, test):
        return True
    if isinstance(test, cst.Attribute) and test.attr.value in ("is_cuda", "is_cpu"):
        return test.attr.value == "is_cuda"
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    left, part = test.left, test.comparisons[0]
    if not (isinstance(left, cst.Attribute) and left.attr.value == "type"):
        return None
    value = module.value(part.comparator).constant
    devices = value if isinstance(value, (list, tuple)) else (value,)
    types = module.library.facts.devices.types
    if not all(isinstance(device, str) and device in types for device in devices):
        return None
    if isinstance(part.operator, (cst.Equal, cst.In)):
        return "cuda" in devices
    return "cuda" not in devices if isinstance(part.operator, (cst.NotEqual, cst.NotIn)) else None


def _is_of_cuda(module: Module, test: cst.BaseExpression) -> bool:
    """Whether `test` holds only where there is CUDA: it is, or stands for, `torch.cuda.is_available()`, whatever is
    asked for beside it."""
    if not isinstance(test, (cst.Call, cst.Name, cst.Attribute, cst.BooleanOperation)) or _ASKED not in module.text:
        return False
    made = module.followed(test, module.scope_of(test), module.order_of(test))
    stack = [made.node] if made is not None else []
    while made is not None and stack:
        one = stack.pop()
        if isinstance(one, cst.BooleanOperation) and isinstance(one.operator, cst.And):
            stack += [one.left, one.right]
        elif isinstance(one, cst.Call) and _AVAILABLE in module.resolve(one.func, made.scope, made.order):
            return True
    return False


def choices(module: Module, node: cst.IfExp) -> tuple[cst.BaseExpression, ...]:
    """The values of `a if test else b`; only the one for CUDA where the test asks for the device."""
    cuda = asks_for_cuda(module, node.test)
    if cuda is None:
        return (node.body, node.orelse)
    return (node.body if cuda else node.orelse,)


def named_device(module: Module, node: cst.BaseExpression) -> Device:
    """The device that an expression evidently names."""
    # An object may make a device of what it keeps, under the same name: `self.device = torch.device(self.device)`.
    seen = set[int]()
    while id(node) not in seen:
        seen.add(id(node))
        value = module.followed(node, module.scope_of(node), module.order_of(node))
        constant = value.constant if value is not None else None
        if isinstance(constant, str):
            return "cpu" if constant.startswith("cpu") else "cuda" if constant.startswith("cuda") else "unknown"
        if value is None or not isinstance(value.node, cst.Call) or not value.node.args:
            return "unknown"
        if "torch.device" not in module.resolve(value.node.func, value.scope, value.order):
            return "unknown"
        node = value.node.args[0].value
    return "unknown"


def names_a_device(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the argument of `.to(…)` looks like a device rather than a type."""
    last = names.dotted(node).rpartition(".")[2]
    constant = module.value(node).constant
    return "device" in last or isinstance(constant, (str, int)) or isinstance(node, cst.Call)
