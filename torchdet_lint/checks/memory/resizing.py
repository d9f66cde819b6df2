"""A call of `resize_` -> what it leaves of a tensor that it evidently makes larger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.memory.domain import Part, Span
from torchdet_lint.checks.memory.subscripts import extent
from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.inference.narrowing import settled_by, tests_around

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Call, Module

_SMALLER = (cst.LessThan, cst.LessThanEqual)
_LARGER = (cst.GreaterThan, cst.GreaterThanEqual)


def beginning(end: int | str) -> Part:
    """What stands before `end`, as `extent` has it."""
    return Part(((0, Span(0, end, end=end)),))


def kept(module: Module, call: Call, sizes: Sequence[cst.BaseExpression]) -> Part | None:
    """What is left of `x` by a call `x.resize_(…)` of `sizes` that makes it larger: by the condition around it, `if
    x.numel() < n`, or by the size, `x.resize_(len(x) + 1)`. None for any other call."""
    size = sizes[0]
    adds = isinstance(size, cst.BinaryOperation) and _adds(size)
    old = _measured(module, call, size.left, sizes) if isinstance(size, cst.BinaryOperation) and adds else None
    if old is not None:
        return beginning(old[1])
    for test, holds in tests_around(module, call.node):
        for smaller, larger in _compared(test, holds=holds):
            old = _measured(module, call, smaller, sizes)
            if old is not None and _is_size(module, larger, sizes[:1] if old[0] == "first" else sizes):
                return beginning(old[1])
    return None


def _adds(size: cst.BinaryOperation) -> bool:
    """Whether `size` is more than its left side, by a number on its right."""
    least = {cst.Add: 1, cst.Multiply: 2}.get(type(size.operator))
    return least is not None and isinstance(size.right, cst.Integer) and size.right.evaluated_value >= least


def _compared(test: cst.BaseExpression, *, holds: bool) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What is smaller than something else where `test` holds, or does not, and that."""
    for one, true in settled_by(test, holds=holds):
        if isinstance(one, cst.Comparison) and len(one.comparisons) == 1:
            other, operator = one.comparisons[0].comparator, one.comparisons[0].operator
            if isinstance(operator, _SMALLER if true else _LARGER):
                yield one.left, other
            elif isinstance(operator, _LARGER if true else _SMALLER):
                yield other, one.left


def _measured(
    module: Module, call: Call, node: cst.BaseExpression, sizes: Sequence[cst.BaseExpression]
) -> tuple[str, int | str] | None:
    """What `node` says of the tensor that `call` resizes, `first` for its first dimension or `all` for how many
    elements it has, and that as `extent` has it; None where it says neither."""
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    if value is None or not isinstance(call.receiver, cst.Name):
        return None
    name, made = call.receiver.value, value.node
    home = module.scope_of(call.node).home(name)
    start = module.order_of(made)
    if any(start < binding.order < call.order for binding in (home.bindings[name] if home is not None else ())):
        return None
    text = bare(made)
    first = {f"len({name})", f"{name}.size(0)", f"{name}.shape[0]", f"{name}.size()[0]"}
    if len(sizes) == 1:
        first |= {f"{name}.size(-1)", f"{name}.shape[-1]"}
    if text in first:
        return "first", extent(module, made)
    return ("all", text) if text in {f"{name}.numel()", f"{name}.nelement()"} else None


def _is_size(module: Module, node: cst.BaseExpression, sizes: Sequence[cst.BaseExpression]) -> bool:
    """Whether `node` is the product of `sizes`."""
    wanted = sorted(str(extent(module, size)) for size in sizes)
    if len(sizes) == 1 and str(extent(module, node)) == wanted[0]:
        return True
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    factors: list[cst.BaseExpression] = []
    stack = [value.node if value is not None else node]
    while stack:
        one = stack.pop()
        if isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.Multiply):
            stack += [one.left, one.right]
        else:
            factors.append(one)
    return sorted(str(extent(module, factor)) for factor in factors) == wanted
