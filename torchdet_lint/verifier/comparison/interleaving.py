"""Threads and tasks, which every run may interleave in another order -> what differs in each, and whether they race."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.verifier.comparison.align import GENERATORS, Aligner
from torchdet_lint.verifier.comparison.outcome import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.verifier.comparison.cursor import Identities
    from torchdet_lint.verifier.comparison.outcome import Divergence
    from torchdet_lint.verifier.trace import Timeline, Trace

_MOST_TASKS = 20

Spans = list[tuple[int, int]]


def with_races(found: list[Divergence], *, apart: bool = False) -> list[Divergence]:
    """What threads or tasks did otherwise than in the other run: one that read other tensors, though nothing of its
    own differed before, read what another had written by then. That is a cause where no other is known, or where no
    thread goes on with what another did otherwise (`apart`).
    """
    if apart or not any(item.kind == "cause" and item.source != "order" for item in found):
        first = next((item for item in found if item.source == "order"), None)
        found = [msgspec.structs.replace(item, source="race") if item is first else item for item in found]
    return [
        msgspec.structs.replace(item, kind="consequence", source="") if item.source == "order" else item
        for item in found
    ]


def compare_tasks(
    a: Trace, b: Trace, times: tuple[Timeline, Timeline], identities: Identities
) -> list[Divergence] | None:
    """What differs between each task of the main threads and its twin; None where both runs went through their tasks
    in one order, or had other tasks, so that the streams compare as they are.
    """
    schedules = [[(end - begin, name) for begin, end, name in one.tasks] for one in times]
    spans = [_spans(one, opened) for one, opened in zip(times, (a, b), strict=True)]
    if schedules[0] == schedules[1] or set(spans[0]) != set(spans[1]):
        return None
    sums = [_sums(opened, one, identities) for opened, one in zip((a, b), times, strict=True)]
    differ = [name for name in spans[0] if sums[0].get(name) != sums[1].get(name)]
    found = []
    for name in sorted(differ, key=lambda name: spans[0][name])[:_MOST_TASKS]:
        found += _of_task(a, b, name, (spans[0][name], spans[1][name]), times[0], identities)
    told = with_races(sorted(found, key=lambda item: item.index))
    evidence = _overtaking(a, times)
    evidence = evidence and msgspec.structs.replace(evidence, generators=_states_at_the_end(a, b))
    return [
        msgspec.structs.replace(item, evidence=evidence)
        if item.source == "race" and not item.task and evidence is not None
        else item
        for item in told
    ]


def _overtaking(a: Trace, times: tuple[Timeline, Timeline]) -> Evidence | None:
    """Where the runs first went through their tasks in another order, and which came first in each."""
    sites = a.sites(a.main)
    pairs = zip(*(one.tasks for one in times), strict=False)
    begin, names = next(((one[0], (one[2], two[2])) for one, two in pairs if one[2] != two[2]), (-1, ("", "")))
    at = next(itertools.islice(a.records(a.main), begin, None), None) if begin >= 0 else None
    if at is None:
        return None
    return Evidence(inputs_equal=False, numbers_equal=True, arrival=sites[at.site].place, overtaking=names)


def _states_at_the_end(a: Trace, b: Trace) -> dict[str, str]:
    """Which global generators the two runs had used, and whether they left them alike."""
    rows = zip(GENERATORS, a.generators, b.generators, strict=False)
    return {name: "unused" if not x and not y else "equal" if x == y else "differs" for name, x, y in rows}


def _spans(when: Timeline, opened: Trace) -> dict[str, Spans]:
    """Which records each task made; under an empty name those outside of all."""
    found: dict[str, Spans] = {"": []}
    before = 0
    for begin, end, name in when.tasks:
        found[""].append((before, begin))
        found.setdefault(name, []).append((begin, end))
        before = end
    found[""].append((before, max(before, opened.main.records)))
    return found


def _sums(opened: Trace, when: Timeline, identities: Identities) -> dict[str, int]:
    """A digest of all that each task did, in its order."""
    numbers = identities.of(opened.sites(opened.main))
    totals: dict[str, int] = {}
    for index, record in enumerate(opened.records(opened.main)):
        name = when.task(index)
        totals[name] = hash((totals.get(name, 0), numbers[record.site], record.scalars, record.inputs, record.digests))
    return totals


def _of_task(
    a: Trace, b: Trace, name: str, spans: tuple[Spans, Spans], when: Timeline, identities: Identities
) -> list[Divergence]:
    aligner = Aligner(a, b, identities)
    aligner.run(a.main, b.main, spans)
    found = []
    for item in aligner.divergences():
        index = _whole(spans[0], item.index)
        found.append(
            msgspec.structs.replace(
                item,
                index=index,
                index_b=_whole(spans[1], item.index_b) if item.index_b >= 0 else -1,
                step=when.step(index),
                epoch=when.epoch(index),
                task=name,
            )
        )
    return found


def _whole(spans: Sequence[tuple[int, int]], index: int) -> int:
    """The position in the whole stream of record `index` of those within `spans`."""
    ends = list(itertools.accumulate(end - begin for begin, end in spans))
    at = min(bisect.bisect_right(ends, index), len(spans) - 1)
    return spans[at][1] - (ends[at] - index)
