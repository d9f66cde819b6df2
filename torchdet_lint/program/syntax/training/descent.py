"""The statements of a function -> those that step down a gradient themselves, without an optimizer."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children, statements
from torchdet_lint.program.syntax.shapes import last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What must stand in a function that steps down a gradient.
_MAY_STEP = lazy(r"\bgrad\b")
# What gives the same tensor, or one that shares its memory.
_SAME = frozenset({"data", "detach", "detach_"})
# Along the signs of a gradient an input is made worse, to attack a model, or better; no weight is trained.
_SIGNS = frozenset({"sign", "sgn"})


def may_step(text: str) -> bool:
    """Whether a function with this text may have such a statement."""
    return _MAY_STEP.search(text) is not None


# How a gradient came: a backward pass left it there, or `torch.autograd.grad` returned it.
LEFT, RETURNED = "left", "returned"


def steps(body: Sequence[ast.stmt]) -> dict[int, str]:
    """The identities of the statements that change a tensor in place, or by assignment, by its own gradient: `p -= lr *
    p.grad`, `p.data.add_(p.grad, alpha=-lr)`, `p.data = p.data - lr * g`, by whatever name the gradient goes; and how
    that came."""
    return dict(_Descent().steps(body))


class _Descent:
    def __init__(self) -> None:
        # The tensors of which a name stands for the gradient, as their texts have them, and how it came.
        self.gradients: dict[str, dict[str, str]] = {}

    def steps(self, body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
        for node in statements(body):
            if isinstance(node, ast.For):
                self._pair(node)
                continue
            target, value = _changed(node)
            came = [self._of(one).get(_tensor(target)) for one in value] if target is not None else []
            if any(came):
                yield id(node), RETURNED if RETURNED in came else LEFT
            elif isinstance(node, ast.Assign):
                self._bind(node)

    def _bind(self, node: ast.Assign) -> None:
        """Note what the name that is assigned is the gradient of."""
        found = self._of(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name) and (found or target.id in self.gradients):
                self.gradients[target.id] = found

    def _pair(self, loop: ast.For) -> None:
        """Note what the loop `for p, g in zip(parameters, gradients)` goes through."""
        bound = list(_paired(loop.target, loop.iter))
        given = {name: found for name, over in bound if (found := self._of(over))}
        for name, found in given.items():
            came = RETURNED if RETURNED in found.values() else LEFT
            self.gradients[name] = {other: came for other, _ in bound if other not in given}

    def _of(self, value: ast.expr) -> dict[str, str]:
        """The tensors of which gradients are in an expression, other than their signs, and how these came."""
        found: dict[str, str] = {}
        stack: list[ast.AST] = [value]
        while stack:
            node = stack.pop()
            match node:
                case ast.Attribute(attr="grad", value=owner):
                    found[_tensor(owner)] = LEFT
                case ast.Call(func=ast.Attribute(attr="grad") | ast.Name(id="grad"), args=[_, of, *_]):
                    found[_tensor(of)] = RETURNED
                case ast.Call(func=function) if last_word(function) in _SIGNS:
                    continue
                case ast.Name(id=name):
                    found |= self.gradients.get(name, {})
                case ast.Lambda():
                    continue
                case _:
                    stack += children(node)
        return found


def _changed(node: ast.stmt) -> tuple[ast.expr | None, Sequence[ast.expr]]:
    """The tensor that a statement gives other values, and what these are made of."""
    match node:
        case ast.AugAssign(target=target, value=value):
            return target, [value]
        case ast.Assign(targets=[target], value=value) if _tensor(target) in map(_tensor, _tensors(value)):
            return target, [value]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=method), args=args, keywords=words)):
            if method.endswith("_") and not method.endswith("__"):
                return target, [*args, *(word.value for word in words)]
    return None, ()


def _tensors(value: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes in an expression that are no gradients."""
    stack: list[ast.AST] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            continue
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node
        if not (isinstance(node, ast.Attribute) and node.attr not in _SAME and _is_path(node)):
            stack += children(node)


def _is_path(node: ast.expr) -> bool:
    """Whether an expression is made of names alone: `self.layer.weight`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _tensor(node: ast.expr) -> str:
    """`p` of `p.data` and `p.detach()`."""
    while True:
        inner = node.func if isinstance(node, ast.Call) and not node.args else node
        if not isinstance(inner, ast.Attribute) or inner.attr not in _SAME:
            return ast.unparse(node)
        node = inner.value


def _paired(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop over `zip(…)` binds, and what each goes through."""
    match target, over:
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[inside, *_]):
            yield from _paired(inner, inside)
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args) if len(parts) == len(args):
            for part, one in zip(parts, args, strict=True):
                yield from _paired(part, one)
        case ast.Name(id=name), _:
            yield name, over
