"""A parameter -> the numbers of dimensions of the tensors that calls in sight give it, in whichever file."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.inference.infer import Inference
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

# Of so many calls it is asked what they give.
_CALLS = 8


def given_dims(module: Module, node: cst.Param) -> frozenset[int]:
    """Those of the parameter `node` of a function at top level, or of the `forward` of a layer, whose objects are
    called."""
    function = module.enclosing_function(node)
    class_ = module.enclosing_class(function) if function is not None else None
    if function is None or (class_ is not None and function.name.value != "forward"):
        return frozenset()
    found = CallEdges(module).callers_with_files(function) if class_ is None else _calls_of_objects(module, class_)
    names = positional(function)[class_ is not None :]
    dims = set[int]()
    for there, call in itertools.islice(found, _CALLS):
        given = call.argument(node.name.value, names)
        told = there.shared(Inference).infer(given.node).dims if given is not None and not call.opaque else None
        dims.update(() if told is None else (told,))
    return frozenset(dims)


def _calls_of_objects(module: Module, class_: Class) -> Iterator[tuple[Module, Call]]:
    """The calls of the objects of a layer: `self.criterion(x, y)`, and the files that they stand in."""
    module.look_for(class_.name)
    makers = [(module, call) for call in module.calls_to(f"@.{class_.name}")]
    makers += module.callers(class_.name) if module.callers is not None else ()
    for there, maker in makers:
        statement = there.parent(maker.node)
        if not isinstance(statement, cst.Assign):
            continue
        for target in (one.target for one in statement.targets):
            there.look_for(last_word(target))
            if isinstance(target, cst.Name):
                yield from ((there, call) for call in there.calls_to(*(f"{name}()" for name in maker.own)))
            elif isinstance(target, cst.Attribute):
                around = there.enclosing_class(statement)
                calls = there.method_calls(target.attr.value)
                yield from ((there, call) for call in calls if there.enclosing_class(call.node) is around)
