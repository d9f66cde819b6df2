"""A file that is read in parts says what the whole file says."""

from __future__ import annotations

import ast
import gc
import weakref

import pytest
import rulebook

from torchdet_lint.catalogue import loading
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.library import Library
from torchdet_lint.program.events import MODULE
from torchdet_lint.program.summary import Shelf, Summary
from torchdet_lint.program.syntax.hollow import Hollow
from torchdet_lint.program.syntax.vocabulary import Vocabulary
from torchdet_lint.source.lines import split_lines

LIBRARY = Library(loading.load())
TEXTS = sorted(
    {case.example.code for case in rulebook.cases() if case.code != "TDL001" and "def " in case.example.code}
)
AWKWARD = '''
class A:
    def one(self): return f(1)
    def two(self):
        """Text
not indented
"""
        return g(2)
    async def three(self):
        async with a as b:
            await h(b)
    def four(self) -> (
        int
    ):

        # a comment
        @decorated(1)
        def inner():
            yield k(3)
        return inner
def five(x=[1,
            2]): y = m(x); return y
def six(): \\
  return n()
if True:
    def seven():
        return o()
'''


def summary(text: str, bodies: tuple[int, ...], shelf: Shelf | None = None) -> Summary:
    return Summary(lambda: Hollow(split_lines(text), bodies), lambda: text, Vocabulary.of(LIBRARY), shelf=shelf)


def functions(text: str) -> list[str]:
    found, queue = [MODULE], [("", node) for node in ast.parse(text).body]
    while queue:
        prefix, node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append(prefix + node.name)
            queue += [(f"{found[-1]}.", child) for child in node.body]
        else:
            queue += [(prefix, child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


@pytest.mark.parametrize("text", [AWKWARD, AWKWARD.replace("\n", "\r\n"), *TEXTS[::3]], ids=lambda text: str(len(text)))
def test_bodies_are_read_when_they_are_asked_for(text: str) -> None:
    rows = skeleton.hollowed(text).bodies
    names = functions(text)
    for order in (names, names[::-1]):
        whole, parts = summary(text, ()), summary(text, rows)
        for name in order:
            assert parts.body(name) == whole.body(name), name
            assert parts.class_summary(name) == whole.class_summary(name), name
        assert parts.dispatch == whole.dispatch


def test_bodies_are_those_that_have_their_rows_to_themselves() -> None:
    assert skeleton.hollowed(AWKWARD).bodies == (5, 8, 10, 11, 17, 20, 24, 24)
    assert len(Hollow(split_lines(AWKWARD), skeleton.hollowed(AWKWARD).bodies).tree()[0].body) == 4


def test_rows_that_are_not_of_this_text_do_no_harm() -> None:
    text = "def f():\n    return g(\n        1)\n"
    assert summary(text, (3, 3)).body("f") == summary(text, ()).body("f")


def test_the_shelf_lets_go_of_what_was_used_first() -> None:
    shelf = Shelf(40)
    one, two = (summary(f"def f():\n    return {name}()\n", (), shelf) for name in "gh")
    assert one.body("f") and two.body("f")
    assert (one._opened is None, two._opened is None) == (True, False)
    assert one.stars == () and one.body("f").returns == ()  # type: ignore[union-attr]


def test_a_file_is_not_parsed_for_a_name_that_its_text_does_not_hold() -> None:
    def parsed() -> Hollow:
        raise AssertionError("parsed")

    text = "import torch\n\n\ndef draw():\n    return torch.rand(3)\n"
    made = Summary(parsed, lambda: text, Vocabulary.of(LIBRARY))
    assert (made.stands_for("seed"), made.stars, made.dispatch) == ((), (), {})
    with pytest.raises(AssertionError, match="parsed"):
        made.stands_for("draw")


def test_a_name_is_found_in_other_letters_and_a_star_over_a_line_end() -> None:
    text = "from .parts import\\\n  *\n\ufb01t = print\n"
    made = summary(text, ())
    assert (made.stands_for("fit"), made.stars) == (("builtins.print",), (".parts",))


def test_a_file_that_became_shorter_while_it_is_read_is_read_whole():
    tree, _ = Hollow(["x = 1\n", "def f():\n", "    return 2\n"], (3, 3, 9, 12)).tree()
    assert ast.unparse(tree) == "x = 1\n\ndef f():\n    return 2"


@pytest.mark.parametrize("text", [AWKWARD, *TEXTS[:40]])
def test_a_file_that_is_let_go_needs_no_collector(text: str) -> None:
    told = summary(text, skeleton.cut(text).bodies)
    for name in functions(text):
        told.body(name)
        told.class_summary(name)
        told.attribute(name, "net")
    opened = told._file
    trees = [weakref.ref(scope.node) for scope in opened.scopes.by_name.values()]
    del opened
    gc.disable()
    try:
        told.close()
        assert [tree for tree in trees if tree() is not None] == []
    finally:
        gc.enable()
