"""What the programs print -> pictures of a terminal, as SVG made by rich."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 120
_STYLES = {
    r"^✗.*": "red",
    r"^✓.*": "green",
    r"^\d+ TDL\d+ [\w-]+": "bold",
    r"(?<=   )[\w./]+\.py:\d+": "yellow",
    r"^fix TDL.*": "green",
    r"^try the fixes:": "dim",
}


def of_ansi(name: str, title: str, text: str) -> str:
    """The picture of what a program printed in colour."""
    return _svg(name, title, [Text.from_ansi(line) for line in text.rstrip("\n").split("\n")])


def of_report(name: str, title: str, text: str) -> str:
    """The picture of a report of the verifier, in the colours that it has on a terminal."""
    lines = []
    for line in text.rstrip("\n").split("\n"):
        shown = Text(line)
        for pattern, style in _STYLES.items():
            if match := re.search(pattern, line):
                shown.stylize(style, *match.span())
        lines.append(shown)
    return _svg(name, title, lines)


def _svg(name: str, title: str, lines: Iterable[Text]) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line)
    svg = console.export_svg(title=title, unique_id=name)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE).rstrip("\n") + "\n"
