"""What one run did, op by op <-> blocks of bytes and records: the trace file's format.

A file is the magic, the version, and blocks. A block is a header of 16 bytes (kind, stream, length and crc32 of the
payload, little-endian) and its payload: JSON for `H` (the run), `S` (a stream begins), `D` (further sites of a
stream), `N` (a note), `T` (marks of a stream: an optimizer's steps, losses, passes over a loader, tasks) and `F` (a
stream ended well), unsigned 64-bit words for `R` (records). A stream is one thread of one process.

A record is `head, scalars, inputs, digest…, extra…`: the head holds the number of the site (32 bits), the number of
digests (16) and the flags (16); `scalars` and `inputs` digest the Python numbers and the tensors that the op read.
Extra words follow in the order of the flags: `RANDOM` the initial seed of the generator drawn from; `OUTSIDE` the
digest of what came from outside torch, and the digests of the generators of `random`, NumPy and torch; `ARRIVED` the
site where a worker's batch was received, or, with `UNWRITTEN`, where the memory was allocated.
"""

from __future__ import annotations

import re
import struct
import sys
from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MAGIC = b"TDTRACE\n"
VERSION = 1
_WORD, _HALF = (1 << 64) - 1, (1 << 32) - 1
SUFFIX = ".tdtrace"
BATCH = "loader.batch"
"""The op under which a batch from workers is recorded, where the program takes it."""
REGION = "inductor.region"
"""The op under which a call of what torch.compile has compiled is recorded."""
GRAPH = "cuda.graph"
"""The op under which a replay of a CUDA graph is recorded."""
KERNEL = "triton"
"""How the op begins under which a kernel of Triton is recorded: `triton.add_kernel`."""
HANDED = "tensor.numpy"
"""The op under which a tensor is recorded that NumPy is handed to read."""
UPDATE = "optim"
"""How the op begins under which an optimizer's update of all parameters is recorded: `optim.adam`."""
CHECK = "constraints"
"""How the op begins under which a check of a distribution's values is recorded: `constraints.simplex`."""
BLOCK = struct.Struct("<cxxxIII")
RECORD, DRAWN = struct.Struct("<IHHqqQ"), struct.Struct("<IHHqqQQ")
ALLOCATED, TAKEN = struct.Struct("<IHHqq"), struct.Struct("<IHHqqQ4Q")
"""A record of one digest without extra words: site, number of digests, flags, `scalars` and `inputs` as `hash` gives
them, digest; of an op that drew random numbers the seed after it. A record of memory that is handed out, which has no
digest; of a value that comes from outside, with the four words for that.
"""
PROLOGUE = struct.Struct("<8sI")

(
    RANDOM, OUTSIDE, ARRIVED, UNWRITTEN, UNSEEDED, PYTHON_USED, NUMPY_USED, TORCH_USED, DRAWN_FROM_OWN, SCRATCH, SHARED,
    NUMPY_WROTE,
) = (1 << bit for bit in range(12))  # fmt: skip
"""Flags of a record: drew random numbers (with the seed); read data from outside torch; that data came from a worker;
read memory that nothing had written; the generator was never seeded by the program; the three global generators were
used since the process began; the generator drawn from was passed, not global; wrote into memory of which a
part was never written; the data from outside lies in memory that processes share; the memory that no op had written
NumPy had, at least in part.
"""


class TraceError(Exception):
    """A trace that cannot be written or read; the text is one line that names the file and the reason."""


class Site(NamedTuple):
    """One op at one place: `phase` is forward, backward, optimizer, data, split, init or load (inside `torch.load`);
    `file` is empty where no line is known.

    `forward_file` and `forward_line` are those of the forward op, for a backward op; `forward_op` its name. `text` is
    the line of source, as far as it can be read.
    """

    op: str
    phase: str
    file: str
    line: int
    function: str
    forward_op: str = ""
    forward_file: str = ""
    forward_line: int = 0
    text: str = ""

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


class Mark(NamedTuple):
    """Something of the program's progress, after `at` records of a stream.

    `kind` is `step` (`number` steps of the optimizer `name` were made), `loss` (`value` is what `backward` was called
    on, at the place `name`), `pass` (the pass `number` over the loader `name` begins), `expected` (a block that may
    differ, for the reason `name`, begins or, with `number` 0, ends) or `task` (the task `name` of asyncio made the
    `number` records from `at` on). A run that goes in lockstep with another has the mark `followed` at its beginning;
    after the record `at` it went on with the other's values (`replaced`), or made what the other made at another time
    (`reordered`), or goes on by itself from then on, for the reason `name` (`unfollowed`). `number` is 0 where it had
    read what was made at another time.
    """

    at: int
    kind: str
    number: int
    value: float
    name: str


class Stream(NamedTuple):
    """One thread of one process: `kind` is main, thread or process; `complete` says that it was closed in order.

    `role` is `worker` for a process or a thread that takes its tasks from a queue, which leaves open who does what.
    """

    number: int
    kind: str
    name: str
    blocks: tuple[tuple[int, int], ...]
    definitions: tuple[tuple[int, int], ...]
    complete: bool
    records: int
    role: str = "worker"
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def called(self) -> str:
        """What it is called in a report; the name of a thread says that it is one."""
        return f"process {self.name}" if self.kind == "process" else self.name


def record(site: int, flags: int, scalars: int, inputs: int, digests: Sequence[int], extra: Sequence[int]) -> bytes:
    """The bytes of a record; `scalars` and `inputs` may be what `hash` gives, which has a sign."""
    layout = f"<IHHQQ{len(digests) + len(extra)}Q"
    return struct.pack(layout, site, len(digests), flags, scalars & _WORD, inputs & _WORD, *digests, *extra)


def digest_of_several(ordered: int, digests: Iterable[int]) -> int:
    """The digest of data that came in together: `ordered` in its upper half, and below what their order says nothing
    to.
    """
    return ordered & ~_HALF & _WORD | sum(digests) & _HALF


def in_another_order(one: int, two: int) -> bool:
    """Whether two digests of data that came in are of the same data in another order."""
    return one != two and one & _HALF == two & _HALF


def words(values: Sequence[int]) -> bytes:
    """Unsigned 64-bit words, little-endian."""
    packed = array("Q", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack(payload: bytes, name: object = "the trace") -> array[int]:
    """The words of one block of records, of the trace file `name`. Raises `TraceError`."""
    block = array("Q")
    if len(payload) % block.itemsize:
        raise TraceError(f"{name}: damaged: a block of records ends within a word")
    block.frombytes(payload)
    if sys.byteorder == "big":
        block.byteswap()
    return block


def decode(payload: bytes, sites: int = 1 << 32, name: object = "the trace") -> Iterator[Record]:
    """The records of one block of the trace file `name`, in a stream of `sites` sites. Raises `TraceError`."""
    block = unpack(payload, name).tolist()
    position, end = 0, len(block)
    block += [0] * 6  # what a record at the end may have too little of
    special = RANDOM | OUTSIDE | ARRIVED
    new = tuple.__new__
    while position < end:
        head = block[position]
        flags, start = head >> 48, position + 3
        position = start + (head >> 32 & 0xFFFF)
        seed = outside = arrival = None
        digests = tuple(block[start:position])
        if flags & special and position <= end:
            if flags & RANDOM:
                seed = block[position]
                position += 1
            if flags & OUTSIDE:
                outside = tuple(block[position : position + 4])
                position += 4
            if flags & ARRIVED:
                arrival = block[position]
                position += 1
        site = head & 0xFFFFFFFF
        if position > end or site >= sites or (arrival is not None and arrival >= sites):
            raise TraceError(f"{name}: damaged: a record that is cut off, or of no site")
        fields = (site, flags, block[start - 2], block[start - 1], digests, seed, outside, arrival)
        yield new(Record, fields)


def decode_heads(payload: bytes, name: object = "the trace") -> Iterator[int]:
    """The first word of every record of a block of the trace file `name`. Raises `TraceError`."""
    block = unpack(payload, name)
    position, end = 0, len(block)
    while position < end:
        head = block[position]
        flags = head >> 48
        yield head
        position += 3 + (head >> 32 & 0xFFFF)
        if flags & 7:
            position += bool(flags & RANDOM) + 4 * bool(flags & OUTSIDE) + bool(flags & ARRIVED)


def part_of(path: Path, pid: int) -> Path:
    """Where the child `pid` of the run that writes `path` puts its streams."""
    return path.with_name(f"{path.name}.{pid}.part")


def parts_of(path: Path) -> list[Path]:
    """What child processes of the run that writes `path` have left."""
    own = re.compile(re.escape(path.name) + r"\.\d+\.part")
    return sorted(part for part in path.parent.glob("*.part") if own.fullmatch(part.name))
