"""A record of a thread -> its bytes, and the values that went into it: what both runs in lockstep look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torchdet_lint.verifier.ops.plans import COLLECTIVE, EMPTY, LIFT
from torchdet_lint.verifier.recording.lockstep.rows import Kept
from torchdet_lint.verifier.recording.values import base_of, leaves, plain_digest, tensors_in
from torchdet_lint.verifier.recording.watching.taps import made_by, written_by

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdet_lint.verifier.ops.plans import Plan
    from torchdet_lint.verifier.recording.streams import Run, Stream

_NUMBERS = (bool, int, float)


class Read(NamedTuple):
    """What an op was about to read: its tensors, those of them that no op had made (`leaves`), and what was known of
    the memory that it writes in place, by base.
    """

    tensors: list[torch.Tensor]
    leaves: list[torch.Tensor]
    before: dict[int, int | None]


NOTHING = Read([], [], {})


class Made(NamedTuple):
    """What a record is of: tensors, and what is none, as numbers, texts or digests."""

    tensors: list[torch.Tensor]
    numbers: list[bool | int | float | str]


class Listener:
    """A tap at a thread that knows the bytes of each record."""

    def __init__(self, run: Run, stream: Stream) -> None:
        self.run, self.stream = run, stream
        self.listens = True
        self._begin = 0
        self._flushed: bytes | None = None
        flush = stream.flush

        def flush_and_keep() -> None:
            self._flushed = bytes(stream.buffer[self._begin :])
            flush()

        stream.flush = flush_and_keep  # type: ignore[method-assign]

    def due(self) -> bool:
        """Whether anybody follows yet; not in a process that was forked."""
        self._begin, self._flushed = len(self.stream.buffer), None
        return self.listens and self.stream.kind != "process"

    @property
    def record(self) -> bytes:
        """The last record."""
        return self._flushed if self._flushed is not None else bytes(self.stream.buffer[self._begin :])

    def before(self, plan: Plan, args: Any, kwargs: Any) -> Read:
        """What an op is about to read."""
        owners, foreign = self.run.owners, self.run.foreign
        written = {id(value) for value in written_by(plan, args, kwargs)}
        tensors = [*_plain((args, kwargs))]
        bases = [*map(base_of, tensors)]
        pairs = [*zip(tensors, bases, strict=True)]
        came = [] if plan.kind == LIFT else [t for t, base in pairs if base not in owners or base in foreign]
        changed = [*_plain(written_by(plan, args, kwargs))]
        return Read(
            tensors,
            [tensor for tensor in came if id(tensor) not in written],
            {base: owners.get(base) for base in map(base_of, changed)},
        )

    @staticmethod
    def made(plan: Plan, args: Any, kwargs: Any, out: Any) -> Made:
        """What an op made: not memory that nothing has written, and not what it returns of what it was given."""
        if plan.kind in (EMPTY, COLLECTIVE) or plan.binds:
            return Made([], [])
        values = [*tensors_in(made_by(plan, args, kwargs, out))]
        return made_of([value for at, value in enumerate(values) if at not in plan.scratch])

    def told(self, tensor: torch.Tensor, size: int, before: dict[int, int | None]) -> Kept:
        """What is told of a tensor that was made."""
        base = base_of(tensor)
        offset: Any = tensor.storage_offset() if size >= 0 else 0
        stride = tuple(tensor.stride()) if size >= 0 else ()
        known = self.run.owners.get(base)
        return Kept(str(tensor.dtype), tuple(tensor.shape), stride, offset, size, known, before.get(base))


def made_of(values: Iterable[Any]) -> Made:
    """Some values, tensors and others."""
    tensors, numbers = [], []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif type(value) in _NUMBERS:
            numbers.append(value)
        else:
            numbers.append(repr(value) if isinstance(value, complex) else plain_digest(value))
    return Made(tensors, numbers)


def taken(value: Any) -> Made:
    """What is in a batch, or in what NumPy is handed."""
    return made_of(leaves(value))


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in what a call was given."""
    return [*_plain(value)]


def _plain(value: Any) -> Iterable[torch.Tensor]:
    return (one for one in tensors_in(value) if isinstance(one, torch.Tensor))
