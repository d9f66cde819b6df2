"""Patterns as `.gitignore` has them -> what tells whether a path fits one of them."""

from __future__ import annotations

import os
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
    if not pattern.strip() or pattern.startswith("#") or _is_unclosed(pattern):
        return False
    try:
        _compiled((pattern,))
    except _WRONG:
        return False
    return True


def from_top(pattern: str, root: str, base: str) -> str:
    """`pattern` as `.gitignore` would have it at the top of the project: what begins with `./` or `../` there is a path
    from `base`, and what begins with `root` is one from the top of the disk. Raises `ValueError` for what leads out of
    the project."""
    sign, path = pattern[: pattern.startswith("!")], pattern.removeprefix("!")
    if path.startswith(("./", "../")):
        path = f"{base}/{path}"
    elif not path.startswith(f"{root.rstrip('/')}/"):
        return pattern
    relative = os.path.relpath(path, root).replace(os.sep, "/")
    if relative.split("/")[0] == os.pardir:
        raise ValueError(pattern)
    if relative == os.curdir:
        return f"{sign}/*"
    return f"{sign}/{relative}{'/' if path.endswith('/') else ''}"


def _is_unclosed(pattern: str) -> bool:
    """Whether a set of characters, `[a-z]`, begins in `pattern` and never ends."""
    return "[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", re.sub(r"\\.", "", pattern))


def _compiled(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    import pathspec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `re`, about sets that a later release may read in another way
        return pathspec.GitIgnoreSpec.from_lines(patterns)
