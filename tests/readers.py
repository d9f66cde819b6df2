"""`readers.py [--list] TREE…`: what the two readers of Python call every call of these trees, and why they differ.

The names of a file are resolved over libcst's tree for the rules of one file (`module.resolution`) and over `ast`'s for
the whole program (`program.syntax.names`). The first is exact at a place and silent where it is not sure, for a finding
hangs on it; the second follows a value from function to function, so it keeps what only a caller knows, and all that a
name may stand for. Here both name every call, and each difference is put down to one of `CAUSES`.
"""

from __future__ import annotations

import ast
import collections
import re
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.catalogue import loading
from torchdet_lint.module.module import Module
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.library import Library
from torchdet_lint.prefilter.skeleton import SyntaxFault
from torchdet_lint.program.syntax.file import File
from torchdet_lint.program.syntax.hollow import Hollow
from torchdet_lint.program.syntax.vocabulary import Vocabulary
from torchdet_lint.source.decoding import SourceFault, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.program.syntax.scopes import Scope

CAUSES = {
    "caller": (
        "A parameter, `self` or `super()` is what a caller or a subclass makes of it: `$x`, `$self.step`. The "
        "rules of one file judge a parameter by its annotation elsewhere (`inference`), and look an attribute "
        "of `self` up in the class; the whole program puts in what the call passes."
    ),
    "configuration": "What Hydra makes of a configuration, `%model/net()`, is known to the whole program alone.",
    "star": (
        "`*.name` comes from a module taken whole, which the whole program opens; the rules of one file know "
        "the names that the catalogue has there, and ask other files for the rest."
    ),
    "path": (
        "The whole program takes all that binds a name, for any of it may be what runs; a finding needs what "
        "is bound at this place."
    ),
    "move": (
        "`.to()`, `.cuda()`, `.eval()` and their like of what is no module, wrappers such as `compile`, copies, and "
        "what makes a data set of another one give back what they are given: the whole program wants that, a rule "
        "about one file what was called."
    ),
    "content": (
        "A container stands for what is in it: the list that a loop goes through, `ModuleList`, `Sequential`, "
        "the tuple that a call returns, a registry of functions. The rules of one file ask for the container "
        "itself."
    ),
    "class": (
        "The body of a class runs once, where the class is defined: the whole program reads it in the scope around "
        "it, and knows nothing there of what the body itself defines."
    ),
    "lambda": "A lambda that is given a name is a function of that name to the whole program.",
    "expression": "A name that `:=` binds is one to the rules of one file alone.",
    "global": "So is what a function gives a name of the module that it declares `global`.",
    "again": (
        "A function or class that is defined again, as overloads are, is marked by the whole program, which tells "
        "the definitions apart: `@.f'`."
    ),
    "depth": "The rules of one file follow three calls in a row, the whole program four.",
    "item": "Of an element of a tensor, or of a list of generators, the rules of one file know what it is.",
    "attribute": (
        "`getattr` with a name that only the run knows: the whole program goes on with any attribute, `models.*`, "
        "`self.run_*`."
    ),
    "registry": (
        "`@.MODELS.[]` is an item of a dictionary that other files may fill, `nets.[*]` any module of a package: the "
        "whole program looks for what is registered, and into the package."
    ),
    "actor": "`Net.remote()` of Ray makes a `Net` in another process: the whole program goes on with that.",
    "dictionary": (
        "`vars(x)`, `globals()` and `eval` of a name are what they hold to the whole program, which asks for no method "
        "of them."
    ),
}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOVES = re.compile(r"\.(?:to|cuda|cpu|half|float|eval)\(\)")
_DATA_SETS = re.compile(r"^(datasets\.(?:\w+\.)?\w+\(\))(?:\.\w+\(\))+")
Place = tuple[int, int, int, int]


class Known(NamedTuple):
    """The callables that give back what they are given, and the names of the file that `:=` binds and that functions
    declare `global`."""

    wrappers: frozenset[str]
    expressions: frozenset[str]
    globals: frozenset[str]


class Pair(NamedTuple):
    """One call: the row it begins in, what is called as it is written, and the names that each reader gives it."""

    row: int
    written: str
    exact: tuple[str, ...]
    following: tuple[str, ...]
    cause: str


def pairs(path: str, data: bytes, library: Library) -> Iterator[Pair]:
    """The calls of one file that both readers see. Raises `SourceFault` or `SyntaxFault` where it is not Python."""
    source = decode(path, data)
    module = Module(source, library)
    module.load_all()
    module.loading.awake = True
    exact: dict[Place, tuple[str, ...]] = {}
    for call in module.calls:
        start, end = module.span(call.node)
        exact[start.row, start.column - 1, end.row, end.column - 1] = call.own
    tree = skeleton.parsed(source.text)
    lines = module.skeleton.lines
    vocabulary = Vocabulary.of(library)
    file = File(Hollow(lines, (), tree), vocabulary)
    declared = frozenset(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    known = Known(vocabulary.wrappers, _bound_in_expressions(tree), declared)
    for node, scope, inner in _calls(tree, file):
        place = (*_place(lines, node.lineno, node.col_offset), *_place(lines, node.end_lineno, node.end_col_offset))
        if place in exact:
            names = tuple(sorted(set(file.names.resolve(node.func, scope))))
            found = _explained(node.func, scope, exact[place], names, known, inner)
            yield Pair(node.lineno, ast.unparse(node.func), exact[place], names, found)


def _bound_in_expressions(tree: ast.Module) -> frozenset[str]:
    found = (node.target for node in ast.walk(tree) if isinstance(node, ast.NamedExpr))
    return frozenset(target.id for target in found if isinstance(target, ast.Name))


def _calls(tree: ast.Module, file: File) -> Iterator[tuple[ast.Call, Scope, frozenset[str]]]:
    """Every call, the scope in which the whole program's half looks its names up, and the names that the body of the
    class defines in which it stands."""
    scopes = {id(scope.node): scope for scope in file.scopes.by_name.values()}
    stack: list[tuple[ast.AST, Scope, frozenset[str]]] = [(tree, file.scopes.module, frozenset())]
    while stack:
        node, scope, own = stack.pop()
        if isinstance(node, ast.Call):
            yield node, scope, own
        if isinstance(node, _SCOPES) and id(node) in scopes:
            inner = file.scopes.function(scopes[id(node)].name) or scope
            scopes.update((id(one.node), one) for one in islice(file.scopes.by_name.values(), len(scopes), None))
            stack.extend((one, inner, frozenset[str]()) for one in node.body)
            outside = [*node.decorator_list, node.args, *([node.returns] if node.returns is not None else ())]
            stack.extend((one, scope, own) for one in outside)
            continue
        if isinstance(node, ast.ClassDef):
            defined = (one.name for one in node.body if isinstance(one, (*_SCOPES, ast.ClassDef)))
            assigned = (one for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name))
            stores = (one.id for one in assigned if isinstance(one.ctx, ast.Store))
            own = frozenset((*defined, *stores))
        stack.extend((one, scope, own) for one in ast.iter_child_nodes(node))


def _place(lines: Sequence[str], row: int | None, column: int | None) -> tuple[int, int]:
    """A place as `ast` has it, with the column in characters."""
    return row or 0, len(lines[(row or 1) - 1].encode()[:column].decode("utf-8", "replace"))


def _explained(
    callee: ast.expr, scope: Scope, exact: Sequence[str], following: Sequence[str], known: Known, own: frozenset[str]
) -> str:
    """The cause, where names of registries and of modules that are picked count for nothing but for one."""
    plain = tuple(name for name in following if "[" not in name)
    cause = _cause(callee, scope, exact, plain, known, own)
    if not cause and plain and not exact and "def" in _kinds(callee, scope):
        return "lambda"
    if not cause and isinstance(callee, ast.Attribute) and callee.attr == "remote" and scope.home("ray") is not None:
        return "actor"
    return cause or ("registry" if plain != tuple(following) else "")


def _cause(
    callee: ast.expr, scope: Scope, exact: Sequence[str], following: Sequence[str], known: Known, own: frozenset[str]
) -> str:
    """The one of `CAUSES` that explains why the two differ; empty where they agree or nothing explains it. `own` are
    the names that the body of the class around the call defines."""
    ours, theirs = {_still(name) for name in exact}, {_still(name) for name in following}
    kinds = _kinds(callee, scope)
    marks = {"$" if ".{$" in name else name[0] for name in following}
    for mark, cause in (("$", "caller"), ("%", "configuration"), ("*", "star")):
        if mark in marks:
            return cause
    if any(name.endswith("*") for name in following) or any(".*" in name for name in following):
        return "attribute"
    if any(name.startswith(("builtins.vars()", "builtins.globals()", "builtins.eval()")) for name in exact):
        return "dictionary"
    if ours == {name.replace("'", "") for name in theirs} != theirs:
        return "again"
    if ours == theirs or any(name.startswith("copy.") for name in (*exact, *following)):
        return "move" if set(exact) != set(following) else ""
    if ours and ours < theirs:
        return "path"
    if kinds & {"parameter", "default"}:
        return "caller"
    if any(name.count("()") >= 3 for name in (*exact, *following)) and not ours:
        return "depth"
    if kinds & {"element", "part", "item", "value"} and theirs:
        return "content"
    if not theirs and "item" in kinds:
        return "item"
    if any(name.partition("()")[0] in known.wrappers for name in exact):
        return "move"
    if theirs < ours and not known.globals.isdisjoint(_names(callee)):
        return "global"
    return _unbound(_first_name(callee), known, own) if not theirs else ""


def _still(name: str) -> str:
    """`name` without the methods that give back what they are called of."""
    return _DATA_SETS.sub(r"\1", _MOVES.sub("", name))


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _unbound(name: str, known: Known, own: frozenset[str]) -> str:
    """Why the whole program does not know `name`."""
    return "class" if name in own else "expression" if name in known.expressions else ""


def _chain(node: ast.expr | None) -> Iterator[ast.expr]:
    """`a.b[0]()`, `a.b[0]`, `a.b`, `a` of the first; `x` of `getattr(x, "y")`."""
    while isinstance(node, ast.expr):
        yield node
        looked_up = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"
        node = node.args[0] if looked_up else getattr(node, "func", None) or getattr(node, "value", None)


def _first_name(node: ast.expr) -> str:
    *_, last = _chain(node)
    return last.id if isinstance(last, ast.Name) else ""


def _kinds(node: ast.expr, scope: Scope, depth: int = 3) -> set[str]:
    """How the name that an expression begins with is bound, and `item` where an element of something is taken."""
    found = {"item" for one in _chain(node) if isinstance(one, ast.Subscript)}
    found |= {"part" for one in _chain(node) if isinstance(one, (ast.Dict, ast.List, ast.Tuple))}
    first = _first_name(node)
    home = scope.home(first) if first else None
    for bound in home.bindings[first] if home is not None else ():
        found.add("item" if any(isinstance(one, ast.Subscript) for one in _chain(bound.value)) else bound.kind)
        if depth and bound.value is not None and home is not None:
            found |= _kinds(bound.value, home, depth - 1) & {"item"}
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the counts of each tree; 1 where a difference has no cause."""
    library, unexplained = Library(loading.load()), 0
    for tree in (Path(one) for one in arguments if one != "--list"):
        counts, calls = collections.Counter[str](), 0
        for path in sorted(tree.rglob("*.py")):
            try:
                for pair in pairs(str(path), path.read_bytes(), library):
                    calls += 1
                    if pair.exact == pair.following:
                        continue
                    counts[pair.cause] += 1
                    if "--list" in arguments or not pair.cause:
                        print(f"{path}:{pair.row}: {pair.written[:80]}: {pair.exact} {pair.following} {pair.cause}")
            except (SourceFault, SyntaxFault) as fault:
                print(f"{path}: {fault}", file=sys.stderr)
        unexplained += counts[""]
        by_cause = ", ".join(f"{cause or 'unexplained'} {count}" for cause, count in counts.most_common())
        print(f"{tree}: {calls} calls, {counts.total()} named differently: {by_cause}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
