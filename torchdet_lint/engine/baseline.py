"""Findings -> those without the ones in the baseline, matched by content so that moved lines stay matched."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.config import ConfigError
from torchdet_lint.reading import read
from torchdet_lint.source.snippets import Snippets
from torchdet_lint.source.writing import put

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchdet_lint.finding import Finding

_VERSION = 1


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """`findings`: path relative to the file itself -> code -> hash of the flagged lines -> how many."""

    version: int
    findings: dict[str, dict[str, dict[str, int]]]


def write(path: str, findings: Iterable[Finding]) -> int:
    """Write `findings` to the baseline file `path`; returns how many there are. A link in its place goes.

    Raises `OSError`.
    """
    counted = _counted(path, findings)
    table: dict[str, dict[str, dict[str, int]]] = {}
    for (file, code, content), number in sorted(counted.items()):
        table.setdefault(file, {}).setdefault(code, {})[content] = number
    data = msgspec.json.format(msgspec.json.encode(_File(_VERSION, table)), indent=1)
    put(path, data + b"\n")
    return sum(counted.values())


def is_one(path: str) -> bool:
    """Whether the file `path` is a baseline."""
    try:
        return bool(msgspec.json.decode(read(path), type=_File))
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return False


def subtract(path: str, findings: Iterable[Finding], texts: Mapping[str, bytes] | None = None) -> list[Finding]:
    """The findings that the baseline file `path` does not hold; `texts` stand for files.

    Raises `ConfigError` where it cannot be read.
    """
    try:
        known = msgspec.json.decode(read(path), type=_File)
    except OSError as error:
        raise ConfigError(f"baseline: {path}: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ConfigError(f"baseline: {path}: not a baseline file: {' '.join(str(error).split())}") from error
    if known.version != _VERSION:
        raise ConfigError(f"baseline: {path}: version {known.version} is not {_VERSION}; write it again")
    left = Counter(
        {
            (file, code, content): number
            for file, codes in known.findings.items()
            for code, contents in codes.items()
            for content, number in contents.items()
        }
    )
    kept: list[Finding] = []
    snippets = Snippets(texts)
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        key = _key(path, finding, snippets)
        if left[key] > 0:
            left[key] -= 1
        else:
            kept.append(finding)
    return kept


def _counted(path: str, findings: Iterable[Finding]) -> Counter[tuple[str, str, str]]:
    snippets = Snippets()
    return Counter(_key(path, finding, snippets) for finding in findings)


def _key(path: str, finding: Finding, snippets: Snippets) -> tuple[str, str, str]:
    base = os.path.dirname(os.path.abspath(path))
    file = os.path.relpath(finding.filename, base).replace(os.sep, "/")
    lines = snippets.lines(finding, finding.location.row, finding.end_location.row)
    text = "\n".join(" ".join(line.split()) for line in lines)
    return file, finding.code, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
