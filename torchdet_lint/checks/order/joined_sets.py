"""The calls of a file -> those that join several sets to one, and what that holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.elements import each_kind, set_kind
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.inference.elements.element_kinds import agreed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Module

_SETS = ("set", "frozenset")
_JOINS = ("operator.or_", "builtins.set.union", "builtins.frozenset.union")


def joined_sets(module: Module) -> Iterator[tuple[cst.BaseExpression, str]]:
    """`set.union(*sets)`, `set().union(*rows)` and `functools.reduce(set.union, sets)`, each with what it holds."""
    for call in module.calls_to(*_JOINS[1:]) if ".union(" in module.text else ():
        yield call.node, _kind(module, call.node.args)
    for call in module.calls_to("builtins.set().union", "builtins.frozenset().union"):
        if isinstance(call.receiver, cst.Call) and not call.receiver.args:
            yield call.node, _kind(module, call.node.args)
    for call in module.calls_to("functools.reduce"):
        args = [arg.value for arg in call.node.args]
        if len(args) > 1 and (_joins(module, args[0]) or (_is_either(args[0]) and _gives_sets(args[1]))):
            kinds = [each_kind(module, args[1]), *(set_kind(module, one) for one in args[2:] if _is_filled(one))]
            yield call.node, agreed(kinds)


def _kind(module: Module, args: Sequence[cst.Arg]) -> str:
    """What the elements are of the collections `args`, of which some stand behind a star."""
    return agreed(
        each_kind(module, arg.value) if arg.star else set_kind(module, cst.Call(cst.Name("set"), [arg])) for arg in args
    )


def _joins(module: Module, function: cst.BaseExpression) -> bool:
    """Whether `function` is the method that joins sets."""
    return any(name in _JOINS[1:] for name in module.resolve(function))


def _is_either(function: cst.BaseExpression) -> bool:
    """Whether `function` gives one operand or the other, `lambda x, y: x | y`, or `operator.or_`."""
    if not isinstance(function, cst.Lambda):
        return last_word(function) == "or_"
    body = function.body
    if isinstance(body, cst.BinaryOperation):
        return isinstance(body.operator, cst.BitOr)
    return isinstance(body, cst.Call) and last_word(body.func) == "union"


def _gives_sets(items: cst.BaseExpression) -> bool:
    """Whether `items` evidently gives sets: `map(set, rows)`, or `{*row} for row in rows`."""
    made = items.elt if isinstance(items, (cst.GeneratorExp, cst.ListComp)) else None
    if isinstance(items, cst.Call) and last_word(items.func) == "map" and items.args:
        function = items.args[0].value
        made = function.body if isinstance(function, cst.Lambda) else None
        if bare(function) in _SETS:
            return True
    if isinstance(made, cst.Call):
        return last_word(made.func) in _SETS
    return isinstance(made, (cst.Set, cst.SetComp))


def _is_filled(node: cst.BaseExpression) -> bool:
    return not isinstance(node, cst.Call) or bool(node.args)
