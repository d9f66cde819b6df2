"""A name, an attribute or a parameter -> the expressions that its value may come from inside one file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.dataflow.reaching_definitions import reaching
from torchdet_lint.module.names import live, member, namespace
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Assignment, Module, Value
    from torchdet_lint.module.names import Binding, Scope

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
        for binding in bindings_here(module, value):
            if binding.kind == "assign" and binding.value is not None and not binding.path:
                if binding.node is not None and module.is_dead(binding.node):
                    continue
                found.append(module.value_at(binding.value, home, binding.order))
            elif binding.kind == "parameter":
                found.extend(_passed(module, home, node.value))
        return found
    if isinstance(node, cst.Attribute) and (found := module.self_attribute(node, scope)):
        return found
    written = [
        assignment
        for text in _written_as(module, value)
        for assignment in module.assignments_written(text)
        if assignment.scope.function in (scope.function, module.scope)
        and assignment.value.node is not node
        and not _comes_later(module, assignment, value)
    ]
    found = [assignment.value for assignment in written]
    if found and isinstance(node, cst.Subscript) and all(_may_not_run(module, one, value) for one in written):
        found += _displayed(module, node, value)
    return found


def bindings_here(module: Module, value: Value) -> list[Binding]:
    """The bindings of a name that may hold where it is read."""
    node, scope = value.node, value.scope
    home = scope.home(node.value) if isinstance(node, cst.Name) else None
    if home is None or not isinstance(node, cst.Name):
        return []
    order = value.order if home.function is scope.function else None
    found = live(home.bindings[node.value], order)
    return reaching(module, found, node, order) if order is not None else found


def kept_by_objects(module: Module, value: Value) -> list[Value]:
    """What an entry was made with, or an attribute was given in another function, where nothing here gives it one."""
    if isinstance(value.node, cst.Subscript) and member(value.node):
        return _displayed(module, value.node, value)
    return _kept_elsewhere(module, value) or _kept_by_class(module, value)


def _kept_by_class(module: Module, value: Value) -> list[Value]:
    """What the class that an object evidently is of, a class of this file, gives the attribute that is read of it."""
    node = value.node
    found = Follower(module).class_of(node.value) if isinstance(node, cst.Attribute) else None
    if found is None or not isinstance(node, cst.Attribute) or found[0] is not module:
        return []
    kept = CallEdges(module).kept(*found, node.attr.value)
    return [one for there, one in kept if there is module]


def _kept_elsewhere(module: Module, value: Value) -> list[Value]:
    """What other functions give an attribute of the object that a function is given, where both call it the same:
    `args.seed = 7`."""
    node = value.node
    if not (isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)):
        return []
    home = value.scope.home(node.value.value)
    if home is None or any(one.kind != "parameter" for one in home.bindings[node.value.value]):
        return []
    written = re.compile(rf"\.{node.attr.value}\s*=(?!=)")
    if written.search(module.text) is None:
        return []
    module.load_where(lambda text: written.search(text) is not None)
    return [
        one.value
        for one in module.assignments_called(node.attr.value)
        if isinstance(one.target, cst.Attribute)
        and isinstance(owner := one.target.value, cst.Name)
        and owner.value == node.value.value != "self"
    ]


def _may_not_run(module: Module, assignment: Assignment, value: Value) -> bool:
    """Whether `assignment` stands in the function of `value`, under a condition that `value` does not stand under."""
    here = assignment.scope.function is value.scope.function
    branches = (one for one in module.ancestors(assignment.node) if isinstance(one, cst.If))
    return here and any(not module.contains(branch, value.node) for branch in branches)


def _displayed(module: Module, node: cst.Subscript, value: Value) -> list[Value]:
    """What the dictionary was made with under the key of `node`: `{"train": None}`."""
    key = member(node).partition("[")[2][:-1]
    return [
        module.value_at(element.value, made.scope, made.order)
        for made in assigned(module, module.value_at(node.value, value.scope, value.order))
        if isinstance(made.node, cst.Dict)
        for element in made.node.elements
        if isinstance(element, cst.DictElement)
        and isinstance(element.key, cst.SimpleString)
        and element.key.evaluated_value == key
    ]


def _comes_later(module: Module, assignment: Assignment, value: Value) -> bool:
    """Whether `assignment` runs only after `value` is read: below it in the same function, and in no loop with it."""
    if value.order is None or assignment.order < value.order or assignment.scope.function is not value.scope.function:
        return False
    loops = (one for one in module.ancestors(assignment.node) if isinstance(one, (cst.For, cst.While)))
    return not any(module.contains(loop, value.node) for loop in loops)


def _written_as(module: Module, value: Value) -> Iterator[str]:
    """The members that an attribute or entry may be: after `options = vars(args)`, `options["seed"]` is `args.seed`."""
    node = value.node
    text = member(node)
    if text:
        yield text
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and text:
        for made in assigned(module, module.value_at(node.value, value.scope, value.order)):
            owner = namespace(made.node)
            if owner:
                yield f"{owner}.{text.partition('[')[2][:-1]}"


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
