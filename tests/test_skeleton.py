from __future__ import annotations

import ast

import pytest

from torchdet_lint.dataflow.workers.project_file import every_statement
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.skeleton import SyntaxFault

SOURCE = '''"""Doc."""
import os
x = 1

@decorated(
    1)
def f():
    return """
not indented
"""

class A(Base):
    """Doc."""

    y = 2
    # a comment
    @property
    def g(self):
        return 1
    async def h(self): pass
    z = 3

class B: w = 1; v = 2
'''


def test_a_file_is_cut_at_its_statements():
    cut = skeleton.cut(SOURCE)
    pieces = [(piece.kind, piece.first, piece.last, piece.owner, piece.name) for piece in cut.pieces]
    assert pieces == [
        ("statements", 1, 1, -1, ""),
        ("imports", 2, 2, -1, ""),
        ("statements", 3, 3, -1, ""),
        ("function", 5, 10, -1, "f"),
        ("header", 12, 12, 0, "A"),
        ("statements", 13, 15, 0, ""),
        ("function", 17, 19, 0, "g"),
        ("function", 20, 20, 0, "h"),
        ("statements", 21, 21, 0, ""),
        ("statements", 23, 23, -1, ""),
    ]
    assert cut.classes[0].methods == ("g", "h")
    assert cut.text(cut.pieces[4]) == "class A(Base):\n    pass\n"


def test_a_header_keeps_the_indentation_of_its_body():
    assert skeleton.cut("class A(\n  B):\n\tx = 1\n").pieces[0].pad == "\tpass\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_those_of_python(newline):
    text = newline.join(["a = 1\f", "b = '\x1c\u2028'", "c = 3"])
    assert "".join(skeleton.split_lines(text)) == text
    assert len(skeleton.split_lines(text)) == 3
    assert [(piece.first, piece.last) for piece in skeleton.cut(text).pieces] == [(1, 3)]


@pytest.mark.parametrize(
    ("text", "row"),
    [("x = (\n", 1), ("a = 1\nb = = 2\n", 2), ("print 'hello'\n", 1), ("x = '\0'\n", 1), ("(" * 500 + ")" * 500, 1)],
)
def test_what_is_no_python_says_where(text, row):
    with pytest.raises(SyntaxFault) as caught:
        skeleton.cut(text)
    assert caught.value.row == row
    assert caught.value.column >= 1
    assert caught.value.reason


def test_an_empty_file_has_no_pieces():
    assert skeleton.cut("").pieces == ()


def test_a_long_assignment_at_top_level_is_a_piece_of_its_own():
    table = "TABLE = {\n" + "".join(f"    {n}: f({n}),\n" for n in range(9)) + "}\n"
    kinds = [(piece.kind, piece.name) for piece in skeleton.cut(f"import a\n{table}x = 1\n").pieces]
    assert kinds == [("imports", ""), ("table", "TABLE"), ("statements", "")]
    shares_a_row = skeleton.cut(f"{table.rstrip()}; y = 2\n").pieces
    assert [(piece.kind, piece.first, piece.last) for piece in shares_a_row] == [("statements", 1, 11)]
    assert skeleton.cut(f"class A:\n    {table.replace(chr(10), chr(10) + '    ')}\n").pieces[1].kind == "statements"
    assert skeleton.cut(table.replace("TABLE", "a.b")).pieces[0].kind == "statements"


def test_docstrings_and_comments_are_not_spoken():
    text = 'def f():\n    """empty\n    scatter"""\n    # bincount\n    return cumsum  # here\n'
    cut = skeleton.cut(text)
    assert cut.spoken(cut.pieces[0]) == "def f():\n    return cumsum  # here\n"


def test_imports_are_read_without_a_parse():
    text = "from __future__ import annotations\nimport a.b, c.d as e\n# why\n"
    text += "from . import f\nfrom ..g import (\n    h as i,\n    j)\n"
    (piece,) = skeleton.cut(text + "from k import *\n").pieces
    assert (piece.kind, piece.first, piece.last) == ("imports", 1, 8)
    assert piece.binds[1:] == (
        ("a", "a"), ("e", "c.d"), ("f", ".f"), ("i", "..g.h"), ("j", "..g.j"), ("*", "k"),
    )  # fmt: skip
    shared = skeleton.cut("import a\nimport b; x = 1\nimport c\n").pieces
    assert [(piece.kind, piece.first, piece.last) for piece in shared] == [("statements", 1, 2), ("imports", 3, 3)]


def test_the_type_parameters_of_a_newer_python_are_left_out():
    text = (
        "class Box[T: (int, list[str])](Base[T]):\n    def get[U](self, x: list[U]) -> U: return self.x[0]\n"
        "async def f[\n  T,\n](x): pass\ntype Pair[A] = tuple[A, A]\ntype = 3\ntype [x] == 3\n"
    )
    older = skeleton.without_type_parameters(text)
    assert [len(line) for line in older.split("\n")] == [len(line) for line in text.split("\n")]
    assert older.replace(" ", "") == (
        "classBox(Base[T]):\ndefget(self,x:list[U])->U:returnself.x[0]\n"
        "asyncdeff\n\n(x):pass\nPair=tuple[A,A]\ntype=3\ntype[x]==3\n"
    )
    body = skeleton.parsed(text.replace("[\n  T,\n]", "[T]")).body
    assert [getattr(node, "name", "") for node in body[:2]] == ["Box", "f"]


def test_every_statement_comes_as_in_a_walk_over_all_nodes():
    source = """
try:
    for a in b: c
    else: d
except E: e
finally:
    match x:
        case [y] if z: h
        case _:
            with i as j: k
if l: m
elif n:
    class C:
        async def o(self): return lambda: p
else:
    while q: r
"""
    tree = ast.parse(SOURCE + source)
    walked = [
        node for node in ast.walk(tree) if isinstance(node, (ast.mod, ast.stmt, ast.excepthandler, ast.match_case))
    ]
    assert list(every_statement(tree)) == walked
