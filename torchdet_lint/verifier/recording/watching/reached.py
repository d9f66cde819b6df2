"""Lines of source that are asked about -> those that this process reaches, appended to a file as it reaches them."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType


def install(order: str) -> None:
    """Begin: `order` is JSON with `lines` (file -> lines) and `out`, a file that is there.

    Threads and forked processes are watched too. Nothing else of the program is changed, but its speed.
    """
    told = json.loads(order)
    lines = {os.path.realpath(file): frozenset(rows) for file, rows in told["lines"].items()}
    watch = _Watch(lines, told["out"])
    if hasattr(sys, "monitoring"):
        watch.monitor(sys.monitoring)
    else:
        threading.settrace(watch.entered)
        sys.settrace(watch.entered)


class _Watch:
    def __init__(self, lines: dict[str, frozenset[int]], out: str) -> None:
        self._lines = lines
        self._out = os.open(out, os.O_WRONLY | os.O_APPEND)
        self._seen: set[tuple[str, int]] = set()
        self._wanted: dict[CodeType, frozenset[int]] = {}

    def _of(self, code: CodeType) -> frozenset[int]:
        """The lines of a function that are asked about."""
        found = self._wanted.get(code)
        if found is None:
            asked = self._lines.get(os.path.realpath(code.co_filename), frozenset())
            own = {line for _, _, line in code.co_lines()} if asked else set()
            found = self._wanted[code] = frozenset(asked & own)
        return found

    def _note(self, code: CodeType, line: int) -> None:
        place = (os.path.realpath(code.co_filename), line)
        if place not in self._seen:
            self._seen.add(place)
            os.write(self._out, f"{json.dumps(place)}\n".encode())

    def entered(self, frame: FrameType, event: str, _: Any) -> Any:
        """For `sys.settrace`: a function begins."""
        if event == "call" and self._of(frame.f_code):
            return self._stepped
        return None

    def _stepped(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno in self._of(frame.f_code):
            self._note(frame.f_code, frame.f_lineno)
        return self._stepped

    def monitor(self, monitoring: Any) -> None:
        """For Python 3.12 and later: each line is told once, and costs nothing after that."""

        def reached(code: CodeType, line: int) -> Any:
            if line in self._of(code):
                self._note(code, line)
            return monitoring.DISABLE

        tool = monitoring.COVERAGE_ID
        try:
            monitoring.use_tool_id(tool, "torchdet-lint")
        except ValueError:
            tool = monitoring.PROFILER_ID
            monitoring.use_tool_id(tool, "torchdet-lint")
        monitoring.register_callback(tool, monitoring.events.LINE, reached)
        monitoring.set_events(tool, monitoring.events.LINE)
