"""A place and the codes of rules -> the edit that adds them to the suppressions of its row."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING

from torchdet_lint.finding import Edit, Fix, Location
from torchdet_lint.source import suppress
from torchdet_lint.source.lines import comments, split_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.source.decoding import Source

Place = tuple["int | None", int]
"""A cell of a notebook, or None, and a row in it."""


class Comments:
    """The comments of a file by row of its text: where they begin, and the suppressions that have a list of codes."""

    def __init__(self, source: Source, names: Mapping[str, str]) -> None:
        self.source = source
        self.names = names
        self.entries = {
            one.row: one for one in suppress.parse(source.text, names).entries if one.codes and not one.file
        }
        starts = list(itertools.accumulate(map(len, split_lines(source.text)), initial=0))
        self.begins: dict[int, int] = {}
        for offset, _ in comments(source.text):
            row = bisect.bisect_right(starts, offset)
            self.begins.setdefault(row, offset - starts[row - 1])

    def fix(self, place: Place, codes: Sequence[str], reason: str = "") -> Fix:
        """What adds `codes` at the end of a row: to the list that is there, or in a comment of its own."""
        cell, row = place
        line = split_lines(_text(self.source, cell))[row - 1].rstrip("\r\n")
        there = self.source.row(cell, row)
        shift = self.source.shift(there)
        entry = self.entries.get(there)
        if entry is not None:
            start, end = entry.begin - 1 + shift, entry.end - 1 + shift
            return _edit(suppress.extended(line[start:end], codes, self.names), row, start, end, cell)
        bare = line.rstrip()
        content = f"{'  ' if bare else ''}# noqa: {', '.join(codes)}{f' {reason}' if reason else ''}"
        start = self.begins[there] + shift if there in self.begins else len(bare)
        return _edit(bare[start:] + content, row, start, len(line), cell)


def _edit(content: str, row: int, start: int, end: int, cell: int | None) -> Fix:
    return Fix("safe", "Add a suppression", (Edit(content, Location(row, start + 1), Location(row, end + 1), cell),))


def _text(source: Source, cell: int | None) -> str:
    return next((one.text for one in source.cells if one.number == cell), source.text)
