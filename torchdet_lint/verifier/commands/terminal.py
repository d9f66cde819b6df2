"""A command at work, its input and its signals -> a line of progress, input that can be read again, an end in order."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 0.5
_REFRESH, _SILENCE = 0.2, 30.0


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """A request to end (a time limit of CI's, say) ends the program too, as Ctrl-C does."""

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def keep_piped_input() -> None:
    """Put what comes through a pipe into a file, which every run can read from its beginning. A pipe that is silent for
    a moment (CI leaves one open) is left alone.
    """
    try:
        descriptor = sys.stdin.fileno()
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
        ready = select.select([descriptor], [], [], _PATIENCE)[0]
    except (OSError, ValueError, AttributeError):
        return
    if ready:
        with tempfile.TemporaryFile() as kept, open(descriptor, "rb", closefd=False) as piped:
            shutil.copyfileobj(piped, kept)
            kept.seek(0)
            os.dup2(kept.fileno(), descriptor)


def coloured(wish: str) -> bool:
    """Whether standard output takes colours, for the `--color` of the command line."""
    if wish != "auto":
        return wish == "always"
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


class Progress:
    """A line on a terminal that says which run is under way and how far it is. In a pipe nothing, but for a search of
    `many` runs a line now and then.
    """

    def __init__(self, *, many: bool = False) -> None:
        self._shown = sys.stderr.isatty()
        self._many = many
        self._begin = time.monotonic()
        self._last = 0.0 if self._shown else self._begin
        self._run, self._runs = "", 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def __call__(self, name: str, done: int, expected: int) -> None:
        """Tell of the run `name`: `done` bytes of its trace of about `expected` (0: not known)."""
        now = time.monotonic()
        self._runs += name != self._run
        self._run = name
        if now - self._last < (_REFRESH if self._shown else _SILENCE) or not (self._shown or self._many):
            return
        self._last = now
        if not self._shown:
            sys.stderr.write(f"torchdet-lint verify: run {self._runs}, {now - self._begin:.0f} s so far\n")
            return
        bar = ""
        if expected:
            part = min(done / expected, 1.0)
            bar = f" [{'=' * int(24 * part):24}] {part:4.0%}"
        size = f" · {done / 1e6:.1f} MB of trace" if done or expected else ""
        sys.stderr.write(f"\r\x1b[K run {name}{bar}{size} · {now - self._begin:.0f} s")
        sys.stderr.flush()
