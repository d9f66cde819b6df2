"""An expression -> whether it is evidently an integer; a file -> where a legacy tensor may be given one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import bare, last_word, parameter_behind
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module, Value

_INTEGRAL = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide)
# The name that a tensor's class is given alone.
_OF_NAME = lazy(r"(?<![\w.])(?:\w+\.)?Tensor[ \t]*\(\s*(?:[\w.]+\.)?(\w+)\s*\)")


def tensor_of_count(module: Module) -> re.Pattern[str] | None:
    """The beginning of `Tensor(n)` where a row of the file says that `n` may be an integer: search; None for none."""
    asked = set(_OF_NAME.findall(module.text))
    names = sorted(asked & set(module.library.facts.memory.names_count.findall(module.text))) if asked else ()
    either = "|".join(names)
    return re.compile(rf"(?<![\w.])(?:\w+\.)?Tensor(?=[ \t]*\(\s*(?:[\w.]+\.)?(?:{either})\s*\))") if names else None


def is_count(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is evidently an integer: a length, an extent, a parameter that is annotated so, or what is made of
    these alone."""
    start = module.value(node)
    stack = [(start.node, start.scope, start.order)]
    seen: set[cst.CSTNode] = set()
    while stack:
        one, scope, order = stack.pop()
        param = parameter_behind(one, scope)
        if param is not None and param.annotation is not None and bare(param.annotation.annotation) == "int":
            continue
        made = module.followed(one, scope, order)
        parts = _parts(module, made) if made is not None else None
        if made is None or parts is None:
            return False
        stack += [(part, made.scope, made.order) for part in parts if made.node not in seen]
        seen.add(made.node)
    return True


def _parts(module: Module, made: Value) -> list[cst.BaseExpression] | None:
    """What has to be an integer for `made` to be one; None where it is none, or nobody can tell."""
    node, memory = made.node, module.library.facts.memory
    if isinstance(node, cst.Integer):
        return []
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right] if isinstance(node.operator, _INTEGRAL) else None
    if isinstance(node, cst.Subscript):
        one = len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index)
        return [] if one and last_word(node.value) == "shape" else None
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in memory.counting_methods:
        return [] if node.func.attr.value != "size" or len(node.args) == 1 else None
    called = module.resolve(node.func, made.scope, made.order)
    if len(node.args) > 1 and not memory.largest.isdisjoint(called):
        return [arg.value for arg in node.args]
    return None if memory.counting.isdisjoint(called) else []
