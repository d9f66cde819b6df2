"""The code of a notebook's cell -> the same rows as Python: what only IPython understands becomes a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import logical_rows, split_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_PYTHON_CELL = lazy(r"%%(?:capture|prun|pypy|python3?|time|timeit)\b")
_MAGIC_VALUE = lazy(r"\s*[A-Za-z_][\w.,\s\[\]]*=\s*(?:%[A-Za-z]|!(?!=))")
_SHELL = lazy(r"\s*(?:[!%?]|/[A-Za-z_]|[,;][A-Za-z_])")
_HELP = lazy(r"\s*[A-Za-z_][\w.]*\?{1,2}\s*$")
# A magic by its bare name, as IPython takes it where no variable is called so and the line is no Python.
_BARE_MAGIC = lazy(
    r"(?:(?:cat|cd|conda|cp|ll|ls|mamba|mkdir|mv|pip|rm)[ \t]+--?[A-Za-z]"
    r"|(?:autoreload|cat|cd|conda|cp|load_ext|ls|ll|mamba|matplotlib|mkdir|mv|pip|pylab|reload_ext|rm|rmdir|run)[ \t]+"
    r"(?!(?:and|as|else|for|if|in|is|not|or)\b)(?:[\w~$\"'{]|\.\.?(?:[/\\]|[ \t]*$)|/\S))"
)


def without_magics(text: str) -> str:
    """`text` with what only IPython understands turned into comments; rows stay where they are."""
    if not any(character in text for character in "%!?/,;") and _BARE_MAGIC.search(text) is None:
        return text
    lines = split_lines(text)
    closed = closed_rows(lines)
    if closed > len(lines):
        return "".join(_commented(line) for line in lines)
    if closed:
        lines[closed - 1] = _commented(lines[closed - 1])
    starts = logical_rows("".join(lines))
    going_on = False
    for index, line in enumerate(lines):
        magic = going_on or (
            index in starts
            and bool(_SHELL.match(line) or _MAGIC_VALUE.match(line) or _HELP.match(line) or _BARE_MAGIC.match(line))
        )
        going_on = magic and line.rstrip("\r\n").endswith("\\")
        if magic:
            lines[index] = _commented(line, statement=index in starts)
    return "".join(lines)


def closed_rows(lines: Sequence[str]) -> int:
    """How many rows at the start of a cell take no Python above them: those up to its `%%time`, and more than it has
    where all of the cell is in another language."""
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if not lines or not lines[first].startswith("%%"):
        return 0
    return first + 1 if _PYTHON_CELL.match(lines[first]) else len(lines) + 1


def _commented(line: str, *, statement: bool = False) -> str:
    """A comment in place of the line; an indented statement stays one, for its block may hold no other."""
    body = line.lstrip(" \t")
    if not body.strip():
        return line
    indent = line[: len(line) - len(body)]
    return f"{indent}pass  # {body}" if indent and statement else f"# {line}"
