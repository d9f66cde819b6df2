"""A project -> the seeding function that it has already, as one of its programs may import and call it."""

from __future__ import annotations

import ast
import itertools
import sys
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.skeleton import yields
from torchdet_lint.program.effects import Node, Referent
from torchdet_lint.program.events import MODULE, Argument, Event
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.transfer.passing import UNKNOWN, constants
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from torchdet_lint.program.call_graph import Project
    from torchdet_lint.program.effects import Effects

_DEFINING = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign,
    ast.Pass,
)  # fmt: skip
_DEFINED = lazy(r"(?m)^def[ \t]+(\w+)")
# Packages that a program has which is to be seeded.
_ALWAYS = sys.stdlib_module_names | {"numpy", "torch"}
_MORE_THAN_SEEDS = ("draw:", "flag:perhaps", "flag:relaxed", "flag:trains", "flag:cuda")


class Seeders:
    """The functions of a project that seed all of `libraries` where they are called with the number `seed` alone."""

    def __init__(self, project: Project, libraries: Sequence[str], seed: int) -> None:
        self.project = project
        self.libraries = libraries
        self.seed = seed

    def elsewhere(self, entry: str, candidates: Iterable[tuple[str, str]], *, mode: bool) -> str:
        """`package.module:name` of such a function that the program `entry` can import, of another file; else "".

        `candidates` are files and names of functions. One that turns deterministic mode on counts only where `mode`,
        one whose file is a program too, or does more than define things, only where the program imports it already.
        """
        for module, file, name in _importable(self.project, entry, candidates):
            effects = self._effects(file, name)
            if effects is None or any(key.startswith(_MORE_THAN_SEEDS) for key in effects):
                continue
            if ("flag:mode" not in effects or mode) and _takes_a_seed(self.project.files.text(file), name):
                return f"{module}:{name}"
        return ""

    def within(self, file: str) -> tuple[str, ...]:
        """The names of such functions at top level of `file` that speak of determinism."""
        speaks = self.project.library.facts.conventions.asks_for_determinism
        defined = dict.fromkeys(_DEFINED.findall(self.project.files.text(file)))
        return tuple(name for name in defined if speaks.search(name) and self._effects(file, name) is not None)

    def _effects(self, file: str, name: str) -> Effects | None:
        """What the call does, if it seeds all of the libraries: what the seed rules out in the function is not run."""
        body = self.project.files.summary(file).body(name)
        if body is None or body.lazy:
            return None
        function, wanted = Referent("function", file, name), self.project.narrowing.wanted
        call = Event("call", 0, 0, 0, positional=(Argument(known=True, value=self.seed),))
        given = constants(function, body, call, lambda _: UNKNOWN, lambda one: wanted.decides(function, one))
        effects = self.project.effects(Node(file, name, given=given))
        return effects if all(f"seed:{library}" in effects for library in self.libraries) else None


def _importable(project: Project, entry: str, candidates: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """The module, file and name of the candidates that `entry` can import, those first that it has at hand."""
    outline = project.files.outline(entry)
    # What is found only after the program has changed where it looks cannot be imported above that.
    moved = "sys.path" in project.files.text(entry)
    imported = set().union(*(_named(project, dotted, entry) for dotted in outline.imports))
    packages = {one for path in imported for one in project.files.modules.packages(path)}
    found = []
    for file, name in candidates:
        if file == entry or entry in project.files.imported(file):
            continue
        at_hand = _at_hand(project, outline.imports, entry, file, name)
        module = at_hand or ("" if moved else project.files.modules.name_of(file, entry, outline.imports))
        if module:
            found.append((not at_hand, file not in imported, module.count("."), module, file, name))
    for _, new, _, module, file, name in sorted(found):
        works = new and (project.files.outline(file).guard or _works(project, file, packages))
        if not (works or (new and not _imports_work(project, entry, file))):
            yield _public(project, module, entry, name), file, name


def _public(project: Project, module: str, entry: str, name: str) -> str:
    """The package that publishes a function of `module` by its name, the outermost there is; else `module`."""
    packages = itertools.accumulate(module.split("."), "{}.{}".format) if module[0] != "." else ()
    meant = project.lookup.evaluate(f"{module}.{name}", entry)
    return next((one for one in packages if project.lookup.evaluate(f"{one}.{name}", entry) == meant), module)


def _imports_work(project: Project, entry: str, file: str) -> bool:
    """Whether what `file` imports is found from `entry` too, as the same files or as packages that `entry` imports: a
    script in a folder finds those beside it only where it is started itself."""
    known, _ = _imported_by(project, entry, entry)
    needed, same = _imported_by(project, entry, file)
    return same and needed <= known | _ALWAYS


def _imported_by(project: Project, entry: str, file: str) -> tuple[set[str], bool]:
    """The packages out of sight that `file` and the files that it imports import, and whether all their other imports
    are the same files from `entry`."""
    locate, packages, same = project.files.locate, set[str](), True
    stack, seen = [file], {file}
    while stack:
        path = stack.pop()
        for dotted in project.files.outline(path).imports:
            place = locate(dotted, path)
            if place is None:
                packages.add(dotted.partition(".")[0])
                continue
            there = place if dotted.startswith(".") else locate(dotted, entry)
            same = same and there is not None and there.path == place.path
            if place.path not in seen:
                seen.add(place.path)
                stack.append(place.path)
    return packages, same


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


def _works(project: Project, file: str, packages: Container[str]) -> bool:
    """Whether importing `file` does more than define things, or runs what the packages around it import and do, those
    `packages` aside that are imported already."""
    around = (one for one in project.files.modules.packages(file) if one not in packages)
    if not all(isinstance(one, ast.Expr) for path in around for one in parsed_body(project.files.text(path))):
        return True
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
