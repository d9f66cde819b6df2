"""A tensor that NumPy is handed -> a record of that read, which is no op: what Python decides next hangs on it, and
NumPy may write to its memory."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run, Stream


def watch(
    run: Run, patches: Patches, here: Callable[[Run], Stream | None], keep_compiler_out: Callable[..., None]
) -> None:
    """Record `tensor.numpy()`, and `numpy.asarray(tensor)`, which calls it, until `patches` are taken back."""
    original = torch.Tensor.numpy

    @functools.wraps(original)
    def numpy(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        array = original(tensor, *args, **kwargs)
        if (stream := here(run)) is not None:
            stream.handed(tensor, array)
        return array

    keep_compiler_out(numpy)
    patches.set(torch.Tensor, "numpy", numpy)
