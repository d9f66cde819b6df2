"""The models and optimizers of a rank -> which of their tensors other ranks must hold too, bit for bit.

`DistributedDataParallel` keeps parameters equal, and buffers at the beginning of each forward pass; a `DTensor` those
parts that its placement replicates. Of everything else (a stage of a pipeline, a model of each rank's own) nothing is
known, and nothing is said unless the program declares it.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.steps.format import LOCAL, SHARDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LOCAL_STEPS = "PostLocalSGDOptimizer"
"""Under this optimizer the ranks' parameters differ between two averagings."""
_SHARDS_STATES = "ZeroRedundancyOptimizer"


class Replicas:
    """`groups` lists the ranks that hold the same; what `of_parameter` and `of_buffer` give is a number in it, after
    `LOCAL` for a buffer that the program keeps by rank, or `SHARDED`, or empty where nothing is established.
    `data_parallel` says whether `DistributedDataParallel` is at work.
    """

    def __init__(
        self, models: Iterable[Any], optimizers: Iterable[Any], world: int, declared: bool | None = None
    ) -> None:
        self.groups: list[list[int]] = []
        self.data_parallel = False
        self._known: dict[int, str] = {}
        self._buffers: dict[int, str] = {}
        if world < 2 or declared is False:
            return
        averaged = any(type(optimizer).__name__ == _LOCAL_STEPS for optimizer in optimizers)
        for wrapped in _data_parallel() if not averaged else ():
            self.data_parallel = True
            self._wrapped(wrapped)
        for model in models:
            for _, parameter in model.named_parameters():
                self._own(self._known, parameter, world, declared=bool(declared))
            for _, buffer in model.named_buffers():
                self._own(self._buffers, buffer, world, declared=bool(declared))

    def _wrapped(self, wrapped: Any) -> None:
        """What a `DistributedDataParallel` keeps equal."""
        group = self._number(torch.distributed.get_process_group_ranks(wrapped.process_group))
        ignored = wrapped.parameters_to_ignore
        for name, parameter in wrapped.module.named_parameters():
            if name not in ignored:
                self._known[id(parameter)] = group
        for name, buffer in wrapped.module.named_buffers():
            kept = wrapped.broadcast_buffers and name not in ignored
            self._buffers[id(buffer)] = group if kept else f"{LOCAL} {group}"

    def _own(self, table: dict[int, str], tensor: Any, world: int, *, declared: bool) -> None:
        """What a tensor says of itself, and what the program declares."""
        if hasattr(tensor, "placements"):
            table.setdefault(id(tensor), self._placed(tensor))
        elif declared:
            table[id(tensor)] = self._number(range(world))

    def _placed(self, tensor: Any) -> str:
        """The ranks that hold the same part of a `DTensor`."""
        mesh, place = tensor.device_mesh, tensor.device_mesh.get_coordinate()
        if place is None or any(one.is_partial() for one in tensor.placements):
            return ""
        here = tuple(
            slice(None) if one.is_replicate() else at for one, at in zip(tensor.placements, place, strict=True)
        )
        ranks = mesh.mesh[here].flatten().tolist()
        return self._number(ranks) if len(ranks) > 1 else SHARDED

    def _number(self, ranks: Sequence[int]) -> str:
        listed = sorted(ranks)
        if len(listed) < 2:
            return ""
        if listed not in self.groups:
            self.groups.append(listed)
        return str(self.groups.index(listed))

    def of_parameter(self, parameter: Any) -> str:
        """The group of a parameter, of its gradient and of its state."""
        return self._known.get(id(parameter), "")

    def of_buffer(self, buffer: Any) -> str:
        """The group of a buffer as a forward pass begins."""
        return self._buffers.get(id(buffer), "")

    def of_options(self, optimizer: Any) -> str:
        """The group of an optimizer's options: that of its parameters, where they have one."""
        groups = {self.of_parameter(one) for group in optimizer.param_groups for one in group["params"]}
        return groups.pop() if len(groups) == 1 and groups != {SHARDED} else ""

    def of_state(self, optimizer: Any, parameter: Any) -> str:
        """The group of what an optimizer keeps for a parameter."""
        return SHARDED if type(optimizer).__name__ == _SHARDS_STATES else self.of_parameter(parameter)

    def watched(self, model: Any) -> Any:
        """The module that is called when the buffers of `model` are equal; None where none need be, or where a hook
        would change what `torch.compile` compiles.
        """
        module = model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
        compiled = any(
            type(one).__name__ == "OptimizedModule" or getattr(one, "_compiled_call_impl", None) is not None
            for one in (model, module)
        )
        known = any(self.of_buffer(buffer) for _, buffer in model.named_buffers())
        can_tell = hasattr(getattr(torch, "compiler", None), "is_compiling")
        return module if known and can_tell and not compiled and isinstance(module, torch.nn.Module) else None


def _data_parallel() -> list[Any]:
    """The `DistributedDataParallel` modules of this process, whether the program gave us them or what they wrap."""
    kind = torch.nn.parallel.DistributedDataParallel
    return [value for value in gc.get_objects() if issubclass(type(value), kind)]
