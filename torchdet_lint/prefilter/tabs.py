"""Rows that are indented by spaces and tabs -> the same rows with a space for each tab, which libcst can read."""

from __future__ import annotations

import ast

from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines

_INDENTED = lazy(r"[ ]*\t[ \t]*")


def untabbed(text: str) -> str:
    """`text` with a space for each tab that indents a row: Python takes only what is indented alike whether a tab
    counts for one column or for eight, and no place moves. A text over several rows keeps its own; a source that
    Python does not take stays as it is."""
    if "\t" not in text:
        return text
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    lines = split_lines(text)
    kept: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and (node.end_lineno or 0) > node.lineno:
            kept.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))
    for row, line in enumerate(lines, 1):
        match = _INDENTED.match(line)
        if match is not None and row not in kept:
            lines[row - 1] = " " * match.end() + line[match.end() :]
    return "".join(lines)
