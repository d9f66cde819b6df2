"""A process that joins a process group -> its rank, by which it is called in the trace.

A deadlock of torch's that recording would make likely is kept away too. A `DistributedDataParallel` that outlives
`destroy_process_group()` is the last to hold its group: its reducer ends it with the GIL held, and waits for threads of
gloo, which want the GIL to let go of a tensor that Python has seen. A recorded program's Python sees every tensor.
"""

from __future__ import annotations

import functools
import os
import weakref
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
    _outlive_reducers(patches)


def _outlive_reducers(patches: Patches) -> None:
    """Have Python, which gives the GIL away for it, be the last to hold the group of a reducer."""
    kind = torch.nn.parallel.DistributedDataParallel
    original: Any = getattr(kind, "_ddp_init_helper", None)
    if original is None:
        return

    @functools.wraps(original)
    def _ddp_init_helper(model: Any, *args: Any, **named: Any) -> Any:
        result = original(model, *args, **named)
        for holder in (getattr(model, "reducer", None), getattr(model, "logger", None)):
            if holder is not None:
                weakref.finalize(holder, _let_go, model.process_group).atexit = False
        return result

    patches.set(kind, "_ddp_init_helper", _ddp_init_helper)


def _let_go(_: object) -> None:
    """Called with a group once its reducer is gone."""
