"""Rows of the table of ops -> what is measured: cells, each one program in one mode."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.verifier.probe import programs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.verifier.probe.programs import Program

MODES = ("default", "deterministic", "warn-only", "cudnn-deterministic", "benchmark")
_WITHOUT_CUDNN = MODES[:3]
_COMPILED = MODES[:2]


class Cell(NamedTuple):
    """One program in one mode; `control` says what of the row's condition it does not meet (empty: it meets it).

    `weight` is its part of the time, in relation to other cells.
    """

    program: Program
    mode: str
    control: str
    weight: int

    @property
    def key(self) -> str:
        """Equal for cells that run the same, in whatever row they stand."""
        return f"{self.program.digest}/{self.mode}"

    @property
    def compiles(self) -> bool:
        """Whether it is compiled before it runs, which takes long."""
        return "compiler" in self.program.needs


class Planned(NamedTuple):
    """A row of the catalogue with its cells, or the reason why it has none."""

    op: Op
    cells: tuple[Cell, ...]
    reason: str = ""


def plan(ops: Iterable[Op], device: str, *, dtypes: Sequence[str] = (), modes: Sequence[str] = MODES) -> list[Planned]:
    """The cells of `ops` on `device`, in `modes`; `dtypes` takes the place of those that the rows name."""
    planned = [_planned(op, device, tuple(dtypes)) for op in ops]
    return [row._replace(cells=tuple(cell for cell in row.cells if cell.mode in modes)) for row in planned]


def chosen(ops: Iterable[Op], patterns: Sequence[str]) -> list[Op]:
    """The rows of which the name or a spelling fits one of `patterns`: a part of it, or a whole with `*` in it."""
    wanted = [pattern.lower() if "*" in pattern else f"*{pattern.lower()}*" for pattern in patterns]
    return [
        op
        for op in ops
        if not wanted
        or any(
            fnmatch.fnmatchcase(name.lower(), pattern)
            for name in (op.op, *(spelling.name for spelling in op.spellings))
            for pattern in wanted
        )
    ]


def _planned(op: Op, device: str, dtypes: tuple[str, ...]) -> Planned:
    probe = op.probe
    if probe is None:
        return Planned(op, (), "its row says nothing of how to run it")
    if not probe.call or (device == "cpu" and probe.reason):
        return Planned(op, (), probe.reason)
    types = dtypes or ("float32", *probe.dtypes)
    program = programs.of_row(op, dtype=types[0])
    modes: tuple[str, ...] = MODES if device == "cuda" else _WITHOUT_CUDNN
    if "compiler" in program.needs:
        modes = _COMPILED
    if probe.mode:
        modes = (probe.mode,)
    concerned = device in op.devices
    cells = [Cell(program, mode, "", _weight(mode, concerned)) for mode in modes]
    for control in probe.controls:
        other = programs.of_control(op, control, dtype=types[0])
        cells.append(Cell(other, control.mode or "default", control.what, 2 if concerned else 1))
    for dtype in types[1:]:
        cells.append(Cell(programs.of_row(op, dtype=dtype), modes[0], "", 1))
    for layout in probe.layouts:
        cells.append(Cell(programs.of_row(op, dtype=types[0], layout=layout), modes[0], "", 1))
    return Planned(op, tuple(cells))


def _weight(mode: str, concerned: bool) -> int:
    """The default mode shows what varies; the others matter where the table expects something of the device."""
    if mode == "default":
        return 8
    return 3 if mode == "deterministic" and concerned else 1
