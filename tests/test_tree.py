"""The short cuts through libcst give what libcst gives."""

from __future__ import annotations

import libcst as cst
import pytest
import rulebook
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from torchdet_lint.module import tree

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


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_positions_of_one_statement_are_those_of_the_whole(text: str) -> None:
    root = tree.parse(text)
    whole = tree.Positions(root)
    rows = tree.rows_of_lines(root, text)
    lines = [node for node in _all(root) if isinstance(node, cst.SimpleStatementLine)]
    assert len(lines) == len(rows)
    for line in lines:
        (row, column), _ = whole[line]
        assert rows[id(line)] == row
        alone = tree.Positions(root, line, row, text.splitlines()[row - 1][:column])
        assert [alone[node] for node in _all(line)] == [whole[node] for node in _all(line)]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1; y = f(\n  2)\nif x: y = 2; z = 3\nelif y:\n\tz = (\n\t 1)\nelse: pass\nw = 5\n",
        "try:\n  a = 1\nexcept A:\n  b = 2\nexcept B: c = 3\nelse:\n  d = 4\nfinally:\n  # why\n  e = f(\n 5)\n",
        "match x:\n    case 1:\n        a = 1\n    case _: b = 2\nwith a as b:\n    c = '''\n'''; d = 1\n",
        "@d(\n 1)\ndef f(a=lambda: 0):\n    'doc'\n    while a:\n        b = 1\n    else:\n        c = 2\n",
        "for i in x:\n\n    # one\n    a = 1  # two\nelse:\n    class A:\n        b: int = (1,\n  2)\n",
    ],
)
def test_statements_are_counted_as_ast_counts_them(text: str) -> None:
    test_positions_of_one_statement_are_those_of_the_whole(text)


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
