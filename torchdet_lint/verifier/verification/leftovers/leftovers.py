"""What two runs left behind -> what of it differs: files, standard output, exit status."""

from __future__ import annotations

import collections
import contextlib
import filecmp
import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.verifier.verification.leftovers import databases, pickled
from torchdet_lint.verifier.verification.leftovers.contents import difference, is_volatile
from torchdet_lint.verifier.verification.leftovers.masking import BARE, masked, masked_name
from torchdet_lint.verifier.verification.outcome import Left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from torchdet_lint.verifier.patching.outputs import Printed

OUTPUT, STATUS = "standard output", "exit status"
_MOST = 20
_WHOLE = re.compile(r"(?<![\w.])\d+(?!\w|\.\d)")
_HINT = (
    "only bare numbers differ there: where they tell a time, print its name or unit beside it, and it does not count"
)


_LOGGED = re.compile(r"(?:\[rank\d+\]:\s*)?\[?[DIWEF]\d{4} \d\d:\d\d:\d\d")
"""Lines of the loggers of torch and of the C++ below it: of ports, threads and other matters of the machine."""
_OF_TORCH = re.compile(r".*[/\\]torch[/\\].*\.py:\d+: \w*Warning: ")
_UNFINISHED = re.compile(r"(?<!\d)\d?\d%\||\x1b\[A")
"""A progress bar that something broke off, or that stands above another: how often it is drawn is a matter of time."""
_MOST_ERRORS = 100_000


class Remains(NamedTuple):
    """What one run left: its files by name, the file with its standard output, how it ended; `processes` are the
    numbers of its processes, which are others in every run; `errors` is the file with its standard error; `printed`
    says which of them begin where in standard output, behind the program itself.
    """

    files: Mapping[str, Path]
    output: Path
    status: int
    processes: frozenset[str] = frozenset()
    errors: Path | None = None
    printed: tuple[Printed, ...] = ()


class _Line(NamedTuple):
    """A line of standard output, masked, and its number from 1."""

    number: int
    text: str


_END = _Line(0, "")
_Pair = tuple[_Line, _Line]


class Leftovers(NamedTuple):
    """What differs, and how many files and lines with a number in them were compared: a file that differs and is of a
    format that is not understood is none of them. `masked_files` of the files, and `masked_lines` of all lines, are
    equal once timings, dates and the like are left out, and not before. `errors` is what differs first in standard
    error, which counts for nothing.
    """

    differing: tuple[Left, ...] = ()
    files: int = 0
    lines: int = 0
    masked_files: int = 0
    masked_lines: int = 0
    errors: str = ""

    @property
    def certain(self) -> tuple[Left, ...]:
        """The differences that are no matter of the clock, of names or of formats that are not understood."""
        return tuple(left for left in self.differing if left.certain)


def compare_left(a: Remains, b: Remains, *, ordered: bool, times: frozenset[int] = frozenset()) -> Leftovers:
    """Compare what two runs left. Where not `ordered`, several processes or threads may have written to standard
    output, and the order of the lines says nothing. Bare numbers in its lines `times`, from 1 on, are times.
    """
    found = []
    if a.status != b.status:
        found.append(Left(STATUS, f"{a.status} | {b.status}"))
    found += _output(a, b, ordered=ordered, times=times)
    pairs = _paired(a.files, b.files)
    files = [_file(*pair) for pair in pairs]
    found += sorted(filter(None, (left for left, _ in files)), key=lambda left: not left.certain)
    compared = sum(
        1 for (_, one, two), (left, _) in zip(pairs, files, strict=True) if one and two and (not left or left.certain)
    )
    with_number = sum(1 for line in _numbered(a, times) if re.search(r"\d", line.text))
    but_for_times = sum(alike for _, alike in files), _masked_lines(a, b, ordered=ordered)
    return Leftovers(tuple(found[:_MOST]), compared, with_number, *but_for_times, _errors(a, b))


def _masked_lines(a: Remains, b: Remains, *, ordered: bool) -> int:
    """How many lines of standard output are equal only without timings and the like, and numbers of processes."""
    if ordered:
        unlike = ((one, two) for one, two in zip(_raw(a.output), _raw(b.output), strict=False) if one != two)
        return sum(_unnumbered(masked(one), a) == _unnumbered(masked(two), b) for one, two in unlike)
    counts = [collections.Counter(_raw(run.output)) for run in (a, b)]
    alone = ((a, counts[0] - counts[1]), (b, counts[1] - counts[0]))
    told = [collections.Counter(_unnumbered(masked(line), run) for line in lines.elements()) for run, lines in alone]
    return (told[0] & told[1]).total()


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file, masked; none where there is no file."""
    return map(masked, _raw(path))


def _raw(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as opened:
            yield from opened


def _output(a: Remains, b: Remains, *, ordered: bool, times: frozenset[int]) -> list[Left]:
    in_order = _differing(a, b, itertools.zip_longest(_numbered(a, times), _numbered(b, times), fillvalue=_END))
    first = next(in_order, None)
    if first is None:
        return []
    if ordered:
        differing: Iterator[_Pair] = itertools.chain((first,), in_order)
    else:
        differing = iter(_in_any_order(a, b))
    return _told(differing) or [Left(OUTPUT, "the same lines in another order", certain=False)]


def _told(differing: Iterator[_Pair]) -> list[Left]:
    """The lines that differ as one difference: the first of them, and the last with a number."""
    first, last, bare = "", "", True
    for one, two in differing:
        first = first or _told_first(one, two)
        if one is not _END and two is not _END:
            bare = bare and BARE.sub("", one.text) == BARE.sub("", two.text)
            if re.search(r"\d", one.text):
                last = pickled.both(one.text.strip(), two.text.strip())
    return [Left(OUTPUT, first, last="" if last in first else last, hint=_HINT if bare else "")] if first else []


def _numbered(run: Remains, times: frozenset[int] = frozenset()) -> Iterator[_Line]:
    for number, text in enumerate(lines_of(run.output), 1):
        yield _Line(number, BARE.sub("<time>", text) if number in times else text)


def _differing(a: Remains, b: Remains, pairs: Iterable[_Pair]) -> Iterator[_Pair]:
    """Those of `pairs` of lines that differ, and not by the numbers of processes alone."""
    for one, two in pairs:
        if one.text != two.text and _unnumbered(one.text, a) != _unnumbered(two.text, b):
            yield one, two


def _in_any_order(a: Remains, b: Remains) -> list[_Pair]:
    """The lines of each run that the other has not, in pairs, those of one process with those of its twin."""
    ones, twos = _without_common([*_numbered(a)], [*_numbered(b)], lambda line, _: line.text)
    ones, twos = _without_common(ones, twos, lambda line, first: _unnumbered(line.text, a if first else b))
    by_process: dict[str, tuple[list[_Line], list[_Line]]] = {}
    for side, (lines, run) in enumerate(((ones, a), (twos, b))):
        for line in lines:
            by_process.setdefault(_process_of(line, run), ([], []))[side].append(line)
    return [pair for sides in by_process.values() for pair in itertools.zip_longest(*sides, fillvalue=_END)]


def _process_of(line: _Line, run: Remains) -> str:
    """Which process below the program printed a line; empty for the program itself."""
    return next((one.name for one in reversed(run.printed) if one.begins <= line.number), "")


def _errors(a: Remains, b: Remains) -> str:
    """What differs first in standard error, whatever the order of its lines; empty where nothing does."""
    ones, twos = _without_common(_said(a), _said(b), lambda line, first: _unnumbered(line.text, a if first else b))
    return _told_first(ones[0] if ones else _END, twos[0] if twos else _END) if ones or twos else ""


def _said(run: Remains) -> list[_Line]:
    """The lines of standard error but those of torch's own warnings and of progress bars that are not at their end."""
    found: list[_Line] = []
    warned = False
    lines = _raw(run.errors) if run.errors is not None else iter(())
    for number, raw in enumerate(itertools.islice(lines, _MOST_ERRORS), 1):
        follows = warned and raw.startswith("  ")
        warned = bool(_OF_TORCH.match(raw))
        drawn = raw.rstrip().rpartition("\r")[2]
        if not (follows or warned or _LOGGED.match(raw) or _UNFINISHED.search(drawn)) and (text := masked(raw)):
            found.append(_Line(number, text))
    return found


def _told_first(one: _Line, two: _Line) -> str:
    told = pickled.both_or_end(*(end.text if end is not _END else None for end in (one, two)))
    return f"line {one.number or two.number}: {told}"


def _without_common(
    ones: list[_Line], twos: list[_Line], told: Callable[[_Line, bool], str]
) -> tuple[list[_Line], list[_Line]]:
    """Two lists of lines without those that both have, as `told` says of a line and whether it is of the first."""
    in_both = collections.Counter(told(one, True) for one in ones) & collections.Counter(
        told(two, False) for two in twos
    )
    left = []
    for lines, first in ((ones, True), (twos, False)):
        counts = in_both.copy()
        left.append([line for line in lines if not _taken(counts, told(line, first))])
    return left[0], left[1]


def _taken(counts: collections.Counter[str], text: str) -> bool:
    counts[text] -= 1
    return counts[text] >= 0


def _unnumbered(text: str, run: Remains) -> str:
    return _WHOLE.sub(lambda found: "<process>" if found[0] in run.processes else found[0], text)


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


def _file(name: str, one: Path | None, two: Path | None) -> tuple[Left | None, bool]:
    """What differs in a file, and whether its contents are equal, though not byte by byte."""
    if one is None or two is None:
        return Left(name, f"run {'B' if one is None else 'A'} alone wrote it"), False
    if filecmp.cmp(one, two, shallow=False):
        return None, False
    certain = not is_volatile(one)
    if databases.is_database(one) and databases.is_database(two):
        certain = False
        with contextlib.suppress(ValueError):
            tables = databases.difference(one, two)
            return (Left(name, tables.told, certain=tables.certain), False) if tables is not None else (None, True)
    differs = difference(one, two)
    return (Left(name, differs, certain=certain), False) if differs else (None, True)
