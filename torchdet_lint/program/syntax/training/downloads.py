"""The statements of a function -> those that run only where something is to be downloaded."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.syntax.shapes import last_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ASKED = "download"


def downloading(body: Sequence[ast.stmt]) -> frozenset[ast.AST]:
    """The statements below `if download:`, or `if download and not path.exists():`."""
    found = (node for statement in body for node in walk(statement))
    arms = (node.body for node in found if isinstance(node, ast.If) and any(map(_is_asked, _operands(node.test))))
    return frozenset(
        node for arm in arms for statement in arm for node in walk(statement) if isinstance(node, ast.stmt)
    )


def _operands(test: ast.expr) -> Iterable[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else (test,)


def _is_asked(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and last_word(node).endswith(_ASKED)
