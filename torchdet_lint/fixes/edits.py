"""Ranges, rows and statements of a file -> edits: where lines go, and how they are indented and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.finding import Edit, Location
from torchdet_lint.fixes.layout import first_row, line_end
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import comments, split_lines
from torchdet_lint.source.magics import closed_rows

if TYPE_CHECKING:
    from torchdet_lint.fixes.layout import Layout

_CELL_MARK = lazy(r"#\s*(?:%%|In\s*\[)")


class Refusal(Exception):
    """A fix that is not made; the text says why and reads on after "No fix: "."""


class Editor:
    """Makes the edits of one file. Raises `Refusal` where an edit would drop a comment."""

    def __init__(self, layout: Layout) -> None:
        self.module = layout.module
        self.layout = layout

    def edit(self, start: int, end: int, content: str) -> Edit:
        """Replace a piece of the text; refused where a comment would go."""
        layout = self.layout
        for _, comment in comments(self.module.text[start:end]):
            if comment not in content:
                raise Refusal(f"it would drop the comment `{short(comment)}`")
        source = self.module.source
        first, last = layout.location(start), layout.location(end)
        cell, row = source.place(first.row)
        return Edit(content, Location(row, first.column), Location(source.place(last.row)[1], last.column), cell)

    def lines_after(self, row: int, content: str) -> Edit:
        """Insert whole lines after `row` of the text (0: at its start), or at the start of the next cell that is
        Python, where that of the row is not."""
        if row == 0 or self.module.source.legible_row(row) != row:
            return self.lines_before(max(row, 1), content)
        cell, inside = self.module.source.place(row)
        line = self._raw_line(row)
        newline = line_end(line) or self.layout.newline
        content = content.replace("\n", newline)
        if line_end(line):
            place = Location(inside + 1, 1)
        else:
            place = Location(inside, len(line) + 1)
            content = newline + content[: -len(newline)]
        return self._inserted(content, place, cell)

    def _inserted(self, content: str, place: Location, cell: int | None) -> Edit:
        held = self.module.source.cell(cell)
        if held is not None and (
            held.number in self.module.source.illegible
            or (place.row, place.column) <= (closed_rows(split_lines(held.text)), 1)
        ):
            raise Refusal(f"cell {cell} of the notebook is the place for it, and takes no Python there")
        return Edit(content, place, place, cell)

    def _raw_line(self, row: int) -> str:
        """The line as the file has it: the last one of a cell has no end although the joined text gives it one."""
        cell, inside = self.module.source.place(row)
        held = self.module.source.cell(cell)
        if held is not None:
            lines = self.layout.lines_of_cell(held)
            return lines[inside - 1] if inside <= len(lines) else ""
        return self.layout.lines[row - 1] if row <= len(self.layout.lines) else ""

    def lines_before(self, row: int, content: str) -> Edit:
        """Insert whole lines before `row` of the text, or at the start of the next cell that is Python, where that of
        the row is not."""
        row = self.module.source.legible_row(row)
        cell, inside = self.module.source.place(row)
        line = self.layout.lines[row - 1] if row <= len(self.layout.lines) else ""
        place = Location(inside, 1)
        return self._inserted(content.replace("\n", line_end(line) or self.layout.newline), place, cell)

    def statement_of(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement around `node` before which a line can be put: an `elif` is none."""
        module = self.module
        statement = module.statement(node)
        parent = module.parent(statement)
        while isinstance(parent, cst.If) and parent.orelse is statement:
            statement, parent = parent, module.parent(parent)
        return statement

    def before(self, statement: cst.CSTNode, content: str) -> Edit:
        """Insert lines before a statement, and before the comments right above it."""
        row = first_row(self.module, statement, self.module.span(statement)[0].row)
        return self.lines_before(self._above_comments(statement, row), self.indented(content, statement))

    def indented(self, content: str, statement: cst.CSTNode) -> str:
        """Lines with the indentation of `statement`."""
        row = first_row(self.module, statement, self.module.span(statement)[0].row)
        line = self.layout.lines[row - 1]
        indent = line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]
        return "".join(f"{indent}{part}\n" if part.strip() else "\n" for part in content.rstrip("\n").split("\n"))

    def _above_comments(self, statement: cst.CSTNode, row: int) -> int:
        """The row of the first comment of those that stand right above `statement` and belong to it."""
        unit = self.module.unit_of(statement)
        inside = unit.piece.first < row
        leading = getattr(statement, "leading_lines", ()) if inside else ()
        count = 0
        for empty in reversed(leading):
            if empty.comment is None or _CELL_MARK.match(empty.comment.value):
                break
            count += 1
        if not inside:
            previous = self.layout.last_above(row)
            while row - 1 - count > previous:
                line = self.layout.lines[row - 2 - count]
                if not line.startswith("#") or _CELL_MARK.match(line):
                    break
                count += 1
        first_of_cell = row - self.module.source.place(row)[1] + 1
        return max(row - count, first_of_cell if self.module.source.cells else 1)

    def line_stop(self, offset: int) -> int:
        """The end of the line that holds `offset`, without its line end."""
        row = self.layout.location(offset).row
        line = self.layout.lines[row - 1]
        return self.layout.starts[row - 1] + len(line) - len(line_end(line))


def short(comment: str) -> str:
    """The comment, cut where it is long."""
    return comment if len(comment) <= 40 else f"{comment[:37]}..."
