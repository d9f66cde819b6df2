"""A function that other files call, or nobody does -> whether no gradient flows through any of these calls."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import is_public
from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.inference.gradients import Gradients

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Call, Module

# Nobody asks what more files do with a function.
_SPOKEN = 8
_WORD = re.compile(r"(\.|\bdef |\b)([A-Za-z_]\w*)")


def untracked_elsewhere(module: Module, node: cst.CSTNode) -> bool:
    """Whether `node` stands in a function at top level, or in a method but `forward`, with which the project does
    nothing but call it, each time where no gradient flows. What a package takes in, all may call."""
    function = module.enclosing_function(node)
    while function is not None and (outer := module.enclosing_function(function)) is not None:
        function = outer
    name = function.name.value if function is not None else ""
    if function is None or module.naming is None or name == "forward" or name.startswith("__"):
        return False
    if module.shared(Gradients).switched_on(node):
        return False
    class_ = module.enclosing_class(function)
    of_object = class_ is not None
    own = _calls_untracked(module, name, of_object=of_object)
    others = module.naming(name, _SPOKEN) if own is not None else None
    calls = [_calls_untracked(one, name, of_object=of_object) for one in others or ()]
    if None in calls or not any(calls):
        return False
    return not is_public(module, class_.name if class_ is not None else name)


def named_nowhere(module: Module, node: cst.CSTNode) -> bool:
    """Whether `node` stands in a function at top level that nothing in the project names: nobody in sight calls it.
    What a package takes in, all may call."""
    function = module.enclosing_function(node)
    name = function.name.value if function is not None else ""
    if function is None or module.naming is None or module.definition(name) is not function:
        return False
    uses = module.shared(_Uses)
    spoken = uses.names[name] or uses.attributes[name] or is_public(module, name)
    return not spoken and module.naming(name, 1) == []


def held_untracked_elsewhere(module: Module, node: cst.Call) -> bool:
    """Whether `node` makes a layer that an attribute of `self` keeps, `self.up = nn.Upsample(…)`, with which only
    classes that derive from this one do something, in whichever file: they call it, each time where no gradient flows.
    """
    holder, class_ = module.parent(node), module.enclosing_class(node)
    target = holder.targets[0].target if isinstance(holder, cst.Assign) and len(holder.targets) == 1 else None
    if class_ is None or module.readers is None or module.naming is None:
        return False
    if not isinstance(target, cst.Attribute) or bare(target.value) != "self":
        return False
    held = target.attr.value
    others = module.naming(held, _SPOKEN)
    if not others or len(re.findall(rf"\.{held}\b", module.text)) != 1:
        return False
    if any(re.search(rf"(?<!self)\.{held}\b|getattr", there.text) for there in others):
        return False
    calls = [
        there.shared(Gradients).untracked(call.node)
        for there, heir in _heirs(module.readers(class_.name))
        for call in _by_heir(there, held, heir)
    ]
    return bool(calls) and all(calls)


def _heirs(reads: Sequence[tuple[Module, cst.CSTNode]]) -> Iterator[tuple[Module, str]]:
    """The names of the classes among whose bases something of `reads` stands."""
    for there, read in reads:
        holder = there.parent(there.parent(read) or read)
        if isinstance(holder, cst.ClassDef):
            yield there, holder.name.value


def _by_heir(module: Module, held: str, name: str) -> Iterator[Call]:
    """The calls of `self.held` in the methods of the class called `name`."""
    module.load_where(word=held)
    for call in module.shared(Gradients).calls_of(held):
        class_ = module.enclosing_class(call.node)
        if class_ is not None and class_.name == name:
            yield call


class _Uses:
    """How often a file reads each name, and each attribute, but where it imports or defines it."""

    def __init__(self, module: Module) -> None:
        self.names = Counter[str]()
        self.attributes = Counter[str]()
        for line in module.text.splitlines():
            row = line.partition("#")[0]
            if not row.lstrip().startswith(("from ", "import ")):
                for before, name in _WORD.findall(row):
                    (self.attributes if before == "." else self.names)[name] += before != "def "


def _calls_untracked(module: Module, name: str, *, of_object: bool) -> int | None:
    """How often a file calls `name`; None where it does something else with it than import it, or a gradient flows."""
    gradients, uses = module.shared(Gradients), module.shared(_Uses)
    used = uses.attributes[name] + (0 if of_object else uses.names[name])
    module.load_where(word=name)
    calls = gradients.calls_of(name)
    tracked = (not (gradients.untracked(call.node) or gradients.called_untracked(call.node)) for call in calls)
    return None if used != len(calls) or any(tracked) else used
