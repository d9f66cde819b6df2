"""What one run made at each of its records <-> a file of rows, read in order: the record, and the tensors with it.

A row is the number of a stream, three lengths, the bytes of the record, what is told of the tensors, and their elements
one behind the other. The rows of all threads stand in one file, as they came. They end with the run, or where there is
no room for more.
"""

from __future__ import annotations

import os
import shutil
import struct
import threading
from array import array
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.verifier.trace import Record, Site, decode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_BYTES = 1 << 32
"""How large the file becomes at most; a quarter of what is free on the disk where that is less."""
_HEAD = struct.Struct("<IIIQ")
_SHARE = 4
_NO_MORE = "what run A made is kept no further: no room was left for more, or it ended there"
_NONE = "run A kept nothing that this thread made"


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What is told of one tensor: its elements have `size` bytes, -1 where they are not kept. `owner` is what was known
    of its memory after the op, `before` that before an op which wrote it in place; None where nothing was.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    size: int
    owner: int | None = None
    before: int | None = None


class Told(msgspec.Struct, frozen=True, array_like=True):
    """What is told of a record beside its bytes: its site where that is a new one, and what it made. `numbers` are what
    it gave to Python, or digests of texts and arrays; `leaves` are tensors that it read and no op had made. The first
    of a stream tells what the `stream` is called.
    """

    site: Site | None
    made: tuple[Kept, ...]
    leaves: tuple[Kept, ...]
    numbers: tuple[bool | int | float | str, ...] = ()
    stream: str = ""


class Row(NamedTuple):
    """One row; `at` is where the elements of its tensors begin in the file."""

    record: bytes
    told: Told
    at: int


_DECODER = msgspec.msgpack.Decoder(Told)


class Writer:
    """Writes rows as the program goes on. Nothing waits in a buffer: a program may end without its exit handlers."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._left = min(MOST_BYTES, shutil.disk_usage(path.parent).free // _SHARE)
        self._streams: dict[str, int] = {}
        self._lock = threading.Lock()

    def write(self, stream: str, record: bytes, told: Told, elements: Sequence[bytes]) -> bool:
        """Whether there was room for the row."""
        with self._lock:
            number = self._streams.setdefault(stream, len(self._streams))
            about = msgspec.msgpack.encode(msgspec.structs.replace(told, stream=stream if told.site else ""))
            size = sum(map(len, elements))
            self._left -= _HEAD.size + len(record) + len(about) + size
            if self._left < 0:
                return False
            for part in (_HEAD.pack(number, len(record), len(about), size) + record + about, *elements):
                rest = memoryview(part)
                while rest:
                    rest = rest[self._file.write(rest) :]
            return True


class Rows:
    """What a whole run kept. `works` is what it did, in whichever order and thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begins: dict[str, array[int]] = {}
        self._sites: dict[str, dict[int, Site]] = {}
        self.works = frozenset(self._look())

    def of(self, stream: str) -> Reader:
        """The rows of one stream: none, where the run had no thread of that name."""
        return Reader(self._path, self._begins.get(stream, array("Q")), self._sites.get(stream, {}))

    def _look(self) -> set[int]:
        """Note where the rows of each stream begin."""
        names: dict[int, str] = {}
        works = set()
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                number, record, about, elements = _HEAD.unpack(head)
                begin = file.tell() - _HEAD.size
                if file.tell() + record + about + elements > size:
                    break
                found, told = record_of(file.read(record)), _DECODER.decode(file.read(about))
                name = names.setdefault(number, told.stream)
                self._begins.setdefault(name, array("Q")).append(begin)
                sites = self._sites.setdefault(name, {})
                if told.site is not None:
                    sites[found.site] = Site(*told.site)
                works.add(work_of(sites[found.site], found))
                file.seek(elements, 1)
        return works


class Reader:
    """Reads the rows of one stream in order, and the elements of those that are asked for."""

    def __init__(self, path: Path, begins: array[int], sites: dict[int, Site]) -> None:
        self._file = path.open("rb")
        self._begins = begins
        self._at = 0
        self.sites = sites
        self.ended = _NO_MORE if begins else _NONE

    def next(self) -> Row | None:
        """The next row; None behind the last."""
        if self._at == len(self._begins):
            return None
        self._file.seek(self._begins[self._at])
        self._at += 1
        _, record, about, _ = _HEAD.unpack(self._file.read(_HEAD.size))
        return Row(self._file.read(record), _DECODER.decode(self._file.read(about)), self._file.tell())

    def elements(self, row: Row) -> list[bytes]:
        """The elements of every tensor of a row, in order; empty where they are not kept."""
        self._file.seek(row.at)
        return [self._file.read(max(kept.size, 0)) for kept in (*row.told.made, *row.told.leaves)]


def record_of(payload: bytes) -> Record:
    """The one record in some bytes."""
    return next(iter(decode(payload)))


def work_of(site: Site, record: Record) -> int:
    """What an op at `site` did, whenever it did it: a digest of where, and of what it read and made."""
    return hash((site, record.scalars, record.inputs, record.digests))
