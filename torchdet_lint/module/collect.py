"""The tree of a unit -> the facts of it: scopes, bindings, calls, assignments, classes.

Each handler notes what a node says and gives the state for its children, or None where it has put them on the stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.module import names
from torchdet_lint.module.facts import Class
from torchdet_lint.module.names import Binding, Scope
from torchdet_lint.module.tree import FIELDS, LEAVES, PLAIN, named_parameters
from torchdet_lint.module.walk import Done, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Facts, Unit
    from torchdet_lint.module.walk import Stack, State


def collect(facts: Facts, unit: Unit, root: cst.Module) -> None:
    """Add to `facts` what `root`, the tree of `unit`, says."""
    Walk(facts, unit, _HANDLERS).run(root)


def _on_call(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    walk.facts.calls.append((node, scope, walk.unit, walk.order))
    return scope, conditional, looped


def _on_conditional(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    return scope, True, looped


def _on_while(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    return scope, True, looped or walk.order


def _on_for(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    walk.targets(
        node.target, scope, Binding("loop", walk.order, node, node.iter, conditional=conditional, looped=looped)
    )
    return scope, True, looped or walk.order


def _on_statement(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    return scope, conditional, looped


def _later(walk: Walk, node: cst.CSTNode, scope: Scope, state: tuple[bool, int], stack: Stack, binder: Any) -> None:
    """Visit the children of `node` in order, then run `binder`: a value is evaluated before its name is bound."""
    conditional, looped = state
    stack.append((Done(binder), scope, conditional, looped))
    for name in reversed(FIELDS[type(node)]):
        child = getattr(node, name)
        children = child if type(child) in (tuple, list) else () if type(child) in PLAIN else (child,)
        for item in reversed(children):
            walk.parents[id(item)] = node
            if type(item) not in LEAVES:
                stack.append((item, scope, conditional, looped))


def _on_assign(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    if isinstance(node, cst.AnnAssign):
        name = node.target.attr if isinstance(node.target, cst.Attribute) else node.target
        if isinstance(name, cst.Name) and (name is not node.target or scope.kind == "class"):
            walk.facts.declared.setdefault(name.value, []).append((node, scope))

    def bind() -> None:
        walk.order += 1
        targets = [target.target for target in node.targets] if isinstance(node, cst.Assign) else [node.target]
        if node.value is None:
            return
        for target in targets:
            for part, value in _pairs(target, node.value):
                binding = Binding("assign", walk.order, node, value, conditional=conditional, looped=looped)
                walk.targets(part, scope, binding)
                assignment = (node, part, value, scope, walk.order)
                walk.facts.assignments.append(assignment)
                if isinstance(part, cst.Attribute):
                    walk.facts.assigned.setdefault(part.attr.value, []).append(assignment)
                elif isinstance(part, cst.Subscript) and (entry := names.member(part)):
                    walk.facts.entered.setdefault(entry, []).append(assignment)

    _later(walk, node, scope, (conditional, looped), stack, bind)


def _pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Target and value of an assignment, one by one in `a.x, b.y = 1, 2`."""
    if (
        isinstance(target, (cst.Tuple, cst.List))
        and isinstance(value, (cst.Tuple, cst.List))
        and len(target.elements) == len(value.elements)
        and all(isinstance(element, cst.Element) for element in (*target.elements, *value.elements))
    ):
        for part, given in zip(target.elements, value.elements, strict=True):
            yield from _pairs(part.value, given.value)
    else:
        yield target, value


def _on_augmented(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order

    def bind() -> None:
        walk.order += 1
        binding = Binding("augment", walk.order, node, node.value, conditional=True, looped=looped)
        walk.targets(node.target, scope, binding)
        if _may_decide(node):
            assignment = (node, node.target, node.value, scope, walk.order)
            walk.facts.assigned.setdefault(node.target.attr.value, []).append(assignment)

    _later(walk, node, scope, (conditional, looped), stack, bind)


def _may_decide(node: cst.AugAssign) -> bool:
    """Whether a switch of something else than `self` may be set: `x.on |= flag`, or `x.on &= False`."""
    target, given = node.target, node.value
    if not isinstance(target, cst.Attribute) or (isinstance(target.value, cst.Name) and target.value.value == "self"):
        return False
    off = isinstance(given, cst.Name) and given.value == "False"
    return isinstance(node.operator, cst.BitAndAssign if off else cst.BitOrAssign)


def _on_walrus(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order

    def bind() -> None:
        walk.order += 1
        binding = Binding("assign", walk.order, node, node.value, conditional=conditional, looped=looped)
        walk.targets(node.target, scope.function, binding)

    _later(walk, node, scope, (conditional, looped), stack, bind)


def _on_with(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    for item in node.items:
        if item.asname is not None:
            binding = Binding("with", walk.order, node, item.item, conditional=conditional, looped=looped)
            walk.targets(item.asname.name, scope, binding)
    return scope, conditional, looped


def _on_except(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    if node.name is not None:
        walk.targets(node.name.name, scope, Binding("other", walk.order, node, conditional=True, looped=looped))
    return scope, True, looped


def _on_import(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    for alias in node.names:
        full = names.dotted(alias.name)
        if alias.asname is not None:
            name, target = alias.asname.name.value, full
        else:
            name = target = full.partition(".")[0]
        scope.function.bind(
            name, Binding("import", walk.order, node, target=target, conditional=conditional, looped=looped)
        )


def _on_import_from(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    module = "." * len(node.relative) + (names.dotted(node.module) if node.module is not None else "")
    if isinstance(node.names, cst.ImportStar):
        scope.module.stars.append(module)
        return
    joint = "" if module.endswith(".") or not module else "."
    for alias in node.names:
        name = alias.asname.name.value if alias.asname is not None else alias.name.value
        target = f"{module}{joint}{alias.name.value}"
        scope.function.bind(
            name, Binding("import", walk.order, node, target=target, conditional=conditional, looped=looped)
        )


def _on_function(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    home = scope.function
    facts, piece = walk.facts, walk.unit.piece
    top = (
        piece.kind == "function"
        and isinstance(walk.parents.get(id(node)), (cst.Module, cst.IndentedBlock))
        and (node.name.value == piece.name and home is (walk.unit.scope or facts.scope))
    )
    if not top:
        home.bind(node.name.value, Binding("def", walk.order, node, conditional=conditional, looped=looped))
        if home in facts.classes:
            facts.classes[home].methods.add(node.name.value)
    else:
        facts.functions.setdefault(walk.unit.index, []).append(node)
    inner = Scope("function", home, node, node.name.value)
    walk.scopes[id(node)] = inner
    _parameters(walk, node.params, inner)
    stack.append((node.body, inner, False, 0))
    walk.parents[id(node.body)] = node
    outer = [node.params, *([node.returns] if node.returns is not None else ()), *reversed(node.decorators)]
    for child in outer:
        walk.parents[id(child)] = node
        stack.append((child, scope, conditional, looped))


def _parameters(walk: Walk, params: cst.Parameters, inner: Scope) -> None:
    everything = [*named_parameters(params)]
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            everything.append(star)
    for param in everything:
        inner.bind(param.name.value, Binding("parameter", walk.order, param))


def _on_lambda(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    inner = Scope("function", scope, node)
    walk.scopes[id(node)] = inner
    _parameters(walk, node.params, inner)
    walk.parents[id(node.body)] = node
    walk.parents[id(node.params)] = node
    stack.append((node.body, inner, False, 0))
    stack.append((node.params, scope, conditional, looped))


def _on_class(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    facts = walk.facts
    home = scope.function
    if walk.header:
        class_ = facts.top_classes[walk.unit.piece.owner]
    else:
        class_ = Class(node.name.value, home)
        home.bind(node.name.value, Binding("class", walk.order, node, conditional=conditional, looped=looped))
        facts.classes[class_.scope] = class_
        if home is facts.scope:
            facts.class_by_name.setdefault(class_.name, class_)
            facts.top_classes.append(class_)
    class_.node = node
    class_.order = walk.order
    class_.scope.node = node
    class_.bases = tuple(arg.value for arg in node.bases if not arg.star)
    walk.scopes[id(node)] = class_.scope
    walk.parents[id(node.body)] = node
    stack.append((node.body, class_.scope, False, 0))
    for child in (*reversed(node.keywords), *reversed(node.bases), *reversed(node.decorators)):
        walk.parents[id(child)] = node
        stack.append((child, scope, conditional, looped))


def _on_comprehension(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.orders[id(node)] = walk.order
    inner = Scope("comprehension", scope, node)
    walk.scopes[id(node)] = inner
    later: list[tuple[cst.CSTNode, Scope, bool, int]] = []
    part, outer = node.for_in, scope
    walk.parents[id(part)] = node
    while part is not None:
        walk.parents[id(part.target)] = part
        walk.parents[id(part.iter)] = part
        walk.targets(part.target, inner, Binding("loop", walk.order, part, part.iter))
        later.append((part.iter, outer, conditional, looped))
        for condition in part.ifs:
            walk.parents[id(condition)] = part
            walk.parents[id(condition.test)] = condition
            later.append((condition.test, inner, conditional, looped))
        if part.inner_for_in is not None:
            walk.parents[id(part.inner_for_in)] = part
        part, outer = part.inner_for_in, inner
    elements = (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,)
    for element in elements:
        walk.parents[id(element)] = node
        later.append((element, inner, conditional, looped))
    stack.extend(reversed(later))


def _on_set(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.facts.set_displays.append(node)
    return scope, conditional, looped


def _on_set_comprehension(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    walk.facts.set_displays.append(node)
    _on_comprehension(walk, node, scope, conditional, looped, stack)


def _on_outside(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> None:
    where = "global" if isinstance(node, cst.Global) else "nonlocal"
    for item in node.names:
        scope.function.outside[item.name.value] = where


def _on_delete(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    walk.orders[id(node)] = walk.order
    return scope, conditional, looped


def _on_capture(walk: Walk, node: Any, scope: Scope, conditional: bool, looped: int, stack: Stack) -> State:
    for name in (getattr(node, "name", None), getattr(node, "rest", None)):
        if isinstance(name, cst.Name):
            scope.function.bind(name.value, Binding("other", walk.order, node, conditional=True, looped=looped))
    return scope, conditional, looped


_HANDLERS: dict[type, Any] = {
    cst.Call: _on_call,
    cst.If: _on_conditional,
    cst.Try: _on_conditional,
    cst.TryStar: _on_conditional,
    cst.Match: _on_conditional,
    cst.IfExp: _on_conditional,
    cst.While: _on_while,
    cst.For: _on_for,
    cst.Assign: _on_assign,
    cst.AnnAssign: _on_assign,
    cst.AugAssign: _on_augmented,
    cst.NamedExpr: _on_walrus,
    cst.With: _on_with,
    cst.ExceptHandler: _on_except,
    cst.ExceptStarHandler: _on_except,
    cst.Import: _on_import,
    cst.ImportFrom: _on_import_from,
    cst.FunctionDef: _on_function,
    cst.Lambda: _on_lambda,
    cst.ClassDef: _on_class,
    cst.ListComp: _on_comprehension,
    cst.SetComp: _on_set_comprehension,
    cst.Set: _on_set,
    cst.DictComp: _on_comprehension,
    cst.GeneratorExp: _on_comprehension,
    cst.Global: _on_outside,
    cst.Nonlocal: _on_outside,
    cst.Del: _on_delete,
    cst.MatchAs: _on_capture,
    cst.MatchStar: _on_capture,
    cst.MatchMapping: _on_capture,
    cst.Expr: _on_statement,
    cst.Return: _on_statement,
    cst.SimpleStatementLine: _on_statement,
    cst.Raise: _on_statement,
    cst.Assert: _on_statement,
}
