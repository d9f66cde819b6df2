"""A line that hands a parameter on -> whether that is off by default, and every call in sight leaves it so."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import defaults_of, last_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def stays_off(body: list[ast.stmt], row: int, texts: Iterable[str]) -> bool:
    """Whether the assignment in `row` of a file gives a parameter of a top-level function that is False by default, and
    the calls in the files `texts`, of which there is one at least, pass nothing for it."""
    function = next(
        (one for one in body if isinstance(one, ast.FunctionDef) and one.lineno <= row <= (one.end_lineno or 0)), None
    )
    if function is None:
        return False
    given = {
        node.value.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno == row and isinstance(node.value, ast.Name)
    }
    off = {
        name
        for name, default in defaults_of(function.args)
        if isinstance(default, ast.Constant) and default.value is False
    }
    bound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if not given or not given <= off - bound:
        return False
    uses = [use for text in texts if function.name in text for use in _uses(parsed_body(text), function.name)]
    return bool(uses) and all(use is not None and not _passes(use, function, given) for use in uses)


def _uses(body: list[ast.stmt], name: str) -> Iterator[ast.Call | None]:
    """The calls of what is called `name` in a file; None for each other use."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Call) and last_word(node.func) == name:
            yield node
        elif isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called and last_word(node) == name:
            yield None


def _passes(call: ast.Call, function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a call gives one of the parameters `names` anything, or may do so."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(word.arg is None for word in call.keywords):
        return True
    positional = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return not names.isdisjoint((*positional[: len(call.args)], *(word.arg for word in call.keywords)))
