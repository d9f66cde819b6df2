"""The JSON of a notebook -> its code cells and the Python in them; and cells written back, the rest as it was."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines
from torchdet_lint.source.magics import without_magics

if TYPE_CHECKING:
    from collections.abc import Iterator

# Only the text of cells counts; a whole number of 5000 digits is more than `int` takes.
_DECODER = json.JSONDecoder(parse_int=float)
_WHITESPACE = lazy(r"[ \t\n\r]*")


class Cell(NamedTuple):
    """A code cell of a notebook: its number among all cells (from 1, as ruff counts), the first row it has in the
    joined text, its number of rows, the place `[start, end)` of its `source` value in the raw JSON, the text of the
    cell itself, magics and all, and the indentation that the cell has as a whole and the joined text has not."""

    number: int
    first_row: int
    rows: int
    start: int
    end: int
    text: str
    indent: str = ""


def code_cells(raw: str) -> tuple[str, tuple[Cell, ...]]:
    """The code of the notebook `raw`, one Python cell after the other, and the cells.

    Raises `json.JSONDecodeError`, or `RecursionError` for JSON that is nested too deeply.
    """
    cells: list[Cell] = []
    texts: list[str] = []
    row = 1
    for number, start, end in _places(raw) if raw.strip() else ():
        value = json.loads(raw[start:end])
        text = "".join(value) if isinstance(value, list) else value
        indent = _indentation(text)
        code = without_magics(_dedented(text, indent) if indent else text)
        lines = split_lines(code)
        if lines and not lines[-1].endswith(("\n", "\r")):
            code += "\n"
        if not lines:
            code, lines = "\n", ["\n"]
        cells.append(Cell(number, row, len(lines), start, end, text, indent))
        texts.append(code)
        row += len(lines)
    return "".join(texts), tuple(cells)


def _indentation(text: str) -> str:
    """The indentation of the first line that is not blank, which IPython takes away from every line."""
    first = next((line for line in split_lines(text) if line.strip()), "") if text[:1].isspace() else ""
    return first[: len(first) - len(first.lstrip(" \t"))]


def _dedented(text: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in split_lines(text))


def _places(raw: str) -> Iterator[tuple[int, int, int]]:
    """Number and place of the `source` value of every Python code cell."""
    start = _space(raw, 0)
    top = {key: (begin, end) for key, begin, end in _members(raw, start)}
    if _space(raw, _end(raw, start)) != len(raw):
        raise json.JSONDecodeError("Extra data", raw, _end(raw, start))
    language = _language(raw, top)
    if language not in ("", "python", "python3", "ipython", "ipython3"):
        return
    if "cells" not in top:
        older = "worksheets" in top
        advice = "it has `worksheets`, as format 3 has (`jupyter nbconvert --to notebook` converts it)"
        raise json.JSONDecodeError(advice if older else "it has no `cells`", raw, start)
    for number, (begin, _) in enumerate(_elements(raw, top["cells"][0]), start=1):
        cell = {key: (begin, end) for key, begin, end in _members(raw, begin)}
        if "source" not in cell or _DECODER.decode(raw[slice(*cell.get("cell_type", (0, 0)))] or '""') != "code":
            continue
        value = _DECODER.decode(raw[slice(*cell["source"])])
        if isinstance(value, str) or (isinstance(value, list) and all(isinstance(line, str) for line in value)):
            yield number, *cell["source"]
        else:
            raise json.JSONDecodeError("a cell's `source` must be text", raw, cell["source"][0])


def _language(raw: str, top: dict[str, tuple[int, int]]) -> str:
    metadata = _DECODER.decode(raw[slice(*top["metadata"])]) if "metadata" in top else {}
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(table) if isinstance(metadata, dict) else None
        if isinstance(found, dict) and isinstance(found.get(key), str):
            return str(found[key]).lower()
    return ""


def _space(raw: str, at: int) -> int:
    match = _WHITESPACE.match(raw, at)
    return match.end() if match else at


def _end(raw: str, at: int) -> int:
    return _DECODER.raw_decode(raw, at)[1]


def _expect(raw: str, at: int, character: str) -> int:
    at = _space(raw, at)
    if raw[at : at + 1] != character:
        raise json.JSONDecodeError(f"Expecting {character!r}", raw, at)
    return at + 1


def _members(raw: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key and place of each value of the object at `at`."""
    at = _space(raw, _expect(raw, at, "{"))
    while raw[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(raw, at)
        start = _space(raw, _expect(raw, at, ":"))
        at = _end(raw, start)
        yield str(key), start, at
        at = _space(raw, at)
        if raw[at : at + 1] == "}":
            return
        at = _space(raw, _expect(raw, at, ","))


def _elements(raw: str, at: int) -> Iterator[tuple[int, int]]:
    """The place of each element of the array at `at`."""
    at = _space(raw, _expect(raw, at, "["))
    while raw[at : at + 1] != "]":
        end = _end(raw, at)
        yield at, end
        at = _space(raw, end)
        if raw[at : at + 1] == "]":
            return
        at = _space(raw, _expect(raw, at, ","))


def rewritten(literal: str, old: str, new: str) -> str:
    """The JSON value `literal`, which spells `old`, made to spell `new`: lines that stay keep their own spelling."""
    plain = "\\u" not in literal

    def spell(line: str) -> str:
        return json.dumps(line, ensure_ascii=not plain)

    if not literal.startswith("["):
        return spell(new)
    import difflib

    places = list(_elements(literal, 0))
    spelled = [literal[start:end] for start, end in places]
    gaps = [literal[one[1] : other[0]] for one, other in itertools.pairwise(places)]
    opening, closing = (literal[: places[0][0]], literal[places[-1][1] :]) if places else ("[\n    ", "\n   ]")
    before, after = [json.loads(line) for line in spelled], split_lines(new)
    if len(before) == 1 and len(split_lines(before[0])) > 1:
        return opening + spell(new) + closing  # as sphinx-gallery writes them: all lines in one text
    gap = gaps[0] if gaps else f",{opening.rpartition('[')[2] or ' '}"
    lines: list[tuple[int, str]] = []
    for tag, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [(index, spelled[index]) for index in range(first, last)]
        else:
            kept = last - first == end - start
            lines += [(first + index if kept else -1, spell(line)) for index, line in enumerate(after[start:end])]
    text = lines[0][1] if lines else ""
    for (one, _), (other, line) in itertools.pairwise(lines):
        text += (gaps[one] if 0 <= one == other - 1 else gap) + line
    return opening + text + closing
