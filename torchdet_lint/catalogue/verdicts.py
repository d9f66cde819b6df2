"""The table of ops and a measurement -> what the linter says of each op on the machine that was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.catalogue.ops import release, status_at, status_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal

    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.catalogue.measured import Machine, Measurement, Result, Row
    from torchdet_lint.catalogue.ops import Op, Status

    Verdict = Literal["errors", "switchable", "silent"]

SURE = 0.01
"""A result without a difference counts where its runs find this rate with 99 %."""


def key(op: Op) -> tuple[str, str, str, tuple[str, ...]]:
    """What tells a row of the catalogue from the others; the key of its `measured.Row`."""
    return (op.op, op.direction, op.spellings[0].name, op.devices)


def on_machine(catalogue: Catalogue, measurement: Measurement, devices: Sequence[str]) -> Catalogue:
    """The catalogue with its ops, and those of the user's own rules, as they are on the machine that was measured."""
    facts = msgspec.structs.replace(catalogue.facts, ops=apply(catalogue.facts.ops, measurement, devices))
    rules = {
        code: msgspec.structs.replace(rule, ops=apply(rule.ops, measurement, devices)) if rule.ops else rule
        for code, rule in catalogue.rules.items()
    }
    return msgspec.structs.replace(catalogue, rules=rules, facts=facts)


def apply(ops: Iterable[Op], measurement: Measurement, devices: Sequence[str]) -> tuple[Op, ...]:
    """The rows as they are on the machine that was measured, for code that runs on `devices`.

    A row that was seen to differ says so. Where the table has it deterministic, or not on that device, it has from now
    on the status that was measured. One of which no difference was seen, in enough runs and on every device that
    counts, is softened.
    """
    rows = {row.key: row for row in measurement.rows}
    known = list(ops)
    device = measurement.machine.device
    applied: list[Op] = []
    for op in known:
        row = rows.get(key(op))
        found = row.found() if row is not None else None
        if row is None or found is None or elsewhere(op, known, device):
            applied.append(op)
        elif found.outcome == "differs":
            applied += _differing(op, row, found, measurement.machine)
        elif found.outcome == "equal" and found.finds <= SURE and {*op.devices} & {*devices} == {device}:
            note = f"no difference seen in {found.runs} runs on {measurement.machine.title}"
            applied.append(msgspec.structs.replace(op, measured=note, machine=measurement.machine.whole, softened=True))
        else:
            applied.append(op)
    return tuple(applied)


def _differing(op: Op, row: Row, found: Result, machine: Machine) -> list[Op]:
    note = f"differed in {found.differing} of {found.runs} runs on {machine.title}"
    measured = msgspec.structs.replace(op, measured=note, machine=machine.whole, exact=False)
    history = _history(op, _verdict(row))
    if machine.device not in op.devices:
        return [msgspec.structs.replace(measured, devices=(machine.device,), status=history, aggregate=False), op]
    if op.package != "torch" or status_in(op.status, release(machine.torch)) not in ("absent", "deterministic"):
        return [measured]
    return [msgspec.structs.replace(measured, status=history)]


def _verdict(row: Row) -> Verdict:
    """The status of an op that differs, by what deterministic mode did with it."""
    strict = row.found("deterministic")
    if strict is None:
        return "silent"
    return {"equal": "switchable", "raises": "errors"}.get(strict.outcome, "silent")  # type: ignore[return-value]


def _history(op: Op, status: Verdict) -> tuple[Status, ...]:
    first = op.status[0]
    return (msgspec.structs.replace(first, since="1.0", status=status, note="", instead=""),)


def elsewhere(op: Op | Row, ops: Iterable[Op] | Iterable[Row], device: str) -> bool:
    """Whether `op` speaks of other devices than `device`, of which another of the rows speaks."""
    if device in op.devices:
        return False
    return any(other.op == op.op and other.direction == op.direction and device in other.devices for other in ops)


def contradiction(op: Op, row: Row, machine: Machine) -> str:
    """What the catalogue says of an op and the measurement does not bear out, in a few words; empty: they agree.

    That no difference was seen contradicts nothing.
    """
    found, strict = row.found(), row.found("deterministic")
    if op.package != "torch" or found is None or found.outcome != "differs":
        return ""
    if machine.device not in op.devices:
        return f"nondeterministic on {', '.join(op.devices)} only"
    status = status_at(op, release(machine.torch))
    if status in ("absent", "deterministic"):
        return f"deterministic in torch {machine.release}"
    if op.exact:
        return "it raises in deterministic mode, but is deterministic"
    if status == "switchable" and strict is not None and strict.outcome == "differs":
        return "deterministic mode makes it deterministic"
    if status == "errors" and strict is not None and strict.outcome in ("equal", "differs"):
        return "it raises in deterministic mode"
    return ""
