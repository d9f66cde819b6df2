"""The check of a distribution's values -> one record, of what is checked and of which values are right.

`Categorical(probs)` and `log_prob(action)` ask a constraint of `torch.distributions.constraints` about each value, in
up to ten small ops. Left to a record for each op are constraints of a program's own and those that ask others, and
values as those of an optimizer's update.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.distributions import constraints

from torchdet_lint.verifier import trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run, Stream

_PLAIN = (torch.Tensor, int, float, str, type(None))


def watch(
    run: Run,
    patches: Patches,
    here: Callable[[Run], Stream | None],
    unwatched: Callable[[], bool],
    keep_compiler_out: Callable[..., None],
) -> None:
    """Record the checks of `run`, where they are `unwatched`, until `patches` are taken back."""
    kinds = [kind for kind in vars(constraints).values() if isinstance(kind, type)]
    for kind in kinds:
        if issubclass(kind, constraints.Constraint) and "check" in vars(kind):
            check = _recorded(run, here, kind, unwatched)
            keep_compiler_out(check)
            patches.set(kind, "check", check)


def _recorded(
    run: Run, here: Callable[[Run], Stream | None], kind: Any, unwatched: Callable[[], bool]
) -> Callable[..., Any]:
    original = kind.check
    called = f"{trace.CHECK}.{kind.__name__.strip('_')}"

    @functools.wraps(original)
    def check(constraint: Any, value: Any) -> Any:
        if not unwatched() or not isinstance(value, torch.Tensor) or (stream := here(run)) is None:
            return original(constraint, value)
        bounds = vars(constraint).values()
        if not all(isinstance(bound, _PLAIN) for bound in bounds):
            return original(constraint, value)
        return stream.folded(called, (value, *bounds), lambda: original(constraint, value))

    return check
