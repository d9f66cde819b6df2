"""The code of a rule of scope `project` -> the function that looks for it in one program: the other table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchdet_lint.checks import program_modes, program_seeds

if TYPE_CHECKING:
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.program.entry import Entry, Fault

ProgramCheck = Callable[["Entry", "Rule"], Iterator["Fault"]]

PROGRAM_CHECKS: Mapping[str, ProgramCheck] = {
    "TDL101": program_seeds.unseeded_torch,
    "TDL102": program_seeds.unseeded_numpy,
    "TDL103": program_seeds.unseeded_python,
    "TDL106": program_seeds.late_seed,
    "TDL108": program_seeds.unseeded_process,
    "TDL203": program_modes.missing_mode,
    "TDL205": program_modes.missing_workspace,
    "TDL307": program_modes.racing_updates,
}
