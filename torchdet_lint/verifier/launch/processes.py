"""The processes of a program that has ended -> none that it left running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GRACE = 3.0
"""Seconds between asking a process to end and ending it."""
PATIENCE = 0.5
"""Seconds that helpers (a fork server, a tracker of resources) have to notice that the program has ended."""
_KEEPER = Path(__file__).with_name("keeper.py")


@contextlib.contextmanager
def fixed_addresses() -> Iterator[bool]:
    """What is started meanwhile, and all below it, finds its memory at the same addresses in every run; whether the
    system allows that, which only Linux is asked for.
    """
    no_randomization, ask = 0x0040000, 0xFFFFFFFF
    personality = getattr(ctypes.CDLL(None), "personality", None) if sys.platform.startswith("linux") else None
    before = personality(ask) if personality is not None else -1
    if personality is None or before < 0 or personality(before | no_randomization) < 0:
        yield False
        return
    try:
        yield True
    finally:
        personality(before)


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


@contextlib.contextmanager
def kept(program: int, *, whole: bool) -> Iterator[int]:
    """Have a process of its own, whose number is given, end `program` where this one is killed, and cannot tell it that
    it need not; if `whole`, all below it too.
    """
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_KEEPER), str(program), str(int(whole))],
        cwd=_KEEPER.anchor,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield keeper.pid
    finally:
        with contextlib.suppress(OSError):
            keeper.communicate(b".")


def end_orphan(program: int, *, whole: bool) -> None:
    """End a program that is no child of this process: ask it, and if `whole` also what it leaves."""
    below = descendants(program)[1:] if whole else []
    _signal([program], signal.SIGTERM)
    _wait_for([program])
    _signal(below, signal.SIGTERM)
    _wait_for(below)
    _signal([program, *below], signal.SIGKILL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _wait_for(pids: list[int]) -> None:
    end = time.monotonic() + GRACE
    while any(map(_runs, pids)) and time.monotonic() < end:
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def children(pid: int | None = None) -> list[int]:
    """The direct children of a process (default: this one), by /proc, and where there is none by `ps`."""
    found = []
    if not Path("/proc/self").exists():
        return _children_by_ps(pid or os.getpid())
    for tasks in Path(f"/proc/{pid or os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in tasks.read_text().split()]
    return sorted(set(found))


def _children_by_ps(pid: int) -> list[int]:
    try:
        told = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    except OSError:
        return []
    rows = [tuple(map(int, line.split())) for line in told.splitlines()]
    return [child for child, parent in rows if parent == pid]


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
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
