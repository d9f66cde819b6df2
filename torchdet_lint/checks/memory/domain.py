"""The abstract domain, plain data: buffers, the parts of them that are written, and what is known of each on a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst


class Span(NamedTuple):
    """What a write reaches along one dimension: `[low, high)` in steps; the ends are ints or source text.

    `exact` is false where that is not known. `end` is the high end of a slice as `extent` has it.
    """

    low: int | str = 0
    high: int | str = ""
    step: int = 1
    exact: bool = True
    end: int | str = ""


EVERYTHING = Span()
SOMETHING = Span(exact=False)


class Counter(NamedTuple):
    """A dimension of a buffer that the counter of a loop goes through: the number of loops around the body of that
    loop, and how far it counts, as `extent` has it."""

    dimension: int
    loops: int
    extent: int | str


class Part(NamedTuple):
    """Part of a buffer: spans by dimension (negative: counted from the last), the others whole; None: anything.

    `counters`: the dimensions that the counters of loops go through. `masked`: the comparison that holds for the
    elements, as text.
    """

    spans: tuple[tuple[int, Span], ...] | None = None
    counters: tuple[Counter, ...] = ()
    masked: str = ""

    def is_counted(self, loops: int, extents: Sequence[int | str]) -> bool:
        """Whether the counter of the loop with `loops` around its body goes through a dimension from end to end."""
        known = dict(enumerate(extents))
        return any(one.loops == loops and one.extent == known.get(one.dimension) for one in self.counters)


class Ref(NamedTuple):
    """A value that shares the memory of buffer number `buffer`, all of it or `part`."""

    buffer: int
    part: Part | None = None


Refs = frozenset[Ref]
NO_REFS: Refs = frozenset()


class Memory(NamedTuple):
    """What is known of one buffer on the paths that lead here.

    `full`: written wholly, or out of sight. `maybe`: so on some path only, which `guards` say; `level` is the number of
    conditions around the place where the paths met. `parts` are the partial writes of any path.
    """

    loops: int
    born: frozenset[tuple[str, bool]]
    full: bool = False
    escaped: bool = False
    maybe: bool = False
    level: int = 0
    guards: frozenset[tuple[str, bool]] = frozenset()
    parts: frozenset[Part] = frozenset()
    certain: frozenset[Part] = frozenset()


class CutShort(NamedTuple):
    """The parts of a buffer that a loop may not have come to the end of, and the names that the loop binds."""

    parts: frozenset[Part]
    names: frozenset[str]


class State:
    """Names with the memory they refer to, the buffers, what of these a `break` cut short, and the conditions that
    hold."""

    __slots__ = ("cut", "env", "facts", "memories")

    def __init__(self) -> None:
        self.env: dict[str, Refs] = {}
        self.memories: dict[int, Memory] = {}
        self.cut: dict[int, CutShort] = {}
        self.facts: frozenset[tuple[str, bool]] = frozenset()

    def name(self, name: str, refs: Refs) -> None:
        """From here on `name` stands for `refs`; one that stands for none is not kept."""
        if refs:
            self.env[name] = refs
        else:
            self.env.pop(name, None)


class Buffer(NamedTuple):
    """One place where memory is allocated, and its size where that is in sight; `extents` as `extent` has them. `head`
    is what was there before the memory was made larger, `like` the name of the tensor that has the same shape."""

    node: cst.Call
    word: str
    size: tuple[int | str, ...] | None
    array: bool = False
    extents: tuple[int | str, ...] | None = None
    head: Part | None = None
    like: str = ""

    def is_whole(self, part: Part | None) -> bool:
        """Whether `part` of it, as it is read, is evidently all: from the start to the end of each dimension."""
        known = dict(enumerate(self.extents or ()))
        return part is None or (
            part.spans is not None
            and not part.masked
            and all(
                (span.low, span.step) == (0, 1) and span.end != "" and span.end == known.get(dimension)
                for dimension, span in part.spans
            )
        )


class Read(NamedTuple):
    """Buffer and the expression that reads it first."""

    buffer: Buffer
    node: cst.CSTNode


def some_part(refs: Refs) -> Refs:
    """`refs` as views of unknown parts."""
    return frozenset(ref._replace(part=Part()) for ref in refs)


def lacks(buffer: Buffer, memory: Memory) -> bool:
    """Whether the partial writes of all paths together evidently leave a part out."""
    parts = memory.parts
    if len(parts) == 1 and memory.parts != memory.certain and all(part.counters for part in parts):
        return True
    if len(parts) == 1 and all(part.masked for part in parts):
        return True
    if any(part.spans is None for part in parts):
        return False
    columns = {dimension for part in parts for dimension, _ in part.spans or ()}
    if len({dimension < 0 for dimension in columns}) != 1:
        return False
    for column in sorted(columns):
        spans = [dict(part.spans or ()).get(column, EVERYTHING) for part in parts]
        size = buffer.size[column] if buffer.size and -len(buffer.size) <= column < len(buffer.size) else ""
        if all(span.exact for span in spans) and _leaves_out(spans, size):
            return True
        extents = buffer.extents or ()
        if len(spans) == 1 and -len(extents) <= column < len(extents) and _is_beginning(spans[0], extents[column]):
            return True
        if len(spans) == 1 and buffer.like and _is_share(spans[0], f"{buffer.like}.size({column})"):
            return True
    return False


def _leaves_out(spans: Sequence[Span], size: int | str) -> bool:
    """Whether the spans, all exact, evidently miss an element of a dimension of `size`."""
    if isinstance(size, int) and all(_known(span) for span in spans):
        covered: set[int] = set()
        for span in spans:
            covered.update(range(size)[_slice(span)])
        return len(covered) < size
    steps = {span.step for span in spans}
    if steps != {1}:
        return len(steps) == 1 and _residues(spans, steps.pop())
    if all(isinstance(span.low, int) and (span.low > 0 or span.low == -1) for span in spans):
        return True
    return bool(size) and all(_short(span.high, size) for span in spans)


def _is_beginning(span: Span, extent: int | str) -> bool:
    """Whether `span` goes from the start to a bound that is another one than `extent`, as far as one can see."""
    known = not any("?" in str(end) for end in (span.end, extent))
    return span.low == 0 and span.step == 1 and span.end not in ("", extent) and known and str(span.end)[:1] != "-"


def _is_share(span: Span, extent: str) -> bool:
    """Whether `span` goes from the start to a part of `extent`: to a half of it."""
    rest = str(span.end).removeprefix(f"{extent}//")
    return (span.low, span.step) == (0, 1) and rest != span.end and rest.isdecimal() and int(rest) > 1


def _known(span: Span) -> bool:
    return isinstance(span.low, int) and (isinstance(span.high, int) or span.high == "")


def _slice(span: Span) -> slice:
    return slice(span.low, span.high if isinstance(span.high, int) else None, span.step)


def _residues(spans: Sequence[Span], step: int) -> bool:
    if not all(isinstance(span.low, int) and span.low >= 0 for span in spans):
        return False
    return len({int(span.low) % step for span in spans}) < step


def _short(high: int | str, size: int | str) -> bool:
    """Whether `high` evidently stops before `size`."""
    if isinstance(high, int):
        return high < 0
    return isinstance(size, str) and high.startswith(f"{size}-") and high[len(size) + 1 :].isdigit()
