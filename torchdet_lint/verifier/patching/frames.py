"""A frame or a thread -> whether its code is the user's own, and which line of the user's code is running."""

from __future__ import annotations

import functools
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

_OWN = str(Path(__file__).parents[1]) + os.sep
_STANDARD = str(Path(os.__file__).parent) + os.sep
_START = threading.Thread.start.__code__
_FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", "<frozen ", "<string>")


def is_users(file: str) -> bool:
    """Whether `file` is the user's own source: not ours, the standard library's or an installed package's."""
    return not file.startswith((_OWN, _STANDARD)) and not any(part in file for part in _FOREIGN)


def runs_users(thread: threading.Thread) -> bool:
    """Whether what a thread runs is the user's own code: its target, or the `run` of its class."""
    target: Any = getattr(thread, "_target", None)
    while isinstance(target, functools.partial):
        target = target.func
    function = type(thread).run if target is None else getattr(target, "__func__", target)
    if not hasattr(function, "__code__"):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    return code is not None and is_users(code.co_filename)


def _passes_on(file: str) -> bool:
    return file.startswith((_OWN, _STANDARD)) and not any(part in file for part in _FOREIGN)


def starter(thread: threading.Thread) -> str:
    """The file that has just started a thread, not ours or the standard library's; empty where that is not known."""
    for frame in sys._current_frames().values():
        found: FrameType | None = frame
        while found is not None and found.f_code is not _START:
            found = found.f_back
        if found is not None and found.f_locals.get("self") is thread:
            return asker(found)
    return ""


def asker(frame: FrameType | None) -> str:
    """The file of the first frame, from `frame` up, that is not ours or the standard library's; empty for none."""
    while frame is not None and _passes_on(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame of the user's own code above `frame`: not ours, the standard library's or a package's."""
    start = frame or sys._getframe(1)
    fallback: FrameType | None = None
    found: FrameType | None = start
    while found is not None:
        name = found.f_code.co_filename
        if is_users(name):
            return found
        if not name.startswith(_OWN):
            fallback = fallback or found
        found = found.f_back
    return fallback


def user_line() -> tuple[str, int]:
    """File and line of the innermost frame of the user's own code; `("?", 0)` where there is none."""
    frame = user_frame(sys._getframe(1))
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("?", 0)


def shown(file: str, roots: Iterable[Path]) -> str:
    """A file as the recorder shows it: relative to the innermost of the roots that hold it."""
    path = Path(file).resolve()
    for root in sorted(roots, key=lambda root: -len(root.parts)):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return Path(file).as_posix()
