"""A program -> whether it seeds torch only where an option asks for it that nothing in sight sets."""

from __future__ import annotations

import ast
import operator
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.option_values import given_in_code, given_in_data
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.effects import APART, WORKER
from torchdet_lint.program.events import GUARD
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.regex import lazy
from torchdet_lint.source import data_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.program.call_graph import Project
    from torchdet_lint.program.effects import Node
    from torchdet_lint.program.entry import Entry

# So many calls lead at most to the seed, and so many files of data are read.
_DEEP = 6
_DATA = 40
_SEEDS = frozenset({"seed:torch", f"{APART}:torch"})
_CONFIGURES = lazy(r"(?i)conf|option|setting|experiment|param")
# What YAML, JSON and TOML call the constants of Python.
_CONSTANTS = {"null": "None", "~": "None", "": "None", "true": "True", "false": "False"}
# An option of a command line, with what it is by default.
_OPTION = lazy(r"\.add_argument[ \t]*\([^()]*(?:\([^()]*\)[^()]*)*\)")
_DEFAULT = lazy(r"\bdefault\s*=\s*([^,()]+)")
_REQUIRED = lazy(r"\b(?:required|action)\s*=")
_COMPARISONS: Mapping[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


class OptionalSeeds:
    """The seeds of programs that stand below questions for an option."""

    def __init__(self, project: Project) -> None:
        self.files = project.files
        self._values: dict[tuple[str, frozenset[str]], list[Any] | None] = {}
        self._around: dict[tuple[str, int], list[tuple[ast.expr, bool]]] = {}

    def of(self, entry: Entry) -> bool:
        """Whether each seed of torch in a program is one that what is in sight of the options leaves out."""
        return not _SEEDS.isdisjoint(entry.effects) and self._left_out(entry, entry.node, None, _DEEP)

    def _left_out(self, entry: Entry, node: Node, files: frozenset[str] | None, depth: int) -> bool:
        for step in entry.project.steps(node):
            seeds = step.kind == "seed" and step.channel == "torch"
            called = entry.project.effects(step.node) if step.node is not None and step.kind != WORKER else {}
            inside = not _SEEDS.isdisjoint(called)
            if not (seeds or inside):
                continue
            asked = any(arm != GUARD for arm in step.branch)
            if asked and files is None:
                files = frozenset(one.file for one in entry.reached())
            if asked and files and self._is_off(node.file, step.ref.row, files):
                continue
            if step.node is None or depth <= 0 or not self._left_out(entry, step.node, files, depth - 1):
                return False
        return True

    def _is_off(self, file: str, row: int, files: frozenset[str]) -> bool:
        """Whether a question around a row of a file comes out so that it does not run."""
        if (file, row) not in self._around:
            self._around[file, row] = list(_around(parsed_body(self.files.text(file)), row))
        return any(self._told(test, files) is (not holds) for test, holds in self._around[file, row])

    def _told(self, test: ast.expr, files: frozenset[str]) -> bool | None:
        """What a question comes to, by all values in sight of the option that it asks for; None: nobody knows."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                told = self._told(inner, files)
                return None if told is None else not told
            case ast.BoolOp(op=kind, values=parts):
                all_of = [self._told(part, files) for part in parts]
                decides = isinstance(kind, ast.Or)
                if decides in all_of:
                    return decides
                return None if None in all_of else not decides
            case ast.Compare(left=asked, ops=[op], comparators=[ast.expr() as other]) if type(op) in _COMPARISONS:
                compared = _literal(ast.unparse(other))
                values = self._of(asked, files) if compared else None
                answers = {_compare(op, value, compared[0]) for value in values or ()} if compared else set()
                return answers.pop() if len(answers) == 1 else None
        answers = {bool(value) for value in self._of(test, files) or ()}
        return answers.pop() if len(answers) == 1 else None

    def _of(self, asked: ast.expr, files: frozenset[str]) -> list[Any] | None:
        """All values in sight of an option, `args.seed`; None where one of them is not known, or there is none."""
        name = asked.attr if isinstance(asked, ast.Attribute) else asked.id if isinstance(asked, ast.Name) else ""
        if not name:
            return None
        if (name, files) not in self._values:
            told = [_literal(source) for source in self._sources(name, files)]
            known = [one[0] for one in told if one is not None]
            self._values[name, files] = known if known and len(known) == len(told) else None
        return self._values[name, files]

    def _sources(self, name: str, files: frozenset[str]) -> Iterator[str]:
        for file in sorted(files):
            text = self.files.text(file)
            if name in text or name.replace("_", "-") in text:
                option = re.compile(rf"[\"']--(?:{name}|{name.replace('_', '-')})[\"']")
                for call in filter(option.search, _OPTION.findall(text)):
                    text = text.replace(call, "")
                    default = _DEFAULT.search(call)
                    yield default[1].strip() if default is not None else "" if _REQUIRED.search(call) else "None"
                yield from given_in_code(name, text)
        for path in self._data(files):
            yield from (_CONSTANTS.get(one.lower(), one) for one in given_in_data(name, self.files.text(path)))

    def _data(self, files: frozenset[str]) -> list[str]:
        """The files of data beside those of a program, and in folders of configurations there and below the root."""
        around = {str(PurePath(file).parent) for file in files} | {self.files.modules.root}
        below = {
            str(PurePath(folder, entry[:-1]))
            for folder in around
            for entry in self.files.modules.listing(folder)
            if entry.endswith("/") and _CONFIGURES.search(entry)
        }
        found = [
            str(PurePath(folder, name))
            for folder in sorted(around | below)
            for name in data_files.names(self.files.modules.listing(folder))
        ]
        return found[:_DATA]


def _around(body: list[ast.stmt], row: int) -> Iterator[tuple[ast.expr, bool]]:
    """The tests of the `if`s around a row, each with whether it has to hold there."""
    for node in (inner for statement in body if _spans(statement, row) for inner in walk(statement)):
        if isinstance(node, ast.If):
            if any(_spans(one, row) for one in node.body):
                yield node.test, True
            elif any(_spans(one, row) for one in node.orelse):
                yield node.test, False


def _spans(node: ast.stmt, row: int) -> bool:
    return node.lineno <= row <= (node.end_lineno or node.lineno)


def _literal(source: str) -> tuple[Any] | None:
    try:
        return (ast.literal_eval(source),)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _compare(op: ast.cmpop, value: Any, other: Any) -> bool | None:
    try:
        return bool(_COMPARISONS[type(op)](value, other))
    except TypeError:
        return None
