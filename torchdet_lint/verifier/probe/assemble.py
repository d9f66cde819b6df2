"""A plan and its tallies -> the measurement that is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.catalogue.measured import Measurement, Result, Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.catalogue.measured import Machine
    from torchdet_lint.verifier.probe.plan import Planned
    from torchdet_lint.verifier.probe.tally import Tally


def assemble(
    planned: Sequence[Planned],
    tallies: Mapping[str, Tally],
    machine: Machine,
    *,
    runs: int,
    seconds: float,
    date: str,
    catalogue: str,
    version: str,
) -> Measurement:
    """The measurement: a row for each of the plan, in its order, with a result for each cell."""
    cells = {cell.key for row in planned for cell in row.cells}
    return Measurement(
        machine=machine,
        date=date,
        runs=runs,
        seconds=round(seconds, 1),
        complete=all(key in tallies and tallies[key].finished(runs) for key in cells),
        catalogue=catalogue,
        version=version,
        rows=tuple(_row(row, tallies) for row in planned),
    )


def _row(planned: Planned, tallies: Mapping[str, Tally]) -> Row:
    op = planned.op
    if planned.cells:
        missing = Result(outcome="not run", note="the time was over")
        results = tuple(
            tallies[cell.key].result(cell) if cell.key in tallies else _named(missing, cell.control, cell.mode)
            for cell in planned.cells
        )
    else:
        results = (Result(outcome="unavailable", note=planned.reason),)
    return Row(
        op=op.op,
        direction=op.direction,
        spelling=op.spellings[0].name,
        condition=op.condition,
        devices=op.devices,
        results=results,
    )


def _named(result: Result, control: str, mode: str) -> Result:
    return Result(outcome=result.outcome, note=result.note, control=control, mode=mode)
