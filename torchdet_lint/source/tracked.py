"""The index of a git repository -> the files of Python that git tracks, whatever `.gitignore` says of them."""

from __future__ import annotations

import os
from typing import NamedTuple

from torchdet_lint.reading import read

_HEADER = 12
_FIXED = 40  # an entry's times, inode, mode, owner and size
_EXTENDED = 0x4000
_HASHES = {"sha1": 20, "sha256": 32}


class Tracked(NamedTuple):
    """The absolute paths of the tracked files, and of the folders that hold one."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


def tracked(top: str, suffixes: tuple[str, ...]) -> Tracked:
    """What the index of the repository whose work tree begins at `top` lists, of files with one of `suffixes`.

    Nothing for a repository without an index, and for an index of a form that is not understood. git is not started:
    what a repository configures could make it run a program.
    """
    try:
        folder = _folder(top)
        names = _names(read(os.path.join(folder, "index")), _hash_size(folder))
    except (OSError, ValueError, IndexError):
        return Tracked()
    endings = tuple(map(os.fsencode, suffixes))
    files = {f"{top}/{os.fsdecode(name)}" for name in names if name.endswith(endings)}
    folders: set[str] = set()
    for path in files:
        above = os.path.dirname(path)
        while above not in folders and len(above) > len(top):
            folders.add(above)
            above = os.path.dirname(above)
    return Tracked(frozenset(files), frozenset(folders))


def _folder(top: str) -> str:
    """The folder of git's own files: a work tree beside the first one, or a submodule, has a file that names it."""
    own = os.path.join(top, ".git")
    if os.path.isdir(own):
        return own
    key, _, value = os.fsdecode(read(own)).partition(":")
    if key != "gitdir":
        raise ValueError(own)
    return os.path.join(top, value.strip())


def _hash_size(folder: str) -> int:
    """How long the hashes are by which a repository names objects, whose own files are in `folder`."""
    try:
        text = os.fsdecode(read(os.path.join(folder, "config"))).lower()
    except OSError:
        return _HASHES["sha1"]
    lines = ("".join(line.split()) for line in text.splitlines())
    return _HASHES["sha256" if "objectformat=sha256" in lines else "sha1"]


def _names(data: bytes, hash_size: int) -> list[bytes]:
    """The paths in an index of version 2, 3 or 4, in its order. Raises `ValueError` and `IndexError` for anything else.

    Of a split index only the entries that this file holds are known.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index")
    names: list[bytes] = []
    name = b""
    at = _HEADER
    for _ in range(int.from_bytes(data[8:12], "big")):
        begin = at
        at += _FIXED + hash_size
        at += 4 if int.from_bytes(data[at : at + 2], "big") & _EXTENDED else 2
        if version == 4:
            dropped, at = _number(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - dropped] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            name = data[at:end]
            at = begin + (end - begin + 8) // 8 * 8
        names.append(name)
    return names


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at `at`, as git packs offsets, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | (data[at] & 0x7F)
    return value, at + 1
