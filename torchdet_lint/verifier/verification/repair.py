"""`verify --fix`: the plain runs, the fixed runs, the smallest set of fixes that suffices, its price, its lint
command.
"""

from __future__ import annotations

import functools
import shlex
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.verification.outcome import FixOutcome
from torchdet_lint.verifier.verification.verify import verify_program

if TYPE_CHECKING:
    from pathlib import Path

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import Program
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
) -> Report:
    """Verify `program` plain and with the fixes `asked`; the report is the plain one with `fix` filled in.

    The verdict is that of the fixed runs: `identical` if the fixes make the runs equal. A program whose plain runs are
    equal already is reported so, with no fix.
    """
    from torchdet_lint.verifier.verification import minimise

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
    plain = once(lint=lint, keep=keep)
    if plain.verdict != "diverged":
        return plain
    fixed = once(interventions=asked, lint=False)
    if fixed.verdict != "identical":
        outcome = FixOutcome(False, asked.fixes, asked.fixes, _ratio(plain, fixed), notes=_limits(fixed))
        return msgspec.structs.replace(
            fixed if fixed.verdict == "diverged" else plain, fix=outcome, failure=fixed.failure
        )
    smallest, best = minimise.minimise(once, asked, plain, fixed)
    outcome = FixOutcome(True, smallest, asked.fixes, _ratio(plain, best), _command(program, smallest))
    return msgspec.structs.replace(plain, verdict="identical", fix=outcome, held=fixed.held)


def _ratio(plain: Report, fixed: Report) -> float:
    times = [min((run.seconds for run in report.runs), default=0.0) for report in (plain, fixed)]
    return round(times[1] / times[0], 2) if times[0] else 0.0


def _command(program: Program, codes: tuple[str, ...]) -> str:
    rules = loading.load().rules
    fixable = [code for code in codes if code in rules and rules[code].fix is not None]
    if not fixable or program.kind == "module":
        return ""
    unsafe = " --unsafe-fixes" if any(rules[code].fix == "unsafe" for code in fixable) else ""
    return f"torchdet-lint --fix{unsafe} --select {','.join(fixable)} {shlex.quote(program.target)}"


def _limits(report: Report) -> tuple[str, ...]:
    """Why the fixes of the rules that are still named did not help, in the rules' own words."""
    notes = (f"{cause.rule}: {cause.runtime_note}" for cause in report.causes if cause.runtime_note)
    return tuple(dict.fromkeys(notes))
