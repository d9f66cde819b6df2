"""An expression -> the device that it names; a test -> the one that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module import names

if TYPE_CHECKING:
    from torchdet_lint.inference.abstract_values import Device
    from torchdet_lint.module.module import Module


def asks_for_cuda(module: Module, test: cst.BaseExpression) -> bool | None:
    """Whether `test` is evidently true (or false) on CUDA, as `x.is_cuda` and `x.device.type == "cpu"` are."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = asks_for_cuda(module, test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.Attribute) and test.attr.value in ("is_cuda", "is_cpu"):
        return test.attr.value == "is_cuda"
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    left, part = test.left, test.comparisons[0]
    if not (isinstance(left, cst.Attribute) and left.attr.value == "type"):
        return None
    value = module.value(part.comparator).constant
    devices = value if isinstance(value, (list, tuple)) else (value,)
    if not all(isinstance(device, str) for device in devices):
        return None
    if isinstance(part.operator, (cst.Equal, cst.In)):
        return "cuda" in devices
    return "cuda" not in devices if isinstance(part.operator, (cst.NotEqual, cst.NotIn)) else None


def choices(module: Module, node: cst.IfExp) -> tuple[cst.BaseExpression, ...]:
    """The values of `a if test else b`; only the one for CUDA where the test asks for the device."""
    cuda = asks_for_cuda(module, node.test)
    if cuda is None:
        return (node.body, node.orelse)
    return (node.body if cuda else node.orelse,)


def named_device(module: Module, node: cst.BaseExpression) -> Device:
    """The device that an expression evidently names."""
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    if value is None:
        return "unknown"
    constant = value.constant
    if isinstance(constant, str):
        return "cpu" if constant.startswith("cpu") else "cuda" if constant.startswith("cuda") else "unknown"
    if isinstance(value.node, cst.Call) and value.node.args:
        names_ = module.resolve(value.node.func, value.scope, value.order)
        if "torch.device" in names_:
            return named_device(module, value.node.args[0].value)
    return "unknown"


def names_a_device(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the argument of `.to(…)` looks like a device rather than a type."""
    last = names.dotted(node).rpartition(".")[2]
    constant = module.value(node).constant
    return "device" in last or isinstance(constant, (str, int)) or isinstance(node, cst.Call)
