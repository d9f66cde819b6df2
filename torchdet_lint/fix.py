"""Edits written into a file: everything that no edit names stays byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.source import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.finding import Edit, Finding, Location
    from torchdet_lint.source import Source


class Applied(NamedTuple):
    """A file's new bytes, and the findings whose fixes are in them."""

    data: bytes
    done: tuple[Finding, ...]


def apply(source: Source, findings: Iterable[Finding]) -> Applied:
    """Write the fixes of `findings` (all of the file `source`) into it, each wholly or not at all.

    Of two fixes that touch the same text the first is written; the other one is for the next pass, which sees what the
    first has made of the file.
    """
    done: list[Finding] = []
    taken: dict[int | None, list[tuple[int, int, str]]] = {}
    texts: dict[int | None, str] = {cell.number: cell.text for cell in source.cells} or {None: source.text}
    starts = {cell: _starts(text) for cell, text in texts.items()}
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        if finding.fix is None or not finding.fix.edits or finding.cell not in texts:
            continue
        rows = starts[finding.cell]
        edits = [_offsets(edit, rows, texts[finding.cell]) for edit in finding.fix.edits]
        before = taken.setdefault(finding.cell, [])
        fresh = [edit for edit in edits if edit not in before]
        if any(_collide(edit, other) for edit in fresh for other in before):
            continue
        before += fresh
        done.append(finding)
    for cell, edits in taken.items():
        text = texts[cell]
        for start, end, content in sorted(edits, reverse=True):
            text = text[:start] + content + text[end:]
        texts[cell] = text
    if source.cells:
        data = source.with_cells({cell: text for cell, text in texts.items() if cell is not None})
    else:
        data = source.encoded(texts[None])
    return Applied(data, tuple(done))


def _starts(text: str) -> list[int]:
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))
    return starts


def _offsets(edit: Edit, starts: Sequence[int], text: str) -> tuple[int, int, str]:
    return _offset(edit.location, starts, text), _offset(edit.end_location, starts, text), edit.content


def _offset(place: Location, starts: Sequence[int], text: str) -> int:
    row = min(place.row - 1, len(starts) - 1)
    return min(starts[row] + place.column - 1, len(text))


def _collide(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Whether two edits overlap, or insert at the same place: their order would be a guess."""
    if one[0] == one[1] == other[0] == other[1]:
        return True
    return one[0] < other[1] and other[0] < one[1]
