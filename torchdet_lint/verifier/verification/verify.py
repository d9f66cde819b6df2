"""A program, a function or two traces -> one `Report`."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.launch.interventions import Interventions
from torchdet_lint.verifier.trace.redact import alike
from torchdet_lint.verifier.verification.closer.axes import diagnose
from torchdet_lint.verifier.verification.closer.look import look, repeated
from torchdet_lint.verifier.verification.closer.times import told_times
from torchdet_lint.verifier.verification.closer.tolerance import within
from torchdet_lint.verifier.verification.closer.turns import settle
from torchdet_lint.verifier.verification.options import VerifyOptions
from torchdet_lint.verifier.verification.outcome import RunSummary
from torchdet_lint.verifier.verification.report import report_on
from torchdet_lint.verifier.verification.session import Session, letter
from torchdet_lint.verifier.verification.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torchdet_lint.verifier.comparison.outcome import Comparison
    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.probe.validity import Valid
    from torchdet_lint.verifier.verification.options import Progress
    from torchdet_lint.verifier.verification.outcome import Mode
    from torchdet_lint.verifier.verification.report import Report


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
    environment: Mapping[str, str] | None = None,
    steps: int = 0,
    in_place: bool = False,
    workdir: Path | None = None,
    valid: Valid | None = None,
    values: bool = False,
    replay: int = 0,
    prove: bool = False,
    times: bool = False,
    early_end: bool = False,
    eager: bool = False,
    diagnose: bool = False,
) -> Report:
    """Run `program` `runs` times in fresh processes, one after the other, and compare each run with the first.

    Each run has its own copy of the working folder, unless that is too large, or `in_place`; `workdir` is where the
    copies are made, however large. What the runs leave behind there is compared too. Stops at the first run that
    differs. `mode` `stress` gives run A and run B opposite, legal conditions; in `lockstep` run B goes on with run A's
    values where its own differ, so that one pair shows every cause. `timeout` is in seconds for each run,
    `steps` ends each after so many optimizer steps; `keep` is a folder where the traces and the programs' output stay;
    `lint` looks for the linter's findings on the diverging lines; `valid` is a measurement of this machine that the ops
    are judged by. With `values` both sides of runs that differ run once more, up to the first difference, for the
    numbers there; `replay` is how often its op is then repeated. With `prove` a program that starts threads runs up to
    seven times more, where that can tell whether their order is the cause; with `times` one that differs by bare
    numbers in its output alone runs four times more, to see whether these are times. With `early_end` a run is ended
    once its losses have differed for long enough, with `eager` nothing is compiled. With `diagnose` one
    factor after the other is held fixed, to see which makes each cause go. The program's standard output and error go
    to files; its standard input is a file or terminal of ours if there is one. Raises `VerifyError`,
    `launch.LaunchError` and `trace.TraceError`, each in one line.
    """
    options = VerifyOptions(
        runs=runs,
        mode=mode,
        interventions=interventions or Interventions(),
        timeout=timeout,
        progress=progress,
        keep=keep,
        lint=lint,
        environment=environment,
        steps=steps,
        in_place=in_place,
        workdir=workdir,
        valid=valid,
        values=values,
        replay=replay,
        prove=prove,
        times=times,
        early_end=early_end,
        eager=eager,
        diagnose=diagnose,
    )
    return verified(program, options)


def verified(program: Program, options: VerifyOptions) -> Report:
    """The report on the runs of `program`: see `verify_program`."""
    with _folder(options.keep) as folder, _folder(None, options.workdir) as room, contextlib.ExitStack() as stack:
        start = Path(program.directory or Path.cwd())
        bounded = options.workdir is None
        workspace = Workspace(start, room, in_place=options.in_place, own=options.keep, bounded=bounded)
        session = Session(program, options, folder, workspace)
        stack.callback(session.forget_values)
        for number in range(options.runs):
            result = session.run(number)
            if result.status == "interrupted":
                raise KeyboardInterrupt
            if not result.ok and (number == 0 or result.status == "timeout"):
                return session.failed()
            report = session.judge(number, lint=options.lint) if number else None
            if report is not None and options.times and (times := told_times(session)):
                session.times |= times
                report = session.judge(number, lint=options.lint)
            if report is not None:
                return _looked_at(session, report)
            if not result.ok:
                return session.failed()
        report = session.conclude(lint=options.lint)
        if not options.replay or report.verdict != "identical" or session.outcome is None:
            return report
        notes = repeated(session, session.outcome.devices, replay=options.replay)
        return msgspec.structs.replace(report, not_covered=(*notes, *report.not_covered))


def _looked_at(session: Session, report: Report) -> Report:
    """The report on runs that differ, with what further runs show of the first difference, and of who decides."""
    options = session.options
    seen = look(session, session.outcome, replay=options.replay) if options.values and session.outcome else ()
    report = msgspec.structs.replace(report, values=seen)
    if options.diagnose:
        return diagnose(session, report)
    return settle(session, report) if options.prove else report


def verify_function(
    function: Callable[..., Any],
    *args: Any,
    runs: int = 2,
    lint: bool = False,
    restore: bool = True,
    **kwargs: Any,
) -> Report:
    """Call `function` `runs` times in this process under the recorder and compare the calls.

    What the first call does once and for all (a cache, a lazy module) is no difference: where it ran more ops, and all
    others are equal, the later calls are compared with the second. With `restore` the three global generators stand at
    the same state before each call; what else a call changes (a model's weights) it must undo itself. Whatever the
    function raises comes out.
    """
    from torchdet_lint.verifier.recording.generators import kept
    from torchdet_lint.verifier.recording.recorder import Recorder

    with tempfile.TemporaryDirectory(prefix="torchdet-") as name:
        folder, root = (
            Path(name),
            Path(function.__code__.co_filename).parent if hasattr(function, "__code__") else Path(),
        )
        states = kept()
        summaries: list[RunSummary] = []
        first, more = 0, ""
        while len(summaries) < runs + first:
            number = len(summaries)
            if restore:
                states.restore()
            with Recorder(folder / f"{number}.tdtrace", roots=[root, Path.cwd()]):
                function(*args, **kwargs)
            summaries.append(RunSummary(letter(number), "finished", 0, 0.0, 0))
            if number > first:
                outcome = compare(folder / f"{first}.tdtrace", folder / f"{number}.tdtrace")
                if number == 1 and _more_at_first(outcome):
                    first, more = 1, f"what the first call did once: {sum(part.a_ops for part in outcome.partings)} ops"
                elif not outcome.identical:
                    break
        name = getattr(function, "__qualname__", "function")
        report = report_on("pair", (name,), summaries, outcome, (), root, lint=lint)
        notes = (*([more] if more else []), *report.not_covered)
        return msgspec.structs.replace(report, command="", not_covered=notes)


def _more_at_first(outcome: Comparison) -> bool:
    """Whether the first of two calls ran further ops, and everything else is equal."""
    return not outcome.differing and bool(outcome.partings) and not any(part.b_ops for part in outcome.partings)


def compare_traces(a: Path, b: Path, *, lint: bool = False, tolerance: float | None = None) -> Report:
    """Compare two traces that were recorded before. With a relative `tolerance` the report says also whether their
    losses agree within it. Raises `trace.TraceError`, in one line.
    """
    with _folder(None) as room:
        outcome = compare(*alike(a, b, room), moved=True)
    summaries = [
        RunSummary(name, "recorded", 0, 0.0, records)
        for name, records in ((str(a), outcome.a_records), (str(b), outcome.b_records))
    ]
    report = report_on("compare", (), summaries, outcome, (), Path.cwd(), lint=lint)
    if tolerance is None:
        return report
    return msgspec.structs.replace(report, tolerance=within(outcome, tolerance))


@contextlib.contextmanager
def _folder(keep: Path | None, parent: Path | None = None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="torchdet-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
