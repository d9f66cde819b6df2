"""Two runs that differ in what Python handed over -> whether the order of the program's threads is the cause."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.verifier.trace import Trace, TraceError
from torchdet_lint.verifier.verification.closer.proven import under
from torchdet_lint.verifier.verification.outcome import VerifyError
from torchdet_lint.verifier.verification.report import cause_alone

if TYPE_CHECKING:
    from torchdet_lint.verifier.launch.launch import ChildResult
    from torchdet_lint.verifier.trace import Site
    from torchdet_lint.verifier.verification.outcome import Cause
    from torchdet_lint.verifier.verification.report import Report
    from torchdet_lint.verifier.verification.session import Session

_RULE = "TDL306"
_MOST_CPU_SECONDS, _MOST_SECONDS = 60.0, 600.0
"""Runs that take more of the CPU, which does not grow while other work has it, or that last longer still, waiting, are
not repeated for this."""
_IN_TURN, _AGAIN = 3, 2
"""Pairs with the threads in turn, which must all be equal at a place, and further ones without, which must all differ
there: where it differs in half of all pairs whatever the threads do, that happens once in 64 times."""
_OPEN = ("outside", "number", "order", "path")


def settle(session: Session, report: Report) -> Report:
    """Run a program that starts threads with its threads one after the other, and again without. Causes of no sure rule
    that never differ so, and differ each time without, are told as the order in which the threads end. A race that may
    follow from other causes is told beside them where it never differs so, and they all do.
    """
    with contextlib.suppress(VerifyError, TraceError):
        return _settled(session, report)
    return report


def _settled(session: Session, report: Report) -> Report:
    outcome = session.outcome
    if outcome is None or session.workspace.in_place:
        return report
    open_ones = [cause for cause in report.causes if _is_open(cause)]
    races = [item for item in outcome.divergences if item.kind == "consequence" and item.source == "race"]
    if not (open_ones or races) or not _starts_threads(session):
        return report
    if any(is_long(result) for result in session.results):
        told = "whether the order of threads is the cause: runs of more than a minute of CPU are not repeated for that"
        return msgspec.structs.replace(report, not_covered=(*report.not_covered, f"{told} (--fix tries it)"))
    known = {(item.index, item.stream): item.site for item in outcome.causes}
    sites = {site for cause in open_ones if (site := site_of(cause, known)) is not None}
    raced, others = {item.site for item in races}, {*known.values()}
    in_turn = session.beside("in-turn", _RULE)
    for found in in_turn.compared(_IN_TURN):
        differ = {item.site for item in found}
        sites -= differ
        raced = raced - differ if others <= differ else set()
        sites, raced = sites & passed(in_turn), raced & passed(in_turn)
        if not sites and not raced:
            return report
    for found in session.beside("again").compared(_AGAIN):
        sites &= {item.site for item in found if item.kind != "consequence"}
        raced &= {item.site for item in found}
    causes = [
        under(_RULE, cause, ()) if cause in open_ones and site_of(cause, known) in sites else cause
        for cause in report.causes
    ]
    apart = [cause_alone(item, outcome, session.root) for item in races if item.site in raced]
    spread = msgspec.structs.replace(report.spread, consequences=report.spread.consequences - len(apart))
    proven = (under(_RULE, cause, ()) for cause in apart)
    return msgspec.structs.replace(report, causes=(*causes, *proven), spread=spread)


def _is_open(cause: Cause) -> bool:
    """Whether no rule is known of a cause; that of a set, which puts values in another order, is a guess."""
    guessed = cause.source == "order" and _RULE in cause.also and cause.finding is None
    return cause.source in _OPEN and (guessed or not cause.rule)


def is_long(result: ChildResult) -> bool:
    """Whether a run is too long to be repeated for this. Where its CPU time is not known, all its time counts."""
    return (result.cpu_seconds or result.seconds) > _MOST_CPU_SECONDS or result.seconds > _MOST_SECONDS


def site_of(cause: Cause, known: dict[tuple[int, str], Site]) -> Site | None:
    """The place of a cause, of those of the comparison by position and stream; None for another kind of cause."""
    return known.get((cause.op_index, cause.stream))


def passed(session: Session) -> set[Site]:
    """The sites that run A passed: at others nothing can have differed."""
    opened = Trace(session.trace(0))
    return {site for stream in opened.streams for site in opened.sites(stream)}


def _starts_threads(session: Session) -> bool:
    return any("threads" in note for note in Trace(session.trace(0)).notes)
