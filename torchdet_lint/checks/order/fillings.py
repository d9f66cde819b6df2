"""A collection that goes by a name -> the calls that put something into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

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
        self._calls: dict[tuple[str, str], list[Call]] = {}
        # What something is put into, by its last name: most names need no look at the text for theirs alone.
        self._words = frozenset(_PUTS_IN.findall(module.text))

    def of(self, target: cst.BaseExpression, methods: tuple[str, ...]) -> list[Call]:
        """The calls of `methods` on `target`: a local name of the same scope, or an attribute that is written the
        same."""
        word, name = last_word(target), bare(target)
        if word and word not in self._words:
            return []
        self.module.load_where(_holding(tuple(f"{word}.{method}" for method in methods)), word)
        calls = self.module.calls
        for call in calls[self._seen :]:
            values = all("()" in known or known.startswith((".", "@.")) for known in call.own)
            if call.attribute in _METHODS and call.receiver is not None and values:
                self._calls.setdefault((call.attribute, bare(call.receiver)), []).append(call)
        self._seen = len(calls)
        found = [call for method in methods for call in self._calls.get((method, name), ())]
        if not isinstance(target, cst.Name):
            return found
        home = self.module.scope_of(target).home(word)
        return [call for call in found if call.scope.home(word) is home]


def _holding(parts: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda text: any(part in text for part in parts)
