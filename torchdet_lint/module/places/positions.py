"""A node of a file -> where it stands in the text; a row -> what stands there."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.finding import Location
from torchdet_lint.module import tree
from torchdet_lint.module.places.spans import Spans
from torchdet_lint.module.tree import deeply

if TYPE_CHECKING:
    from torchdet_lint.module.facts import Unit
    from torchdet_lint.module.loading import Loading
    from torchdet_lint.module.relations import Relations


class Places:
    """The positions in one file, counted for a statement or a unit only when something in it is asked for."""

    def __init__(self, loading: Loading, relations: Relations) -> None:
        self.loading = loading
        self.relations = relations
        self._skeleton = loading.facts.skeleton
        self._firsts = [unit.piece.first for unit in loading.facts.units]

    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        """Start and end of `node`: rows of the text and columns in characters, both from 1."""
        unit = self.relations.unit_of(node)
        known = self._spans(unit).get(node)
        if known is not None:
            (first, column), (last, end) = known
            return self._location(first + unit.offset, column), self._location(last + unit.offset, end)
        start, stop = self._places(unit, node)[node]
        return Location(start[0] + unit.offset, start[1] + 1), Location(stop[0] + unit.offset, stop[1] + 1)

    def _location(self, row: int, column: int) -> Location:
        """The place of a column that counts bytes from 0."""
        line = self._skeleton.lines[row - 1]
        return Location(row, (column if line.isascii() else len(line.encode()[:column].decode())) + 1)

    def _spans(self, unit: Unit) -> Spans:
        if unit.spans is None:
            root = unit.root
            assert root is not None
            unit.spans = Spans(root, self.loading.parsed_text(unit), self.loading.facts.parents)
        return unit.spans

    def _places(self, unit: Unit, node: cst.CSTNode) -> tree.Positions:
        """Positions that have `node`: those of its simple statement do, and cost less than those of the unit."""
        line = next(
            (one for one in (node, *self.relations.ancestors(node)) if isinstance(one, cst.SimpleStatementLine)), None
        )
        return self._positions(unit) if line is None else self._of_line(unit, line)

    def _of_line(self, unit: Unit, line: cst.SimpleStatementLine) -> tree.Positions:
        row = self._spans(unit).row(line) if unit.positions is None else None
        if row is None:
            return self._positions(unit)
        if id(line) not in unit.lines:
            root = unit.root
            assert root is not None
            first = self._skeleton.lines[row + unit.offset - 1]
            indent = first[: len(first) - len(first.lstrip())]
            unit.lines[id(line)] = deeply(lambda: tree.Positions(root, line, row, indent))
        return unit.lines[id(line)]

    def _positions(self, unit: Unit) -> tree.Positions:
        if unit.positions is None:
            root = unit.root
            assert root is not None
            unit.positions = deeply(lambda: tree.Positions(root))
        return unit.positions

    def node_at(self, row: int, column: int | None = None) -> cst.CSTNode:
        """The call that starts at `row` and `column` (from 0, in bytes, as `ast` counts), else the statement that
        starts in `row`: of a block, what its first line evaluates."""
        unit = self._unit_at(row)
        assert unit.root is not None
        here = row - unit.offset
        calls = self._calls(unit, row, column) if column is not None else []
        if calls:
            return calls[0]
        spans = self._spans(unit)
        statement = spans.statement_at(here)
        return unit.root if statement is None or not spans.starts_in(statement, here) else _header(statement)

    def calls_at(self, row: int, column: int) -> list[cst.Call]:
        """The calls that start at `row` and `column` (as `node_at` counts), the inner before the outer."""
        self.loading.load_statements()
        return self._calls(self._unit_at(row), row, column)

    def _calls(self, unit: Unit, row: int, column: int) -> list[cst.Call]:
        here = row - unit.offset
        return self._spans(unit).calls_at(here, column) or [
            node
            for node, start in self._positions(unit).starting_in(here)
            if isinstance(node, cst.Call) and self._bytes(row, start) == column
        ]

    def starting_in(self, row: int) -> list[cst.CSTNode]:
        """The nodes that start in `row` (from 1), inner ones first."""
        unit = self._unit_at(row)
        return [node for node, _ in self._positions(unit).starting_in(row - unit.offset)]

    def _unit_at(self, row: int) -> Unit:
        """The unit that holds `row`, parsed."""
        units = self.loading.facts.units
        unit = units[bisect.bisect_right(self._firsts, row) - 1]
        if not unit.piece.first <= row <= unit.piece.last:
            unit = units[0]
        self.loading.load(unit)
        return unit

    def _bytes(self, row: int, column: int) -> int:
        return len(self._skeleton.lines[row - 1][:column].encode())

    def noqa_rows(self, node: cst.CSTNode) -> tuple[int, int]:
        """First and last row of the statement that holds `node` (of its header, for a block)."""
        statement = self.relations.statement(node)
        start, end = self.span(statement)
        body = getattr(statement, "body", None)
        if isinstance(body, cst.IndentedBlock):
            return start.row, max(start.row, self.span(body.body[0])[0].row - 1)
        return start.row, end.row


def _header(statement: cst.CSTNode) -> cst.CSTNode:
    """What the first line of a block evaluates; a simple statement itself."""
    for name in ("iter", "test", "subject"):
        part = getattr(statement, name, None)
        if isinstance(part, cst.CSTNode):
            return part
    items = getattr(statement, "items", None)
    return items[0] if items else statement
