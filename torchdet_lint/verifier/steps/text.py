"""What the comparison of two files of steps gave, or of one run's ranks -> lines for a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.comparison.screen import DIM, GREEN, RED, inert, paint, wrapped
from torchdet_lint.verifier.steps.format import BATCH
from torchdet_lint.verifier.steps.ranks import ranks_of, told_of

if TYPE_CHECKING:
    from torchdet_lint.verifier.steps.compare import Difference, StepReport
    from torchdet_lint.verifier.steps.ranks import RankReport, Unequal

_SHOWN = 3


def text(report: StepReport, *, colour: bool = False) -> str:
    """The report for a screen: verdict, the first step that differs, what differs in it and what that means."""
    lines = [_verdict(report, colour)]
    if report.differences:
        first, *others = report.differences
        lines += wrapped(f"first: {_parts(first)}", 3)
        if others:
            lines += wrapped(f"then, in the same step: {'; '.join(map(_parts, others))}", 3)
    if report.meaning:
        lines += wrapped(report.meaning, 3)
    lines += _other_ranks(report)
    lines += [line for told in report.within for line in wrapped(told, 3)]
    lines += _range(report)
    lines += _losses(report)
    if report.environment:
        pairs = [f"{name}: {a or 'unset'} | {b or 'unset'}" for name, (a, b) in report.environment.items()]
        lines += [line.strip() for line in wrapped(f"environments differ: {'; '.join(pairs)}")]
    lines += [paint(line.strip(), DIM, colour) for note in report.notes for line in wrapped(f"not covered: {note}")]
    return "\n".join(lines) + "\n"


def _verdict(report: StepReport, colour: bool) -> str:
    if report.verdict == "nothing":
        return paint("✗ nothing was compared: the runs have no step in common", RED, colour)
    if report.verdict == "identical":
        last = f"{_count(report.compared)}, {report.first} to {report.last}"
        ranks = f", on each of {len(report.ranks)} ranks" if len(report.ranks) > 1 else ""
        return paint(f"✓ the runs are equal, bit for bit, in all {last}{ranks}", GREEN, colour)
    on = f" on rank {report.rank}" if report.rank >= 0 else ""
    if not report.differences:
        return paint(f"✗ the runs are equal in {_count(report.compared)}, and one goes on{on}", RED, colour)
    when = f"first in step {report.step}{on}" if report.step else f"before the first step{on}"
    told = f"{report.differing} of {_count(report.compared)} differ"
    return paint(f"✗ the runs differ {when} · {report.differences[0].group} first · {told}", RED, colour)


def _other_ranks(report: StepReport) -> list[str]:
    """From which step on the other ranks differ, those of one kind together."""
    kinds: dict[tuple[int, str], list[int]] = {}
    for one in report.ranks:
        if one.rank != report.rank:
            kinds.setdefault((one.step, one.group), []).append(one.rank)
    if report.verdict != "diverged" or not kinds:
        return []
    told = []
    for (step, group), ranks in sorted(kinds.items(), key=lambda item: (item[0][0] < 0, item)):
        alone = len(ranks) == 1
        since = f"from step {step} on" if step else "before the first step"
        differ = f"{'differs' if alone else 'differ'} {since} ({group} first)"
        told.append(f"{ranks_of(tuple(ranks))} {differ if step >= 0 else 'is equal' if alone else 'are equal'}")
    return wrapped(f"the other ranks: {'; '.join(told)}", 3)


def _count(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"


def _parts(found: Difference) -> str:
    if not found.names:
        return found.group
    names = ", ".join(found.names[:_SHOWN]) + (", …" if found.count > _SHOWN else "")
    return f"{found.group} ({found.count} of {found.parts}: {names})"


def _range(report: StepReport) -> list[str]:
    """Up to where everything was compared, where that is not the step before."""
    if report.step < 1 or report.since >= report.step - 1 or report.differences[0].group == BATCH:
        return []
    if report.since < 0:
        return wrapped("The parameters were compared in no step before, so a difference in them may be the cause.")
    return wrapped(
        f"Parameters, buffers and states were compared last after step {report.since}: a difference in them since then "
        "may be the cause. `Checkpoints(…, every=1)` compares them in each step."
    )


def _losses(report: StepReport) -> list[str]:
    lines = []
    for name, (a, b) in report.losses.items():
        last = report.last_losses.get(name)
        more = f"; in step {report.last}: {last[0]:.9g} | {last[1]:.9g}" if last and report.last > report.step else ""
        lines.append(f"  {inert(name)} in step {report.step}: {a:.9g} | {b:.9g}{more}")
    return lines


def text_of_ranks(report: RankReport, *, colour: bool = False) -> str:
    """The report on one run's ranks for a screen: verdict, the first step, what differs in it and on which ranks."""
    lines = [_verdict_of_ranks(report, colour)]
    for number, one in enumerate(report.unequal):
        lines += wrapped(f"{'then, in the same step: ' if number else 'first: '}{_unequal(one)}", 3)
    lines += wrapped(report.meaning, 3) if report.meaning else []
    if report.step > 0 and report.since < report.step - 1:
        when = f"were equal after step {report.since}" if report.since >= 0 else "were not compared before"
        also = f"; gradients differ from step {report.gradients} on" if report.gradients >= 0 else ""
        lines += wrapped(f"Parameters {when}{also}. `Checkpoints(…, every=1)` compares them in each step.")
    if report.parts:
        lines += wrapped(f"compared: {', '.join(f'{group} ({count})' for group, count in report.parts.items())}")
    lines += [paint(line.strip(), DIM, colour) for note in report.notes for line in wrapped(f"not covered: {note}")]
    return "\n".join(lines) + "\n"


def _verdict_of_ranks(report: RankReport, colour: bool) -> str:
    ranks = f"{len(report.ranks)} ranks"
    if report.verdict == "nothing":
        return paint(f"✗ nothing was compared: nothing is known that the {ranks} must hold alike", RED, colour)
    if report.verdict == "identical":
        last = f"{_count(report.compared)}, {report.first} to {report.last}"
        return paint(f"✓ the {ranks} hold the same, bit for bit, in all {last}", GREEN, colour)
    when = f"first in step {report.step}" if report.step else "before the first step"
    told = f"{report.differing} of {_count(report.compared)} differ"
    return paint(f"✗ the {ranks} do not hold the same {when} · {report.unequal[0].group} · {told}", RED, colour)


def _unequal(one: Unequal) -> str:
    names = ", ".join(one.names[:_SHOWN]) + (", …" if one.count > _SHOWN else "")
    return f"{one.group} ({one.count}: {names}): {told_of(one)}"
