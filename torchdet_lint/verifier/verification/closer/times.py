"""Two runs of which only printed numbers differ -> the lines that tell times, and so are no difference."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from torchdet_lint.verifier.trace import Trace, TraceError
from torchdet_lint.verifier.verification.closer.turns import is_long
from torchdet_lint.verifier.verification.leftovers.leftovers import OUTPUT
from torchdet_lint.verifier.verification.leftovers.scaling import lines_of_times
from torchdet_lint.verifier.verification.outcome import VerifyError

if TYPE_CHECKING:
    from torchdet_lint.verifier.verification.session import Session

_TICK = 1.0
"""By how many seconds a held clock goes on at each reading: durations are printed with few decimals."""
_FASTER = (2, 5)
"""How much faster the other clocks go. A number that has nothing to do with time would have to follow both."""


def told_times(session: Session) -> frozenset[int]:
    """The lines of standard output that tell times, where nothing else differs: with the program's clock held two runs
    print the same there, and with faster ones as much more or less. A number that was drawn from a seed of the clock's
    would not. Empty where the program cannot run again for that.
    """
    certain = session.left.certain
    only_numbers = bool(certain) and all(left.name == OUTPUT and left.hint for left in certain)
    if not only_numbers or session.outcome is None or not session.outcome.identical or not _in_order(session):
        return frozenset()
    if session.workspace.in_place or any(is_long(result) for result in session.results):
        return frozenset()
    with contextlib.suppress(VerifyError, TraceError):
        return _told(session)
    return frozenset()


def _in_order(session: Session) -> bool:
    """Whether a line has one number in every run: what each process prints stands in the order of their names. It has
    not where threads print, or processes that are called alike.
    """
    if not session.several:
        return True
    printed = {*session.printed.values()}
    alone = all(process.name.endswith(" 1") for processes in printed for process in processes)
    traces = [session.trace(number) for number in session.printed]
    if len(printed) != 1 or not alone or not all(trace.exists() for trace in traces):
        return False
    return all(stream.kind != "thread" for trace in traces for stream in Trace(trace).streams)


def _told(session: Session) -> frozenset[int]:
    held = session.beside("held-clock", tick=_TICK)
    faster = {factor: session.beside(f"clock-{factor}", tick=factor * _TICK) for factor in _FASTER}
    for one, number in ((held, 0), (held, 1), *((other, 0) for other in faster.values())):
        one.finished(number)
    if held.judge(1, lint=False) is not None:
        return frozenset()
    if {*session.printed.values()} != {made for one in (held, *faster.values()) for made in one.printed.values()}:
        return frozenset()
    lines = {lines_of_times(held.output(0), other.output(0), factor) for factor, other in faster.items()}
    return lines.pop() if len(lines) == 1 else frozenset()
