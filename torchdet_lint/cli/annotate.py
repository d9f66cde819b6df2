"""Findings -> files in which a `# noqa` comment silences each of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.engine.filtering import UNUSED
from torchdet_lint.engine.linter import SYNTAX
from torchdet_lint.engine.repair import Change
from torchdet_lint.fixes import patch
from torchdet_lint.fixes.suppression import Comments, Place
from torchdet_lint.reading import read
from torchdet_lint.source.decoding import SourceFault, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchdet_lint.finding import Finding


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
        wanted: dict[Place, list[Finding]] = {}
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
    path: str, data: bytes, wanted: Mapping[Place, list[Finding]], names: Mapping[str, str], reason: str
) -> tuple[bytes, list[Place]]:
    """The new content of one file, and the places where no comment can stand."""
    try:
        source = decode(path, data)
    except SourceFault:
        return data, list(wanted)
    known = Comments(source, names)
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


def _silenced(
    path: str, data: bytes, places: list[Place], codes: list[list[str]], names: Mapping[str, str]
) -> set[Place]:
    """Those of `places` in whose row a comment names the codes: it may have come to stand within a string."""
    source = decode(path, data)
    known = Comments(source, names).entries
    found = set()
    for place, told in zip(places, codes, strict=True):
        entry = known.get(source.row(*place))
        if entry is not None and set(told) <= set(entry.codes):
            found.add(place)
    return found
