"""Parts of Python's own tree -> what they say: the defaults of parameters, the arguments of a call, a condition."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def defaults_of(args: ast.arguments) -> list[tuple[str, ast.expr]]:
    """The parameters that have a default, and it."""
    positional = [*args.posonlyargs, *args.args]
    with_default = positional[len(positional) - len(args.defaults) :]
    found = [(parameter.arg, default) for parameter, default in zip(with_default, args.defaults, strict=True)]
    found += [
        (parameter.arg, default)
        for parameter, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    ]
    return found


def tells_all(call: ast.Call) -> bool:
    """Whether a call names every argument that it passes: no `*args`, no `**options`."""
    return not any(isinstance(one, ast.Starred) for one in call.args) and all(word.arg for word in call.keywords)


def combined(test: ast.expr, tells: Callable[[ast.expr], bool | None]) -> bool | None:
    """Whether `test` holds, by what `tells` says of the parts that `not`, `and` and `or` combine (None: unknown)."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = combined(test.operand, tells)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        ends = isinstance(test.op, ast.Or)
        answers = [combined(value, tells) for value in test.values]
        return ends if ends in answers else None if None in answers else not ends
    return tells(test)
