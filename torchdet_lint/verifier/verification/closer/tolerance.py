"""Two recordings and a relative tolerance -> whether their losses agree within it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.verification.outcome import Tolerance

if TYPE_CHECKING:
    from torchdet_lint.verifier.comparison.outcome import Comparison


def within(outcome: Comparison, relative: float) -> Tolerance:
    """Whether every loss of one run is within `relative` of the other's. A loss that one run alone has, or that is no
    finite number in one, is not.
    """
    told = outcome.losses
    if told is None or not told.compared:
        return Tolerance(relative, False, "no loss is in both recordings, and of other values they hold digests only")
    if told.unpaired:
        return Tolerance(relative, False, f"losses that one run alone has: {told.unpaired}")
    if told.not_finite:
        return Tolerance(relative, False, f"losses that are not finite in one run: {told.not_finite}")
    why = f"losses that differ: {told.differing} of {told.compared}, by at most {told.relative:.3g} of their value"
    return Tolerance(relative, told.relative <= relative, why)
