"""What the entry points that reach a file say of it -> its findings, settled: changed, or gone."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.engine.outcome import (
    BACKWARD,
    DRAWN,
    FRESH,
    LOADERS,
    OPS,
    RECURRENT,
    SWITCHED,
    WORKERS,
    Settled,
    is_mended_once,
    is_open,
)
from torchdet_lint.finding import ELSEWHERE
from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.effects import APART, STARTED, WORKER
from torchdet_lint.program.entry import CHANNELS
from torchdet_lint.program.events import MODULE
from torchdet_lint.program.graded.runs import GradedRuns
from torchdet_lint.program.seeding.optional_seeds import OptionalSeeds
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.parameters.unpassed import left_off
from torchdet_lint.program.unrun.uncalled import uncalled
from torchdet_lint.program.unrun.unreached import Place, Unreached
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set

    from torchdet_lint.catalogue.facts import Tensors
    from torchdet_lint.engine.entry_points import EntryPoints
    from torchdet_lint.engine.record import Record, Whole
    from torchdet_lint.finding import Finding
    from torchdet_lint.program.call_graph import Project
    from torchdet_lint.program.effects import Node
    from torchdet_lint.program.entry import Entry
    from torchdet_lint.source.suppress import Rows

_RAISES = "it is nondeterministic, and raises in deterministic mode"
_WILL_RAISE = "it will raise: every program that uses this file turns deterministic mode on"
_DRAWS = "uses NumPy's global random number generator"
# An option called a seed that is drawn or taken from the clock, as TDL105 looks for it.
_DRAWN_SEED = lazy(r"\.\w*[sS]eed[ \t]*=[ \t]*[^=\s][^\n]*\b(?:rand\w*|time)[ \t]*\(")
# What a fix writes that seeds a generator with a number, and what files give their generators.
_NUMBER = lazy(r"(?:^|[(=])(\d+)(?: \+ (\d+))?\)?$")
_GIVEN = lazy(r"(?:\w+\s*=\s*)?(\d+)\s*[,)]")
# What torch was seeded with, where that is asked.
_INITIAL = "initial_seed()"
# By whether a program that imports the file seeds torch.
_UNSEEDED = ("no program that runs this line seeds torch", "a program that runs this line never seeds torch")
_PARTLY = "a program that runs this line seeds torch only in some runs"
_SEED_TORCH = (
    "Seed torch at the start of the program, `torch.manual_seed(seed)`: the seed of each worker follows from it."
)
_SEEDED_DRAWS = "uses NumPy's global generator, so any random call added before it changes the result"


def _written(finding: Finding) -> int | None:
    """The number with which the fix of a finding seeds a generator, if it is one."""
    match = _NUMBER.search(finding.fix.edits[-1].content) if finding.fix is not None else None
    return int(match[1]) + int(match[2] or 0) if match is not None else None


def _takes_initial_seed(finding: Finding) -> bool:
    """Whether the fix of a loader gives it what torch was seeded with where it is made."""
    edits = finding.fix.edits if finding.fix is not None else ()
    return finding.code != WORKERS and finding.code in LOADERS and any(_INITIAL in edit.content for edit in edits)


def merged(record: Record, found: Sequence[tuple[Finding, Rows]], settled: Settled) -> Record:
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


def is_within(row: int, ends: Sequence[int]) -> bool:
    """Whether `row` is between a first and a last row of `ends`."""
    return any(first <= row <= last for first, last in zip(ends[::2], ends[1::2], strict=True))


def _settle(finding: Finding, rows: Rows, settled: Settled) -> Finding | None:
    changed = _in_programs(finding, rows, settled)
    if changed is not None and changed.fix is not None and rows.first in settled.shared and is_mended_once(changed):
        changed = msgspec.structs.replace(changed, fix=msgspec.structs.replace(changed.fix, applicability="unsafe"))
    if changed is not None and changed.fix is not None and rows.first in settled.early and _takes_initial_seed(changed):
        # What torch is seeded with by then differs in every run.
        changed = msgspec.structs.replace(changed, fix=None)
    if changed is not None and is_within(rows.first, settled.aside):
        return msgspec.structs.replace(changed, severity="note")
    return changed


def _in_programs(finding: Finding, rows: Rows, settled: Settled) -> Finding | None:
    if finding.code == SWITCHED and rows.first in settled.off:
        return None
    if finding.code.startswith(OPS) and rows.first in settled.unreached:
        return None
    if finding.on_device and settled.on_host:
        return None
    if finding.gradient and (settled.ungraded or rows.first in settled.scored):
        return None
    cured = settled.covered or (settled.trained and finding.code in BACKWARD)
    if finding.switchable and cured and (settled.strict or not finding.strict):
        return None
    if settled.covered and settled.strict and finding.raises:
        message = finding.message.replace(_RAISES, _WILL_RAISE)
        if message == finding.message:
            message = f"{message} ({_WILL_RAISE})"
        return msgspec.structs.replace(finding, message=message)
    if finding.code == RECURRENT:
        return None if settled.workspace or settled.host_script else finding
    if finding.seeded_by in settled.seeds and (finding.code != DRAWN or rows.first not in settled.drawn):
        return _seeded(finding)
    return _loader(finding, rows, settled) if finding.code in LOADERS else finding


def _seeded(finding: Finding) -> Finding | None:
    """What is left where a program seeds the generator: a seed that was drawn is one that repeats, and a draw repeats
    as long as none is added."""
    if finding.code != DRAWN:
        return None
    message = finding.message.replace(_DRAWS, _SEEDED_DRAWS)
    return msgspec.structs.replace(finding, severity="warning", message=message)


def _loader(finding: Finding, rows: Rows, settled: Settled) -> Finding:
    if finding.code == WORKERS:
        if finding.severity == "error" or rows.first not in settled.unseeded or not finding.draws:
            return finding
        told = f"; {_UNSEEDED[settled.seeded]}, so the workers' random numbers differ in every run"
        if settled.partly and not settled.seeded:
            told = f"; {_PARTLY}, and the workers' random numbers differ in the others"
        return msgspec.structs.replace(finding, severity="error", message=finding.message + told, help=_SEED_TORCH)
    if finding.severity in ("note", "error"):
        return finding
    if rows.first in settled.unseeded:
        told = f"; {_UNSEEDED[settled.seeded]}, so every run differs"
        if settled.partly and not settled.seeded:
            told = f"; {_PARTLY}, and the others differ"
        return msgspec.structs.replace(finding, severity="error", message=finding.message + told)
    if settled.seeded:
        where = "only in the programs that seed torch"
        if rows.first not in settled.mixed:
            where = "in the programs that seed torch"
            if rows.first in settled.repeated:
                where = "with a fixed seed of torch" if settled.fresh else "today: torch is seeded"
        told = f" (repeatable {where})"
        return msgspec.structs.replace(finding, severity="warning", message=finding.message + told)
    return finding


def _is_open_op(finding: Finding) -> bool:
    return finding.code.startswith(OPS) and is_open(finding)


def _places(record: Record, wanted: Callable[[Finding], bool]) -> list[Place]:
    """The rows and columns, from 0, of the findings that are `wanted`."""
    pairs = zip(record.findings, record.rows, strict=True)
    return sorted({(rows.first, finding.location.column - 1) for finding, rows in pairs if wanted(finding)})


class Settling:
    """Works out what programs say of the files whose findings they have a say in."""

    def __init__(
        self, project: Project, records: Mapping[str, Record], whole: Whole, points: EntryPoints, tensors: Tensors
    ) -> None:
        """`records` are all there are, `whole` those with findings."""
        self.project = project
        self.whole = whole
        self.tensors = tensors
        self.records = records
        self.points = points
        self._ungraded: tuple[set[str], dict[str, tuple[int, ...]]] | None = None
        self._uncalled: dict[str, tuple[int, ...]] | None = None

    def of(self, entries: Iterable[Entry], *, deterministic: bool) -> dict[str, Settled]:
        """What the programs `entries` say of files, for those where it matters; `deterministic` where the user says
        that every program is in that mode."""
        named = self.whole.named
        wanted = {path for path, record in named.items() if any(is_open(finding) for finding in record.findings)}
        entries = list(entries)
        aside = self._tried(entries)
        for path, rows in self.uncalled(entries).items():
            aside[path] = (*aside.get(path, ()), *rows)
        if not wanted and not aside:
            return {}
        if deterministic:
            files = sorted({*wanted, *aside})
            return {path: Settled(covered=True, aside=aside.get(path, ()), strict=True) for path in files}
        lenient = self.points.reached(entry.file for entry in entries if entry.has("lenient"))
        ungraded, scored = self.ungraded(entries)
        programs = [entry for entry in entries if not self.points.tries_out(entry)]
        reach = self.points.reached
        exposed = reach(entry.file for entry in programs if not entry.has("mode"))
        training = reach(entry.file for entry in programs if not entry.has("mode") and entry.has("trains"))
        covered = reach(entry.file for entry in entries if entry.has("mode"))
        unset = reach(entry.file for entry in programs if not entry.sets_workspace)
        set_up = reach(entry.file for entry in entries if entry.sets_workspace)
        seeded = {
            library: reach(entry.file for entry in entries if entry.seeded(library) or entry.seeded_apart(library))
            for library in CHANNELS
        }
        elsewhere = self._seeded_elsewhere(entries)
        anywhere = reach(entry.file for entry in entries)
        on_host = reach(entry.file for entry in programs if entry.trains or entry.hides_gpus)
        on_host -= reach(entry.file for entry in programs if entry.has("cuda"))
        scripts = {entry.file for entry in programs if self._is_host_script(entry)}
        loading = [entry for entry in programs if entry.trains] or (programs if self.points.imports_by_name else [])
        common = [library for library in CHANNELS if all(entry.seeded(library) for entry in loading)]
        run, repeated = self._by_seed(entries, "torch", self._runs)
        early = self._run(node for entry in entries if entry.seeded("torch") for node in entry.above_seed("torch"))
        partly = reach(entry.file for entry in programs if "some:torch" in entry.effects)
        fresh = self._fresh(entries, wanted)
        drawn = self._drawn(entries, wanted)
        return {
            path: Settled(
                path in covered and path not in exposed,
                path in seeded["torch"],
                self._among(path, run[path] - repeated.get(path, set())) if path in run else (),
                path in covered and path not in training,
                path in set_up and path not in unset,
                tuple(
                    library
                    for library, files in seeded.items()
                    # What no program imports by name is loaded by one of those that train, or by any where none does.
                    if path in files or (loading and path not in anywhere and library in common)
                )
                + tuple(asked for asked, files in elsewhere.items() if path in files),
                aside.get(path, ()),
                path not in lenient,
                path in ungraded,
                scored.get(path, ()),
                self._shared(path),
                path in on_host,
                self._off(path),
                self._among(path, repeated[path]) if path in repeated else (),
                self._among(path, run[path] & repeated.get(path, set())) if path in run else (),
                path in fresh,
                self.unreached.get(path, ()),
                path in scripts,
                self._among(path, early[path]) if path in early else (),
                drawn.get(path, ()),
                path in partly,
            )
            for path in sorted({*wanted, *aside})
        }

    def _drawn(self, entries: Sequence[Entry], wanted: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """By file the rows of draws for want of a generator in functions that programs evidently call which never seed
        NumPy, and none that does: others import the file, and that is all."""
        named = self.whole.named
        asking = {path for path in wanted if any(one.code == DRAWN for one in named[path].findings)}
        if not asking:
            return {}
        run, seeded = self._by_seed(entries, "numpy", lambda entry: bool(entry.draws("numpy")))
        codes = frozenset({DRAWN})
        left = {path: run[path] - seeded.get(path, set()) - {MODULE} for path in asking if path in run}
        return {path: self._among(path, names, codes) for path, names in left.items()}

    def _seeded_elsewhere(self, entries: Sequence[Entry]) -> dict[str, set[str]]:
        """By library the files that a program reaches which seeds its generator in none of those of which a finding
        asks for another one."""
        named = self.whole.named
        asking = {path for path in named if any(one.seeded_by.endswith(ELSEWHERE) for one in named[path].findings)}
        seeds = [
            (library, entry, entry.effects.get(f"seed:{library}") or entry.effects.get(f"{APART}:{library}"))
            for entry in entries
            for library in CHANNELS
        ]
        return {
            f"{library}{ELSEWHERE}": self.points.reached(
                entry.file for one, entry, seed in seeds if one == library and seed and seed.file not in asking
            )
            for library in (CHANNELS if asking else ())
        }

    def _tried(self, entries: Iterable[Entry]) -> dict[str, tuple[int, ...]]:
        """By file the first and last rows of what self-tests alone run."""
        tried = [entry for entry in entries if entry.file in self.whole.known and self.points.tries_out(entry)]
        return {entry.file: rows for entry in tried if (rows := self._aside(entry))}

    def uncalled(self, entries: Sequence[Entry]) -> dict[str, tuple[int, ...]]:
        """First and last rows of the functions and classes that nothing names but self-tests: in a program with a main
        guard and in a notebook, which no file imports, and in all that programs run of a project that nobody can
        install. `entries` are all programs."""
        if self._uncalled is None:
            programs = {entry.file for entry in entries}
            files, known = set[str](), self.whole.known
            if not self.points.imports_by_name:
                points = self.points
                files = points.started(programs) if points.is_package else points.reached(programs)
            asked = {path: {rows.first for rows in known[path].rows} for path in known if path in files}
            self._uncalled = uncalled(asked, self.points.users, self.project.files, self._tried(entries))
        return self._uncalled

    def _aside(self, entry: Entry) -> tuple[int, ...]:
        """First and last rows of the main guard of a file that is only tried out, and of the functions that it calls
        which no other file names; of all of it where it has no guard."""
        record, text = self.records[entry.file], self.project.files.text(entry.file)
        if not record.findings:
            return ()
        if not record.outline.guard:
            return 1, text.count("\n") + 1
        called = {
            step.node.name
            for step in self.project.steps(entry.node)
            if step.node is not None and step.node.file == entry.file and step.node.name not in (MODULE, STARTED)
        }
        called = {name for name in called if not self.points.is_named(name)}
        rows: list[int] = []
        for node in parsed_body(text):
            function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in called
            if function or is_main_guard(node):
                rows += (node.lineno, node.end_lineno or node.lineno)
        return tuple(rows)

    def ungraded(self, entries: Sequence[Entry]) -> tuple[set[str], dict[str, tuple[int, ...]]]:
        """The files that only programs without gradients reach, and by file the rows of the findings about gradients
        that stand in what runs without them. `entries` are all programs."""
        if self._ungraded is None:
            self._ungraded = self._without_gradients(entries)
        return self._ungraded

    def _without_gradients(self, entries: Sequence[Entry]) -> tuple[set[str], dict[str, tuple[int, ...]]]:
        known = self.whole.known
        places = {path: told for path in known if (told := _places(known[path], lambda finding: finding.gradient))}
        if not places:
            return set(), {}
        without = {entry.file: entry for entry in entries if entry.without_gradients(self.tensors)}
        others = [entry for entry in entries if entry.file not in without]
        files = self.points.reached(without)
        files -= self.points.reached(entry.file for entry in others)
        left = sorted(places.keys() - files)
        runs = GradedRuns.of(self.project, others, without.values(), left, sorted(self.records))
        found: dict[str, tuple[int, ...]] = {}
        for path in left:
            body = self.project.files.summary(path).body
            names = runs.functions(path, self.project.files)
            if path in without and not self.points.tries_out(without[path]):
                names += self._own_functions(without[path], runs)
            above = {function.row for name in names if (function := body(name)) is not None}
            regraded = self._regraded(path, names)
            around = self.functions_around(path, {row for row, _ in places[path]}) if above else ()
            found[path] = tuple(row for row, function in around if function in above and row not in regraded)
        if files and not self.points.imports_by_name:
            # Arms that only what these programs pass leads to.
            texts = sorted(self.records.keys() - files)
            ruled_out = Unreached({path: places[path] for path in left}, texts, self.project.files).rows
            found |= {path: (*found.get(path, ()), *told) for path, told in ruled_out.items()}
        return files, found

    def _regraded(self, path: str, functions: Iterable[str]) -> set[int]:
        """The rows of calls in a `with torch.enable_grad()` of some functions of a file."""
        body = self.project.files.summary(path).body
        bodies = [found for name in functions if (found := body(name)) is not None]
        return {row for found in bodies for one in found.events if one.regraded for row in (one.row, one.statement)}

    @functools.cached_property
    def unreached(self) -> Mapping[str, tuple[int, ...]]:
        """By file the rows of the findings about ops in arms that all calls of the project rule out."""
        places = {path: told for path, record in self.whole.known.items() if (told := _places(record, _is_open_op))}
        # What is made by a name that is worked out is made with whatever that is given.
        if not places or self.points.imports_by_name:
            return {}
        return Unreached(places, sorted(self.records), self.project.files).rows

    def _own_functions(self, entry: Entry, others: GradedRuns) -> list[str]:
        """The functions of an entry point's file that it runs and other programs do not."""
        own = {node.name for node in entry.reached() if node.file == entry.file}
        return sorted(name for name in own - {MODULE, STARTED} if not others.reaches(entry.file, name))

    def _fresh(self, entries: Sequence[Entry], wanted: Iterable[str]) -> set[str]:
        """The files that a program reaches which may seed itself with something that is different in every run, or does
        so only where an option asks for it: asked of those that reach a loader."""
        named = self.whole.named
        loaders = {path for path in wanted if any(one.code in LOADERS for one in named[path].findings)}
        reaching = self.points.reaching(loaders, (entry.file for entry in entries))
        loading = [entry.file for entry in entries if entry.file in reaching]
        self.whole.ask(loading)
        # An option that is drawn in another file, which may be none of those linted, seeds the program as well.
        afresh = {path for path in (*loading, *named) if self._seeds_afresh(path)}
        around = self.points.reached(loading) - self.records.keys() if loading else ()
        afresh |= {one for one in around if one.endswith(".py") and _DRAWN_SEED.search(self.project.files.text(one))}
        seeding = self.points.reaching(afresh, loading) if afresh else set()
        optional = OptionalSeeds(self.project)
        seeding |= {entry.file for entry in entries if entry.file in reaching and optional.of(entry)}
        return self.points.reached(path for path in loading if path in seeding)

    def _seeds_afresh(self, path: str) -> bool:
        record = self.whole.known.get(path)
        return record is not None and any(one.code == FRESH and one.severity == "error" for one in record.findings)

    def _is_host_script(self, entry: Entry) -> bool:
        """Whether the file of a program is known to be one, is nothing to any other file, and names no device but the
        CPU."""
        return (
            not entry.has("cuda")
            and self._runs(entry)
            and entry.file not in self.points.all_imported
            and not self.points.imports_by_name
            and self.project.facts.library.facts.devices.names_only_cpu(self.project.files.text(entry.file))
        )

    def _runs(self, entry: Entry) -> bool:
        """Whether the entry point is known to be one. A file with only a few calls at top level, none of which draws,
        may as well be imported by files that were not linted, unless it makes a loader with workers and prints."""
        outline = self.records[entry.file].outline
        started = outline.guard or entry.file.endswith(".ipynb") or entry.file in self.points.named
        return started or bool(entry.draws("torch")) or (entry.has("workers") and entry.has("tells"))

    def _by_seed(
        self, entries: Sequence[Entry], library: str, counts: Callable[[Entry], bool]
    ) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """By file the names of the functions that run where `library` is not seeded, in the programs that count, and of
        those that run where it is."""
        unseeded = [entry for entry in entries if not entry.seeded(library)]
        apart = {node for entry in unseeded for node in entry.seeded_apart(library)}
        seeded = [entry.node for entry in entries if entry.seeded(library)]
        return self._run((entry.node for entry in unseeded if counts(entry)), apart), self._run([*seeded, *apart])

    def _run(self, nodes: Iterable[Node], without: Set[Node] = frozenset()) -> dict[str, set[str]]:
        """The names of the functions that running `nodes` evidently calls, by file, `without` those that new processes
        run."""
        queue = list(nodes)
        seen = set(queue)
        found: dict[str, set[str]] = {}
        while queue:
            node = queue.pop()
            found.setdefault(node.file, set()).add(node.name)
            for step in self.project.steps(node):
                if step.node is None or step.kind == WORKER or (step.apart and step.node in without):
                    continue
                if step.node not in seen:
                    seen.add(step.node)
                    queue.append(step.node)
        return found

    def _among(self, path: str, names: set[str], codes: frozenset[str] = LOADERS) -> tuple[int, ...]:
        """The rows of the findings about loaders, or of other `codes`, in `path` that stand in one of the functions
        `names`."""
        record, summary = self.records[path], self.project.files.summary(path)
        pairs = zip(record.findings, record.rows, strict=True)
        wanted = sorted({rows.first for finding, rows in pairs if finding.code in codes})
        bodies = {body.row for name in names if name and (body := summary.body(name)) is not None}
        started = not names.isdisjoint((MODULE, STARTED))
        # What stands in the main guard does not run where the file is imported.
        unrun = self._guarded(path, MODULE in names and bool(wanted)) if STARTED not in names else set()
        return tuple(
            row
            for row, above in self.functions_around(path, wanted)
            if (above in bodies if above is not None else started and row not in unrun)
        )

    def _shared(self, path: str) -> tuple[int, ...]:
        """The rows of findings in what `path` runs once, but other files may too: in functions that they may call, and
        at top level where a number would be the seed, for another file's generator may get the same."""
        record = self.records[path]
        pairs = [one for one in zip(record.findings, record.rows, strict=True) if is_mended_once(one[0])]
        if path not in self.points.all_imported:
            return self._repeated(path, pairs)
        found = [(rows.first, finding.code in LOADERS) for finding, rows in pairs]
        followed = {row for row, loads in found if loads} | self._guarded(path, bool(found))
        around = self.functions_around(path, sorted({row for row, _ in found}))
        return tuple(row for row, above in around if above is not None or row not in followed)

    def _repeated(self, path: str, pairs: Sequence[tuple[Finding, Rows]]) -> tuple[int, ...]:
        """The rows of those findings in a program whose fix gives a generator a number that a generator of a file which
        it imports has too."""
        written = {rows.first: number for finding, rows in pairs if (number := _written(finding)) is not None}
        if not written:
            return ()
        is_given = self.project.facts.library.facts.conventions.is_given
        texts = [self.project.files.text(other) for other in sorted(self.points.reached([path]) - {path})]
        numbers = {
            int(match[1]) for text in texts for at in is_given.finditer(text) if (match := _GIVEN.match(text, at.end()))
        }
        return tuple(row for row, number in sorted(written.items()) if number in numbers)

    def _guarded(self, path: str, wanted: bool) -> set[int]:
        """The rows of the main guard of a file."""
        body = parsed_body(self.project.files.text(path)) if wanted else ()
        guards = [node for node in body if is_main_guard(node)]
        return {row for node in guards for row in range(node.lineno, (node.end_lineno or node.lineno) + 1)}

    def _off(self, path: str) -> tuple[int, ...]:
        """The rows of findings about switches that are given a parameter which every call leaves off."""
        record, text = self.records[path], self.project.files.text
        pairs = zip(record.findings, record.rows, strict=True)
        wanted = sorted({rows.first for finding, rows in pairs if finding.code == SWITCHED})
        return left_off(parsed_body(text(path)), wanted, map(text, sorted(self.records))) if wanted else ()

    def functions_around(self, path: str, rows: Collection[int]) -> Iterator[tuple[int, int | None]]:
        """`rows` of a file in their order, and where the innermost function around each begins."""
        body = parsed_body(self.project.files.text(path)) if rows else []
        nodes = [node for statement in body for node in walk(statement)]
        functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        functions.sort(key=lambda node: node.lineno, reverse=True)
        around: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        for row in sorted(rows):
            while functions and functions[-1].lineno <= row:
                around.append(functions.pop())
            while around and (around[-1].end_lineno or row) < row:
                around.pop()
            yield row, around[-1].lineno if around else None
