"""A line of a program -> the lines of its function on which what it uses was made."""

from __future__ import annotations

import ast
import builtins
import functools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_BYTES = 1 << 20


class Behind(NamedTuple):
    """`function` are the lines of the innermost function that a line is in, if it is in one; `made` those on which what
    the line uses was made, itself included.
    """

    function: frozenset[int]
    made: frozenset[int]


class _Statement(NamedTuple):
    """One statement, of a compound one its head: its lines, the names that it may change and those that it uses, and
    the heads around it.
    """

    lines: range
    changes: frozenset[str]
    uses: frozenset[str]
    around: tuple[range, ...]


@functools.lru_cache(maxsize=32)
def parsed(path: Path) -> ast.Module | None:
    """The tree of a file; None where it is no Python, or too long."""
    try:
        text = path.read_bytes()
        return ast.parse(text) if len(text) < _MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=512)
def lines_behind(path: Path, line: int) -> Behind | None:
    """What stands behind a line of a file; None for a file that is no Python, or a line that is in none."""
    tree = parsed(path)
    if tree is None:
        return None
    home: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef = tree
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0):
            home = node  # walked from the outside in
    modules = frozenset(_imported(tree)) | frozenset(dir(builtins))
    statements = [*_statements(home.body, (), modules)]
    here = [one for one in statements if line in one.lines]
    if not here:
        return None
    inside = statements if home is not tree else ()
    return Behind(frozenset(n for one in inside for n in one.lines), _made(statements, here))


def _made(statements: list[_Statement], here: list[_Statement]) -> frozenset[int]:
    found, wanted = [*here], {name for one in here for name in one.uses}
    lines = {n for one in here for part in (one.lines, *one.around) for n in part}
    while more := [one for one in statements if one not in found and (one.changes & wanted or set(one.lines) & lines)]:
        found += more
        wanted |= {name for one in more for name in one.uses}
        lines |= {n for one in more for part in (one.lines, *one.around) for n in part}
    return frozenset(lines)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The names of modules and of what is imported from them: that two lines use one connects them in nothing."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]


def _statements(body: list[ast.stmt], around: tuple[range, ...], modules: frozenset[str]) -> Iterator[_Statement]:
    for node in body:
        inner = [] if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else list(blocks(node))
        first = min((block[0].lineno for block in inner), default=0)
        lines = range(node.lineno, first if first > node.lineno else (node.end_lineno or node.lineno) + 1)
        own = [node] if not inner else [part for part in ast.iter_child_nodes(node) if not _in(part, inner)]
        found = (name for part in own for name in ast.walk(part) if isinstance(name, ast.Name))
        names = [name for name in found if name.id not in modules]
        changes = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        uses = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            changes |= {node.name}
        elif isinstance(node, ast.Expr) or _stores_into(node):
            changes |= uses  # a call may change what it is given: `order.sort()`, `shuffle(order)`
        yield _Statement(lines, frozenset(changes), frozenset(uses), around)
        for block in inner:
            yield from _statements(block, (*around, lines), modules)


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statements inside of a compound one, block by block."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(node, name, None):
            yield block
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body


def _in(part: ast.AST, blocks: list[list[ast.stmt]]) -> bool:
    return any(part is one for block in blocks for one in block)


def _stores_into(node: ast.stmt) -> bool:
    """Whether it assigns to a part of an object: `values[3] = x`, `self.order = x`."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in targets)
