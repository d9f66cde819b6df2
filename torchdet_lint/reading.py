"""A path -> the bytes of the file."""

from __future__ import annotations


def read(path: str) -> bytes:
    """The bytes of `path`. Raises `OSError`."""
    with open(path, "rb", buffering=0) as stream:
        return stream.read()
