"""A file -> where it keeps its imports and its entry, what its names are, and how it is written."""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.finding import Location
from torchdet_lint.fixes.bound_names import BoundNames
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.skeleton import SyntaxFault, parsed
from torchdet_lint.prefilter.triggers import IDENTIFIER
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines, without_prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.finding import Edit
    from torchdet_lint.module.module import Module
    from torchdet_lint.source.notebooks import Cell

_INSTALL = lazy(r"\s*(?:# |pass  # )?\s*[!%]\s*(?:\w+ -m )?(?:pip3?|conda|mamba|uv)\b.*\binstall\b")
_DUNDER = lazy(r"__\w+__")
_ALONE = lazy(r"[ \t]*\)")
_FIRST_LINES = lazy(r"#!|#.*?coding[:=]")
_FIRST_LINES_OF_NOTEBOOKS = lazy(r"#!|# %%|#.*?coding[:=]")


IMPORTS = ("import", "imports")
# Widths of lines: where a file does not show its own, and the limits of what it may show. So many lines show one.
_WIDE, _NARROWEST, _WIDEST, _ENOUGH = 100, 79, 120, 40


class Top(NamedTuple):
    """A statement of the module: its rows, and what it is to somebody who looks for the place of an import."""

    kind: str
    first: int
    last: int
    node: cst.CSTNode | None = None


class Layout:
    """Where a file keeps its imports and its entry, what its names are, and how it is written."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines = module.skeleton.lines
        self.functions: dict[tuple[str, ...], str] = {}
        self.placed: dict[tuple[str, int], Edit] = {}
        starts, offset = [], 0
        for line in self.lines:
            starts.append(offset)
            offset += len(line)
        self.starts = [*starts, offset]
        module.load_statements()
        for unit in module.units:
            if unit.piece.kind == "imports":
                module.load(unit)
        self.newline = line_end(self.lines[0]) if self.lines else "\n"
        self.newline = self.newline or "\n"
        self.indent = _usual_indent(split_lines(without_prose(module.text)))
        self._cells: dict[int, list[str]] = {}
        self.annotated = bool(re.search(r"\)\s*->", module.text))

    def lines_of_cell(self, cell: Cell) -> list[str]:
        """The lines of a notebook's cell as the file has them: the last one has no end."""
        if cell.number not in self._cells:
            self._cells[cell.number] = split_lines(cell.text)
        return self._cells[cell.number]

    @functools.cached_property
    def names(self) -> BoundNames:
        """The names that the file binds."""
        return BoundNames(self.module)

    @functools.cached_property
    def width(self) -> int:
        """How wide lines of code may be: as wide as nearly all are, where there are enough to tell."""
        code = (line for line in self.lines if line.strip() and not line.lstrip().startswith("#"))
        widths = sorted(len(line.rstrip().expandtabs(4)) for line in code)
        if len(widths) < _ENOUGH:
            return _WIDE
        return min(max(widths[len(widths) * 99 // 100 - 1], _NARROWEST), _WIDEST)

    @functools.cached_property
    def closes_alone(self) -> bool:
        """Whether calls of several lines have their last parenthesis on a line of its own."""
        alone = sum(bool(_ALONE.match(line)) for line in self.lines)
        return alone > sum(line.count(")") > line.count("(") and not _ALONE.match(line) for line in self.lines)

    @functools.cached_property
    def uses_numpys_seed(self) -> bool:
        """Whether a file that imports NumPy may draw from its global generator."""
        text, words = self.module.text, self.module.library.facts.conventions
        return not words.makes_numpy_generators.search(text) or bool(words.uses_numpy_globally.search(text))

    @functools.cached_property
    def installs_end(self) -> int:
        """The last row of a notebook that installs packages; 0 where there is none."""
        return max((row for row, line in enumerate(self.lines, start=1) if _INSTALL.match(line)), default=0)

    @functools.cached_property
    def top(self) -> list[Top]:
        """The statements at top level."""
        return list(_top_statements(self.module))

    @functools.cached_property
    def taken(self) -> frozenset[str]:
        """Every name that means something in the file."""
        return _names_in(self.module.text)

    def offset(self, place: Location) -> int:
        """The place as an index into the text."""
        return self.starts[place.row - 1] + place.column - 1

    def location(self, offset: int) -> Location:
        """The inverse of `offset`."""
        row = min(bisect.bisect_right(self.starts, offset), max(len(self.lines), 1))
        return Location(row, offset - self.starts[row - 1] + 1)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of `node` as indices into the text."""
        start, end = self.module.span(node)
        return self.offset(start), self.offset(end)

    @functools.cached_property
    def preamble(self) -> int:
        """The last row of what must stay first: comments at the top, docstring, `__future__` imports, `__all__`."""
        last = 0
        for index, top in enumerate(self.top):
            if top.kind in ("future", "dunder") or (top.kind == "text" and index == 0):
                last = top.last
            else:
                break
        if last or self.module.source.legible_row(1) != 1:
            return last
        first = self.top[0].first if self.top else len(self.lines) + 1
        while last + 1 < first and self.lines[last].startswith("#"):
            last += 1
        if last + 1 < first and not self.lines[last].strip():
            return last
        # What stands right above the first statement is about it, but for these.
        stays = _FIRST_LINES_OF_NOTEBOOKS if self.module.source.cells else _FIRST_LINES
        return sum(bool(stays.match(line)) for line in self.lines[: min(last, 2)])

    @functools.cached_property
    def runs(self) -> list[list[Top]]:
        """The blocks of imports: nothing else stands between those of one."""
        found: list[list[Top]] = []
        going = False
        for top in self.top:
            if top.kind in IMPORTS:
                if not going:
                    found.append([])
                found[-1].append(top)
            going = top.kind in IMPORTS
        return found

    @property
    def run(self) -> list[Top]:
        """The first block of imports, where only a docstring and the like stand above it."""
        before = next((top for top in self.top if top.kind not in ("text", "future", "dunder")), None)
        return self.runs[0] if before is not None and before.kind in IMPORTS else []

    @functools.cached_property
    def imports_end(self) -> int:
        """The last row of the last import before the first definition, loop or main guard."""
        last = self.preamble
        for top in self.top:
            if top.kind in IMPORTS:
                last = max(last, top.last)
            elif top.kind in ("guard", "definition"):
                break
        return self._below_dunders(last)

    def below_imports(self, row: int | None = None, wanted: int | None = None) -> int:
        """The row below which things go that need the imports, or in a notebook that in row `wanted` and those of its
        cell, and that a statement in `row` needs."""
        if wanted is not None and row is not None:
            cell = self.module.source.place(wanted)[0]
            held = [last for last in self._import_ends if last < row and self.module.source.place(last)[0] == cell]
            if held:
                return self._below_magics(self._below_dunders(held[-1]), row)
        if row is None or row > self.imports_end:
            return self._below_magics(self.imports_end, row)
        at = bisect.bisect_left(self._import_ends, row)
        last = max(self.preamble, self._import_ends[at - 1] if at else 0)
        below = self._below_dunders(last)
        return self._below_magics(below if below < row else last, row)

    def _below_magics(self, last: int, row: int | None) -> int:
        """The last row, above `row`, of the magics that come next after row `last` in its cell of a notebook."""
        place = self.module.source.place
        rows = range(last + 1, row or len(self.lines) + 1) if last and self.module.source.cells else ()
        for at in itertools.takewhile(lambda at: place(at)[0] == place(last)[0], rows):
            if self.lines[at - 1].startswith("# %"):
                return self._below_magics(at, row)
            if self.lines[at - 1].strip():
                break
        return last

    def _below_dunders(self, last: int) -> int:
        """The last row of `__all__` and the like, where they come next after row `last`."""
        for top in itertools.islice(self.top, bisect.bisect_right(self._ends, last), None):
            if top.first > last:
                if top.kind != "dunder":
                    break
                last = top.last
        return last

    def last_above(self, row: int) -> int:
        """The last row of what stands above `row`: a statement, or what must stay first."""
        at = bisect.bisect_left(self._ends, row)
        return max(self.preamble, self._ends[at - 1] if at else 0)

    @functools.cached_property
    def _ends(self) -> list[int]:
        return [top.last for top in self.top]

    @functools.cached_property
    def _import_ends(self) -> list[int]:
        return [top.last for top in self.top if top.kind in IMPORTS]

    @functools.cached_property
    def guard(self) -> Top | None:
        """The `if __name__ == "__main__"` of the file."""
        return next((top for top in self.top if top.kind == "guard"), None)

    def top_row(self, row: int) -> Top | None:
        """The top-level statement that holds `row`."""
        at = bisect.bisect_left(self._ends, row)
        return self.top[at] if at < len(self.top) and self.top[at].first <= row else None

    def free(self, name: str) -> bool:
        """Whether `name` means nothing in this file."""
        return name not in self.taken and name not in BUILTINS


def _top_statements(module: Module) -> Iterator[Top]:
    for unit in module.units:
        piece = unit.piece
        if piece.owner >= 0:
            if piece.kind == "header":
                yield Top("definition", piece.first, module.skeleton.classes[piece.owner].last)
            continue
        if piece.kind == "function":
            yield Top("definition", piece.first, piece.last)
            continue
        if piece.kind == "table":
            yield Top("dunder" if _DUNDER.fullmatch(piece.name) else "simple", piece.first, piece.last)
            continue
        assert unit.root is not None
        for statement in unit.root.body:
            start, end = module.span(statement)
            yield Top(_kind(statement), first_row(module, statement, start.row), end.row, statement)


def first_row(module: Module, statement: cst.CSTNode, row: int) -> int:
    """The row of `statement`, which begins in `row`, with its decorators."""
    decorators: Sequence[cst.CSTNode] = getattr(statement, "decorators", ())
    return min([row, *(module.span(decorator)[0].row for decorator in decorators)])


def _kind(statement: cst.CSTNode) -> str:
    if isinstance(statement, cst.SimpleStatementLine):
        first = statement.body[0]
        if isinstance(first, cst.ImportFrom) and isinstance(first.module, cst.Name):
            return "future" if first.module.value == "__future__" else "import"
        if isinstance(first, (cst.Import, cst.ImportFrom)):
            return "import"
        return "text" if is_text(first) else "dunder" if _is_dunder(first) else "simple"
    if isinstance(statement, cst.If) and _is_main_guard(statement.test):
        return "guard"
    if isinstance(statement, (cst.If, cst.Try, cst.With)):
        parts = list(leaves(statement))
        quiet = (cst.Import, cst.ImportFrom, cst.Assert, cst.Assign, cst.Pass, cst.Raise, cst.Expr)
        if all(isinstance(leaf, quiet) for leaf in parts):
            return "imports" if any(isinstance(leaf, (cst.Import, cst.ImportFrom)) for leaf in parts) else "simple"
    return "definition"


def is_text(node: cst.CSTNode) -> bool:
    """Whether a small statement is a docstring or the like."""
    return isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_dunder(node: cst.CSTNode) -> bool:
    """Whether a small statement says something of the module: `__all__ = …`, `__version__ = …`."""
    target: cst.CSTNode | None = None
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        target = node.targets[0].target
    elif isinstance(node, (cst.AnnAssign, cst.AugAssign)):
        target = node.target
    return isinstance(target, cst.Name) and bool(_DUNDER.fullmatch(target.value))


def _is_main_guard(test: cst.CSTNode) -> bool:
    return (
        isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and isinstance(test.comparisons[0].operator, cst.Equal)
        and any(
            isinstance(side, cst.Name) and side.value == "__name__"
            for side in (test.left, test.comparisons[0].comparator)
        )
    )


def leaves(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The small statements in a block, and every definition or loop as one."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            yield from node.body
        elif isinstance(node, cst.IndentedBlock):
            stack.extend(reversed(node.body))
        elif isinstance(node, (cst.If, cst.Else, cst.Try, cst.With, cst.ExceptHandler, cst.Finally)):
            parts: list[cst.CSTNode] = [node.body]
            for name in ("handlers", "orelse", "finalbody"):
                inner = getattr(node, name, None)
                parts.extend(inner if isinstance(inner, (list, tuple)) else (inner,) if inner is not None else ())
            stack.extend(reversed(parts))
        else:
            yield node


def line_end(line: str) -> str:
    """What ends `line`: nothing, where it is the last one."""
    return line[len(line.rstrip("\r\n")) :]


def _usual_indent(lines: Sequence[str]) -> str:
    """The indentation of the first line that opens a block's body, or four spaces."""
    before = ""
    for line in lines:
        if before.endswith(":") and not before.startswith((" ", "\t", "#")):
            indent = line[: len(line) - len(line.lstrip(" \t"))]
            if indent and line.strip():
                return indent
        if line.strip():
            before = line.rstrip()
    return "    "


def _names_in(text: str) -> frozenset[str]:
    """Every name that means something in the file (all its words where the running Python cannot parse it)."""
    try:
        tree = parsed(text)
    except SyntaxFault:
        return frozenset(IDENTIFIER.findall(text))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return frozenset(found)
