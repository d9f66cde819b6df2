"""The bytes of one file x the selected rules -> its `Record`."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint import __version__, config
from torchdet_lint.catalogue.texts import RULES_DIRECTORY, fingerprint
from torchdet_lint.engine.outcome import MODE, OPS
from torchdet_lint.engine.record import Record
from torchdet_lint.finding import WITHHELD, Finding, Location, Related
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.outline import outline
from torchdet_lint.prefilter.skeleton import Skeleton, SyntaxFault
from torchdet_lint.reading import read
from torchdet_lint.regex import lazy
from torchdet_lint.source import suppress
from torchdet_lint.source.cache import content_hash, interpreter
from torchdet_lint.source.decoding import Source, SourceFault, decode
from torchdet_lint.source.modules import Contents, ModuleMap, Relied
from torchdet_lint.source.suppress import Rows, Suppressions

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from libcst import CSTNode

    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.config import Settings
    from torchdet_lint.dataflow.neighbours import Neighbours
    from torchdet_lint.finding import Fix, Violation
    from torchdet_lint.fixes.plan import Planner
    from torchdet_lint.inference.cross_file import CrossFile
    from torchdet_lint.module.module import Module, Target
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.prefilter.triggers import Triggers
    from torchdet_lint.program.events import Body

SYNTAX = "TDL001"
_UNFILLED = "TDL206"
_READS = "TDL501"

_RULE_FILE = lazy(r"([A-Z]{2,}\d{3})-([a-z0-9-]+)\.toml")
_LINE = lazy(r"\bline (\d+)")
_SENTENCE = lazy(r"(?<=[.!?])\s+(?=[A-Z`])")


class Linter:
    """The selected rules, ready to be run on one file after the other. Making one parses no rule."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.texts: dict[str, bytes] | None = None
        self.interrupt: Callable[[], None] | None = None
        """Called between files and between rules. It ends the work by raising what is no `Exception`."""
        self.stand_in({})
        self.names = rule_names(settings.rule_files)
        self._codes = {name: code for code, name in self.names.items()}
        self.codes = config.selection(settings, self.names)
        self.run_codes = self.codes | {code for code in self.names if MODE in self.codes and code.startswith(OPS)}
        """The rules that are run: those selected, and those whose findings one of them goes by."""
        self._key: tuple[str, ...] = ()
        self._catalogue: Catalogue | None = None
        self._library: Library | None = None
        self._planner: Planner | None = None

    def key(self) -> tuple[str, ...]:
        """All that a record depends on besides the file's content, as it was when this was first asked."""
        if self._key:
            return self._key
        settings = self.settings
        relevant = (
            __version__, interpreter(), fingerprint(_extra(settings)), sorted(self.codes), settings.torch,
            settings.older, settings.oldest, settings.devices, settings.seed, settings.seed_functions,
            settings.deterministic_algorithms,
            content_hash(read(settings.measured)) if settings.measured else "",
        )  # fmt: skip
        self._key = tuple(map(repr, relevant))
        return self._key

    @property
    def catalogue(self) -> Catalogue:
        """The rules, read when the first file needs them."""
        if self._catalogue is None:
            from torchdet_lint.catalogue import loading

            self._catalogue = loading.load(extra=_extra(self.settings))
            if self.settings.measured:
                from torchdet_lint.catalogue import measured, verdicts

                measurement = measured.read(self.settings.measured)
                self._catalogue = verdicts.on_machine(self._catalogue, measurement, self.settings.devices)
        return self._catalogue

    @property
    def library(self) -> Library:
        """The catalogue compiled for look-ups."""
        if self._library is None:
            from torchdet_lint.prefilter.library import library_of

            self._library = library_of(self.catalogue)
        return self._library

    @functools.cached_property
    def target(self) -> Target:
        """What the code is judged for."""
        from torchdet_lint.module.module import Target

        return Target(self.settings.torch, self.settings.devices, self.settings.older, self.settings.oldest)

    @property
    def triggers(self) -> Triggers:
        """The prefilter, which imports no parser."""
        from torchdet_lint.prefilter.triggers import triggers_of

        return triggers_of(self.catalogue)

    def stand_in(self, texts: Mapping[str, bytes]) -> None:
        """Take `texts` for the content of files, in place of what is on disk."""
        if texts == self.texts:
            return
        self.texts = dict(texts)
        self._given = {os.path.abspath(path): data for path, data in texts.items()}
        self.modules = ModuleMap(os.path.abspath(self.settings.root), self._given, self.bytes_of)
        self.read_anew()
        self._cross_file: CrossFile | None = None
        self._neighbours: Neighbours | None = None

    def read_anew(self) -> None:
        """Forget what files hold that were looked at from others: somebody may have written them."""
        self._contents = Contents(self.modules, self.bytes_of)

    @property
    def cross_file(self) -> CrossFile:
        """What functions of other files return."""
        if self._cross_file is None:
            from torchdet_lint.inference.cross_file import CrossFile

            self._cross_file = CrossFile(self.library, self.target, self.modules, self.bytes_of)
        return self._cross_file

    def relied(self) -> tuple[Relied, ...]:
        """The looks at other files since this was asked last."""
        found = set(self._cross_file.relied()) if self._cross_file is not None else set()
        if self._neighbours is not None:
            found |= self._neighbours.relied
            self._neighbours.release()
            self._neighbours = None
        return tuple(sorted(found))

    @property
    def neighbours(self) -> Neighbours:
        """The other files that values of the file at hand go to."""
        if self._neighbours is None:
            from torchdet_lint.dataflow.neighbours import Neighbours

            self._neighbours = Neighbours(
                self.library,
                self.target,
                self.modules,
                self._contents,
                lambda name, path: self.cross_file.returned(name, path),
                lambda name, path: self.cross_file.source_of(name, path),
            )
        return self._neighbours

    def bytes_of(self, path: str) -> bytes | None:
        """The bytes of the file with the absolute `path`, or None."""
        try:
            return self._given[path] if path in self._given else read(path)
        except OSError:
            return None

    def prepare(self) -> None:
        """Import and read everything, so that forked workers share it."""
        import torchdet_lint.checks

        assert torchdet_lint.checks.CHECKS is not None
        self.library.canonical("torch")

    def file(self, path: str) -> tuple[str, Record | str]:
        """Content hash and record of the file `path`; a complaint where it cannot be read."""
        try:
            data = read(path)
        except OSError as error:
            return "", f"{path}: {(error.strerror or str(error)).lower()}"
        return content_hash(data), self.record(path, data)

    def record(self, path: str, data: bytes) -> Record:
        """All that the file `path` with the bytes `data` yields by itself."""
        try:
            source = decode(path, data)
        except SourceFault as fault:
            return self._faulty(fault)
        wanted = self.triggers.within(source.text)
        if not wanted and not self.triggers.marked(source.text):
            with contextlib.suppress(SyntaxFault):
                return self._without_findings(source, skeleton.hollowed(source.text))
        from torchdet_lint.module.cells import legible
        from torchdet_lint.module.module import Module

        source, broken = legible(source)
        try:
            module = Module(source, self.library, self.target, wanted, with_tree=True)
        except SyntaxFault as fault:
            return self._faulty(fault, source)
        suppressions = _shifted(suppress.parse(source.text, self._codes), source)
        if suppressions.skip:
            return Record()
        self.connect(module, path)
        found, errors = self._checked(module, path)
        if broken:
            found += _pairs(self._faulty(_told(broken), source))
        bodies = module.skeleton.bodies
        body = self._module_body(module.skeleton)
        module.release()
        self._planner = None
        pairs = sorted(_unfilled(found), key=lambda pair: pair[0].sort_key)
        return Record(
            tuple(finding for finding, _ in pairs), tuple(rows for _, rows in pairs), suppressions.entries,
            tuple((cell.number, cell.first_row) for cell in source.cells), errors,
            outline(source.text, self.catalogue.facts.conventions, bodies), body, self.relied(),
        )  # fmt: skip

    def sketch(self, path: str, data: bytes) -> Record:
        """What the whole run goes by of a file that nobody named, read off its text: all but the findings."""
        try:
            source = decode(path, data)
        except SourceFault:
            return Record()
        return self._without_findings(source)

    def connect(self, module: Module, path: str) -> None:
        """Let the module of the file `path` ask what other files of the project say of its names and functions."""
        absolute = os.path.abspath(path)
        module.foreign = lambda name: self.cross_file.returned(name, absolute)
        module.defined = lambda name, file: self.cross_file.source_of(name, file or absolute)
        module.ask_for_stars(lambda name, stars: self.cross_file.starred(name, stars, absolute))
        module.ask_for_shadows(lambda name: self.neighbours.shadowed(name, absolute))
        module.neighbour = lambda name: self.neighbours.find(name, absolute)
        module.modules_beginning_with = lambda name, file: self.neighbours.beginning_with(name, file or absolute)
        module.heirs = lambda name: self.neighbours.heirs(name, absolute)
        module.callers = lambda name: self.neighbours.around(absolute).callers(name)
        module.methods = lambda name: self.neighbours.around(absolute).methods(name)
        module.methods_of = lambda class_, name: self.neighbours.around(absolute).methods_of(class_, name)
        module.readers = lambda name: self.neighbours.around(absolute).readers(name)
        module.naming = lambda name, most: self.neighbours.around(absolute).naming(name, most)
        module.speaking = lambda *words: self.neighbours.around(absolute).speaking(*words)
        module.data.held = lambda path: self.neighbours.data(path, absolute)
        module.changed = lambda name, file: self.neighbours.changed(name, file, absolute)
        module.registers = lambda name: self.neighbours.registers(name, absolute)
        module.option = lambda name: self.neighbours.option(name, absolute)
        module.own = lambda package: self.neighbours.own(package, absolute)

    def _module_body(self, cut: Skeleton) -> Body | None:
        """What the file does at top level, while its tree is at hand; what fails here is told when it is asked for."""
        if cut.tree is not None:
            from torchdet_lint.program.summary import module_body
            from torchdet_lint.program.syntax.vocabulary import Vocabulary

            with contextlib.suppress(Exception):
                return module_body(cut, Vocabulary.of(self.library))
        return None

    def _without_findings(self, source: Source, cut: Skeleton | None = None) -> Record:
        """The record of a file in which no rule has anything to say, or, without `cut`, of which no rule was asked. The
        library is not read for it alone."""
        suppressions = _shifted(suppress.parse(source.text, self._codes), source)
        cells = tuple((cell.number, cell.first_row) for cell in source.cells)
        if suppressions.skip:
            return Record()
        body = self._module_body(cut) if cut is not None and self._library is not None else None
        return Record(
            (),
            (),
            suppressions.entries,
            cells,
            (),
            outline(source.text, self.catalogue.facts.conventions, cut.bodies if cut is not None else ()),
            body,
        )

    def pause(self) -> None:
        """Let whoever waits for the work end it here."""
        if self.interrupt is not None:
            self.interrupt()

    def _unread(self, module: Module) -> Iterator[tuple[Finding, Rows]]:
        """What the user is told of statements that are Python, and that libcst could not read."""
        for row, reason in sorted(module.skipped) if SYNTAX in self.codes else ():
            yield from _pairs(self._faulty(SyntaxFault(row, 1, reason), module.source))

    def _faulty(self, fault: Any, source: Source | None = None) -> Record:
        if SYNTAX not in self.codes:
            return Record()
        rule = self.catalogue.rules[SYNTAX]
        cell, row = source.place(fault.row) if source is not None else (None, fault.row)
        place = Location(row, fault.column)
        reason = _in_cells(fault.reason, source, cell) if source is not None and source.cells else fault.reason
        message = rule.message.format_map({"reason": reason})
        finding = Finding(
            "", place, place, SYNTAX, rule.name, rule.severity, message, first_sentence(rule.instead), row, cell
        )
        return Record((finding,), (Rows(fault.row, fault.row, fault.row),))

    def silent(self, code: str) -> bool:
        """Whether the rule speaks of devices that the code does not run on, or of a mode that the user says is on."""
        if code == MODE and self.settings.deterministic_algorithms:
            return True
        rule = self.catalogue.rules.get(code)
        return rule is not None and rule.devices != () and set(rule.devices).isdisjoint(self.settings.devices)

    def _checked(self, module: Module, path: str) -> tuple[list[tuple[Finding, Rows]], tuple[str, ...]]:
        from torchdet_lint.checks import CHECKS, numbered, own_rule

        violations: list[tuple[Rule, Violation]] = []
        errors: list[str] = []

        def failed(code: str, error: Exception) -> None:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            errors.append(f"{path}: {code} failed on this file, please report it: {reason}")

        for code in sorted(self.run_codes & self.catalogue.rules.keys()):
            rule = self.catalogue.rules[code]
            if rule.scope != "file" or self.silent(code):
                continue
            self.pause()
            try:
                for one in CHECKS.get(code, own_rule)(module, rule):
                    if not module.is_dead(one.node):
                        violations.append((rule, one))
            except Exception as error:
                failed(code, error)
        found: list[tuple[Finding, Rows]] = []
        for rule, one in numbered(module, violations):
            try:
                found.append(self.finding(module, rule, one))
            except Exception as error:
                failed(rule.code, error)
        found += self._unread(module)
        return found, tuple(dict.fromkeys(errors))

    def finding(self, module: Module, rule: Rule, found: Violation) -> tuple[Finding, Rows]:
        """What a check found as the user is told it, and the rows of it in the text."""
        source = module.source
        start, end = module.span(found.node)
        noqa_row = module.places.noqa_rows(found.node)[1]
        cell, row = source.place(start.row)
        template = rule.messages[found.variant] if found.variant else rule.message
        related = []
        for other in found.related:
            place = module.span(other.node)[0]
            other_cell, other_row = source.place(place.row)
            at = Location(other_row, place.column + source.shift(place.row))
            related.append(Related("", at, other.message, other_cell))
        planned = self._planned(module, rule, found)
        withheld = planned.withheld if planned is not None else ""
        told = rule.helps.get(found.details.get("help", found.variant), "").format_map(found.details)
        advice = found.details.get("instead") or told or first_sentence(rule.instead)
        if machine := found.details.get("measured_on"):
            advice = f"{advice} The measurement is valid for {machine}."
        finding = Finding(
            "",
            Location(row, start.column + source.shift(start.row)),
            _end(module, start, end),
            rule.code,
            rule.name,
            found.severity or rule.severity,
            " ".join(template.format_map(found.details).split()),
            f"{advice}{WITHHELD}{withheld}." if withheld else advice,
            source.place(noqa_row)[1],
            cell,
            None if withheld else planned,
            tuple(related),
            found.switchable,
            found.raises,
            found.seeded_by,
            found.strict,
            found.gradient,
            found.draws,
            found.on_device,
            rule.url,
        )
        return finding, Rows(start.row, max(start.row, min(end.row, noqa_row)), noqa_row)

    def _planned(self, module: Module, rule: Rule, found: Violation) -> Fix | None:
        if not found.changes:
            return None
        if module.source.cells and _goes_on_in_next_cell(module, found.node):
            return None
        if self._planner is None or self._planner.module is not module:
            from torchdet_lint.fixes.plan import Planner

            self._planner = Planner(module, self.settings.seed)
        return _outside_of_indented_cells(self._planner.plan(found, rule), module.source)


def _end(module: Module, start: Location, end: Location) -> Location:
    """Where what stands from `start` to `end` in the text ends: within its cell, though the next may go on with it."""
    source = module.source
    if source.place(end.row)[0] != source.place(start.row)[0]:
        end = Location(start.row, len(module.skeleton.lines[start.row - 1].rstrip("\r\n")) + 1)
    return Location(source.place(end.row)[1], end.column + source.shift(end.row))


def _goes_on_in_next_cell(module: Module, node: CSTNode) -> bool:
    """Whether the statement of `node` is not done where its cell ends, so that no edit of a cell can mend it."""
    first, last = module.span(module.statement(node) or node)
    return module.source.place(first.row)[0] != module.source.place(last.row)[0]


def _in_cells(reason: str, source: Source, here: int | None) -> str:
    """What Python says of a notebook's joined text, with its lines counted in their cells."""

    def counted(match: re.Match[str]) -> str:
        cell, row = source.place(int(match[1]))
        return f"line {row}" if cell == here else f"line {row} of cell {cell}"

    return _LINE.sub(counted, reason)


def _told(faults: Sequence[SyntaxFault]) -> SyntaxFault:
    """One complaint about the cells of a notebook that cannot be read, at the first of them."""
    first, others = faults[0], len(faults) - 1
    told = f" (nor can {others} other cell{'s' * (others > 1)})" if others else ""
    return SyntaxFault(first.row, first.column, first.reason + told)


def _pairs(record: Record) -> Iterator[tuple[Finding, Rows]]:
    return zip(record.findings, record.rows, strict=True)


def _shifted(found: Suppressions, source: Source) -> Suppressions:
    """`found` in the columns of cells that are indented as a whole."""
    if not any(cell.indent for cell in source.cells):
        return found
    entries = [
        msgspec.structs.replace(one, column=one.column + shift, end=one.end + shift, begin=one.begin + shift)
        for one in found.entries
        for shift in (source.shift(one.row),)
    ]
    return found._replace(entries=tuple(entries))


def _outside_of_indented_cells(fix: Fix | None, source: Source) -> Fix | None:
    indented = {cell.number for cell in source.cells if cell.indent}
    if fix is None or not any(edit.cell in indented for edit in fix.edits):
        return fix
    return msgspec.structs.replace(fix, edits=(), withheld="its cell is indented as a whole")


def first_sentence(text: str) -> str:
    """The first sentence of a paragraph, on one line."""
    return _SENTENCE.split(" ".join(text.split()), maxsplit=1)[0]


def rule_names(extra: Iterable[str] = ()) -> dict[str, str]:
    """Code -> name of every rule there is, from the names of the files alone."""
    names = [*sorted(os.listdir(RULES_DIRECTORY)), *(os.path.basename(path) for path in extra)]
    found = {match[1]: match[2] for name in names if (match := _RULE_FILE.fullmatch(name))}
    return dict(sorted(found.items()))


def _extra(settings: Settings) -> tuple[Any, ...]:
    from pathlib import Path

    return tuple(Path(path) for path in settings.rule_files)


def _unfilled(found: list[tuple[Finding, Rows]]) -> Iterator[tuple[Finding, Rows]]:
    """The findings, with the switch that leaves memory unfilled an error where the file reads such memory."""
    reads = any(finding.code == _READS for finding, _ in found)
    for finding, rows in found:
        if reads and finding.code == _UNFILLED:
            finding = msgspec.structs.replace(finding, severity="error")
        yield finding, rows
