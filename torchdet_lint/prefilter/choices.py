"""A file -> what the options of its command line may be, by the names of the attributes that keep them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.syntax import tells_all, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def options_of(statements: Sequence[ast.stmt]) -> dict[str, tuple[Any, ...]]:
    """Attribute -> the texts that `choices` allow and the default, which nobody checks; nothing where one of its
    options may be anything."""
    nodes = [node for statement in statements for node in walk(statement)]
    tables = _tables(statements, nodes)
    found: dict[str, tuple[Any, ...]] = {}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            words = {word.arg: word.value for word in node.keywords if word.arg is not None}
            values = tuple(_values(node, words, tables)) if tells_all(node) else ()
            name = _kept_as(node, words)
            known = found.get(name, values)
            found[name] = tuple(dict.fromkeys((*known, *values))) if known and values else ()
    return found


def _tables(statements: Sequence[ast.stmt], nodes: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """The values of names that the file binds once, at top level."""
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {
        one.targets[0].id: one.value
        for one in statements
        if isinstance(one, ast.Assign)
        and len(one.targets) == 1
        and isinstance(one.targets[0], ast.Name)
        and stored.count(one.targets[0].id) == 1
    }


def _kept_as(call: ast.Call, words: dict[str, ast.expr]) -> str:
    """The attribute that keeps an option; nothing where it is not in sight."""
    if "dest" in words:
        return str(words["dest"].value) if isinstance(words["dest"], ast.Constant) else ""
    flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = [flag for flag in flags if flag.startswith("--")]
    return (long or flags or [""])[0].lstrip("-").replace("-", "_")


def _values(call: ast.Call, words: dict[str, ast.expr], tables: dict[str, ast.expr]) -> Iterator[Any]:
    """What an option may be, a text each time, or None where it is left out."""
    choices, default = words.get("choices"), words.get("default", ast.Constant(None))
    choices = tables.get(choices.id) if isinstance(choices, ast.Name) else choices
    elements = choices.elts if isinstance(choices, (ast.List, ast.Tuple, ast.Set)) else []
    texts = [one.value for one in elements if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    several = not {"action", "nargs"}.isdisjoint(words)
    if texts and len(texts) == len(elements) and isinstance(default, ast.Constant) and not several:
        yield from texts
        yield default.value
