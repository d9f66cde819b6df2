"""A block of a program that may differ, and why -> marks in the recording, if there is one."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.verifier.recording.streams import Run

RUNS: weakref.WeakSet[Run] = weakref.WeakSet()
"""What is being recorded in this process."""


class expected(contextlib.ContextDecorator):  # noqa: N801
    """Say that the ops in a block, or of a function, may differ between two runs: `with expected("a demo's noise"):`.

    The verifier then names them under what it does not cover, with the reason, and they are no divergence. Where ops
    outside of the block differ because of them they are told as the cause all the same. It changes nothing about the
    program, and does nothing where it is not recorded. Raises `ValueError` without a reason.
    """

    def __init__(self, reason: str) -> None:
        if not reason.strip():
            raise ValueError("expected() needs a reason")
        self.reason = " ".join(reason.split())[:200]

    def _recreate_cm(self) -> expected:
        return expected(self.reason)

    def __enter__(self) -> expected:
        self._mark(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._mark(0)

    def _mark(self, begins: int) -> None:
        here = threading.get_ident()
        for run in list(RUNS):
            for stream in list(run.live.values()):
                if stream.ident == here:
                    stream.mark("expected", begins, name=self.reason)
