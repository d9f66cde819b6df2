"""A project -> the seeding function that it has already, as one of its programs may import and call it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.skeleton import yields
from torchdet_lint.program.effects import Node, Referent
from torchdet_lint.program.events import MODULE
from torchdet_lint.program.syntax.hollow import parsed_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.program.call_graph import Project

_DEFINING = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign,
    ast.Pass,
)  # fmt: skip
_MORE_THAN_SEEDS = ("draw:", "flag:perhaps", "flag:relaxed", "flag:trains", "flag:cuda")


def seeding_function(
    project: Project, entry: str, libraries: Sequence[str], candidates: Iterable[tuple[str, str]], *, mode: bool
) -> str:
    """`package.module:name` of a function of another file that takes a seed and seeds all of `libraries`; else "".

    `candidates` are files and names of functions. One that turns deterministic mode on counts only where `mode`, one
    whose file is a program too, or does more than define things, only where the program imports that file already.
    """
    for module, file, name in _importable(project, entry, candidates):
        body = project.files.summary(file).body(name)
        if body is None or body.lazy:
            continue
        effects = project.effects(Node(file, name))
        if any(f"seed:{library}" not in effects for library in libraries):
            continue
        if any(key.startswith(_MORE_THAN_SEEDS) for key in effects) or ("flag:mode" in effects and not mode):
            continue
        if _takes_a_seed(project.files.text(file), name):
            return f"{module}:{name}"
    return ""


def _importable(project: Project, entry: str, candidates: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """The module, file and name of the candidates that `entry` can import, those first that it has at hand."""
    outline = project.files.outline(entry)
    # What is found only after the program has changed where it looks cannot be imported above that.
    moved = "sys.path" in project.files.text(entry)
    imported = set().union(*(_named(project, dotted, entry) for dotted in outline.imports))
    found = []
    for file, name in candidates:
        if file == entry or entry in project.files.imported(file):
            continue
        at_hand = _at_hand(project, outline.imports, entry, file, name)
        module = at_hand or ("" if moved else project.files.modules.name_of(file, entry, outline.imports))
        if module:
            found.append((not at_hand, file not in imported, module.count("."), module, file, name))
    for _, new, _, module, file, name in sorted(found):
        if not (new and (project.files.outline(file).guard or _works(project, file))):
            yield module, file, name


def _named(project: Project, dotted: str, entry: str) -> set[str]:
    place = project.files.modules.locate(dotted, entry)
    return {place.path} if place is not None else set()


def _at_hand(project: Project, imports: Iterable[str], entry: str, file: str, name: str) -> str:
    """The module from which `entry` imports the function by its name already."""
    for dotted in imports:
        module, _, last = dotted.rpartition(".")
        if last == name and Referent("function", file, name) in project.lookup.evaluate(dotted, entry):
            return module or "."
    return ""


def _works(project: Project, file: str) -> bool:
    """Whether importing `file` does more than define things."""
    effects = project.effects(Node(file, MODULE))
    return any(key.startswith(("draw:", "seed:", "flag:")) for key in effects) or not all(
        isinstance(statement, _DEFINING)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in _leaves(parsed_body(project.files.text(file)))
    )


def _leaves(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that importing a file runs, those in its `if`s and `try`s too."""
    for statement in body:
        if isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test):
            continue
        if isinstance(statement, (ast.If, ast.Try)):
            handlers = statement.handlers if isinstance(statement, ast.Try) else ()
            final = statement.finalbody if isinstance(statement, ast.Try) else ()
            for part in (statement.body, *(handler.body for handler in handlers), statement.orelse, final):
                yield from _leaves(part)
        else:
            yield statement


def _takes_a_seed(text: str, name: str) -> bool:
    """Whether the function `name` at top level can be called with a seed alone, and runs when it is called."""
    for node in parsed_body(text):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            if any("contextmanager" in ast.unparse(one) for one in node.decorator_list) or yields(node):
                return False
            given = [*node.args.posonlyargs, *node.args.args]
            needed = len(given) - len(node.args.defaults) + sum(one is None for one in node.args.kw_defaults)
            return bool(given) and "seed" in given[0].arg.lower() and needed <= 1
    return False
