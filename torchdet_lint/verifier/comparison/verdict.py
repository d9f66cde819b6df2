"""A verdict -> whether all is well, and the exit status of the command that reached it."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["identical", "diverged", "failed", "nothing"]
_STATUS = {"identical": 0, "diverged": 1, "failed": 3, "nothing": 3}


class Verdicts(msgspec.Struct, frozen=True):
    """What every report begins with."""

    verdict: Verdict

    @property
    def ok(self) -> bool:
        """Whether all that was compared is equal."""
        return self.verdict == "identical"

    @property
    def exit_status(self) -> int:
        """0 identical, 1 diverged, 3 the program itself failed, or nothing was compared."""
        return _STATUS[self.verdict]
