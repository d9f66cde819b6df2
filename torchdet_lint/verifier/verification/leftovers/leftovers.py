"""What two runs left behind -> what of it differs: files, standard output, exit status."""

from __future__ import annotations

import collections
import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.verifier.verification.leftovers.contents import VOLATILE, difference, lines
from torchdet_lint.verifier.verification.leftovers.masking import masked, masked_name
from torchdet_lint.verifier.verification.outcome import Left

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

OUTPUT, STATUS = "standard output", "exit status"
_MOST = 20
_BARE = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_HINT = (
    "only bare numbers differ there: where they tell a time, print its name or unit beside it, and it does not count"
)


class Remains(NamedTuple):
    """What one run left: its files by name, the file with its standard output, how it ended."""

    files: Mapping[str, Path]
    output: Path
    status: int


class Leftovers(NamedTuple):
    """What differs, and how many files and lines with a number in them were compared."""

    differing: tuple[Left, ...] = ()
    files: int = 0
    lines: int = 0

    @property
    def certain(self) -> tuple[Left, ...]:
        """The differences that are no matter of the clock, of names or of formats that are not understood."""
        return tuple(left for left in self.differing if left.certain)


def compare_left(a: Remains, b: Remains, *, ordered: bool) -> Leftovers:
    """Compare what two runs left. Where not `ordered`, several processes or threads may have written to standard
    output, and the order of the lines says nothing.
    """
    found = []
    if a.status != b.status:
        found.append(Left(STATUS, f"{a.status} | {b.status}"))
    found += _output(a.output, b.output, ordered=ordered)
    pairs = _paired(a.files, b.files)
    found += [left for name, one, two in pairs if (left := _file(name, one, two)) is not None]
    with_number = sum(1 for line in _read(a.output) if re.search(r"\d", line))
    return Leftovers(tuple(found[:_MOST]), sum(1 for _, one, two in pairs if one and two), with_number)


def _read(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as opened:
            yield from (masked(line) for line in opened)


def _output(a: Path, b: Path, *, ordered: bool) -> list[Left]:
    first = lines(_read(a), _read(b))
    if not first:
        return []
    if not ordered and collections.Counter(_read(a)) == collections.Counter(_read(b)):
        return [Left(OUTPUT, "the same lines in another order", certain=False)]
    last, bare = "", True
    for one, two in zip(_read(a), _read(b), strict=False):
        if one != two:
            bare = bare and bool(_BARE.fullmatch(one.strip()) and _BARE.fullmatch(two.strip()))
            if re.search(r"\d", one):
                last = f"{one.strip()[:60]!r} | {two.strip()[:60]!r}"
    return [Left(OUTPUT, first, last="" if last in first else last, hint=_HINT if bare else "")]


def _paired(a: Mapping[str, Path], b: Mapping[str, Path]) -> list[tuple[str, Path | None, Path | None]]:
    """The files of both runs that have one name, dates and times in it left out; else each alone."""
    named: dict[str, tuple[list[str], list[str]]] = {}
    for side, files in enumerate((a, b)):
        for name in sorted(files):
            named.setdefault(name if name in a and name in b else masked_name(name), ([], []))[side].append(name)
    pairs: list[tuple[str, Path | None, Path | None]] = []
    for ones, twos in named.values():
        for number in range(max(len(ones), len(twos))):
            one = ones[number] if number < len(ones) else None
            two = twos[number] if number < len(twos) else None
            pairs.append((one or two or "", a[one] if one else None, b[two] if two else None))
    return sorted(pairs, key=lambda pair: pair[0])


def _file(name: str, one: Path | None, two: Path | None) -> Left | None:
    if one is None or two is None:
        return Left(name, f"run {'B' if one is None else 'A'} alone wrote it")
    differs = difference(one, two)
    return Left(name, differs, certain=one.suffix.lower() not in VOLATILE) if differs else None
