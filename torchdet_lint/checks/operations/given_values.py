"""A parameter -> what calls in sight give it, in whichever file: how many dimensions, and whether it is sparse."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, passed_by_place
from torchdet_lint.dataflow.syntax import last_word, parameter_behind
from torchdet_lint.inference.infer import Inference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.inference.abstract_values import AbstractValue
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

# Of so many calls it is asked what they give, and of so many in turn that only hand on what they are given.
_CALLS = 8
_HOPS = 3


def given_dims(module: Module, node: cst.Param) -> frozenset[int]:
    """The numbers of dimensions of the tensors that the parameter `node` is given."""
    dims = (value.dims for value in _given(module, node, 0))
    return frozenset(number for number in dims if number is not None)


def is_given_sparse(module: Module, node: cst.Param) -> bool:
    """Whether the parameter `node` is evidently given a sparse tensor by one of the calls."""
    return any(value.sparse for value in _given(module, node, _HOPS))


def _given(module: Module, node: cst.Param, hops: int) -> Iterator[AbstractValue]:
    """What calls give the parameter `node` of a function at top level, of a constructor, or of the `forward` of a
    layer, whose objects are called. What only hands on a parameter of its own is followed to its callers, `hops`
    times."""
    function = module.enclosing_function(node)
    class_ = module.enclosing_class(function) if function is not None else None
    if function is None or (class_ is not None and function.name.value not in ("forward", "__init__")):
        return
    if class_ is not None and function.name.value == "forward":
        found = _calls_of_objects(module, class_)
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
