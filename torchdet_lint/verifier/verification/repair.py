"""A program whose runs differ -> the smallest set of fixes that makes them equal, its price, the edit that cures."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.verifier.launch.interventions import Interventions
from torchdet_lint.verifier.verification import editing, minimise
from torchdet_lint.verifier.verification.closer.proven import beside, speaks, under
from torchdet_lint.verifier.verification.outcome import Attempt, FixOutcome
from torchdet_lint.verifier.verification.verify import verified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.verifier.comparison import explain
    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.verification.options import VerifyOptions
    from torchdet_lint.verifier.verification.outcome import Cause
    from torchdet_lint.verifier.verification.report import Report

MOST_RUNS = 60
"""How many runs the search for the smallest set of fixes may take."""
_SPENT = "the runs that it may take were spent: another set may be smaller (--most-runs)"


def verify_fixed(program: Program, options: VerifyOptions, *, most_runs: int = MOST_RUNS) -> Report:
    """Verify `program` plain and with the fixes that `options` ask for; the report is the plain one with `fix` filled
    in.

    The verdict is that of the fixed runs: `identical` if the fixes make the runs equal. A program whose plain runs are
    equal already is reported so, with no fix. The search for the smallest set ends after about `most_runs` runs. The
    causes are those that the fixes of the set cure, each under the rule of its fix.
    """
    asked = options.interventions
    # Of the runs with fixes, only the verdict counts.
    bare = dataclasses.replace(
        options, interventions=Interventions(), lint=False, keep=None, valid=None, values=False, replay=0
    )

    def with_fixes(interventions: Interventions) -> Report:
        return verified(program, dataclasses.replace(bare, interventions=interventions))

    def edited(program: Program) -> Report:
        return verified(program, dataclasses.replace(bare, in_place=False))

    plain = verified(program, dataclasses.replace(options, interventions=Interventions()))
    if plain.verdict != "diverged":
        return plain
    fixed = with_fixes(asked)
    if fixed.verdict != "identical":
        return _uncured(program, asked, plain, fixed, edited)
    findings = editing.reported(program, plain.causes)
    said = sorted({finding.code for finding in findings})
    found = minimise.minimise(with_fixes, asked, plain, fixed, most=max(1, most_runs // options.runs), reported=said)
    smallest = editing.spoken_of(found.codes, findings)
    edit = editing.cure(program, smallest, plain.causes, findings, edited)
    outcome = FixOutcome(
        True,
        smallest,
        asked.fixes,
        _ratio(plain, found.report),
        edit.command if edit is not None else "",
        (*([_SPENT] if found.spent else []), *(editing.by_hand(_spoken(smallest, findings)) if edit is None else ())),
        edit.runs if edit is not None else 0,
        _attempts(found),
    )
    causes = settled(plain.causes, found, findings)
    return msgspec.structs.replace(plain, verdict="identical", causes=causes, fix=outcome, held=fixed.held)


def _uncured(program: Program, asked: Interventions, plain: Report, fixed: Report, edited: editing.Verify) -> Report:
    """The report where no fix at run time makes the runs equal: an edit of the source may still do so, which replaces
    what the runs can only be given other values of.
    """
    edit = None
    if fixed.verdict == "diverged":
        causes = (*plain.causes, *fixed.causes)
        findings = editing.reported(program, causes)
        codes = {code for cause in causes for code in (cause.rule, *([cause.finding.code] if cause.finding else ()))}
        edit = editing.cure(program, sorted(codes), causes, findings, edited)
    outcome = FixOutcome(False, asked.fixes, asked.fixes, _ratio(plain, fixed), notes=_limits(fixed))
    if edit is not None:
        outcome = msgspec.structs.replace(outcome, command=edit.command, edited_runs=edit.runs)
        return msgspec.structs.replace(plain, fix=outcome)
    return msgspec.structs.replace(fixed if fixed.verdict == "diverged" else plain, fix=outcome, failure=fixed.failure)


def _spoken(codes: Sequence[str], findings: Sequence[explain.Finding]) -> tuple[str, ...]:
    """Some codes, each with those beside it that may be meant as well."""
    return tuple(dict.fromkeys(one for code in codes for one in (code, *beside(code, findings))))


def _attempts(found: minimise.Smallest) -> tuple[Attempt, ...]:
    """Every set of fixes that was tried, the smallest first."""
    rows = [
        Attempt(
            tuple(sorted(codes)),
            report.verdict,
            tuple(dict.fromkeys(f"{cause.file}:{cause.line}" for cause in report.causes if cause.file)),
        )
        for codes, report in found.tried.items()
    ]
    return tuple(sorted(rows, key=lambda row: (len(row.fixes), row.fixes)))


def settled(
    causes: Sequence[Cause], found: minimise.Smallest, findings: Sequence[explain.Finding]
) -> tuple[Cause, ...]:
    """The causes as the interventions have shown them: those that differ where one fix of the smallest set is left out,
    each under the rule of that fix.

    A cause of `causes` that no fix left out makes differ again follows from another; one that only shows where another
    is cured is there too. Of those that a fix cures though another rule was named, the first is told, and only where no
    cause has its rule. Where the search did not get so far, `causes` are returned as they are.
    """
    if set(found.without) != set(found.codes):
        return tuple(causes)
    known = {_place(cause): cause for cause in causes}
    told: dict[tuple[str, ...], Cause] = {}
    for code in found.codes:
        mine = [known.get(_place(cause), cause) for cause in found.without[code].causes]
        for cause in [cause for cause in mine if speaks(cause.rule, code)] or mine[:1]:
            if _place(cause) not in told or speaks(cause.rule, code):
                told[_place(cause)] = under(code, cause, findings)
    return tuple(sorted(told.values(), key=lambda cause: cause.op_index))


def _place(cause: Cause) -> tuple[str, ...]:
    return (
        cause.stream,
        cause.op,
        cause.phase,
        cause.file,
        str(cause.line),
        cause.forward_file,
        str(cause.forward_line),
    )


def _ratio(plain: Report, fixed: Report) -> float:
    """The CPU time of a fixed run to a plain one; 0 where the plain runs take different paths, and so do other work."""
    if plain.spread.partings:
        return 0.0
    whole = [[run.cpu_seconds for run in report.runs if run.status == "finished"] for report in (plain, fixed)]
    times = [min(seconds, default=0.0) for seconds in whole]
    return round(times[1] / times[0], 2) if times[0] else 0.0


def _limits(report: Report) -> tuple[str, ...]:
    """Why the fixes of the rules that are still named did not help, in the rules' own words."""
    notes = (f"{cause.rule}: {cause.runtime_note}" for cause in report.causes if cause.runtime_note)
    return tuple(dict.fromkeys(notes))
