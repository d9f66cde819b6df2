"""The text of a file and its fixes -> the fixed text, and the patch that says the same to `git apply`."""

from __future__ import annotations

import bisect
import difflib
import itertools
import operator
import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.fixes.layout import line_end
from torchdet_lint.module.cells import legible
from torchdet_lint.prefilter.chains import too_long
from torchdet_lint.prefilter.skeleton import SyntaxFault, parsed
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.lines import comments, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.finding import Fix, Location
    from torchdet_lint.source.decoding import Source

_RANKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:from|import)\b",
        r".*CUBLAS_WORKSPACE_CONFIG",
        r"(?:\w*random\w*\.)?seed\(",
        r"[\w.]*random\.seed\(",
        r"[\w.]*(?:manual_seed|seed\w*)\(",
        r".*use_deterministic_algorithms",
        r"\w+\s*=",
    )
)


_PLACE = operator.itemgetter(1, 2, 3)


class Span(NamedTuple):
    """`text[start:end]` of a cell (None: of the file) becomes `content`."""

    cell: int | None
    start: int
    end: int
    content: str


class Patched(NamedTuple):
    """A file after its fixes: its bytes, and by index which fixes are in, which must wait for the next round because
    they touch what another one changed, and which cannot be made, with the reason."""

    data: bytes
    applied: tuple[int, ...]
    waiting: tuple[int, ...]
    refused: dict[int, str]


def apply(source: Source, fixes: Sequence[Fix]) -> Patched:
    """Make as many of `fixes` at once as can be, whole fixes only, the earlier before the later."""
    if not source.faithful:
        reason = f"{source.encoding} would write other parts of the file with other bytes"
        return Patched(b"", (), (), dict.fromkeys(range(len(fixes)), reason))
    texts = _texts(source)
    starts = {cell: list(itertools.accumulate(map(len, split_lines(text)), initial=0)) for cell, text in texts.items()}
    placed: dict[int | None, list[Span]] = {}
    chosen: list[int] = []
    spans: list[list[Span]] = []
    waiting: list[int] = []
    refused: dict[int, str] = {}
    for index, fix in enumerate(fixes):
        mine = _spans(fix, texts, starts)
        if not mine or _overlap_inside(mine):
            refused[index] = "its edits do not fit the file"
            spans.append([])
            continue
        spans.append(mine)
        if any(_conflicts(new, placed.get(new.cell, ())) for new in mine):
            waiting.append(index)
        else:
            chosen.append(index)
            for new in mine:
                here = placed.setdefault(new.cell, [])
                at = bisect.bisect_left(here, new[1:], key=_PLACE)
                if here[at : at + 1] != [new]:
                    here.insert(at, new)
    data, fault = _tried(source, texts, [spans[index] for index in chosen])
    if fault:
        tried, chosen = chosen, []
        for index in tried:
            _, fault = _tried(source, texts, [spans[other] for other in (*chosen, index)])
            if not fault:
                chosen.append(index)
            elif chosen and not _tried(source, texts, [spans[index]])[1]:
                # Two that break one line anew: the later one fits what the earlier one makes.
                waiting.append(index)
            else:
                refused[index] = fault
        data = _written(source, texts, [spans[index] for index in chosen])
    return Patched(data, tuple(chosen), tuple(waiting), refused)


def _texts(source: Source) -> dict[int | None, str]:
    return {cell.number: cell.text for cell in source.cells} if source.cells else {None: source.text}


def _conflicts(new: Span, placed: Sequence[Span]) -> bool:
    """Whether `new` conflicts with one of the edits of a text that are made already, which are in order."""
    at = bisect.bisect_left(placed, new[1:], key=_PLACE)
    for other in itertools.islice(placed, at, None):
        if other.start > new.end:
            break
        if _conflict(new, other):
            return True
    for index in range(at - 1, -1, -1):
        if placed[index].end < new.start:
            break
        if _conflict(new, placed[index]):
            return True
    return False


def _spans(fix: Fix, texts: dict[int | None, str], starts: dict[int | None, list[int]]) -> list[Span]:
    """The edits of `fix` as pieces of the texts; empty where one of them does not fit."""
    found = []
    for edit in fix.edits:
        text = texts.get(edit.cell)
        if text is None:
            return []
        rows = starts[edit.cell]
        start, end = _offset(text, rows, edit.location), _offset(text, rows, edit.end_location)
        if start is None or end is None or end < start:
            return []
        found.append(Span(edit.cell, start, end, edit.content))
    return found


def _offset(text: str, starts: Sequence[int], place: Location) -> int | None:
    """Where a place is in `text`, whose rows begin at `starts`; None where there is no such place."""
    rows = len(starts) - 1
    if place.row > rows:
        return len(text) if place.row == rows + 1 and place.column == 1 else None
    at = starts[place.row - 1] + place.column - 1
    return at if at <= starts[place.row] else None


def _conflict(one: Span, other: Span) -> bool:
    """Whether two edits of different fixes cannot both be made: they share text, and are not the same edit."""
    if one == other or one.cell != other.cell:
        return False
    if one.start == one.end and other.start == other.end:
        return False
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end


def _overlap_inside(spans: Sequence[Span]) -> bool:
    return any(
        one is not other and one.cell == other.cell and one.start < other.end and other.start < one.end
        for place, one in enumerate(spans)
        for other in spans[place + 1 :]
    )


def _written(source: Source, texts: dict[int | None, str], chosen: Iterable[Sequence[Span]]) -> bytes:
    by_cell: dict[int | None, list[Span]] = {}
    for span in dict.fromkeys(span for spans in chosen for span in spans):
        by_cell.setdefault(span.cell, []).append(span)
    new = {cell: _edited(texts[cell], spans) for cell, spans in by_cell.items()}
    if source.cells:
        return source.with_cells({cell: text for cell, text in new.items() if cell is not None})
    return source.encoded(new.get(None, source.text))


def _edited(text: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, content in _merged(text, spans):
        parts += [text[at:start], content]
        at = end
    return "".join([*parts, text[at:]])


def _merged(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int, str]]:
    """The spans in order, those that insert at one place as one."""
    places: dict[tuple[int, int], list[str]] = {}
    for span in spans:
        places.setdefault((span.start, span.end), []).append(span.content)
    for (start, end), contents in sorted(places.items()):
        whole_lines = start == 0 or text[start - 1] in "\r\n"
        if len(contents) > 1 and whole_lines and all(content.endswith(("\n", "\r")) for content in contents):
            yield start, end, _joined(contents)
        elif len(contents) > 1 and all(content.startswith(("\n", "\r")) for content in contents):
            yield start, end, "".join(sorted(contents, key=_order))
        else:
            yield start, end, "".join(contents)


def _joined(contents: Sequence[str]) -> str:
    """Blocks of lines one after the other, with as many blank lines between two as the one that wants more."""
    blocks = []
    for content in sorted(contents, key=_order):
        lines = split_lines(content)
        blank = [not line.strip() for line in lines]
        first = blank.index(False) if False in blank else len(lines)
        last = len(lines) - (blank[::-1].index(False) if False in blank else 0)
        blocks.append((lines[:first], lines[first:last], lines[last:], _rank(content)))
    joined: list[str] = list(blocks[0][0])
    for place, (_, body, below, rank) in enumerate(blocks):
        joined += body
        if place + 1 < len(blocks):
            above, after, _, following = blocks[place + 1]
            if rank == following == 0:
                together = import_key(body[-1])[0] == import_key(after[0])[0]
                below = below if together or above or below else [line_end(body[-1])]
            else:
                together = 0 < rank < len(_RANKS) - 1 and 0 < following < len(_RANKS) - 1
            apart = above if len(above) > len(below) else below
            if rank == 0 < following and not apart and not body[-1][:1].isspace():
                apart = [line_end(body[-1])]
            joined += [] if together else apart
    return "".join([*joined, *blocks[-1][2]])


def _rank(content: str) -> int:
    """What a block of lines is, in the order in which such blocks follow each other."""
    text = content.lstrip()
    return next((place for place, pattern in enumerate(_RANKS) if pattern.match(text)), len(_RANKS))


def _order(content: str) -> tuple[int, tuple[int, bool, str]]:
    rank = _rank(content)
    return rank, import_key(content.strip()) if rank == 0 else (0, False, "")


def import_key(statement: str) -> tuple[int, bool, str]:
    """The order of imports in a sorted file: section, plain imports first, module."""
    words = statement.split()
    module = words[1].rstrip(",;")
    root = module.partition(".")[0]
    section = 4 if module.startswith(".") else 1 if root in sys.stdlib_module_names else 2
    return section, words[0] == "from", module.lower()


def _tried(source: Source, texts: dict[int | None, str], chosen: Sequence[Sequence[Span]]) -> tuple[bytes, str]:
    """The bytes of the file after the edits `chosen`, and why they must not take its place, as `_fault` has it."""
    try:
        data = _written(source, texts, chosen)
    except UnicodeError:
        return b"", "the result cannot be written in the encoding of the file"
    return data, _fault(source, data, texts, chosen)


def _fault(source: Source, data: bytes, texts: dict[int | None, str], chosen: Sequence[Sequence[Span]]) -> str:
    """Why `data` must not take the place of `source`; empty where it may."""
    try:
        new = decode(source.path, data)
    except SourceFault:
        return "the result could not be read"
    (was, broken), (becomes, still) = legible(source), legible(new)
    if len(still) > len(broken) or not _still_parses(was.text, becomes.text):
        return "the result would not parse"
    lost = Counter(comment for _, comment in comments(source.text))
    lost.subtract(comment for _, comment in comments(new.text))
    told: dict[int | None, list[tuple[int, str]]] = {}
    for span in dict.fromkeys(span for spans in chosen for span in spans):
        part = texts[span.cell][span.start : span.end]
        gone = part.strip()
        if gone.startswith("#") and not set(gone) & set("\r\n"):
            # Taking a comment out is what this edit is for, or the end of one.
            lost[gone] -= 1
            if span.cell not in told:
                told[span.cell] = list(comments(texts[span.cell]))
            start = span.start + len(part) - len(part.lstrip())
            at = bisect.bisect_right(told[span.cell], start, key=operator.itemgetter(0)) - 1
            whole = told[span.cell][at][1] if at >= 0 else gone
            if whole != gone and gone in whole:
                lost[whole] -= 1
    dropped = sorted(comment for comment, number in lost.items() if number > 0)
    return f"it would drop the comment `{dropped[0]}`" if dropped else ""


def _still_parses(old: str, new: str) -> bool:
    """Whether `new` is Python to whom `old` was: the running interpreter, else libcst, which knows newer syntax."""
    if _is_python(new):
        return True
    if too_long(new) or _is_python(old):
        return False
    import libcst as cst

    try:
        cst.parse_module(new)
    except Exception:  # libcst has several ways to say no
        return False
    return True


def _is_python(text: str) -> bool:
    try:
        parsed(text)
    except SyntaxFault:
        return False
    return True


# ---------------------------------------------------------------------------------------------------------- the patch


def diff(path: str, old: bytes, new: bytes) -> bytes:
    """A unified diff that `git apply` takes, run where this program was run. Empty where nothing changed."""
    if old == new:
        return b""
    name = _patch_name(path)
    parts: list[bytes] = []
    before, after = _git_lines(old), _git_lines(new)
    headers = (_quoted(f"a/{name}"), _quoted(f"b/{name}"))
    for line in difflib.diff_bytes(difflib.unified_diff, before, after, *headers, lineterm=b"\n"):
        if line.endswith(b"\n"):
            parts.append(line)
        else:
            parts.append(line + b"\n\\ No newline at end of file\n")
    return b"".join(parts)


def _git_lines(data: bytes) -> list[bytes]:
    """Lines as git counts them: nothing but a newline ends one."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _patch_name(path: str) -> str:
    relative = os.path.relpath(path)
    name = os.path.abspath(path) if relative.startswith(os.pardir) else relative
    return name.replace(os.sep, "/").lstrip("/")


def _quoted(name: str) -> bytes:
    """A file name as git writes it in a patch."""
    raw = os.fsencode(name)
    if not any(byte < 32 or byte > 126 or byte in b'"\\' for byte in raw):
        return raw + (b"\t" if b" " in raw else b"")
    special = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}
    return (
        b'"'
        + b"".join(special.get(byte, b"\\%03o" % byte if byte < 32 or byte > 126 else bytes([byte])) for byte in raw)
        + b'"'
    )
