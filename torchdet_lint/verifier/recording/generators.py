"""The states of the global generators of `random`, NumPy and torch, kept and put back."""

from __future__ import annotations

import dataclasses
import random
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Kept:
    """States at one moment; NumPy's and CUDA's only where they were in use."""

    python: Any
    numpy: Any
    torch_cpu: Any
    torch_cuda: Any

    def restore(self) -> None:
        """Put every generator back to its state."""
        random.setstate(self.python)
        numpy = sys.modules.get("numpy")
        if numpy is not None and self.numpy is not None:
            numpy.random.set_state(self.numpy)
        torch.set_rng_state(self.torch_cpu)
        if self.torch_cuda is not None:
            torch.cuda.set_rng_state_all(self.torch_cuda)


def kept() -> Kept:
    """The states now."""
    numpy = sys.modules.get("numpy")
    cuda_in_use: Callable[[], bool] = torch.cuda.is_initialized
    return Kept(
        random.getstate(),
        numpy.random.get_state() if numpy is not None else None,
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if cuda_in_use() else None,
    )
