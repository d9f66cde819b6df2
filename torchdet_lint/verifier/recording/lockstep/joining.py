"""The dispatcher of a run in lockstep -> the same one, which keeps what is made, or goes on with what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.verifier.recording.lockstep.following import Following
from torchdet_lint.verifier.recording.lockstep.keeping import Keeping
from torchdet_lint.verifier.recording.watching.taps import tapped

if TYPE_CHECKING:
    from torchdet_lint.verifier.ops.dispatch import Direct
    from torchdet_lint.verifier.recording.streams import Run, Stream


def in_lockstep(values: str, run: Run, stream: Stream, dispatch: Direct) -> Direct:
    """`dispatch` of the main thread. The first run makes the file `values`: every run is told the same of it, for a
    program may look at its command line.
    """
    path = Path(values)
    tap = Following(path, run, stream) if path.exists() else Keeping(path, run, stream)
    return tapped(tap, run, stream, dispatch)
