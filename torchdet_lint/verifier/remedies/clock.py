"""What a program reads of the clock -> the same in every run: the clock goes on when it is read or slept by."""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.frames import is_users

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.patching.patches import Patches

_EPOCH, _BOOT = 1_700_000_000, 1_000
_STARTS = {"time": _EPOCH, "monotonic": _BOOT, "perf_counter": _BOOT, "process_time": 0, "thread_time": 0}
"""The clocks of the module `time`, and what each shows at the start, in seconds."""


class _Elapsed(threading.local):
    """How far the clock of a thread has gone, in ticks."""

    ticks = 0.0


def install(patches: Patches, tick: float) -> None:
    """Let every clock that the user's own code reads go on by `tick` seconds a reading, and by `tick` seconds for each
    second slept. Libraries go on reading the real one: what they wait for would never come.
    """
    elapsed = _Elapsed()

    def held(name: str, start: int, *, whole: bool) -> Callable[[], float]:
        real: Callable[[], float] = getattr(time, name)

        @functools.wraps(real)
        def read() -> float:
            if not is_users(sys._getframe(1).f_code.co_filename):
                return real()
            elapsed.ticks += 1
            shown = start + elapsed.ticks * tick
            return round(shown * 1e9) if whole else shown

        return read

    for name, start in _STARTS.items():
        for whole in (False, True):
            clock = f"{name}_ns" if whole else name
            patches.set(time, clock, held(clock, start, whole=whole))
    sleep = time.sleep

    @functools.wraps(sleep)
    def slept(seconds: Any, /) -> None:
        sleep(seconds)
        elapsed.ticks += float(seconds)

    patches.set(time, "sleep", slept)
