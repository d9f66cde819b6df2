"""A parameter that is None by default -> whether every call in sight leaves it at that."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, is_public, passed_by_place
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.syntax import parameter_behind

if TYPE_CHECKING:
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

# Of so many calls it is asked what they give, and of so many functions in turn that hand a parameter on.
_CALLS = 8
_HOPS = 3


def is_never_given(module: Module, node: cst.Param, hops: int = _HOPS) -> bool:
    """Whether calls of the function or constructor of the parameter `node` are in sight, and each of them gives it
    nothing, or None. Whoever uses a package may give something to what that makes public, and to a public method."""
    function = module.enclosing_function(node)
    if function is None or function.decorators or not _is_none(node.default):
        return False
    class_ = module.enclosing_class(function)
    if _may_be_called_elsewhere(module, function, class_):
        return False
    names = passed_by_place(module, function)
    calls = list(itertools.islice(CallEdges(module).callers_with_files(function), _CALLS + 1))
    if not 0 < len(calls) <= _CALLS or _is_handed_on(module, function, class_, calls):
        return False
    return all(_leaves(there, call, node.name.value, names, hops) for there, call in calls)


def _may_be_called_elsewhere(module: Module, function: cst.FunctionDef, class_: Class | None) -> bool:
    """Whether others than the callers in sight may call `function`."""
    name = function.name.value
    private = name.startswith("_") and not name.endswith("__")
    if class_ is None:
        return not private and is_public(module, name)
    if name != "__init__" and not private:
        return True
    if name == "__init__" and is_public(module, class_.name):
        return True
    edges = CallEdges(module)
    return bool(edges.derived(class_) or edges.heirs(class_))


def _is_handed_on(
    module: Module, function: cst.FunctionDef, class_: Class | None, calls: list[tuple[Module, Call]]
) -> bool:
    """Whether the file does something else with `function` than call it: who takes it may give it anything."""
    own = sum(there is module for there, _ in calls)
    name = function.name.value
    if class_ is not None and name != "__init__":
        return len(re.findall(rf"\.{name}\b", module.text)) != own
    # A class is parsed no sooner than its name is read.
    reads = module.shared(Reads).of(None, class_.name if class_ is not None else name)
    defined = class_.node if class_ is not None else function
    return sum(defined is None or read is not defined.name for read in reads) != own


def _leaves(module: Module, call: Call, name: str, names: tuple[str, ...], hops: int) -> bool:
    """Whether `call` gives the parameter `name` nothing, None, or a parameter that is never given either."""
    given = call.argument(name, names)
    if given is None:
        return not call.opaque
    if _is_none(given.node):
        return True
    passed = parameter_behind(given.node, module.scope_of(given.node))
    return hops > 0 and passed is not None and is_never_given(module, passed, hops - 1)


def _is_none(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
