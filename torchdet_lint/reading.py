"""A path -> the bytes of the file, if it is a regular one of a size that can be meant."""

from __future__ import annotations

import errno
import os
import stat

LARGEST = 1 << 28
LARGEST_CONFIGURATION = 1 << 22


def read(path: str, largest: int = LARGEST) -> bytes:
    """The bytes of `path`. Raises `OSError`, for what is no regular file and for more than `largest` bytes too."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb", buffering=0) as stream:
        now = os.fstat(stream.fileno())
        if stat.S_ISDIR(now.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        if not stat.S_ISREG(now.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        data = b"" if now.st_size > largest else stream.read(now.st_size + 1) or b""
        while data and len(data) > now.st_size and len(data) <= largest:
            more = stream.read(len(data) + 1)
            if not more:
                break
            data += more
        if max(len(data), now.st_size) > largest:
            raise OSError(errno.EFBIG, f"larger than {largest >> 20} megabytes", path)
        return data


def text(path: str) -> str:
    """The text of a file that is no source: a configuration, requirements. Raises `OSError`.

    Bytes that are not UTF-8 become the replacement character.
    """
    return read(path, LARGEST_CONFIGURATION).decode("utf-8", "replace")
