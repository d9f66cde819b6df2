"""Comments -> what they suppress: `# noqa`, `# noqa: CODE`, `# torchdet: noqa: CODE`, `# torchdet: skip-file`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.source.lines import comments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NOQA = re.compile(
    r"#\s*noqa(?P<codes>\s*:\s*(?P<list>[A-Za-z]+[0-9]+(?:(?:\s*,\s*|\s+)[A-Za-z]+[0-9]+\b)*))?(?![\w-])", re.IGNORECASE
)
_SKIP = re.compile(r"#\s*torchdet:\s*skip-file\b(?!\s*:)", re.IGNORECASE)
_FILE = re.compile(
    r"#\s*torchdet:\s*(?:noqa|skip-file)\s*:\s*(?P<list>[A-Za-z]+[0-9]+(?:(?:\s*,\s*|\s+)[A-Za-z]+[0-9]+\b)*)",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z]+[0-9]+")
_NEWLINE = re.compile(r"\r\n|\r|\n")


class Suppression(msgspec.Struct, frozen=True, array_like=True):
    """A `# noqa` comment: its row in the text, the columns `[column, end)` that go when it is taken out, its codes in
    upper case (none: everything), the column where the comment itself begins, and whether it is for the whole file."""

    row: int
    column: int
    end: int
    codes: tuple[str, ...] = ()
    begin: int = 0
    file: bool = False

    def hits(self, code: str, rows: Rows) -> str | None:
        """What silences a finding of `code`: one of the codes, "" for all, or `None`.

        A bare `# noqa` counts on the first and the last row only: between them it speaks to another linter.
        """
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


def parse(text: str) -> Suppressions:
    """The suppression comments of `text`, in order; a `# noqa` inside a string is none."""
    if not (_NOQA.search(text) or _SKIP.search(text) or _FILE.search(text)):
        return Suppressions(False, ())
    entries: list[Suppression] = []
    row, start, at = 1, 0, 0
    for offset, comment in comments(text):
        if _SKIP.match(comment):
            return Suppressions(True, ())
        whole = _FILE.match(comment)
        for match in [whole] if whole is not None else _NOQA.finditer(comment):
            for newline in _NEWLINE.finditer(text, at, offset):
                row, start = row + 1, newline.end()
            at = offset
            begin = offset - start + match.start()
            before = text[start : start + begin]
            tail = comment.find("#", match.end())
            last = offset - start + (len(comment.rstrip()) if tail < 0 else tail)
            column = begin if tail >= 0 else len(before.rstrip(" \t"))
            codes = tuple(code.upper() for code in _CODE.findall(match["list"] or ""))
            entries.append(Suppression(row, column + 1, last + 1, codes, begin + 1, whole is not None))
    return Suppressions(False, tuple(entries))


def split(
    findings: Iterable[tuple[str, Rows]], entries: Sequence[Suppression]
) -> tuple[list[bool], list[frozenset[str]]]:
    """Whether each finding (code and rows) stays, and for each entry the codes that silenced something."""
    kept: list[bool] = []
    used: list[set[str]] = [set() for _ in entries]
    for code, rows in findings:
        stays = True
        for index, entry in enumerate(entries):
            hit = entry.hits(code, rows)
            if hit is not None:
                used[index].add(hit)
                stays = False
        kept.append(stays)
    return kept, [frozenset(codes) for codes in used]
