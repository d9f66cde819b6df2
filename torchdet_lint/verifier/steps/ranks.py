"""The files of steps of one run's ranks -> the first step at which what must be equal on all of them is not, by rank.

Which parts must be equal stands in the files (`replicas.py`). No torch.
"""

from __future__ import annotations

import collections
import re
from typing import TYPE_CHECKING, Literal

import msgspec

import torchdet_lint
from torchdet_lint.verifier.comparison.verdict import Verdicts
from torchdet_lint.verifier.steps.format import (
    BATCH,
    GRADIENTS,
    LOCAL,
    OPTIMIZER,
    PARAMETERS,
    SHARDED,
    SYNCED,
    UNREADABLE,
    Steps,
    StepsError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from torchdet_lint.verifier.steps.format import Definition, Step

SCHEMA = "torchdet-lint/ranks/1"
_MOST_NAMES = 20
_COMPARED = (SYNCED, GRADIENTS, PARAMETERS, OPTIMIZER)
_RANK = re.compile(r"(?P<stem>.+)\.rank(?P<rank>\d+)")
_Key = tuple[tuple[int, ...], bool]
_MEANINGS = {
    SYNCED: "A forward pass began with buffers that are not equal: it does not go through DistributedDataParallel, "
    "which broadcasts them and reduces the gradients.",
    PARAMETERS: "The parameters differ, and no gradient that was compared does: a rank made the optimizer's step with "
    "other options or state, or something else changed its parameters.",
    OPTIMIZER: "The parameters are equal, and the optimizer's state or options are not: the next step will make them "
    "differ.",
}
_AT_FIRST = (
    "The ranks begin with different values: each made its own (from other random numbers, or from another checkpoint), "
    "and nothing sent those of one rank to the others."
)
_GRADIENTS = (
    "The gradients differ too: they were not reduced over the ranks (a call around DistributedDataParallel, "
    "`no_sync()`), or were changed afterwards."
)


class Unequal(msgspec.Struct, frozen=True):
    """What is not equal in a group at a step: `count` parts, of which `names` are the first; `ranks` have other values
    than most of `among`, or than the lowest of them where no value is that of most.
    """

    group: str
    count: int
    names: tuple[str, ...]
    ranks: tuple[int, ...]
    among: tuple[int, ...]


class RankReport(Verdicts, frozen=True):
    """What the comparison of one run's ranks gave.

    `compared` steps had parts that must be equal (`parts` of them in one step, by group), `differing` of them have some
    that are not. `step` is the first (-1: none; 0 is the state before the first), `unequal` what differs in it,
    `meaning` a sentence on it; `since` the last step before it at which all was compared and equal, `gradients` the
    step from which on gradients differed before it (-1: none).
    """

    verdict: Literal["identical", "diverged", "nothing"]
    path: str
    ranks: tuple[int, ...]
    compared: int
    differing: int
    first: int
    last: int
    step: int
    since: int
    gradients: int
    parts: dict[str, int]
    unequal: tuple[Unequal, ...]
    meaning: str
    notes: tuple[str, ...]
    schema: str = SCHEMA
    version: str = torchdet_lint.__version__


def compare_ranks(path: Path) -> RankReport:
    """Compare the ranks of the run of which `path` is a file. Raises `StepsError`, in one line."""
    files = {rank: Steps(one) for rank, one in files_of_run(path).items()}
    if len(files) < 2:
        raise StepsError(f"{path}: there is one rank's file alone: nothing to compare it with")
    kinds = sorted({str(one.header["digest"]) for one in files.values()})
    if len(kinds) > 1:
        raise StepsError(f"{path}: the ranks' digests are of different kinds ({', '.join(kinds)})")
    walk = _Walk(files)
    for steps in _together(files):
        walk.look(steps)
    return walk.report(path)


def files_of_run(path: Path) -> dict[int, Path]:
    """The files of a run by rank, where `path` is that of one."""
    found = _RANK.fullmatch(path.stem)
    stem = found["stem"] if found else path.stem
    files = {0: path.with_name(stem + path.suffix)}
    for one in path.parent.iterdir():
        rank = _RANK.fullmatch(one.stem)
        if rank and rank["stem"] == stem and one.suffix == path.suffix:
            files[int(rank["rank"])] = one
    return {rank: files[rank] for rank in sorted(files) if files[rank].exists() or files[rank] == path}


def _together(files: Mapping[int, Steps]) -> Iterator[dict[int, Step]]:
    """The steps of the same number, by rank."""
    readers = {rank: iter(file) for rank, file in files.items()}
    heads = {rank: step for rank, reader in readers.items() if (step := next(reader, None)) is not None}
    while heads:
        number = min(step.number for step in heads.values())
        yield {rank: step for rank, step in heads.items() if step.number == number}
        for rank in [rank for rank, step in heads.items() if step.number == number]:
            step = next(readers[rank], None)
            if step is None:
                del heads[rank]
            else:
                heads[rank] = step


class _Walk:
    """What is known after so many steps."""

    def __init__(self, files: Mapping[int, Steps]) -> None:
        self.files = files
        self.groups = {
            rank: [tuple(group) for group in file.header.get("replicas", [])] for rank, file in files.items()
        }
        self.compared = self.differing = 0
        self.first = self.last = self.step = self.since = self.gradients = -1
        self.parts: dict[str, int] = {}
        self.unequal: tuple[Unequal, ...] = ()
        self.idle: tuple[int, ...] = ()
        self.local: tuple[int, Unequal] | None = None
        self.made: collections.Counter[int] = collections.Counter()
        self.batches = [0, 0]
        self.aside: collections.Counter[str] = collections.Counter()
        self._known: dict[int, tuple[Definition, dict[str, set[str]]]] = {}

    def look(self, steps: Mapping[int, Step]) -> None:
        """Compare one step."""
        self.made.update(dict.fromkeys(steps, 1))
        number = next(iter(steps.values())).number
        found = {group: self._unequal(group, steps, number) for group in _COMPARED}
        if all(told is None for told in found.values()):
            return
        self._batch(steps)
        self.compared += 1
        self.first = number if self.first < 0 else self.first
        self.last = number
        wrong = tuple(one for group in _COMPARED if group != GRADIENTS for one in found[group] or ())
        self.differing += bool(wrong)
        if self.step >= 0:
            return
        if wrong:
            self.step = number
            self.unequal = tuple(one for group in _COMPARED for one in found[group] or ())
            self.idle = self._idle(steps)
        elif found[PARAMETERS] is not None:
            self.since, self.gradients = number, -1
        if found[GRADIENTS] and self.gradients < 0:
            self.gradients = number

    def _idle(self, steps: Mapping[int, Step]) -> tuple[int, ...]:
        """The ranks on which no optimizer applied gradients in a step in which one did on others."""
        idle = tuple(rank for rank, step in steps.items() if not any(True for _ in _parts(step, GRADIENTS)))
        return idle if len(idle) < len(steps) else ()

    def _kinds(self, definition: Definition) -> dict[str, set[str]]:
        """What is said of the parts of each group."""
        known = self._known.get(id(definition))
        if known is None:
            kinds = {group: {part.replica for part in parts} for group, parts in definition.groups}
            # The definition is kept, so that no other gets its place in memory.
            known = self._known[id(definition)] = (definition, kinds)
        return known[1]

    def _unequal(self, group: str, steps: Mapping[int, Step], number: int) -> list[Unequal] | None:
        """What is not equal in a group; None where nothing in it was compared."""
        if group == PARAMETERS:
            self._count_aside(steps)
        told: list[Unequal] = []
        compared = 0
        for (among, local), by_rank in sorted(self._sets(group, steps).items()):
            unequal = _outliers(group, among, by_rank) if len(by_rank) > 1 else None
            if local and unequal is not None:
                self.local = self.local or (number, unequal)
            elif not local and len(by_rank) > 1:
                compared += max(map(len, by_rank.values()))
                told += [unequal] if unequal is not None else []
        self.parts[group] = max(self.parts.get(group, 0), compared)
        return told if compared else None

    def _sets(self, group: str, steps: Mapping[int, Step]) -> dict[_Key, dict[int, dict[str, int]]]:
        """The digests of a group by name, by rank, by the ranks that hold the same and whether they need not."""
        sets: dict[_Key, dict[int, dict[str, int]]] = {}
        for rank, step in steps.items():
            if self._kinds(step.definition).get(group, {""}) == {""}:
                continue
            for name, digest, replica in _parts(step, group):
                local, _, key = replica.rpartition(" ")
                if key.isdigit() and int(key) < len(self.groups[rank]):
                    mine = sets.setdefault((self.groups[rank][int(key)], local == LOCAL), {})
                    mine.setdefault(rank, {})[name] = digest
        return sets

    def _count_aside(self, steps: Mapping[int, Step]) -> None:
        """How many parameters a rank has of which nothing can be said."""
        for step in steps.values():
            parts = dict(step.definition.groups).get(PARAMETERS, ())
            for kind in ("", SHARDED):
                self.aside[kind] = max(self.aside[kind], sum(part.replica == kind for part in parts))

    def _batch(self, steps: Mapping[int, Step]) -> None:
        """Whether all ranks read the same in this step."""
        read = [step.digests[BATCH] for step in steps.values() if BATCH in step.digests]
        if len(read) == len(self.files):
            self.batches[0] += 1
            self.batches[1] += len(set(read)) == 1

    def report(self, path: Path) -> RankReport:
        """What all of it means."""
        verdict: Literal["identical", "diverged", "nothing"] = "nothing"
        if self.compared:
            verdict = "diverged" if self.step >= 0 else "identical"
        return RankReport(
            verdict,
            str(path),
            tuple(self.files),
            self.compared,
            self.differing,
            self.first,
            self.last,
            self.step,
            self.since,
            self.gradients if self.step >= 0 else -1,
            {group: count for group, count in self.parts.items() if count},
            self.unequal,
            self._meaning(),
            tuple(self._notes()),
        )

    def _meaning(self) -> str:
        if not self.unequal:
            return ""
        if self.step == 0:
            return _AT_FIRST
        if self.idle:
            return f"In this step no optimizer's step was made on {ranks_of(self.idle)}, and one was on the others."
        if self.gradients >= 0 and self.unequal[0].group != SYNCED:
            return _GRADIENTS
        return _MEANINGS[self.unequal[0].group]

    def _notes(self) -> Iterator[str]:
        headers = [file.header for file in self.files.values()]
        missing = max(max(int(header.get("world", 1)) for header in headers), len(headers)) - len(headers)
        if missing:
            yield f"{missing} of the run's ranks {'has' if missing == 1 else 'have'} no file here"
        if self.aside[""]:
            yield (
                f"{self.aside['']} parameters, which nothing is known to keep equal (neither DistributedDataParallel "
                "nor a replicated DTensor): `Checkpoints(…, replicated=True)` says that all ranks must hold the same"
            )
        if self.aside[SHARDED]:
            yield f"{self.aside[SHARDED]} parameters that are sharded: each rank has its own piece"
        if self.local is not None:
            number, told = self.local
            yield (
                f"buffers that the program does not have broadcast (`broadcast_buffers=False`, or ignored) differ from "
                f"step {number} on: {', '.join(told.names[:3])} on {ranks_of(told.ranks)}"
            )
        if self.batches[0] > 1 and self.batches[0] == self.batches[1] and headers[0].get("data_parallel"):
            yield f"all ranks read the same batch in each of {self.batches[0]} steps: is a DistributedSampler missing?"
        most = max(self.made.values(), default=0)
        for rank, file in self.files.items():
            if self.made[rank] < most:
                yield f"rank {rank} has {most - self.made[rank]} steps fewer than another rank"
            if not file.complete:
                yield f"rank {rank} did not end in order, or goes on: its steps so far were compared"


def _parts(step: Step, group: str) -> Iterator[tuple[str, int, str]]:
    """The parts of a group that can be compared: name, digest and which ranks hold the same."""
    digests = step.parts(group)
    for part in dict(step.definition.groups).get(group, ()):
        if part.replica not in ("", SHARDED) and part.kind != UNREADABLE:
            yield part.name, digests[part.name][0], part.replica


def _outliers(group: str, among: tuple[int, ...], by_rank: Mapping[int, Mapping[str, int]]) -> Unequal | None:
    """Which ranks have other values than most, and in what."""
    names = []
    others: set[int] = set()
    for name in next(iter(by_rank.values())):
        values = {rank: parts[name] for rank, parts in by_rank.items() if name in parts}
        counts = collections.Counter(values.values())
        if len(counts) > 1:
            names.append(name)
            usual, _ = counts.most_common(1)[0]  # of equally many that of the lowest rank, which comes first
            others |= {rank for rank, value in values.items() if value != usual}
    if not names:
        return None
    return Unequal(group, len(names), tuple(names[:_MOST_NAMES]), tuple(sorted(others)), tuple(sorted(by_rank)))


def told_of_ranks(report: RankReport) -> str:
    """What of a run's ranks is not equal first, in words."""
    when = f"first in step {report.step}" if report.step else "before the first step"
    one = report.unequal[0]
    return f"the {len(report.ranks)} ranks do not hold the same {when}: {one.group}, {told_of(one)}"


def told_of(one: Unequal) -> str:
    """Which ranks differ from which, in words."""
    rest = tuple(rank for rank in one.among if rank not in one.ranks)
    return f"{ranks_of(one.ranks)} {'differs' if len(one.ranks) == 1 else 'differ'} from {ranks_of(rest)}"


def ranks_of(ranks: tuple[int, ...]) -> str:
    """Ranks in words."""
    shown = ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
    return f"rank{'s' * (len(ranks) > 1)} {shown}"
