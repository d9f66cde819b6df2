"""A place of a source -> the lines that a report or a baseline shows, read when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.reading import read
from torchdet_lint.source.decoding import Source, SourceFault, decode
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.finding import Finding


class Snippets:
    """Lines by finding; `given` holds texts that are not on disk (standard input)."""

    def __init__(self, given: Mapping[str, bytes] | None = None) -> None:
        self._given = given or {}
        self._read: dict[str, tuple[Source, list[str]] | None] = {}

    def lines(self, finding: Finding, first: int, last: int) -> list[str]:
        """The lines `first` to `last` of the finding's file (of its cell, in a notebook), without their ends."""
        return self.within(finding.filename, finding.cell, first, last)

    def within(self, path: str, cell: int | None, first: int, last: int) -> list[str]:
        """The same of the file `path`, or of a cell of it."""
        known = self._source(path)
        if known is None:
            return []
        source, lines = known
        start = source.row(cell, max(first, 1))
        stop = source.row(cell, last)
        held = source.cell(cell)
        if held is not None:
            stop = min(stop, held.first_row + held.rows - 1)
        return [line.rstrip("\r\n") for line in lines[start - 1 : stop]]

    def _source(self, path: str) -> tuple[Source, list[str]] | None:
        if path not in self._read:
            try:
                source = decode(path, self._given[path] if path in self._given else read(path))
                shown = [line for cell in source.cells for line in split_lines(cell.text) or [""]]
                self._read[path] = source, shown or split_lines(source.text)
            except (OSError, SourceFault):
                self._read[path] = None
        return self._read[path]
