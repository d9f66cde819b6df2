"""The text of a file -> its tree, with the bodies of functions parsed when they are asked for."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.skeleton import SyntaxFault

if TYPE_CHECKING:
    from collections.abc import Sequence


class Hollow:
    """The text of a file, without the bodies of its functions until one is asked for: what runs a file seldom runs a
    tenth of it, and a body that is not parsed costs nothing."""

    def __init__(self, lines: Sequence[str], bodies: Sequence[int] = (), tree: ast.Module | None = None) -> None:
        """`bodies` are first and last rows, as `Skeleton` has them; `tree` is what is left without them, where
        that is known. Rows beyond the end are those of a file that has become shorter since they were read."""
        self.lines = lines
        if bodies and bodies[-1] > len(lines):
            bodies = ()
        self._bodies = dict(zip(bodies[::2], bodies[1::2], strict=True))
        self._tree = tree

    @functools.cached_property
    def text(self) -> str:
        """The whole of the file."""
        return "".join(self.lines)

    def tree(self) -> tuple[ast.Module, int]:
        """The file with `pass` for the bodies, and how many characters were parsed; empty where that is not Python."""
        if self._tree is not None:
            return self._tree, 0
        lines = list(self.lines)
        for first, last in self._bodies.items():
            row = lines[first - 1]
            lines[first - 1 : last] = [f"{row[: len(row) - len(row.lstrip())]}pass\n", *["\n"] * (last - first)]
        text = "".join(lines)
        tree = parsed(text)
        if tree is None and self._bodies:
            self._bodies = {}
            text = self.text
            tree = parsed(text)
        return tree or ast.Module([], []), len(text)

    def fill(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        """Put into `node` the body that was left out, and say how many characters that took."""
        first = node.body[0].lineno
        last = self._bodies.pop(first, 0)
        if not last:
            return 0
        text = "".join(self.lines[first - 1 : last])
        # An `async def` may hold all that a function may, and the rows stay those of the file.
        filled = parsed("\n" * (first - 2) + f"async def _():\n{text}")
        if filled is not None:
            node.body = filled.body[0].body  # type: ignore[attr-defined]
        return len(text)


def parsed(text: str) -> ast.Module | None:
    """The tree of `text`, or None where it is not Python to the running interpreter."""
    try:
        return skeleton.parsed(text)
    except SyntaxFault:
        return None


def parsed_body(text: str) -> list[ast.stmt]:
    """The statements of `text`; none where it is not Python."""
    tree = parsed(text)
    return tree.body if tree is not None else []
