"""The call that makes a layer -> the calls that apply it, where nothing else is done with it: a layer with weights then
stays on the CPU, on which torch makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.inference.devices import named_device

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module

# So many reads of one layer are looked at, and so many layers that hold it.
_MOST = 100
_DEPTH = 4


def stays_on_cpu(module: Module, node: cst.Call) -> bool:
    """Whether the layer that `node` makes has its weights on the CPU wherever it is applied: nothing moves it."""
    devices = module.library.facts.devices
    if devices.moves_all.search(module.text):
        return False
    if _is_put_there(module, node) and not devices.names_another.search(module.text):
        return True
    if any(arg.star or (arg.keyword is not None and arg.keyword.value == "device") for arg in node.args):
        return False
    return only_applied(module, node) is not None


def _is_put_there(module: Module, node: cst.Call) -> bool:
    """Whether the layer that `node` makes is put on the CPU at once: by `.to(device)`, `.cpu()`, or `device="cpu"`."""
    given = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "device"]
    method, around = module.parent(node), None
    if isinstance(method, cst.Attribute):
        around = module.parent(method)
    if isinstance(method, cst.Attribute) and isinstance(around, cst.Call):
        if method.attr.value == "cpu":
            return True
        given += [arg.value for arg in around.args[:1] if method.attr.value == "to"]
    return bool(given) and all(named_device(module, one) == "cpu" for one in given)


def only_applied(module: Module, node: cst.Call, depth: int = _DEPTH) -> list[cst.Call] | None:
    """The calls of the layer that `node` makes, or of one that it is put into, where a name of a notebook or of a
    function holds it, and the code but applies it, prints it, reads its weights; None where it may do anything else."""
    statement = module.parent(node)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or not depth:
        return None
    target = statement.targets[0].target
    private = module.source.cells or module.enclosing_function(node) is not None
    if not (private and isinstance(target, cst.Name)):
        return None
    if any(isinstance(around, (cst.For, cst.While)) for around in module.ancestors(statement)):
        return None
    loads = module.shared(DefUse).loads_after(target, statement)
    calls: list[cst.Call] = []
    for load in loads[:_MOST]:
        found = _applied(module, load, depth)
        if found is None:
            return None
        calls += found
    return calls if len(loads) < _MOST else None


def _applied(module: Module, load: cst.Name, depth: int) -> list[cst.Call] | None:
    """What applies a layer at `load`; None where it may be moved there, or get another name."""
    devices = module.library.facts.devices
    parent = module.parent(load)
    kept = False
    if isinstance(parent, cst.Call):
        return [parent]
    if isinstance(parent, cst.Attribute):
        user = module.parent(parent)
        if parent.attr.value in devices.settled:
            kept = isinstance(user, cst.Call) and isinstance(module.parent(user), cst.Expr)
        else:
            kept = parent.attr.value in devices.read and not isinstance(user, cst.AssignTarget)
    elif isinstance(parent, cst.Arg) and isinstance(call := module.parent(parent), cst.Call):
        made = module.resolve(call.func)
        if made and all(name.startswith("torch.nn.") and name[9:10].isupper() for name in made):
            return only_applied(module, call, depth - 1)
        kept = last_word(call.func) in devices.shows
    return [] if kept or isinstance(parent, cst.Expr) else None
