"""A sentence -> lines for a screen, in colour where that is asked for."""

from __future__ import annotations

import textwrap

_WIDTH = 118
RED, GREEN, YELLOW, BOLD, DIM = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[2m"
_OFF = "\x1b[0m"


def wrapped(message: str, most: int = 2) -> list[str]:
    """A message in at most `most` indented lines."""
    lines = textwrap.wrap(inert(" ".join(message.split())), _WIDTH - 2) or [""]
    if len(lines) > most:
        lines = [*lines[: most - 1], textwrap.shorten(" ".join(lines[most - 1 :]), _WIDTH - 2, placeholder=" …")]
    return [f"  {line}" for line in lines]


def inert(line: str) -> str:
    """A line from somebody's file without what would steer a terminal."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)


def paint(words: str, code: str, colour: bool) -> str:
    """The words in the colour `code`, if `colour`."""
    return f"{code}{words}{_OFF}" if colour else words
