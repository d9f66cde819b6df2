"""The call that makes a layer -> whether nothing ever applies what it makes."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.module.names import dotted
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module

# What applies, or hands on, the parts of a layer without their names.
_ALL_PARTS = lazy(
    r"\b(?:getattr|vars|eval|exec|locals)[ \t]*\(|\.(?:named_)?(?:children|modules)[ \t]*\(|\._modules\b|__dict__"
    r"|__getattr__|super\(\)\.forward"
)
# The same in a file that only makes the layer around them: by `getattr` it asks for other things.
_PARTS_OF_ANOTHER = lazy(r"\.(?:named_)?(?:children|modules)[ \t]*\(|\._modules\b")
_COMMENTED_OUT = lazy(r"^[ \t]*#.*", re.MULTILINE)


class _Text:
    """What the text of a file says, looked at once for all layers."""

    def __init__(self, module: Module) -> None:
        self.module = module

    @cached_property
    def words(self) -> Counter[str]:
        """How often each word stands in the file, lines that are commented out left out."""
        return Counter(re.findall(r"\w+", _COMMENTED_OUT.sub("", self.module.text)))

    @cached_property
    def takes_all_parts(self) -> bool:
        """Whether it may apply the parts of a layer without their names."""
        return _ALL_PARTS.search(self.module.text) is not None

    @cached_property
    def takes_parts_of_another(self) -> bool:
        """Whether it may apply the parts of a layer that it makes."""
        return _PARTS_OF_ANOTHER.search(self.module.text) is not None


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
    return module.shared(_Text).words[target.value] == 1


def _is_never_read(module: Module, target: cst.Attribute) -> bool:
    """Whether `self.name` of a model stands nowhere but where it is made: neither in the file nor in those that make or
    derive from the model."""
    class_ = module.enclosing_class(target)
    if class_ is None or "forward" not in class_.methods or not isinstance(target.value, cst.Name):
        return False
    word, text = target.attr.value, module.shared(_Text)
    if dotted(target.value) != "self" or text.words[word] != 1 or text.takes_all_parts:
        return False
    heirs, callers = module.heirs, module.callers
    below = [there.shared(_Text) for there, _ in heirs(class_.name)] if heirs else []
    makers = [there.shared(_Text) for there, _ in callers(class_.name)] if callers else []
    taken = any(one.takes_all_parts for one in below) or any(one.takes_parts_of_another for one in makers)
    return not (taken or any(one.words[word] for one in (*below, *makers)))
