"""The trace file: what one run did, op by op, written as it goes and read back in bounded memory.

A file is the magic, the version, and blocks. A block is a header of 16 bytes (kind, stream, length and crc32 of the
payload, little-endian) and its payload: JSON for `H` (the run), `S` (a stream begins), `D` (further sites of a
stream), `N` (a note) and `F` (a stream ended well), unsigned 64-bit words for `R` (records). A stream is one thread
of one process.

A record is `head, scalars, inputs, digest…, extra…`: the head holds the number of the site (32 bits), the number of
digests (16) and the flags (16); `scalars` and `inputs` digest the Python numbers and the tensors that the op read.
Extra words follow in the order of the flags: `RANDOM` the initial seed of the generator drawn from; `OUTSIDE` the
digest of what came from outside torch, and the digests of the generators of `random`, NumPy and torch; `ARRIVED` the
site where a worker's batch was received.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import struct
import sys
import threading
import zlib
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC = b"TDTRACE\n"
VERSION = 1
SUFFIX = ".tdtrace"
BATCH = "loader.batch"
"""The op under which a batch from workers is recorded, where the program takes it."""
_BLOCK = struct.Struct("<cxxxIII")
_PROLOGUE = struct.Struct("<8sI")

RANDOM, OUTSIDE, ARRIVED, UNWRITTEN, UNSEEDED, PYTHON_USED, NUMPY_USED, TORCH_USED, DRAWN_FROM_OWN, SCRATCH = (
    1 << bit for bit in range(10)
)
"""Flags of a record: drew random numbers (with the seed); read data from outside torch; that data came from a worker;
read memory that nothing had written; the generator was never seeded by the program; the three global generators were
used since the process began; the generator drawn from was passed, not global; wrote into memory of which a
part was never written.
"""


_FOREIGN = "exists, is no trace of torchdet-lint, and is not written over"


class TraceError(Exception):
    """A trace that cannot be written or read; the text is one line that names the file and the reason."""


class Site(NamedTuple):
    """One op at one place: `phase` is forward, backward, optimizer, data, split, init or load (inside `torch.load`);
    `file` is empty where no line is known.

    `forward_file` and `forward_line` are those of the forward op, for a backward op; `forward_op` its name.
    """

    op: str
    phase: str
    file: str
    line: int
    function: str
    forward_op: str = ""
    forward_file: str = ""
    forward_line: int = 0

    @property
    def place(self) -> str:
        """`file:line`, or an empty text."""
        return f"{self.file}:{self.line}" if self.file else ""


class Record(NamedTuple):
    """One execution of an op. `seed` is None unless it drew random numbers; `outside` is None unless data came in."""

    site: int
    flags: int
    scalars: int
    inputs: int
    digests: tuple[int, ...]
    seed: int | None
    outside: tuple[int, int, int, int] | None
    arrival: int | None


class Stream(NamedTuple):
    """One thread of one process: `kind` is main, thread or process; `complete` says that it was closed in order.

    `role` is `worker` for a process that takes its tasks from a queue, which leaves open who does what.
    """

    number: int
    kind: str
    name: str
    blocks: tuple[tuple[int, int], ...]
    definitions: tuple[tuple[int, int], ...]
    complete: bool
    records: int
    role: str = "worker"


def unwritable(path: Path) -> str:
    """Why no trace may be written to `path`, in a few words; empty where one may. A file of another kind is left."""
    try:
        if path.is_dir():
            return "a folder"
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            return "no permission to write it"
        if _foreign(path):
            return _FOREIGN
    except OSError as error:
        return str(error.strerror)
    return ""


def _foreign(path: Path) -> bool:
    """Whether `path` is a file with something in it that is no trace."""
    try:
        if not path.is_file() or not path.stat().st_size:
            return False
        with path.open("rb") as opened:
            return opened.read(len(MAGIC)) != MAGIC
    except PermissionError:
        return True


class Writer:
    """Appends blocks to a trace file. Safe to use from several threads; a process that forks opens another one.

    A disk that is full, or a descriptor that the program closed, never reaches the program: `failure` then holds the
    reason, and what follows is not recorded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure = ""
        if _foreign(Path(path)):
            raise TraceError(f"{path}: the trace cannot be written: the file {_FOREIGN}")
        self._lock = threading.Lock()
        self._streams = 0
        try:
            self._descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666
            )
        except OSError as error:
            raise TraceError(f"{path}: the trace cannot be written: {error.strerror}") from error
        self._put(_PROLOGUE.pack(MAGIC, VERSION))

    def stream(self, kind: str, name: str, **more: Any) -> int:
        """Begin a stream and return its number."""
        with self._lock:
            number = self._streams
            self._streams += 1
        self.json(b"S", number, {"kind": kind, "name": name, **more})
        return number

    def json(self, kind: bytes, stream: int, value: Any) -> None:
        """Append a block of JSON."""
        self.block(kind, stream, json.dumps(value, separators=(",", ":")).encode())

    def block(self, kind: bytes, stream: int, payload: bytes) -> None:
        """Append a block."""
        header = _BLOCK.pack(kind, stream, len(payload), zlib.crc32(payload))
        with self._lock:
            self._put(header + payload)

    def _put(self, data: bytes) -> None:
        if self.failure:
            return
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self.failure = error.strerror or str(error)

    def close(self) -> None:
        """Close the file; further blocks are dropped."""
        with self._lock, contextlib.suppress(OSError):
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1
            self.failure = self.failure or "closed"


def words(values: Sequence[int]) -> bytes:
    """Unsigned 64-bit words, little-endian."""
    packed = array("Q", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


class Trace:
    """A trace file opened for reading: the run's header, its streams, their sites and records.

    Only block headers are held in memory. Raises `TraceError`, in one line, for a file that is not a trace, is of
    another version, or was damaged. A file that ends in the middle of a block is read up to there, byte `sound`, and
    `truncated` says so.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.notes: list[dict[str, Any]] = []
        self.truncated = False
        self.sound = 0
        self._names: dict[int, dict[str, Any]] = {}
        self._blocks: dict[int, list[tuple[int, int]]] = {}
        self._definitions: dict[int, list[tuple[int, int]]] = {}
        self._footers: dict[int, dict[str, Any]] = {}
        try:
            with self.path.open("rb") as file:
                self._index(file)
        except OSError as error:
            raise TraceError(f"{self.path}: the trace cannot be read: {error.strerror}") from error
        if not self.header:
            raise TraceError(f"{self.path}: the trace is empty: the run ended before it began to record")

    def _index(self, file: Any) -> None:
        prologue = file.read(_PROLOGUE.size)
        if len(prologue) < _PROLOGUE.size or prologue[:8] != MAGIC:
            raise TraceError(f"{self.path}: not a trace of torchdet-lint")
        version = _PROLOGUE.unpack(prologue)[1]
        if version != VERSION:
            raise TraceError(f"{self.path}: trace version {version}; this torchdet-lint reads version {VERSION}")
        size = os.fstat(file.fileno()).st_size
        self.sound = file.tell()
        while header := file.read(_BLOCK.size):
            if len(header) < _BLOCK.size or file.tell() + _BLOCK.unpack(header)[2] > size:
                self.truncated = True
                return
            kind, stream, length, crc = _BLOCK.unpack(header)
            offset = file.tell()
            if kind == b"R":
                self._blocks.setdefault(stream, []).append((offset, length))
            elif kind == b"D":
                self._definitions.setdefault(stream, []).append((offset, length))
            elif kind in b"HSNF" and len(kind) == 1:
                self._meta(kind, stream, file.read(length), crc)
            else:
                raise TraceError(f"{self.path}: damaged at byte {offset - _BLOCK.size}")
            self.sound = file.seek(offset + length)

    def _meta(self, kind: bytes, stream: int, payload: bytes, crc: int) -> None:
        if zlib.crc32(payload) != crc:
            raise TraceError(f"{self.path}: damaged: a checksum does not match")
        value = json.loads(payload)
        if kind == b"H":
            self.header = self.header or value
        elif kind == b"S":
            self._names[stream] = value
        elif kind == b"N":
            self.notes.append(value)
        else:
            self._footers[stream] = value

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Every stream, the main one first, then in the order in which they began."""
        return tuple(
            Stream(
                number,
                about["kind"],
                about["name"],
                tuple(self._blocks.get(number, ())),
                tuple(self._definitions.get(number, ())),
                number in self._footers,
                int(self._footers.get(number, {}).get("records", -1)),
                about.get("role", "worker"),
            )
            for number, about in sorted(self._names.items())
        )

    @property
    def main(self) -> Stream:
        """The stream of the thread that the program began with."""
        return self.streams[0]

    def sites(self, stream: Stream) -> list[Site]:
        """The sites of a stream, by number."""
        rows: list[Site] = []
        with self.path.open("rb") as file:
            for offset, length in stream.definitions:
                file.seek(offset)
                rows.extend(Site(*row) for row in json.loads(file.read(length)))
        return rows

    def raw(self, stream: Stream, start: int = 0) -> Iterator[bytes]:
        """The record blocks of a stream from block `start` on, as bytes, with their checksums tested."""
        with self.path.open("rb") as file:
            for offset, length in stream.blocks[start:]:
                file.seek(offset - _BLOCK.size)
                crc = _BLOCK.unpack(file.read(_BLOCK.size))[3]
                payload = file.read(length)
                if zlib.crc32(payload) != crc:
                    raise TraceError(f"{self.path}: damaged at byte {offset}")
                yield payload

    def records(self, stream: Stream, start: int = 0) -> Iterator[Record]:
        """The records of a stream, in order, from block `start` on."""
        for payload in self.raw(stream, start):
            yield from decode(payload)


def unpack(payload: bytes) -> array[int]:
    """The words of one block of records."""
    block = array("Q")
    block.frombytes(payload)
    if sys.byteorder == "big":
        block.byteswap()
    return block


def decode(payload: bytes) -> Iterator[Record]:
    """The records of one block."""
    block = unpack(payload).tolist()
    position, end = 0, len(block)
    special = RANDOM | OUTSIDE | ARRIVED
    new = tuple.__new__
    while position < end:
        head = block[position]
        flags, start = head >> 48, position + 3
        position = start + (head >> 32 & 0xFFFF)
        seed = outside = arrival = None
        digests = tuple(block[start:position])
        if flags & special:
            if flags & RANDOM:
                seed = block[position]
                position += 1
            if flags & OUTSIDE:
                outside = tuple(block[position : position + 4])
                position += 4
            if flags & ARRIVED:
                arrival = block[position]
                position += 1
        fields = (head & 0xFFFFFFFF, flags, block[start - 2], block[start - 1], digests, seed, outside, arrival)
        yield new(Record, fields)


def part_of(path: Path, pid: int) -> Path:
    """Where the child `pid` of the run that writes `path` puts its streams."""
    return path.with_name(f"{path.name}.{pid}.part")


def parts_of(path: Path) -> list[Path]:
    """What child processes of the run that writes `path` have left."""
    own = re.compile(re.escape(path.name) + r"\.\d+\.part")
    return sorted(part for part in path.parent.glob("*.part") if own.fullmatch(part.name))


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
        out.write(_BLOCK.pack(kind, stream, len(payload), zlib.crc32(payload)) + payload)

    streams = trace.streams
    called = next((stream.name for stream in streams if stream.kind == "process"), "")
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
        for payload in trace.raw(stream):
            put(b"R", base + stream.number, payload)
        if stream.complete:
            put(b"F", base + stream.number, json.dumps({"records": stream.records}).encode())
    for note in trace.notes:
        put(b"N", base, json.dumps(note).encode())
    return base + max((stream.number for stream in streams), default=0) + 1
