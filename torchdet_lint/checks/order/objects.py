"""A call -> what the object that it makes is as an element of a set; a parameter -> its annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import returned

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module


def object_kind(module: Module, call: cst.Call) -> str:
    """What `call` makes as an element: a module of torch's, or an object of a class of the file whose methods say
    whether it hashes by its address and whether it can be sorted, or what a function of the project returns."""
    for name in module.resolve(call.func):
        if name.startswith("torch.nn.") and name.rpartition(".")[2][0].isupper():
            return "identity"
        class_ = module.local_class(name)
        if class_ is None:
            if _gives_frozen_set(module, name):
                return "unsortable"
            continue
        family = list(module.family(class_))
        for unit in [unit for one in family for unit in one.units if unit.piece.kind == "header"]:
            module.load(unit)
        bases = {base for one in family for base in module.base_names(one)}
        if any(base.startswith("torch.nn.") for base in bases):
            return "identity"
        others = [base for base in bases if base != "builtins.object" and module.local_class(base) is None]
        methods = {method for one in family for method in one.methods}
        if others or "__lt__" in methods or any(one.node is None or one.node.decorators for one in family):
            return "unknown"
        return "unsortable" if methods & {"__eq__", "__hash__"} else "identity"
    return "unknown"


def _gives_frozen_set(module: Module, name: str) -> bool:
    """Whether the function of the project that `name` means may return a frozen set: of two of these neither need be
    the smaller one."""
    found = module.function(name)
    values = returned(found[1]) if found is not None else ()
    return any(isinstance(one, cst.Call) and dotted(one.func) == "frozenset" for one in values)


def parameter_annotation(module: Module, node: cst.Name) -> str:
    """The annotation of the parameter that `node` is, or nothing."""
    home = module.scope_of(node).home(node.value)
    for binding in home.bindings[node.value] if home is not None else ():
        if isinstance(binding.node, cst.Param) and binding.node.annotation is not None:
            return bare(binding.node.annotation.annotation)
    return ""
