"""The call that makes a layer -> whether functions that are handed it apply it, and only where no gradient flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse, Reads
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module

# So many reads of one layer are looked at.
_MOST = 40


def applied_untracked(module: Module, node: cst.Call) -> bool:
    """Whether the layer that `node` makes has the name of a function's own, by which nothing is done but to apply it
    where no gradient flows, and to hand it to functions that do so: `validate(loader, model, upsample)`."""
    statement = module.parent(node)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0].target
    if not isinstance(target, cst.Name) or module.enclosing_function(node) is None:
        return False
    loads = module.shared(DefUse).loads_after(target, statement)
    return 0 < len(loads) < _MOST and all(_is_untracked(module, load) for load in loads)


def _is_untracked(module: Module, load: cst.Name) -> bool:
    """Whether what is read there is applied where no gradient flows, or handed to a function that does nothing else."""
    around = module.parent(load)
    if isinstance(around, cst.Call):
        return module.shared(Gradients).untracked(around)
    call = module.parent(around) if isinstance(around, cst.Arg) and not around.star else None
    known = module.call_at(call) if isinstance(call, cst.Call) else None
    found = [module.function(name) for name in known.own] if known is not None and not known.opaque else []
    if known is None or len(found) != 1 or found[0] is None:
        return False
    there, function = found[0]
    names = positional(function)
    taken = [name for name in names if (given := known.argument(name, names)) is not None and given.node is load]
    reads = there.shared(Reads).of(function, taken[0]) if len(taken) == 1 else []
    uses = [user for read in reads if not isinstance(user := there.parent(read), cst.Param)]
    return bool(uses) and all(isinstance(user, cst.Call) and there.shared(Gradients).untracked(user) for user in uses)
