"""What other threads and processes recorded in each run -> what differs between them, and what of it is a cause."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.comparison.align import Aligner
from torchdet_lint.verifier.comparison.interleaving import with_races
from torchdet_lint.verifier.comparison.outcome import Divergence, Ended, Evidence, Lockstep, Source
from torchdet_lint.verifier.comparison.picture import Lane
from torchdet_lint.verifier.trace import Timeline

if TYPE_CHECKING:
    from torchdet_lint.verifier.comparison.cursor import Identities
    from torchdet_lint.verifier.trace import Site, Stream, Trace


_MASK = (1 << 64) - 1
_NOT_AS_MUCH = "the work done in {} was not the same amount and was not compared"


class Aside(NamedTuple):
    """What other threads and processes did: what differs, and how many records each run has of them."""

    found: list[Divergence]
    notes: list[str]
    records: tuple[int, int]
    lanes: list[Lane]


def compare_aside(a: Trace, b: Trace, identities: Identities) -> Aside:
    """Which thread or worker does what is the scheduler's choice, and how far a loader's workers read ahead is too:
    only the same work with other values counts as a difference. A process or a thread with a task of its own is
    compared with its twin.
    """
    found: list[Divergence] = []
    notes = []
    records = [0, 0]
    lanes = [Lane(stream.called, max(stream.records, 0), 1, (), False) for stream in a.streams if stream.kind != "main"]
    for kind, words in (("thread", "other threads"), ("process", "other processes")):
        sums = [_sums(opened, kind, identities) for opened in (a, b)]
        for side, one in enumerate(sums):
            records[side] += sum(row.executions for row in one.values())
        differ = {n for n in {*sums[0], *sums[1]} if _unlike(sums[0].get(n), sums[1].get(n))}
        differ |= _replaced(b, kind, identities)
        if not differ:
            continue
        more = _counts(sums[0]) != _counts(sums[1])
        # A thread that runs ahead of its use goes as far as the run lasts.
        twins = _twins(a, b, identities, kind, differ, lanes, more=more and kind == "process")
        if kind == "thread":
            # Threads may share tasks too: where they read the same in all, no thread read what another had written.
            shared = {n for n in differ & set(sums[0]) & set(sums[1]) if sums[0][n].inputs == sums[1][n].inputs}
            twins = [i for i in twins if i.source != "order" or identities[i.site] not in shared]
            twins = with_races(twins, apart=_go_in_lockstep(b))
        if kind == "thread" and more and not twins:
            notes.append(_NOT_AS_MUCH.format(words))
            continue
        found += twins
        differ -= {identities[item.site] for item in twins}
        sums = [_sums(opened, kind, identities, "worker") for opened in (a, b)]
        differ = {n for n in differ & set(sums[0]) & set(sums[1]) if _unlike(sums[0][n], sums[1][n])}
        if _counts(sums[0]) != _counts(sums[1]):
            if differ:
                notes.append(_NOT_AS_MUCH.format(words))
            continue
        rest = [_other_values(kind, sums[0][number]) for number in sorted(differ)]
        if rest and not found:
            source: Source = "race" if kind == "thread" else "outside"
            rest[0] = msgspec.structs.replace(rest[0], kind="cause", source=source)
        found += rest
    return Aside(found, notes, (records[0], records[1]), lanes)


def _go_in_lockstep(b: Trace) -> bool:
    """Whether all threads of a run went on with another's values where their own differed."""
    threads = [stream for stream in b.streams if stream.kind != "process"]
    return all(Timeline(b.marks(stream)).in_lockstep for stream in threads)


def _replaced(b: Trace, kind: str, identities: Identities) -> set[int]:
    """Sites at which a run in lockstep went on with another value, though it may have made the same of its own."""
    found = set()
    for stream in b.streams:
        at = Timeline(b.marks(stream)).replaced_at if stream.kind == kind else frozenset()
        if at:
            numbers = identities.of(b.sites(stream))
            found |= {numbers[record.site] for index, record in enumerate(b.records(stream)) if index in at}
    return found


def _counts(sums: dict[int, _Sum]) -> dict[int, int]:
    return {number: row.executions for number, row in sums.items()}


def _unlike(one: _Sum | None, two: _Sum | None) -> bool:
    """Whether a site ran another number of times, or made other values."""
    return (one and (one.executions, one.outputs)) != (two and (two.executions, two.outputs))


def together(main: list[Divergence], aside: list[Divergence]) -> list[Divergence]:
    """What differs in the main thread and aside, the likelier origin first; the other is a consequence."""
    if not main or not aside or main[0].site.op == trace.BATCH or main[0].source == "path":
        return main + _elsewhere(aside, main)
    told = [item for item in aside if item.kind == "cause" and item.stream.startswith(("process ", "thread"))]
    told = [item for item in told if item.evidence.shared or _elsewhere([item], main)]
    races = all(item.source == "race" for item in told)
    if told and _taken_over(main[0], races=races):
        # A process or a thread handed over what it had drawn or computed: the main thread only took it in.
        taken = [
            msgspec.structs.replace(item, kind="consequence", source="") if _taken_over(item, races=races) else item
            for item in main
        ]
        first = [item for item in aside if item in told or _elsewhere([item], main)]
        return first + _elsewhere(taken, told)
    rest = _elsewhere(aside, main)
    return main + [msgspec.structs.replace(item, kind="consequence", source=_doubtful(item)) for item in rest]


class Company:
    """The threads of run `b` that went on with another run's values, where its main one (`main`) did."""

    def __init__(self, b: Trace, main: Timeline) -> None:
        streams = [stream for stream in b.streams if stream.kind != "main"] if main.in_lockstep else []
        times = {stream.called: Timeline(b.marks(stream)) for stream in streams}
        self._main = main
        self._threads = {called: when for called, when in times.items() if when.in_lockstep}
        self._rest = len(streams) - len(self._threads)

    def together(self, main: list[Divergence], aside: list[Divergence]) -> list[Divergence]:
        """What differs in the main thread and aside. Nothing follows from what a thread of the company did otherwise:
        all went on with the values of the other run.
        """
        own = [item for item in aside if item.stream in self._threads]
        return together(main, [item for item in aside if item.stream not in self._threads]) + _elsewhere(own, main)

    def left_out(self) -> list[str]:
        """A line for the threads and processes that went on by themselves."""
        if not self._rest:
            return []
        return [f"lockstep in threads of pools and in other processes ({self._rest}): each went on with its own values"]

    def told(self) -> Lockstep | None:
        """How far the runs went in lockstep; None where each went by itself."""
        if not self._main.in_lockstep:
            return None
        every = [("", self._main), *self._threads.items()]
        ended = [Ended(name, int(when.alone_after), when.alone_because) for name, when in every if _ends(when)]
        main = ended.pop(0) if _ends(self._main) else Ended("", -1, "")
        return Lockstep(sum(when.replaced for _, when in every), main.ended_at, main.why, tuple(ended))


def _ends(when: Timeline) -> bool:
    return when.alone_after != math.inf


def _elsewhere(items: list[Divergence], others: list[Divergence]) -> list[Divergence]:
    """Those that are at other places than `others`."""
    seen = {item.site for item in others}
    return [item for item in items if item.site not in seen]


def _doubtful(item: Divergence) -> Source:
    """A race may be a cause beside that of the main thread: only runs with the threads in turn can tell."""
    return item.source if item.source == "race" else ""


def without_received(found: list[Divergence]) -> list[Divergence]:
    """What a process was sent is no cause where the sender's is known."""
    if not any(item.kind == "cause" and not item.evidence.received for item in found):
        return found
    return [
        msgspec.structs.replace(item, kind="consequence", source="") if item.evidence.received else item
        for item in found
    ]


def _of_unknown_origin(item: Divergence) -> bool:
    return item.source == "outside" and not {"differs", "idle", "taken"} & set(item.evidence.generators.values())


def _taken_over(item: Divergence, *, races: bool) -> bool:
    """Whether the main thread may only have met what another process or thread made. Where threads race, and nothing
    else of them is known, they may themselves have met what came into the main thread."""
    met = item.source == "order" and not item.evidence.permuted
    return met or (not races and _of_unknown_origin(item))


class _Sum(NamedTuple):
    """All executions of a site: how many, and digests of what they made and read, whatever their order."""

    executions: int
    outputs: int
    inputs: int
    site: Site


def _other_values(kind: str, row: _Sum) -> Divergence:
    evidence = Evidence(inputs_equal=False, numbers_equal=False)
    return Divergence(row.site, 0, "consequence", "", evidence, row.executions, row.executions, stream=kind)


def _twins(
    a: Trace, b: Trace, identities: Identities, kind: str, differ: set[int], lanes: list[Lane], *, more: bool
) -> list[Divergence]:
    """What differs at the sites `differ` between processes that stand at the same place in both trees, or between
    threads of one name; where the runs did not do equally much (`more`), also where their paths part. Their lanes take
    the place of those in `lanes`.

    One that was ended before its end is compared as far as both went.
    """
    own = [
        {stream.name: stream for stream in opened.streams if stream.kind == kind and stream.role == kind}
        for opened in (a, b)
    ]
    pairs = [(own[0].pop(name), own[1].pop(name)) for name in sorted(own[0]) if name in own[1]]
    if len(own[0]) == len(own[1]):
        # Called otherwise in each run (a path that is made up, say): by their order.
        pairs += zip(own[0].values(), own[1].values(), strict=True)
        own = [{}, {}]
    found: dict[tuple[Site, str], Divergence] = {}

    def add(item: Divergence, stream: Stream) -> None:
        """Several processes that run the same line count as one place."""
        before = found.get((item.site, item.kind))
        if before is None:
            found[item.site, item.kind] = msgspec.structs.replace(item, stream=stream.called)
        else:
            counts = {"differing": before.differing + item.differing, "compared": before.compared + item.compared}
            found[item.site, item.kind] = msgspec.structs.replace(before, **counts)

    for one, two in pairs:
        aligner = Aligner(a, b, identities)
        aligner.run(one, two)
        lane = aligner.lane(one.called)
        lanes[:] = [lane if other.name == lane.name else other for other in lanes]
        ended_well = one.complete and two.complete
        for item in aligner.divergences():
            parts = item.source == "path"
            if (more and (item.other is not None or ended_well)) if parts else identities[item.site] in differ:
                add(item, one)
    for streams, opened in zip(own, (a, b), strict=True):
        for stream in streams.values() if kind == "process" else ():
            sites = opened.sites(stream)
            if stream.complete and sites:
                evidence = Evidence(inputs_equal=True, numbers_equal=True)
                add(Divergence(sites[0], 0, "path", "path", evidence), stream)
    return list(found.values())


def _sums(opened: Trace, kind: str, identities: Identities, role: str = "") -> dict[int, _Sum]:
    totals: dict[int, _Sum] = {}
    for stream in opened.streams:
        if stream.kind != kind or (role and stream.role != role):
            continue
        sites = opened.sites(stream)
        numbers = identities.of(sites)
        for record in opened.records(stream):
            count, outputs, inputs, site = totals.get(numbers[record.site], (0, 0, 0, sites[record.site]))
            outputs = (outputs + hash(record.digests)) & _MASK
            inputs = (inputs + hash((record.inputs, record.scalars))) & _MASK
            totals[numbers[record.site]] = _Sum(count + 1, outputs, inputs, site)
    return totals
