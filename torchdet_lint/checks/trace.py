"""A name, an attribute or a parameter -> the expressions that its value may come from inside one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.names import dotted, live
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module, Value
    from torchdet_lint.module.names import Scope

_LIMIT = 64


def origins(module: Module, value: Value) -> Iterator[Value]:
    """Every expression that `value` may be: through names, attributes, `a if c else b` and `a or b`."""
    queue, seen = [value], set[int]()
    while queue and len(seen) < _LIMIT:
        current = queue.pop(0)
        node = current.node
        if id(node) in seen:
            continue
        seen.add(id(node))
        parts: list[cst.BaseExpression] = []
        if isinstance(node, cst.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, cst.BooleanOperation):
            parts = [node.left, node.right]
        elif isinstance(node, cst.NamedExpr):
            parts = [node.value]
        queue.extend(module.value_at(part, current.scope, current.order) for part in parts)
        if parts:
            continue
        bound = assigned(module, current)
        if bound:
            queue.extend(bound)
        else:
            yield current


def assigned(module: Module, value: Value) -> list[Value]:
    """The expressions that a name or a dotted attribute was given where it can be seen; none: not in sight."""
    node, scope = value.node, value.scope
    if isinstance(node, cst.Name):
        home = scope.home(node.value)
        if home is None:
            return []
        found = []
        for binding in live(home.bindings[node.value], value.order if home.function is scope.function else None):
            if binding.kind == "assign" and binding.value is not None and not binding.path:
                if binding.node is not None and never_runs(module, binding.node):
                    continue
                found.append(module.value_at(binding.value, home, binding.order))
            elif binding.kind == "parameter":
                found.extend(_passed(module, home, node.value))
        return found
    if isinstance(node, cst.Attribute):
        found = module.self_attribute(node, scope)
        if found:
            return found
        text = dotted(node)
        return [
            assignment.value
            for assignment in module.assignments_written(text)
            if text
            and assignment.scope.function in (scope.function, module.scope)
            and assignment.value.node is not node
        ]
    return []


def never_runs(module: Module, node: cst.CSTNode) -> bool:
    """Whether `node` stands in a branch that a constant rules out: behind `if False:`, or the `else` of `if True:`."""
    for outer, inner in module.deciding(node):
        if isinstance(outer, cst.If) and inner in (outer.body, outer.orelse):
            test = module.value_at(outer.test, module.scope, None) if _is_constant(outer.test) else None
            if test is not None and test.known and bool(test.constant) == (inner is outer.orelse):
                return True
    return False


def _is_constant(test: cst.BaseExpression) -> bool:
    return isinstance(test, cst.Integer) or (isinstance(test, cst.Name) and test.value in ("True", "False"))


def _passed(module: Module, function: Scope, name: str) -> Iterator[Value]:
    """What the calls in this file pass for the parameter `name` of a top-level function."""
    node = function.node
    if not isinstance(node, cst.FunctionDef) or function.outer is not module.scope:
        return
    parameters = positional(node)
    for call in module.calls_to(f"@.{node.name.value}"):
        value = call.argument(name, parameters)
        if value is not None:
            yield value


def inside(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """`node` and the expressions in it that its value is made of; tests of conditions and lambdas are not."""
    stack: list[cst.CSTNode] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (cst.Lambda, cst.Comparison)):
            continue
        if isinstance(current, cst.BaseExpression):
            yield current
        children = list(current.children)
        if isinstance(current, cst.IfExp):
            children = [current.body, current.orelse]
        stack.extend(reversed(children))
