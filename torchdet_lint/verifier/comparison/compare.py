"""Two traces side by side: where the runs part, which differences are causes, and whether they last.

Records are aligned by site. A record whose outputs differ is a *cause* when what it read was equal in both runs (or
came from outside torch, or from a generator), else a *consequence*. Where the sites differ the paths part; they are
joined again at the next four sites in a row that both runs pass. Equal blocks are skipped as bytes, and memory does
not grow with the length of the traces.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from torchdet_lint.verifier.recording import trace
from torchdet_lint.verifier.recording.trace import Record, Site, Stream, Trace, TraceError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

Source = Literal["op", "random", "outside", "unwritten", "number", "order", "path", ""]

_GRAM = 4
_WINDOWS = (64, 1024, 16384, 131072)
_MOST_SITES = 400


class Evidence(msgspec.Struct, frozen=True):
    """What the two records say about the reason.

    `generators` tells for each of `python`, `numpy` and `torch` whether its global generator was `equal`, `differs`,
    `idle` (it differs, and was not drawn from since the data before) or `unused` so far, where data came from
    outside, or next did after a number or an order differed. `arrival` is where a worker's batch was received, or
    (`loaded`) what `torch.load` read, or (`received`) where another process of the group was asked for it.
    """

    inputs_equal: bool
    numbers_equal: bool
    seeds_equal: bool | None = None
    unseeded: bool = False
    seeded_later: bool = False
    own_generator: bool = False
    unwritten: bool = False
    generators: dict[str, str] = {}
    arrival: str = ""
    loaded: bool = False
    received: bool = False


class Divergence(msgspec.Struct, frozen=True):
    """All that differs at one site: the first record that did, how many did, and why.

    `index` counts the records of run A's stream from 0; `other` is where run B goes instead, for parted paths;
    `outputs` numbers the outputs of the op that differ, from 0.
    """

    site: Site
    index: int
    kind: Literal["cause", "consequence", "path"]
    source: Source
    evidence: Evidence
    differing: int = 1
    compared: int = 1
    outputs: tuple[int, ...] = ()
    stream: str = "main"
    other: Site | None = None


class Parting(msgspec.Struct, frozen=True):
    """Where the runs take different paths after the same site: what each does next, how many ops until they meet."""

    index: int
    after: Site | None
    a: Site | None
    b: Site | None
    a_ops: int
    b_ops: int
    rejoined: bool


class Comparison(msgspec.Struct, frozen=True):
    """The outcome. `divergences` are in order of execution; `first` is the earliest cause or parting.

    `persistence` is `transient` where later ops read what differed and came out equal again and nothing differed after
    them, `persistent` otherwise, and empty for identical runs.
    `harmless` is `unwritten` where nothing differed but what went into memory that was not fully written yet, and every
    later reading was equal; `order` where every place made the same values in both runs, in another order, and nothing
    else followed: then only what the program keeps outside torch can tell whether that mattered.
    """

    identical: bool
    compared: int
    a_records: int
    b_records: int
    differing: int
    divergences: tuple[Divergence, ...]
    partings: tuple[Parting, ...]
    persistence: Literal["", "transient", "persistent"]
    environment: dict[str, tuple[str, str]]
    harmless: Literal["", "order", "unwritten"] = ""
    notes: tuple[str, ...] = ()

    @property
    def causes(self) -> tuple[Divergence, ...]:
        """The divergences that are not consequences of others, in order of execution."""
        return tuple(item for item in self.divergences if item.kind != "consequence")

    @property
    def first(self) -> Divergence | None:
        """The earliest divergence, or None."""
        return self.divergences[0] if self.divergences else None


def compare(path_a: str | os.PathLike[str], path_b: str | os.PathLike[str]) -> Comparison:
    """Compare two trace files. Raises `TraceError`, in one line, for a file that is none or hashes that cannot be
    compared.
    """
    a, b = Trace(path_a), Trace(path_b)
    if a.header.get("hash") != b.header.get("hash"):
        raise TraceError(
            f"{a.path} and {b.path} hash with {a.header.get('hash')} and {b.header.get('hash')}: not comparable"
        )
    identities = _Identities()
    main = _Aligner(a, b, identities)
    main.run(a.main, b.main)
    aside = _aside(a, b, identities)
    found = _without_received(_together(main.divergences(), aside.found))
    said = [str(note[kind]) for kind in ("missed", "steps") for t in (a, b) for note in t.notes if kind in note]
    notes = [*main.notes, *aside.notes, *dict.fromkeys(said)]
    compared = main.compared + min(aside.records)
    for one in (a, b):
        if one.truncated and not compared:
            raise TraceError(f"{one.path}: the trace is cut off before its first op; record it again")
        if one.truncated:
            notes.append(f"{one.path.name} ends in the middle of a record: what the run did after that")
    return Comparison(
        identical=not found,
        compared=compared,
        a_records=main.left.passed + aside.records[0],
        b_records=main.right.passed + aside.records[1],
        differing=main.differing + sum(item.differing for item in aside.found),
        divergences=tuple(found),
        partings=tuple(main.partings),
        persistence=("transient" if main.healed and not main.partings else "persistent") if found else "",
        environment=_environments(a, b),
        harmless=main.harmless() if found and not aside.found else "",
        notes=tuple(notes),
    )


def _environments(a: Trace, b: Trace) -> dict[str, tuple[str, str]]:
    """What differs between the two environments, by name."""
    flat: list[dict[str, str]] = []
    for one in (a, b):
        values = dict(one.header.get("environment", {}))
        variables = values.pop("variables", {})
        flat.append({**{k: str(v) for k, v in values.items()}, **{f"${k}": str(v) for k, v in variables.items()}})
    names = sorted(set(flat[0]) | set(flat[1]))
    return {
        name: (flat[0].get(name, ""), flat[1].get(name, "")) for name in names if flat[0].get(name) != flat[1].get(name)
    }


class _Identities(dict[Site, int]):
    """One number for each site, the same in both traces."""

    def of(self, sites: list[Site]) -> list[int]:
        return [self.setdefault(site, len(self)) for site in sites]


class _Cursor:
    """The records of one stream with a look ahead; `passed` counts those behind it, `block` the blocks opened."""

    def __init__(self, opened: Trace, stream: Stream, identities: _Identities) -> None:
        self.sites = opened.sites(stream)
        self.numbers = identities.of(self.sites)
        self.blocks = opened.raw(stream)
        self.kept: bytes | None = None
        self.ahead: list[Record] = []
        self.at = 0
        self.passed = 0

    def fill(self, count: int) -> int:
        """Look at least `count` records ahead; returns how many there are."""
        while len(self.ahead) - self.at < count:
            payload = self.peek()
            if payload is None:
                break
            self.kept = None
            self.ahead = self.ahead[self.at :]
            self.at = 0
            self.ahead.extend(trace.decode(payload))
        return len(self.ahead) - self.at

    def peek(self) -> bytes | None:
        """The next block, which stays the next."""
        if self.kept is None:
            self.kept = next(self.blocks, None)
        return self.kept

    def window(self, count: int) -> list[int]:
        """The identities of the next `count` sites."""
        return [self.numbers[record.site] for record in self.ahead[self.at : self.at + count]]

    def next(self) -> Record | None:
        if self.at == len(self.ahead) and not self.fill(1):
            return None
        return self.ahead[self.at]

    def step(self, count: int = 1) -> None:
        self.at += count
        self.passed += count

    def drop_block(self) -> None:
        self.kept = None

    def rest(self) -> int:
        """Pass all that is left; returns how many records that were."""
        count = 0
        while left := self.fill(1):
            count += left
            self.step(left)
        return count


class _AtSite:
    """What was seen at one site so far."""

    __slots__ = ("balance", "compared", "differing", "first", "last", "scratch")

    def __init__(self) -> None:
        self.compared = self.differing = 0
        self.first: Divergence | None = None
        self.last = -1
        self.balance = 0
        self.scratch = True


class _Aligner:
    """Walks two streams together and collects what differs."""

    def __init__(self, a: Trace, b: Trace, identities: _Identities) -> None:
        self.a, self.b, self.identities = a, b, identities
        self.compared = self.differing = 0
        self.partings: list[Parting] = []
        self.paths: list[Divergence] = []
        self.notes: list[str] = []
        self.at: dict[int, _AtSite] = {}
        self.seen_seeds: set[tuple[int | None, int | None]] = set()
        self.scalars_differ = self.loader_seeds_differ = False
        self.states: tuple[int, ...] = (0, 0, 0)
        self.healed = False
        self.seeded = False
        self.asking: list[_AtSite] = []
        self.last_site: Site | None = None

    def run(self, stream_a: Stream, stream_b: Stream) -> None:
        left = self.left = _Cursor(self.a, stream_a, self.identities)
        right = self.right = _Cursor(self.b, stream_b, self.identities)
        shared = min(len(left.numbers), len(right.numbers))
        same_sites = left.numbers[:shared] == right.numbers[:shared]
        while True:
            if same_sites and left.at == len(left.ahead) and right.at == len(right.ahead):
                self._skip_equal_blocks()
            one, two = left.next(), right.next()
            if one is None or two is None:
                break
            number = left.numbers[one.site]
            if number == right.numbers[two.site]:
                self._pair(number, one, two)
                left.at += 1
                right.at += 1
                left.passed += 1
                right.passed += 1
            elif not self._rejoin():
                break
        self._ends()

    def _skip_equal_blocks(self) -> None:
        """Pass blocks that are equal as bytes, both cursors standing before one."""
        left, right = self.left, self.right
        last = -1
        while (payload := left.peek()) is not None and payload == right.peek():
            count = 0
            for head in decode_heads(payload):
                count += 1
                last = head & 0xFFFFFFFF
                flags = head >> 48
                if flags & trace.RANDOM and not flags & (trace.UNSEEDED | trace.DRAWN_FROM_OWN):
                    self.seeded = True
            self.compared += count
            for cursor in (left, right):
                cursor.passed += count
                cursor.drop_block()
        if last >= 0:
            self.last_site = left.sites[last]

    def _pair(self, number: int, one: Record, two: Record) -> None:
        self.compared += 1
        site = self.last_site = self.left.sites[one.site]
        before = self.states
        if one.outside is not None:
            self.states = one.outside[1:]
            self._ask_generators(_states(one, two, before))
        if one.flags & trace.RANDOM and not one.flags & (trace.UNSEEDED | trace.DRAWN_FROM_OWN):
            self.seeded = True
        here = self.at.get(number)
        if here is None:
            if one.digests == two.digests:
                if one.inputs != two.inputs and self.differing:
                    self.healed = True
                return
            here = self.at[number] = _AtSite()
        here.compared += 1
        if one.digests == two.digests:
            return
        self.healed = False
        self.differing += 1
        here.differing += 1
        here.last = self.left.passed
        here.balance += hash(one.digests) - hash(two.digests)
        here.scratch = here.scratch and bool(one.flags & two.flags & trace.SCRATCH)
        kind, source = self._judge(site, one, two, before)
        if here.first is None or (here.first.kind == "consequence" and kind == "cause"):
            evidence = self._evidence(site, one, two, before)
            pairs = enumerate(itertools.zip_longest(one.digests, two.digests))
            outputs = tuple(n for n, (x, y) in pairs if x != y)
            here.first = Divergence(site, self.left.passed, kind, source, evidence, outputs=outputs)
            if kind == "cause" and source in ("number", "order"):
                self.asking.append(here)
        if site.op == "aten._local_scalar_dense":
            self.scalars_differ = True

    def _ask_generators(self, states: dict[str, str]) -> None:
        """A number or a choice of Python's differed just before: which generator it may have come from."""
        for here in self.asking:
            if here.first is not None:
                evidence = msgspec.structs.replace(here.first.evidence, generators=states)
                here.first = msgspec.structs.replace(here.first, evidence=evidence)
        self.asking.clear()

    def _judge(
        self, site: Site, one: Record, two: Record, before: tuple[int, ...]
    ) -> tuple[Literal["cause", "consequence"], Source]:
        first = self.differing == 1 and not self.partings
        inputs, numbers = one.inputs == two.inputs, one.scalars == two.scalars
        if one.outside is not None and two.outside is not None and one.outside[0] != two.outside[0]:
            follows = site.op == trace.BATCH and self.loader_seeds_differ
            # A checkpoint that this run itself wrote, after it had gone another way.
            follows |= self._loaded(one) and self.differing > 1
            states = _states(one, two, before)
            read = self.scalars_differ or states["torch"] == "differs"
            # Python handed back what it had read of a tensor that differed.
            follows |= self.differing > 1 and read and not {"differs", "idle"} & {states["python"], states["numpy"]}
            return "consequence" if follows else "cause", "outside"
        if one.flags & trace.RANDOM and inputs and numbers:
            self.loader_seeds_differ |= site.phase == "data"
            if one.flags & trace.DRAWN_FROM_OWN and one.seed != two.seed and self.scalars_differ:
                return "consequence", "random"
            pair = (one.seed, two.seed)
            known = pair in self.seen_seeds
            self.seen_seeds.add(pair)
            return ("consequence" if known or (self.partings and one.seed == two.seed) else "cause"), "random"
        if inputs and numbers:
            return "cause", "unwritten" if one.flags & trace.UNWRITTEN else "op"
        if inputs and not self.scalars_differ and not self.partings:
            return "cause", "number"
        return ("cause", "order") if first else ("consequence", "")

    def _evidence(self, site: Site, one: Record, two: Record, before: tuple[int, ...]) -> Evidence:
        return Evidence(
            inputs_equal=one.inputs == two.inputs,
            numbers_equal=one.scalars == two.scalars,
            seeds_equal=None if one.seed is None or two.seed is None else one.seed == two.seed,
            unseeded=bool(one.flags & trace.UNSEEDED),
            own_generator=bool(one.flags & trace.DRAWN_FROM_OWN),
            unwritten=bool(one.flags & trace.UNWRITTEN),
            generators=_states(one, two, before),
            arrival=self.left.sites[one.arrival].place if one.arrival is not None else "",
            loaded=self._loaded(one),
            received=_of_a_group(site.op) or (one.arrival is not None and _of_a_group(self.left.sites[one.arrival].op)),
        )

    def _loaded(self, record: Record) -> bool:
        return record.arrival is not None and self.left.sites[record.arrival].phase == "load"

    def _rejoin(self) -> bool:
        """Pass the records up to where both go the same way again; False where that is out of sight."""
        one, two = self.left, self.right
        for window in _WINDOWS:
            reach = (one.fill(window), two.fill(window))
            skip = _meeting(one.window(window), two.window(window))
            if skip is not None:
                self._part(one.ahead[one.at].site, two.ahead[two.at].site, *skip, rejoined=True)
                one.step(skip[0])
                two.step(skip[1])
                return True
            if reach[0] < window and reach[1] < window:
                break
        at = (one.ahead[one.at].site, two.ahead[two.at].site)
        index = one.passed
        self._part(*at, one.rest(), two.rest(), rejoined=False, index=index)
        return False

    def _part(
        self, site_a: int, site_b: int, a_ops: int, b_ops: int, *, rejoined: bool, index: int | None = None
    ) -> None:
        a = self.left.sites[site_a] if site_a >= 0 else None
        b = self.right.sites[site_b] if site_b >= 0 else None
        index = self.left.passed if index is None else index
        if not self.partings and (a or b) is not None:
            kind: Literal["path", "consequence"] = "consequence" if self.differing else "path"
            evidence = Evidence(inputs_equal=not self.differing, numbers_equal=True)
            here = a or b or Site("", "", "", 0, "")
            self.paths.append(Divergence(here, index, kind, "path", evidence, other=b if a else None))
        self.healed = False
        if len(self.partings) < _MOST_SITES:
            self.partings.append(Parting(index, self.last_site, a, b, a_ops, b_ops, rejoined))

    def _ends(self) -> None:
        index = self.left.passed
        one, two = self.left.next(), self.right.next()
        if one is None and two is None:
            return
        rest = (self.left.rest(), self.right.rest())
        if (self.a if one is None else self.b).truncated:
            return
        self._part(one.site if one else -1, two.site if two else -1, *rest, rejoined=False, index=index)

    def divergences(self) -> list[Divergence]:
        found = [
            msgspec.structs.replace(
                here.first, differing=here.differing, compared=here.compared, evidence=self._with_later_seed(here.first)
            )
            for here in self.at.values()
            if here.first is not None
        ]
        return sorted(found + self.paths, key=lambda item: (item.index, item.source != "path"))[:_MOST_SITES]

    def harmless(self) -> Literal["", "order", "unwritten"]:
        if self.partings:
            return ""
        if self.healed and all(here.scratch for here in self.at.values()):
            return "unwritten"
        return "order" if all(not here.balance for here in self.at.values()) else ""

    def _with_later_seed(self, item: Divergence) -> Evidence:
        return msgspec.structs.replace(item.evidence, seeded_later=item.evidence.unseeded and self.seeded)


def _states(one: Record, two: Record, before: tuple[int, ...]) -> dict[str, str]:
    """What `Evidence.generators` tells, of two records of data that came in; `before` are the states at the data
    before.
    """
    states = {}
    if one.outside is not None and two.outside is not None:
        rows = zip(("python", "numpy", "torch"), one.outside[1:], two.outside[1:], before, strict=True)
        for name, x, y, last in rows:
            differs = "idle" if x == last else "differs"
            states[name] = "unused" if not x and not y else "equal" if x == y else differs
    return states


def _meeting(one: list[int], two: list[int]) -> tuple[int, int] | None:
    """The nearest pair of positions from which `_GRAM` sites agree (or all that are left, at the end of both)."""
    starts: dict[tuple[int, ...], int] = {}
    for position in range(len(two) - _GRAM + 1):
        starts.setdefault(tuple(two[position : position + _GRAM]), position)
    best: tuple[int, int] | None = None
    for position in range(len(one) - _GRAM + 1):
        if best is not None and position > sum(best):
            break
        other = starts.get(tuple(one[position : position + _GRAM]))
        if other is not None and (best is None or position + other < sum(best)):
            best = position, other
    return best


def decode_heads(payload: bytes) -> Iterator[int]:
    """The first word of every record of a block."""
    block = trace.unpack(payload)
    position, end = 0, len(block)
    while position < end:
        head = block[position]
        flags = head >> 48
        yield head
        position += 3 + (head >> 32 & 0xFFFF)
        if flags & 7:
            position += bool(flags & trace.RANDOM) + 4 * bool(flags & trace.OUTSIDE) + bool(flags & trace.ARRIVED)


class _Aside(NamedTuple):
    """What other threads and processes did: what differs, and how many records each run has of them."""

    found: list[Divergence]
    notes: list[str]
    records: tuple[int, int]


def _aside(a: Trace, b: Trace, identities: _Identities) -> _Aside:
    """Which thread or worker does what is the scheduler's choice, and how far a loader's workers read ahead is too:
    only the same work with other values counts as a difference. A process with a task of its own is compared with its
    twin.
    """
    found: list[Divergence] = []
    notes = []
    records = [0, 0]
    for kind, words in (("thread", "other threads"), ("process", "other processes")):
        sums = [_sums(opened, kind, identities) for opened in (a, b)]
        for side, one in enumerate(sums):
            records[side] += sum(count for count, _, _ in one.values())
        differ = {n for n in {*sums[0], *sums[1]} if sums[0].get(n, _NONE)[:2] != sums[1].get(n, _NONE)[:2]}
        if not differ:
            continue
        if kind == "process":
            found += _twins(a, b, identities, differ, more=_counts(sums[0]) != _counts(sums[1]))
            differ -= {identities[item.site] for item in found}
            sums = [_sums(opened, kind, identities, "worker") for opened in (a, b)]
        differ = {n for n in differ & set(sums[0]) & set(sums[1]) if sums[0][n][:2] != sums[1][n][:2]}
        if _counts(sums[0]) != _counts(sums[1]):
            if differ:
                notes.append(f"the work done in {words} was not the same amount and was not compared")
            continue
        rest = [_other_values(kind, sums[0][number]) for number in sorted(differ)]
        if rest and not found:
            rest[0] = msgspec.structs.replace(rest[0], kind="cause", source="outside")
        found += rest
    return _Aside(found, notes, (records[0], records[1]))


def _counts(sums: dict[int, tuple[int, int, Site]]) -> dict[int, int]:
    return {number: count for number, (count, _, _) in sums.items()}


def _together(main: list[Divergence], aside: list[Divergence]) -> list[Divergence]:
    """What differs in the main thread and aside, the likelier origin first; the other is a consequence."""
    seen = {item.site for item in main}
    aside = [item for item in aside if item.site not in seen]
    if not main or not aside or main[0].site.op == trace.BATCH or main[0].source == "path":
        return main + aside
    told = [item for item in aside if item.kind == "cause" and item.stream.startswith("process ")]
    if told and _of_unknown_origin(main[0]):
        # A process handed over what it had drawn or computed: the main thread only took it in.
        taken = [
            msgspec.structs.replace(item, kind="consequence", source="") if _of_unknown_origin(item) else item
            for item in main
        ]
        return aside + taken
    return main + [msgspec.structs.replace(item, kind="consequence", source="") for item in aside]


def _of_a_group(op: str) -> bool:
    return "c10d" in op.partition(".")[0]


def _without_received(found: list[Divergence]) -> list[Divergence]:
    """What a process was sent is no cause where the sender's is known."""
    if not any(item.kind == "cause" and not item.evidence.received for item in found):
        return found
    return [
        msgspec.structs.replace(item, kind="consequence", source="") if item.evidence.received else item
        for item in found
    ]


def _of_unknown_origin(item: Divergence) -> bool:
    return item.source == "outside" and not {"differs", "idle"} & set(item.evidence.generators.values())


_NONE = (0, 0, None)


def _other_values(kind: str, row: tuple[int, int, Site]) -> Divergence:
    count, _, site = row
    evidence = Evidence(inputs_equal=False, numbers_equal=False)
    return Divergence(site, 0, "consequence", "", evidence, count, count, stream=kind)


def _twins(a: Trace, b: Trace, identities: _Identities, differ: set[int], *, more: bool) -> list[Divergence]:
    """What differs at the sites `differ` between processes that stand at the same place in both trees; where the runs
    did not do equally much (`more`), also where their paths part.

    One that was ended before its end is compared as far as both went.
    """
    own = [
        {stream.name: stream for stream in opened.streams if stream.kind == "process" and stream.role == "process"}
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
            found[item.site, item.kind] = msgspec.structs.replace(item, stream=f"process {stream.name}")
        else:
            counts = {"differing": before.differing + item.differing, "compared": before.compared + item.compared}
            found[item.site, item.kind] = msgspec.structs.replace(before, **counts)

    for one, two in pairs:
        aligner = _Aligner(a, b, identities)
        aligner.run(one, two)
        ended_well = one.complete and two.complete
        for item in aligner.divergences():
            parts = item.source == "path"
            if (more and (item.other is not None or ended_well)) if parts else identities[item.site] in differ:
                add(item, one)
    for streams, opened in zip(own, (a, b), strict=True):
        for stream in streams.values():
            sites = opened.sites(stream)
            if stream.complete and sites:
                evidence = Evidence(inputs_equal=True, numbers_equal=True)
                add(Divergence(sites[0], 0, "path", "path", evidence), stream)
    return list(found.values())


def _sums(opened: Trace, kind: str, identities: _Identities, role: str = "") -> dict[int, tuple[int, int, Site]]:
    totals: dict[int, tuple[int, int, Site]] = {}
    for stream in opened.streams:
        if stream.kind != kind or (role and stream.role != role):
            continue
        sites = opened.sites(stream)
        numbers = identities.of(sites)
        for record in opened.records(stream):
            count, total, site = totals.get(numbers[record.site], (0, 0, sites[record.site]))
            total = (total + hash(record.digests)) & ((1 << 64) - 1)
            totals[numbers[record.site]] = (count + 1, total, site)
    return totals
