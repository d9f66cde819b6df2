"""The project half of a run: finds the entry points, runs the rules about whole programs, and settles what the rules of
single files left open. Only what an entry point imports is read; what was worked out is cached by content."""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.finding import Finding, Location, Related
from torchdet_lint.program.effects import STARTED
from torchdet_lint.program.events import MODULE
from torchdet_lint.source.cache import Cache, content_hash, decoded, encoded
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.lines import split_lines
from torchdet_lint.source.modules import Relied, Still
from torchdet_lint.source.reading import read
from torchdet_lint.source.suppress import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from torchdet_lint.checks.program import Entry, Fault
    from torchdet_lint.engine.linter import Linter
    from torchdet_lint.engine.record import Record
    from torchdet_lint.finding import Change
    from torchdet_lint.module.module import Module
    from torchdet_lint.program.call_graph import Project
    from torchdet_lint.program.effects import Node

_TEST = re.compile(r"(?:test_.*|.*_test|conftest)\.py")
_TOKEN = re.compile(r"\0([^\0]*)\0")
_WORKERS = "TDL301"
_LOADERS = frozenset({_WORKERS, "TDL302", "TDL303"})
_RAISES = "it varies from run to run, and raises in deterministic mode"
_WILL_RAISE = "it will raise, for every program that reaches this file turns deterministic mode on"


class Settled(msgspec.Struct, array_like=True, omit_defaults=True):
    """What the whole run knows of one file: whether every entry point that imports it is in deterministic mode, and
    whether one of them seeds torch; if none does, the rows of findings that such a program evidently runs."""

    covered: bool = False
    seeded: bool = False
    unseeded: tuple[int, ...] = ()


class Outcome(msgspec.Struct, array_like=True, omit_defaults=True):
    """All that the project half found, by absolute path, and what it went by besides the linted files: the hashes of
    the files it read ("": one that cannot be read), the states of the folders it looked into, looks at other files.

    Texts name files by `_token`, for what the user is shown depends on where the linter is started."""

    findings: dict[str, list[tuple[Finding, Rows]]] = {}
    settled: dict[str, Settled] = {}
    read: dict[str, str] = {}
    errors: tuple[str, ...] = ()
    folders: dict[str, str] = {}
    relied: tuple[Relied, ...] = ()


def conclude(
    linter: Linter, records: Mapping[str, Record], texts: Mapping[str, bytes], contents: Mapping[str, str]
) -> tuple[Mapping[str, Record], list[str]]:
    """The records with what the files say together, and complaints.

    `texts` are files that are given as bytes, `contents` the content hashes of the others, both by the path shown.
    """
    paths = {os.path.abspath(path): path for path in records}
    if not paths:
        return records, []
    key = (*linter.key(), repr(linter.settings.entry_points), linter.settings.root)
    cache = Cache(_folder(linter, texts), key, "project")
    states = sorted((path, contents.get(shown, ""), _left(records[shown])) for path, shown in paths.items())
    state = content_hash(msgspec.json.encode(states))
    outcome = _known(cache, linter, state)
    if outcome is None:
        outcome, changed = Outcome(), False
        if _matters(linter, records):
            given = {os.path.abspath(path): data for path, data in texts.items()}
            by_path = {path: records[shown] for path, shown in paths.items()}
            program = _Program(linter, by_path, paths, given, key)
            outcome = program.run()
            changed = any(
                content != contents.get(paths.get(path, ""), content) for path, content in program.read.items()
            )
        if not outcome.errors and not changed and (data := encoded(outcome)) is not None:
            cache.put(linter.settings.root, state, data)
            cache.save()

    def shown(text: str) -> str:
        return _TOKEN.sub(lambda match: paths.get(match[1]) or os.path.relpath(match[1]), text)

    found = {
        path: [(_readable(finding, shown), rows) for finding, rows in pairs] for path, pairs in outcome.findings.items()
    }
    merged = {
        name: _merged(records[name], found.get(path, []), outcome.settled.get(path, Settled()))
        for path, name in paths.items()
    }
    return merged, [shown(error) for error in outcome.errors]


def _token(path: str) -> str:
    return f"\0{path}\0"


def _readable(finding: Finding, shown: Callable[[str], str]) -> Finding:
    """`finding` with the paths in it as the user is shown them."""
    related = tuple(
        msgspec.structs.replace(other, filename=shown(other.filename), message=shown(other.message))
        for other in finding.related
    )
    return msgspec.structs.replace(finding, message=shown(finding.message), help=shown(finding.help), related=related)


def _left(record: Record) -> list[tuple[str, Rows]]:
    """What the whole program has a say in, of what a file yields by itself."""
    pairs = zip(record.findings, record.rows, strict=True)
    return [(finding.code, rows) for finding, rows in pairs if _open(finding)]


def _folder(linter: Linter, texts: Mapping[str, bytes]) -> str:
    """The cache folder; none where files are not as they are on disk."""
    return "" if texts else linter.settings.cache_dir


def _matters(linter: Linter, records: Mapping[str, Record]) -> bool:
    """Whether there may be a program, and a rule that has something to say about it."""
    startable = any(
        record.outline.guard or record.outline.works or path.endswith(".ipynb") for path, record in records.items()
    )
    if not (startable or linter.settings.entry_points or linter.settings.deterministic_algorithms):
        return False
    scopes = {linter.catalogue.rules[code].scope for code in linter.codes if code in linter.catalogue.rules}
    return "project" in scopes or any(_open(finding) for record in records.values() for finding in record.findings)


def _open(finding: Finding) -> bool:
    """Whether the whole program has a say in a finding."""
    return finding.switchable or finding.raises or finding.code in _LOADERS


def _known(cache: Cache, linter: Linter, state: str) -> Outcome | None:
    """What an earlier run found, if all that it went by is as it was: what is there, and what is not."""
    outcome = decoded(cache.get(linter.settings.root, state), Outcome)
    if (
        outcome is None
        or not all(finding.sound(linter.codes) for pairs in outcome.findings.values() for finding, _ in pairs)
        or any(linter.modules.state(folder) != known for folder, known in outcome.folders.items())
        or any(_content(path) != known for path, known in outcome.read.items())
        or not all(map(Still(linter.modules, linter.bytes_of).holds, outcome.relied))
    ):
        return None
    return outcome


def _content(path: str) -> str:
    try:
        return content_hash(read(path))
    except (OSError, ValueError):
        return ""


def _merged(record: Record, found: Sequence[tuple[Finding, Rows]], settled: Settled) -> Record:
    """The record of one file with the project's findings `found` in it, settled ones changed or gone."""
    pairs = [
        (changed, rows)
        for finding, rows in zip(record.findings, record.rows, strict=True)
        if (changed := _settle(finding, rows, settled)) is not None
    ]
    pairs += found
    pairs.sort(key=lambda pair: pair[0].sort_key)
    return msgspec.structs.replace(
        record, findings=tuple(finding for finding, _ in pairs), rows=tuple(rows for _, rows in pairs)
    )


def _settle(finding: Finding, rows: Rows, settled: Settled) -> Finding | None:
    if settled.covered and finding.switchable:
        return None
    if settled.covered and finding.raises:
        message = finding.message.replace(_RAISES, _WILL_RAISE)
        if message == finding.message:
            message = f"{message} ({_WILL_RAISE})"
        return msgspec.structs.replace(finding, message=message)
    if finding.code not in _LOADERS:
        return finding
    if settled.seeded:
        told = "; torch is seeded, so runs repeat as long as nobody adds a draw before"
        return msgspec.structs.replace(finding, severity="warning", message=finding.message + told)
    if rows.first in settled.unseeded:
        differs = "what the workers draw differs in every run" if finding.code == _WORKERS else "every run differs"
        told = f"; no entry point that reaches this line seeds torch, so {differs}"
        return msgspec.structs.replace(finding, severity="error", message=finding.message + told)
    return finding


class _Program:
    """One run over the linted files and what they import."""

    def __init__(
        self,
        linter: Linter,
        records: Mapping[str, Record],
        paths: Mapping[str, str],
        given: Mapping[str, bytes],
        key: tuple[str, ...],
    ) -> None:
        from torchdet_lint.program.call_graph import Project

        self.linter = linter
        self.records = records
        self.paths = paths
        self.given = given
        self.read: dict[str, str] = {}
        self.errors: list[str] = []
        self.cache = Cache(_folder(linter, given), key, "summaries")
        self.project: Project = Project(
            linter.library, os.path.abspath(linter.settings.root), self.text, linter.settings.seed_functions, given,
            {path: record.outline for path, record in records.items()},
            {path: record.module for path, record in records.items() if record.module is not None}, linter.modules,
        )  # fmt: skip
        self.modules: dict[str, Module | None] = {}
        self.imported: dict[str, set[str]] = {}

    def text(self, path: str) -> str | None:
        """The text of a file, for a notebook its code; None where it cannot be read. Only the hash of it is kept."""
        try:
            data = self.given[path] if path in self.given else read(path)
        except (OSError, ValueError):
            self.read.setdefault(path, "")
            return None
        if path not in self.read:
            self.read[path] = content_hash(data)
            self._recall(path)
        try:
            return decode(path, data).text
        except SourceFault:
            return None

    def _recall(self, path: str) -> None:
        """Take what earlier runs summarised of the file from the cache."""
        from torchdet_lint.program.events import Memo

        known = decoded(self.cache.get(path, self.read[path]), Memo)
        if known is not None:
            self.project.files.memos[path] = known

    def run(self) -> Outcome:
        from torchdet_lint.checks import PROGRAM_CHECKS
        from torchdet_lint.checks.program import Entry

        target = _target(self.linter)
        self.linter.relied()
        found: dict[str, dict[tuple[Any, ...], tuple[Finding, Rows]]] = {}
        entries: list[Entry] = []
        for path in self.entry_points():
            entry = Entry(self.project, path, target, _token, self.line, self.seeders)
            try:
                assert entry.effects is not None
            except Exception as error:
                self.errors.append(_complaint(_token(path), "the project's rules", error))
                continue
            entries.append(entry)
            for code in sorted(self.linter.codes & PROGRAM_CHECKS.keys()):
                rule = self.linter.catalogue.rules[code]
                try:
                    for fault in PROGRAM_CHECKS[code](entry, rule):
                        self._report(fault, code, found)
                except Exception as error:
                    self.errors.append(_complaint(_token(path), code, error))
        settled = self._settled(entries)
        self._remember()
        linted = self.records.keys()
        return Outcome(
            {path: [pairs[key] for key in sorted(pairs)] for path, pairs in sorted(found.items())},
            settled,
            {
                path: content
                for path, content in sorted(self.read.items())
                if path not in linted and path not in self.given
            },
            tuple(self.errors),
            {folder: self.project.files.modules.state(folder) for folder in self.project.files.modules.folders},
            self.linter.relied(),
        )

    def _remember(self) -> None:
        for path, summary in self.project.files.summaries.items():
            if summary.grown and path in self.read:
                memo = encoded(summary.memo)
                if memo is not None:
                    self.cache.put(path, self.read[path], memo)
        self.cache.save()

    # ------------------------------------------------------------------ entry points

    def entry_points(self) -> list[str]:
        """The linted files that a person starts, in order."""
        named = self._named()
        found, perhaps = [], []
        for path in sorted(self.records):
            outline = self.records[path].outline
            name = os.path.basename(path)
            if path in named:
                found.append(path)
            elif _TEST.fullmatch(name) or name in ("__init__.py", "setup.py"):
                continue
            elif outline.guard or name.endswith(".ipynb"):
                found.append(path)
            elif outline.works and name.endswith((".py", ".pyw")):
                perhaps.append(path)
        if perhaps:
            imported: set[str] = set()
            for path in sorted(self.records):
                imported |= self._imports(path)
            found += [path for path in perhaps if path not in imported]
        return sorted(found)

    def _imports(self, path: str) -> set[str]:
        """The files that `path` imports, by its outline."""
        known = self.imported.get(path)
        if known is not None:
            return known
        found = self.imported[path] = set()
        for dotted in self.project.files.outline(path).imports:
            place = self.project.files.modules.locate(dotted, path)
            if place is not None and place.path != path:
                found.add(place.path)
        return found

    def _named(self) -> set[str]:
        patterns = self.linter.settings.entry_points
        if not patterns:
            return set()
        import pathspec

        spec = pathspec.GitIgnoreSpec.from_lines(patterns)
        root = os.path.abspath(self.linter.settings.root)
        return {path for path in self.records if spec.match_file(os.path.relpath(path, root).replace(os.sep, "/"))}

    def seeders(self) -> list[tuple[str, str]]:
        """The functions that speak of seeds, of the files linted and of those that were read on the way."""
        outlines = {path: self.project.files.outline(path) for path in sorted({*self.records, *self.read})}
        return [
            (path, name)
            for path, outline in outlines.items()
            if path.endswith(".py") and not _TEST.fullmatch(os.path.basename(path))
            for name in outline.seeders
        ]

    # ------------------------------------------------------------------ findings

    def _report(self, fault: Fault, code: str, found: dict[str, dict[tuple[Any, ...], tuple[Finding, Rows]]]) -> None:
        """Make `fault` a finding: once where two entry points share the place, never outside the linted files."""
        path = fault.ref.file
        if path not in self.records:
            return
        key = (fault.ref.row, fault.ref.column, code)
        if key in found.get(path, {}):
            return
        module = self._module(path)
        if module is None:
            return
        from torchdet_lint.finding import Found

        row = fault.ref.row if fault.at_call else fault.ref.statement
        node = module.places.node_at(row, fault.ref.column if fault.at_call else None)
        rule = self.linter.catalogue.rules[code]
        changes = tuple(_placed(change, module) for change in fault.changes)
        one = Found(node, fault.details, fault.variant, fault.severity, changes=changes)
        finding, rows = self.linter.finding(module, rule, one)
        related = tuple(
            self._related(story.ref.file, story.ref.row, story.ref.column, story.message) for story in fault.related
        )
        found.setdefault(path, {})[key] = (msgspec.structs.replace(finding, related=related), rows)

    def _module(self, path: str) -> Module | None:
        if path not in self.modules:
            from torchdet_lint.module.module import Module, SyntaxFault

            self.modules[path] = None
            try:
                data = self.given[path] if path in self.given else read(path)
                module = Module(decode(self.paths[path], data), self.linter.library, _target(self.linter))
                module.ask_for_stars(lambda name, stars: self.linter.elsewhere.starred(name, stars, path))
                self.modules[path] = module
            except (OSError, SourceFault, SyntaxFault):
                pass
        return self.modules[path]

    def _related(self, path: str, row: int, column: int, message: str) -> Related:
        text = self.text(path) or ""
        lines = split_lines(text)
        line = lines[row - 1] if row <= len(lines) else ""
        characters = len(line.encode()[:column].decode(errors="replace"))
        return Related(_token(path), Location(self._placed(path, row)[1], characters + 1), message)

    def _placed(self, path: str, row: int) -> tuple[int | None, int]:
        """The cell of a row of a file, if it has cells, and the row in it."""
        if not path.endswith(".ipynb"):
            return None, row
        return decode(path, self.given[path] if path in self.given else read(path)).place(row)

    def line(self, path: str, row: int) -> str:
        """A row of a file in words."""
        cell, row = self._placed(path, row)
        return f"line {row}" if cell is None else f"cell {cell}, line {row}"

    # ------------------------------------------------------------------ what single files left open

    def _settled(self, entries: Iterable[Entry]) -> dict[str, Settled]:
        """What the entry points that reach a file say of it, for the files where it matters."""
        wanted = {path for path, record in self.records.items() if any(_open(finding) for finding in record.findings)}
        if not wanted:
            return {}
        if self.linter.settings.deterministic_algorithms:
            return {path: Settled(covered=True) for path in sorted(wanted)}
        entries = list(entries)
        exposed = self._reached(entry.file for entry in entries if not entry.has("mode"))
        covered = self._reached(entry.file for entry in entries if entry.has("mode"))
        seeded = self._reached(entry.file for entry in entries if entry.seeds_torch)
        run = self._run(entry.node for entry in entries if not entry.seeds_torch and self._runs(entry))
        return {
            path: Settled(
                path in covered and path not in exposed,
                path in seeded,
                self._among(path, run[path]) if path in run and path not in seeded else (),
            )
            for path in sorted(wanted)
        }

    def _runs(self, entry: Entry) -> bool:
        """Whether the entry point is known for one: a file with but some calls at top level, of which none draws, may
        as well be imported by files that nobody named."""
        outline = self.records[entry.file].outline
        started = outline.guard or entry.file.endswith(".ipynb") or entry.file in self._named()
        return started or bool(entry.draws("torch"))

    def _run(self, nodes: Iterable[Node]) -> dict[str, set[str]]:
        """The names of the functions that running `nodes` evidently calls, by file."""
        queue = list(nodes)
        seen = set(queue)
        found: dict[str, set[str]] = {}
        while queue:
            node = queue.pop()
            found.setdefault(node.file, set()).add(node.name)
            for step in self.project.steps(node):
                if step.node is not None and step.node not in seen:
                    seen.add(step.node)
                    queue.append(step.node)
        return found

    def _among(self, path: str, names: set[str]) -> tuple[int, ...]:
        """The rows of the findings about loaders in `path` that stand in one of the functions `names`."""
        record, summary = self.records[path], self.project.files.summary(path)
        pairs = zip(record.findings, record.rows, strict=True)
        wanted = sorted({rows.first for finding, rows in pairs if finding.code in _LOADERS})
        bodies = {body.row for name in names if name and (body := summary.body(name)) is not None}
        started = not names.isdisjoint((MODULE, STARTED))
        return tuple(
            row for row, above in self._around(path, wanted) if (above in bodies if above is not None else started)
        )

    def _around(self, path: str, rows: Sequence[int]) -> Iterator[tuple[int, int | None]]:
        """`rows` of a file, and where the innermost function around each begins."""
        try:
            tree = ast.parse(self.text(path) or "") if rows else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        nodes = ast.walk(tree) if tree is not None else ()
        functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        for row in rows:
            around = [node.lineno for node in functions if node.lineno <= row <= (node.end_lineno or row)]
            yield row, max(around, default=None)

    def _reached(self, files: Iterable[str]) -> set[str]:
        """The files that `files` import, directly or not, and themselves."""
        queue = list(files)
        seen = set(queue)
        while queue:
            for file in sorted(self._imports(queue.pop())):
                if file not in seen and file.endswith(".py"):
                    seen.add(file)
                    queue.append(file)
        return seen


def _placed(change: Change, module: Module) -> Change:
    """`change` with nodes of `module` where it names places."""
    from torchdet_lint.finding import NeedHelper, SeedFunction, SetArgument, Withhold

    if isinstance(change, NeedHelper) and change.before is not None:
        return change._replace(before=module.places.node_at(change.before.statement))
    if isinstance(change, SeedFunction) and change.given is not None:
        return change._replace(given=module.places.node_at(change.given.row, change.given.column))
    if isinstance(change, SetArgument):
        ref = change.call
        calls = module.calls_at(ref.row, ref.column)
        named = [call for call in calls if ref.what in call.names] or calls
        if len(named) != 1:
            return Withhold(f"the call in line {ref.row} that takes `{change.name}` is not evident")
        return change._replace(call=named[0].node)
    return change


def _complaint(path: str, what: str, error: Exception) -> str:
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    return f"{path}: {what} failed on this program, please report it: {reason}"


def _target(linter: Linter) -> Any:
    from torchdet_lint.module.module import Target

    return Target(linter.settings.torch, linter.settings.devices)
