"""A process of a run with a time limit -> a file into which a signal makes it write where its threads stand.

The signal is handled in C, so that a process that hangs in a collective or in an extension answers too. It is one of
those that the system leaves to programs, and it is sent only to a process that has such a file.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import threading

SUFFIX = ".stacks"
SIGNAL = int(signal.SIGRTMAX) - 3 if hasattr(signal, "SIGRTMAX") else 0


class _Answers:
    """Where this process answers, once it is armed."""

    trace = ""
    descriptor = -1


def file_of(trace: str, pid: int) -> str:
    """Where the process `pid` of the run that writes `trace` answers."""
    return f"{trace}.{pid}{SUFFIX}"


def arm(trace: str) -> None:
    """Answer from now on, in this process and those that it forks. Where that cannot be done nothing happens."""
    if not SIGNAL or not hasattr(faulthandler, "register") or _Answers.trace:
        return
    _Answers.trace = trace
    _answer()
    os.register_at_fork(after_in_child=_answer)


def _answer() -> None:
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        before, _Answers.descriptor = _Answers.descriptor, os.open(file_of(_Answers.trace, os.getpid()), flags, 0o600)
        faulthandler.register(SIGNAL, file=_Answers.descriptor, all_threads=True)
        if before >= 0:
            os.close(before)
        tell(main=threading.main_thread().ident)


def tell(**about: int | None) -> None:
    """Write more of what this process is (`rank`, `world`) beside its stacks."""
    if _Answers.descriptor >= 0:
        with contextlib.suppress(OSError):
            os.write(_Answers.descriptor, (json.dumps(about) + "\n").encode())
