"""A trace file and what is asked of it -> lines: what is in it, or its records one by one. Torch is not needed."""

from __future__ import annotations

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
from torchdet_lint.verifier.trace.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.verifier.trace.format import Record, Site, Stream
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
    when = Timeline(trace.marks(stream))
    steps, losses = len(when.steps), [value for _, value in when.losses]
    count = stream.records if stream.records >= 0 else sum(1 for _ in trace.records(stream))
    words = [f"{count} ops"]
    words += [f"{steps} optimizer steps"] if steps else []
    words += [f"loss {losses[0]:.9g} to {losses[-1]:.9g}"] if losses else []
    words += [] if stream.complete else ["not ended in order"]
    words += [f"tasks: {told}"] if (told := _tasks(when)) else []
    return f"{stream.called}: {', '.join(words)}"


def _tasks(when: Timeline) -> str:
    """The tasks of asyncio that made records, and how many."""
    counts: collections.Counter[str] = collections.Counter()
    for begin, end, name in when.tasks:
        counts[name] += end - begin
    told = [f"{name} {count} ops" for name, count in counts.most_common(_MOST_OPS)]
    return ", ".join(told) + (f" and {len(counts) - _MOST_OPS} more" if len(counts) > _MOST_OPS else "")


def records(trace: Trace, asked: Asked, *, as_json: bool = False) -> Iterator[str]:
    """The records that are asked for, one a line. Raises `TraceError` for a stream that is not there."""
    stream = _found(trace, asked.stream)
    sites = trace.sites(stream)
    when = Timeline(trace.marks(stream))
    losses = collections.defaultdict(list)
    for step, value in when.losses:
        losses[step].append(value)
    shown = more = 0
    before = 0
    for number, record in enumerate(trace.records(stream)):
        site = sites[record.site]
        step = when.step(number)
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
        task = when.task(number)
        yield _as_json(number, step, record, site, task) if as_json else _as_text(number, record, site, task)
    if more and not as_json:
        yield f"… and {more} more (--limit {asked.limit + more} shows them)"
    if not shown and not as_json:
        stepless = asked.step and not when.steps
        why = "no optimizer of torch made a step there" if stepless else "no record fits"
        yield f"{why}; {_stream(trace, stream)}"


def _found(trace: Trace, name: str) -> Stream:
    if not name:
        return trace.main
    found = next((stream for stream in trace.streams if name in (stream.name, stream.called)), None)
    if found is None:
        names = ", ".join(stream.called for stream in trace.streams[:20])
        raise TraceError(f"{trace.path}: no stream {name}; there are {names}")
    return found


def _fits(site: Site, asked: Asked) -> bool:
    places = (site.place, f"{site.forward_file}:{site.forward_line}" if site.forward_file else "")
    near = not asked.place or any(
        place == asked.place or (place.startswith(f"{asked.place}:") and ":" not in asked.place) for place in places
    )
    return asked.op in site.op and near


def _as_text(number: int, record: Record, site: Site, task: str) -> str:
    flags = ", ".join(words for flag, words in _FLAGS if record.flags & flag)
    flags = ", ".join(filter(None, (flags, task and f"in {task}")))
    out = " ".join(f"{digest:016x}" for digest in record.digests[:3])
    out += f" and {len(record.digests) - 3} more" if len(record.digests) > 3 else ""
    forward = f" (of {site.forward_op} at {site.forward_file}:{site.forward_line})" if site.forward_op else ""
    place = site.place or "(no line)"
    return f"  #{number} {site.op}, {site.phase}, {place}{forward}: {record.inputs:016x} → {out or 'nothing'}" + (
        f" [{flags}]" if flags else ""
    )


def _as_json(number: int, step: int, record: Record, site: Site, task: str) -> str:
    row: dict[str, Any] = {"index": number, "step": step, "task": task, **site._asdict()}
    row |= {"inputs": f"{record.inputs:016x}", "numbers": f"{record.scalars:016x}"}
    row["outputs"] = [f"{digest:016x}" for digest in record.digests]
    row["flags"] = [words for flag, words in _FLAGS if record.flags & flag]
    return json.dumps(row, ensure_ascii=False)
