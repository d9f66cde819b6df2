"""The text of a regular expression -> the pattern, compiled when it is first used: most runs need few of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    from re import Pattern

_METHODS = ("finditer", "findall", "fullmatch", "match", "search", "split", "sub", "subn")


def lazy(text: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """What `re.compile(text, flags)` gives, but for the module's own functions (`re.sub(pattern, …)`)."""
    return cast("Pattern[AnyStr]", _Lazy(text, flags))


class _Lazy:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled: Any = re.compile(self._text, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
