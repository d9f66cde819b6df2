"""An expression -> whether it is evidently an integer; a file -> where a legacy tensor may be given one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import values_given
from torchdet_lint.dataflow.syntax import bare, last_word, option_added, parameter_behind
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module, Value
    from torchdet_lint.module.names import Scope

    _Place = tuple[cst.BaseExpression, Scope, int | None]

_INTEGRAL = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide)
# The name, or the attribute, that a tensor's class is given alone.
_OF_NAME = lazy(r"(?<![\w.])(?:\w+\.(?:cuda\.)?)?\w*Tensor[ \t]*\(\s*(self\.)?(?:[\w.]+\.)?(\w+)\s*\)")
_ONE_INT = lazy(r"\btype[ \t]*=[ \t]*int\b")
_INT = frozenset({"int", "Optional[int]", "typing.Optional[int]", "int|None", "None|int"})
# Of so many calls it is asked what they give, and of so many in turn that hand on what they are given.
_CALLS = 8
_HOPS = 3


def tensor_of_count(module: Module) -> re.Pattern[str] | None:
    """The beginning of `Tensor(n)` where a row of the file says that `n` may be an integer, and of `Tensor(self.n)`:
    search; None for none."""
    asked = set(_OF_NAME.findall(module.text))
    counted = module.library.facts.memory.names_count.findall(module.text) if asked else ()
    told = {name for pair in counted for name in pair}
    names = sorted({name for own, name in asked if own or name in told or _is_option(module, name)})
    given = rf"\(\s*(?:[\w.]+\.)?(?:{'|'.join(names)})\s*\)"
    return re.compile(rf"(?<![\w.])(?:\w+\.(?:cuda\.)?)?\w*Tensor(?=[ \t]*{given})") if names else None


def is_count(module: Module, node: cst.BaseExpression, hops: int = _HOPS) -> bool:
    """Whether `node` is evidently an integer: a length, an extent, what `range` takes, a parameter or an option that
    is one, or what is made of these alone."""
    start = module.value(node)
    stack: list[_Place] = [(start.node, start.scope, start.order)]
    seen: set[cst.CSTNode] = set()
    while stack:
        one, scope, order = stack.pop()
        if _is_told(module, one, scope, hops):
            continue
        values = module.self_attribute(one, scope) if isinstance(one, cst.Attribute) else []
        values = [value for value in values if not value.is_none]
        if not values:
            made = module.followed(one, scope, order)
            parts = _parts(module, made) if made is not None else None
            if made is None or parts is None:
                return False
            values = [module.value_at(part, made.scope, made.order) for part in parts]
        stack += [(value.node, value.scope, value.order) for value in values if one not in seen]
        seen.add(one)
    return True


def _is_told(module: Module, node: cst.BaseExpression, scope: Scope, hops: int) -> bool:
    """Whether the file says that the name or attribute `node` is an integer, or callers give a constructor one."""
    if isinstance(node, cst.Attribute):
        class_ = module.resolver.class_of(node.value, scope)
        if class_ is None:
            return _is_option(module, node.attr.value)
        declared = (bare(one).strip("\"'") for one in module.declared(class_, node.attr.value))
        return any(one in _INT for one in declared) or _is_ranged(_of_class(module, class_), bare(node))
    param = parameter_behind(node, scope)
    function = module.enclosing_function(param) if param is not None else None
    if param is None or function is None:
        return False
    if param.annotation is not None:
        return bare(param.annotation.annotation).strip("\"'") in _INT
    if isinstance(param.default, cst.Integer) or _is_ranged(module.code(function), param.name.value):
        return True
    return function.name.value == "__init__" and hops > 0 and _is_given_count(module, param, function, hops)


def _of_class(module: Module, class_: Class) -> str:
    """The text of the methods of a class."""
    return "\n".join(module.texts[unit.index] for unit in module.units if unit.piece.owner == class_.index >= 0)


def _is_ranged(text: str, name: str) -> bool:
    """Whether `text` counts up to what is called `name`."""
    return re.search(rf"(?<![\w.])t?range[ \t]*\(\s*{re.escape(name)}\s*\)", text) is not None


def _is_option(module: Module, name: str) -> bool:
    """Whether the file adds the option `args.name` as one integer."""
    option = option_added(module.text, name)
    return _ONE_INT.search(option) is not None and "nargs" not in option


def _is_given_count(module: Module, param: cst.Param, constructor: cst.FunctionDef, hops: int) -> bool:
    """Whether one of the calls in sight, here and in files around, gives the parameter of a constructor an integer."""
    given = values_given(module, param, constructor, _CALLS)
    return any(is_count(there, value.node, hops - 1) for there, value in given)


def is_data(module: Module, call: cst.Call, node: cst.BaseExpression) -> bool:
    """Whether the function around `call`, or the class whose attribute `node` is, asks what `node` stands for for its
    shape, its type or an entry, or goes through it, as no number is asked."""
    function = module.enclosing_function(call)
    class_ = module.resolver.class_of(node.value, module.scope_of(call)) if isinstance(node, cst.Attribute) else None
    text = _of_class(module, class_) if class_ is not None else module.code(function) if function else module.text
    name = re.escape(bare(node))
    asked = r"\.(?:shape|size|dim|ndim|dtype|astype)\b|\["
    given = rf"\b(?:isinstance|len|enumerate|zip)[ \t]*\(\s*{name}\s*[,)]|\bin[ \t]+{name}[ \t]*[:\])]"
    return re.search(rf"(?<![\w.]){name}(?:{asked})|{given}", text) is not None


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
