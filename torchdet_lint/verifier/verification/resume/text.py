"""What a resume check gave -> lines for a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.comparison.screen import DIM, GREEN, RED, inert, paint, wrapped
from torchdet_lint.verifier.steps.format import BATCH, BUFFERS, GENERATORS, OPTIMIZER, PARAMETERS, STATES

if TYPE_CHECKING:
    from torchdet_lint.verifier.steps.compare import Difference
    from torchdet_lint.verifier.verification.resume.check import ResumeReport

_SHOWN = 6
_LOST = {
    PARAMETERS: "parameters of the model",
    BUFFERS: "buffers of the model",
    OPTIMIZER: "the optimizer's state or options",
    STATES: "other states",
    GENERATORS: "states of generators",
}


def text(report: ResumeReport, *, colour: bool = False) -> str:
    """The report for a screen: verdict, what the checkpoint forgot, and what came of it."""
    saved, last = report.saved, report.saved + report.compared
    if report.ok:
        told = f"✓ resumed after step {saved}, the run is the uninterrupted one, bit for bit, in steps"
        lines = [paint(f"{told} {saved + 1} to {last}", GREEN, colour)]
    elif report.unsteady:
        told = f"✗ not established: two runs that are not resumed differ already in step {report.unsteady}"
        lines = [paint(told, RED, colour)]
        lines += wrapped(f"Find out why first: torchdet-lint verify {' '.join(report.program)}")
    else:
        first = f"from step {report.step} on" if report.step else "in what it has loaded"
        told = f"✗ resumed after step {saved}, the run differs from the uninterrupted one {first}"
        lines = [paint(told, RED, colour), *_forgotten(report), *_first(report)]
    for name, (a, b) in report.losses.items():
        end = report.last_losses.get(name)
        more = f"; in step {last}: {end[0]:.9g} | {end[1]:.9g}" if end and last > report.step else ""
        lines.append(f"  {inert(name)} in step {report.step}, uninterrupted | resumed: {a:.9g} | {b:.9g}{more}")
    if report.without_effect:
        names = ", ".join(report.without_effect)
        note = f"without effect in these steps: the generator {names} does not stand where it stood"
        lines += [line.strip() for line in wrapped(note)]
    lines += [
        paint(line.strip(), DIM, colour) for note in report.not_covered for line in wrapped(f"not covered: {note}")
    ]
    return "\n".join(lines) + "\n"


def _forgotten(report: ResumeReport) -> list[str]:
    lost = [one for one in report.forgotten if one.group in _LOST]
    lines = []
    if lost:
        lines.append("not saved, or not loaded:")
        for one in lost:
            lines += wrapped(f"- {_LOST[one.group]}: {_names(one)}", 3)
    batch = next((one for one in report.forgotten if one.group == BATCH), None)
    if batch is not None:
        word = "a consequence, or the" if any(one.group == GENERATORS for one in lost) else "The"
        lines += wrapped(
            f"{word} position in the data: the first batch after the resume is another one ({_names(batch)})"
        )
    return lines


def _first(report: ResumeReport) -> list[str]:
    """What differs first where nothing that was found missing explains it."""
    if report.forgotten or not report.differences:
        return []
    first = report.differences[0]
    reason = "What the program does not restore is not established: no state that is looked at differs before it."
    return [*wrapped(f"first: {first.group} ({_names(first)})"), *wrapped(reason)]


def _names(one: Difference) -> str:
    shown = ", ".join(one.names[:_SHOWN])
    return shown + (f", … ({one.count} of {one.parts})" if one.count > _SHOWN else "")
