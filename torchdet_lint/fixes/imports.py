"""An import statement → the edit that puts it where the file keeps its imports, sorted where they are sorted."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.fixes.patch import import_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.finding import Edit
    from torchdet_lint.fixes.edits import Editor
    from torchdet_lint.fixes.layout import Top

_Key = tuple[int, bool, str]


class Imports:
    """The imports of one file, and where another one goes."""

    def __init__(self, editor: Editor) -> None:
        self.module = editor.module
        self.layout = editor.layout
        self.editor = editor

    def placed(self, statement: str, limit: int | None) -> Edit:
        """The edit that adds the import `statement`, above row `limit` where there is one."""
        run = self.layout.run
        if not run or (limit is not None and run[-1].last >= limit):
            held = [top for top in run if limit is None or top.last < limit]
            return self._spaced_import(held[-1].last if held else self.layout.preamble, statement)
        return self._among(run, statement)

    def _among(self, run: Sequence[Top], statement: str) -> Edit:
        """Put an import into a block of imports: in its place where its group is sorted, else below its like."""
        mine = import_key(statement)
        keyed = [(top, import_key(self._import_text(top))) for top in run if top.kind == "import"]
        alike = [(top, key) for top, key in keyed if key[0] == mine[0]]
        if alike:
            group = self._group(alike)
            later = [top for top, key in group if key > mine]
            if later and [key for _, key in group] == sorted(key for _, key in group):
                return self.editor.lines_before(later[0].first, f"{statement}\n")
            plain = [top for top, key in group if not key[1]] if not mine[1] else []
            return self.editor.lines_after((plain or [group[-1][0]])[-1].last, f"{statement}\n")
        apart = "\n" if self._parts_sections(keyed) else ""
        below = [top for top, key in keyed if key[0] > mine[0]]
        if below and below[0] is run[0]:
            return self.editor.lines_before(below[0].first, f"{statement}\n{apart}")
        if below:
            return self.editor.lines_after(run[run.index(below[0]) - 1].last, f"{apart}{statement}\n")
        return self.editor.lines_after((keyed[-1][0] if keyed else run[-1]).last, f"{apart}{statement}\n")

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

    def _import_text(self, top: Top) -> str:
        assert isinstance(top.node, cst.SimpleStatementLine)
        return self.module.code(top.node.body[0])

    def _spaced_import(self, row: int, statement: str) -> Edit:
        """An import in a file that has none: a blank line on either side."""
        lines = self.layout.lines
        above = "\n" if 0 < row <= len(lines) and lines[row - 1].strip() else ""
        below = "\n" if row < len(lines) and lines[row].strip() and not self._is_import_row(row + 1) else ""
        if above and self._is_import_row(row):
            above = ""
        return self.editor.lines_after(row, f"{above}{statement}\n{below}")

    def _is_import_row(self, row: int) -> bool:
        top = self.layout.top_row(row)
        return top is not None and top.kind in ("import", "imports")
