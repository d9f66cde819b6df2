"""The text of some statements -> whether libcst's parser could end with the patterns in it.

It tries every way to read each bracket of a pattern, and does so again for each bracket inside: one level more doubles
the time, or makes it four times as long.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.skeleton import SyntaxFault, parsed
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

# Twofold so many times is some 50 ms.
_MOST = 12
_CASE = lazy(r"^[ \t]*case\b", re.MULTILINE)
_BRACKETS = lazy(r"\w*[(\[{]|[)\]}]|[\"'#]")
# A sequence in parentheses and a mapping cost four times as much as what is in them.
_COST = {"(": 2, "{": 2, "[": 1}


def explode(text: str) -> bool:
    """Whether a pattern in `text` is nested too deeply. Text that is not Python has none."""
    if _CASE.search(text) is None or not any(_weight(line) > _MOST for line in _suspects(text)):
        return False
    try:
        tree = parsed(text)
    except SyntaxFault:
        return True
    lines = text.split("\n")
    return any(_weight(pattern) > _MOST for pattern in _patterns(tree, lines))


def _suspects(text: str) -> Iterator[str]:
    """The text from each `case` to the next: no pattern is longer."""
    starts = [match.start() for match in _CASE.finditer(text)]
    yield from (text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True))


def _patterns(tree: ast.Module, lines: list[str]) -> Iterator[str]:
    """The text of each pattern, from the row it begins in to its guard or block."""
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case):
            until = node.guard or node.body[0]
            rows = lines[node.pattern.lineno - 1 : until.lineno]
            if until.lineno == (node.pattern.end_lineno or 0):
                rows[-1] = rows[-1].encode()[: until.col_offset].decode("utf-8", "replace")
            elif len(rows) > 1:
                rows.pop()
            yield "\n".join(rows)


def _weight(text: str) -> int:
    """How many times the work doubles for the deepest bracket in `text`."""
    open_, deepest, total = list[int](), 0, 0
    for match in _BRACKETS.finditer(text):
        mark = match[0][-1]
        if mark in _COST:
            open_.append(1 if len(match[0]) > 1 and mark == "(" else _COST[mark])
            total += open_[-1]
            deepest = max(deepest, total)
        elif mark in ")]}" and open_:
            total -= open_.pop()
    return deepest
