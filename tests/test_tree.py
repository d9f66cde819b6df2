"""The short cuts through libcst give what libcst gives."""

from __future__ import annotations

import sys

import libcst as cst
import pytest
import rulebook
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from torchdet_lint.module import tree
from torchdet_lint.module.places.spans import Spans
from torchdet_lint.source.lines import split_lines

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
    spans = Spans(root, text, _parents(root))
    for line in [node for node in _all(root) if isinstance(node, cst.SimpleStatementLine)]:
        (row, column), (last, _) = whole[line]
        assert spans.row(line) == row
        assert {spans.statement_at(one) for one in range(row, last + 1)} == {line}
        assert spans.starts_in(line, row)
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


PARTS = """\
x = y = (f)(a, *(b), k=(1), **{'a': b, **c})[i][j:k, 1][(2, 3)] + -z.w ** (1 if not p else q)
assert a or b and (c or d) or f(e), (m)
s = [1, *t, (2), (3, 4)], {5, g('ä', h(6))}; u = "a" "b"; v = f"{f(a)}"; w: int = f(7)
if (n := f(8)) < f(9) <= (g(10)):
    return [f(c) for a, b in f(11) if f(12) if d for c in b], {k: f(v) for k, v in f(13)}, (f(e) for e in f(14))
@deco(f(15))
async def f(a=f(16)):
    async with f(17) as b, f(18): await f(19)
    async for i in f(20): x += f(21)
    raise f(22) from f(23)
@d
class A(f(24), m=f(25)):
    lambda a=f(26): f(27)
while f(28): yield (f(29), 'ä'); print(file=(yield f(30)), *f(31), **f(32)); del a[f(33)]
"""


@pytest.mark.parametrize("text", [PARTS, PARTS.replace("\n", "\r\n"), *TEXTS], ids=range(len(TEXTS) + 2))
def test_ast_places_a_node_where_libcst_does(text: str) -> None:
    root = tree.parse(text)
    whole, spans = tree.Positions(root), Spans(root, text, _parents(root))
    lines = [line.encode() for line in split_lines(text)]
    told: set[type] = set()
    for node in _all(root):
        span = spans.get(node)
        if span is not None:
            assert tuple((row, len(lines[row - 1][:column].decode())) for row, column in span) == whole[node]
            told.add(type(node))
            if isinstance(node, cst.Call):
                assert node in (spans.calls_at(*span[0]) or [node])
    assert cst.SimpleStatementLine in told
    if text == PARTS:
        assert {cst.Arg, cst.Attribute, cst.Call, cst.Dict, cst.For, cst.ListComp, cst.NamedExpr, cst.Tuple} <= told


def test_calls_on_one_line_are_placed_without_writing_out_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree.parse("x = f(1)(g(2), k=h(3)).m(4)\n" * 3)
    spans = Spans(root, root.code, _parents(root))
    monkeypatch.setattr(cst.Call, "_codegen_impl", None)
    calls = [node for node in _all(root) if isinstance(node, cst.Call)]
    assert len(calls) == 15
    assert {spans.get(call) is None for call in calls} == {False}
    inner, outer = spans.calls_at(2, 4)[0], spans.calls_at(2, 4)[-1]
    assert len(spans.calls_at(2, 4)) == 3
    assert isinstance(inner.func, cst.Name)
    assert isinstance(outer.func, cst.Attribute)
    assert [call.func.value for call in spans.calls_at(3, 9) if isinstance(call.func, cst.Name)] == ["g"]


def _parents(root: cst.CSTNode) -> dict[int, cst.CSTNode]:
    return {id(child): node for node in _all(root) for child in node.children}


def _plain(where: CodeRange) -> tuple[tuple[int, int], tuple[int, int]]:
    return (where.start.line, where.start.column), (where.end.line, where.end.column)


def _all(root: cst.CSTNode) -> list[cst.CSTNode]:
    nodes = [root]
    for node in nodes:
        nodes.extend(child for child in tree.children(node) if isinstance(child, cst.CSTNode))
    return nodes


def test_the_code_of_an_expression_that_is_deeper_than_the_stack() -> None:
    text = "x" + ".view(1)" * 700
    statement = tree.parse(f"{text}\n").body[0].body[0]
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        cst.Module([]).code_for_node(statement.value)
    assert tree.code(statement.value) == text
    assert sys.getrecursionlimit() == limit


def test_validation_is_back_afterwards() -> None:
    for text in ("x = 1\n", "x = = 1\n"):
        try:
            tree.parse(text)
        except cst.ParserSyntaxError:
            assert text == "x = = 1\n"
        with pytest.raises(cst.CSTValidationError):
            cst.Name("")
