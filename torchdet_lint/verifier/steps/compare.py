"""Two files of steps -> the first step that differs, what differed first in it, and what that means. No torch."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import msgspec

import torchdet_lint
from torchdet_lint.verifier.comparison.verdict import Verdicts
from torchdet_lint.verifier.steps.format import (
    BATCH,
    BUFFERS,
    GENERATORS,
    GRADIENTS,
    GROUPS,
    LOSS,
    OPTIMIZER,
    PARAMETERS,
    STATES,
    SYNCED,
    UNREADABLE,
    Steps,
    StepsError,
)
from torchdet_lint.verifier.trace import environments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torchdet_lint.verifier.steps.format import Definition, Step

SCHEMA = "torchdet-lint/steps/1"
_MOST_NAMES = 20
_AT_FIRST = {
    BUFFERS: "The runs begin with different buffers: their initialization or the checkpoint that they loaded differs.",
    PARAMETERS: "The runs begin with different parameters: their initialization is not seeded alike, or they loaded "
    "different checkpoints.",
    OPTIMIZER: "The runs begin with another state or other options of the optimizer.",
    STATES: "The runs begin with another state of what was given by this name.",
    GENERATORS: "Before the first step only the states of generators differ: they are not seeded alike, or were used "
    "differently before.",
}
_LATER = {
    BATCH: "The runs read different data in this step: the order of the data, the work of the loader's workers, or an "
    "augmentation differs.",
    SYNCED: "The batch is equal, and the buffers are not, which are equal on all ranks as the forward pass begins.",
    LOSS: "The forward pass gave another loss for the same batch: an op in it is nondeterministic, or it depends on "
    "something besides the batch and what is compared here.",
    BUFFERS: "The loss is equal and a buffer is not: the forward pass updates it in a nondeterministic way, or other "
    "code does.",
    GRADIENTS: "The loss is equal and the gradients are not: the backward pass is nondeterministic, or what changes "
    "gradients after it (clipping, a reduction over ranks).",
    PARAMETERS: "The gradients are equal and the parameters are not: the optimizer's step is nondeterministic, or "
    "other code changes parameters.",
    OPTIMIZER: "Gradients and parameters are equal, and the optimizer's state or options are not.",
    STATES: "All before it is equal, and the state of what was given by this name is not.",
    GENERATORS: "All values are equal, and the states of generators are not: the runs used them differently, and what "
    "uses them next will differ.",
}


class Difference(msgspec.Struct, frozen=True):
    """What differs in a group at a step: `count` of `parts`; `names` are the first of them."""

    group: str
    count: int
    parts: int
    names: tuple[str, ...]


class RankSteps(msgspec.Struct, frozen=True):
    """The first step in which a rank differs from that rank of the other run (-1: none), and what in it."""

    rank: int
    step: int
    group: str


class StepReport(Verdicts, frozen=True):
    """What the comparison of two files of steps gave.

    `compared` steps were in both (the state before the first one is step 0 and counts too), and `differing` of them
    differ. `step` is the first that does (-1: none), `differences` what differs in it, in the order of a training step,
    and `meaning` says in a sentence what the first of these means. `since` is the last step before it at which all
    groups that a step can have were compared, and were equal (-1: none). `losses` are those of both at `step`, and
    `last_losses` at the last step compared. Of runs of several ranks it is the report on the `rank` that differs first
    (-1: one process); `ranks` has all of them, and `within` a sentence for each run whose ranks do not hold the same.
    """

    verdict: Literal["identical", "diverged", "nothing"]
    a: str
    b: str
    compared: int
    differing: int
    first: int
    last: int
    step: int
    since: int
    differences: tuple[Difference, ...]
    meaning: str
    losses: dict[str, tuple[float, float]]
    last_losses: dict[str, tuple[float, float]]
    environment: dict[str, tuple[str, str]]
    notes: tuple[str, ...]
    rank: int = -1
    ranks: tuple[RankSteps, ...] = ()
    within: tuple[str, ...] = ()
    schema: str = SCHEMA
    version: str = torchdet_lint.__version__


def compare_steps(a: Path, b: Path) -> StepReport:
    """Compare two files of steps. Raises `StepsError`, in one line."""
    one, two = Steps(a), Steps(b)
    kinds = one.header["digest"], two.header["digest"]
    if kinds[0] != kinds[1]:
        raise StepsError(
            f"{a} and {b} hold digests of different kinds ({kinds[0]} | {kinds[1]}): install xxhash for both"
        )
    walk = _Walk()
    for left, right in _paired(one, two, walk):
        walk.look(left, right)
    return walk.report(one, two)


def _paired(one: Steps, two: Steps, walk: _Walk) -> Iterator[tuple[Step, Step]]:
    """The steps of the same number."""
    lefts, rights = iter(one), iter(two)
    left, right = next(lefts, None), next(rights, None)
    while left is not None and right is not None:
        if left.number == right.number:
            yield left, right
            left, right = next(lefts, None), next(rights, None)
        elif left.number < right.number:
            walk.only[0] += 1
            left = next(lefts, None)
        else:
            walk.only[1] += 1
            right = next(rights, None)
    for side, first, rest in ((0, left, lefts), (1, right, rights)):
        walk.only[side] += sum(1 for _ in itertools.chain([first] if first is not None else [], rest))
        walk.longer[side] = first is not None


class _Walk:
    """What is known after so many pairs of steps."""

    def __init__(self) -> None:
        self.compared = self.differing = 0
        self.first = self.last = self.step = self.since = -1
        self.differences: tuple[Difference, ...] = ()
        self.losses: dict[str, tuple[float, float]] = {}
        self.only, self.longer = [0, 0], [False, False]
        self.aside: dict[str, str] = {}
        self._last: tuple[Step, Step] | None = None
        self._known: dict[tuple[int, int], tuple[bool, Definition, Definition]] = {}

    def look(self, a: Step, b: Step) -> None:
        """Compare one step."""
        self.compared += 1
        self.first = a.number if self.first < 0 else self.first
        self.last = a.number
        self._last = (a, b)
        if self._differs(a, b):
            self.differing += 1
            if self.step < 0:
                self.step, self.losses = a.number, losses_of(a, b)
                self.differences = tuple(filter(None, (difference(group, a, b, self.aside) for group in GROUPS)))
        elif self.step < 0 and self._whole(a, b):
            self.since = a.number

    def _differs(self, a: Step, b: Step) -> bool:
        if not self._alike(a, b):
            found = [difference(group, a, b, self.aside) for group in GROUPS]
            return found != [None] * len(found)
        if a.payload == b.payload:
            return False
        one, two = a.digests, b.digests
        return any(one[group] != two[group] for group in GROUPS if group in one)

    def _alike(self, a: Step, b: Step) -> bool:
        """Whether both have the same parts, and all of them can be read."""
        key = (id(a.definition), id(b.definition))
        if key not in self._known:
            kinds = {part.kind for _, parts in a.definition.groups for part in parts}
            alike = a.definition == b.definition and UNREADABLE not in kinds
            # The definitions are kept, so that no other gets the place of one in memory.
            self._known[key] = (alike, a.definition, b.definition)
        return self._known[key][0]

    def _whole(self, a: Step, b: Step) -> bool:
        return all(any(name == PARAMETERS for name, _ in one.definition.groups) for one in (a, b))

    def report(self, one: Steps, two: Steps) -> StepReport:
        """What all of it means."""
        notes = [*self.aside.values(), *self._lengths(one, two)]
        ended = self._parted(one, two)
        verdict: Literal["identical", "diverged", "nothing"] = "identical"
        if not self.compared:
            verdict = "nothing"
        elif self.step >= 0 or ended:
            verdict = "diverged"
        meaning = ""
        if self.differences:
            table = _AT_FIRST if self.step == 0 else _LATER
            meaning = table.get(self.differences[0].group, "")
            if self.differences[0].group != GENERATORS:
                meaning += self._used()
        elif verdict == "diverged":
            meaning = "Both runs went to their end, and one of them made more steps."
        return StepReport(
            verdict,
            str(one.path),
            str(two.path),
            self.compared,
            self.differing,
            self.first,
            self.last,
            self.step,
            self.since,
            self.differences,
            meaning,
            self.losses,
            losses_of(*self._last) if self._last is not None else {},
            environments.differing(environments.flat(one.header), environments.flat(two.header)),
            tuple(notes),
        )

    def _used(self) -> str:
        """What generators that differ in the same step say of it."""
        used = next((found.names for found in self.differences if found.group == GENERATORS), ())
        if not used:
            return ""
        many = len(used) > 1
        return (
            f" The generator{'s' * many} {', '.join(used)} differ{'s' * (not many)} in this step too: "
            f"{'they are' if many else 'it is'} not seeded alike, or {'were' if many else 'was'} used differently."
        )

    def _parted(self, one: Steps, two: Steps) -> bool:
        """Whether both runs went to their end, and one of them further."""
        return one.complete and two.complete and any(self.longer)

    def _lengths(self, one: Steps, two: Steps) -> Iterator[str]:
        for name, file, more, only in zip("AB", (one, two), self.longer, self.only, strict=True):
            if only:
                yield f"{name} has {only} step{'s' * (only > 1)} that the other has not" + (
                    " (it goes on longer)" if more else ""
                )
            if not file.complete:
                yield f"{name} did not end in order, or goes on: its steps so far were compared"


def difference(group: str, a: Step, b: Step, aside: dict[str, str]) -> Difference | None:
    """What differs in a group of two steps; None where nothing does, or nothing can be compared: `aside` says why."""
    if group not in a.digests or group not in b.digests:
        if (group in a.digests) != (group in b.digests):
            aside.setdefault(group, f"{group}: only one of the runs has digests of them in all of its steps")
        return None
    left, right = a.parts(group), b.parts(group)
    names = []
    for name in {**left, **right}:
        one, two = left.get(name), right.get(name)
        if one is None or two is None:
            names.append(name)
        elif one[1] != two[1]:
            aside.setdefault(
                f"{group} {one[1]}",
                f"{group}: digested by {one[1]} in A and by {two[1]} in B, which cannot be compared",
            )
        elif UNREADABLE in one:
            aside.setdefault(group, f"{group}: {name} cannot be read, so nothing is said of it")
        elif one[0] != two[0]:
            names.append(name)
    mixed = any(left[name][1] != right[name][1] for name in left.keys() & right.keys())
    if not names and (a.digests[group] == b.digests[group] or mixed):
        return None
    return Difference(group, len(names), len({**left, **right}), tuple(names[:_MOST_NAMES]))


def losses_of(a: Step, b: Step) -> dict[str, tuple[float, float]]:
    """The losses that both steps have, by name."""
    one, two = a.losses, b.losses
    return {name: (one[name], two[name]) for name in one if name in two}
