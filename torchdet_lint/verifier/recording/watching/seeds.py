"""The first seed that a process gives torch -> a mark with its line, for what was drawn before."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.patching.frames import user_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run, Stream

_SEEDS = "_manual_seed_impl"
"""What `torch.manual_seed` calls, which itself the compiler knows by name; older releases have it not."""


def watch(run: Run, patches: Patches, here: Callable[[Run], Stream | None]) -> None:
    """Mark the line on which torch is first seeded; `here` finds the stream of the thread that calls."""
    original = getattr(torch.random, _SEEDS, None)
    if original is None:
        return

    @functools.wraps(original)
    def seed(*args: Any, **kwargs: Any) -> Any:
        if not run.seeded and (stream := here(run)) is not None:
            run.seeded = True
            file, line = user_line()
            if line:
                stream.mark("seed", 0, name=f"{run.classifier.shown(file)}:{line}")
        return original(*args, **kwargs)

    patches.set(torch.random, _SEEDS, seed)
