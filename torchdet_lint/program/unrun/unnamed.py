"""The text of a file -> what of it runs where the file is started: not the functions that nothing which runs names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children, defaults_of
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import FUNCTIONS
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# What Python itself calls, for an object.
_SPECIAL = lazy(r"__\w+__")
# What may call any function of the file.
_PICKS = lazy(r"\b(?:globals|locals|vars|eval|exec)[ \t]*\(|\bgetattr[ \t]*\(\s*[\w.]+\s*,\s*[^\"'\s]|\bfire\.Fire\b")


def running(text: str) -> str:
    """The text of a file without the functions that nothing names which runs when it is started; all of it where it
    calls functions by names that it works out."""
    if _PICKS.search(text) is not None:
        return text
    waiting: list[_Function] = []
    words: set[str] = set()
    todo: list[ast.AST] = [*parsed_body(text)]
    while todo:
        waiting += _functions(todo, words)
        called = {one for one in waiting if one.name in words or one.decorator_list or _SPECIAL.fullmatch(one.name)}
        waiting = [one for one in waiting if one not in called]
        todo = [part for function in called for part in children(function)]
    dead = {row for one in waiting for row in range(one.body[0].lineno, (one.end_lineno or one.lineno) + 1)}
    return "".join(line for row, line in enumerate(split_lines(text), start=1) if row not in dead)


def _functions(nodes: Iterable[ast.AST], words: set[str]) -> Iterator[_Function]:
    """The functions that the nodes define, but for those in these; what the nodes name is added to `words`."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, FUNCTIONS):
            yield node
            stack += (default for _, default in defaults_of(node.args))
            continue
        words.update(_named(node))
        stack += children(node)


def _named(node: ast.AST) -> Iterator[str]:
    """What a node names: as a name, an attribute, a text, or what it imports."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str() as name) | ast.alias(name=name):
            yield name
