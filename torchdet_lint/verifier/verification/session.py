"""One program -> its runs under the recorder, and the report on them so far."""

from __future__ import annotations

import dataclasses
import linecache
import os
import re
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import msgspec

from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.comparison.lasting import Lasting
from torchdet_lint.verifier.comparison.outcome import Comparison
from torchdet_lint.verifier.launch import launch
from torchdet_lint.verifier.launch.interventions import EAGER
from torchdet_lint.verifier.launch.interventions import environment as environment_of
from torchdet_lint.verifier.launch.standard import last_words, standard_input
from torchdet_lint.verifier.patching import outputs
from torchdet_lint.verifier.patching.events import ENTROPY, read_events
from torchdet_lint.verifier.patching.frames import shown
from torchdet_lint.verifier.patching.inheritance import EVENTS
from torchdet_lint.verifier.probe.validity import differing
from torchdet_lint.verifier.trace import SUFFIX, Trace, most_steps
from torchdet_lint.verifier.verification.leftovers.leftovers import OUTPUT, Leftovers, Remains, compare_left
from torchdet_lint.verifier.verification.outcome import Held, RunSummary, VerifyError
from torchdet_lint.verifier.verification.report import Report, report_on, seen_from_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torchdet_lint.verifier.comparison.outcome import Divergence
    from torchdet_lint.verifier.launch.launch import ChildResult, Program
    from torchdet_lint.verifier.patching.events import Event
    from torchdet_lint.verifier.patching.outputs import Printed
    from torchdet_lint.verifier.verification.options import VerifyOptions
    from torchdet_lint.verifier.verification.outcome import Mode
    from torchdet_lint.verifier.verification.workspace import Workspace


_MOST_PLACES = 3
_LEAST_ROOM = 1 << 17
"""With fewer bytes on the disk a run may fail for that alone, and what it said be lost."""
_ABORTED = "terminate called without an active exception"
_NO_LAUNCHER = re.compile(r"environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected, but not set")
_ENDED_BY_US = re.compile(r"SignalException: Process \d+ got signal: \d+")


def _counted_lines(numbers: frozenset[int]) -> str:
    first = min(numbers)
    return f"line {first}" if len(numbers) == 1 else f"{len(numbers)} lines, the first of which is line {first}"


def letter(number: int) -> str:
    """What a run is called: A, B, …"""
    return chr(ord("A") + number) if number < 26 else str(number)


class Session:
    """The runs of one verification so far."""

    def __init__(self, program: Program, options: VerifyOptions, folder: Path, workspace: Workspace) -> None:
        """Traces and output of the runs go into `folder`, the runs take place in `workspace`."""
        self.program = program
        self.options = options
        self.folder = folder
        self.workspace = workspace
        self.early_end = options.early_end
        self.same_addresses = False
        self.values = folder / "run.values" if options.mode == "lockstep" else None
        self.held: dict[tuple[str, str, str, int], Held] = {}
        self.results: list[ChildResult] = []
        self.records: dict[int, int] = {}
        self.printed: dict[int, tuple[Printed, ...]] = {}
        self.outcome: Comparison | None = None
        self.files: list[dict[str, Path]] = []
        self.left = Leftovers()
        self.several = False
        self.times: frozenset[int] = frozenset()
        self.again: list[int] = []
        self.unseeded: dict[str, None] = {}

    @property
    def root(self) -> Path:
        """The folder that the lines in the report are relative to."""
        root = Path(self.program.directory or Path.cwd())
        target = root / self.program.target
        if self.program.kind == "module" or not target.exists():
            return root
        return target.resolve().parent

    def trace(self, number: int) -> Path:
        """The trace of a run."""
        return self.folder / f"{letter(number)}.tdtrace"

    def output(self, number: int, stream: str = "out") -> Path:
        """What a run wrote to standard output (`out`) or standard error (`err`)."""
        return self.folder / f"{letter(number)}.{stream}"

    def stress(self, number: int) -> Literal["", "A", "B"]:
        """The side of a stress pair that a run is."""
        if self.options.mode != "stress":
            return self.options.interventions.stress
        return "B" if number % 2 else "A"

    def forget_values(self) -> None:
        """Remove what runs in lockstep share."""
        if self.values is not None:
            self.values.unlink(missing_ok=True)

    def run(self, number: int) -> ChildResult:
        """Run the program once more."""
        path, events = self._recording
        before = self.trace(number - 1).stat().st_size if number and self.trace(number - 1).exists() else 0

        def tick() -> None:
            if self.options.progress is not None:
                self.options.progress(letter(number), path.stat().st_size if path.exists() else 0, before)

        for attempt in (1, 2):
            if not number:
                self.forget_values()
            outputs.clear(self._printed)
            with self._printed.open("wb") as out, self.output(number, "err").open("wb") as err:
                result = self._started(number, out, err, tick)
            self.printed[number] = outputs.gather(self._printed, self.output(number))
            if attempt == 2 or result.ok or not self._aborted_at_its_end(number):
                break
            self.again.append(number)
            events.unlink(missing_ok=True)
        self.results.append(result)
        self.files.append(self.workspace.end(self.folder / f"{letter(number)}.left"))
        for event in read_events(events):
            if event.code == ENTROPY:
                self._unseeded(event)
                continue
            held = Held(
                event.code,
                event.text,
                seen_from_here(shown(self.workspace.turned_back(event.file), (self.root,)), self.root)
                if event.line
                else "",
                event.line,
            )
            self.held.setdefault(msgspec.structs.astuple(held), held)
        events.unlink(missing_ok=True)
        if path.exists():
            path.replace(self.trace(number))
        if "could not be written" in result.recording or "cannot be written" in result.recording:
            raise VerifyError(f"run {letter(number)}: {result.recording}")
        return result

    def _aborted_at_its_end(self, number: int) -> bool:
        """Whether C++ ended a process of a run that had done all its work: a thread of gloo's, say, that meets the end
        of Python. That says nothing of the program, and happens on a busy machine now and then.
        """
        path = self._recording[0]
        if _ABORTED not in self._said(number) or not path.exists():
            return False
        return all(stream.complete for stream in Trace(path).streams)

    def _unseeded(self, event: Event) -> None:
        """Keep where the program had NumPy make a generator without a seed; not where it only imports."""
        path = Path(self.workspace.turned_back(event.file))
        if event.line and not linecache.getline(str(path), event.line).lstrip().startswith(("import ", "from ")):
            self.unseeded[f"{shown(str(path), (self.root,))}:{event.line}"] = None

    def beside(self, name: str, *fixes: str, same_addresses: bool = False, tick: float = 0.0) -> Session:
        """No runs yet of the same program, with `fixes` besides, with `same_addresses` of its memory in each, or with a
        clock that goes on by `tick` seconds a reading; what they record goes into the folder `name`.
        """
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        asked = self.options.interventions
        asked = dataclasses.replace(asked, fixes=(*asked.fixes, *fixes), tick=tick)
        mode: Mode = "pair" if self.options.mode == "lockstep" else self.options.mode
        options = dataclasses.replace(self.options, mode=mode, interventions=asked, early_end=False)
        session = Session(self.program, options, folder, self.workspace)
        session.same_addresses = same_addresses
        return session

    def finished(self, number: int) -> None:
        """Run the program once more, to its end. Raises `VerifyError` where it fails."""
        result = self.run(number)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        if not result.ok:
            raise VerifyError(f"run {letter(number)} {result.sentence(self.options.timeout)}")

    def compared(self, others: int) -> Iterator[tuple[Divergence, ...]]:
        """What differs between run A and each of `others` further ones, which are of the other side of a stress pair.
        Raises `VerifyError` where one fails.
        """
        for number in (0, *range(1, 2 * others, 2)):
            self.finished(number)
            if number:
                yield compare(self.trace(0), self.trace(number)).divergences

    def closeup(self, number: int, stream: str, targets: list[int], replay: int) -> Path:
        """Run the program again as run `number` was, up to the last of the records `targets` of `stream`; the folder
        where the tensors of these ops are then.
        """
        room = self.folder / f"{letter(number)}.closeup"
        room.mkdir(exist_ok=True)
        wanted = {"folder": str(room.resolve()), "stream": stream, "targets": targets, "replay": replay}

        def tick() -> None:
            if self.options.progress is not None:
                self.options.progress(letter(number), 0, 0)

        with Path(os.devnull).open("wb") as nowhere:
            # Other processes of the program may wait for ever for the one that has ended at the op.
            last = room / f"{targets[-1]}.json"
            result = self._started(number, nowhere, nowhere, tick, wanted, last.exists)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        for left in self._recording:
            left.unlink(missing_ok=True)
        return room

    @property
    def _printed(self) -> Path:
        """What the run that goes on prints: the name is the same for every run, too."""
        return self.folder / "run.out"

    @property
    def _recording(self) -> tuple[Path, Path]:
        """The trace and the events of the run that goes on. Every run is told the same names: a program may look at
        its environment."""
        return self.folder / f"run{SUFFIX}", self.folder / "run.events"

    def _started(
        self,
        number: int,
        out: IO[bytes],
        err: IO[bytes],
        tick: Callable[[], None],
        closeup: Mapping[str, Any] | None = None,
        enough: Callable[[], bool] | None = None,
    ) -> ChildResult:
        """A fresh process of the program, as run `number` is, to its end, or until it is `enough`."""
        asked = dataclasses.replace(self.options.interventions, stress=self.stress(number))
        path, events = self._recording
        environment = {**environment_of(asked, self.options.environment, events=events), EVENTS: str(events)}
        environment |= EAGER if self.options.eager else {}
        self.workspace.begin()
        with standard_input() as stdin:
            return launch.run_child(
                self._program_there(),
                environment={name: self.workspace.turned(value) for name, value in environment.items()},
                trace=path,
                timeout=self.options.timeout,
                stdin=stdin,
                stdout=out,
                stderr=err,
                about={"stress": asked.stress, "fixes": list(asked.fixes)},
                steps=self.options.steps,
                tick=tick,
                roots=(str(self.workspace.original),),
                closeup=closeup,
                lockstep=self.values if closeup is None else None,
                same_addresses=self.same_addresses,
                output=self._printed if closeup is None else None,
                enough=Lasting(self.trace(0), path) if self.early_end and number and closeup is None else enough,
            )

    def judge(self, number: int, *, lint: bool) -> Report | None:
        """The report on runs A and `number` where they differ, else None."""
        early = self.results[number].status == "early"
        if self.trace(0).exists() and self.trace(number).exists():
            self.outcome = compare(self.trace(0), self.trace(number), early=early)
        else:
            self.outcome = _nothing_recorded()
        self.records[0], self.records[number] = self.outcome.a_records, self.outcome.b_records
        if not early:
            self.several = bool(self.outcome.aside or self.printed[0] or self.printed[number])
            runs = self._remains(0), self._remains(number)
            self.left = compare_left(*runs, ordered=not self.several, times=self.times)
        elif self.outcome.identical:
            # What followed has turned a difference into another order of the same: the whole run has to tell.
            self.early_end = False
            del self.results[number], self.files[number]
            self.run(number)
            return self.judge(number, lint=lint)
        if (self.outcome.identical and not self.left.certain) or self._harmless():
            return None
        return self._report(lint=lint)

    def _remains(self, number: int) -> Remains:
        result = self.results[number]
        errors = self.output(number, "err")
        printed = self.printed[number]
        return Remains(self.files[number], self.output(number), result.returncode, result.processes, errors, printed)

    def _program_there(self) -> Program:
        """The program as it is started in the copy of its folder."""
        turned = self.workspace.turned
        return dataclasses.replace(
            self.program,
            directory=str(self.workspace.folder),
            target=turned(self.program.target),
            arguments=tuple(turned(word) for word in self.program.arguments),
        )

    def _harmless(self) -> bool:
        """Whether what differs left no trace: in memory that was written over, or, printed results being equal, in the
        order in which equal values came."""
        if self.outcome is None or any(result.returncode for result in self.results) or self.left.certain:
            return False
        if self.outcome.harmless == "order":
            return bool(self.left.files or self.left.lines)
        return self.outcome.harmless == "unwritten"

    def conclude(self, *, lint: bool) -> Report:
        """The report on runs that are all equal."""
        report = self._report(lint=lint)
        if self.options.valid is not None and self.trace(0).exists():
            ran = differing(self.trace(0), self.options.valid)
            notes = (f"equal here, and nondeterministic when measured: {one}" for one in ran)
            report = msgspec.structs.replace(report, not_covered=(*notes, *report.not_covered))
        if report.verdict == "identical" and not (report.spread.compared or self.left.files or self.left.lines):
            names = ", ".join(left.name for left in self.left.differing[:_MOST_PLACES] if left.name != OUTPUT)
            files = f" that is compared ({names} differ, by the clock maybe)" if names else ""
            why = f"the program ran no op of torch, wrote no file in its folder{files} and printed no number"
            return msgspec.structs.replace(report, verdict="nothing", failure=why, not_covered=())
        return report

    def failed(self) -> Report:
        """The report on runs of which one failed."""
        number = next(n for n, result in enumerate(self.results) if not result.ok)
        result = self.results[number]
        place = self.workspace.turned_back(result.sentence(self.options.timeout)).replace(f"{self.root}{os.sep}", "")
        why = f"run {letter(number)} {place}"
        said = self._said(number)
        tail = last_words(said, result, self.root)
        if result.status == "timeout" and (result.standing or _ENDED_BY_US.search(tail)):
            tail = ""
        failure = why + (f": {tail}" if tail else "")
        if _NO_LAUNCHER.search(tail):
            failure += "; verify it under its launcher: verify -- torchrun --nproc-per-node 2 " + " ".join(
                self._words()
            )
        missing = self.workspace.without(tail, self.workspace.source(self._words(), said))
        if result.status == "failed" and not missing:
            missing = self.workspace.beside(self._words(), said)
        if missing:
            failure += f"; {missing}"
        if shutil.disk_usage(self.folder).free < _LEAST_ROOM:
            failure += f"; no space is left in {self.folder.parent}, where a verification keeps its files (see TMPDIR)"
        report = self._report(lint=False) if self.outcome is not None else self._empty()
        return msgspec.structs.replace(report, verdict="failed", failure=failure, not_covered=())

    def _empty(self) -> Report:
        return report_on(
            self.options.mode,
            self._words(),
            self._summaries(),
            _nothing_recorded(),
            self.options.interventions.fixes,
            Path(),
            lint=False,
        )

    def _words(self) -> tuple[str, ...]:
        return tuple(self.program.words)

    def _summaries(self) -> list[RunSummary]:
        return [
            RunSummary(
                letter(n),
                r.status,
                r.returncode,
                round(r.seconds, 3),
                self.records.get(n, 0),
                self.stress(n),
                r.strays,
                r.recording,
                round(r.cpu_seconds, 3),
            )
            for n, r in enumerate(self.results)
        ]

    def _report(self, *, lint: bool) -> Report:
        assert self.outcome is not None
        root = self.root
        harmless = self._harmless()
        report = report_on(
            self.options.mode,
            self._words(),
            self._summaries(),
            self.outcome,
            self.options.interventions.fixes,
            root,
            lint=lint,
            harmless=harmless,
            left=self.left,
            valid=self.options.valid,
            unseeded=self.unseeded,
        )
        notes = [f"{left.name} differs: {left.difference}" for left in self.left.differing if not left.certain]
        if self.times:
            notes.append(
                f"standard output tells times in {_counted_lines(self.times)}: equal with the program's clock held, "
                "and as much more or less with a faster one"
            )
        if self.left.errors:
            notes.append(f"standard error is not compared, and differs: {self.left.errors}")
        if self.options.eager:
            notes.append("code that torch.compile makes: what it would have compiled ran op by op (--compile=eager)")
        notes += [*self._steps_not_made(), *report.not_covered]
        notes += [f"{held.file}:{held.line}: {held.message}" for held in self.held.values() if not held.rule]
        if self.workspace.in_place and self.workspace.in_place != "asked for":
            notes.append(f"every run took place in the working folder itself, not in a copy: {self.workspace.in_place}")
        notes += [
            f"run {letter(number)} was made twice: the first time a process was aborted after its last op "
            f"(`{_ABORTED}`)"
            for number in self.again
        ]
        notes += [
            f"run {letter(number)} was ended after {self.records[number]} ops, its losses being others for good: what "
            "it would have left behind, how it would have ended, and what else differs later"
            for number, result in enumerate(self.results)
            if result.status == "early"
        ]
        failed = [number for number, result in enumerate(self.results) if not result.ok]
        crash = ""
        if failed and len({result.returncode for result in self.results}) > 1:
            number = failed[0]
            crash = (
                f"run {letter(number)} {self.results[number].sentence(self.options.timeout)}:\n{self._tail(number, 8)}"
            )
        return msgspec.structs.replace(
            report,
            not_covered=tuple(notes),
            command=report.command.replace("verify", "verify --compile=eager", 1)
            if self.options.eager
            else report.command,
            held=tuple(held for held in self.held.values() if held.rule),
            crash=crash,
        )

    def _steps_not_made(self) -> Iterator[str]:
        """What is said of `--steps` where no optimizer of run A made so many."""
        if self.options.steps and self.trace(0).exists():
            recorded = Trace(self.trace(0))
            made = most_steps(mark for stream in recorded.streams for mark in recorded.marks(stream))
            if made < self.options.steps:
                most = f"no optimizer made more than {made}" if made else "no optimizer of torch made a step"
                yield f"--steps {self.options.steps} ended nothing: {most}, and the program ran to its own end"

    def _tail(self, number: int, count: int) -> str:
        """The last lines that a run wrote to standard error."""
        return "\n".join(self._said(number).splitlines()[-count:]).strip()

    def _said(self, number: int) -> str:
        """The end of what a run wrote to standard error."""
        path = self.output(number, "err")
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            return self.workspace.turned_back(file.read().decode("utf-8", "replace").strip())


def _nothing_recorded() -> Comparison:
    return Comparison(
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
