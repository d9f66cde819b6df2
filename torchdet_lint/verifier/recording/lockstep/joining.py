"""The dispatcher of a thread in lockstep -> the same one, which keeps what is made, or goes on with what is kept.

A thread that takes its tasks from a pool is left out: which of them does what is the scheduler's choice, so that it has
no twin in the other run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.recording.lockstep.following import Following
from torchdet_lint.verifier.recording.lockstep.keeping import Keeping
from torchdet_lint.verifier.recording.lockstep.rows import Rows, Writer
from torchdet_lint.verifier.recording.watching.taps import tapped

if TYPE_CHECKING:
    from pathlib import Path

    from torchdet_lint.verifier.ops.dispatch import Direct
    from torchdet_lint.verifier.recording.streams import Run, Stream


class Lockstep:
    """The threads of one run that go in lockstep. The first run makes the file `path`: every run is told the same of
    it, for a program may look at its command line.
    """

    def __init__(self, path: Path) -> None:
        self._file = Rows(path) if path.exists() else Writer(path)
        self._astray: set[tuple[int, int]] = set()

    def join(self, run: Run, stream: Stream, dispatch: Direct) -> Direct:
        """`dispatch` of a stream, in lockstep where that stream has a twin."""
        if stream.kind == "process" or (stream.kind == "thread" and stream.role == "worker"):
            return dispatch
        if isinstance(self._file, Writer):
            return tapped(Keeping(self._file, run, stream), run, stream, dispatch)
        return tapped(Following(self._file, self._astray, run, stream), run, stream, dispatch)
