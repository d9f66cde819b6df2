"""What asyncio and threading run -> what it is called: marks for the tasks of a loop, a name for each thread."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run, Stream

_LONGEST = 80


def watch(run: Run, patches: Patches, here: Callable[[Run], Stream | None]) -> None:
    """Mark which records each task of asyncio's own loops makes; `here` finds the stream of the thread that calls."""
    original = asyncio.Handle._run

    @functools.wraps(original)
    def _run(handle: Any) -> Any:
        task = getattr(handle._callback, "__self__", None)
        stream = here(run) if isinstance(task, asyncio.Task) else None
        if stream is None:
            return original(handle)
        before = stream.records
        try:
            return original(handle)
        finally:
            if stream.records > before:
                stream.mark_task(before, _of_task(task))

    patches.set(asyncio.Handle, "_run", _run)


def _of_task(task: Any) -> str:
    coroutine = task.get_coro()
    return _with(task.get_name(), getattr(coroutine, "__name__", type(coroutine).__name__))


def of_thread(thread: threading.Thread) -> str:
    """The name of a thread and of what it runs: of its target, or of its class."""
    target = getattr(thread, "_target", None)
    inner = getattr(target, "func", target)
    return _with(thread.name, getattr(inner, "__name__", type(thread if inner is None else inner).__name__))


def _with(name: str, function: str) -> str:
    """`name (function)`; what Python itself called so stays."""
    whole = name if name.endswith(f"({function})") else f"{name} ({function})"
    return "".join(letter if letter.isprintable() else "?" for letter in whole)[:_LONGEST]
