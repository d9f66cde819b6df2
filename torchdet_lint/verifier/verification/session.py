"""One program -> its runs under the recorder, and the report on them so far."""

from __future__ import annotations

import contextlib
import dataclasses
import filecmp
import itertools
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, Protocol

import msgspec

from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.comparison.outcome import Comparison
from torchdet_lint.verifier.launch import launch
from torchdet_lint.verifier.launch.interventions import environment as environment_of
from torchdet_lint.verifier.patching.events import read_events
from torchdet_lint.verifier.patching.frames import shown
from torchdet_lint.verifier.patching.inheritance import EVENTS
from torchdet_lint.verifier.trace import SUFFIX
from torchdet_lint.verifier.verification.outcome import Held, Mode, RunSummary, VerifyError
from torchdet_lint.verifier.verification.report import Report, report_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import ChildResult, Program


class Progress(Protocol):
    """Called with the run's name, the bytes of trace so far, and those of the run before (0: not known)."""

    def __call__(self, name: str, done: int, expected: int, /) -> None:
        """Show it."""


def letter(number: int) -> str:
    """What a run is called: A, B, …"""
    return chr(ord("A") + number) if number < 26 else str(number)


class Session:
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
        """The trace of a run."""
        return self.folder / f"{letter(number)}.tdtrace"

    def output(self, number: int, stream: str = "out") -> Path:
        """What a run wrote to standard output (`out`) or standard error (`err`)."""
        return self.folder / f"{letter(number)}.{stream}"

    def stress(self, number: int) -> Literal["", "A", "B"]:
        """The side of a stress pair that a run is."""
        if self.mode != "stress":
            return self.base.stress
        return "B" if number % 2 else "A"

    def run(self, number: int) -> ChildResult:
        """Run the program once more."""
        asked = dataclasses.replace(self.base, stress=self.stress(number))
        # Every run is told the same names: a program may look at its environment.
        path, events = self.folder / f"run{SUFFIX}", self.folder / "run.events"
        environment = {**environment_of(asked, self.environment, events=events), EVENTS: str(events)}
        before = self.trace(number - 1).stat().st_size if number and self.trace(number - 1).exists() else 0

        def tick() -> None:
            if self.progress is not None:
                self.progress(letter(number), path.stat().st_size if path.exists() else 0, before)

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
            raise VerifyError(f"run {letter(number)}: {result.recording}")
        return result

    def judge(self, number: int, *, lint: bool) -> Report | None:
        """The report on runs A and `number` where they differ, else None."""
        if not self.trace(0).exists() or not self.trace(number).exists():
            return None
        self.outcome = compare(self.trace(0), self.trace(number))
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
        """The report on runs that are all equal."""
        if self.outcome is None:
            self.outcome = _nothing_recorded()
        return self._report(lint=lint)

    def failed(self) -> Report:
        """The report on runs of which one failed."""
        number = next(n for n, result in enumerate(self.results) if not result.ok)
        why = f"run {letter(number)} {self.results[number].sentence(self.timeout)}"
        tail = _tail(self.output(number, "err"))
        failure = why + (f": {tail}" if tail else "")
        report = self._report(lint=False) if self.outcome is not None else self._empty()
        return msgspec.structs.replace(report, verdict="failed", failure=failure, not_covered=())

    def _empty(self) -> Report:
        return report_on(
            self.mode, self._words(), self._summaries(), _nothing_recorded(), self.base.fixes, Path(), lint=False
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
            )
            for n, r in enumerate(self.results)
        ]

    def _report(self, *, lint: bool) -> Report:
        assert self.outcome is not None
        root = self.root
        harmless = self._harmless()
        report = report_on(
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
        return any(not filecmp.cmp(first, self.output(n), shallow=False) for n in range(1, len(self.results)))


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


@contextlib.contextmanager
def _standard_input() -> Iterator[int | IO[bytes] | None]:
    """Every run reads the same: a file from its beginning, the terminal, else nothing."""
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
