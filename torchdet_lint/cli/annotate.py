"""Findings -> files in which a `# noqa` comment silences each of them."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.engine.filtering import UNUSED
from torchdet_lint.engine.linter import SYNTAX
from torchdet_lint.engine.repair import Change
from torchdet_lint.finding import Edit, Fix, Location
from torchdet_lint.fixes import patch
from torchdet_lint.reading import read
from torchdet_lint.source import suppress
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.lines import comments, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchdet_lint.finding import Finding
    from torchdet_lint.source.decoding import Source

_Place = tuple["int | None", int]


class Annotated(NamedTuple):
    """The files with their new comments, by path, and the findings that no comment can silence, or that stand where
    none can be written."""

    changes: dict[str, Change]
    left: tuple[Finding, ...]


def annotate(findings: Iterable[Finding], names: Mapping[str, str], reason: str = "") -> Annotated:
    """Add the codes of `findings` to comments on their rows, with `reason` behind them; nothing is written.

    `names` of rules have codes.

    Raises `OSError` for a file that cannot be read any more.
    """
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.filename, []).append(finding)
    changes: dict[str, Change] = {}
    left: list[Finding] = []
    for path, mine in sorted(by_file.items()):
        data = read(path)
        wanted: dict[_Place, list[Finding]] = {}
        for finding in mine:
            if finding.code in (SYNTAX, UNUSED):
                left.append(finding)
            else:
                wanted.setdefault((finding.cell, finding.noqa_row), []).append(finding)
        new, refused = _annotated(path, data, wanted, names, reason)
        left += [finding for place in refused for finding in wanted.pop(place)]
        if new != data:
            codes = Counter((finding.code, finding.name) for found in wanted.values() for finding in found)
            changes[path] = Change(data, new, codes)
    return Annotated(changes, tuple(sorted(left, key=lambda finding: finding.sort_key)))


def _annotated(
    path: str, data: bytes, wanted: Mapping[_Place, list[Finding]], names: Mapping[str, str], reason: str
) -> tuple[bytes, list[_Place]]:
    """The new content of one file, and the places where no comment can stand."""
    try:
        source = decode(path, data)
    except SourceFault:
        return data, list(wanted)
    known = _Comments(source, names)
    places = list(wanted)
    while places:
        codes = [sorted({finding.code for finding in wanted[place]}) for place in places]
        fixes = [known.fix(place, told, reason) for place, told in zip(places, codes, strict=True)]
        patched = patch.apply(source, fixes)
        made = {places[index] for index in patched.applied}
        silent = made & _silenced(path, patched.data, places, codes, names) if made else set()
        if len(silent) == len(places):
            return patched.data, [place for place in wanted if place not in silent]
        places = [place for place in places if place in silent]
    return data, list(wanted)


class _Comments:
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

    def fix(self, place: _Place, codes: list[str], reason: str) -> Fix:
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


def _silenced(
    path: str, data: bytes, places: list[_Place], codes: list[list[str]], names: Mapping[str, str]
) -> set[_Place]:
    """Those of `places` in whose row a comment names the codes: it may have come to stand within a string."""
    source = decode(path, data)
    known = _Comments(source, names).entries
    found = set()
    for place, told in zip(places, codes, strict=True):
        entry = known.get(source.row(*place))
        if entry is not None and set(told) <= set(entry.codes):
            found.add(place)
    return found
