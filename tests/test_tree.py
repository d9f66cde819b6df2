"""The short cuts through libcst give what libcst gives."""

from __future__ import annotations

import libcst as cst
import pytest
import rulebook
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from torchdet_lint import tree

TEXTS = sorted({case.example.code for case in rulebook.cases() if case.code != "TDL001"})[::7]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_parse_and_positions(text: str) -> None:
    ours, theirs = tree.parse(text), cst.parse_module(text)
    assert ours.deep_equals(theirs)
    assert ours.code == text
    wanted = MetadataWrapper(theirs, unsafe_skip_copy=True).resolve(PositionProvider)
    found = tree.Positions(ours)
    assert [found[node] for node in _all(ours)] == [_plain(wanted[node]) for node in _all(theirs)]
    at = [(node, found[node][0]) for node in _all(ours)]
    for row in range(1, len(text.splitlines()) + 1):
        starting = dict(found.starting_in(row))
        assert all(starting[node] == start[1] for node, start in at if start[0] == row)


def _plain(where: CodeRange) -> tuple[tuple[int, int], tuple[int, int]]:
    return (where.start.line, where.start.column), (where.end.line, where.end.column)


def _all(root: cst.CSTNode) -> list[cst.CSTNode]:
    nodes = [root]
    for node in nodes:
        nodes.extend(child for child in tree.children(node) if isinstance(child, cst.CSTNode))
    return nodes


def test_validation_is_back_afterwards() -> None:
    for text in ("x = 1\n", "x = = 1\n"):
        try:
            tree.parse(text)
        except cst.ParserSyntaxError:
            assert text == "x = = 1\n"
        with pytest.raises(cst.CSTValidationError):
            cst.Name("")
