"""A trace file -> its header, streams, sites and records, in bounded memory."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.trace.format import (
    BLOCK,
    MAGIC,
    PROLOGUE,
    VERSION,
    Mark,
    Record,
    Site,
    Stream,
    TraceError,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


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
        self._marks: dict[int, list[tuple[int, int]]] = {}
        self._footers: dict[int, dict[str, Any]] = {}
        try:
            with self.path.open("rb") as file:
                self._index(file)
        except OSError as error:
            raise TraceError(f"{self.path}: the trace cannot be read: {error.strerror}") from error
        if not self.header:
            raise TraceError(f"{self.path}: the trace is empty: the run ended before it began to record")

    def _index(self, file: Any) -> None:
        prologue = file.read(PROLOGUE.size)
        if len(prologue) < PROLOGUE.size or prologue[:8] != MAGIC:
            raise TraceError(f"{self.path}: not a trace of torchdet-lint")
        version = PROLOGUE.unpack(prologue)[1]
        if version != VERSION:
            raise TraceError(f"{self.path}: trace version {version}; this torchdet-lint reads version {VERSION}")
        size = os.fstat(file.fileno()).st_size
        self.sound = file.tell()
        while header := file.read(BLOCK.size):
            if len(header) < BLOCK.size or file.tell() + BLOCK.unpack(header)[2] > size:
                self.truncated = True
                return
            kind, stream, length, crc = BLOCK.unpack(header)
            offset = file.tell()
            if kind == b"R":
                self._blocks.setdefault(stream, []).append((offset, length))
            elif kind == b"D":
                self._definitions.setdefault(stream, []).append((offset, length))
            elif kind == b"T":
                self._marks.setdefault(stream, []).append((offset, length))
            elif kind in b"HSNF" and len(kind) == 1:
                self._meta(kind, stream, file.read(length), crc)
            else:
                raise TraceError(f"{self.path}: damaged at byte {offset - BLOCK.size}")
            self.sound = file.seek(offset + length)

    def _meta(self, kind: bytes, stream: int, payload: bytes, crc: int) -> None:
        if zlib.crc32(payload) != crc:
            raise TraceError(f"{self.path}: damaged: a checksum does not match")
        value = self._told(payload)
        if not _FITS[kind](value):
            raise TraceError(f"{self.path}: damaged: a block does not hold what it should")
        if kind == b"H":
            self.header = self.header or value
        elif kind == b"S":
            self._names[stream] = value
        elif kind == b"N":
            self.notes.append(value)
        else:
            self._footers[stream] = value

    def _told(self, payload: bytes) -> Any:
        try:
            return json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: damaged: a block is not JSON") from error

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
                tuple(self._marks.get(number, ())),
            )
            for number, about in sorted(self._names.items())
        )

    @property
    def main(self) -> Stream:
        """The stream of the thread that the program began with."""
        if not self._names:
            raise TraceError(f"{self.path}: the trace is empty: no thread of the run recorded anything")
        return self.streams[0]

    @property
    def generators(self) -> tuple[int, ...]:
        """Digests of the generators of `random`, NumPy and torch at the end of the main stream, 0 for one that was not
        used; empty where that is not known.
        """
        return tuple(self._footers.get(self.main.number, {}).get("generators", ()))

    def sites(self, stream: Stream) -> list[Site]:
        """The sites of a stream, by number."""
        return [Site(*row) for row in self._rows(stream.definitions, _is_site)]

    def _rows(self, blocks: Iterable[tuple[int, int]], fits: Callable[[Any], bool]) -> Iterator[Any]:
        with self.path.open("rb") as file:
            for offset, length in blocks:
                file.seek(offset)
                told = self._told(file.read(length))
                if not isinstance(told, list) or not all(map(fits, told)):
                    raise TraceError(f"{self.path}: damaged at byte {offset}")
                yield from told

    def marks(self, stream: Stream) -> list[Mark]:
        """The marks of a stream, in order."""
        return [Mark(*row) for row in self._rows(stream.marks, _is_mark)]

    def raw(self, stream: Stream, start: int = 0) -> Iterator[bytes]:
        """The record blocks of a stream from block `start` on, as bytes, with their checksums tested."""
        with self.path.open("rb") as file:
            for offset, length in stream.blocks[start:]:
                file.seek(offset - BLOCK.size)
                crc = BLOCK.unpack(file.read(BLOCK.size))[3]
                payload = file.read(length)
                if zlib.crc32(payload) != crc:
                    raise TraceError(f"{self.path}: damaged at byte {offset}")
                yield payload

    def records(self, stream: Stream, start: int = 0) -> Iterator[Record]:
        """The records of a stream, in order, from block `start` on."""
        known = len(self.sites(stream))
        for payload in self.raw(stream, start):
            yield from decode(payload, known, self.path)


def _is_header(value: Any) -> bool:
    """Whether it describes a run: its environment is a table, the variables in it too."""
    environment = value.get("environment", {}) if isinstance(value, dict) else None
    return isinstance(environment, dict) and isinstance(environment.get("variables", {}), dict)


def _is_stream(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key, default), str) for key, default in (("kind", None), ("name", None), ("role", ""))
    )


def _is_footer(value: Any) -> bool:
    states = value.get("generators", []) if isinstance(value, dict) else None
    numbers = isinstance(states, list) and all(isinstance(one, int) for one in states)
    return numbers and isinstance(value.get("records", -1), int)


def _is_site(row: Any) -> bool:
    kinds = (str, str, str, int, str, str, str, int, str)
    return isinstance(row, list) and 5 <= len(row) <= len(kinds) and all(map(isinstance, row, kinds))


def _is_mark(row: Any) -> bool:
    kinds = (int, str, int, float, str)
    row = [*row[:3], float(row[3]), *row[4:]] if isinstance(row, list) and row[3:4] and type(row[3]) is int else row
    return isinstance(row, list) and len(row) == len(kinds) and all(map(isinstance, row, kinds))


_FITS: dict[bytes, Callable[[Any], bool]] = {
    b"H": _is_header,
    b"S": _is_stream,
    b"N": lambda value: isinstance(value, dict),
    b"F": _is_footer,
}
