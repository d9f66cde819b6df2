"""The methods of a class -> the attributes in which a worker keeps a generator with a seed of its own."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.workers.project_file import assigned
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SEEDS = ("seed", "manual_seed")
_ROUNDS = 3
# How long a queue is waited for.
_WAITING = frozenset(("block", "timeout"))


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
            for name, words in statements:
                if any(word in telling or word in own or word in attributes for word in words):
                    (attributes if name.startswith("self.") else own).add(name)
            for name, word in _handed(function, own | telling | attributes):
                if name in special:
                    special[name].add(word)
        if before == len(attributes) + sum(map(len, special.values())):
            break
    return frozenset(name.removeprefix("self.") for name in attributes)


def _told(function: ast.FunctionDef) -> Iterator[tuple[str, list[str]]]:
    """The names that are given or seeded with something in `function`, and the names in that."""
    for node in walk(function):
        given = [(target, [value]) for target, value in assigned(node)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SEEDS:
            given.append((node.func.value, node.args))
        elif isinstance(node, ast.NamedExpr):
            given.append((node.target, [node.value]))
        yield from ((name, list(_words(values))) for target, values in given if (name := _name(target)))


def _handed(function: ast.FunctionDef, special: set[str] | frozenset[str]) -> Iterator[tuple[str, str]]:
    """The methods that `function` hands something of `special` to, and the names of their parameters by keyword; by
    position they are not told apart."""
    for node in walk(function):
        if isinstance(node, ast.Call) and (name := _name(node.func)).startswith("self."):
            for keyword in node.keywords:
                if keyword.arg is not None and not special.isdisjoint(_words((keyword.value,))):
                    yield name.removeprefix("self."), keyword.arg


def _words(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """The names in expressions, attributes of `self` as they are written, and of others what they are called."""
    for expression in nodes:
        for node in walk(expression):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield _name(node) or node.attr
            elif isinstance(node, ast.Call) and not node.args and _WAITING.issuperset(one.arg for one in node.keywords):
                # What is made without a seed takes one from the operating system, and a queue has no other `get()`.
                yield f"{dotted_name(node.func).rpartition('.')[2]}()"


def _name(node: ast.expr) -> str:
    """`name`, or `self.name`; empty for anything else."""
    name = dotted_name(node)
    return name if "." not in name.removeprefix("self.") else ""


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    given = function.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if parameter.arg != "self":
            yield parameter.arg
