"""Lines that hand a parameter on -> those whose parameter is off by default, and left so by every call in sight."""

from __future__ import annotations

import ast
import bisect
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import defaults_of, tells_all, walk
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import last_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def left_off(body: list[ast.stmt], rows: Iterable[int], texts: Iterable[str]) -> tuple[int, ...]:
    """Those of `rows` of a file whose assignment gives a parameter of a top-level function that is False by default,
    where the calls in the files `texts`, of which there is one at least, pass nothing for it."""
    functions = [one for one in body if isinstance(one, ast.FunctionDef)]
    starts = [one.lineno for one in functions]
    inside: dict[ast.FunctionDef, list[int]] = {}
    for row in rows:
        place = bisect.bisect_right(starts, row) - 1
        if place >= 0 and row <= (functions[place].end_lineno or 0):
            inside.setdefault(functions[place], []).append(row)
    handed = {function: given for function, own in inside.items() if (given := _handed_on(function, own))}
    if not handed:
        return ()
    uses = _uses(texts, {function.name for function in handed})
    return tuple(
        row
        for function, given in handed.items()
        for row, names in given.items()
        if uses[function.name]
        and all(use is not None and not _passes(use, function, names) for use in uses[function.name])
    )


def _handed_on(function: ast.FunctionDef, rows: Sequence[int]) -> dict[int, set[str]]:
    """The parameters that each of the rows assigns to something, where all are False by default and keep that value."""
    nodes = list(walk(function))
    off = {
        name
        for name, default in defaults_of(function.args)
        if isinstance(default, ast.Constant) and default.value is False
    }
    off -= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    given: dict[int, set[str]] = {row: set() for row in rows}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.lineno in given:
            given[node.lineno].add(node.value.id)
    return {row: names for row, names in given.items() if names and names <= off}


def _uses(texts: Iterable[str], names: set[str]) -> dict[str, list[ast.Call | None]]:
    """The calls in the files `texts` of what is called by one of the names; None for each other use."""
    found: dict[str, list[ast.Call | None]] = {name: [] for name in names}
    for text in texts:
        if not any(name in text for name in names):
            continue
        nodes = [node for statement in parsed_body(text) for node in walk(statement)]
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Call) and (word := last_word(node.func)) in found:
                found[word].append(node)
            elif (
                isinstance(node, (ast.Name, ast.Attribute))
                and id(node) not in called
                and (word := last_word(node)) in found
            ):
                found[word].append(None)
    return found


def _passes(call: ast.Call, function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a call gives one of the parameters `names` anything, or may do so."""
    if not tells_all(call):
        return True
    positional = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return not names.isdisjoint((*positional[: len(call.args)], *(word.arg for word in call.keywords)))
