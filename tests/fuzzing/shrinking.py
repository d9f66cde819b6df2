"""A failing input -> a smaller one that fails in the same way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fuzzing.oracles import Input


def shrunk(one: Input, fails: Callable[[Input], bool], seconds: float = 60) -> Input:
    """The smallest input that was found within `seconds` and `fails`: fewer files, lines and characters."""
    until = time.monotonic() + seconds
    for name in sorted(one.files):
        without = one._replace(files={other: data for other, data in one.files.items() if other != name})
        if without.files and _fails(without, fails):
            one = without
    before = None
    while one != before and time.monotonic() < until:
        before = one
        for name in sorted(one.files):
            for pieces in (_lines, _characters):
                one = _fewer(one, name, pieces(one.files[name]), fails, until)
    return one


def _fails(one: Input, fails: Callable[[Input], bool]) -> bool:
    try:
        return fails(one)
    except KeyError:  # a file that the input needs is gone
        return False


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _characters(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))] if len(data) <= 3000 else []


def _fewer(one: Input, name: str, pieces: Sequence[bytes], fails: Callable[[Input], bool], until: float) -> Input:
    """Take away runs of pieces, halves first, single pieces last (Zeller's delta debugging, complements only)."""
    left = list(pieces)
    length = len(left) // 2
    while length and time.monotonic() < until:
        at = 0
        while at < len(left) and time.monotonic() < until:
            tried = left[:at] + left[at + length :]
            candidate = one._replace(files={**one.files, name: b"".join(tried)})
            if _fails(candidate, fails):
                left, one = tried, candidate
            else:
                at += length
        length //= 2
    return one
