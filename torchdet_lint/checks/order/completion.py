"""TDL306: calls that give results as they finish -> those whose order reaches a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.results import ORDERED, first_ordered, telling
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.dataflow.syntax import bare, names_in, nodes
from torchdet_lint.finding import Violation
from torchdet_lint.module.tree import children

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.dataflow.uses import Use
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Scope

_UNORDERED = "generator_unordered"
_COMPUTING = ("numpy.", "torch.")
"""Where the functions are whose results are values and no keys: `torch.from_numpy(part)`."""


def completion_order(module: Module, rule: Rule) -> Iterator[Violation]:
    """Results collected in the order in which workers happened to finish."""
    sets = rule.words["sets"]
    names = tuple(name for row in rule.calls for name in row.names if name not in sets)
    calls = {id(call.node): call for call in module.calls_to(*names)}
    for call in module.method_calls(*rule.words["methods"]):
        calls.setdefault(id(call.node), call)
    calls |= {id(call.node): call for call in _unordered_generators(module)}
    for call in sorted(calls.values(), key=lambda call: call.order):
        use = _first_unordered(module, call.node)
        if use is not None:
            other = {name in names for name in call.own} == {True, False}
            yield Violation(call.node, {"call": module.code(call.node.func)}, "may" * other, related=telling(use))
    for call in module.calls_to(*sets):
        use = first_ordered(_uses_of_done(module, call.node))
        if use is not None:
            yield Violation(call.node, {"call": module.code(call.node.func)}, "set", related=telling(use))


def _unordered_generators(module: Module) -> Iterator[Call]:
    """The calls of `joblib.Parallel(return_as="generator_unordered")`."""
    for call in module.calls_to("joblib.Parallel()") if _UNORDERED in module.text else ():
        function = call.node.func
        home = call.scope.home(function.value) if isinstance(function, cst.Name) else None
        bound = home.bindings[function.value] if home is not None and isinstance(function, cst.Name) else []
        for made in [one.value for one in bound] or [function]:
            parallel = module.call_at(made) if isinstance(made, cst.Call) else None
            given = parallel.argument("return_as") if parallel is not None else None
            if given is not None and given.constant == _UNORDERED:
                yield call


def _first_unordered(module: Module, node: cst.Call) -> Use | None:
    for use in Completions(module).uses(node):
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
        return Completions(module).uses(parent, is_set=True)
    if not isinstance(parent, cst.Assign) or not isinstance(target := parent.targets[0].target, cst.Tuple):
        return []
    done = target.elements[0].value
    return Completions(module).uses_of_name(done, parent, is_set=True) if isinstance(done, cst.Name) else []


class Completions(Follower):
    """Follows results as they finish: those that are collected with what says which task they are of have no order
    to lose."""

    def is_keyed(self, value: cst.BaseExpression, target: cst.BaseExpression, body: cst.CSTNode | None) -> bool:
        """Whether `value` holds a key: what the task was found by, its attribute, the first of a pair."""
        if isinstance(value, (cst.Tuple, cst.List)):
            parts = [element.value for element in value.elements]
        elif isinstance(value, cst.Dict):
            parts = [part for one in value.elements for part in children(one) if isinstance(part, cst.BaseExpression)]
        elif isinstance(value, cst.Call):
            parts = [arg.value for arg in value.args]
        else:
            return False
        keys = _Keys(self.module, self.orders.endings, target)
        if body is not None:
            for node in nodes(body):
                if isinstance(node, cst.Assign):
                    keys.learn(node)
        return any(keys.holds(part) for part in parts)

    def filled_by(self, call: cst.Call, method: str) -> Iterator[Use]:
        """Nothing: a method may know the key of what it is given."""
        return iter(())

    def keeps_tables(self) -> bool:
        """None: a result has its key."""
        return False

    def comes_again(self, entry: cst.Subscript, target: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether several tasks may have the key of `entry`: it is no number of theirs, and not what a dictionary in
        sight has for each of them."""
        if super().comes_again(entry, target, loop):
            return True
        keys = [element.slice.value for element in entry.slice if isinstance(element.slice, cst.Index)]
        return not any(self._is_own(key, target, loop) for key in keys)

    def _is_own(self, key: cst.BaseExpression, target: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether `key` may well belong to one task alone."""
        for node in nodes(loop.body) if isinstance(key, cst.Name) else ():
            if isinstance(node, cst.Assign) and bare(node.targets[0].target) == bare(key):
                key = node.value
                break
        if isinstance(key, cst.Name):
            return self.orders.endings["numbers"].search(key.value) is not None
        tasks = set(names_in(target))
        if not isinstance(key, cst.Subscript) or tasks.isdisjoint(names_in(key.slice[0])):
            return True
        table = self.module.values.followed(key.value, *self._place(loop))
        made = table.node if table is not None else None
        return not isinstance(made, cst.DictComp) or isinstance(made.value, cst.Name)

    def _place(self, node: cst.CSTNode) -> tuple[Scope, int]:
        return self.module.scope_of(node), self.module.order_of(node)


class _Keys:
    """The names that tell tasks apart in a loop over them."""

    def __init__(self, module: Module, endings: Mapping[str, re.Pattern[str]], target: cst.BaseExpression) -> None:
        self.module, self.endings = module, endings
        paired = isinstance(target, cst.Tuple)
        self.tasks = set() if paired else set(names_in(target))
        first = target.elements[0].value if isinstance(target, cst.Tuple) else target
        self.keys = set(names_in(first)) if paired else set()

    def learn(self, node: cst.Assign) -> None:
        """What an assignment in the loop makes a key."""
        target = node.targets[0].target
        if self.holds(node.value):
            self.keys.update(names_in(target))
        elif isinstance(target, cst.Tuple) and not self.tasks.isdisjoint(names_in(node.value)):
            self.keys.update(name for name in names_in(target) if self._names_a_key(name))

    def _names_a_key(self, name: str) -> bool:
        return any(self.endings[role].search(name) for role in ("numbers", "keys", "paths"))

    def holds(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is a key: a name of one, `futures[future]`, `futures.pop(future)`, `future.name`."""
        if isinstance(node, cst.Name):
            return node.value in self.keys
        if isinstance(node, cst.Subscript):
            return any(not self.tasks.isdisjoint(names_in(element)) for element in node.slice)
        if isinstance(node, cst.Attribute):
            return isinstance(node.value, cst.Name) and node.value.value in self.tasks
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            own = self.tasks.isdisjoint(names_in(node.func))
            found = own and any(isinstance(arg.value, cst.Name) and arg.value.value in self.tasks for arg in node.args)
            return found and not any(name.startswith(_COMPUTING) for name in self.module.resolve(node.func))
        return False
