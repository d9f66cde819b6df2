"""Two pickles -> the first value that differs between them, the clock left out. Nothing is unpickled: only the texts
and numbers in them are read, in order.
"""

from __future__ import annotations

import itertools
import pickletools
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.verification.leftovers.masking import TIMED_NAME, masked

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 1 << 20
"""The size of the largest pickle that is looked into, in bytes."""
_FRAMING = frozenset({"PROTO", "FRAME", "STOP"})
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_LONGEST = 60


class _Part(NamedTuple):
    """An opcode and what it holds, with the last text before it."""

    opcode: str
    value: Any
    after: str


def difference(a: bytes, b: bytes) -> str:
    """What differs first, in a few words; empty where the same values stand in both. Raises `ValueError` where one of
    them is no pickle.
    """
    for one, two in itertools.zip_longest(_parts(a), _parts(b)):
        if one != two:
            if one is None or two is None or one.after != two.after or one.value is None or two.value is None:
                return "other values are in it"
            key = f"after {one.after[:_LONGEST]!r}: " if one.after else ""
            return f"{key}{_shown(one.value)} | {_shown(two.value)}"
    return ""


def _parts(data: bytes) -> Iterator[_Part]:
    memo: dict[int, Any] = {}
    last: Any = None
    key = ""
    for opcode, value, _ in pickletools.genops(data):
        name = opcode.name
        if name == "MEMOIZE":
            memo[len(memo)] = last
            continue
        if name in _PUTS:
            memo[_number(value)] = last
            continue
        if name in _FRAMING:
            continue
        last = memo.get(_number(value)) if name in _GETS else value
        if isinstance(last, str):
            text = "\n".join(masked(line) for line in last.splitlines())
            yield _Part(name, text, key)
            key = text
        elif type(last) in (int, float) and TIMED_NAME.search(key):
            yield _Part("", "", key)
        else:
            yield _Part(name, value, key)


def _number(value: Any) -> int:
    return int(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
