"""The call that makes a layer -> whether nothing ever applies what it makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.module.names import dotted
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module

# What applies, or hands on, the parts of a layer without their names.
_ALL_PARTS = lazy(
    r"\b(?:getattr|vars|eval|exec|locals)\(|\.(?:named_)?(?:children|modules)\(|\._modules\b|__dict__|__getattr__"
    r"|super\(\)\.forward"
)


def is_idle(module: Module, node: cst.Call) -> bool:
    """Whether a layer is made for show: nothing takes it, a name that stands nowhere else in the file and that no other
    file can import, or an attribute of a model that nobody reads."""
    parent = module.parent(node)
    if isinstance(parent, cst.Expr):
        return last_word(node.func) != "__init__"
    while isinstance(parent, (cst.Arg, cst.Call, cst.Element, cst.List)):
        parent = module.parent(parent)
    if not (isinstance(parent, cst.Assign) and len(parent.targets) == 1):
        return False
    target = parent.targets[0].target
    if isinstance(target, cst.Attribute):
        return _is_never_read(module, target)
    private = module.source.cells or module.enclosing_function(node) is not None
    if parent.value is not node or not (private and isinstance(target, cst.Name)):
        return False
    return len(re.findall(rf"\b{target.value}\b", module.text)) == 1


def _is_never_read(module: Module, target: cst.Attribute) -> bool:
    """Whether `self.name` of a model stands nowhere but where it is made: neither in the file nor in those that make or
    derive from the model."""
    class_ = module.enclosing_class(target)
    if class_ is None or "forward" not in class_.methods or not isinstance(target.value, cst.Name):
        return False
    word = re.compile(rf"\b{target.attr.value}\b")
    if dotted(target.value) != "self" or len(word.findall(module.text)) != 1 or _ALL_PARTS.search(module.text):
        return False
    heirs, callers = module.heirs, module.callers
    around = [there for there, _ in (*heirs(class_.name), *callers(class_.name))] if heirs and callers else []
    return not any(word.search(there.text) or _ALL_PARTS.search(there.text) for there in around)
