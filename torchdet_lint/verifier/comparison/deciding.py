"""Where two runs part, and where each goes on -> the conditions that stand on the way, and what they may hang on.

The op before and those after do not tell which condition decided: what is found by the text of the file is all that may
have, as far as names tell. Nothing is found where the runs go on in functions that neither share nor call each other.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.verifier.comparison.behind import FUNCTIONS, blocks, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_CONDITIONS = (*_LOOPS, ast.If, ast.Match)
_INSIDE = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_BUILTIN = frozenset(dir(builtins))
_Part = ast.stmt | ast.expr
_Home = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


class Deciding(NamedTuple):
    """The lines of the `conditions` in `file`, those of all that they may hang on, and on which of these something is
    read that differs in every run.
    """

    file: str
    conditions: tuple[int, ...]
    behind: frozenset[int]
    reads: tuple[tuple[int, str], ...]


def told(way: Deciding, shown: str, *, found: bool) -> str:
    """The conditions in words, and what they may hang on unless the linter `found` that; `shown` is the file's name."""
    *more, last = (f"{shown}:{line}" for line in way.conditions)
    if len(more) > 2:
        return "which of several conditions decided is not established"
    words = "the conditions on the way are at" if more else "the condition on the way is at"
    words += f" {', '.join(more)} and {last}" if more else f" {last}"
    reads = {read: line for line, read in reversed(way.reads)}
    hung = " and ".join(f"{read} ({shown}:{line})" for read, line in reversed(reads.items()))
    return words + (
        f", which may hang on {hung}" if hung and not found else " (hashes, files, an unseeded choice?)" * (not found)
    )


def deciding(root: Path, file: str, after: int, ways: tuple[int, int], entropy: Mapping[str, str]) -> Deciding | None:
    """What stands between the op on line `after` of a file and those on the lines of which each run took one; a line of
    0 is in another file. `entropy` names what differs in every run. None where no condition is found.
    """
    tree = parsed(root / file)
    if tree is None:
        return None
    home, after, lines = _home(tree, after, ways)
    if home is None:
        return None
    found = [*_conditions(home.body, after, lines, looping=False)]
    if not found:
        return None
    nodes = _hanging_on(tree, home, [part for one in found for part in _heads(one)])
    return _told_of(tree, file, found, nodes, entropy)


def inside(root: Path, file: str, line: int, entropy: Mapping[str, str]) -> Deciding | None:
    """What the function that a line is in may hang on, without conditions; None where a line is in none."""
    tree = parsed(root / file)
    home = _function(tree, line) if tree is not None else None
    if tree is None or not isinstance(home, FUNCTIONS):
        return None
    return _told_of(tree, file, [], _hanging_on(tree, home, [home]), entropy)


def _told_of(
    tree: ast.Module, file: str, found: list[ast.stmt], nodes: list[_Part], entropy: Mapping[str, str]
) -> Deciding:
    behind = frozenset(itertools.chain(*(range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in nodes)))
    conditions = tuple(sorted({one.lineno for one in found}))
    return Deciding(file, conditions, behind, tuple(sorted({*_reads(tree, nodes, entropy)})))


def _home(tree: ast.Module, after: int, ways: tuple[int, int]) -> tuple[_Home | None, int, list[int]]:
    """The function in which the runs part, and where each goes on in it, 0 outside."""
    home, others = _function(tree, after), [_function(tree, way) for way in ways]
    lines = [way if other is home else _call_of(tree, home, other) for way, other in zip(ways, others, strict=True)]
    both = others[0] is others[1] and others[0] is not home and isinstance(others[0], FUNCTIONS)
    if both:
        return others[0], 0, [*ways]
    return (home if any(lines) else None), after, lines


def _function(tree: ast.Module, line: int) -> _Home:
    home: _Home = tree
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0):
            home = node  # walked from the outside in
    return home


def _call_of(tree: ast.Module, home: _Home, other: _Home) -> int:
    """The line of `home` that calls a function, perhaps through others of the file; 0 where none does."""
    if not isinstance(other, FUNCTIONS):
        return 0
    called = {node.name: {*map(_called, _calls(node))} for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
    leading = {other.name}
    while more := {name for name, names in called.items() if names & leading} - leading:
        leading |= more
    own = [node for node in _calls(home) if _called(node) in leading]
    return own[0].lineno if own else 0


def _calls(home: ast.AST) -> list[ast.Call]:
    found: list[ast.Call] = []
    waiting = [*ast.iter_child_nodes(home)]
    while waiting:
        node = waiting.pop(0)
        found += [node] if isinstance(node, ast.Call) else []
        waiting += [] if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else ast.iter_child_nodes(node)
    return found


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _conditions(body: list[ast.stmt], after: int, ways: list[int], *, looping: bool) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        inner = list(blocks(node))
        loops = isinstance(node, _LOOPS)
        if isinstance(node, _CONDITIONS) and not _is_constant(node):
            sides = {_side(inner, way) for way in ways}
            again = loops or looping or _side(inner, after) < 0
            jumps = sides == {-1} and _jumps(node) and (looping or node.lineno > after)
            if (len(sides) > 1 and again) or jumps:
                yield node
        elif not inner and any(isinstance(part, _INSIDE) for part in ast.walk(node)):
            own = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any(line in own for line in (after, *ways)):
                yield node
        for block in inner:
            yield from _conditions(block, after, ways, looping=looping or loops)


def _side(inner: list[list[ast.stmt]], line: int) -> int:
    """Which block of a statement a line is in; -1 for none."""
    spans = [(block[0].lineno, block[-1].end_lineno or 0) for block in inner]
    return next((number for number, (begin, end) in enumerate(spans) if begin <= line <= end), -1)


def _jumps(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(isinstance(part, _JUMPS) for part in ast.walk(node))


def _is_constant(node: ast.stmt) -> bool:
    """Whether it goes the same way in every run: `while True`, `for n in range(9)`."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        call = node.iter
        return isinstance(call, ast.Call) and _called(call) == "range" and _all_constant(call.args)
    return isinstance(node, (ast.While, ast.If)) and isinstance(node.test, ast.Constant)


def _all_constant(nodes: list[ast.expr]) -> bool:
    return all(isinstance(node, ast.Constant) for node in nodes)


def _heads(node: ast.stmt) -> list[_Part]:
    """What a condition looks at."""
    parts = [getattr(node, name, None) for name in ("test", "iter", "subject")]
    return [part for part in parts if part is not None] or [node]


def _hanging_on(tree: ast.Module, home: _Home, heads: list[_Part]) -> list[_Part]:
    """The parts of a file that make what some expressions use: statements, functions and classes of these names, and
    calls that hand arguments to them.
    """
    table = _table(tree, home)
    found = [*heads]
    seen = set(_aliases(tree))
    for node in found:  # it grows
        names = _names(node) - seen
        seen |= names
        found += [more for name in sorted(names) for more in table.get(name, ()) if more not in found]
    return found


def _table(tree: ast.Module, home: _Home) -> dict[str, list[_Part]]:
    """Name -> what in the file gives it a value, of local names only those of `home` and of functions."""
    table: dict[str, list[_Part]] = {}

    def put(name: str, node: _Part) -> None:
        table.setdefault(name, []).append(node)

    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            put(node.name, node)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in itertools.chain(*map(ast.walk, targets)):
                if isinstance(part, ast.Attribute):
                    put(part.attr, node)
    for node in itertools.chain(*map(_own, dict.fromkeys((tree, home)))):
        for name in _changed(node):
            put(name, node)
    for name, value in _handed(tree, home):
        put(name, value)
    return table


def _handed(tree: ast.Module, home: _Home) -> Iterator[tuple[str, ast.expr]]:
    """Parameter -> what calls in the file hand to the function `home` and to classes."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    made = [(one.name, node) for one in classes for node in one.body if isinstance(node, FUNCTIONS)]
    own = [(home.name, home)] if isinstance(home, FUNCTIONS) else []
    for called, function in [*own, *((name, node) for name, node in made if node.name == "__init__")]:
        handing = [call for call in calls if _called(call) == called]
        values = [value for call in handing for value in (*call.args, *(word.value for word in call.keywords))]
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            yield from ((argument.arg, value) for value in values)


def _own(place: _Home) -> Iterator[_Part]:
    """The simple statements and the heads of a module or function, without those of functions inside."""
    waiting = [*place.body]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        inner = list(blocks(node))
        if inner:
            yield from (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        else:
            yield node
        waiting += itertools.chain(*inner)


def _changed(node: ast.AST) -> set[str]:
    """The names that a statement binds, and those of objects that a call of its own may change."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _called(node.value) not in _BUILTIN
    return {one.id for one in names if isinstance(one.ctx, ast.Store) or calls}


def _names(node: ast.AST) -> set[str]:
    """The names that a part of a file uses, of a function none of its own."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        own = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        own |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        return {name for part in node.body for name in _names(part)} - own
    if isinstance(node, ast.Name):
        return {node.id}
    inner = {name for part in ast.iter_child_nodes(node) for name in _names(part)}
    return inner | {node.attr} if isinstance(node, ast.Attribute) else inner


def _reads(tree: ast.Module, nodes: list[_Part], entropy: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    aliases = _aliases(tree)
    for node in nodes:
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and (read := entropy.get(_dotted(call.func, aliases))):
                yield call.lineno, read


def _aliases(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(
                {
                    a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                    for a in node.names
                }
            )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _dotted(node: ast.AST, aliases: Mapping[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([aliases.get(node.id, ""), *reversed(parts)]) if isinstance(node, ast.Name) else ""
