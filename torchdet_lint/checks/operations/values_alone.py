"""The call of an op that gives values and indices -> whether its values alone are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module

_VALUES = "values"
# So many reads of a name are looked at.
_READS = 20


def takes_values_alone(module: Module, node: cst.BaseExpression) -> bool:
    """Whether of the pair that `node` gives only the values are taken: `x.median(0)[0]`, `x.median(0).values`, or of a
    name for it, wherever that is read."""
    parent = module.parent(node)
    if _is_of_values(module, node):
        return True
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0].target
    loads = module.shared(DefUse).loads_after
    if isinstance(target, cst.Name):
        reads = loads(target, parent) if module.enclosing_function(parent) is not None else []
        return 0 < len(reads) <= _READS and all(_is_of_values(module, read) for read in reads)
    if isinstance(target, cst.Tuple) and len(target.elements) == len(("values", "indices")):
        indices = target.elements[1].value
        return isinstance(indices, cst.Name) and not loads(indices, parent)
    return False


def _is_of_values(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the values of a pair are taken where it stands."""
    parent = module.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value == _VALUES
    if not isinstance(parent, cst.Subscript) or parent.value is not node or len(parent.slice) != 1:
        return False
    index = parent.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) and index.value.evaluated_value == 0
