"""Files x rules -> findings: the cache, the workers, and what happens to a finding on its way to the user."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from torchdet_lint import __version__, config
from torchdet_lint.catalogue.schema import RULES_DIRECTORY, fingerprint
from torchdet_lint.engine import whole_program
from torchdet_lint.finding import WITHHELD, Edit, Finding, Fix, Location, Related
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.outline import Outline, outline
from torchdet_lint.prefilter.skeleton import Skeleton, SyntaxFault
from torchdet_lint.program.events import Body
from torchdet_lint.program.launch_configs import yaml_names
from torchdet_lint.source import suppress
from torchdet_lint.source.cache import Cache, content_hash, decoded, encoded, interpreter
from torchdet_lint.source.files import Exclusion, File, Source, SourceFault, decode, discover, read
from torchdet_lint.source.modules import ModuleMap, Relied, Still
from torchdet_lint.source.suppress import Rows, Suppression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from torchdet_lint.catalogue.schema import Catalogue, Rule
    from torchdet_lint.config import Settings
    from torchdet_lint.finding import Found
    from torchdet_lint.fixes.plan import Planner
    from torchdet_lint.inference.cross_file import Elsewhere
    from torchdet_lint.module.module import Module
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.prefilter.triggers import Triggers

    Progress = Callable[[int, int], None]

SYNTAX, UNUSED = "TDL001", "TDL002"

_RULE_FILE = re.compile(r"([A-Z]{2,}\d{3})-([a-z0-9-]+)\.toml")
_PARALLEL_BYTES = 400_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


class Record(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """All that one file yields by itself, as it is cached.

    `findings` name the file "", `rows` are theirs in the file's text, `cells` are (number, first row) of a notebook's
    code cells. `errors` are faults of this program, which are never cached. `outline` is what the project half goes by,
    `module` what the file does at top level, where it was parsed. `relied` are the looks at other files that had a part
    in it: it holds as long as they find the same.
    """

    findings: tuple[Finding, ...] = ()
    rows: tuple[Rows, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    errors: tuple[str, ...] = ()
    outline: Outline = Outline()
    module: Body | None = None
    relied: tuple[Relied, ...] = ()


class Result(NamedTuple):
    """What a run reports: findings in the order of every output, the number of files read, one line for each thing
    that went wrong, and how many findings the baseline took away."""

    findings: tuple[Finding, ...]
    files: int
    errors: tuple[str, ...]
    known: int = 0


class Gathered(NamedTuple):
    """What the files yield one by one: their records by path, one line for each thing that went wrong, and the hashes
    of the files on disk."""

    linter: Linter
    records: dict[str, Record]
    errors: list[str]
    contents: dict[str, str]


def run(
    paths: Sequence[str],
    settings: Settings,
    *,
    texts: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Lint `paths`, and the `texts` that stand for files (standard input, files with fixes that are not written yet).

    Raises `ConfigError` and `CatalogueError`.
    """
    return conclude(gather(paths, settings, texts=texts, progress=progress), texts)


def gather(
    paths: Sequence[str],
    settings: Settings,
    *,
    texts: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> Gathered:
    """Look at every file by itself. Raises as `run` does."""
    given = dict(texts or {})
    linter = Linter(settings)
    linter.stand_in(given)
    exclusion = Exclusion(settings.root, settings.exclude, settings.default_excludes, settings.respect_gitignore)
    files, errors = discover(paths, exclusion)
    files = [file for file in files if file.path not in given]
    records = {path: linter.record(path, data) for path, data in given.items()}
    errors += [error for record in records.values() for error in record.errors]
    cache = Cache(settings.cache_dir, linter.key())
    contents: dict[str, str] = {}
    pending = _from_cache(files, cache, linter, records, contents, errors)
    done = len(files) - len(pending)
    for path, content, record in _linted(linter, pending):
        done += 1
        if progress is not None:
            progress(done, len(files))
        if isinstance(record, str):
            errors.append(record)
            continue
        records[path] = record
        contents[path] = content
        errors += record.errors
        if not record.errors and (data := encoded(record)) is not None:
            cache.put(os.path.abspath(path), content, data)
    cache.save()
    return Gathered(linter, records, errors, contents)


def conclude(gathered: Gathered, texts: Mapping[str, bytes] | None = None) -> Result:
    """The result of a run whose files were gathered; `texts` are those that are not as they are on disk."""
    settings, records = gathered.linter.settings, gathered.records
    gathered.linter.stand_in(texts or {})
    with _collector_off():
        together, complaints = whole_program.conclude(
            gathered.linter, dict(sorted(records.items())), texts or {}, gathered.contents
        )
    findings = _concluded(gathered.linter, together)
    kept = findings
    if settings.baseline:
        from torchdet_lint.engine import baseline

        kept = baseline.subtract(settings.baseline, findings, texts)
    kept.sort(key=lambda finding: finding.sort_key)
    return Result(tuple(kept), len(records), tuple(sorted({*gathered.errors, *complaints})), len(findings) - len(kept))


def _from_cache(
    files: Iterable[File],
    cache: Cache,
    linter: Linter,
    records: dict[str, Record],
    contents: dict[str, str],
    errors: list[str],
) -> list[File]:
    """Fill `records` and `contents` with what the cache knows; the files that it does not know are returned."""
    still = Still(linter.modules, linter.bytes_of)
    pending: list[File] = []
    for file in files:
        absolute = os.path.abspath(file.path)
        if absolute not in cache:
            pending.append(file)
            continue
        try:
            content = content_hash(read(file.path))
        except OSError as error:
            errors.append(f"{file.path}: {(error.strerror or str(error)).lower()}")
            continue
        record = decoded(cache.get(absolute, content), Record)
        if record is None or not _sound(record, linter) or not all(map(still.holds, record.relied)):
            pending.append(file)
        else:
            records[file.path] = record
            contents[file.path] = content
    return pending


def _sound(record: Record, linter: Linter) -> bool:
    """Whether a record from the cache is one that this linter may have made."""
    return len(record.rows) == len(record.findings) and all(
        finding.sound(linter.codes) and min(rows) > 0
        for finding, rows in zip(record.findings, record.rows, strict=True)
    )


def examine(linter: Linter, texts: Mapping[str, bytes]) -> tuple[list[Finding], list[str]]:
    """Lint files that are given as bytes, all of them one project: the findings in order, and complaints.

    YAML among them is what programs are configured with."""
    linter.stand_in(texts)
    records = {path: linter.record(path, texts[path]) for path in sorted(texts) if not yaml_names([path])}
    together, complaints = whole_program.conclude(linter, records, texts, {})
    findings = sorted(_concluded(linter, together), key=lambda finding: finding.sort_key)
    return findings, [*(error for record in records.values() for error in record.errors), *complaints]


# ------------------------------------------------------------------------------------------------------------ workers


def _linted(linter: Linter, files: Sequence[File]) -> Iterator[tuple[str, str, Record | str]]:
    """Path, content hash and record (or a complaint) of every file, in whatever order they are done."""
    jobs = min(linter.settings.jobs or _processors(), len(files))
    if jobs < 2 or not (linter.settings.jobs or sum(file.size for file in files) > _PARALLEL_BYTES):
        with _collector_off():
            for file in files:
                yield file.path, *linter.file(file.path)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    fork = sys.platform == "linux"
    if fork:
        linter.prepare()
        gc.collect()
        gc.freeze()
    context = multiprocessing.get_context("fork" if fork else "spawn")
    left = {file.path for file in files}
    try:
        with ProcessPoolExecutor(
            jobs, context, _start, (None if fork else (linter.settings, linter.texts or {}),)
        ) as pool:
            _Worker.linter = linter
            futures = [pool.submit(_work, paths) for paths in _batches(files, jobs)]
            for future in as_completed(futures):
                for path, content, record in future.result():
                    left.discard(path)
                    yield path, content, record
    except BrokenProcessPool:
        for path in sorted(left):
            yield _alone(context, linter, path)
    finally:
        if fork:
            gc.unfreeze()


class _Worker:
    """What a worker process holds."""

    linter: Linter | None = None


def _start(given: tuple[Settings, Mapping[str, bytes]] | None) -> None:
    """Make a worker ready: a forked one has everything, a spawned one reads the catalogue."""
    if given is not None:
        settings, texts = given
        _Worker.linter = Linter(settings)
        _Worker.linter.stand_in(texts)


def _work(paths: Sequence[str]) -> list[tuple[str, str, Record | str]]:
    assert _Worker.linter is not None
    with _collector_off():
        return [(path, *_Worker.linter.file(path)) for path in paths]


def _alone(context: Any, linter: Linter, path: str) -> tuple[str, str, Record | str]:
    """Lint one file in a process of its own, because some file has killed a worker."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        with ProcessPoolExecutor(1, context, _start, ((linter.settings, linter.texts or {}),)) as pool:
            return pool.submit(_work, (path,)).result()[0]
    except BrokenProcessPool:
        return path, "", f"{path}: the parser crashed on this file; it was not linted"


def _batches(files: Sequence[File], jobs: int) -> list[list[str]]:
    """Paths in batches of falling size: the largest files first, so that no worker is left with a long one."""
    goal = max(sum(file.size for file in files) // (jobs * 24), 1)
    batches: list[list[str]] = []
    filled = goal
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        if filled >= goal:
            batches.append([])
            filled = 0
        batches[-1].append(file.path)
        filled += file.size
    return batches


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _collector_off:  # noqa: N801
    """The garbage collector is a third of the cost of parsing, and parsing makes no garbage that only it finds."""

    def __enter__(self) -> None:
        self.was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was:
            gc.enable()


# ----------------------------------------------------------------------------------------------------------- one file


class Linter:
    """The selected rules, ready to be run on one file after the other. Making one parses no rule."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.texts: dict[str, bytes] | None = None
        self.stand_in({})
        self.names = rule_names(settings.rule_files)
        self.codes = config.selection(settings, self.names)
        self._catalogue: Catalogue | None = None
        self._library: Library | None = None
        self._triggers: Triggers | None = None
        self._planner: Planner | None = None

    def key(self) -> tuple[str, ...]:
        """All that a record depends on besides the file's content."""
        settings = self.settings
        relevant = (
            __version__, interpreter(), fingerprint(_extra(settings)), sorted(self.codes), settings.torch,
            settings.devices, settings.seed, settings.seed_functions, settings.deterministic_algorithms,
        )  # fmt: skip
        return tuple(map(repr, relevant))

    @property
    def catalogue(self) -> Catalogue:
        """The rules, read when the first file needs them."""
        if self._catalogue is None:
            from torchdet_lint.catalogue import schema

            self._catalogue = schema.load(extra=_extra(self.settings))
        return self._catalogue

    @property
    def library(self) -> Library:
        """The catalogue compiled for look-ups."""
        if self._library is None:
            from torchdet_lint.prefilter.library import Library

            self._library = Library(self.catalogue, self.triggers)
        return self._library

    @property
    def triggers(self) -> Triggers:
        """The prefilter, which imports no parser."""
        if self._triggers is None:
            from torchdet_lint.prefilter.triggers import Triggers

            self._triggers = Triggers(self.catalogue)
        return self._triggers

    def stand_in(self, texts: Mapping[str, bytes]) -> None:
        """Take `texts` for the content of files, in place of what is on disk."""
        if texts == self.texts:
            return
        self.texts = dict(texts)
        self._given = {os.path.abspath(path): data for path, data in texts.items()}
        self.modules = ModuleMap(os.path.abspath(self.settings.root), self._given)
        self._elsewhere: Elsewhere | None = None

    @property
    def elsewhere(self) -> Elsewhere:
        """What functions of other files return."""
        if self._elsewhere is None:
            from torchdet_lint.inference.cross_file import Elsewhere
            from torchdet_lint.module.module import Target

            target = Target(self.settings.torch, self.settings.devices)
            self._elsewhere = Elsewhere(self.library, target, self.modules, self.bytes_of)
        return self._elsewhere

    def relied(self) -> tuple[Relied, ...]:
        """The looks at other files since this was asked last."""
        return self._elsewhere.relied() if self._elsewhere is not None else ()

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
                return self._quiet(source, skeleton.hollowed(source.text))
        from torchdet_lint.module.module import Module, Target

        try:
            module = Module(source, self.library, Target(self.settings.torch, self.settings.devices), wanted)
        except SyntaxFault as fault:
            return self._faulty(fault, source)
        suppressions = suppress.parse(source.text)
        if suppressions.skip:
            return Record()
        absolute = os.path.abspath(path)
        module.foreign = lambda name: self.elsewhere.returned(name, absolute)
        module.starred = lambda name, stars: self.elsewhere.starred(name, stars, absolute)
        found, errors = self._checked(module, path)
        bodies = module.skeleton.bodies
        told = self._told(module.skeleton)
        module.release()
        self._planner = None
        pairs = sorted(found, key=lambda pair: pair[0].sort_key)
        return Record(
            tuple(finding for finding, _ in pairs), tuple(rows for _, rows in pairs), suppressions.entries,
            tuple((cell.number, cell.first_row) for cell in source.cells), errors,
            outline(source.text, bodies), told, self.relied(),
        )  # fmt: skip

    def _told(self, cut: Skeleton) -> Body | None:
        """What the file does at top level, while its tree is at hand; what fails here is told when it is asked for."""
        if cut.tree is not None:
            from torchdet_lint.program.summary import module_body

            with contextlib.suppress(Exception):
                return module_body(cut, frozenset(self.catalogue.facts.wrappers), self.library.canonical)
        return None

    def _quiet(self, source: Source, cut: Skeleton) -> Record:
        """Of a file in which no rule has anything to say. The library is not read for it alone."""
        suppressions = suppress.parse(source.text)
        cells = tuple((cell.number, cell.first_row) for cell in source.cells)
        if suppressions.skip:
            return Record()
        told = self._told(cut) if self._library is not None else None
        return Record((), (), suppressions.entries, cells, (), outline(source.text, cut.bodies), told)

    def _faulty(self, fault: Any, source: Source | None = None) -> Record:
        if SYNTAX not in self.codes:
            return Record()
        rule = self.catalogue.rules[SYNTAX]
        cell, row = source.place(fault.row) if source is not None else (None, fault.row)
        place = Location(row, fault.column)
        message = rule.message.format_map({"reason": fault.reason})
        finding = Finding(
            "", place, place, SYNTAX, rule.name, rule.severity, message, first_sentence(rule.instead), row, cell
        )
        return Record((finding,), (Rows(fault.row, fault.row, fault.row),))

    def silent(self, code: str) -> bool:
        """Whether the rule speaks of devices that the program does not run on."""
        rule = self.catalogue.rules.get(code)
        return rule is not None and rule.devices != () and set(rule.devices).isdisjoint(self.settings.devices)

    def _checked(self, module: Module, path: str) -> tuple[list[tuple[Finding, Rows]], tuple[str, ...]]:
        from torchdet_lint.checks import CHECKS, own_rule

        found: list[tuple[Finding, Rows]] = []
        errors: list[str] = []
        for code in sorted(self.codes & self.catalogue.rules.keys()):
            rule = self.catalogue.rules[code]
            if rule.scope != "file" or self.silent(code):
                continue
            check = CHECKS.get(code, own_rule)
            try:
                found += [self.finding(module, rule, one) for one in check(module, rule)]
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".partition("\n")[0]
                errors.append(f"{path}: {code} failed on this file, please report it: {reason}")
        return found, tuple(errors)

    def finding(self, module: Module, rule: Rule, found: Found) -> tuple[Finding, Rows]:
        """What a check found as the user is told it, and the rows of it in the text."""
        source = module.source
        start, end = module.span(found.node)
        noqa_row = module.places.noqa_rows(found.node)[1]
        cell, row = source.place(start.row)
        template = rule.messages[found.variant] if found.variant else rule.message
        related = []
        for other in found.related:
            place = module.span(other.node)[0]
            related.append(Related("", Location(source.place(place.row)[1], place.column), other.message))
        planned = self._planned(module, rule, found)
        withheld = planned.withheld if planned is not None else ""
        advice = found.details.get("instead") or first_sentence(rule.instead)
        finding = Finding(
            "",
            Location(row, start.column),
            Location(source.place(end.row)[1], end.column),
            rule.code,
            rule.name,
            found.severity or rule.severity,
            template.format_map(found.details),
            f"{advice}{WITHHELD}{withheld}." if withheld else advice,
            source.place(noqa_row)[1],
            cell,
            None if withheld else planned,
            tuple(related),
            found.switchable,
            found.raises,
        )
        return finding, Rows(start.row, max(start.row, min(end.row, noqa_row)), noqa_row)

    def _planned(self, module: Module, rule: Rule, found: Found) -> Fix | None:
        if not found.changes:
            return None
        if self._planner is None or self._planner.module is not module:
            from torchdet_lint.fixes.plan import Planner

            self._planner = Planner(module, self.settings.seed)
        return self._planner.plan(found, rule)


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


# ------------------------------------------------------------------------------------------------------- all the files


def _concluded(linter: Linter, records: Mapping[str, Record]) -> list[Finding]:
    """The findings of the whole run: those of the files and of the project, less what the user asked not to see."""
    settings = linter.settings
    ignored = _PerFile(settings)
    findings: list[Finding] = []
    for path, record in records.items():
        triples = list(zip(record.findings, record.rows, strict=True))
        kept, used = suppress.split([(finding.code, rows) for finding, rows in triples], record.suppressions)
        mine = [_named(finding, path) for (finding, _), stays in zip(triples, kept, strict=True) if stays]
        if UNUSED in linter.codes:
            mine += _unused(linter, path, record, used)
        findings += [
            finding
            for finding in mine
            if settings.reported(finding.severity) and not ignored.match(path, finding.code, finding.name)
        ]
    return findings


def _named(finding: Finding, path: str) -> Finding:
    related = tuple(
        msgspec.structs.replace(other, filename=path) if not other.filename else other for other in finding.related
    )
    return msgspec.structs.replace(finding, filename=path, related=related)


def _unused(linter: Linter, path: str, record: Record, used: Sequence[frozenset[str]]) -> Iterator[Finding]:
    """TDL002: a suppression of our codes that silences nothing. Another linter's codes, and ours that are not
    switched on, are left alone."""
    for entry, hits in zip(record.suppressions, used, strict=True):
        dead = [code for code in entry.codes if code not in hits and _judged(code, linter)]
        if not dead:
            continue
        rule = linter.catalogue.rules[UNUSED]
        cell, row = _place(record.cells, entry.row)
        content = entry.without(dead)
        start = Location(row, entry.begin if content else entry.column)
        edit = Edit(content, start, Location(row, entry.end), cell)
        yield Finding(
            path,
            Location(row, entry.begin),
            Location(row, entry.end),
            UNUSED,
            rule.name,
            rule.severity,
            rule.message.format_map({"codes": ", ".join(dead)}),
            first_sentence(rule.instead),
            row,
            cell,
            Fix("safe", rule.fix_title or "Remove the suppression", (edit,)),
        )


def _judged(code: str, linter: Linter) -> bool:
    """Whether this run can tell that a suppression of `code` is dead: every rule it may mean was run."""
    meant = [known for known in linter.names if known.startswith(code)]
    if not meant:
        return code.startswith("TDL")
    return UNUSED not in meant and all(known in linter.codes and not linter.silent(known) for known in meant)


def _place(cells: Sequence[tuple[int, int]], row: int) -> tuple[int | None, int]:
    found: tuple[int, int] | None = None
    for cell in cells:
        if cell[1] > row:
            break
        found = cell
    return (None, row) if found is None else (found[0], row - found[1] + 1)


class _PerFile:
    """`per-file-ignores`: patterns in gitignore's language, relative to the project."""

    def __init__(self, settings: Settings) -> None:
        self.root = settings.root
        self.table: list[tuple[Any, tuple[str, ...]]] = []
        if settings.per_file_ignores:
            import pathspec

            for pattern, codes in sorted(settings.per_file_ignores.items()):
                self.table.append((pathspec.GitIgnoreSpec.from_lines([pattern]), codes))

    def match(self, path: str, code: str, name: str) -> bool:
        """Whether the rule is not wanted in the file `path`."""
        if not self.table:
            return False
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return any(
            config.fits(selector, code, name)
            for spec, codes in self.table
            if spec.match_file(relative)
            for selector in codes
        )
