"""A file of steps and what is asked of it -> lines: what is in it, or its steps part by part. Torch is not needed."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

from torchdet_lint.verifier.trace.listing import heading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.verifier.steps.format import Step, Steps


def overview(file: Steps) -> Iterator[str]:
    """What is in the file: the program, its environment, its rank, the steps, the groups and the losses."""
    yield from heading(file.header)
    rank, world = file.header.get("rank", 0), file.header.get("world", 1)
    if world > 1:
        yield f"rank: {rank} of {world}"
    first = last = whole = None
    count = wholes = 0
    for step in file:
        first, last, count = first or step, step, count + 1
        if len(step.definition.groups) >= len(whole.definition.groups if whole is not None else ()):
            whole = step
        wholes += any(name == "parameters" for name, _ in step.definition.groups)
    if first is None or last is None or whole is None:
        yield "steps: none"
        return
    yield f"steps: {count}, {first.number} to {last.number}; parameters in {wholes} of them"
    if not file.complete:
        yield "it has no end: the run did not end in order, or goes on"
    for group, parts in whole.definition.groups:
        yield f"  {len(parts):>9} {group}"
    yield from _losses(last)


def _losses(step: Step) -> Iterator[str]:
    for name, value in step.losses.items():
        yield f"{name} in step {step.number}: {value:.9g}"


def _asked(file: Steps, number: int) -> Iterator[Step]:
    """Step `number`, or all of them where it is 0."""
    return (step for step in file if not number or step.number == number)


def parts(file: Steps, number: int, name: str, limit: int) -> Iterator[str]:
    """The digests in step `number` (0: in all) of the parts with `name` in their names or their group's, at most
    `limit`.
    """
    rows = (
        (step, group, part.name, step.parts(group)[part.name][0])
        for step in _asked(file, number)
        for group, known in step.definition.groups
        for part in known
        if name in part.name or name in group
    )
    before = None
    shown = 0
    for step, group, part, digest in itertools.islice(rows, limit):
        if step is not before:
            yield f"step {step.number}" + "".join(f", {key} {value:.9g}" for key, value in step.losses.items())
        before, shown = step, shown + 1
        yield f"  {group}: {part}: {digest:08x}"
    more = sum(1 for _ in rows)
    if more:
        yield f"… and {more} more (--limit {shown + more} shows them)"
    elif not shown:
        yield "nothing fits"


def as_json(file: Steps, number: int, name: str, limit: int) -> Iterator[str]:
    """One object for each step, with its losses and, by group, the digests of the parts that fit."""
    for step in itertools.islice(_asked(file, number), limit):
        groups: dict[str, dict[str, str]] = {}
        for group, _ in step.definition.groups:
            for part, (digest, _) in step.parts(group).items():
                if name in part or name in group:
                    groups.setdefault(group, {})[part] = f"{digest:08x}"
        yield json.dumps({"step": step.number, "losses": step.losses, "groups": groups}, ensure_ascii=False)
