"""The standard streams of a run -> what it reads there, and how it said that it ended."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from torchdet_lint.verifier.patching.frames import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.verifier.launch.launch import ChildResult

_FIRST_FAILURE = re.compile(
    r"Root Cause \(first observed failure\):.*?^\s*rank\s*: (?P<rank>\d+).*?"
    r"^\s*exitcode\s*: (?P<status>-?\d+)[^\n(]*\([^)]*\)(?:\s*\((?P<signal>SIG\w+)\))?",
    re.DOTALL | re.MULTILINE,
)
_SPAWNED = re.compile(r"^-- Process (\d+) terminated with the following error:\n(.*)", re.DOTALL | re.MULTILINE)
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in ', re.MULTILINE)
_SYNTAX = re.compile(
    r'^ *File "(?P<file>.+)", line (?P<line>\d+)\n(?: .*\n)*(?P<error>(?:Syntax|Indentation|Tab)Error: .*)\s*\Z',
    re.MULTILINE,
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_ERROR = 200


@contextlib.contextmanager
def standard_input() -> Iterator[int | IO[bytes] | None]:
    """Every run reads the same: a file from its beginning, the terminal, else nothing."""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        yield subprocess.DEVNULL
        return
    if os.isatty(descriptor):
        yield None
    elif stat.S_ISREG(kind) and Path(f"/proc/self/fd/{descriptor}").exists():
        with Path(f"/proc/self/fd/{descriptor}").open("rb") as file:
            yield file
    else:
        yield subprocess.DEVNULL


def last_words(said: str, result: ChildResult, root: Path) -> str:
    """One line of what a run that failed wrote to standard error, `said` being the end of it: what it raised, and the
    last line in `root` on the way there.
    """
    tail = _rank_that_failed(said, root) or _spawned_that_raised(said, root)
    tail = tail or (_raised(said, root) if result.returncode == 1 else "")
    return tail or said.strip().rpartition("\n")[2].strip()


def _rank_that_failed(said: str, root: Path) -> str:
    """How the rank ended that failed first, where torch's launcher says so at the end of `said`. Before it joins a
    group it says what it raises without its number.
    """
    found = _FIRST_FAILURE.search(said)
    if found is None:
        return ""
    rank, status, signal = found["rank"], found["status"], found["signal"]
    last = re.findall(rf"^\[rank{rank}\]: (\S.*)$", said, re.MULTILINE)
    how = f"was ended by {signal}" if signal else f"ended with exit status {status}"
    before = said[: found.start()].rpartition("Traceback (most recent call last):\n")[0]
    raised = last[-1] if last else _raised(before, root)
    return f"rank {rank} {how}" + (f": {raised}" if raised and not signal else "")


def _spawned_that_raised(said: str, root: Path) -> str:
    """Where a process of `mp.spawn` raised, and what, as torch says at the end of `said`: the last line in `root`."""
    number, traceback = (_SPAWNED.findall(said) or [("", "")])[-1]
    place, error = _raised_at(traceback, root)
    return f"process {number} of mp.spawn at {place}: {error}" if place else ""


def _raised(said: str, root: Path) -> str:
    """What a program raised at the end, and where."""
    place, error = _raised_at(said, root)
    return f"{error} ({place})" if place else ""


def _raised_at(said: str, root: Path) -> tuple[str, str]:
    """Of the last traceback in `said` the last line in `root`, and the first line of the error; empty without one."""
    plain = _COLOURS.sub("", said)
    if found := _SYNTAX.search(plain):
        return f"{shown(found['file'], (root,))}:{found['line']}", found["error"].strip()[:_LONGEST_ERROR]
    traceback = plain.rpartition("Traceback (most recent call last):\n")
    frames = _FRAME.findall(traceback[2])
    error = next((line.strip() for line in traceback[2].splitlines() if line.strip() and line[0] != " "), "")
    if not traceback[1] or not frames or not error:
        return "", ""
    own = [frame for frame in frames if Path(frame[0]).is_relative_to(root) and "site-packages" not in frame[0]]
    file, line = (own or frames)[-1]
    return f"{shown(file, (root,))}:{line}", error if len(error) <= _LONGEST_ERROR else error[:_LONGEST_ERROR] + "…"
