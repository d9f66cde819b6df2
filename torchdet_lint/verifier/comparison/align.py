"""Two streams of records -> what differs between them, and where their paths part.

Records are aligned by site. A record whose outputs differ is a *cause* when what it read was equal in both runs (or
came from outside torch, or from a generator), else a *consequence*. Where the sites differ the paths part; they are
joined again at the next four sites in a row that both runs pass. Equal blocks are skipped as bytes, and memory does
not grow with the length of the traces.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import msgspec

from torchdet_lint.catalogue import runtime
from torchdet_lint.verifier import trace
from torchdet_lint.verifier.comparison.cursor import Cursor, Identities, meeting
from torchdet_lint.verifier.comparison.outcome import Divergence, Evidence, Parting, Source
from torchdet_lint.verifier.comparison.picture import Histogram, Lane
from torchdet_lint.verifier.trace import Record, Site, Stream, Timeline, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

_WINDOWS = (64, 1024, 16384, 131072)
_MOST_SITES = 400
GENERATORS = ("python", "numpy", "torch")
_READS = frozenset({"aten._local_scalar_dense", trace.HANDED})
"""What hands values of a tensor to Python or NumPy."""


class _AtSite:
    """What was seen at one site so far."""

    __slots__ = ("balance", "came", "compared", "differing", "first", "last", "scratch")

    def __init__(self) -> None:
        self.compared = self.differing = 0
        self.first: Divergence | None = None
        self.last = -1
        self.balance = self.came = 0
        self.scratch = True


class Aligner:
    """Walks two streams together and collects what differs."""

    def __init__(self, a: Trace, b: Trace, identities: Identities) -> None:
        self.a, self.b, self.identities = a, b, identities
        self.compared = self.differing = 0
        self.partings: list[Parting] = []
        self.paths: list[Divergence] = []
        self.notes: list[str] = []
        self.at: dict[int, _AtSite] = {}
        self.seen_seeds: set[tuple[int | None, int | None]] = set()
        self.scalars_differ = self.loader_seeds_differ = False
        self.states: tuple[int, ...] = (0, 0, 0)
        self.handed_back = -2
        self.numpy_wrote = False
        self.healed = False
        self.span = (0, 0)
        self.seeded = False
        self.asking: list[_AtSite] = []
        self.numbers_differed = self.numbers_taken = False
        self.last_site: Site | None = None
        self.timeline = self.timeline_b = Timeline(())
        self.histogram = Histogram()
        self.expected: dict[int, Divergence] = {}
        self.expected_partings: list[str] = []
        self.numbers_at: set[tuple[str, int]] = set()

    def run(
        self,
        stream_a: Stream,
        stream_b: Stream,
        spans: tuple[Sequence[tuple[int, int]] | None, Sequence[tuple[int, int]] | None] = (None, None),
    ) -> None:
        """Compare two streams, from beginning to end, or only their records within `spans`, which have no marks."""
        left = self.left = Cursor(self.a, stream_a, self.identities, spans[0])
        right = self.right = Cursor(self.b, stream_b, self.identities, spans[1])
        if spans[0] is None:
            self.timeline, self.timeline_b = Timeline(self.a.marks(stream_a)), Timeline(self.b.marks(stream_b))
        shared = min(len(left.numbers), len(right.numbers))
        same_sites = spans[0] is None and left.numbers[:shared] == right.numbers[:shared]
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
            for head in trace.decode_heads(payload, left.path):
                count += 1
                last = head & 0xFFFFFFFF
                flags = head >> 48
                if flags & trace.RANDOM and not flags & (trace.UNSEEDED | trace.DRAWN_FROM_OWN):
                    self.seeded = True
            self.compared += count
            for cursor in (left, right):
                cursor.passed += count
                cursor.drop_block()
        if last >= len(left.sites):
            raise trace.TraceError(f"{left.path}: damaged: a record of no site")
        if last >= 0:
            self.last_site = left.sites[last]

    def _pair(self, number: int, one: Record, two: Record) -> None:
        self.compared += 1
        site = self.last_site = self.left.sites[one.site]
        before = self.states
        if one.outside is not None:
            self.states = one.outside[1:]
            self.numbers_taken, self.numbers_differed = self.numbers_differed, False
            came = two.outside is not None and one.outside[0] != two.outside[0]
            self._ask_generators(_states(one, two, before), taken=came or one.scalars != two.scalars)
        if one.flags & trace.RANDOM and not one.flags & (trace.UNSEEDED | trace.DRAWN_FROM_OWN):
            self.seeded = True
        # In lockstep, what came from outside may have been replaced though the op made the same of it.
        differs = one.digests != two.digests or self.timeline_b.parts(self.right.passed) is not None
        here = self.at.get(number)
        if here is None:
            if not differs:
                if one.inputs != two.inputs and self.differing:
                    self.healed = True
                return
            here = self.at[number] = _AtSite()
        here.compared += 1
        if not differs:
            return
        if reason := self.timeline.reason(self.left.passed):
            self._expect(number, site, reason)
            return
        self.healed = False
        self.differing += 1
        self.histogram.add(self.left.passed)
        self.span = (self.span[0] if self.differing > 1 else self.left.passed, self.left.passed)
        here.differing += 1
        here.last = self.left.passed
        here.balance += hash(one.digests) - hash(two.digests)
        if one.outside is not None and two.outside is not None:
            here.came += one.outside[0] - two.outside[0]
        here.scratch = here.scratch and bool(one.flags & two.flags & trace.SCRATCH)
        kind, source = self._judge(site, one, two, before)
        if here.first is None or (here.first.kind == "consequence" and kind == "cause"):
            evidence = self._evidence(site, one, two, before)
            pairs = enumerate(itertools.zip_longest(one.digests, two.digests))
            outputs = tuple(n for n, (x, y) in pairs if x != y)
            at = (self.left.passed, self.right.passed)
            here.first = Divergence(site, at[0], kind, source, evidence, outputs=outputs, index_b=at[1])
            if kind == "cause" and source in ("number", "order"):
                self.asking.append(here)
        if site.op in _READS and not self._is_followed:
            self.scalars_differ = True
        if one.inputs == two.inputs and one.scalars != two.scalars:
            self.numbers_differed = True

    def _expect(self, number: int, site: Site, reason: str) -> None:
        """A record that the program expects to differ: no divergence, as long as nothing else does."""
        before = self.expected.get(number)
        if before is None:
            at = (self.left.passed, self.right.passed)
            evidence = Evidence(inputs_equal=True, numbers_equal=True)
            before = Divergence(site, at[0], "cause", "op", evidence, differing=0, index_b=at[1], reason=reason)
        self.expected[number] = msgspec.structs.replace(before, differing=before.differing + 1)
        self.scalars_differ |= site.op in _READS

    def _ask_generators(self, states: dict[str, str], *, taken: bool) -> None:
        """A number or a choice of Python's differed just before: which generator it may have come from. That is not
        told of an order where a number differs too, or the data itself (`taken`), which are drawn more often.
        """
        found = [here.first for here in self.asking if here.first is not None]
        taken |= any(item.source == "number" for item in found)
        rather = {name: "taken" if state == "differs" else state for name, state in states.items()}
        for here in self.asking:
            if here.first is not None:
                told = rather if taken and here.first.source == "order" else states
                evidence = msgspec.structs.replace(here.first.evidence, generators=told)
                here.first = msgspec.structs.replace(here.first, evidence=evidence)
        self.asking.clear()

    @property
    def _is_followed(self) -> bool:
        """Whether run B went on with run A's values until now."""
        return self.timeline_b.follows(self.right.passed)

    def _judge_followed(
        self, site: Site, one: Record, two: Record, before: tuple[int, ...]
    ) -> tuple[Literal["cause", "consequence"], Source] | None:
        """What differs at a record of a run in lockstep: nothing follows from what was replaced before. None where that
        makes no difference.
        """
        inputs, numbers = one.inputs == two.inputs, one.scalars == two.scalars
        if one.outside is not None and two.outside is not None and one.outside[0] != two.outside[0]:
            states = _states(one, two, before)
            read = self.scalars_differ and "differs" not in (states["python"], states["numpy"])
            follows = read or self.timeline_b.parts(self.right.passed) is False
            return "consequence" if follows else "cause", "outside"
        if inputs and not numbers:
            # A backward op is given the numbers of its forward op.
            follows = self.scalars_differ or (site.forward_file, site.forward_line) in self.numbers_at
            self.numbers_at.add((site.file, site.line))
            return "consequence" if follows else "cause", "number"
        if not inputs and not one.flags & trace.RANDOM:
            return ("cause", "order") if self.timeline_b.parts(self.right.passed) else ("consequence", "")
        return None

    def _judge(
        self, site: Site, one: Record, two: Record, before: tuple[int, ...]
    ) -> tuple[Literal["cause", "consequence"], Source]:
        if self._is_followed and (followed := self._judge_followed(site, one, two, before)) is not None:
            return followed
        first = self.differing == 1 and not self.partings and not self.expected
        inputs, numbers = one.inputs == two.inputs, one.scalars == two.scalars
        if one.outside is not None and two.outside is not None and one.outside[0] != two.outside[0]:
            follows = site.op == trace.BATCH and self.loader_seeds_differ
            # A checkpoint that this run itself wrote, after it had gone another way.
            follows |= self._loaded(one) and self.differing > 1
            states = _states(one, two, before)
            read = self.scalars_differ or states["torch"] == "differs"
            # The next thing that happens after such data came in: they came in two parts, or a copy of them is read.
            read |= self.handed_back == self.left.passed - 1
            # Python handed back what it had read of a tensor that differed; no generator was drawn from for it.
            follows |= self.differing > 1 and read and "differs" not in (states["python"], states["numpy"])
            if follows:
                self.handed_back = self.left.passed
            return "consequence" if follows else "cause", "outside"
        if one.flags & trace.RANDOM and inputs and numbers:
            self.loader_seeds_differ |= site.phase == "data" and not self._is_followed
            if one.flags & trace.DRAWN_FROM_OWN and one.seed != two.seed and self.scalars_differ:
                return "consequence", "random"
            pair = (one.seed, two.seed)
            known = pair in self.seen_seeds
            self.seen_seeds.add(pair)
            return ("consequence" if known or (self.partings and one.seed == two.seed) else "cause"), "random"
        if inputs and numbers:
            if one.flags & trace.NUMPY_WROTE and one.outside is not None:
                states = _states(one, two, before)
                # The same memory again, as far as the generators tell.
                again = self.numpy_wrote and "differs" not in (states["python"], states["numpy"])
                self.numpy_wrote = True
                return "consequence" if again else "cause", "outside"
            return "cause", "unwritten" if one.flags & trace.UNWRITTEN else "op"
        if inputs and is_pick(site.op):
            # What `tolist` read of a tensor is an index like any other.
            return ("cause" if first and not self.scalars_differ else "consequence"), "number"
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
            generators=_states(one, two, before, taken=self.numbers_taken),
            arrival=self.left.sites[one.arrival].place if one.arrival is not None else "",
            loaded=self._loaded(one),
            permuted=bool(one.outside and two.outside and trace.in_another_order(one.outside[0], two.outside[0])),
            shared=bool(one.flags & two.flags & trace.SHARED),
            received=of_a_group(site.op) or (one.arrival is not None and of_a_group(self.left.sites[one.arrival].op)),
        )

    def _loaded(self, record: Record) -> bool:
        return record.arrival is not None and self.left.sites[record.arrival].phase == "load"

    def _rejoin(self) -> bool:
        """Pass the records up to where both go the same way again; False where that is out of sight."""
        one, two = self.left, self.right
        for window in _WINDOWS:
            reach = (one.fill(window), two.fill(window))
            skip = meeting(one.window(window), two.window(window))
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
        if rejoined and (reason := self._expected_parting(a_ops, b_ops)):
            self.expected_partings.append(reason)
            return
        if not self.partings and (a or b) is not None:
            kind: Literal["path", "consequence"] = "consequence" if self.differing else "path"
            evidence = Evidence(inputs_equal=not self.differing, numbers_equal=True)
            here = a or b or Site("", "", "", 0, "")
            self.paths.append(Divergence(here, index, kind, "path", evidence, other=b if a else None))
        self.healed = False
        if len(self.partings) < _MOST_SITES:
            self.partings.append(Parting(index, self.last_site, a, b, a_ops, b_ops, rejoined))

    def _expected_parting(self, a_ops: int, b_ops: int) -> str:
        """Why the program expects what each run does until they meet again; empty where one leaves the block."""
        ways = ((self.timeline, self.left.passed, a_ops), (self.timeline_b, self.right.passed, b_ops))
        reasons = [(when.reason(at), when.reason(at + ops - 1)) for when, at, ops in ways if ops]
        return reasons[0][0] if reasons and all(map(all, reasons)) else ""

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
        """What differs, one a site, in order of execution."""
        found = [
            msgspec.structs.replace(
                here.first,
                differing=here.differing,
                compared=here.compared,
                evidence=self._seen_later(here, here.first),
            )
            for here in self.at.values()
            if here.first is not None
        ]
        found = [item for item in found if item.differing]
        if found or self.paths:
            found += [
                msgspec.structs.replace(item, compared=max(item.differing, self.at[number].compared))
                for number, item in self.expected.items()
            ]
        first = sorted(found + self.paths, key=lambda item: (item.index, item.source != "path"))[:_MOST_SITES]
        when = self.timeline
        return [
            msgspec.structs.replace(
                item, step=when.step(item.index), epoch=when.epoch(item.index), task=when.task(item.index)
            )
            for item in first
        ]

    def excused(self) -> list[str]:
        """What the program expects to differ, and does, in a line each."""
        told = [
            f"expected to differ: {item.site.place or item.site.op} {item.site.op}, "
            f"{item.differing} executions ({item.reason})"
            for item in self.expected.values()
        ]
        return told + [f"expected to go another way: {reason}" for reason in dict.fromkeys(self.expected_partings)]

    def lane(self, name: str) -> Lane:
        """What differs, by stretches of run A."""
        steps = self.timeline.steps
        stride = max(1, len(steps) // 40)
        return Lane(
            name,
            self.left.passed,
            self.histogram.width,
            tuple(self.histogram.cells),
            lasting=not self.heals(),
            parted=tuple((part.index, part.index + max(part.a_ops, 1)) for part in self.partings[:100]),
            steps=tuple((steps[at], at + 1) for at in range(stride - 1, len(steps), stride)),
        )

    def heals(self) -> bool:
        """Whether what differed was read again with equal outcome, and nothing differed since for at least as long."""
        first, last = self.span
        return self.healed and not self.partings and self.left.passed - last > last - first

    def harmless(self) -> Literal["", "order", "unwritten"]:
        """As `Comparison.harmless`."""
        if self.partings or self.timeline_b.in_lockstep:
            return ""
        if self.healed and all(here.scratch for here in self.at.values()):
            return "unwritten"
        return "order" if all(not here.balance for here in self.at.values()) else ""

    def _seen_later(self, here: _AtSite, item: Divergence) -> Evidence:
        later = item.evidence.unseeded and self.seeded
        in_another_order = not here.balance or (item.source == "outside" and not here.came)
        return msgspec.structs.replace(
            item.evidence,
            seeded_later=later,
            seeded_at=self.timeline.seeded if later else "",
            permuted=item.evidence.permuted or in_another_order,
        )


def _states(one: Record, two: Record, before: tuple[int, ...], *, taken: bool = False) -> dict[str, str]:
    """What `Evidence.generators` tells, of two records of data that came in; `before` are the states at the data
    before. `taken` says that a number which differed came in since then.
    """
    states = {}
    if one.outside is not None and two.outside is not None:
        rows = zip(GENERATORS, one.outside[1:], two.outside[1:], before, strict=True)
        for name, x, y, last in rows:
            differs = "idle" if x == last else "taken" if taken and name != "torch" else "differs"
            states[name] = "unused" if not x and not y else "equal" if x == y else differs
    return states


def is_pick(op: str) -> bool:
    """Whether an op hands out a part of a tensor, at a place that Python's numbers say."""
    return op.startswith("aten.") and op.split(".")[1] in runtime.dispatch().picks


def of_a_group(op: str) -> bool:
    """Whether an op exchanges values with other processes."""
    return "c10d" in op.partition(".")[0]
