"""Runs a program several times under the recorder, compares the runs, and says what it found as one `Report`."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

import msgspec

import torchdet_lint
from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.comparison import compare as comparing
from torchdet_lint.verifier.comparison import explain
from torchdet_lint.verifier.launch import launch
from torchdet_lint.verifier.launch.interventions import EVENTS_VARIABLE, Interventions
from torchdet_lint.verifier.launch.interventions import environment as environment_of
from torchdet_lint.verifier.recording.trace import SUFFIX, TraceError
from torchdet_lint.verifier.remedies.patching import read_events, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchdet_lint.verifier.comparison.compare import Comparison, Divergence
    from torchdet_lint.verifier.launch.launch import ChildResult, Program

SCHEMA = "torchdet-lint/verify/1"
Mode = Literal["pair", "stress"]
Verdict = Literal["identical", "diverged", "failed"]


class VerifyError(Exception):
    """A verification that cannot be done; the text is one line."""


class Diverged(AssertionError):
    """Raised by `Report.raise_if_diverged`; the text is the report for a screen."""


class RunSummary(msgspec.Struct, frozen=True):
    """One run: how it ended, how long it took (wall time), how many ops were recorded, what it was subjected to."""

    name: str
    status: str
    returncode: int
    seconds: float
    records: int
    stress: str = ""
    strays: int = 0
    recording: str = ""


class Cause(msgspec.Struct, frozen=True):
    """One root cause: where, which op, the rule that speaks of it, and the evidence. See docs/verifier-json.md."""

    rule: str
    name: str
    also: tuple[str, ...]
    message: str
    kind: str
    source: str
    op: str
    phase: str
    file: str
    line: int
    function: str
    forward_op: str
    forward_file: str
    forward_line: int
    op_index: int
    differing: int
    compared: int
    inputs_equal: bool
    generators: dict[str, str]
    stream: str
    other: str = ""
    finding: explain.Finding | None = None
    instead: str = ""
    runtime_fix: str = ""
    runtime_note: str = ""


class Spread(msgspec.Struct, frozen=True):
    """How far the difference goes: records compared and differing, whether it lasts, where paths part."""

    compared: int
    differing: int
    persistence: str
    consequences: int
    partings: tuple[comparing.Parting, ...] = ()


class FixOutcome(msgspec.Struct, frozen=True):
    """What the fixes did: `fixes` is the smallest set that suffices (all that were tried, where none does), `ratio` the
    time of a fixed run to a plain one, `command` writes them into the source."""

    cured: bool
    fixes: tuple[str, ...]
    tried: tuple[str, ...]
    ratio: float
    command: str = ""
    notes: tuple[str, ...] = ()


class Held(msgspec.Struct, frozen=True):
    """What the program did against a fix, and what came of it: refused or replaced."""

    rule: str
    message: str
    file: str
    line: int


class Report(msgspec.Struct, frozen=True):
    """The outcome of a verification; `verdict` first, then what was not covered, the causes in order of execution,
    how far they spread, and what differs between the two environments. `without_effect` are differences that left no
    trace in the results; `held` is what the program did against the fixes.
    """

    verdict: Verdict
    mode: str
    program: tuple[str, ...]
    runs: tuple[RunSummary, ...]
    causes: tuple[Cause, ...]
    spread: Spread
    not_covered: tuple[str, ...]
    environment: dict[str, tuple[str, str]]
    without_effect: tuple[Cause, ...] = ()
    fixes: tuple[str, ...] = ()
    fix: FixOutcome | None = None
    held: tuple[Held, ...] = ()
    failure: str = ""
    command: str = ""
    schema: str = SCHEMA
    version: str = torchdet_lint.__version__

    @property
    def ok(self) -> bool:
        """Whether every run ended well and all were equal."""
        return self.verdict == "identical"

    @property
    def first(self) -> Cause | None:
        """The earliest cause, or None."""
        return self.causes[0] if self.causes else None

    @property
    def exit_status(self) -> int:
        """0 identical, 1 diverged, 3 the program itself failed."""
        return {"identical": 0, "diverged": 1, "failed": 3}[self.verdict]

    def raise_if_diverged(self) -> None:
        """Raise `Diverged`, with the report as its text, unless the runs were equal."""
        if not self.ok:
            from torchdet_lint.verifier.verification.report import text

            raise Diverged(text(self))

    def to_json(self) -> bytes:
        """The report as JSON, by the schema of docs/verifier-json.md."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


class Progress(Protocol):
    """Called with the run's name, the bytes of trace so far, and those of the run before (0: not known)."""

    def __call__(self, name: str, done: int, expected: int, /) -> None: ...


def verify_program(
    program: Program,
    *,
    runs: int = 2,
    mode: Mode = "pair",
    interventions: Interventions | None = None,
    timeout: float | None = None,
    progress: Progress | None = None,
    keep: Path | None = None,
    lint: bool = True,
    environment: dict[str, str] | None = None,
    steps: int = 0,
) -> Report:
    """Run `program` `runs` times in fresh processes, one after the other, and compare each run with the first.

    Stops at the first run that differs. `mode` `stress` gives run A and run B opposite, legal conditions. `timeout`
    is in seconds for each run, `steps` ends each after so many optimizer steps; `keep` is a folder where the traces and
    the programs' output stay; `lint` looks for the linter's findings on the diverging lines. The program's standard
    output and error go to files; its standard input is a file or terminal of ours if there is one. Raises
    `VerifyError`, `launch.LaunchError` and `trace.TraceError`, each in one line.
    """
    if runs < 2:
        raise VerifyError("--runs must be at least 2: one run alone shows nothing")
    base = interventions or Interventions()
    with _folder(keep) as folder:
        session = _Session(program, base, mode, timeout, progress, folder, environment, steps)
        for number in range(runs):
            result = session.run(number)
            if result.status == "interrupted":
                raise KeyboardInterrupt
            if not result.ok and (number == 0 or result.status == "timeout"):
                return session.failed()
            if number and (report := session.judge(number, lint=lint)) is not None:
                return report
            if not result.ok:
                return session.failed()
        return session.conclude(lint=lint)


def verify_function(
    function: Callable[..., Any], *args: Any, runs: int = 2, lint: bool = False, restore: bool = True, **kwargs: Any
) -> Report:
    """Call `function` `runs` times in this process under the recorder and compare the calls.

    With `restore` the three global generators stand at the same state before each call; what else a call changes (a
    model's weights) it must undo itself. Whatever the function raises comes out.
    """
    from torchdet_lint.verifier.recording.generators import kept
    from torchdet_lint.verifier.recording.recorder import Recorder

    with tempfile.TemporaryDirectory(prefix="torchdet-") as name:
        folder, root = (
            Path(name),
            Path(function.__code__.co_filename).parent if hasattr(function, "__code__") else Path(),
        )
        states = kept()
        summaries = []
        for number in range(runs):
            if restore:
                states.restore()
            with Recorder(folder / f"{number}.tdtrace", roots=[root, Path.cwd()]):
                function(*args, **kwargs)
            summaries.append(RunSummary(_letter(number), "finished", 0, 0.0, 0))
            if number:
                outcome = comparing.compare(folder / "0.tdtrace", folder / f"{number}.tdtrace")
                if not outcome.identical:
                    break
        return _report(
            "pair", (getattr(function, "__qualname__", "function"),), summaries, outcome, (), root, lint=lint
        )


def compare_traces(a: Path, b: Path, *, lint: bool = False) -> Report:
    """Compare two traces that were recorded before. Raises `trace.TraceError`, in one line."""
    outcome = comparing.compare(a, b)
    summaries = [
        RunSummary(name, "recorded", 0, 0.0, records)
        for name, records in ((str(a), outcome.a_records), (str(b), outcome.b_records))
    ]
    return _report("compare", (), summaries, outcome, (), Path.cwd(), lint=lint)


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="torchdet-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number)


class _Session:
    """The runs of one verification so far."""

    def __init__(
        self,
        program: Program,
        base: Interventions,
        mode: Mode,
        timeout: float | None,
        progress: Progress | None,
        folder: Path,
        environment: dict[str, str] | None,
        steps: int,
    ) -> None:
        self.program, self.base, self.mode, self.timeout = program, base, mode, timeout
        self.progress, self.folder, self.environment, self.steps = progress, folder, environment, steps
        self.held: dict[tuple[str, str, str, int], Held] = {}
        self.results: list[ChildResult] = []
        self.records: dict[int, int] = {}
        self.outcome: Comparison | None = None

    @property
    def root(self) -> Path:
        """The folder that the lines in the report are relative to."""
        root = Path(self.program.directory or Path.cwd())
        target = root / self.program.target
        if self.program.kind == "module" or not target.exists():
            return root
        return target.resolve().parent

    def trace(self, number: int) -> Path:
        return self.folder / f"{_letter(number)}.tdtrace"

    def output(self, number: int, stream: str = "out") -> Path:
        return self.folder / f"{_letter(number)}.{stream}"

    def stress(self, number: int) -> Literal["", "A", "B"]:
        if self.mode != "stress":
            return self.base.stress
        return "B" if number % 2 else "A"

    def run(self, number: int) -> ChildResult:
        asked = dataclasses.replace(self.base, stress=self.stress(number))
        # Every run is told the same names: a program may look at its environment.
        path, events = self.folder / f"run{SUFFIX}", self.folder / "run.events"
        environment = {**environment_of(asked, self.environment, events=events), EVENTS_VARIABLE: str(events)}
        before = self.trace(number - 1).stat().st_size if number and self.trace(number - 1).exists() else 0

        def tick() -> None:
            if self.progress is not None:
                self.progress(_letter(number), path.stat().st_size if path.exists() else 0, before)

        with (
            _standard_input() as stdin,
            self.output(number).open("wb") as out,
            self.output(number, "err").open("wb") as err,
        ):
            result = launch.run_child(
                self.program,
                environment=environment,
                trace=path,
                timeout=self.timeout,
                stdin=stdin,
                stdout=out,
                stderr=err,
                about={"stress": asked.stress, "fixes": list(asked.fixes)},
                steps=self.steps,
                tick=tick,
            )
        self.results.append(result)
        for event in read_events(events):
            held = Held(event.code, event.text, shown(event.file, (self.root,)) if event.line else "", event.line)
            self.held.setdefault(msgspec.structs.astuple(held), held)
        events.unlink(missing_ok=True)
        if path.exists():
            path.replace(self.trace(number))
        if "could not be written" in result.recording or "cannot be written" in result.recording:
            raise VerifyError(f"run {_letter(number)}: {result.recording}")
        return result

    def judge(self, number: int, *, lint: bool) -> Report | None:
        """The report on runs A and `number` where they differ, else None."""
        if not self.trace(0).exists() or not self.trace(number).exists():
            return None
        self.outcome = comparing.compare(self.trace(0), self.trace(number))
        self.records[0], self.records[number] = self.outcome.a_records, self.outcome.b_records
        if self.outcome.identical or self._harmless():
            return None
        return self._report(lint=lint)

    def _harmless(self) -> bool:
        """Whether what differs left no trace: in memory that was written over, or, printed results being equal, in the
        order in which equal values came."""
        if self.outcome is None or any(result.returncode for result in self.results):
            return False
        if self.outcome.harmless == "order":
            return self.output(0).stat().st_size > 0 and not self._printed_differently()
        return self.outcome.harmless == "unwritten"

    def conclude(self, *, lint: bool) -> Report:
        if self.outcome is None:
            self.outcome = _nothing_recorded()
        return self._report(lint=lint)

    def failed(self) -> Report:
        number = next(n for n, result in enumerate(self.results) if not result.ok)
        why = f"run {_letter(number)} {self.results[number].sentence(self.timeout)}"
        tail = _tail(self.output(number, "err"))
        failure = why + (f": {tail}" if tail else "")
        report = self._report(lint=False) if self.outcome is not None else self._empty()
        return msgspec.structs.replace(report, verdict="failed", failure=failure, not_covered=())

    def _empty(self) -> Report:
        return _report(
            self.mode, self._words(), self._summaries(), _nothing_recorded(), self.base.fixes, Path(), lint=False
        )

    def _words(self) -> tuple[str, ...]:
        return tuple(self.program.words)

    def _summaries(self) -> list[RunSummary]:
        return [
            RunSummary(
                _letter(n),
                r.status,
                r.returncode,
                round(r.seconds, 3),
                self.records.get(n, 0),
                self.stress(n),
                r.strays,
                r.recording,
            )
            for n, r in enumerate(self.results)
        ]

    def _report(self, *, lint: bool) -> Report:
        assert self.outcome is not None
        root = self.root
        harmless = self._harmless()
        report = _report(
            self.mode,
            self._words(),
            self._summaries(),
            self.outcome,
            self.base.fixes,
            root,
            lint=lint,
            harmless=harmless,
        )
        notes = list(report.not_covered)
        if report.ok and (shown := self._first_printed_difference()):
            notes.append(f"standard output differs though every recorded value is equal: {shown}")
        notes += [f"{held.file}:{held.line}: {held.message}" for held in self.held.values() if not held.rule]
        codes = sorted({result.returncode for result in self.results})
        if len(codes) > 1:
            notes.append(f"the exit statuses differ: {', '.join(map(str, codes))}")
        return msgspec.structs.replace(
            report, not_covered=tuple(notes), held=tuple(held for held in self.held.values() if held.rule)
        )

    def _first_printed_difference(self) -> str:
        for number in range(1, len(self.results)):
            with self.output(0).open("rb") as one, self.output(number).open("rb") as two:
                for a, b in itertools.zip_longest(one, two, fillvalue=b""):
                    if a != b:
                        shown = [line[:60].decode("utf-8", "replace").strip() for line in (a, b)]
                        return f"{shown[0]!r} | {shown[1]!r}"
        return ""

    def _printed_differently(self) -> bool:
        first = self.output(0)
        return any(not _same(first, self.output(n)) for n in range(1, len(self.results)))


def _same(a: Path, b: Path) -> bool:
    import filecmp

    return filecmp.cmp(a, b, shallow=False)


def _nothing_recorded() -> Comparison:
    return comparing.Comparison(
        identical=True,
        compared=0,
        a_records=0,
        b_records=0,
        differing=0,
        divergences=(),
        partings=(),
        persistence="",
        environment={},
        notes=("no op of torch was recorded",),
    )


@contextlib.contextmanager
def _standard_input() -> Iterator[int | IO[bytes] | None]:
    """Every run reads the same: a file from its beginning, the terminal, else nothing."""
    import subprocess

    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        yield subprocess.DEVNULL
        return
    if os.isatty(descriptor):
        yield None
    elif stat.S_ISREG(kind) and Path(f"/proc/self/fd/{descriptor}").exists():
        with Path(f"/proc/self/fd/{descriptor}").open("rb") as file:
            yield file
    else:
        yield subprocess.DEVNULL


def _tail(path: Path) -> str:
    """The last line that a program wrote to standard error."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _report(
    mode: str,
    program: tuple[str, ...],
    runs: list[RunSummary],
    outcome: Comparison,
    fixes: tuple[str, ...],
    root: Path,
    *,
    lint: bool,
    harmless: bool = False,
) -> Report:
    causes = outcome.causes
    findings: tuple[explain.Finding, ...] = ()
    if lint and causes and not harmless:
        findings = explain.lint(
            root / name.partition("#cell-")[0]
            for item in causes
            for name in (item.site.file, item.site.forward_file, item.evidence.arrival.rpartition(":")[0])
            if name
        )
    told = tuple(_cause(item, findings, root) for item in causes)
    return Report(
        verdict="identical" if outcome.identical or harmless else "diverged",
        mode=mode,
        program=program,
        runs=tuple(runs),
        causes=() if harmless else told,
        without_effect=told if harmless else (),
        spread=Spread(
            outcome.compared,
            outcome.differing,
            outcome.persistence,
            len(outcome.divergences) - len(causes),
            outcome.partings[:20],
        ),
        not_covered=_not_covered(mode, len(runs), outcome, runs),
        environment=outcome.environment,
        fixes=fixes,
        command=_command(mode, program),
    )


def _command(mode: str, program: tuple[str, ...]) -> str:
    import shlex

    if not program or mode == "compare":
        return ""
    return f"torchdet-lint verify{' --mode stress' if mode == 'stress' else ''} {shlex.join(program)}"


def _cause(item: Divergence, findings: tuple[explain.Finding, ...], root: Path) -> Cause:
    why = explain.explain(item)
    finding = explain.standing_on(item, why, findings, root)
    named = (why.rule, *why.also)
    code = why.rule
    if finding is not None and finding.code in named:
        code = finding.code
    rule = loading.load().rules.get(code)
    return Cause(
        rule=code,
        name=rule.name if rule is not None else "",
        also=tuple(other for other in named if other and other != code),
        message=why.sentence,
        kind=item.kind,
        source=item.source,
        op=item.site.op,
        phase=item.site.phase,
        file=item.site.file,
        line=item.site.line,
        function=item.site.function,
        forward_op=item.site.forward_op,
        forward_file=item.site.forward_file,
        forward_line=item.site.forward_line,
        op_index=item.index,
        differing=item.differing,
        compared=item.compared,
        inputs_equal=item.evidence.inputs_equal,
        generators=item.evidence.generators,
        stream=item.stream,
        other=item.other.place if item.other is not None else "",
        finding=finding,
        instead=rule.instead if rule is not None else "",
        runtime_fix=rule.runtime_fix if rule is not None else "",
        runtime_note=rule.runtime_note if rule is not None else "",
    )


def _not_covered(mode: str, count: int, outcome: Comparison, runs: list[RunSummary]) -> tuple[str, ...]:
    notes = []
    if outcome.identical and mode == "pair":
        notes.append(
            f"{count} runs under the same conditions: the order of files, the number of threads and unwritten memory "
            "were not varied (--mode stress varies files, completion, hash seed, addresses and memory)"
        )
    elif outcome.identical and mode == "stress":
        notes.append(
            "one stress pair varies the order of files and completion, hash seed, addresses and memory; not threads"
            " or time"
        )
    notes += outcome.notes
    notes += [f"run {run.name}: {run.recording}" for run in runs if run.recording]
    strays = sum(run.strays for run in runs)
    if strays:
        notes.append(f"processes that the program left behind were ended: {strays}")
    return tuple(dict.fromkeys(notes))


__all__ = [
    "Cause",
    "Diverged",
    "FixOutcome",
    "Held",
    "Report",
    "RunSummary",
    "Spread",
    "TraceError",
    "VerifyError",
    "compare_traces",
    "verify_function",
    "verify_program",
]
