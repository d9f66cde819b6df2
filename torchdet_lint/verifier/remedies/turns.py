"""The threads that a program starts -> one after the other, in the order in which it starts them or against it."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.frames import runs_users

if TYPE_CHECKING:
    from torchdet_lint.verifier.remedies.context import Context

_PATIENCE_SECONDS = 1.0
"""How long one thread waits for another."""
_HELD_SECONDS = 0.05
"""How long, against the order, a thread waits for one that is started after it."""
_IN_VAIN_SECONDS = 3.0
"""After so much waiting for threads that went on, or never came, all run side by side."""


def threads(context: Context, *, reverse: bool = False) -> None:
    """A thread that runs the user's code ends before the line after its start (`reverse`: before the threads that were
    started before it begin). Threads that wait for each other run side by side after a while.
    """
    start = threading.Thread.start
    turns = _Turns()

    @functools.wraps(start)
    def start_in_turn(thread: threading.Thread) -> None:
        if not turns.left or not runs_users(thread):
            start(thread)
        elif reverse:
            turns.hold(thread)
            start(thread)
        else:
            start(thread)
            turns.wait(thread.join, _PATIENCE_SECONDS, lambda: not thread.is_alive())

    context.patches.set(threading.Thread, "start", start_in_turn)


class _Turn:
    """A thread that is held back: the turn `after` it (once that is `followed`), and whether it has `ended`."""

    def __init__(self) -> None:
        self.followed, self.ended = threading.Event(), threading.Event()
        self.after: _Turn | None = None


class _Turns:
    """The threads of a process, and how long they may still wait in vain."""

    def __init__(self) -> None:
        self.left = _IN_VAIN_SECONDS
        self._last = _Turn()
        self._lock = threading.Lock()

    def wait(self, wait: Any, seconds: float, reached: Any) -> None:
        """`wait(seconds)`; what was not `reached()` by then counts as in vain."""
        begin = time.monotonic()
        wait(min(seconds, self.left))
        if not reached():
            self.left = max(0.0, self.left - (time.monotonic() - begin))

    def hold(self, thread: threading.Thread) -> None:
        """Have a thread that has not begun wait for the end of the one that is started after it."""
        turn = _Turn()
        with self._lock:
            before, self._last = self._last, turn
        before.after = turn
        before.followed.set()
        run = thread.run

        def run_in_turn() -> None:
            self.wait(turn.followed.wait, _HELD_SECONDS, turn.followed.is_set)
            if turn.after is not None:
                self.wait(turn.after.ended.wait, _PATIENCE_SECONDS, turn.after.ended.is_set)
            try:
                run()
            finally:
                turn.ended.set()
                del thread.run

        thread.run = run_in_turn  # type: ignore[method-assign]
