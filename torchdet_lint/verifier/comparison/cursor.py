"""The records of a stream -> a look ahead at them, and the sites of two traces by one number each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.trace import Record, Site, Stream, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GRAM = 4


class Identities(dict[Site, int]):
    """One number for each site, the same in both traces.

    Where the source may have `moved` from one trace to the other, sites are the same whose op, phase, file, function
    and lines of source are, whatever the numbers of these lines.
    """

    def __init__(self, *, moved: bool = False) -> None:
        super().__init__()
        self._moved = moved
        self._numbers: dict[Site, int] = {}

    def of(self, sites: list[Site]) -> list[int]:
        """The numbers of a stream's sites."""
        if not self._moved:
            return [self.setdefault(site, len(self)) for site in sites]
        texts = {(site.file, site.line): site.text for site in sites if site.text}
        found = []
        for site in sites:
            number = self._numbers.setdefault(_unnumbered(site, texts), len(self._numbers))
            found.append(self.setdefault(site, number))
        return found


def _unnumbered(site: Site, texts: Mapping[tuple[str, int], str]) -> Site:
    """A site with the text of its lines in place of their numbers, as far as it is known."""
    forward = texts.get((site.forward_file, site.forward_line), "")
    return site._replace(
        line=0 if site.text else site.line,
        forward_line=0 if forward else site.forward_line,
        text=f"{site.text}\n{forward}",
    )


class Cursor:
    """The records of one stream with a look ahead, or (`spans`) those from and up to some of them; `passed` counts
    those behind it.
    """

    def __init__(
        self, opened: Trace, stream: Stream, identities: Identities, spans: Sequence[tuple[int, int]] | None = None
    ) -> None:
        self.path = opened.path
        self.sites = opened.sites(stream)
        self.numbers = identities.of(self.sites)
        self.blocks = opened.raw(stream)
        self.kept: bytes | None = None
        self.ahead: list[Record] = []
        self.at = 0
        self.passed = 0
        self.spans = spans
        self.read = 0

    def fill(self, count: int) -> int:
        """Look at least `count` records ahead; returns how many there are."""
        while len(self.ahead) - self.at < count:
            payload = self.peek()
            if payload is None:
                break
            self.kept = None
            self.ahead = self.ahead[self.at :]
            self.at = 0
            self.ahead.extend(self._within(list(trace.decode(payload, len(self.sites), self.path))))
        return len(self.ahead) - self.at

    def _within(self, records: list[Record]) -> list[Record]:
        """Those of the next records that lie in the spans."""
        if self.spans is None:
            return records
        first, self.read = self.read, self.read + len(records)
        return [
            record
            for begin, end in self.spans
            if begin < self.read and end > first
            for record in records[max(0, begin - first) : end - first]
        ]

    def peek(self) -> bytes | None:
        """The next block, which stays the next."""
        if self.kept is None:
            self.kept = next(self.blocks, None)
        return self.kept

    def window(self, count: int) -> list[int]:
        """The identities of the next `count` sites."""
        return [self.numbers[record.site] for record in self.ahead[self.at : self.at + count]]

    def next(self) -> Record | None:
        """The next record, which stays the next; None at the end."""
        if self.at == len(self.ahead) and not self.fill(1):
            return None
        return self.ahead[self.at]

    def step(self, count: int = 1) -> None:
        """Pass so many of the records ahead."""
        self.at += count
        self.passed += count

    def drop_block(self) -> None:
        """Pass the block that `peek` gave, unread."""
        self.kept = None

    def rest(self) -> int:
        """Pass all that is left; returns how many records that were."""
        count = 0
        while left := self.fill(1):
            count += left
            self.step(left)
        return count


def meeting(one: list[int], two: list[int]) -> tuple[int, int] | None:
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
