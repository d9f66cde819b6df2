"""The bytes of a file -> its text, whatever encoding it declares; and changed text back into bytes."""

from __future__ import annotations

import bisect
import codecs
import json
import operator
import re

import msgspec

from torchdet_lint.regex import lazy
from torchdet_lint.source.notebooks import Cell, code_cells, rewritten

_first_row = operator.attrgetter("first_row")
_number = operator.attrgetter("number")
_COOKIE = lazy(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


class SourceFault(Exception):
    """A file whose bytes are no Python text; `row` and `column` count from 1."""

    def __init__(self, row: int, column: int, reason: str) -> None:
        super().__init__(f"{row}:{column}: {reason}")
        self.row = row
        self.column = column
        self.reason = reason


class Source(msgspec.Struct, frozen=True):
    """One file as text. `text` keeps its line ends; for a notebook it is the code cells one after the other.

    `raw` is the notebook's JSON, empty for a Python file. `path` is what the user is shown. A file that is not
    `faithful` has bytes that its encoding would write another way. Of the cells that are `illegible`, by number, the
    text has comments, for they are not Python.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    cells: tuple[Cell, ...] = ()
    raw: str = ""
    faithful: bool = True
    illegible: frozenset[int] = frozenset()

    def place(self, row: int) -> tuple[int | None, int]:
        """Row of `text` -> cell number and row inside it; `(None, row)` for a Python file."""
        found = self._cell_at(row)
        return (None, row) if found is None else (found.number, row - found.first_row + 1)

    def _cell_at(self, row: int) -> Cell | None:
        at = bisect.bisect_right(self.cells, row, key=_first_row)
        return self.cells[at - 1] if at else None

    def legible_row(self, row: int) -> int:
        """`row`, or the first row of the next cell that is Python where it is one of a cell that is not."""
        if not self.illegible:
            return row
        at = bisect.bisect_right(self.cells, row, key=_first_row) - 1
        following = (cell.first_row for cell in self.cells[at:] if cell.number not in self.illegible)
        return max(row, next(following, row))

    def shift(self, row: int) -> int:
        """How many characters stand before the first one of a row of `text`: the indentation of its cell."""
        found = self._cell_at(row)
        return len(found.indent) if found is not None else 0

    def row(self, cell: int | None, row: int) -> int:
        """The inverse of `place`."""
        found = self.cell(cell)
        return row if found is None else found.first_row + row - 1

    def cell(self, number: int | None) -> Cell | None:
        """The code cell of that number."""
        at = bisect.bisect_left(self.cells, number, key=_number) if number is not None else len(self.cells)
        return self.cells[at] if at < len(self.cells) and self.cells[at].number == number else None

    def encoded(self, text: str) -> bytes:
        """The file's bytes with `text` in place of its text; a notebook keeps every line that did not change.

        For a notebook `text` must hold as many cells, each marked off as `joined` does; see `with_cells`.
        """
        if self.cells:
            raise ValueError("the text of a notebook is written cell by cell: see `with_cells`")
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    def with_cells(self, texts: dict[int, str]) -> bytes:
        """The notebook's bytes with the code of the cells `texts` (by number) replaced."""
        raw = self.raw
        for cell in reversed(self.cells):
            new = texts.get(cell.number)
            if new is not None and new != cell.text:
                raw = raw[: cell.start] + rewritten(raw[cell.start : cell.end], cell.text, new) + raw[cell.end :]
        return (codecs.BOM_UTF8 if self.bom else b"") + raw.encode(self.encoding)


def decode(path: str, data: bytes) -> Source:
    """Read `data` as the file `path`. Raises `SourceFault` for what is no text, or no notebook."""
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceFault(1, 1, "the file is UTF-16; Python source is UTF-8 or declares another encoding")
    notebook = path.endswith(".ipynb")
    encoding = "utf-8" if notebook else _declared(body, bom)
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        row = body.count(b"\n", 0, error.start) + 1
        column = error.start - (body.rfind(b"\n", 0, error.start) + 1) + 1
        raise SourceFault(
            row, column, f"byte 0x{body[error.start]:02x} is not {encoding}; declare the encoding"
        ) from error
    except (LookupError, UnicodeError, ValueError) as error:
        raise SourceFault(1, 1, f"unknown encoding {encoding!r}") from error
    if notebook:
        return _notebook(path, text, bom)
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise SourceFault(row, text.index("\0") - (text.rfind("\n", 0, text.index("\0")) + 1) + 1, "NUL byte in source")
    return Source(path, text, encoding, bom, faithful=encoding == "utf-8" or _is_faithful(text, encoding, body))


def _is_faithful(text: str, encoding: str, body: bytes) -> bool:
    """Whether the encoding writes `text` as it stands: some have several ways to write a character."""
    try:
        return text.encode(encoding) == body
    except (UnicodeError, ValueError):
        return False


def _declared(body: bytes, bom: bool) -> str:
    """The encoding of PEP 263: a comment in one of the first two lines, the first of them blank or a comment."""
    for line in re.split(rb"\r\n|\r|\n", body, maxsplit=2)[:2]:
        match = _COOKIE.match(line)
        if match is not None:
            name = match[1].decode("ascii", "replace")
            try:
                codec = codecs.lookup(name)
            except LookupError as error:
                raise SourceFault(1, 1, f"unknown encoding {name!r}") from error
            if not codec._is_text_encoding:
                raise SourceFault(1, 1, f"{name!r} is not a text encoding")
            if bom and codec.name == "utf-8-sig":
                return "utf-8"
            if bom and codec.name != "utf-8":
                raise SourceFault(1, 1, f"the file starts with a UTF-8 mark and declares {name!r}")
            return codec.name
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
    return "utf-8"


def _notebook(path: str, raw: str, bom: bool) -> Source:
    try:
        text, cells = code_cells(raw)
    except RecursionError as error:
        raise SourceFault(1, 1, "the file cannot be read: its JSON is nested too deeply") from error
    except json.JSONDecodeError as error:
        told = "is not a notebook of format 4" if _is_json(raw) else "is not valid JSON"
        raise SourceFault(error.lineno, error.colno, f"the file {told}: {error.msg}") from error
    return Source(path, text, "utf-8", bom, cells, raw)


def _is_json(raw: str) -> bool:
    try:
        json.loads(raw, parse_int=float)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True
