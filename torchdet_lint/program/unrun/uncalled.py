"""Files of a project -> the rows of their functions and classes that nothing in it names: no program runs them."""

from __future__ import annotations

import ast
import bisect
from collections import Counter
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.graded.runs import Namings
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import FUNCTIONS
from torchdet_lint.program.unrun.unreached import picks_by_name
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from torchdet_lint.program.files import ProjectFiles

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# What a test runner or Python itself calls by its name, and what a command line makes of a whole file.
_CALLED_BY_NAME = lazy(r"_*[Tt]est.*|pytest_.*|__.*__|setup|teardown|main")
# So many definitions that only the next one names are followed from a self-test.
_ROUNDS = 4
# What torch calls of a layer.
_CALLED_BY_TORCH = frozenset({"forward", "backward", "setup_context", "extra_repr", "reset_parameters"})
_WORD = lazy(r"[^\W\d]\w*")
_EXPOSES = lazy(r"\bfire\.Fire\b|\bfrom[ \t]+fire[ \t]+import|\b(?:globals|locals|vars)[ \t]*\(|\b__all__\b")


def uncalled(
    rows: Mapping[str, Collection[int]],
    users: Callable[[str], Collection[str]],
    project: ProjectFiles,
    aside: Mapping[str, Sequence[int]],
) -> dict[str, tuple[int, ...]]:
    """By file the first and last row of each function and class at top level, and of each method of a layer, that
    stands around one of its `rows` and that neither the file nor its `users`, those that import it, name, but in
    itself; those that are decorated aside.
    Between the first and last rows that stand `aside`, those of a self-test of the file, a name does not count."""
    asked = {path: found for path in rows if (found := list(_around(path, rows[path], project)))}
    around = {path: users(path) for path in asked}
    texts = sorted({file for files in around.values() for file in files})
    namings = Namings(frozenset(node.name for nodes in asked.values() for node in nodes), texts, project)
    said: dict[tuple[str, bool], _Said] = {}
    dead: dict[str, tuple[int, ...]] = {}
    for path, nodes in asked.items():
        tests = aside.get(path, ())
        tried = {row for first, last in zip(tests[::2], tests[1::2], strict=True) for row in range(first, last + 1)}
        lonely: set[_Definition] = set()
        # What a self-test makes may be all that names another.
        for _ in range(_ROUNDS if tried else 1):
            left = [node for node in nodes if node not in lonely]
            lonely.update(
                node for node in left if not _is_named(path, node, around[path], namings, said, project, tried)
            )
            tried.update(row for node in lonely for row in _rows(node))
        # What a file picks by a name that it works out is one that it sees.
        if lonely and not picks_by_name(sorted(around[path]), project, path):
            dead[path] = tuple(row for node in nodes if node in lonely for row in (node.lineno, _rows(node)[-1]))
    return dead


def _is_named(
    home: str,
    defined: _Definition,
    files: Collection[str],
    namings: Namings,
    said: dict[tuple[str, bool], _Said],
    project: ProjectFiles,
    tried: Collection[int],
) -> bool:
    """Whether one of `files` names what `home` has defined, in code outside of it and of the rows of `home` that are
    only `tried`, or in a text that is a value."""
    for file, naming in namings.of(defined.name):
        if file not in files:
            continue
        key = file, file == home and bool(tried)
        if key not in said:
            said[key] = _Said([one for one in parsed_body(project.text(file)) if not (key[1] and one.lineno in tried)])
        own, besides = (_rows(defined), tried) if file == home else (range(0), ())
        if any(row not in own and row not in besides for row in naming.rows.get(defined.name, ())):
            return True
        if defined.name in said[key].names or said[key].defined[defined.name] > (file == home):
            return True
    return False


def _rows(node: _Definition) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


class _Said:
    """What a file says but for its expressions: the names that it imports and those in its texts, docstrings and code
    that somebody has put in quotes aside, and how often it defines each."""

    def __init__(self, statements: Sequence[ast.stmt]) -> None:
        self.names: set[str] = set()
        self.defined = Counter[str]()
        for statement in statements:
            nodes = list(walk(statement))
            idle = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    self.names.update(one.name for one in node.names)
                elif isinstance(node, _Definition):
                    self.defined[node.name] += 1
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
                    self.names.update(_WORD.findall(node.value))


def _around(path: str, rows: Collection[int], project: ProjectFiles) -> Iterator[_Definition]:
    text, ordered = project.text(path), sorted(rows)
    for node in parsed_body(text) if _EXPOSES.search(text) is None else ():
        if isinstance(node, _Definition) and _holds(node, ordered):
            if _is_plain(node):
                yield node
            if isinstance(node, ast.ClassDef) and _is_layer(node):
                methods = (one for one in node.body if isinstance(one, FUNCTIONS) and _holds(one, ordered))
                yield from (one for one in methods if _is_plain(one) and one.name not in _CALLED_BY_TORCH)


def _holds(node: _Definition, rows: Sequence[int]) -> bool:
    """Whether one of the `rows`, which are in order, is of `node`."""
    return bisect.bisect_left(rows, node.lineno) < bisect.bisect(rows, node.end_lineno or node.lineno)


def _is_plain(node: _Definition) -> bool:
    return not node.decorator_list and not _CALLED_BY_NAME.fullmatch(node.name)


def _is_layer(node: ast.ClassDef) -> bool:
    """Whether a class derives from `nn.Module` and from nothing else, which might call what it defines."""
    return [dotted_name(base).rpartition(".")[2] for base in node.bases] == ["Module"]
