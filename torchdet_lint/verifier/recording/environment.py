"""This process -> what its results may depend on besides the program."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.catalogue import runtime

if TYPE_CHECKING:
    from collections.abc import Callable


def environment() -> dict[str, Any]:
    """What the results may depend on besides the program: releases, threads, devices, flags, environment variables."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": str(getattr(sys.modules.get("numpy"), "__version__", "")),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "cuda": str(torch.version.cuda or ""),
        "devices": [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if _cuda_ready() else [],
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "variables": {name: os.environ[name] for name in runtime.surroundings().variables if name in os.environ},
    }


def _cuda_ready() -> bool:
    ready: Callable[[], bool] = torch.cuda.is_initialized
    return bool(torch.version.cuda) and ready()
