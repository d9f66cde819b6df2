"""A replacement, a removal or new lines at one place -> the edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.fixes.layout import is_text

if TYPE_CHECKING:
    from torchdet_lint.finding import Edit, InsertBefore, Replace
    from torchdet_lint.fixes.draft import Draft


def replaced(draft: Draft, change: Replace) -> Edit:
    """Replace an expression or a statement, or take a statement out."""
    node = change.node
    start, end = draft.layout.span(node)
    if isinstance(node, (cst.BaseSmallStatement, cst.SimpleStatementLine)):
        if not change.content:
            return _removed(draft, node)
        lead = draft.layout.lines[draft.layout.location(start).row - 1]
        indent = lead[: len(lead) - len(lead.lstrip(" \t"))]
        content = draft.filled(change.content, node).rstrip("\n").replace("\n", draft.layout.newline + indent)
        return draft.editor.edit(start, end, content)
    content = draft.filled(change.content, node)
    if "\n" in content:
        # What libcst writes of a part of an indented block has lost the indentation of the block.
        content = content.replace(draft.module.code(node), draft.module.text[start:end])
    return draft.editor.edit(start, end, content)


def _removed(draft: Draft, node: cst.CSTNode) -> Edit:
    """Take a simple statement out: its line, its part of the line, or `pass` where a block would be left empty."""
    module, layout = draft.module, draft.layout
    line = node if isinstance(node, cst.SimpleStatementLine) else module.parent(node)
    assert isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
    start, end = layout.span(node)
    if node is not line and len(line.body) > 1:
        index = next(place for place, small in enumerate(line.body) if small is node)
        if index + 1 < len(line.body):
            return draft.editor.edit(start, layout.span(line.body[index + 1])[0], "")
        return draft.editor.edit(layout.span(line.body[index - 1])[1], end, "")
    block = module.parent(line)
    alone = isinstance(line, cst.SimpleStatementSuite) or (
        isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    )
    if alone:
        return draft.editor.edit(start, end, "pass")
    first, last = layout.location(start).row, layout.location(end).row
    return draft.editor.edit(layout.starts[first - 1], layout.starts[last], "")


def inserted(draft: Draft, change: InsertBefore) -> Edit:
    """Insert lines before a statement, or after it where it is a docstring."""
    statement = draft.editor.statement_of(change.node)
    content = draft.filled(change.content, change.node)
    block = draft.module.parent(statement)
    if (
        isinstance(statement, cst.SimpleStatementLine)
        and is_text(statement.body[0])
        and isinstance(block, (cst.IndentedBlock, cst.Module))
        and block.body[0] is statement
    ):
        return draft.editor.lines_after(draft.module.span(statement)[1].row, draft.editor.indented(content, statement))
    return draft.editor.before(statement, content)
