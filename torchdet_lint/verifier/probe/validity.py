"""A file of measurements -> what of it holds on this machine, and which ops of a run it saw differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.catalogue import loading, measured, verdicts
from torchdet_lint.verifier.ops import aten
from torchdet_lint.verifier.probe.child import AbsentError, Child, ChildError
from torchdet_lint.verifier.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torchdet_lint.catalogue.measured import Machine, Measurement
    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.verifier.trace import Site

__all__ = ["ChildError", "Valid", "differing", "here", "named", "this_machine"]

_MEMORY = 4 * 2**30


class Valid(NamedTuple):
    """A measurement that holds where it is used, and its file."""

    path: Path
    measurement: Measurement

    def table(self, devices: tuple[str, ...]) -> tuple[Op, ...]:
        """The ops of the catalogue as they are on the machine that was measured, for a run on `devices`."""
        return verdicts.apply(loading.load().facts.ops, self.measurement, devices)


def here(path: Path) -> tuple[Valid | None, str]:
    """The measurement in `path` where it is of this machine, else why it is not used, in one line.

    Raises `measured.MeasuredError` for a file that is none, `ChildError` where torch does not start.
    """
    found = measured.read(str(path))
    machine = this_machine(found.machine.device)
    if machine is None:
        return None, f"{path.name}: measured on {found.machine.device}, and torch sees no such device here: not used"
    if other := found.machine.unlike(machine.identity):
        return None, f"{path.name}: measured with {other}: not used"
    return Valid(path, found), ""


def this_machine(device: str) -> Machine | None:
    """What this machine is, with `device`; None where torch sees no such device. Asked in a process of its own."""
    try:
        with Child(device, memory=_MEMORY) as child:
            return child.machine
    except AbsentError:
        return None


def differing(trace: Path, valid: Valid) -> tuple[str, ...]:
    """The ops of a run that the measurement saw differ, with their line: those that a name alone tells, and not the
    arguments.
    """
    device = valid.measurement.machine.device
    rows: dict[tuple[str, str], Op] = {
        (op.op, op.direction): op for op in valid.table((device,)) if device in op.devices and not op.softened
    }
    recorded = Trace(trace)
    told: dict[str, None] = {}
    for stream in recorded.streams:
        for site in recorded.sites(stream):
            for name, direction in named(site):
                row = rows.get((name, direction))
                if row is not None and row.measured:
                    backward = direction == "backward"
                    place = f"{site.forward_file}:{site.forward_line}" if backward and site.forward_file else site.place
                    condition = f" ({row.condition})" if row.condition else ""
                    what = f"the gradient of {name}" if backward else name
                    told[f"{place} {what}: {row.measured}{condition}"] = None
    return tuple(told)


def named(site: Site, by_arguments: str = "") -> Iterator[tuple[str, str]]:
    """The catalogue's names for what ran at a site, each with its direction; `by_arguments` is one that the arguments
    told.
    """
    name = aten.base_name(site.op) if site.op.startswith("aten.") else ""
    if gradient := aten.gradient_of(site.op):
        yield gradient, "backward"
    if site.phase == "backward":
        forward = aten.base_name(site.forward_op) if site.forward_op.startswith("aten.") else ""
        composed = aten.COMPOSED_BACKWARD.get((name, forward))
        if composed:
            yield composed, "backward"
            return
    if name in aten.FORWARD:
        yield aten.FORWARD[name], "forward"
    if by_arguments:
        yield by_arguments, "backward" if name == "_embedding_bag" else "forward"
