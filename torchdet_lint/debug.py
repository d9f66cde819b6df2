"""`FILE:LINE` -> what the analysis knows of the expressions on that line, and why the rules that looked are silent.

`python -m torchdet_lint.debug train.py:12`, or `notebook.ipynb:3:12` for a line of a code cell. The file is not run.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint import config
from torchdet_lint.checks.operations.candidates import Operations
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.engine import run
from torchdet_lint.engine.linter import Linter
from torchdet_lint.inference.abstract_values import UNKNOWN, AbstractValue
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.infer import Inference
from torchdet_lint.module.cells import legible
from torchdet_lint.module.module import Module, SyntaxFault
from torchdet_lint.reading import read
from torchdet_lint.regex import lazy
from torchdet_lint.source.decoding import SourceFault, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Call

_PLACE = lazy(r"(?P<path>.+?):(?:(?P<cell>\d+):)?(?P<row>\d+)")
_SHOWN = (cst.Call, cst.Attribute, cst.Name, cst.Subscript, cst.BinaryOperation, cst.Comparison, cst.Set)
_WIDTH = 14


class Inspection:
    """What is known of one row of a file."""

    def __init__(self, linter: Linter, path: str, row: int, cell: int | None = None) -> None:
        """Raises `OSError`, `SourceFault` and `SyntaxFault` where the file cannot be read."""
        self.linter = linter
        self.path = path
        source = legible(decode(path, read(path)))[0]
        self.row = source.row(cell, row)
        self.module = Module(source, linter.library, linter.target)
        linter.connect(self.module, path)
        self.module.load_all()
        self.inference = self.module.shared(Inference)

    def lines(self) -> Iterator[str]:
        """The report, line by line."""
        nodes = self.expressions()
        if not nodes:
            yield "no expression begins on this line"
        for node in nodes:
            yield self.module.code(node).strip().partition("\n")[0]
            for label, text in self.facts(node):
                yield f"    {label:{_WIDTH}}{text}"
        yield from self.verdicts()

    def expressions(self) -> list[cst.BaseExpression]:
        """The expressions that begin on the row, outer ones first, each text once."""
        found: dict[str, cst.BaseExpression] = {}
        for node in self.module.places.starting_in(self.row):
            if isinstance(node, _SHOWN) and self._is_value(node):
                found.setdefault(self.module.code(node), node)
        return sorted(found.values(), key=lambda node: (self.module.span(node)[0], -len(self.module.code(node))))

    def _is_value(self, node: cst.BaseExpression) -> bool:
        """Whether a node is a value of its own: not what is called, an attribute's name or the name of an argument."""
        parent = self.module.parent(node)
        if isinstance(parent, cst.Call):
            return parent.func is not node
        if isinstance(parent, cst.Attribute):
            return parent.value is node and not isinstance(node, (cst.Name, cst.Attribute))
        return parent is not None

    def facts(self, node: cst.BaseExpression) -> Iterator[tuple[str, str]]:
        """Label and text of each thing that is known of an expression."""
        names: Sequence[str] = self.module.resolve(node.func if isinstance(node, cst.Call) else node)
        call = self.module.call_at(node) if isinstance(node, cst.Call) else None
        if call is not None and call.names:
            names = call.names
        yield "name", ", ".join(names) or "not resolved"
        inferred = self.inference.infer(node)
        yield "value", described(inferred)
        if inferred.is_tensor and self.module.shared(Gradients).untracked(node):
            yield "gradient", "none flows here: no_grad, inference_mode or code that does not train is around it"
        uses = [use for use in Follower(self.module).uses(node) if use.node is not node and use.kind != "other"]
        if uses and isinstance(node, (cst.Call, cst.Set)) and not inferred.is_tensor:
            places = [f"{use.kind} in line {self.module.span(use.node)[0].row}" for use in uses]
            yield "its order is", ", ".join(dict.fromkeys(places))

    def verdicts(self) -> Iterator[str]:
        """The findings of the row, and for each rule that looked at a call on it why it says nothing."""
        yield ""
        result = run.run([self.path], self.linter.settings)
        told = {finding.code for finding in result.findings if self._is_here(finding.location.row, finding.cell)}
        for finding in result.findings:
            if finding.code in told and self._is_here(finding.location.row, finding.cell):
                yield f"{finding.code} {finding.severity}: {finding.message}"
        silent = [line for code, line in self._silences() if code not in told]
        yield from dict.fromkeys(silent)
        if not told and not silent:
            yield "no rule speaks of what stands on this line"

    def _is_here(self, row: int, cell: int | None) -> bool:
        return self.module.source.row(cell, row) == self.row

    def _silences(self) -> Iterator[tuple[str, str]]:
        calls = [call for call in self.module.calls if self.module.span(call.node)[0].row == self.row]
        operations = self.module.shared(Operations)
        index = self.module.library.operations(self.module.target.torch)
        for call in calls:
            for candidate in operations.candidates(call, index):
                reason = operations.objection(candidate)
                if reason:
                    op = candidate.operation
                    yield op.code, f"{op.code} is silent about {op.spelling.name} ({op.op.direction}): {reason}"
            for code, rule in sorted(self.linter.catalogue.rules.items()):
                if code not in self.linter.codes:
                    continue
                for reason in self._rows(rule, call):
                    yield code, f"{code} is silent about {self.module.code(call.node.func)}: {reason}"

    def _rows(self, rule: Rule, call: Call) -> Iterator[str]:
        """Why the rows of a rule's table that name `call` do not report it."""
        for row in rule.calls:
            if set(row.names).isdisjoint(call.names):
                continue
            if not set(row.excluding).isdisjoint(call.names):
                yield "this class sees to it itself"
            for condition in row.when:
                if not self.module.holds(call, condition, row.parameters):
                    yield f"it asks that {asked(condition)}"
                    break


def asked(condition: Condition) -> str:
    """A condition in words."""
    values = " or ".join(map(repr, condition.values))
    words = {
        "absent": "is not passed", "missing": "is not passed or is None", "given": "is passed and is not None",
        "truthy": "is true", "falsy": "is false", "in": f"is {values}", "not-in": f"is known and is not {values}",
        "possible": f"may be {values}", "unless": f"is not {values}", "ranging": "is a range of more than one number",
    }  # fmt: skip
    return f"`{condition.argument}` {words.get(condition.test, f'meets the test {condition.test} {values}'.rstrip())}"


def described(inferred: AbstractValue) -> str:
    """An abstract value in words: what differs from a value of which nothing is known."""
    if inferred == UNKNOWN:
        return "unknown"
    plain = {"what": "", "dtype": "", "device": "on ", "gradient": "gradient: "}
    parts = [
        f"{before}{getattr(inferred, name)}" for name, before in plain.items() if getattr(inferred, name) != "unknown"
    ]
    for name in inferred.__struct_fields__:
        value = getattr(inferred, name)
        if name not in plain and value != getattr(UNKNOWN, name):
            shown = sorted(value) if isinstance(value, frozenset) else value
            if isinstance(value, AbstractValue):
                shown = f"({described(value)})"
            parts.append(name if value is True else f"{name}={shown}")
    return ", ".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Print what is known of a line; 2 where the file or the line cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m torchdet_lint.debug", description=str(__doc__).partition("\n")[0])
    parser.add_argument("place", metavar="FILE:LINE", help="a line, for a notebook FILE:CELL:LINE")
    parser.add_argument("--isolated", action="store_true", help="read no configuration")
    given = parser.parse_args(arguments)
    match = _PLACE.fullmatch(given.place)
    if match is None:
        parser.error(f"{given.place!r} is not FILE:LINE")
    path, cell = match["path"], int(match["cell"]) if match["cell"] else None
    try:
        found = config.isolated([path]) if given.isolated else config.find([path])
        settings = config.merge(found, config.Options(min_severity="note", jobs=1))
        if not given.isolated:
            settings = config.judged_alone(settings, path)
        linter = Linter(settings)
        lines = list(Inspection(linter, path, int(match["row"]), cell).lines())
    except (OSError, SourceFault, SyntaxFault, config.ConfigError) as error:
        print(f"{path}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
