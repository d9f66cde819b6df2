"""A collection that goes by a name -> the calls that put something into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

# Methods that put in one element, and those that put in the elements of another collection.
ONE = ("add", "append", "appendleft", "insert")
MANY = ("extend", "extendleft", "update")
_METHODS = frozenset((*ONE, *MANY))
_PUTS_IN = lazy(rf"(\w+)\.(?:{'|'.join((*ONE, *MANY))})[ \t]*\(")


class Fillings:
    """The calls of one file that put something into a collection, by the method and what it is called on."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._seen = 0
        self._calls: dict[tuple[str, str, int], list[Call]] = {}
        # What something is put into, by its last name: most names need no look at the text for theirs alone.
        self._words = frozenset(_PUTS_IN.findall(module.text))

    def of(self, target: cst.BaseExpression, methods: tuple[str, ...]) -> list[Call]:
        """The calls of `methods` on `target`: a local name of the same scope, or an attribute that is written the
        same, of `self` in classes that derive from each other."""
        word, name = last_word(target), bare(target)
        if word and word not in self._words:
            return []
        self.module.load_where(_holding(tuple(f"{word}.{method}" for method in methods)), word)
        calls = self.module.calls
        for call in calls[self._seen :]:
            values = all("()" in known or known.startswith((".", "@.")) for known in call.own)
            if call.attribute in _METHODS and call.receiver is not None and values:
                key = (call.attribute, bare(call.receiver), id(self._owner(call.receiver)))
                self._calls.setdefault(key, []).append(call)
        self._seen = len(calls)
        owners = [id(one) for one in relatives(self.module, self._owner(target))]
        found = [call for method in methods for one in owners for call in self._calls.get((method, name, one), ())]
        if not isinstance(target, cst.Name):
            return found
        home = self.module.scope_of(target).home(word)
        return [call for call in found if call.scope.home(word) is home]

    def _owner(self, node: cst.BaseExpression) -> Class | None:
        """The class of whose object `node` is an attribute, `self.names`, in one of its methods."""
        own = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self"
        return self.module.enclosing_class(node) if own else None


def relatives(module: Module, class_: Class | None) -> Sequence[Class | None]:
    """`class_` and the classes of the file from which it derives or that derive from it; None alone for none."""
    if class_ is None:
        return (None,)
    return (*module.family(class_), *module.shared(Relatives).derived(class_))


def _holding(parts: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda text: any(part in text for part in parts)
