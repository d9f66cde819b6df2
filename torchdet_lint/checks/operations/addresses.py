"""A call of a Triton kernel that adds atomically -> whether each program evidently adds to addresses of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.tree import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module

_PROGRAM = "triton.language.program_id"
_RANGE = "triton.language.arange"


def own_addresses(module: Module, node: cst.CSTNode) -> bool:
    """Whether no other program, and no other lane, adds where the call `node` does: its pointer is a parameter plus
    `program_id * N + arange(0, N)`, or plus `program_id` alone, and the programs of the kernel stand on one axis."""
    call = node if isinstance(node, cst.Call) else None
    function = module.enclosing_function(node)
    if call is None or not call.args or function is None or function.params is None:
        return False
    if any(isinstance(ancestor, (cst.For, cst.While)) for ancestor in module.ancestors(node)):
        return False
    axes = {module.code(found) for found in _calls(function) if _PROGRAM in module.resolve(found.func)}
    parameters = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}
    terms = list(_terms(module, call.args[0].value))
    bases = [term for term in terms if isinstance(term, cst.Name) and term.value in parameters]
    rest = [term for term in terms if term not in bases]
    if len(axes) != 1 or len(bases) != 1:
        return False
    if len(rest) == 1:
        return _is_program(module, rest[0])
    ranges = [size for term in rest if (size := _range(module, term)) is not None]
    blocks = [size for term in rest if (size := _block(module, term)) is not None]
    return len(rest) == 2 and len(ranges) == len(blocks) == 1 and ranges == blocks


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Call):
            yield current
        stack.extend(children(current))


def _followed(module: Module, node: cst.BaseExpression) -> cst.BaseExpression:
    """What a name that is bound once stands for."""
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    return value.node if value is not None else node


def _terms(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The terms of a sum, through the names that stand for sums."""
    node = _followed(module, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from _terms(module, node.left)
        yield from _terms(module, node.right)
    else:
        yield node


def _is_program(module: Module, node: cst.BaseExpression) -> bool:
    node = _followed(module, node)
    return isinstance(node, cst.Call) and _PROGRAM in module.resolve(node.func)


def _block(module: Module, node: cst.BaseExpression) -> str | None:
    """`N` of `program_id * N`."""
    node = _followed(module, node)
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
        return None
    for program, size in ((node.left, node.right), (node.right, node.left)):
        if _is_program(module, program):
            return module.code(size)
    return None


def _range(module: Module, node: cst.BaseExpression) -> str | None:
    """`N` of `arange(0, N)`."""
    node = _followed(module, node)
    if not isinstance(node, cst.Call) or _RANGE not in module.resolve(node.func) or len(node.args) != 2:
        return None
    return module.code(node.args[1].value) if module.value(node.args[0].value).constant == 0 else None
