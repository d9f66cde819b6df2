"""What the processes of a run print to one file -> a file for each, and one behind the other at the end.

How the lines of several processes come between each other is the scheduler's choice, and a line may be cut where a
buffer ends. The program itself, and what is no Python, goes on writing to the file of the run.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

_LONGEST = 100


class Printed(NamedTuple):
    """A process below the program that printed something: what it is called, and its first line of all, from 1."""

    name: str
    begins: int


class _Process:
    """What this process is called, and the file of its run."""

    run: Path | None = None
    name = ""
    forks = itertools.count(1)
    fork = 0


def watch(run: str, name: str) -> None:
    """From now on what this process, unless it is the program itself, and those that it forks print to the file `run`
    goes to files of their own. `name` says what this process is, the same in every run; it is empty for the program.
    """
    if _Process.run is not None or not hasattr(os, "register_at_fork"):
        return
    _Process.run, _Process.name = Path(run), name
    os.register_at_fork(before=_before, after_in_child=_in_child)
    if name:
        _separate(_Process.run)


def _before() -> None:
    _Process.fork = next(_Process.forks)


def _in_child() -> None:
    _Process.name, _Process.forks = f"{_Process.name}.{_Process.fork}", itertools.count(1)
    if _Process.run is not None:
        _separate(_Process.run)


def _separate(run: Path) -> None:
    """Put a file of this process's own in the place of each of its standard streams that is a file of the run."""
    with contextlib.suppress(OSError):
        known = [path.stat() for path in (run, *(part for _, part in _parts(run)))]
        streams = [number for number in (1, 2) if any(os.path.samestat(os.fstat(number), one) for one in known)]
        if not streams:
            return
        name = re.sub(r"[^\w.]+", "-", _Process.name)[:_LONGEST]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(run.with_name(f"{run.name}.{name}.{os.getpid()}"), flags, 0o600)
        for number in streams:
            os.dup2(descriptor, number)
        os.close(descriptor)


def _parts(run: Path) -> list[tuple[str, Path]]:
    """What the processes below the program are called and what they printed, by name, those of one name in the order of
    their numbers.
    """
    own = re.compile(re.escape(run.name) + r"\.(.*)\.(\d+)")
    found = [(own.fullmatch(path.name), path) for path in run.parent.iterdir()]
    return [(name, path) for name, _, path in sorted((of[1], int(of[2]), path) for of, path in found if of is not None)]


def gather(run: Path, whole: Path) -> tuple[Printed, ...]:
    """Put what the processes of a run printed into one file; who did so below the program."""
    run.replace(whole)
    found: list[Printed] = []
    same = Counter[str]()
    lines = 0
    with whole.open("r+b") as out:
        lines += sum(1 for _ in out)
        for name, part in _parts(run):
            if part.stat().st_size:
                if out.seek(0, os.SEEK_END):
                    out.seek(-1, os.SEEK_END)
                    out.write(b"" if out.read(1) == b"\n" else b"\n")
                same[name] += 1
                found.append(Printed(f"{name} {same[name]}", lines + 1))
                with part.open("rb") as told:
                    for line in told:
                        lines += 1
                        out.write(line)
            part.unlink()
    return tuple(found)


def clear(run: Path) -> None:
    """Remove what the processes of a run have printed."""
    for _, part in _parts(run):
        part.unlink()
