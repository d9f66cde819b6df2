"""Files of a project -> the rows of their functions and classes that nothing in it names: no program runs them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.graded.runs import Namings
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.unrun.unreached import picks_by_name
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.graded.runs import Naming

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# What a test runner or Python itself calls by its name, and what a command line makes of a whole file.
_CALLED_BY_NAME = lazy(r"_*[Tt]est.*|pytest_.*|__.*__|setup|teardown|main")
_EXPOSES = lazy(r"\bfire\.Fire\b|\bfrom[ \t]+fire[ \t]+import|\b(?:globals|locals|vars)[ \t]*\(|\b__all__\b")


def uncalled(
    rows: Mapping[str, Collection[int]],
    texts: Sequence[str],
    users: Callable[[str], Collection[str]],
    project: ProjectFiles,
) -> dict[str, tuple[int, ...]]:
    """By file the first and last row of each function and class at top level that stands around one of its `rows` and
    that neither the file nor its `users` name, but in itself; those that are decorated aside. `texts` are the files of
    the project."""
    asked = {path: found for path in rows if (found := list(_around(path, rows[path], project)))}
    namings = Namings(frozenset(node.name for nodes in asked.values() for node in nodes), texts, project)
    dead: dict[str, tuple[int, ...]] = {}
    for path, nodes in asked.items():
        around = users(path)
        # What a file picks by a name that it works out is one that it sees.
        for node in nodes if not picks_by_name(sorted(around), project) else ():
            naming = (one for one in namings.of(node.name) if one[0] in around)
            if not any(_names(file, told, path, node, project) for file, told in naming):
                dead[path] = (*dead.get(path, ()), node.lineno, node.end_lineno or node.lineno)
    return dead


def _around(path: str, rows: Collection[int], project: ProjectFiles) -> Iterator[_Definition]:
    text = project.text(path)
    for node in parsed_body(text) if _EXPOSES.search(text) is None else ():
        if (
            isinstance(node, _Definition)
            and not node.decorator_list
            and not _CALLED_BY_NAME.fullmatch(node.name)
            and any(node.lineno <= row <= (node.end_lineno or node.lineno) for row in rows)
        ):
            yield node


def _names(path: str, naming: Naming, home: str, defined: _Definition, project: ProjectFiles) -> bool:
    """Whether the file `path` names what `home` has defined, in code outside of it or in a text that is a value."""
    own = range(defined.lineno, (defined.end_lineno or defined.lineno) + 1) if path == home else range(0)
    if any(row not in own for row in naming.rows.get(defined.name, ())):
        return True
    told = re.compile(rf"\b{re.escape(defined.name)}\b")
    others = (one for one in parsed_body(project.text(path)) if one.lineno not in own)
    return any(_says(statement, defined.name, told) for statement in others)


def _says(statement: ast.stmt, name: str, told: re.Pattern[str]) -> bool:
    """Whether a statement imports or defines `name`, or holds it in a text; but for docstrings and code that somebody
    has put in quotes."""
    nodes = list(walk(statement))
    idle = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return any(
        (isinstance(node, (ast.Import, ast.ImportFrom)) and any(one.name == name for one in node.names))
        or (isinstance(node, _Definition) and node.name == name)
        or (id(node) not in idle and told.search(_text_of(node)) is not None)
        for node in nodes
    )


def _text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
