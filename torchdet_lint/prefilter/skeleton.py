"""A file -> the statements that libcst may be asked to parse: `ast` finds the seams, nothing else.

`ast.parse` costs a tenth of `libcst.parse_module`, so a file is cut once and only the units in which something
matters are parsed with libcst, each at most once.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TABLE_ROWS = 8
_ALIASES = (ast.Name, ast.Attribute, ast.IfExp, ast.BoolOp, ast.Subscript)
RENAMING = frozenset({"partial", "getattr", "import_module", "__import__"})
"""Callables whose result is another name of something."""
_TABLES = (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Call)
# What Python 3.12 added before a definition's parameters, and its `type` statement.
_TYPE_PARAMETERS = lazy(
    r"^(?P<head>[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]+\w+)(?P<types>\[(?:[^][]|\[[^][]*\])*\])(?=[ \t]*[(:])",
    re.MULTILINE,
)
_TYPE_ALIAS = lazy(
    r"^(?P<indent>[ \t]*)(?P<type>type[ \t]+)(?P<name>\w+)(?P<types>\[[^][\n]*\])?(?=[ \t]*=[^=])", re.MULTILINE
)
_STRING_ENDS = lazy("'''|\"\"\"")
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

    `kind` is `statements` (simple statements and blocks), `imports` (nothing but imports), `table` (one long assignment
    to the global `name`), `function` (one definition with its decorators) or `header` (a class without its body, `pad`
    being the stand-in for it). `owner` is the class it stands in, by index into `Skeleton.classes`, or -1. `binds` are
    the names that imports bind and what they stand for, and with an empty string the names that assignments to other
    names and definitions in blocks bind. `prose` are the first and last row of its docstring.
    """

    kind: str
    first: int
    last: int
    owner: int = -1
    name: str = ""
    pad: str = ""
    prose: tuple[int, int] | None = None
    binds: tuple[tuple[str, str], ...] = ()


class ClassPiece(NamedTuple):
    """A top-level class: its name, the names of its methods, and its bases where they are nothing but dotted names."""

    name: str
    methods: tuple[str, ...]
    first: int
    last: int
    bases: tuple[str, ...] | None = None


class Skeleton(NamedTuple):
    """The seams of one file.

    `bodies` are the first and last row of the body of every function at top level or in a class there, one after the
    other; a body that shares a row with something else is not among them. `tree` has `pass` for each of them.
    """

    lines: tuple[str, ...]
    pieces: tuple[Piece, ...]
    classes: tuple[ClassPiece, ...]
    bodies: tuple[int, ...] = ()
    tree: ast.Module | None = None

    def text(self, piece: Piece) -> str:
        """The source of `piece`, newline at the end."""
        text = "".join(self.lines[piece.first - 1 : piece.last])
        if not text.endswith(("\n", "\r")):
            text += "\n"
        return text + piece.pad

    def spoken(self, piece: Piece) -> str:
        """The source of `piece` without its docstring and the lines that are comments."""
        lines: Sequence[str] = self.lines[piece.first - 1 : piece.last]
        if piece.prose:
            first, last = piece.prose
            lines = (*lines[: first - piece.first], *lines[last + 1 - piece.first :])
        text = "".join(lines)
        if "#" not in text:
            return text
        return "".join(
            [
                line
                for line in lines
                if "#" not in line or not line.lstrip().startswith("#") or _STRING_ENDS.search(line)
            ]
        )


def cut(text: str) -> Skeleton:
    """Cut `text` into pieces. Raises `SyntaxFault` where it is not Python."""
    tree = parsed(text)
    lines = split_lines(text)
    pieces: list[Piece] = []
    classes: list[ClassPiece] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _first(node.body[0]) > node.lineno:
            _cut_class(node, lines, pieces, classes)
        else:
            _add(pieces, node, -1)
    return Skeleton(tuple(lines), tuple(pieces), tuple(classes), _emptied(tree, lines), tree)


def hollowed(text: str) -> Skeleton:
    """`text` without pieces, for what is no file to check by itself. Raises `SyntaxFault` where it is not Python."""
    tree = parsed(text)
    lines = split_lines(text)
    return Skeleton(tuple(lines), (), (), _emptied(tree, lines), tree)


def parsed(text: str) -> ast.Module:
    """The tree of `text`, without the parser's warnings. Raises `SyntaxFault` where it is not Python to the running
    interpreter, for which the type parameters of a newer one are left out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        older = without_type_parameters(text)
        if older != text:
            with contextlib.suppress(SyntaxFault):
                return parsed(older)
        raise SyntaxFault(error.lineno or 1, max(error.offset or 1, 1), error.msg or "invalid syntax") from error
    except ValueError as error:
        raise SyntaxFault(1, 1, str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise SyntaxFault(1, 1, _TOO_DEEP) from error


def without_type_parameters(text: str) -> str:
    """`text` without the type parameters of Python 3.12; everything else stays in its row and column."""
    text = _TYPE_PARAMETERS.sub(lambda found: found["head"] + re.sub(r"[^\r\n]", " ", found["types"]), text)
    return _TYPE_ALIAS.sub(
        lambda found: found["indent"] + found["name"] + " " * (len(found["type"]) + len(found["types"] or "")), text
    )


def _emptied(tree: ast.Module, lines: Sequence[str]) -> tuple[int, ...]:
    """Put `pass` for the bodies of the functions at top level and in classes there, and return the rows of these."""
    found: list[int] = []
    for node in tree.body:
        for function in node.body if isinstance(node, ast.ClassDef) else (node,):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            first, column = _first(function.body[0]), function.body[0].col_offset
            if lines[first - 1][:column].strip() in ("", "@"):
                found += first, function.end_lineno or first
                function.body = [ast.Pass(lineno=first, col_offset=column)]
    return tuple(found)


def whole(text: str) -> Skeleton:
    """`text` as one piece, for what libcst can parse and the running Python cannot."""
    lines = split_lines(text)
    return Skeleton(tuple(lines), (Piece("statements", 1, max(len(lines), 1)),), ())


def _cut_class(node: ast.ClassDef, lines: Sequence[str], pieces: list[Piece], classes: list[ClassPiece]) -> None:
    index = len(classes)
    methods = tuple(member.name for member in node.body if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)))
    bases = tuple(map(dotted_name, node.bases))
    classes.append(
        ClassPiece(node.name, methods, _first(node), node.end_lineno or node.lineno, bases if all(bases) else None)
    )
    body = _first(node.body[0])
    row = lines[body - 1]
    indent = row[: len(row) - len(row.lstrip(" \t\f"))]
    pieces.append(Piece("header", _first(node), body - 1, index, node.name, f"{indent}pass\n"))
    for member in node.body:
        _add(pieces, member, index)


def _add(pieces: list[Piece], node: ast.stmt, owner: int) -> None:
    first, last = _first(node), node.end_lineno or node.lineno
    before = pieces[-1] if pieces else None
    if before is not None and first <= before.last and before.kind in ("table", "imports"):
        binds = before.binds or ((before.name, ""),)
        before = pieces[-1] = before._replace(kind="statements", name="", binds=binds)
    alone = owner < 0 and (before is None or before.last < first)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        pieces.append(Piece("function", first, last, owner, node.name, prose=_prose(node.body[0])))
    elif alone and isinstance(node, (ast.Import, ast.ImportFrom)):
        if before is not None and before.kind == "imports":
            pieces[-1] = before._replace(last=last, binds=(*before.binds, *imported(node)))
        else:
            pieces.append(Piece("imports", first, last, owner, binds=tuple(imported(node))))
    elif alone and last - first >= _TABLE_ROWS and (name := _table(node)):
        pieces.append(Piece("table", first, last, owner, name))
    else:
        binds = tuple(_bound(node)) if owner < 0 else ()
        if before is not None and before.kind == "statements" and before.owner == owner:
            pieces[-1] = before._replace(last=max(last, before.last), binds=(*before.binds, *binds))
        else:
            pieces.append(Piece("statements", first, last, owner, binds=binds, prose=_prose(node)))


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds and what they stand for; `*` and the module for all that it has."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
        return
    module = "." * node.level + (node.module or "")
    joint = "" if module.endswith(".") or not module else "."
    for alias in node.names:
        yield ("*", module) if alias.name == "*" else (alias.asname or alias.name, f"{module}{joint}{alias.name}")


def _bound(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """What `node` and the statements in it bind: by an import what it stands for, else the empty string."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, (ast.Import, ast.ImportFrom)):
            yield from imported(inner)
        elif isinstance(inner, (ast.Assign, ast.AnnAssign)):
            if _renames(inner.value):
                targets = inner.targets if isinstance(inner, ast.Assign) else (inner.target,)
                yield from ((target.id, "") for target in targets if isinstance(target, ast.Name))
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield inner.name, ""
        elif not isinstance(inner, (ast.Expr, ast.AugAssign)):
            for field in reversed(("body", "orelse", "finalbody", "handlers", "cases")):
                stack.extend(reversed(getattr(inner, field, ())))


def _renames(value: ast.expr | None) -> bool:
    """Whether `value` may be another name of something, not an object that is made here."""
    if not isinstance(value, ast.Call):
        return isinstance(value, _ALIASES)
    function = value.func
    last = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    return last in RENAMING


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` as text; the empty string for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""


def _table(node: ast.stmt) -> str:
    """The one name to which `node` assigns a display or what a call returns; else the empty string."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target: ast.expr = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) and isinstance(node.value, _TABLES) else ""


def _prose(node: ast.stmt) -> tuple[int, int] | None:
    """The rows of `node` where it is a text that does nothing and has its rows to itself."""
    text = node.value if isinstance(node, ast.Expr) else None
    alone = isinstance(text, ast.Constant) and isinstance(text.value, str) and (node.end_lineno or 0) > node.lineno
    return (node.lineno, node.end_lineno or 0) if alone else None


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", None)
    return min(node.lineno, decorators[0].lineno) if decorators else node.lineno


def yields(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether `function` is a generator: called alone it runs nothing."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            queue.extend(ast.iter_child_nodes(node))
    return False
