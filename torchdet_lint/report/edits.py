"""The fix of a finding -> the lines that it takes away and puts in, as a diff shows them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.finding import Edit, Finding
    from torchdet_lint.source.snippets import Snippets


class Line(NamedTuple):
    """A line that goes (`-`) or comes (`+`): the row it has, or above which it comes, and its text."""

    mark: str
    cell: int | None
    row: int
    text: str


def changed(finding: Finding, snippets: Snippets) -> list[Line]:
    """The lines that the fix of `finding` changes, blank ones apart; none where the file is not at hand."""
    if finding.fix is None:
        return []
    edits = sorted(finding.fix.edits, key=lambda edit: (edit.cell or 0, edit.location, edit.end_location))
    found: list[Line] = []
    for edit in _touching(edits):
        found += _of(edit, finding.filename, snippets)
    return [line for line in found if line.text.strip()]


def _touching(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """The edits in groups: those of one share a row."""
    group: list[Edit] = []
    for edit in edits:
        if group and (edit.cell != group[-1].cell or edit.location.row > group[-1].end_location.row):
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _of(edits: Sequence[Edit], path: str, snippets: Snippets) -> Iterator[Line]:
    cell, first, last = edits[0].cell, edits[0].location.row, edits[-1].end_location.row
    old = snippets.within(path, cell, first, last)
    if len(old) < max(last - first, first == 1):
        return
    old += [""] * (last - first + 1 - len(old))
    starts = [0, *itertools.accumulate(len(line) + 1 for line in old)]
    text = "\n".join(old)
    for edit in reversed(edits):
        start = starts[edit.location.row - first] + edit.location.column - 1
        end = starts[edit.end_location.row - first] + edit.end_location.column - 1
        text = text[:start] + edit.content.replace("\r\n", "\n").replace("\r", "\n") + text[end:]
    new = text.split("\n")
    same = _common(old, new)
    alike = _common(old[same:][::-1], new[same:][::-1])
    for place, line in enumerate(old[same : len(old) - alike]):
        yield Line("-", cell, first + same + place, line)
    for line in new[same : len(new) - alike]:
        yield Line("+", cell, first + same, line)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
