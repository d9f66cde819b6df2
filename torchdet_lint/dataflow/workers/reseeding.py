"""The methods of a class -> the attributes in which a worker keeps a generator with a seed of its own."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.dataflow.workers.project_file import assigned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SEEDS = ("seed", "manual_seed")
_ROUNDS = 3


class _Told(NamedTuple):
    """One statement or call: the names that get something, as they are written, and what they get."""

    names: tuple[str, ...]
    given: tuple[ast.expr, ...]


@functools.lru_cache(maxsize=64)
def reseeded(
    functions: tuple[ast.FunctionDef, ...], telling: frozenset[str], methods: frozenset[str]
) -> frozenset[str]:
    """The attributes of `self` to which `functions`, those of one class that a worker runs, give a generator or a seed
    made of what is another value in each worker or for each item: names that are `telling`, and the parameters of
    `methods`, which a worker calls itself, followed through other names."""
    told = [(function, list(_told(function))) for function in functions]
    special = {function.name: set(_parameters(function)) if function.name in methods else set() for function, _ in told}
    attributes = set[str]()
    for _ in range(_ROUNDS):
        before = len(attributes) + sum(map(len, special.values()))
        for function, statements in told:
            own = special[function.name]
            for one in statements:
                if any(word in telling or word in own or word in attributes for word in _words(one.given)):
                    own.update(name for name in one.names if not name.startswith("self."))
                    attributes.update(name for name in one.names if name.startswith("self."))
            for name, word in _handed(function, own | telling | attributes):
                if name in special:
                    special[name].add(word)
        if before == len(attributes) + sum(map(len, special.values())):
            break
    return frozenset(name.removeprefix("self.") for name in attributes)


def _told(function: ast.FunctionDef) -> Iterator[_Told]:
    for node in ast.walk(function):
        for target, value in assigned(node):
            if name := _name(target):
                yield _Told((name,), (value,))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SEEDS:
            if name := _name(node.func.value):
                yield _Told((name,), tuple(node.args))
        elif isinstance(node, ast.NamedExpr):
            yield _Told((node.target.id,), (node.value,))


def _handed(function: ast.FunctionDef, special: set[str] | frozenset[str]) -> Iterator[tuple[str, str]]:
    """The methods that `function` hands something of `special` to, and the names of their parameters by keyword; by
    position they are not told apart."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and (name := _name(node.func)).startswith("self."):
            for keyword in node.keywords:
                if keyword.arg is not None and not special.isdisjoint(_words((keyword.value,))):
                    yield name.removeprefix("self."), keyword.arg


def _words(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """The names in expressions, attributes of `self` as they are written, and of others what they are called."""
    for expression in nodes:
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield _name(node) or node.attr
            elif isinstance(node, ast.Call) and not (node.args or node.keywords):
                # What is made without a seed takes one from the operating system.
                yield f"{_last(node.func)}()"


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _name(node: ast.expr) -> str:
    """`name`, or `self.name`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return f"self.{node.attr}" if own and isinstance(node, ast.Attribute) else ""


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    given = function.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if parameter.arg != "self":
            yield parameter.arg
