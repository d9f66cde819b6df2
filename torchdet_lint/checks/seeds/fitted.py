"""An estimator or a splitter -> whether it draws once: a fixed `random_state` makes all its fits draw the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.dataflow.syntax import last_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Call, Module

_DRAW = ("fit", "partial_fit", "split", "resample", "sample")
_SPLITTER = "cv"


def draws_once(module: Module, call: Call) -> bool:
    """Whether `call` is that of a function, or makes an object that evidently draws no more than once."""
    if not last_word(call.node.func)[:1].isupper():
        return True
    parent = module.parent(call.node)
    if isinstance(parent, (cst.Attribute, cst.Arg)):
        return isinstance(parent, cst.Attribute) or _is_splitter(parent)
    target = parent.targets[0].target if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
    if not isinstance(target, cst.Name) or parent is None:
        return False
    drawing = list(_drawing(module, target, parent))
    return len(drawing) < 2 and all(
        isinstance(one, cst.Call) and module.shared(ProgramSeeds).runs_once(one) for one in drawing
    )


def _drawing(module: Module, name: cst.Name, bound: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The calls in which the object `name` draws, and whatever else is done with it that may draw."""
    for load in module.shared(DefUse).loads_after(name, bound):
        parent = module.parent(load)
        above = module.parent(parent) if parent is not None else None
        if isinstance(parent, cst.Attribute):
            if isinstance(above, cst.Call) and parent.attr.value.startswith(_DRAW):
                yield above
        elif isinstance(parent, cst.Arg) and isinstance(above, cst.Call) and _is_splitter(parent):
            yield above
        else:
            yield load


def _is_splitter(arg: cst.Arg) -> bool:
    """Whether `arg` says how a function, which does so once, splits the data."""
    return arg.keyword is not None and arg.keyword.value == _SPLITTER
