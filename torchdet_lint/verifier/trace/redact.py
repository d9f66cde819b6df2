"""A trace file -> the same without what it tells of the machine, its user and the source: to be shown to others.

What is compared stays: ops, digests, lines by number, releases, threads and devices.
"""

from __future__ import annotations

import collections
import itertools
import json
import re
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.trace.format import BLOCK, PROLOGUE, Site
from torchdet_lint.verifier.trace.reader import Trace
from torchdet_lint.verifier.trace.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

_ELSEWHERE = "…/"
_OWN_WORD = re.compile(r"rank|of|spawn|forkserver|thread|[\d.:#]+")
"""A word that says which process it is, and not with what it was started."""


def redact(source: Path, target: Path) -> None:
    """Write to `target` what the trace `source` holds, without the text of lines, folders outside of the program's own,
    values of environment variables and the words of command lines. Raises `TraceError`.
    """
    sound = Trace(source).sound
    writer = Writer(target)
    names: collections.Counter[str] = collections.Counter()
    with source.open("rb") as opened:
        opened.seek(PROLOGUE.size)
        while opened.tell() < sound:
            kind, stream, length, _ = BLOCK.unpack(opened.read(BLOCK.size))
            payload = opened.read(length)
            if kind == b"S":
                writer.json(kind, stream, _stream(json.loads(payload), names))
            elif kind in _CHANGES:
                writer.json(kind, stream, _CHANGES[kind](json.loads(payload)))
            else:
                writer.block(kind, stream, payload)
    writer.close()


def alike(a: Path, b: Path, room: Path) -> tuple[Path, Path]:
    """Two traces to compare: where one alone is redacted, of the other a copy in `room` that is so, too."""
    redacted = [bool(Trace(path).header.get("redacted")) for path in (a, b)]
    if redacted[0] == redacted[1]:
        return a, b
    copy = room / "redacted.tdtrace"
    redact(a if redacted[1] else b, copy)
    return (copy, b) if redacted[1] else (a, copy)


def _header(told: dict[str, Any]) -> dict[str, Any]:
    about = {**told.get("environment", {}), "variables": {}}
    return {
        **told,
        "redacted": True,
        "program": [_shown(word) for word in told.get("program", [])[:1]],
        "environment": about,
    }


def _stream(told: dict[str, Any], names: collections.Counter[str]) -> dict[str, Any]:
    """A process under the program in its name, without the words that this was given, and a number in place of them."""
    if told["kind"] != "process":
        return told
    words = told["name"].split()
    own = [*itertools.takewhile(_OWN_WORD.fullmatch, words)]
    name = " ".join(own + [_shown(word) for word in words[len(own) :][:1]])
    if len(words) > len(own) + 1:
        names[name] += 1
        name += f" #{names[name]}"
    return {**told, "name": name}


def _note(told: dict[str, Any]) -> dict[str, Any]:
    missed = {"missed": str(told["missed"]).partition(":")[0]} if "missed" in told else {}
    return {**told, **missed}


def _site(row: list[Any]) -> Site:
    site = Site(*row)
    return site._replace(file=_shown(site.file), forward_file=_shown(site.forward_file), text="")


def _mark(row: list[Any]) -> list[Any]:
    return [*row[:4], _shown(row[4])] if row[1] == "seed" else row


def _shown(name: str) -> str:
    """A file without the folders that lead to it from the root of the file system."""
    for kind in (PurePosixPath, PureWindowsPath):
        if kind(name).is_absolute():
            return f"{_ELSEWHERE}{kind(name).name}"
    return name


_CHANGES: dict[bytes, Callable[[Any], Any]] = {
    b"H": _header,
    b"N": _note,
    b"D": lambda rows: [*map(_site, rows)],
    b"T": lambda rows: [*map(_mark, rows)],
}
