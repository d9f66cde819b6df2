"""TDL306: calls that give results as they finish → those whose order reaches a result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.results import ORDERED, first_ordered, telling
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.finding import Found
from torchdet_lint.module.tree import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.dataflow.uses import Use
    from torchdet_lint.module.module import Module


def completion_order(module: Module, rule: Rule) -> Iterator[Found]:
    """Results collected in the order in which workers happened to finish."""
    sets = rule.words["sets"]
    names = tuple(name for row in rule.calls for name in row.names if name not in sets)
    calls = {id(call.node): call for call in module.calls_to(*names)}
    for call in module.method_calls(*rule.words["methods"]):
        calls.setdefault(id(call.node), call)
    for call in sorted(calls.values(), key=lambda call: call.order):
        use = _first_unordered(module, call.node)
        if use is not None:
            yield Found(call.node, {"call": module.code(call.node.func)}, related=telling(use))
    for call in module.calls_to(*sets):
        use = first_ordered(_uses_of_done(module, call.node))
        if use is not None:
            yield Found(call.node, {"call": module.code(call.node.func)}, "set", related=telling(use))


def _first_unordered(module: Module, node: cst.Call) -> Use | None:
    keys = _has_keys(module, node)
    for use in Follower(module).uses(node):
        if keys and use.kind != "written":
            continue
        direct = isinstance(use.node, cst.Call) and any(arg.value is node for arg in use.node.args)
        if (use.kind in ORDERED and not (use.kind == "handed" and direct)) or (use.kind == "called" and not direct):
            return use
    return None


def _uses_of_done(module: Module, node: cst.BaseExpression) -> list[Use]:
    """The uses of the set of finished tasks: `done` of `done, pending = wait(…)`, or `wait(…).done`."""
    parent = module.parent(node)
    if isinstance(parent, cst.Await):
        return _uses_of_done(module, parent)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "done":
        return [] if _has_keys(module, parent) else Follower(module).uses(parent, is_set=True)
    if not isinstance(parent, cst.Assign) or not isinstance(target := parent.targets[0].target, cst.Tuple):
        return []
    done = target.elements[0].value
    if not isinstance(done, cst.Name) or _has_keys(module, node, done.value):
        return []
    return Follower(module).uses_of_name(done, parent, is_set=True)


def _has_keys(module: Module, node: cst.BaseExpression, name: str = "") -> bool:
    """Whether the loop over `node`, or over its `name`, looks up which task it was that finished, or takes pairs."""
    for around in module.ancestors(node):
        if isinstance(around, cst.For):
            return _takes_keys(module, around)
        if isinstance(around, cst.CompFor):
            return False
        if isinstance(around, (cst.Assign, cst.AnnAssign)):
            function = module.enclosing_function(around)
            loops = _loops(function) if function is not None else ()
            return any(_takes_keys(module, loop) for loop in loops if not name or bare(loop.iter) == name)
    return False


def _takes_keys(module: Module, loop: cst.For) -> bool:
    if isinstance(loop.target, cst.Tuple):
        counted = isinstance(loop.iter, cst.Call) and last_word(loop.iter.func) == "enumerate"
        return not counted or isinstance(loop.target.elements[-1].value, cst.Tuple)
    code = module.code(loop.body)
    return re.search(rf"\[\s*{re.escape(bare(loop.target))}\s*\]|\.append\(\(", code) is not None


def _loops(root: cst.CSTNode) -> Iterator[cst.For]:
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.For) and isinstance(node.iter, cst.Name):
            yield node
        stack.extend(children(node))
