"""A program whose runs differ -> the smallest set of fixes that makes them equal, its price, the edit that cures."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.verifier.verification import editing, minimise
from torchdet_lint.verifier.verification.outcome import FixOutcome
from torchdet_lint.verifier.verification.verify import verify_program

if TYPE_CHECKING:
    from pathlib import Path

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.probe.validity import Valid
    from torchdet_lint.verifier.verification.outcome import Mode
    from torchdet_lint.verifier.verification.report import Report
    from torchdet_lint.verifier.verification.session import Progress


def verify_fixed(
    program: Program,
    asked: Interventions,
    *,
    runs: int = 2,
    mode: Mode = "pair",
    timeout: float | None = None,
    progress: Progress | None = None,
    keep: Path | None = None,
    lint: bool = True,
    steps: int = 0,
    in_place: bool = False,
    workdir: Path | None = None,
    valid: Valid | None = None,
) -> Report:
    """Verify `program` plain and with the fixes `asked`; the report is the plain one with `fix` filled in.

    The verdict is that of the fixed runs: `identical` if the fixes make the runs equal. A program whose plain runs are
    equal already is reported so, with no fix.
    """
    once = functools.partial(
        verify_program,
        program,
        runs=runs,
        mode=mode,
        timeout=timeout,
        progress=progress,
        steps=steps,
        in_place=in_place,
        workdir=workdir,
    )
    plain = once(lint=lint, keep=keep, valid=valid)
    if plain.verdict != "diverged":
        return plain
    fixed = once(interventions=asked, lint=False)
    if fixed.verdict != "identical":
        outcome = FixOutcome(False, asked.fixes, asked.fixes, _ratio(plain, fixed), notes=_limits(fixed))
        return msgspec.structs.replace(
            fixed if fixed.verdict == "diverged" else plain, fix=outcome, failure=fixed.failure
        )
    smallest, best = minimise.minimise(once, asked, plain, fixed)

    smallest = editing.spoken_of(smallest, editing.reported(program, plain.causes))

    def of_edited(program: Program) -> Report:
        return verify_program(
            program, runs=runs, mode=mode, timeout=timeout, progress=progress, steps=steps, lint=False, workdir=workdir
        )

    edit = editing.cure(program, smallest, plain.causes, of_edited)
    outcome = FixOutcome(
        True,
        smallest,
        asked.fixes,
        _ratio(plain, best),
        edit.command if edit is not None else "",
        editing.by_hand(smallest) if edit is None else (),
        edit.runs if edit is not None else 0,
    )
    return msgspec.structs.replace(plain, verdict="identical", fix=outcome, held=fixed.held)


def _ratio(plain: Report, fixed: Report) -> float:
    times = [min((run.cpu_seconds for run in report.runs), default=0.0) for report in (plain, fixed)]
    return round(times[1] / times[0], 2) if times[0] else 0.0


def _limits(report: Report) -> tuple[str, ...]:
    """Why the fixes of the rules that are still named did not help, in the rules' own words."""
    notes = (f"{cause.rule}: {cause.runtime_note}" for cause in report.causes if cause.runtime_note)
    return tuple(dict.fromkeys(notes))
