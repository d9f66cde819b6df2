"""What earlier runs found, by the content of the files: plain JSON, replaced atomically, rebuilt when it is broken."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEPT_SECONDS = 30 * 24 * 3600
_README = "# Made by torchdet-lint; safe to delete.\n*\n"


class _Entry(msgspec.Struct, array_like=True):
    """The hash of a file's bytes, and what was recorded for them."""

    content: str
    record: msgspec.Raw


class Cache:
    """The entries of one project under one set of rules and settings: one file, read once and written once.

    Two runs at once are safe: each reads a whole file and replaces it by a whole file, and the later one adds what it
    found to what the earlier one wrote.
    """

    def __init__(self, folder: str, key: Iterable[str]) -> None:
        """`folder` is the cache folder ("": keep nothing); `key` is all that the records depend on besides content."""
        digest = hashlib.blake2b("\0".join(key).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        self.folder = folder
        self.path = os.path.join(folder, f"{digest}.json") if folder else ""
        self._entries = self._read()
        self._new: dict[str, _Entry] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def get(self, path: str, content: str) -> bytes | None:
        """The record of the file `path`, if its content still has the hash `content`."""
        entry = self._entries.get(path)
        return bytes(entry.record) if entry is not None and entry.content == content else None

    def put(self, path: str, content: str, record: bytes) -> None:
        """Remember `record`, JSON, for the file `path`."""
        self._new[path] = _Entry(content, msgspec.Raw(record))

    def save(self) -> None:
        """Write what is new. A folder that cannot be written is no error: the next run is only slower."""
        if not self._new or not self.path:
            return
        entries = {path: entry for path, entry in self._read().items() if os.path.exists(path)}
        entries.update(self._new)
        part = f"{self.path}.{os.getpid()}.part"
        try:
            if not os.path.isdir(self.folder):
                os.makedirs(self.folder, exist_ok=True)
                with open(os.path.join(self.folder, ".gitignore"), "w", encoding="utf-8") as stream:
                    stream.write(_README)
            with open(part, "wb") as stream:
                stream.write(msgspec.json.encode(dict(sorted(entries.items()))))
            os.replace(part, self.path)
            self._prune()
        except OSError:
            return
        self._entries, self._new = entries, {}

    def _read(self) -> dict[str, _Entry]:
        if not self.path:
            return {}
        try:
            with open(self.path, "rb") as stream:
                return msgspec.json.decode(stream.read(), type=dict[str, _Entry])
        except (OSError, msgspec.DecodeError):
            return {}

    def _prune(self) -> None:
        """Remove the files of rules and settings that nobody has asked for in a month, and what a crash left behind."""
        oldest = time.time() - _KEPT_SECONDS
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith((".json", ".part")) and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)


def content_hash(data: bytes) -> str:
    """The hash that stands for a file's bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def interpreter() -> str:
    """The Python that a record depends on: its parser decides what is a syntax error."""
    return ".".join(map(str, sys.version_info[:3]))
