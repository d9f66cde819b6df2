"""Which files to read, and how: Python files in whatever encoding they declare, notebooks cell by cell."""

from __future__ import annotations

import codecs
import io
import itertools
import json
import os
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pathspec

SUFFIXES = (".py", ".pyi", ".pyw", ".ipynb")
EXCLUDED = frozenset(
    (
        ".bzr .direnv .eggs .git .git-rewrite .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv .pytest_cache "
        ".pytype .ruff_cache .svn .torchdet_cache .tox .venv .vscode __pycache__ __pypackages__ _build buck-out dist "
        "node_modules site-packages venv"
    ).split()
)

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PYTHON_CELL = re.compile(r"%%(?:capture|prun|pypy|python3?|time|timeit)\b")
_MAGIC_VALUE = re.compile(r"\s*[A-Za-z_][\w.,\s\[\]]*=\s*(?:%[A-Za-z]|!(?!=))")
_SHELL = re.compile(r"\s*(?:[!%?]|/[A-Za-z_]|[,;][A-Za-z_])")
_HELP = re.compile(r"\s*[A-Za-z_][\w.]*\?{1,2}\s*$")
# A magic by its bare name, as IPython takes it where no variable is called so and the line is no Python.
_BARE_MAGIC = re.compile(
    r"(?:(?:cat|cd|conda|cp|ll|ls|mamba|mkdir|mv|pip|rm)[ \t]+--?[A-Za-z]"
    r"|(?:autoreload|cat|cd|conda|cp|load_ext|ls|ll|mamba|matplotlib|mkdir|mv|pip|pylab|reload_ext|rm|rmdir|run)[ \t]+"
    r"(?!(?:and|as|else|for|if|in|is|not|or)\b)(?:[\w~$\"'{]|\.\.?(?:[/\\]|[ \t]*$)|/\S))"
)
_LEXEME = re.compile(
    r"(?P<comment>#[^\r\n]*)"
    r'|"""(?:\\[\s\S]|[^\\])*?"""|\'\'\'(?:\\[\s\S]|[^\\])*?\'\'\''
    r'|"(?:\\[\s\S]|[^"\\\r\n])*"|\'(?:\\[\s\S]|[^\'\\\r\n])*\''
)


class SourceFault(Exception):
    """A file whose bytes are no Python text; `row` and `column` count from 1."""

    def __init__(self, row: int, column: int, reason: str) -> None:
        super().__init__(f"{row}:{column}: {reason}")
        self.row = row
        self.column = column
        self.reason = reason


class Cell(NamedTuple):
    """A code cell of a notebook: its number among all cells (from 1, as ruff counts), the first row it has in the
    joined text, its number of rows, the place `[start, end)` of its `source` value in the raw JSON, and the text of
    the cell itself, magics and all."""

    number: int
    first_row: int
    rows: int
    start: int
    end: int
    text: str


class Source(msgspec.Struct, frozen=True):
    """One file as text. `text` keeps its line ends; for a notebook it is the code cells one after the other.

    `raw` is the notebook's JSON, empty for a Python file. `path` is what the user is shown.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    cells: tuple[Cell, ...] = ()
    raw: str = ""

    def place(self, row: int) -> tuple[int | None, int]:
        """Row of `text` -> cell number and row inside it; `(None, row)` for a Python file."""
        found: Cell | None = None
        for cell in self.cells:
            if cell.first_row > row:
                break
            found = cell
        return (None, row) if found is None else (found.number, row - found.first_row + 1)

    def row(self, cell: int | None, row: int) -> int:
        """The inverse of `place`."""
        for candidate in self.cells:
            if candidate.number == cell:
                return candidate.first_row + row - 1
        return row

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
                raw = raw[: cell.start] + _rewritten(raw[cell.start : cell.end], cell.text, new) + raw[cell.end :]
        return (codecs.BOM_UTF8 if self.bom else b"") + raw.encode(self.encoding)


def split_lines(text: str) -> list[str]:
    """The lines of `text` with their ends, cut where Python cuts them (form feeds do not end a line)."""
    return list(io.StringIO(text, newline=""))


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Offset and text of every comment in Python source."""
    for match in _LEXEME.finditer(text):
        if match.lastgroup == "comment":
            yield match.start(), match[0]


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
    return Source(path, text, encoding, bom)


def _declared(body: bytes, bom: bool) -> str:
    """The encoding of PEP 263: a comment in one of the first two lines, the first of them blank or a comment."""
    head = body[:400]
    if b"coding" not in head:
        return "utf-8"
    for line in head.split(b"\n")[:2]:
        match = _COOKIE.match(line)
        if match is not None:
            name = match[1].decode("ascii", "replace")
            try:
                codec = codecs.lookup(name)
            except LookupError as error:
                raise SourceFault(1, 1, f"unknown encoding {name!r}") from error
            if not codec._is_text_encoding:
                raise SourceFault(1, 1, f"{name!r} is not a text encoding")
            if bom and codec.name != "utf-8":
                raise SourceFault(1, 1, f"the file starts with a UTF-8 mark and declares {name!r}")
            return codec.name
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
    return "utf-8"


# ---------------------------------------------------------------------------------------------------------- notebooks


def _notebook(path: str, raw: str, bom: bool) -> Source:
    if not raw.strip():
        return Source(path, "", "utf-8", bom, (), raw)
    try:
        places = list(_code_cells(raw))
    except (json.JSONDecodeError, RecursionError) as error:
        row, column = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise SourceFault(row, column, f"the notebook is not valid JSON: {reason}") from error
    cells: list[Cell] = []
    texts: list[str] = []
    row = 1
    for number, start, end in places:
        value = json.loads(raw[start:end])
        text = "".join(value) if isinstance(value, list) else value
        code = _without_magics(text)
        lines = split_lines(code)
        if lines and not lines[-1].endswith(("\n", "\r")):
            code += "\n"
        if not lines:
            code, lines = "\n", ["\n"]
        cells.append(Cell(number, row, len(lines), start, end, text))
        texts.append(code)
        row += len(lines)
    return Source(path, "".join(texts), "utf-8", bom, tuple(cells), raw)


def _code_cells(raw: str) -> Iterator[tuple[int, int, int]]:
    """Number and place of the `source` value of every Python code cell."""
    start = _space(raw, 0)
    top = {key: (begin, end) for key, begin, end in _members(raw, start)}
    if _space(raw, _end(raw, start)) != len(raw):
        raise json.JSONDecodeError("Extra data", raw, _end(raw, start))
    language = _language(raw, top)
    if language not in ("", "python", "python3", "ipython", "ipython3"):
        return
    if "cells" not in top:
        raise json.JSONDecodeError("no `cells` (notebook format 4 is read, no older one)", raw, start)
    for number, (begin, _) in enumerate(_elements(raw, top["cells"][0]), start=1):
        cell = {key: (begin, end) for key, begin, end in _members(raw, begin)}
        if "source" not in cell or json.loads(raw[slice(*cell.get("cell_type", (0, 0)))] or '""') != "code":
            continue
        value = json.loads(raw[slice(*cell["source"])])
        if isinstance(value, str) or (isinstance(value, list) and all(isinstance(line, str) for line in value)):
            yield number, *cell["source"]
        else:
            raise json.JSONDecodeError("a cell's `source` must be text", raw, cell["source"][0])


def _language(raw: str, top: dict[str, tuple[int, int]]) -> str:
    metadata = json.loads(raw[slice(*top["metadata"])]) if "metadata" in top else {}
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(table) if isinstance(metadata, dict) else None
        if isinstance(found, dict) and isinstance(found.get(key), str):
            return str(found[key]).lower()
    return ""


_DECODER = json.JSONDecoder()
_WHITESPACE = re.compile(r"[ \t\n\r]*")


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


def _without_magics(text: str) -> str:
    """`text` with what only IPython understands turned into comments; rows stay where they are."""
    if not any(character in text for character in "%!?/,;") and _BARE_MAGIC.search(text) is None:
        return text
    lines = split_lines(text)
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].startswith("%%"):
        if not _PYTHON_CELL.match(lines[first]):
            return "".join(_commented(line) for line in lines)
        lines[first] = _commented(lines[first])
    starts = _logical_rows("".join(lines))
    going_on = False
    for index, line in enumerate(lines):
        magic = going_on or (
            index in starts
            and bool(_SHELL.match(line) or _MAGIC_VALUE.match(line) or _HELP.match(line) or _BARE_MAGIC.match(line))
        )
        going_on = magic and line.rstrip("\r\n").endswith("\\")
        if magic:
            lines[index] = _commented(line, statement=index in starts)
    return "".join(lines)


def _commented(line: str, *, statement: bool = False) -> str:
    """A comment in place of the line; an indented statement stays one, for its block may hold no other."""
    body = line.lstrip(" \t")
    if not body.strip():
        return line
    indent = line[: len(line) - len(body)]
    return f"{indent}pass  # {body}" if indent and statement else f"# {line}"


def _logical_rows(text: str) -> set[int]:
    """The rows (from 0) on which a logical line starts: those inside a bracket or a string are none."""
    starts = {0}
    depth = row = at = 0
    for match in _LEXEME.finditer(text + "\n"):
        depth, row = _scan(text[at : match.start()], depth, row, starts)
        row += match[0].count("\n")
        at = match.end()
    _scan(text[at:], depth, row, starts)
    return starts


def _scan(text: str, depth: int, row: int, starts: set[int]) -> tuple[int, int]:
    before = ""
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(depth - 1, 0)
        elif character == "\n":
            row += 1
            if depth == 0 and before != "\\":
                starts.add(row)
        before = character
    return depth, row


def _rewritten(literal: str, old: str, new: str) -> str:
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
    lines: list[tuple[int, str]] = []
    for tag, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [(index, spelled[index]) for index in range(first, last)]
        else:
            kept = last - first == end - start
            lines += [(first + index if kept else -1, spell(line)) for index, line in enumerate(after[start:end])]
    text = lines[0][1] if lines else ""
    for (one, _), (other, line) in itertools.pairwise(lines):
        text += (gaps[one] if 0 <= one == other - 1 else gaps[0] if gaps else ",\n    ") + line
    return opening + text + closing


# ---------------------------------------------------------------------------------------------------------- discovery


class File(NamedTuple):
    """A file to lint: the path shown and opened, and its size in bytes."""

    path: str
    size: int


class Exclusion(NamedTuple):
    """What is left out of a folder. `patterns` are the user's, in gitignore's language, relative to `root`;
    `defaults` says whether `EXCLUDED` names are left out too."""

    root: str = ""
    patterns: tuple[str, ...] = ()
    defaults: bool = True
    gitignore: bool = True


def discover(paths: Iterable[str], exclusion: Exclusion) -> tuple[list[File], list[str]]:
    """The files under `paths`, sorted by path and each once, and one line for every path that cannot be read.

    A file that is named is linted whatever its suffix and whatever is excluded; links to folders are not followed.
    """
    found: dict[str, File] = {}
    errors: list[str] = []
    for path in paths:
        shown = os.path.normpath(path)
        try:
            if os.path.isdir(shown):
                for file in _Walk(exclusion, errors).files(shown):
                    found.setdefault(file.path, file)
            else:
                found.setdefault(shown, File(shown, os.stat(shown).st_size))
        except (OSError, ValueError) as error:
            errors.append(f"{path}: {_reason(error)}")
    for path in sorted(found):
        try:
            os.path.abspath(path).encode()
        except UnicodeEncodeError:
            del found[path]
            errors.append(f"{path}: the path is not UTF-8 text; rename it")
    return [found[path] for path in sorted(found)], sorted(errors)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "a path cannot hold a NUL byte"


def read(path: str) -> bytes:
    """The bytes of `path`. Raises `OSError`."""
    with open(path, "rb", buffering=0) as stream:
        return stream.read()


class _Walk:
    """One walk through a folder, with the `.gitignore` files that hold on the way down."""

    def __init__(self, exclusion: Exclusion, errors: list[str]) -> None:
        self.exclusion = exclusion
        self.errors = errors
        self.excluded = _compiled(exclusion.patterns) if exclusion.patterns else None
        self.base = os.path.realpath(exclusion.root) if exclusion.patterns else ""

    def files(self, folder: str) -> Iterator[File]:
        """The files below `folder`."""
        real = os.path.realpath(folder)
        ignores = tuple(self._above(real)) if self.exclusion.gitignore else ()
        yield from self._below("" if folder == os.curdir else folder, real, ignores)

    def _below(self, shown: str, real: str, ignores: tuple[tuple[str, pathspec.GitIgnoreSpec], ...]) -> Iterator[File]:
        if self.exclusion.gitignore:
            ignores = (*ignores, *_ignore_files(real))
        try:
            with os.scandir(shown or os.curdir) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.errors.append(f"{shown or os.curdir}: {_reason(error)}")
            return
        for entry in listed:
            name = entry.name
            try:
                folder = entry.is_dir(follow_symlinks=False)
                if not folder and not (name.endswith(SUFFIXES) and entry.is_file()):
                    continue
                if self._left_out(name, f"{real}/{name}", folder, ignores):
                    continue
                path = os.path.join(shown, name)
                if folder:
                    yield from self._below(path, f"{real}/{name}", ignores)
                else:
                    yield File(path, entry.stat().st_size)
            except OSError as error:
                self.errors.append(f"{os.path.join(shown, name)}: {_reason(error)}")

    def _left_out(
        self, name: str, real: str, folder: bool, ignores: Sequence[tuple[str, pathspec.GitIgnoreSpec]]
    ) -> bool:
        if folder and self.exclusion.defaults and name in EXCLUDED:
            return True
        slash = "/" if folder else ""
        if self.excluded is not None:
            relative = os.path.relpath(real, self.base).replace(os.sep, "/")
            if self.excluded.match_file(relative + slash):
                return True
        for base, spec in reversed(ignores):
            verdict: bool | None = spec.check_file(real[len(base) + 1 :].replace(os.sep, "/") + slash).include
            if verdict is not None:
                return verdict
        return False

    def _above(self, real: str) -> Iterator[tuple[str, pathspec.GitIgnoreSpec]]:
        """The ignore files between the top of the git repository and `real`, outermost first."""
        chain = [real]
        while not os.path.exists(os.path.join(chain[-1], ".git")):
            parent = os.path.dirname(chain[-1])
            if parent == chain[-1]:
                return
            chain.append(parent)
        for folder in reversed(chain[1:]):
            yield from _ignore_files(folder)


def _ignore_files(folder: str) -> Iterator[tuple[str, pathspec.GitIgnoreSpec]]:
    for name in (".git/info/exclude", ".gitignore"):
        try:
            text = read(f"{folder}/{name}").decode("utf-8", "replace")
        except OSError:
            continue
        patterns = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if patterns:
            yield folder, _compiled(tuple(patterns))


def _compiled(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(patterns)
