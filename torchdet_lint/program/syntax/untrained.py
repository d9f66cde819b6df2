"""The statements of a function -> what it makes only to count or to trace with, and what it freezes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.program.syntax.shapes import last_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_SIZES = frozenset({"numel", "nelement", "size", "shape", "dim", "ndim", "dtype", "requires_grad"})
_SHOWS = frozenset({"print", "repr", "str", "type"})
_LOOPS = (ast.For, ast.comprehension)


def counted(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that a function uses for nothing but to loop over parameters of which it takes the sizes."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    loops = [loop for node in nodes if isinstance(loop := node, _LOOPS) and _owner(loop.iter)]
    parameters = {name.id for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)}
    harmless = {id(name) for loop in loops for name in ast.walk(loop.iter)}
    sized: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SHOWS:
            harmless.update(map(id, node.args))
        elif isinstance(node, ast.Attribute) and node.attr in _SIZES:
            inner = node.value
            sized.add(id(inner.value if isinstance(inner, ast.Attribute) and inner.attr == "data" else inner))
    loads = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    if any(name.id in parameters and id(name) not in sized | harmless for name in loads):
        return frozenset()
    used = {name.id for name in loads if id(name) not in harmless}
    return frozenset(_owner(loop.iter) for loop in loops) - used


def traced(body: Sequence[ast.stmt], traces: Callable[[ast.Call], bool]) -> frozenset[str]:
    """The names of a function that are handed to nothing but calls that `traces` knows."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    given = {
        id(name): name.id
        for node in nodes
        if isinstance(node, ast.Call) and traces(node)
        for argument in (*node.args, *(word.value for word in node.keywords))
        for name in ast.walk(argument)
        if isinstance(name, ast.Name)
    }
    loads = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return frozenset(given.values()) - {name.id for name in loads if id(name) not in given}


def frozen(body: Sequence[ast.stmt]) -> frozenset[str]:
    """What a function evidently takes the gradients of for good, as its text has it: `self.embedding`."""
    return frozenset(name for statement in body for name in _frozen_by(statement))


def _frozen_by(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr="requires_grad")], value=ast.Constant(value=False)):
            yield _module(owner)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=owner, attr="requires_grad_"), args=[ast.Constant(value=False)])
        ):
            yield _module(owner)
        case ast.Assign(targets=[ast.Attribute(attr="weight") as target], value=ast.Call() as made) if _needs_none(
            made
        ):
            yield _module(target)
        case ast.For(
            iter=ast.Call(func=ast.Attribute(value=owner, attr="parameters")), target=ast.Name(id=name), body=body
        ):
            if name in frozen(body):
                yield ast.unparse(owner)


def _module(node: ast.expr) -> str:
    """`self.embedding` of `self.embedding.weight`."""
    return ast.unparse(node.value if isinstance(node, ast.Attribute) and node.attr == "weight" else node)


def _needs_none(made: ast.Call) -> bool:
    """Whether a call makes a parameter without a gradient."""
    off = any(word.arg == "requires_grad" and getattr(word.value, "value", True) is False for word in made.keywords)
    return off and last_word(made.func) == "Parameter"


def _owner(iterated: ast.expr) -> str:
    """`model` of `model.parameters()`."""
    match iterated:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if attribute in _PARAMETERS:
            return name
    return ""
