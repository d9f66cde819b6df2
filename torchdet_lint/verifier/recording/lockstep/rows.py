"""What one run made at each of its records <-> a file of rows, read in order: the record, and the tensors with it.

A row is three lengths, the bytes of the record, what is told of the tensors, and their elements one behind the other.
The rows end with the run, or where there is no room for more.
"""

from __future__ import annotations

import os
import shutil
import struct
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.verifier.trace import Record, Site, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST_BYTES = 1 << 32
"""How large the file becomes at most; a quarter of what is free on the disk where that is less."""
_LENGTHS = struct.Struct("<IIQ")
_SHARE = 4


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
    it gave to Python, or digests of texts and arrays; `leaves` are tensors that it read and no op had made.
    """

    site: Site | None
    made: tuple[Kept, ...]
    leaves: tuple[Kept, ...]
    numbers: tuple[bool | int | float | str, ...] = ()


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

    def write(self, record: bytes, told: Told, elements: Sequence[bytes]) -> bool:
        """Whether there was room for the row."""
        about = msgspec.msgpack.encode(told)
        size = sum(map(len, elements))
        self._left -= _LENGTHS.size + len(record) + len(about) + size
        if self._left < 0:
            return False
        for part in (_LENGTHS.pack(len(record), len(about), size) + record + about, *elements):
            rest = memoryview(part)
            while rest:
                rest = rest[self._file.write(rest) :]
        return True


class Reader:
    """Reads rows in order, and the elements of those that are asked for."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._size = os.fstat(self._file.fileno()).st_size
        self.sites: dict[int, Site] = {}
        """The sites of the rows so far, by number."""
        self.works = frozenset(map(work_of, self._records()))
        """What the whole run did, in whichever order."""
        self._file.seek(0)

    def _records(self) -> Iterator[Record]:
        while (row := self.next()) is not None:
            yield record_of(row.record)

    def next(self) -> Row | None:
        """The next row; None behind the last whole one."""
        head = self._file.read(_LENGTHS.size)
        if len(head) < _LENGTHS.size:
            return None
        record, about, size = _LENGTHS.unpack(head)
        if self._file.tell() + record + about + size > self._size:
            return None
        row = Row(self._file.read(record), _DECODER.decode(self._file.read(about)), self._file.tell())
        self._file.seek(size, 1)
        if row.told.site is not None:
            self.sites[record_of(row.record).site] = Site(*row.told.site)
        return row

    def elements(self, row: Row) -> list[bytes]:
        """The elements of every tensor of a row, in order; empty where they are not kept."""
        back = self._file.tell()
        self._file.seek(row.at)
        found = [self._file.read(max(kept.size, 0)) for kept in (*row.told.made, *row.told.leaves)]
        self._file.seek(back)
        return found


def record_of(payload: bytes) -> Record:
    """The one record in some bytes."""
    return next(iter(decode(payload)))


def work_of(record: Record) -> int:
    """What an op did, whenever it did it: a digest of its site, and of what it read and made."""
    return hash((record.site, record.scalars, record.inputs, record.digests))
