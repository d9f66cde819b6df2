"""Files and their content -> what earlier runs found: plain JSON, replaced atomically, rebuilt when it is broken.

A cache folder is one that this program made: it is no link and holds the marker. Nothing in any other folder is read,
written or removed, and in a cache folder nothing but files with the cache's own names.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from torchdet_lint.regex import lazy
from torchdet_lint.source.writing import put

if TYPE_CHECKING:
    from collections.abc import Iterable

    Kind = Literal["files", "project", "summaries"]

T = TypeVar("T")

_KEPT_SECONDS = 30 * 24 * 3600
_MARKER = ".gitignore"
_README = b"# Made by torchdet-lint; safe to delete.\n*\n"
_LARGEST = 1 << 28
_OWN = lazy(r"(?:files|project|summaries)-[0-9a-f]{32}\.json(?:\.(?:\d+-)?[0-9a-f]{16}\.part)?")
_PART_OF_MARKER = lazy(re.escape(_MARKER) + r"\.(?:\d+-)?[0-9a-f]{16}\.part")


class _Entry(msgspec.Struct, array_like=True):
    """The hash of a file's bytes, what was recorded for them, and the hash of both together with the path."""

    content: str
    record: msgspec.Raw
    check: str


class Cache:
    """The entries of one project under one set of rules and settings: one file, read once and written once.

    Two runs at once are safe: each reads a whole file and replaces it by a whole file, and the later one adds what it
    found to what the earlier one wrote.
    """

    def __init__(self, folder: str, key: Iterable[str], kind: Kind = "files") -> None:
        """`folder` is the cache folder ("": keep nothing); `key` is all that the records depend on besides content."""
        digest = hashlib.blake2b("\0".join(key).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        self.folder = folder
        self.path = os.path.join(folder, f"{kind}-{digest}.json") if folder else ""
        self._entries = self._read()
        self._new: dict[str, _Entry] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def get(self, path: str, content: str) -> bytes | None:
        """The record of the file `path`, if its content still has the hash `content`."""
        entry = self._entries.get(path)
        if entry is None or entry.content != content:
            return None
        record = bytes(entry.record)
        return record if entry.check == _check(path, content, record) else None

    def put(self, path: str, content: str, record: bytes) -> None:
        """Remember `record`, JSON, for the file `path`."""
        self._new[path] = _Entry(content, msgspec.Raw(record), _check(path, content, record))

    def save(self) -> None:
        """Write what is new. A folder that cannot be written is no error: the next run is only slower."""
        if not self._new or not self.path:
            return
        entries = {path: entry for path, entry in self._read().items() if os.path.exists(path)}
        entries.update(self._new)
        try:
            if not _marked(self.folder) and not _claimed(self.folder):
                return
            put(self.path, msgspec.json.encode(dict(sorted(entries.items()))))
            self._prune()
        except OSError:
            return
        self._entries, self._new = entries, {}

    def _read(self) -> dict[str, _Entry]:
        if not self.path or not _marked(self.folder):
            return {}
        return decoded(_content(self.path, _LARGEST), dict[str, _Entry]) or {}

    def _prune(self) -> None:
        """Remove the files of rules and settings that were not used for a month, and what a crash left behind."""
        oldest = time.time() - _KEPT_SECONDS
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not _OWN.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                    continue
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)


def refusal(folder: str) -> str:
    """Why the folder is not used as a cache, in a few words; empty where it is used."""
    try:
        mode = os.lstat(folder).st_mode
        if stat.S_ISLNK(mode):
            return "a link"
        if not stat.S_ISDIR(mode):
            return "not a folder"
        return "" if _marked(folder) or _empty(folder) else "holds files that are not the cache's"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return (error.strerror or str(error)).lower()


def decoded(data: bytes | None, kind: type[T]) -> T | None:
    """The JSON `data` as a `kind`; None for anything else."""
    try:
        return msgspec.json.decode(data, type=kind) if data is not None else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def encoded(value: Any) -> bytes | None:
    """`value` as JSON; None where it holds text that is no Unicode, such as half a surrogate pair."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return None


def _check(path: str, content: str, record: bytes) -> str:
    told = f"{len(path)} {path}{content}".encode(errors="surrogateescape")
    return hashlib.blake2b(told + record, digest_size=8).hexdigest()


def _marked(folder: str) -> bool:
    """Whether `folder` is one that this program made."""
    with contextlib.suppress(OSError):
        marker = os.path.join(folder, _MARKER)
        return stat.S_ISDIR(os.lstat(folder).st_mode) and _content(marker, len(_README)) == _README
    return False


def _empty(folder: str) -> bool:
    """Whether nothing is in `folder` but what a run that was killed here may have left."""
    return all(_PART_OF_MARKER.fullmatch(name) for name in os.listdir(folder))


def _claimed(folder: str) -> bool:
    """Make `folder` a cache folder if it is new or empty; whether it is one now."""
    os.makedirs(folder, exist_ok=True)
    if refusal(folder):
        return False
    put(os.path.join(folder, _MARKER), _README)
    return True


def _content(path: str, most: int) -> bytes | None:
    """The bytes of a regular file of at most `most` bytes, which is no link; else None."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb", buffering=0) as stream:
            now = os.fstat(stream.fileno())
            return stream.read() if stat.S_ISREG(now.st_mode) and now.st_size <= most else None
    except OSError:
        return None


def content_hash(data: bytes) -> str:
    """The hash that stands for a file's bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def interpreter() -> str:
    """The Python that a record depends on: its parser decides what is a syntax error."""
    return ".".join(map(str, sys.version_info[:3]))
