"""The streams of a run's child processes -> the one trace of the run."""

from __future__ import annotations

import collections
import contextlib
import json
import zlib
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.trace.format import BLOCK, TraceError, parts_of
from torchdet_lint.verifier.trace.reader import Trace
from torchdet_lint.verifier.trace.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path


def gather(path: Path) -> None:
    """Append the streams of child processes to the trace at `path`, and remove their files.

    Call it once the whole process tree has ended. A child's file that is damaged is dropped with a note. Where only
    children have recorded, the trace begins with an empty main stream.
    """
    parts = parts_of(path)
    loaded = []
    for part in parts:
        with contextlib.suppress(TraceError):
            trace = Trace(part)
            loaded.append(((trace.header.get("began", 0.0), trace.header.get("order", [])), part.name, trace))
    if loaded:
        if not path.exists():
            _begin_empty(path, loaded[0][2].header)
        whole = Trace(path)
        with path.open("r+b") as out:
            out.truncate(whole.sound)
            out.seek(whole.sound)
            base = max((stream.number for stream in whole.streams), default=0) + 1
            names: collections.Counter[str] = collections.Counter()
            for _, _, trace in sorted(loaded, key=lambda item: item[:2]):
                base = _append(out, trace, names, base)
    for part in parts:
        part.unlink(missing_ok=True)


def _begin_empty(path: Path, header: dict[str, Any]) -> None:
    writer = Writer(path)
    writer.json(b"H", 0, {**header, "order": []})
    writer.json(b"F", writer.stream("main", "main"), {"records": 0})
    writer.close()


def _append(out: Any, trace: Trace, names: collections.Counter[str], base: int) -> int:
    """Append the streams of one process; of several processes that are called alike the later ones get a number."""

    def put(kind: bytes, stream: int, payload: bytes) -> None:
        out.write(BLOCK.pack(kind, stream, len(payload), zlib.crc32(payload)) + payload)

    streams = trace.streams
    called = next((stream.name for stream in streams if stream.kind == "process"), "")
    called = _by_rank(called, trace)
    names[called] += 1
    process = called if names[called] == 1 else f"{called} #{names[called]}"
    for stream in streams:
        name = process + (f" {stream.name}" if stream.kind == "thread" else "")
        role = "worker" if stream.kind == "thread" else stream.role
        put(b"S", base + stream.number, json.dumps({"kind": "process", "name": name, "role": role}).encode())
        with trace.path.open("rb") as file:
            for offset, length in stream.definitions:
                file.seek(offset)
                put(b"D", base + stream.number, file.read(length))
            for offset, length in stream.marks:
                file.seek(offset)
                put(b"T", base + stream.number, file.read(length))
        for payload in trace.raw(stream):
            put(b"R", base + stream.number, payload)
        if stream.complete:
            put(b"F", base + stream.number, json.dumps({"records": stream.records}).encode())
    for note in trace.notes:
        if "rank" not in note:
            put(b"N", base, json.dumps(note).encode())
    return base + max((stream.number for stream in streams), default=0) + 1


def _by_rank(called: str, trace: Trace) -> str:
    """The name of a process, by its rank where it, or the one that forked it, joined a process group."""
    ranked = next((note for note in trace.notes if "rank" in note), None)
    before = str(ranked.get("called", "")) if ranked is not None else ""
    if ranked is None or not before or (called != before and not called.startswith((f"{before} ", f"{before}."))):
        return called
    return f"{ranked['rank']}{called[len(before) :]}"
