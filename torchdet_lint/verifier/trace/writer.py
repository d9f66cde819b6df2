"""Blocks -> a trace file, appended as the run goes."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any

from torchdet_lint.verifier.trace.format import BLOCK, MAGIC, PROLOGUE, VERSION, TraceError

_FOREIGN = "exists, is no trace of torchdet-lint, and is not written over"


def unwritable(path: Path, magic: bytes = MAGIC) -> str:
    """Why no file that begins with `magic` may be written to `path`, in a few words; empty where one may. A file of
    another kind is left."""
    try:
        if path.is_dir():
            return "a folder"
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            return "no permission to write it"
        if _foreign(path, magic):
            return _FOREIGN
    except OSError as error:
        return str(error.strerror)
    return ""


def _foreign(path: Path, magic: bytes) -> bool:
    """Whether `path` is a file with something in it that does not begin with `magic`."""
    try:
        if not path.is_file() or not path.stat().st_size:
            return False
        with path.open("rb") as opened:
            return opened.read(len(magic)) != magic
    except PermissionError:
        return True


class Writer:
    """Appends blocks to a trace file. Safe to use from several threads; a process that forks opens another one.

    A disk that is full, or a descriptor that the program closed, never reaches the program: `failure` then holds the
    reason, and what follows is not recorded.
    """

    def __init__(self, path: Path, magic: bytes = MAGIC, version: int = VERSION) -> None:
        self.path = path
        self.failure = ""
        if _foreign(Path(path), magic):
            raise TraceError(f"{path}: the trace cannot be written: the file {_FOREIGN}")
        self._lock = threading.Lock()
        self._streams = 0
        try:
            self._descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666
            )
        except OSError as error:
            raise TraceError(f"{path}: the trace cannot be written: {error.strerror}") from error
        self._put(PROLOGUE.pack(magic, version))

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
        header = BLOCK.pack(kind, stream, len(payload), zlib.crc32(payload))
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
