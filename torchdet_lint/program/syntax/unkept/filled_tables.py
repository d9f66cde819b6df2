"""The statements of a function -> the tables of random numbers all of which a loop right below replaces."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.syntax.shapes import last_word, statements_in
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What makes a table of random numbers, of which each argument is a length, or one of them all.
_BY_LENGTHS = frozenset({"rand", "randn", "random", "random_sample", "ranf", "standard_normal"})
_SIZE = "size"
_WORD = lazy(r"[^\W\d]\w*")
_BLOCKS = (ast.For, ast.If, ast.While, ast.With)
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.Yield, ast.YieldFrom, ast.Await)


def filled(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names of tables of random numbers of which the statement below replaces every element: `table[i, j] = …` for
    all `i` and `j`, or `table[i] = …` for all rows. Nothing reads them before."""
    found: dict[str, bool] = {}
    for one, following in _pairs(body):
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                told = isinstance(following, ast.For) and _is_filled(name, _lengths(call), following)
                found[name] = found.get(name, True) and told
            case _:
                heads = _heads(one) if isinstance(one, _BLOCKS) else [one]
                names = (node for head in heads for node in walk(head) if isinstance(node, ast.Name))
                found |= {node.id: False for node in names if isinstance(node.ctx, ast.Store)}
    return frozenset(name for name, told in found.items() if told)


def _heads(block: ast.stmt) -> list[ast.AST]:
    """What a block binds names in before its body."""
    items = [item.optional_vars for item in getattr(block, "items", ())]
    return [one for one in (getattr(block, "target", None), getattr(block, "test", None), *items) if one is not None]


def _pairs(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """The statements of a body and of the blocks in it, each with the one below."""
    yield from itertools.zip_longest(body, body[1:])
    for node in statements_in(list(body)):
        for block in (node.body, getattr(node, "orelse", [])) if isinstance(node, _BLOCKS) else ():
            yield from itertools.zip_longest(block, block[1:])


def _lengths(call: ast.Call) -> list[str]:
    """The lengths of the table that a call makes, as they are written; none where nobody can tell."""
    size = next((word.value for word in call.keywords if word.arg == _SIZE), None)
    lengths = [size] if size is not None else call.args if last_word(call.func) in _BY_LENGTHS else []
    if len(lengths) == 1 and isinstance(lengths[0], (ast.Tuple, ast.List)):
        lengths = lengths[0].elts
    return [ast.unparse(one) for one in lengths]


def _is_filled(name: str, lengths: list[str], loop: ast.For) -> bool:
    """Whether `loop` and those in it replace all of a table with these `lengths`, and read nothing of it."""
    counters: list[str] = []
    at: ast.stmt = loop
    stores: list[ast.expr] = []
    while isinstance(at, ast.For) and len(counters) < len(lengths):
        match at:
            case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[end])):
                if ast.unparse(end) != lengths[len(counters)] or counter in counters:
                    return False
                counters.append(counter)
            case _:
                return False
        stores = [one.targets[0] for one in at.body if isinstance(one, ast.Assign) and len(one.targets) == 1]
        at = next((one for one in at.body if isinstance(one, ast.For)), at.body[-1])
    nodes = list(walk(loop))
    named = [one for one in nodes if isinstance(one, ast.Name)]
    kept = [one for one in stores if _writes(one, name, counters)]
    if not kept or sum(one.id == name for one in named) != len(kept) or any(isinstance(one, _LEAVES) for one in nodes):
        return False
    bound = [one.id for one in named if isinstance(one.ctx, ast.Store)]
    words = set(_WORD.findall(" ".join(lengths)))
    return all(bound.count(one) == 1 for one in counters) and words.isdisjoint(bound)


def _writes(target: ast.expr, name: str, counters: list[str]) -> bool:
    """Whether an assignment to `target` replaces the element of the table at the `counters`: `table[i, j]`, `table[i]`,
    or `table[i][j]`."""
    written: list[str] = []
    while isinstance(target, ast.Subscript):
        index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        written[:0] = [ast.unparse(one) for one in index]
        target = target.value
    return isinstance(target, ast.Name) and target.id == name and written == counters[: len(written)] == counters
