"""A process that joins a process group -> its rank, by which it is called in the trace."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.recording.watching import stacks

if TYPE_CHECKING:
    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run


def watch(run: Run, patches: Patches) -> None:
    """Tell `run` its rank when the program calls `init_process_group`."""
    distributed = torch.distributed
    original: Any = getattr(distributed, "init_process_group", None)
    if original is None:
        return

    @functools.wraps(original)
    def init_process_group(*args: Any, **named: Any) -> Any:
        rank = named.get("rank", args[4] if len(args) > 4 else -1)
        if rank < 0 and os.environ.get("RANK", "").isdigit():
            rank = int(os.environ["RANK"])
        if rank >= 0:
            stacks.tell(rank=rank)
        result = original(*args, **named)
        stacks.tell(rank=distributed.get_rank(), world=distributed.get_world_size())
        run.join(distributed.get_rank())
        return result

    for module in (distributed, distributed.distributed_c10d):
        patches.set(module, "init_process_group", init_process_group)
