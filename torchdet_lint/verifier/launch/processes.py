"""The processes of a program that has ended -> none that it left running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

GRACE = 3.0
"""Seconds between asking a process to end and ending it."""
PATIENCE = 0.5
"""Seconds that helpers (a fork server, a tracker of resources) have to notice that the program has ended."""


@contextlib.contextmanager
def adopting() -> Iterator[bool]:
    """On Linux: orphans of the program become children of this process, so that none can hide."""
    set_subreaper, get_subreaper = 36, 37
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError, TypeError):
        yield False
        return
    before = ctypes.c_int(0)
    if not sys.platform.startswith("linux") or prctl(get_subreaper, ctypes.byref(before), 0, 0, 0) != 0:
        yield False
        return
    prctl(set_subreaper, 1, 0, 0, 0)
    try:
        yield True
    finally:
        prctl(set_subreaper, before.value, 0, 0, 0)


def children(pid: int | None = None) -> list[int]:
    """The direct children of a process (default: this one), by /proc."""
    found = []
    for tasks in Path(f"/proc/{pid or os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in tasks.read_text().split()]
    return sorted(set(found))


def descendants(pid: int) -> list[int]:
    """A process and all below it, by /proc."""
    found = [pid]
    for child in children(pid):
        found += descendants(child)
    return found


def end_tree(process: subprocess.Popen[bytes], known: set[int], adopts: bool) -> int:
    """End what the program left running; returns how many processes that were."""
    if not adopts:
        if process.poll() is None:
            process.kill()
            process.wait()
        return 0
    if process.poll() is None:
        process.kill()
    strays = 0
    patience = time.monotonic() + PATIENCE
    deadline = patience + GRACE
    asked: set[int] = set()
    while True:
        mine = [pid for pid in children() if pid not in known and pid != process.pid]
        _reap(mine)
        left = [pid for child in mine if child in children() for pid in descendants(child)]
        if not left:
            break
        if time.monotonic() < patience:
            time.sleep(0.02)
            continue
        for pid in left:
            strays += pid not in asked
            hard = pid in asked and time.monotonic() > deadline
            if pid not in asked or hard:
                asked.add(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if hard else signal.SIGTERM)
        time.sleep(0.02)
    process.wait()
    return strays


def _reap(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
