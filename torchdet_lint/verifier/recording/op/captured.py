"""The ops of a CUDA graph, which run when it is replayed and not when they are called -> the memory that a replay reads
and writes."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.ops.plans import VIEW
from torchdet_lint.verifier.recording.values import base_of, tensors_in

if TYPE_CHECKING:
    from torchdet_lint.verifier.ops.plans import Plan


class Captured:
    """What one graph reads and writes, storage by storage. It keeps no tensor alive: torch is to use the memory of
    those that are gone again, as it would without a recorder.
    """

    def __init__(self) -> None:
        self._read: dict[int, weakref.ref[torch.Tensor]] = {}
        self._written: dict[int, weakref.ref[torch.Tensor]] = {}

    def note(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> list[int]:
        """An op that was captured; returns the storages that are new with it."""
        given = _by_storage([args, list(kwargs.values())])
        whole = plan.overwrites < 0
        for base, value in (given if whole else _by_storage([plan.read_of(args), list(kwargs.values())])).items():
            if base not in self._written:
                self._read.setdefault(base, value)
        if plan.kind == VIEW:
            return []
        made = _by_storage(out)
        self._written.update(made)
        self._written.update(
            _by_storage([args[at] if at < len(args) else kwargs.get(name) for at, name in plan.written])
        )
        return [base for base in made if base not in given]

    def read(self) -> list[torch.Tensor]:
        """What a replay reads, and did not make."""
        return _alive(self._read)

    def written(self) -> list[torch.Tensor]:
        """What a replay writes, and somebody still holds."""
        return _alive(self._written)


def _by_storage(values: Any) -> dict[int, weakref.ref[torch.Tensor]]:
    tensors = [value for value in tensors_in(values) if isinstance(value, torch.Tensor)]
    return {base: weakref.ref(value) for value in tensors if (base := base_of(value))}


def _alive(references: dict[int, weakref.ref[torch.Tensor]]) -> list[torch.Tensor]:
    return [value for reference in references.values() if (value := reference()) is not None]
