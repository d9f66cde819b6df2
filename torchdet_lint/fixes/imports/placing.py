"""An import statement -> the edit that puts it where the file keeps its imports, sorted where they are sorted."""

from __future__ import annotations

import bisect
import itertools
import operator
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.fixes.imports.joining import joined
from torchdet_lint.fixes.layout import leaves
from torchdet_lint.fixes.patch import import_key
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.finding import Edit
    from torchdet_lint.fixes.edits import Editor
    from torchdet_lint.fixes.layout import Top

_last = operator.attrgetter("last")
_Key = tuple[int, bool, str]

_STANDARD, _OTHERS, _PROJECT = 1, 2, 3
# What only IPython understands stands in the text as a comment.
_MAGIC = lazy(r"# [!%]")


class Imports:
    """The imports of one file, and where another one goes."""

    def __init__(self, editor: Editor) -> None:
        self.module = editor.module
        self.layout = editor.layout
        self.editor = editor

    def placed(self, statement: str, limit: int | None) -> Edit:
        """The edit that adds the import `statement`, above row `limit` where there is one."""
        if (edit := joined(self.editor, statement, limit)) is not None:
            return edit
        run = self._block(statement, limit)
        if not run or (limit is not None and run[-1].last >= limit):
            held = len(run) if limit is None else bisect.bisect_left(run, limit, key=_last)
            return self._spaced_import(run[held - 1].last if held else self.layout.preamble, statement)
        key = (statement, run[0].first)
        if key not in self.layout.placed:
            self.layout.placed[key] = self._among(run, statement)
        return self.layout.placed[key]

    def _block(self, statement: str, limit: int | None) -> list[Top]:
        """The imports among which `statement` goes: the first ones of the file, or the first of other packages where
        those are of the standard library alone; but in a notebook those of its own package, those of the cell that it
        is for, or the first below the cell that installs packages."""
        blocks = [block for block in self.layout.runs if limit is None or block[0].first < limit]
        section = self._key(statement)[0]
        if not self.module.source.cells:
            others = [block for block in blocks if limit is None or block[-1].last < limit]
            found = next((block for block in others if self._has_others(block)), None)
            return found if found and self.layout.run and section == _OTHERS else self.layout.run
        near = self._of_cell(blocks, limit)
        if section == _STANDARD:
            return near or self.layout.run
        root = _root(statement)
        for block in blocks:
            if any(_root(text) == root for top in block for text in self._import_texts(top)):
                return block
        return near or next((block for block in blocks if block[-1].last > self.layout.installs_end), self.layout.run)

    def _has_others(self, block: Sequence[Top]) -> bool:
        """Whether a package that is not of the standard library is imported in `block`."""
        return any(self._key(text)[0] == _OTHERS for top in block for text in self._import_texts(top))

    def _of_cell(self, blocks: Sequence[list[Top]], limit: int | None) -> list[Top]:
        """The last of the `blocks` above row `limit` that are of the same cell of a notebook, if there is one."""
        place = self.module.source.place
        above = [block for block in blocks if limit is not None and block[-1].last < limit]
        held = limit is not None and above and place(above[-1][-1].last)[0] == place(limit - 1)[0]
        return above[-1] if held else []

    def _key(self, statement: str) -> _Key:
        """The order of imports in a sorted file: section, plain imports first, module."""
        section, is_from, name = import_key(statement)
        if section == _OTHERS and self.module.own is not None and self.module.own(_root(statement)):
            section = _PROJECT
        return section, is_from, name

    def _among(self, run: Sequence[Top], statement: str) -> Edit:
        """Put an import into a block of imports: in its place where its group is sorted, else below its like."""
        mine = self._key(statement)
        keyed = [(top, self._key(self._import_text(top))) for top in run if top.kind == "import"]
        alike = [(top, key) for top, key in keyed if key[0] == mine[0]]
        if alike:
            group = self._group(alike)
            order = _order([key for _, key in keyed]) or _order([key for _, key in group])
            if order is not None:
                # Of one module: by the name, where each has a line of its own.
                text = statement.lower()
                later = [
                    top
                    for top, key in group
                    if order(key) > order(mine) or (key == mine and self._import_text(top).lower() > text)
                ]
                if later:
                    return self._above(later[0], first=later[0] is group[0][0], statement=statement)
                return self.editor.lines_after(group[-1][0].last, f"{statement}\n")
            plain = [top for top, key in group if not key[1]] if not mine[1] else []
            return self.editor.lines_after((plain or [group[-1][0]])[-1].last, f"{statement}\n")
        apart = "\n" if self._parts_sections(keyed) else ""
        below = [top for top, key in keyed if key[0] > mine[0]]
        if below and below[0] is run[0]:
            return self.editor.lines_before(self._above_heading(below[0].first), f"{statement}\n{apart}")
        if below:
            row = run[run.index(below[0]) - 1].last
            end = apart if self.layout.lines[row].strip() else ""
            return self.editor.lines_after(row, f"{apart}{statement}\n{end}")
        return self.editor.lines_after((keyed[-1][0] if keyed else run[-1]).last, f"{apart}{statement}\n")

    def _above_heading(self, row: int) -> int:
        """In a notebook, the row of the first of the comments right above `row`, those of the same cell."""
        place = self.module.source.place
        while (
            self.module.source.cells
            and place(row)[1] > 1
            and self.layout.lines[row - 2].startswith("#")
            and not _MAGIC.match(self.layout.lines[row - 2])
        ):
            row -= 1
        return row

    def _above(self, top: Top, *, first: bool, statement: str) -> Edit:
        """Put an import above another one, and above the comment on that; one above the first is the group's."""
        if first or top.node is None:
            return self.editor.lines_before(top.first, f"{statement}\n")
        return self.editor.before(top.node, statement)

    def _parts_sections(self, keyed: Sequence[tuple[Top, _Key]]) -> bool:
        """Whether blank lines part the imports of the standard library, of others, and of the project."""
        return all(
            before[1][0] == after[1][0]
            or any(not line.strip() for line in self.layout.lines[before[0].last : after[0].first - 1])
            for before, after in itertools.pairwise(keyed)
        )

    def _group(self, keyed: Sequence[tuple[Top, _Key]]) -> list[tuple[Top, _Key]]:
        """Imports that no blank line parts: of several such groups the one with torch or NumPy, else the first."""
        groups = [[keyed[0]]]
        for before, after in itertools.pairwise(keyed):
            if any(not line.strip() for line in self.layout.lines[before[0].last : after[0].first - 1]):
                groups.append([])
            groups[-1].append(after)
        return next(
            (group for group in groups if any(key[2].startswith(("torch", "numpy")) for _, key in group)), groups[0]
        )

    def _import_texts(self, top: Top) -> list[str]:
        """The imports that `top` is or holds."""
        if top.node is None:
            return []
        return [self.module.code(leaf) for leaf in leaves(top.node) if isinstance(leaf, (cst.Import, cst.ImportFrom))]

    def _import_text(self, top: Top) -> str:
        assert isinstance(top.node, cst.SimpleStatementLine)
        return self.module.code(top.node.body[0])

    def _spaced_import(self, row: int, statement: str) -> Edit:
        """An import in a file that has none: a blank line on either side, two above a function or a class."""
        lines = self.layout.lines
        above = "\n" if 0 < row <= len(lines) and lines[row - 1].strip() else ""
        below = "\n" if row < len(lines) and lines[row].strip() and not self._is_import_row(row + 1) else ""
        top = self.layout.top_row(row + 1) if below and not self.module.source.cells else None
        below *= 2 if top is not None and top.kind == "definition" else 1
        if above and self._is_import_row(row):
            above = ""
        return self.editor.lines_after(row, f"{above}{statement}\n{below}")

    def _is_import_row(self, row: int) -> bool:
        top = self.layout.top_row(row)
        return top is not None and top.kind in ("import", "imports")


def _root(statement: str) -> str:
    """The package that an import names: empty for a relative one."""
    return re.split(r"[.,;]", statement.split()[1])[0]


def _order(keys: Sequence[_Key]) -> Callable[[_Key], tuple[object, ...]] | None:
    """The order in which imports with these keys are sorted."""
    return next((order for order in (_plain_first, _by_module) if list(keys) == sorted(keys, key=order)), None)


def _plain_first(key: _Key) -> _Key:
    return key


def _by_module(key: _Key) -> tuple[int, str, bool]:
    """The order of isort's `force_sort_within_sections`."""
    return key[0], key[2], key[1]
