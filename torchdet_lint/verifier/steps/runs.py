"""Two runs of several ranks -> the rank and step at which they differ first, and whether the ranks of each agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.verifier.steps.compare import RankSteps, compare_steps
from torchdet_lint.verifier.steps.format import GROUPS, Steps
from torchdet_lint.verifier.steps.ranks import compare_ranks, files_of_run, told_of_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torchdet_lint.verifier.steps.compare import StepReport


def compare_runs(a: Path, b: Path) -> StepReport:
    """Compare two runs by a file of steps of each: all ranks that both have a file of, each with its twin; the report
    is that of the rank which differs first. Two files of one run, or of runs that share no rank, are compared as they
    are. Raises `StepsError`, in one line.
    """
    mine, other = _files(a), _files(b)
    both = sorted(mine.keys() & other.keys())
    if not both or mine == other or len(mine) == len(other) == 1:
        return compare_steps(a, b)
    reports = {rank: compare_steps(mine[rank], other[rank]) for rank in both}
    first = min(both, key=lambda rank: _when(reports[rank]))
    told = tuple(RankSteps(rank, one.step, _group(one)) for rank, one in reports.items())
    notes = [f"rank {rank}: {note}" for rank, one in reports.items() for note in one.notes]
    notes += [f"rank {rank}: only one of the runs has a file of it" for rank in sorted(mine.keys() ^ other.keys())]
    return msgspec.structs.replace(
        reports[first], rank=first, ranks=told, within=tuple(_within((mine, other))), notes=tuple(notes)
    )


def _files(path: Path) -> dict[int, Path]:
    """The files of the run, by rank; of a run of one process it has one."""
    header = Steps(path).header
    world = int(header.get("world", 1))
    if world < 2:
        return {0: path}
    return {rank: file for rank, file in files_of_run(path).items() if rank < world} or {int(header["rank"]): path}


def _when(report: StepReport) -> tuple[bool, bool, int, int]:
    """What comes first in time comes first: a step, in it the order of a training step, and the end of a run last."""
    group = _group(report)
    return report.verdict != "diverged", not group, report.step, GROUPS.index(group) if group else 0


def _group(report: StepReport) -> str:
    return report.differences[0].group if report.differences else ""


def _within(runs: tuple[dict[int, Path], ...]) -> Iterator[str]:
    """A sentence for each run of which the ranks do not hold the same."""
    for name, files in zip("AB", runs, strict=True):
        if len(files) > 1:
            report = compare_ranks(files[min(files)])
            if report.verdict == "diverged":
                yield f"within {name}: {told_of_ranks(report)}"
