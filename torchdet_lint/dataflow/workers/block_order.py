"""A name that a block of statements gives several values -> those that it may have where it is read."""

from __future__ import annotations

import ast
import bisect
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.workers.project_file import Element, Part, bindings

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_PLAIN = (ast.Assign, ast.AnnAssign)


class BlockOrder:
    """The rows of the statements of one block, and of those among them that surely bind a name."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._body = body
        self._starts = [statement.lineno for statement in body]
        self._bound: dict[str, list[int]] = {}
        for statement in body:
            for name, _ in bindings(statement) if isinstance(statement, _PLAIN) else ():
                self._bound.setdefault(name, []).append(statement.lineno)

    def left(self, name: ast.Name, values: Sequence[ast.expr]) -> Sequence[ast.expr]:
        """Of the `values` of a name those that `name` may read: none from below it, and none from above the statement
        of the block that bound it last. All of them where it stands in a loop, or not in the block."""
        row = getattr(name, "lineno", 0)
        place = bisect.bisect_right(self._starts, row) - 1
        around = self._body[place] if place >= 0 else None
        if len(values) < 2 or around is None or row > (around.end_lineno or around.lineno):
            return values
        if isinstance(around, _LOOPS) and row > around.lineno:
            return values
        until = around.lineno if isinstance(around, _PLAIN) else row
        rows = [getattr(value.over if isinstance(value, (Element, Part)) else value, "lineno", 0) for value in values]
        bound = self._bound.get(name.id, ())
        before = bisect.bisect_left(bound, around.lineno)
        since = bound[before - 1] if before else 0
        found = [value for value, at in zip(values, rows, strict=True) if not at or since <= at < until]
        return found or values
