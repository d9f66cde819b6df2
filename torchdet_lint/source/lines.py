"""Python text -> its lines, its comments, and the rows on which a logical line starts."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT = r"(?P<comment>#[^\r\n]*)"
_TRIPLE = {
    '"': r'|"""(?:\\[\s\S]|[^\\])*?(?:"""|\\?(?P<double>\Z))',
    "'": r"|'''(?:\\[\s\S]|[^\\])*?(?:'''|\\?(?P<single>\Z))",
}
# A string that nothing ends goes to the end of its line: to look for an end from each of its quotes takes for ever.
_SINGLE = r"""|"(?:\\[\s\S]|[^"\\\r\n])*"?|'(?:\\[\s\S]|[^'\\\r\n])*'?"""
_LEXEMES = {
    quotes: re.compile(_COMMENT + "".join(_TRIPLE[quote] for quote in quotes) + _SINGLE)
    for quotes in ("\"'", '"', "'", "")
}
_NAMING = re.compile(r"-{0,2}\w[\w-]*")


def split_lines(text: str) -> list[str]:
    """The lines of `text` with their ends, cut where Python cuts them (form feeds do not end a line)."""
    return list(io.StringIO(text, newline=""))


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Offset and text of every comment in Python source."""
    for match in _lexemes(text):
        if match.lastgroup == "comment":
            yield match.start(), match[0]


def without_prose(text: str) -> str:
    """Python source without its comments, and without its strings but those that may name something: a key, an option,
    and what has `{` in it."""
    parts, at = [], 0
    for match in _lexemes(text):
        if match.lastgroup == "comment" or not ("{" in match[0] or _NAMING.fullmatch(match[0].strip("\"'"))):
            parts.append(text[at : match.start()])
            at = match.end()
    return "".join((*parts, text[at:]))


def _lexemes(text: str) -> Iterator[re.Match[str]]:
    """The comments and strings of `text`. Three quotes that nothing ends are an empty string and a quote."""
    quotes, at = "\"'", 0
    while at >= 0:
        start, at = at, -1
        for match in _LEXEMES[quotes].finditer(text, start):
            if match.lastgroup in ("double", "single"):
                quotes, at = quotes.replace('"' if match.lastgroup == "double" else "'", ""), match.start()
                break
            yield match


def logical_rows(text: str) -> set[int]:
    """The rows (from 0) on which a logical line starts: those inside a bracket or a string are none."""
    starts = {0}
    depth = row = at = 0
    for match in _lexemes(text + "\n"):
        depth, row = _scan(text[at : match.start()], depth, row, starts)
        row += match[0].count("\n")
        at = match.end()
    _scan(text[at:], depth, row, starts)
    return starts


def _scan(text: str, depth: int, row: int, starts: set[int]) -> tuple[int, int]:
    before = ""
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(depth - 1, 0)
        elif character == "\n":
            row += 1
            if depth == 0 and before != "\\":
                starts.add(row)
        before = character
    return depth, row
