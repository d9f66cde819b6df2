"""The linted files and what they import -> what the rules about whole programs find in them. Only what an entry point
imports is read; what was worked out is cached by content."""

from __future__ import annotations

import ast
import operator
import os
from typing import TYPE_CHECKING

from torchdet_lint.checks.programs import PROGRAM_CHECKS
from torchdet_lint.engine.entry_points import EntryPoints
from torchdet_lint.engine.outcome import MISSED, MODE, Outcome, token
from torchdet_lint.engine.program_reports import Reporter
from torchdet_lint.engine.record import Whole
from torchdet_lint.engine.settled import Settling, is_within
from torchdet_lint.finding import Cause, Location
from torchdet_lint.program.call_graph import Project
from torchdet_lint.program.effects import STARTED, Effects, Node, Ref
from torchdet_lint.program.entry import Entry, Reported
from torchdet_lint.program.events import MODULE, Memo
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.reading import read
from torchdet_lint.regex import lazy
from torchdet_lint.source.cache import Cache, content_hash, decoded, encoded
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.lines import split_lines
from torchdet_lint.source.modules import TEST_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from torchdet_lint.engine.linter import Linter
    from torchdet_lint.engine.record import Look, Record
    from torchdet_lint.finding import Finding, Severity
    from torchdet_lint.source.suppress import Rows

# The op of which a message speaks.
_OP = lazy(r"`([\w.]+)`")


class ProgramRun:
    """One run over the linted files and what they import."""

    def __init__(
        self,
        linter: Linter,
        records: Mapping[str, Record],
        paths: Mapping[str, str],
        given: Mapping[str, bytes],
        cache: Cache,
        context: Set[str] = frozenset(),
        look: Look = lambda _: {},
    ) -> None:
        """`paths` are the files of `records` as the user names them, `given` those that are not as on disk; `cache`
        keeps what functions do; `context` are those of the files that the user did not name, of which `look` gives the
        whole records."""
        self.linter = linter
        self.records = records
        self.paths = paths
        self.given = given
        self.context = context
        self.read: dict[str, str] = {}
        self.errors: list[str] = []
        self.cache = cache
        self.project: Project = Project(
            linter.library, os.path.abspath(linter.settings.root), self.text, linter.settings.seed_functions, given,
            {path: record.outline for path, record in records.items()},
            {path: record.module for path, record in records.items() if record.module is not None}, linter.modules,
        )  # fmt: skip
        self.points = EntryPoints(records, linter.settings, self.project.files)
        self.whole = Whole(records, context, paths, look)
        self.settling = Settling(self.project, records, self.whole, self.points, linter.catalogue.facts.tensors)
        self.entries: list[Entry] = []
        self._reported: dict[str, dict[int, Reported]] = {}
        # The functions that speak of seeds, and the files that were asked for theirs.
        self._seeders: list[tuple[str, str]] = []
        self._asked: set[str] = set()
        self._looked = False
        self._in_named: dict[str, Sequence[Node]] = {}
        self._causes: dict[tuple[str, str], Cause | None] = {}
        self.reporter = Reporter(linter, paths, self.data, self.project.files.text)

    def data(self, path: str) -> bytes:
        """The bytes of a file. Raises what reading it raises."""
        return self.given[path] if path in self.given else read(path)

    def text(self, path: str) -> str | None:
        """The text of a file, for a notebook its code; None where it cannot be read. Only the hash of it is kept."""
        try:
            data = self.data(path)
        except (OSError, ValueError):
            self.read.setdefault(path, "")
            return None
        if path not in self.read:
            self.linter.pause()
            self.read[path] = content_hash(data)
            self._recall(path)
        try:
            source = decode(path, data)
        except SourceFault:
            return None
        if source.cells:
            from torchdet_lint.module.cells import legible

            return legible(source)[0].text
        return source.text

    def _recall(self, path: str) -> None:
        """Take what earlier runs summarised of the file from the cache."""
        known = decoded(self.cache.get(path, self.read[path]), Memo)
        if known is not None:
            self.project.files.memos[path] = known

    def run(self) -> Outcome:
        """What the rules find in every program, and what the programs say of single files."""
        self.linter.relied()
        entries: list[Entry] = []
        for path in self.points.paths():
            self.linter.pause()
            try:
                project = self.project.of_program(Node(path, STARTED))
                entry = Entry(
                    project, path, self.linter.target, token, self.reporter.line, self.seeders, self.reported,
                    self.linter.settings.seed,
                )  # fmt: skip
                assert entry.effects is not None
            except Exception as error:
                self.errors.append(_complaint(token(path), "the project's rules", error))
                continue
            entries.append(entry)
        self.entries = entries
        codes = sorted(code for code in self.linter.codes & PROGRAM_CHECKS.keys() if not self.linter.silent(code))
        # What a self-test shares with a program is told of the program.
        for entry in sorted(entries, key=self.points.tries_out):
            severity: Severity | None = "note" if self.points.tries_out(entry) else None
            for code in codes:
                rule = self.linter.catalogue.rules[code]
                self.linter.pause()
                try:
                    if code in MISSED and not self._concerns(entry, code):
                        continue
                    for fault in PROGRAM_CHECKS[code](entry, rule):
                        cause = self._cause(entry, code) if fault.ref.file in self.context else None
                        self.reporter.report(fault._replace(severity=severity or fault.severity), code, cause)
                except Exception as error:
                    self.errors.append(_complaint(token(entry.file), code, error))
        try:
            settled = self.settling.of(entries, deterministic=self.linter.settings.deterministic_algorithms)
        except Exception as error:
            settled = {}
            self.errors.append(_complaint(self.linter.settings.root, "what they say of files", error, "these programs"))
        self._remember()
        linted = self.records.keys()
        return Outcome(
            {path: [pairs[key] for key in sorted(pairs)] for path, pairs in sorted(self.reporter.found.items())},
            settled,
            {
                path: content
                for path, content in sorted(self.read.items())
                if path not in linted and path not in self.given
            },
            tuple(self.errors),
            {folder: self.project.files.modules.state(folder) for folder in self.project.files.modules.folders},
            tuple(sorted({*self.linter.relied(), *self.whole.relied})),
        )

    def _concerns(self, entry: Entry, code: str) -> bool:
        """Whether the user is told what the program lacks: it is a named file's, or such a file brings it about."""
        return entry.file not in self.context or self._cause(entry, code) is not None

    def _remember(self) -> None:
        for path, summary in self.project.files.summaries.items():
            if summary.grown and path in self.read:
                memo = encoded(summary.memo)
                if memo is not None:
                    self.cache.put(path, self.read[path], memo)
        self.cache.save()

    def _cause(self, entry: Entry, code: str) -> Cause | None:
        """What brings about, in a file that the user named, that the program lacks what the rule asks for: a function
        that the program calls, or else the top level of a file that it imports."""
        missed = MISSED.get(code)
        if missed is None:
            return None
        if (entry.file, missed) not in self._causes:
            self._causes[entry.file, missed] = self._first_cause(entry, missed)
        return self._causes[entry.file, missed]

    def _first_cause(self, entry: Entry, missed: str) -> Cause | None:
        functions: list[Cause] = []
        files: list[Cause] = []
        for node in self._named_nodes(entry):
            if missed in entry.project.effects(node):
                continue
            if node.name == MODULE:
                files += self._top_level(entry.project, node)
            else:
                functions += self._function(entry.project, node)
        return min(functions or files, default=None)

    def _named_nodes(self, entry: Entry) -> Sequence[Node]:
        """The nodes in files that the user named, but for notebooks, which a program reaches."""
        if entry.file not in self._in_named:
            files = {path for path in self.whole.named if not path.endswith(".ipynb")}
            self._in_named[entry.file] = [node for node in entry.reached() if node.file in files]
        return self._in_named[entry.file]

    def _function(self, project: Project, node: Node) -> list[Cause]:
        """The function of `node`, if it seeds a generator, turns the mode on or has a name that says so."""
        path, name = node.file, node.name.rpartition(".")[2]
        if not (_settles(project.effects(node)) or name in self.records[path].outline.seeders):
            return []
        head = f"def {name}("
        rows = [row for row, line in enumerate(split_lines(project.files.text(path)), 1) if head in line]
        return [self._marked(path, rows[0], head[:-1], name)] if len(rows) == 1 else []

    def _top_level(self, project: Project, node: Node) -> list[Cause]:
        """The first statement of a file that seeds a generator or turns the mode on when the file is imported. Where
        there is none, the first one of a file that is there for that by its name, and defines nothing."""
        path = node.file
        for step in project.steps(node):
            alone = {f"{step.kind}:{step.channel}": step.ref} if step.node is None else project.effects(step.node)
            importing = step.node is not None and step.node.name == MODULE
            if step.ref.file == path and not importing and _settles(alone):
                return [self._marked(path, step.ref.statement)]
        folder, name = os.path.split(path)
        stem = os.path.basename(folder) if name == "__init__.py" else name.rpartition(".")[0]
        if not self.linter.catalogue.facts.conventions.seeding_file.fullmatch(stem):
            return []
        body = parsed_body(project.files.text(path))
        if any(isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for statement in body):
            return []
        rows = [one.lineno for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
        return [self._marked(path, rows[0] if rows else 1)]

    def _marked(self, path: str, row: int, part: str = "", function: str = "") -> Cause:
        """The cause in a row of a file, or in the `part` of the row."""
        lines = split_lines(self.project.files.text(path))
        line = lines[row - 1].rstrip() if row <= len(lines) else ""
        part = part or line.lstrip()
        column = line.rindex(part) + 1
        return Cause(token(path), Location(row, column), Location(row, column + len(part)), function)

    # ------------------------------------------------------------------ entry points
    def reported(self, path: str) -> Mapping[int, Reported]:
        """The rows of the functions of a file in which an op is found, 0 outside of all; and what of it: an op of
        which but a warning is left raises in deterministic mode, and is the same in every run."""
        if path not in self._reported:
            functions = self._reported[path] = {}
            self._look_at_programs()
            record = self.whole.known.get(path)
            found: dict[int, list[Reported]] = {}
            files, scored = self.settling.ungraded(self.entries) if record is not None else (set(), {})
            unreached = self.settling.unreached.get(path, ()) if record is not None else ()
            uncalled = self.settling.uncalled(self.entries).get(path, ()) if record is not None else ()
            for finding, rows in zip(record.findings, record.rows, strict=True) if record is not None else ():
                if rows.first in unreached or is_within(rows.first, uncalled):
                    continue
                if finding.gradient and (path in files or rows.first in scored.get(path, ())):
                    continue
                if (finding.switchable or finding.raises) and finding.code.startswith("TDL4"):
                    varies = finding.severity == "error"
                    named = _OP.search(finding.message) if varies and not finding.raises else None
                    names = (named[1],) if named is not None else ()
                    found.setdefault(rows.first, []).append(Reported(_raising(path, finding, rows), varies, names))
            for row, above in self.settling.functions_around(path, sorted(found)):
                every = [functions[above or 0]] if (above or 0) in functions else []
                every += found[row]
                functions[above or 0] = Reported(
                    tuple(ref for one in every for ref in one.raising),
                    any(one.varies for one in every),
                    tuple(name for one in every for name in one.switchable),
                )
        return self._reported[path]

    def _look_at_programs(self) -> None:
        """Look at the files that programs reach of which the user may be told that they are not in deterministic
        mode."""
        if self.context and not self._looked:
            self._looked = True
            told = [entry for entry in self.entries if self._concerns(entry, MODE)]
            self.whole.ask({node.file for entry in told for node in entry.reached()})

    def seeders(self) -> list[tuple[str, str]]:
        """The functions that speak of seeds, of the files linted and of those that were read on the way."""
        for path in {*self.records, *self.read} - self._asked:
            self._asked.add(path)
            if path.endswith(".py") and not TEST_FILE.fullmatch(os.path.basename(path)):
                self._seeders += [(path, name) for name in self.project.files.outline(path).seeders]
        return sorted(self._seeders, key=operator.itemgetter(0))

    # ------------------------------------------------------------------ findings


def _settles(effects: Effects) -> bool:
    """Whether something seeds a generator, or turns torch's own mode on."""
    mode = effects.get("flag:mode")
    return any(key.startswith(("seed:", "apart:")) for key in effects) or (
        mode is not None and mode.what.startswith("torch.")
    )


def _raising(path: str, finding: Finding, rows: Rows) -> tuple[Ref, ...]:
    """The op of a finding, if it raises in deterministic mode."""
    if not finding.raises:
        return ()
    return (Ref(path, rows.first, finding.location.column - 1, rows.first, finding.raises),)


def _complaint(path: str, what: str, error: Exception, on: str = "this program") -> str:
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    return f"{path}: {what} failed on {on}, please report it: {reason}"
