"""Questions about what collections hold, which may lead to each other -> their answers, each worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.inference.elements.element_kinds import CIRCLE, agreed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_UNKNOWN = "unknown"


class Questions:
    """The answers to questions by their keys. One that leads to itself says nothing there: `x = list(set(x) - y)` holds
    what `x` held before."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._known: dict[Hashable, str] = {}
        # The questions being worked out and how deep; of what hangs on one of these, the answer and the least depth.
        self._open: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, tuple[str, int]] = {}
        self._low = longest

    def settled(self, key: Hashable, work: Callable[[], str]) -> str:
        """What `work` finds, once for each `key`; `unknown` far along a chain."""
        found = self._found(key)
        if found is not None:
            return found
        depth = len(self._open)
        if depth > self._longest:
            return _UNKNOWN
        self._open[key] = depth
        outer, self._low = self._low, depth
        before = len(self._waiting)
        found = work()
        low, self._low = self._low, outer
        del self._open[key]
        inside = list(self._waiting)[before:]
        if low < depth:
            for one in inside:
                kind, least = self._waiting[one]
                self._waiting[one] = kind, min(least, low)
            self._waiting[key] = found, low
            self._low = min(outer, low)
            return found
        found = _UNKNOWN if found == CIRCLE else found
        for one in inside:
            self._known[one] = agreed((self._waiting.pop(one)[0], found))
        self._known[key] = found
        return found

    def _found(self, key: Hashable) -> str | None:
        """The answer that is known, or what holds for as long as others wait."""
        if key in self._open:
            self._low = min(self._low, self._open[key])
            return CIRCLE
        if key in self._waiting:
            found, least = self._waiting[key]
            self._low = min(self._low, least)
            return found
        return self._known.get(key)
