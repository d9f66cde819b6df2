"""A run that goes on, beside one that has ended -> whether what differs between them is settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.comparison.losses import same
from torchdet_lint.verifier.trace import Timeline, Trace, TraceError

if TYPE_CHECKING:
    from pathlib import Path

_LEAST_LOSSES = 3
_GROWTH = 1.2
"""The trace is looked at again once it is so many times as long."""


class Lasting:
    """To be asked while a run goes on: whether its losses have differed from those of the first run for at least three
    steps, and for as many as they were equal before, and the cause is known.

    Where what differs is expected, harmless, or may be the order of asyncio's tasks, the answer is no.
    """

    def __init__(self, ended: Path, growing: Path) -> None:
        self._ended, self._growing = ended, growing
        self._losses: list[tuple[int, float]] | None = None
        self._next = 1.0

    def __call__(self) -> bool:
        """Look at what the run has written since."""
        size = self._growing.stat().st_size if self._growing.exists() else 0
        if size < self._next:
            return False
        self._next = size * _GROWTH
        try:
            return self._losses_part() and self._cause_known()
        except TraceError:
            return False

    def _losses_part(self) -> bool:
        if self._losses is None:
            self._losses = _timeline(self._ended).losses
        now = _timeline(self._growing)
        equal = [same(a, b) for (_, a), (_, b) in zip(self._losses, now.losses, strict=False)]
        first = equal.index(False) if False in equal else len(equal)
        lasting = len(equal) - first >= max(first, _LEAST_LOSSES) and not any(equal[-_LEAST_LOSSES:])
        return lasting and not now.tasks

    def _cause_known(self) -> bool:
        outcome = compare(self._ended, self._growing, early=True)
        return not outcome.harmless and any(not item.reason for item in outcome.causes)


def _timeline(path: Path) -> Timeline:
    opened = Trace(path)
    return Timeline(opened.marks(opened.main))
