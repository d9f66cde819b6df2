"""Parts of Python's own tree -> what they say: the defaults of parameters, the arguments of a call, a condition."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# What holds no part of the tree, and whether a name is read or stored, which is a node of its own to `ast`.
_PLAIN = frozenset(
    "ctx id attr arg asname level module kind type_comment simple is_async conversion kwd_attrs rest".split()
)
# Methods that spell a text another way.
_RESPELLS = frozenset({"lower", "upper", "strip"})


class _Fields(dict[type, tuple[str, ...]]):
    """Class of nodes -> the fields that may hold nodes, filled on demand."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        plain = kind in (ast.Constant, ast.Global, ast.Nonlocal)
        found = self[kind] = () if plain else tuple(name for name in kind._fields if name not in _PLAIN)
        return found


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, without the contexts of names, in half of the time."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        child = getattr(node, name, None)
        if isinstance(child, list):
            # A parameter without a default and `**` of a dictionary leave a gap.
            found += child if None not in child else [one for one in child if one is not None]
        elif isinstance(child, ast.AST):
            found.append(child)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, without the contexts of names, in half of the time."""
    found = [node]
    for one in found:
        found += children(one)
        yield one


def respelling(node: ast.expr) -> tuple[ast.expr, str] | None:
    """The text of which `node` is another spelling, and the method: `mode` and `lower` of `mode.lower()`."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
        return (node.func.value, node.func.attr) if node.func.attr in _RESPELLS else None
    return None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those of its blocks too, but for those of functions and classes in it."""
    stack = [*reversed(body)]
    while stack:
        statement = stack.pop()
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [one for field in ("body", "orelse", "finalbody") for one in getattr(statement, field, ())]
            blocks = (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))
            inner += (one for block in blocks for one in block.body)
            stack += reversed(inner)


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


def beginning(text: ast.expr) -> str:
    """What `text` begins with: `run_` of `f"run_{name}"`, of `"run_" + name`, of `"run_%s" % name`, and of `format`."""
    match text:
        case ast.Constant(value=str() as told):
            return told
        case ast.BinOp(left=left, op=ast.Add()):
            return beginning(left)
        case ast.BinOp(left=left, op=ast.Mod()):
            return beginning(left).partition("%")[0]
        case ast.JoinedStr(values=[first, *_]):
            return beginning(first)
        case ast.Call(func=ast.Attribute(value=template, attr="format")):
            return beginning(template).partition("{")[0]
    return ""
