"""The text of a file -> what it alone says of memory that is allocated without a value.

Most of it is evidently no input: it has no elements, is filled on the spot, returned, or kept in an attribute that the
class initialises.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from torchdet_lint.catalogue.tables.memory import Memory

_REACH = 200
_OPENING = lazy(r"\s*\(")
_BRACKETS = lazy(r"[()\[\]{}\"'#]")
_NO_ELEMENTS = lazy(r"\s*[\[(]?\s*(?:[\w.]+(?:\([\w., ]*\))?\s*,\s*)*0\s*[,)\]]")
_CHOICE = r"(?:[ \t]+if\b[^\n]*\belse\b[^\n]*)?"
_NAMED = (
    r"[ \t]*self\.(?:(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*|register_(?:buffer|parameter)[ \t]*\(\s*[\"'](\w+)[\"'],\s*)"
)
_KEPT = lazy(rf"(?:^|\n){_NAMED}(?:[\w.]*(?:Parameter|Buffer)[ \t]*\(\s*)?(?:[\w.]+\.)?$")
_RETURNED = lazy(r"(?:^|\n)[ \t]*return[ \t]+(?:[\w.]+\.)?$")
_END = lazy(r"[ \t]*(?:#[^\n]*)?(?:\n|$)")
_ITEM = lazy(r"(?:^|\n)[ \t]*self\.\w+\[[^\[\]\n]*\][ \t]*=[ \t]*(?:[\w.]*Parameter[ \t]*\(\s*)?(?:[\w.]+\.)?$")
_ENDS_CALLS = lazy(rf"(?:\s*(?:,[^()]*)?\)){{0,2}}{_CHOICE}[ \t]*(?:#[^\n]*)?(?:\n|$)")
_METHOD = lazy(r"\s*\.(\w+)[ \t]*\(")
_QUOTES = ("'", '"')
_FIRST_ARGUMENT = lazy(r"\(\s*[\"']$")
_WRITTEN = lazy(r"(?:\.data)?\.\w+_[ \t]*\(|\.data\b")
_INITIALISED = lazy(r"\binit[\w.]*\([^)]*$")
_HANDED = lazy(r"(?<![\w.])(\w+)[ \t]*\(\s*self\.$")
_HANDED_ON = lazy(r"\s*[,)]")


class Allocations:
    """The allocations of one file: `bound` are the names that it binds at top level and what they stand for, `memory`
    and the methods that are `fills` what the catalogue says."""

    def __init__(self, text: str, bound: Mapping[str, Collection[str]], memory: Memory, fills: Collection[str]) -> None:
        self.text = text
        self.memory = memory
        self.bound = bound
        self.fills = fills
        self._initialised: dict[str, bool] = {}
        self._touched: dict[str, bool] = {}

    @functools.cached_property
    def all_initialised(self) -> bool:
        """Whether the file has code that initialises attributes whatever their names are."""
        return (
            any(one in self.text for one in self.memory.initialising)
            or self.memory.goes_through_parts.search(self.text) is not None
        )

    def is_touched(self, name: str) -> bool:
        """Whether something in the file writes the attribute `name`, or gets at it by its name."""
        if name not in self._touched:
            self._touched[name] = self._finds_touched(name)
        return self._touched[name]

    def _finds_touched(self, name: str) -> bool:
        text, quoted = self.text, 0
        for start in places(name, text):
            end = start + len(name)
            if text[start - 1 : start] in _QUOTES and text[end : end + 1] in _QUOTES:
                quoted += 0 if _FIRST_ARGUMENT.search(text, max(0, start - _REACH), start) else 1
            elif _WRITTEN.match(text, end) or _INITIALISED.search(text, text.rfind("\n", 0, start) + 1, start):
                return True
        return quoted > 0

    def idle(self, word: str, text: str, start: int) -> bool:
        """Whether the memory from the call of `word`, which stands at `start` of `text`, is evidently no input."""
        opening = _OPENING.match(text, start + len(word))
        close = closing(text, opening.end()) if opening is not None else -1
        if opening is None or close < 0:
            return False
        if word != "empty_like" and "resize_" not in text and _NO_ELEMENTS.match(text, opening.end()):
            return True
        method = _METHOD.match(text, close)
        if method is not None:
            return method[1] in self.fills
        before = max(0, start - _REACH)
        if _END.match(text, close) and _RETURNED.search(text, before, start):
            return True
        if not _ENDS_CALLS.match(text, close):
            return False
        if _ITEM.search(text, before, start):
            return True
        kept = _KEPT.search(text, before, start)
        return kept is not None and self._is_initialised(kept[1] or kept[2])

    def _is_initialised(self, name: str) -> bool:
        if name not in self._initialised:
            self._initialised[name] = self.all_initialised or self.is_touched(name) or self._is_handed_on(name)
        return self._initialised[name]

    def _is_handed_on(self, name: str) -> bool:
        """Whether a function of the project is given the attribute: it may write it."""
        for start in places(name, self.text):
            call = _HANDED.search(self.text, max(0, start - _REACH), start)
            if call is not None and _HANDED_ON.match(self.text, start + len(name)):
                targets, known = self.bound.get(call[1]), self.memory.libraries
                if targets and all(target and target.partition(".")[0] not in known for target in targets):
                    return True
        return False


def closing(text: str, at: int) -> int:
    """Behind the bracket that closes the one before `at`; -1 where that is not simple to see."""
    depth = 1
    for bracket in _BRACKETS.finditer(text, at):
        if bracket[0] in "\"'#":
            return -1
        depth += 1 if bracket[0] in "([{" else -1
        if not depth:
            return bracket.end()
    return -1
