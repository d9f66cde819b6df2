"""A file cut into the statements that libcst may be asked to parse: `ast` finds the seams, nothing else.

`ast.parse` costs a tenth of `libcst.parse_module`, so a file is cut once and only the units in which something
matters are parsed with libcst, each at most once.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import NamedTuple

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_TOO_DEEP = "too deeply nested to be read"


class SyntaxFault(Exception):
    """A file that cannot be parsed: `row` and `column` count from 1."""

    def __init__(self, row: int, column: int, reason: str) -> None:
        super().__init__(f"{row}:{column}: {reason}")
        self.row = row
        self.column = column
        self.reason = reason


class Piece(NamedTuple):
    """Rows `first` to `last` of the file (from 1), parsed as one.

    `kind` is `statements` (simple statements and blocks), `function` (one definition with its decorators) or `header`
    (a class without its body, `pad` being the stand-in for it). `owner` is the class it stands in, by index into
    `Skeleton.classes`, or -1.
    """

    kind: str
    first: int
    last: int
    owner: int = -1
    name: str = ""
    pad: str = ""


class ClassPiece(NamedTuple):
    """A top-level class: its name, and the names of its methods."""

    name: str
    methods: tuple[str, ...]
    first: int
    last: int


class Skeleton(NamedTuple):
    """The seams of one file."""

    lines: tuple[str, ...]
    pieces: tuple[Piece, ...]
    classes: tuple[ClassPiece, ...]

    def text(self, piece: Piece) -> str:
        """The source of `piece`, newline at the end."""
        text = "".join(self.lines[piece.first - 1 : piece.last])
        if not text.endswith(("\n", "\r")):
            text += "\n"
        return text + piece.pad


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of `text` with their ends, cut where Python cuts them (not at form feeds as `str.splitlines` does)."""
    lines = _LINE.findall(text)
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def cut(text: str) -> Skeleton:
    """Cut `text` into pieces. Raises `SyntaxFault` where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        raise SyntaxFault(error.lineno or 1, max(error.offset or 1, 1), error.msg or "invalid syntax") from error
    except ValueError as error:
        raise SyntaxFault(1, 1, str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise SyntaxFault(1, 1, _TOO_DEEP) from error
    lines = split_lines(text)
    pieces: list[Piece] = []
    classes: list[ClassPiece] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _first(node.body[0]) > node.lineno:
            _cut_class(node, lines, pieces, classes)
        else:
            _add(pieces, node, -1)
    return Skeleton(lines, tuple(pieces), tuple(classes))


def whole(text: str) -> Skeleton:
    """`text` as one piece, for what libcst can parse and the running Python cannot."""
    lines = split_lines(text)
    return Skeleton(lines, (Piece("statements", 1, max(len(lines), 1)),), ())


def _cut_class(node: ast.ClassDef, lines: tuple[str, ...], pieces: list[Piece], classes: list[ClassPiece]) -> None:
    index = len(classes)
    methods = tuple(member.name for member in node.body if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)))
    classes.append(ClassPiece(node.name, methods, _first(node), node.end_lineno or node.lineno))
    body = _first(node.body[0])
    row = lines[body - 1]
    indent = row[: len(row) - len(row.lstrip(" \t\f"))]
    pieces.append(Piece("header", _first(node), body - 1, index, node.name, f"{indent}pass\n"))
    for member in node.body:
        _add(pieces, member, index)


def _add(pieces: list[Piece], node: ast.stmt, owner: int) -> None:
    first, last = _first(node), node.end_lineno or node.lineno
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        pieces.append(Piece("function", first, last, owner, node.name))
        return
    before = pieces[-1] if pieces else None
    if before is not None and before.kind == "statements" and before.owner == owner:
        pieces[-1] = before._replace(last=max(last, before.last))
    else:
        pieces.append(Piece("statements", first, last, owner))


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", None)
    return min(node.lineno, decorators[0].lineno) if decorators else node.lineno
