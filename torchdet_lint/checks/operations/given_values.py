"""A parameter -> what calls in sight give it, in whichever file: how many dimensions, and whether it is sparse."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, passed_by_place
from torchdet_lint.dataflow.handing.invocations import calls_through_self
from torchdet_lint.dataflow.syntax import bare, last_word, parameter_behind
from torchdet_lint.inference.abstract_values import text_of
from torchdet_lint.inference.infer import Inference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.inference.abstract_values import AbstractValue
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Scope
    from torchdet_lint.module.values import Value

# Of so many calls it is asked what they give, and of so many in turn that only hand on what they are given.
_CALLS = 8
_HOPS = 3


def given_dims(module: Module, node: cst.Param, part: str | None = None) -> frozenset[int]:
    """The numbers of dimensions of the tensors that the parameter `node` is given, or of a part of what it is given:
    the entry of a key, or any where the key is empty."""
    given = _given(module, node, _HOPS)
    dims = (value.dims for whole in given for value in ([whole] if part is None else _parts(whole, part)))
    return frozenset(number for number in dims if number is not None)


def _parts(whole: AbstractValue, key: str) -> Iterator[AbstractValue]:
    """What is known of the entry `key` of a dictionary, or of all that it holds."""
    entries = dict(whole.entries)
    if key and entries:
        yield from [entries[key]] if key in entries else []
    elif whole.each is not None:
        yield from (whole.each, *entries.values())


def part_behind(module: Module, value: Value) -> tuple[cst.Param, str] | None:
    """The parameter of which `value` is an entry, and the key: `outputs["mask"]`, and what a loop over
    `outputs.values()` or `outputs.items()` gives, with no key."""
    node, key = value.node, ""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice if len(node.slice) == 1 else None
        key = text_of(index.value) if isinstance(index, cst.Index) else ""
        whole: cst.BaseExpression | None = node.value if key else None
    else:
        whole = _gone_through(node, value.scope)
    parameter = parameter_behind(whole, value.scope) if whole is not None else None
    return (parameter, key) if parameter is not None else None


def _gone_through(node: cst.BaseExpression, scope: Scope) -> cst.BaseExpression | None:
    """The dictionary of which a loop binds the values to the name `node`."""
    home = scope.home(node.value) if isinstance(node, cst.Name) else None
    bindings = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else ()
    binding = bindings[0] if len(bindings) == 1 and bindings[0].kind == "loop" else None
    over = binding.value if binding is not None else None
    if binding is None or not isinstance(over, cst.Call) or not isinstance(over.func, cst.Attribute):
        return None
    values = (over.func.attr.value, tuple(binding.path)) in (("values", ()), ("items", (1,)))
    return over.func.value if values else None


def is_given_sparse(module: Module, node: cst.Param) -> bool:
    """Whether the parameter `node` is evidently given a sparse tensor by one of the calls."""
    return any(value.sparse for value in _given(module, node, _HOPS))


def _given(module: Module, node: cst.Param, hops: int) -> Iterator[AbstractValue]:
    """What calls give the parameter `node` of a function at top level, of a constructor, of a method that its class
    calls, or of the `forward` of a layer, whose objects are called. What only hands on a parameter of its own is
    followed to its callers, `hops` times."""
    function = module.enclosing_function(node)
    class_ = module.enclosing_class(function) if function is not None else None
    if function is None:
        return
    found: Iterable[tuple[Module, Call]]
    if class_ is not None and function.name.value == "forward":
        found = _calls_of_objects(module, class_)
    elif class_ is not None and function.name.value != "__init__":
        found = _calls_of_method(module, function.name.value, class_)
    else:
        found = CallEdges(module).callers_with_files(function)
    names = passed_by_place(module, function)
    for there, call in itertools.islice(found, _CALLS):
        given = call.argument(node.name.value, names)
        if given is None or call.opaque:
            continue
        yield there.shared(Inference).infer(given.node)
        handed_on = parameter_behind(given.node, there.scope_of(given.node)) if hops else None
        if handed_on is not None:
            yield from _given(there, handed_on, hops - 1)


def _calls_of_objects(module: Module, class_: Class) -> Iterator[tuple[Module, Call]]:
    """The calls of the objects of a layer: `self.criterion(x, y)`, and the files that they stand in."""
    module.look_for(class_.name)
    makers = [(module, call) for call in module.calls_to(f"@.{class_.name}")]
    makers += module.callers(class_.name) if module.callers is not None else ()
    seen = set[int]()
    for there, maker in makers:
        parent = there.parent(maker.node)
        at_once = there.call_at(parent) if isinstance(parent, cst.Call) and parent.func is maker.node else None
        if at_once is not None:
            yield there, at_once
        for target in _targets(there, maker.node):
            there.look_for(last_word(target))
            if isinstance(target, cst.Name):
                calls = list(there.calls_to(*(f"{name}()" for name in maker.own)))
            else:
                around = there.enclosing_class(target)
                named = there.method_calls(last_word(target))
                calls = [call for call in named if there.enclosing_class(call.node) is around]
            yield from ((there, call) for call in calls if id(call) not in seen)
            seen.update(map(id, calls))


def _targets(module: Module, node: cst.Call) -> Iterator[cst.Name | cst.Attribute]:
    """What is bound to what the call `node` makes, also on another device, or as one of several: `a, b = A(), B()`."""
    moves = module.library.facts.programs.moves
    value: cst.CSTNode = node
    while isinstance(moved := module.parent(value), cst.Attribute) and moved.attr.value in moves:
        value = module.parent(moved) or moved
    holder, place = module.parent(value), -1
    if isinstance(holder, cst.Element) and isinstance(display := module.parent(holder), cst.Tuple):
        holder, place = module.parent(display), display.elements.index(holder)
    for target in (one.target for one in holder.targets) if isinstance(holder, cst.Assign) else ():
        found: cst.BaseExpression = target
        if place >= 0:
            several = isinstance(target, cst.Tuple) and len(target.elements) > place
            found = target.elements[place].value if several and isinstance(target, cst.Tuple) else target
        if isinstance(found, (cst.Name, cst.Attribute)):
            yield found


def _calls_of_method(module: Module, name: str, class_: Class) -> Iterator[tuple[Module, Call]]:
    """The calls of the method `name` of `class_`: `self.name(x)`, also in what it derives from and in what derives from
    it, those of objects that are evidently made of it, and in the class itself one of a table,
    `{"a": self.name}[kind](x)`, and one that a text names, `getattr(self, f"loss_{kind}")(x)`."""
    yield from calls_through_self(module, name, class_)
    yield from ((module, call) for call in module.calls_to(f"@.{class_.name}().{name}"))
    yield from module.methods_of(class_.name, name) if module.methods_of is not None else ()
    yield from ((module, call) for call in _picked_calls(module, name, class_))


def _picked_calls(module: Module, name: str, class_: Class) -> Iterator[Call]:
    """The calls in `class_` of its method `name` which a table or a text picks."""
    for unit in module.holding(name):
        if unit.piece.owner == class_.index and name in module.words[unit.index]:
            module.load(unit)
            for attribute in module.attributes_under(unit.root, name) if unit.root is not None else ():
                entry = module.parent(attribute)
                if isinstance(entry, cst.DictElement) and entry.value is attribute and bare(attribute.value) == "self":
                    yield from _of_table(module, module.parent(entry))
    module.look_for("getattr")
    for asked in module.calls_to("builtins.getattr"):
        call = module.parent(asked.node)
        if isinstance(call, cst.Call) and call.func is asked.node and module.enclosing_class(asked.node) is class_:
            found = module.call_at(call)
            if found is not None and _may_spell(asked, name):
                yield found


def _of_table(module: Module, table: cst.CSTNode | None) -> Iterator[Call]:
    """The calls of what is taken of `table`, there or under the name that it is given."""
    holder = module.parent(table) if table is not None else None
    target = holder.targets[0].target if isinstance(holder, cst.Assign) and len(holder.targets) == 1 else None
    function = module.scope_of(table).function if isinstance(table, cst.Dict) else None
    for call in module.calls_in(function) if function is not None else ():
        taken = call.node.func.value if isinstance(call.node.func, cst.Subscript) else None
        if taken is not None and (taken is table or (isinstance(target, cst.Name) and bare(taken) == target.value)):
            yield call


def _may_spell(asked: Call, name: str) -> bool:
    """Whether `getattr(self, text)` may be the method `name`: by the text that its own begins with."""
    given = [argument.value for argument in asked.node.args[:2]]
    if len(given) < 2 or bare(given[0]) != "self" or not isinstance(given[1], cst.FormattedString):
        return False
    first = given[1].parts[0] if given[1].parts else None
    return isinstance(first, cst.FormattedStringText) and name.startswith(first.value)
