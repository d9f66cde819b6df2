"""Two measurements -> what one machine or release shows and the other does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.verifier.probe.output import wording

if TYPE_CHECKING:
    from torchdet_lint.catalogue.measured import Measurement, Result, Row

_SHOWN = ("equal", "differs", "raises", "crashes", "hangs", "out of memory")


class Change(NamedTuple):
    """A row and what was measured of it there and here."""

    row: Row
    before: Result
    after: Result


def changes(a: Measurement, b: Measurement) -> tuple[list[Change], int]:
    """What is other in `b` than in `a`, and how many results both have.

    A rate has changed where the intervals lie apart; a result that was not measured on both sides says nothing.
    """
    earlier = {(row.key, result.key): result for row in a.rows for result in row.results}
    found, together = [], 0
    for row in b.rows:
        for result in row.results:
            before = earlier.get((row.key, result.key))
            if before is None or before.outcome not in _SHOWN or result.outcome not in _SHOWN:
                continue
            together += 1
            if _other(before, result):
                found.append(Change(row, before, result))
    return found, together


def _other(a: Result, b: Result) -> bool:
    if {a.outcome, b.outcome} <= {"equal", "differs"}:
        return a.low > b.high or b.low > a.high
    return a.outcome != b.outcome


def text(a: Measurement, b: Measurement) -> str:
    """The changes for a screen."""
    found, together = changes(a, b)
    lines = [f"a: {wording.machine(a.machine)}", f"b: {wording.machine(b.machine)}"]
    lines.append(f"{len(found)} of {together} results that both have changed" + (":" if found else ""))
    for change in found:
        how = ", ".join(part for part in (change.after.control, wording.how(change.after)) if part)
        condition = f" ({change.row.condition})" if change.row.condition else ""
        lines.append(f"  {wording.title(change.row)}{condition}{f', {how}' if how else ''}")
        lines.append(f"    a: {wording.outcome(change.before)}")
        lines.append(f"    b: {wording.outcome(change.after)}")
    only = len({row.key for row in a.rows} ^ {row.key for row in b.rows})
    if only:
        lines.append(f"{only} row{'s are' if only > 1 else ' is'} in one of them only")
    return "\n".join(lines) + "\n"
