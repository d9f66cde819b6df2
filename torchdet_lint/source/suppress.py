"""Comments -> what they suppress: `# noqa`, `# noqa: CODE`, `# torchdet: noqa: CODE`, `# torchdet: skip-file`."""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import comments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NOQA = lazy(r"#\s*noqa(?![\w-])(?P<colon>\s*:(?P<told>[^#]*))?", re.IGNORECASE)
_OURS = lazy(r"#\s*torchdet:\s*(?P<word>[\w-]*)(?P<colon>\s*:(?P<told>[^#]*))?", re.IGNORECASE)
_CODE = lazy(r"[A-Za-z]+[0-9]+(?![\w-])")
_NAME = lazy(r"[A-Za-z]+(?:-[A-Za-z0-9]+)+")
_SPEAKS_OF_US = lazy(r"\btdl|\btorchdet", re.IGNORECASE)
_NEWLINE = lazy(r"\r\n|\r|\n")


class Suppression(msgspec.Struct, frozen=True, array_like=True):
    """A `# noqa` comment: its row in the text, the columns `[column, end)` that go when it is taken out, its codes in
    upper case (none: everything), the column where the comment itself begins, and whether it is for the whole file.

    `fault` says that it has a form that means nothing, and suppresses nothing: `ours` where it is evidently meant for
    this linter, else `other`."""

    row: int
    column: int
    end: int
    codes: tuple[str, ...] = ()
    begin: int = 0
    file: bool = False
    fault: Literal["", "ours", "other"] = ""

    def hits(self, code: str, rows: Rows) -> str | None:
        """What silences a finding of `code`: one of the codes, "" for all, or `None`.

        A bare `# noqa` counts on the first and the last row only: between them it speaks to another linter.
        """
        if self.fault:
            return None
        if self.file:
            return next((known for known in self.codes if code.startswith(known)), None)
        if not self.codes:
            return "" if self.row in (rows.first, rows.noqa) else None
        if self.row != rows.noqa and not rows.first <= self.row <= rows.last:
            return None
        return next((known for known in self.codes if code.startswith(known)), None)

    def without(self, unused: Iterable[str]) -> str:
        """What takes the comment's place when the codes `unused` go."""
        gone = set(unused)
        left = [code for code in self.codes if code not in gone]
        return f"# {'torchdet: ' if self.file else ''}noqa: {', '.join(left)}" if left else ""


class Rows(NamedTuple):
    """The rows of a finding in the text: the first and last of the thing itself, and the last of its statement."""

    first: int
    last: int
    noqa: int


class Suppressions(NamedTuple):
    """What the comments of one file ask for."""

    skip: bool
    entries: tuple[Suppression, ...]


def parse(text: str, names: Mapping[str, str] | None = None) -> Suppressions:
    """The suppression comments of `text`, in order; a `# noqa` inside a string is none. `names` of rules have codes."""
    if not (_NOQA.search(text) or _OURS.search(text)):
        return Suppressions(False, ())
    entries: list[Suppression] = []
    row, start, at = 1, 0, 0
    for offset, comment in comments(text):
        whole = _OURS.match(comment)
        if whole is not None and whole["word"].lower() == "skip-file" and not whole["colon"]:
            return Suppressions(True, ())
        for match in [whole] if whole is not None else _NOQA.finditer(comment):
            for newline in _NEWLINE.finditer(text, at, offset):
                row, start = row + 1, newline.end()
            at = offset
            begin = offset - start + match.start()
            before = text[start : start + begin]
            tail = comment.find("#", match.end())
            last = offset - start + (len(comment.rstrip()) if tail < 0 else tail)
            column = begin if tail >= 0 else len(before.rstrip(" \t"))
            codes = _codes(match["told"] or "", names or {})
            fault: Literal["", "ours", "other"] = ""
            if whole is not None:
                fault = "" if codes and whole["word"].lower() in ("noqa", "skip-file") else "ours"
            elif match["colon"] and not codes:
                fault = "ours" if _SPEAKS_OF_US.search(match["told"]) else "other"
            entries.append(Suppression(row, column + 1, last + 1, codes, begin + 1, whole is not None, fault))
    return Suppressions(False, tuple(entries))


def _codes(told: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """The codes that a list begins with, in upper case; those of rules that it names. What follows is the reason."""
    found: list[str] = []
    for word in told.replace(",", " ").split():
        code, name = _CODE.match(word), _NAME.match(word)
        if code is not None:
            found.append(code[0].upper())
        elif name is not None and name[0].lower() in names:
            found.append(names[name[0].lower()])
        else:
            break
    return tuple(found)


def extended(comment: str, codes: Sequence[str], names: Mapping[str, str]) -> str:
    """The suppression `comment` with `codes` at the end of its list; it has one. `names` of rules have codes."""
    start = comment.index(":") + 1
    end = start
    for word in re.finditer(r"[^\s,]+", comment[start:]):
        code = _CODE.match(word[0]) or _NAME.match(word[0])
        if code is None or not _codes(code[0], names):
            break
        end = start + word.start() + code.end()
    known = _codes(comment[start:end], names)
    more = [code for code in codes if code not in known]
    return f"{comment[:end]}{''.join(f', {code}' for code in more)}{comment[end:]}"


def split(
    findings: Iterable[tuple[str, Rows]], entries: Sequence[Suppression]
) -> tuple[list[bool], list[frozenset[str]]]:
    """Whether each finding (code and rows) stays, and for each entry the codes that silenced something."""
    kept: list[bool] = []
    used: list[set[str]] = [set() for _ in entries]
    whole = [index for index, entry in enumerate(entries) if entry.file]
    lines = sorted((entry.row, index) for index, entry in enumerate(entries) if not entry.file)
    by_the_file: dict[str, bool] = {}

    def silenced(code: str, rows: Rows, indexes: Iterable[int]) -> bool:
        hits = [(index, hit) for index in indexes if (hit := entries[index].hits(code, rows)) is not None]
        for index, hit in hits:
            used[index].add(hit)
        return bool(hits)

    for code, rows in findings:
        if code not in by_the_file:
            by_the_file[code] = silenced(code, rows, whole)
        in_its_rows = silenced(code, rows, _near(lines, rows))
        kept.append(not in_its_rows and not by_the_file[code])
    return kept, [frozenset(codes) for codes in used]


def _near(lines: Sequence[tuple[int, int]], rows: Rows) -> set[int]:
    """The entries of `lines`, row and index in order, that stand where they may silence a finding."""
    spans = ((rows.first, rows.last), (rows.noqa, rows.noqa))
    return {
        index
        for first, last in spans
        for _, index in lines[bisect.bisect_left(lines, (first, 0)) : bisect.bisect_left(lines, (last + 1, 0))]
    }
