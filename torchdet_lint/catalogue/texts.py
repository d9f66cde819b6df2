"""The folder of the rules, and files of the user's -> their texts and a fingerprint of them; nothing is parsed."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint import reading

if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKAGE = Path(__file__).parents[1]
_PACKAGED = _PACKAGE / "rules"
RULES_DIRECTORY = _PACKAGED if _PACKAGED.is_dir() else _PACKAGE.parent / "rules"


class CatalogueError(Exception):
    """A rule file that cannot be read; the text names the file and what is wrong with it."""


def fingerprint(extra: Iterable[Path] = ()) -> str:
    """The fingerprint that `load(extra=extra)` would have, without parsing anything.

    Raises `CatalogueError` for a file that cannot be read.
    """
    return _added(_digest_of_shipped().copy(), read(extra)).hexdigest()


def fingerprint_of(texts: Iterable[tuple[Path, str]]) -> str:
    """A hash of the names and texts of `read`: 32 characters of ASCII."""
    return _added(hashlib.blake2b(digest_size=16), texts).hexdigest()


@functools.cache
def _digest_of_shipped() -> hashlib.blake2b:
    """The hash of what is shipped, as `load` has read it: once in a process."""
    return _added(hashlib.blake2b(digest_size=16), read(shipped()))


def _added(digest: hashlib.blake2b, texts: Iterable[tuple[Path, str]]) -> hashlib.blake2b:
    for path, text in texts:
        digest.update(path.name.encode() + b"\0" + text.encode() + b"\0")
    return digest


def shipped() -> list[Path]:
    """The shipped rules, then the shipped facts."""
    return sorted(RULES_DIRECTORY.glob("*.toml")) + sorted((RULES_DIRECTORY / "facts").glob("*.toml"))


def read(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    """Path and text of each of `paths`.

    Raises `CatalogueError` for a file that cannot be read.
    """
    texts = []
    for path in paths:
        try:
            texts.append((path, reading.read(str(path), reading.LARGEST_CONFIGURATION).decode()))
        except OSError as error:
            raise CatalogueError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
        except UnicodeDecodeError as error:
            raise CatalogueError(f"{path}: not UTF-8 text (byte {error.start})") from error
    return texts
