"""Patterns as `.gitignore` has them -> what tells whether a path fits one of them."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pathspec

_WRONG = (ValueError, re.error, OverflowError, RecursionError)


def compiled(patterns: Iterable[str]) -> pathspec.GitIgnoreSpec:
    """What fits one of `patterns`. What is no pattern (a lone `!`) fits nothing, as in git."""
    known = tuple(patterns)
    try:
        return _compiled(known)
    except _WRONG:
        return _compiled(tuple(pattern for pattern in known if is_one(pattern)))


def is_one(pattern: str) -> bool:
    """Whether `pattern` is a pattern."""
    try:
        _compiled((pattern,))
    except _WRONG:
        return False
    return True


def _compiled(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    import pathspec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `re`, about sets that a later release may read in another way
        return pathspec.GitIgnoreSpec.from_lines(patterns)
