"""A notebook with cells that are not Python -> the others, and what is wrong with those."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.module.cutting import cut
from torchdet_lint.prefilter.skeleton import SyntaxFault, parsed
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from torchdet_lint.source.decoding import Source


def legible(source: Source) -> tuple[Source, tuple[SyntaxFault, ...]]:
    """`source` with comments in place of the cells of a notebook that are not Python, and what is wrong with each: a
    cell runs without the others. As it is where there is none, or where the others are not Python either."""
    if not source.cells:
        return source, ()
    text, faults = _legible(source.text, tuple((cell.first_row, cell.rows) for cell in source.cells))
    if not faults:
        return source, ()
    illegible = frozenset(source.cells[index].number for index in faults)
    return msgspec.structs.replace(source, text=text, illegible=illegible), tuple(faults.values())


@functools.lru_cache(maxsize=16)
def _legible(text: str, cells: tuple[tuple[int, int], ...]) -> tuple[str, dict[int, SyntaxFault]]:
    """The same of a text, by the first row of each cell and the number of its rows; faults by the index of the cell."""
    if _fault(text) is None:
        return text, {}
    lines = split_lines(text)
    faults: dict[int, SyntaxFault] = {}
    for index, (first, rows) in enumerate(cells):
        own = lines[first - 1 : first - 1 + rows]
        fault = _fault("\n" * (first - 1) + "".join(own))
        if fault is not None:
            faults[index] = fault
            lines[first - 1 : first - 1 + rows] = [f"# {line}" if line.strip() else line for line in own]
    left = "".join(lines)
    return (left, faults) if faults and _fault(left) is None else (text, {})


def _fault(text: str) -> SyntaxFault | None:
    """What is wrong with a text that neither the running Python nor libcst takes for Python."""
    try:
        parsed(text)
    except SyntaxFault:
        try:
            cut(text)
        except SyntaxFault as fault:
            return fault
    return None
