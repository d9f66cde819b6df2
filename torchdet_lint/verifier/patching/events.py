"""What guards refused or replaced -> events: a file of JSON lines that several processes share."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import sys
from typing import TYPE_CHECKING

from torchdet_lint.verifier.patching.frames import user_line

if TYPE_CHECKING:
    from pathlib import Path

ENTROPY = "entropy"
"""The code of an event that is no guard's: NumPy made a generator without a seed."""
_BEGIN = b'{"code": '


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that a guard refused or replaced: the rule, what the program asked for, and its line. Without a rule:
    something that is out of reach.
    """

    code: str
    text: str
    file: str
    line: int
    pid: int


class Reporter:
    """Where guards report: a file of JSON lines, standard error, or (`quiet`) only `events`. Each place once."""

    def __init__(self, path: str = "", *, quiet: bool = False) -> None:
        self.path = path
        self.quiet = quiet
        self.events: list[Event] = []
        self._seen: set[tuple[str, str, str, int]] = set()

    def report(self, code: str, text: str) -> None:
        """Report `text` for rule `code` at the line of the user's code that is running."""
        file, line = user_line()
        if (code, text, file, line) in self._seen:
            return
        self._seen.add((code, text, file, line))
        event = Event(code, text, file, line, os.getpid())
        self.events.append(event)
        if self.quiet:
            return
        if not self.path or not self._appended(json.dumps(dataclasses.asdict(event)) + "\n"):
            print(f"torchdet-lint: {file}:{line}: {code}{' ' if code else ''}{text}", file=sys.stderr)

    def _appended(self, record: str) -> bool:
        """Append to the file of events; a file of anything else is left alone, for the environment names it."""
        # One O_APPEND write a record: several processes share the file and lines must not mix.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(self.path, flags, 0o644)
        except OSError:
            return False
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.read(descriptor, len(_BEGIN)) not in (b"", _BEGIN):
                return False
            os.write(descriptor, record.encode())
            return True
        finally:
            os.close(descriptor)


def read_events(path: Path) -> tuple[Event, ...]:
    """The events in a file that guards wrote, in its order; a line cut short by a killed process is left out."""
    if not path.exists():
        return ()
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found.append(Event(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return tuple(found)
