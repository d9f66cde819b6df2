"""A trace file and what is asked of it -> lines: what is in it, or its records one by one. Torch is not needed."""

from __future__ import annotations

import bisect
import collections
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.trace.format import (
    DRAWN_FROM_OWN,
    OUTSIDE,
    RANDOM,
    SCRATCH,
    UNSEEDED,
    UNWRITTEN,
    TraceError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.verifier.trace.format import Mark, Record, Site, Stream
    from torchdet_lint.verifier.trace.reader import Trace

_FLAGS = (
    (RANDOM, "random"),
    (OUTSIDE, "from outside"),
    (UNWRITTEN, "read unwritten memory"),
    (UNSEEDED, "unseeded"),
    (DRAWN_FROM_OWN, "own generator"),
    (SCRATCH, "into partly unwritten memory"),
)
_MOST_OPS = 10


class Asked(NamedTuple):
    """Which records: of the stream `stream` (empty: the main one), of `step` (0: all), whose op's name holds `op`, at
    `place` (`train.py`, `train.py:12`); at most `limit` of them."""

    stream: str = ""
    step: int = 0
    op: str = ""
    place: str = ""
    limit: int = 100

    @property
    def anything(self) -> bool:
        """Whether records are asked for at all."""
        return bool(self.step or self.op or self.place or self.stream)


def overview(trace: Trace) -> Iterator[str]:
    """What is in the file: the program, the environment, the streams, and the ops of the main one by number."""
    yield from heading(trace.header)
    for note in trace.notes:
        yield f"note: {', '.join(map(str, note.values()))}"
    if trace.truncated:
        yield "it ends in the middle of a record: the run did not end in order"
    for stream in trace.streams:
        yield _stream(trace, stream)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    sites = trace.sites(trace.main)
    for record in trace.records(trace.main):
        counts[sites[record.site].op, sites[record.site].phase] += 1
    for (op, phase), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_OPS]:
        yield f"  {count:>9} {op}, {phase}"
    if len(counts) > _MOST_OPS:
        yield f"  … and {len(counts) - _MOST_OPS} more ops (--op NAME, --step N and --at FILE:LINE list records)"


def heading(header: Mapping[str, Any]) -> Iterator[str]:
    """The program and its environment, as the header of a file has them."""
    yield f"program: {' '.join(map(str, header.get('program', []))) or 'unknown'}"
    environment = dict(header.get("environment", {}))
    variables = environment.pop("variables", {})
    told = {**environment, **{f"${name}": value for name, value in variables.items()}}
    yield f"environment: {', '.join(f'{name} {value}' for name, value in told.items() if value not in ('', []))}"


def _stream(trace: Trace, stream: Stream) -> str:
    marks = trace.marks(stream)
    steps, losses = len(_ends(marks)), [mark.value for mark in marks if mark.kind == "loss"]
    count = stream.records if stream.records >= 0 else sum(1 for _ in trace.records(stream))
    words = [f"{count} ops"]
    words += [f"{steps} optimizer steps"] if steps else []
    words += [f"loss {losses[0]:.9g} to {losses[-1]:.9g}"] if losses else []
    words += [] if stream.complete else ["not ended in order"]
    return f"{_name(stream)}: {', '.join(words)}"


def _name(stream: Stream) -> str:
    return f"process {stream.name}" if stream.kind == "process" else stream.name


def _ends(marks: list[Mark]) -> list[int]:
    """After how many records each step of the optimizer that makes the most of them ended."""
    counts = collections.Counter(mark.name for mark in marks if mark.kind == "step")
    main = max(counts, key=lambda name: counts[name], default="")
    return [mark.at for mark in marks if mark.kind == "step" and mark.name == main]


def records(trace: Trace, asked: Asked, *, as_json: bool = False) -> Iterator[str]:
    """The records that are asked for, one a line. Raises `TraceError` for a stream that is not there."""
    stream = _found(trace, asked.stream)
    sites = trace.sites(stream)
    marks = trace.marks(stream)
    ends = _ends(marks)
    losses = collections.defaultdict(list)
    for mark in marks:
        if mark.kind == "loss":
            losses[bisect.bisect_right(ends, mark.at) + 1].append(mark.value)
    shown = more = 0
    before = 0
    for number, record in enumerate(trace.records(stream)):
        site = sites[record.site]
        step = bisect.bisect_right(ends, number) + 1 if ends else 0
        if (asked.step and step != asked.step) or not _fits(site, asked):
            continue
        if shown >= asked.limit:
            more += 1
            continue
        shown += 1
        if step != before and not as_json:
            told = "".join(f", loss {value:.9g}" for value in losses.get(step, ()))
            yield f"step {step}{told}"
        before = step
        yield _as_json(number, step, record, site) if as_json else _as_text(number, record, site)
    if more and not as_json:
        yield f"… and {more} more (--limit {asked.limit + more} shows them)"
    if not shown and not as_json:
        yield f"no record fits; {_stream(trace, stream)}"


def _found(trace: Trace, name: str) -> Stream:
    if not name:
        return trace.main
    found = next((stream for stream in trace.streams if name in (stream.name, _name(stream))), None)
    if found is None:
        names = ", ".join(_name(stream) for stream in trace.streams[:20])
        raise TraceError(f"{trace.path}: no stream {name}; there are {names}")
    return found


def _fits(site: Site, asked: Asked) -> bool:
    places = (site.place, f"{site.forward_file}:{site.forward_line}" if site.forward_file else "")
    near = not asked.place or any(
        place == asked.place or (place.startswith(f"{asked.place}:") and ":" not in asked.place) for place in places
    )
    return asked.op in site.op and near


def _as_text(number: int, record: Record, site: Site) -> str:
    flags = ", ".join(words for flag, words in _FLAGS if record.flags & flag)
    out = " ".join(f"{digest:016x}" for digest in record.digests[:3])
    out += f" and {len(record.digests) - 3} more" if len(record.digests) > 3 else ""
    forward = f" (of {site.forward_op} at {site.forward_file}:{site.forward_line})" if site.forward_op else ""
    place = site.place or "(no line)"
    return f"  #{number} {site.op}, {site.phase}, {place}{forward}: {record.inputs:016x} → {out or 'nothing'}" + (
        f" [{flags}]" if flags else ""
    )


def _as_json(number: int, step: int, record: Record, site: Site) -> str:
    row: dict[str, Any] = {"index": number, "step": step, **site._asdict()}
    row |= {"inputs": f"{record.inputs:016x}", "numbers": f"{record.scalars:016x}"}
    row["outputs"] = [f"{digest:016x}" for digest in record.digests]
    row["flags"] = [words for flag, words in _FLAGS if record.flags & flag]
    return json.dumps(row, ensure_ascii=False)
