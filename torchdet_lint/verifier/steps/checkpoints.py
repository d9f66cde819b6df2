"""A model, its optimizers and what else changes as a run trains -> a file with digests of all of it at each step."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.environment import environment
from torchdet_lint.verifier.recording.values import leaves
from torchdet_lint.verifier.steps.digests import Digests, batch_parts, global_generators, is_generator
from torchdet_lint.verifier.steps.format import (
    BATCH,
    BUFFERS,
    GRADIENTS,
    OPTIMIZER,
    PARAMETERS,
    STATES,
    SYNCED,
    StepsWriter,
)
from torchdet_lint.verifier.steps.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

EVERY = 20
"""Parameters, buffers and states are digested once in so many steps."""


class Checkpoints:
    """Writes digests of a run at the end of each training step into the file `path` (`run.tdsteps`), for
    `torchdet-lint compare` to find the first step at which two runs differ.

    At each step: the batch, the loss, the gradients and the generators; at every `every`-th, and before the first one:
    the parameters and buffers of `model`, the state and options of `optimizer`, and `others` by name: what has a
    `state_dict()` (a scheduler, a `GradScaler`, an averaged model) or is a generator of its own. `model` and
    `optimizer` may be mappings of several by name. `first` is the number of steps that the run has behind it.

    In a distributed run each rank writes its own file, rank 1 `run.rank1.tdsteps`, and `compare --ranks` compares them:
    what `DistributedDataParallel` or a `DTensor` keeps equal on all ranks; with `replicated=True` all parameters and
    buffers that are not sharded, with `replicated=False` none. It changes no result: no random
    number is used. A file that cannot be written any more ends the digests with a warning, and not the run.

    Raises `TypeError` or `ValueError` for what it cannot digest, `StepsError` where the file cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: Any = None,
        optimizer: Any = None,
        every: int = EVERY,
        first: int = 0,
        replicated: bool | None = None,
        **others: Any,
    ) -> None:
        if every < 1 or first < 0:
            raise ValueError("Checkpoints: `every` must be at least 1, `first` at least 0")
        self._models = _by_name(model, "model", "named_parameters")
        self._optimizers = _by_name(optimizer, "optimizer", "param_groups")
        self._own = {name: value for name, value in others.items() if is_generator(value)}
        self._others = {name: value for name, value in others.items() if name not in self._own and value is not None}
        for name, value in self._others.items():
            if not hasattr(value, "state_dict"):
                raise TypeError(f"Checkpoints: `{name}` has no state_dict() and is no random number generator")
        self._every, self._number = every, first
        self._replicated = replicated
        self._replicas = Replicas((), (), 1)
        self.path = of_rank(Path(path))
        self._names = {id(parameter): name for name, parameter in self._parameters()}
        self._hooks: list[Any] = []
        self._writer: StepsWriter | None = None
        self._now = Digests()
        self._starts: dict[str, int] = {}
        self._before: tuple[int, Digests] | None = None

    def __enter__(self) -> Checkpoints:
        """Open the file, and digest what the run begins with."""
        about = {"program": sys.argv, "digest": hashing.NAME, "every": self._every, "environment": environment()}
        rank, world = _rank()
        models, optimizers = self._models.values(), self._optimizers.values()
        self._replicas = Replicas(models, optimizers, world, self._replicated)
        about |= {"replicas": self._replicas.groups, "data_parallel": self._replicas.data_parallel}
        self._writer = StepsWriter(self.path, {**about, "rank": rank, "world": world})
        for prefix, model in self._models.items():
            if (module := self._replicas.watched(model)) is not None:
                self._hooks.append(module.register_forward_pre_hook(functools.partial(self._begins, prefix, model)))
        for optimizer in self._optimizers.values():
            if hasattr(optimizer, "register_step_post_hook"):
                self._hooks.append(optimizer.register_step_post_hook(self._stepped))
        self._starts = global_generators()
        self._whole()
        self._end()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Write what is left and close the file; it says whether the run went to its end."""
        if self._writer is None:
            return
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._write()
        if self._writer.failure:
            warnings.warn(f"{self.path}: not all steps were written: {self._writer.failure}", stacklevel=2)
        self._writer.close(in_order=error is None)
        self._writer = None

    def add(self, loss: Any = None, batch: Any = None) -> None:
        """Digest a loss and a batch of the step under way, which `step` ends: one of several, where gradients are
        accumulated. A loss may be a tensor, a number, or a mapping of these by name.
        """
        if batch is not None:
            for name, part in batch_parts(batch).items():
                self._now.put(BATCH, name, leaves(part))
        if loss is not None:
            named = loss if isinstance(loss, Mapping) else {"loss": loss}
            for name, value in named.items():
                self._now.loss(str(name), value)
        self._now.launch()

    def gradients(self, optimizer: Any = None) -> None:
        """Digest the gradients as they are, of all parameters or of an optimizer's. Needed only where they are gone
        when the step ends and no optimizer of torch's applies them.
        """
        group = self._now
        pairs = self._parameters() if optimizer is None else of_optimizer(optimizer, self._names)
        for name, parameter in pairs:
            values = () if parameter.grad is None else (parameter.grad,)
            # Only those that an optimizer applies have to be reduced by now.
            alike = self._replicas.of_parameter(parameter) if optimizer is not None else ""
            group.put(GRADIENTS, name, values, alike)
        group.launch()

    def step(self, loss: Any = None, batch: Any = None) -> None:
        """End a training step, after the optimizer's, and digest it."""
        if self._writer is None:
            raise RuntimeError("Checkpoints.step() outside of its `with` block")
        self.add(loss, batch)
        if GRADIENTS not in self._now:
            self.gradients()
        self._number += 1
        if self._number % self._every == 0:
            self._whole()
        self._end()

    def _end(self) -> None:
        """The digests of this step are complete; those of the one before are there by now."""
        self._now.generators(self._starts, self._own)
        self._now.launch()
        self._write()
        self._before, self._now = (self._number, self._now), Digests()

    def _write(self) -> None:
        if self._before is not None and self._writer is not None:
            number, digests = self._before
            self._writer.step(number, *digests.finished())
        self._before = None

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has applied its gradients: the program may clear them before the step ends."""
        self.gradients(optimizer)

    def _begins(self, prefix: str, model: Any, module: Any, _: Any) -> None:
        """A forward pass that trains begins, in which the ranks' buffers are equal."""
        if torch.compiler.is_compiling() or not (module.training and torch.is_grad_enabled()):
            return
        if self._writer is None or SYNCED in self._now or (self._number + 1) % self._every:
            return
        for name, buffer in model.named_buffers():
            self._now.put(SYNCED, prefix + name, (buffer,), self._replicas.of_buffer(buffer))
        self._now.launch()

    def _whole(self) -> None:
        """Digest what is too much for every step."""
        now = self._now
        for name, parameter in self._parameters():
            now.put(PARAMETERS, name, (parameter,), self._replicas.of_parameter(parameter))
        for prefix, model in self._models.items():
            for name, buffer in model.named_buffers():
                now.put(BUFFERS, prefix + name, (buffer,))
        for prefix, optimizer in self._optimizers.items():
            self._state(prefix, optimizer)
        for name, other in self._others.items():
            for key, value in other.state_dict().items():
                now.put(STATES, f"{name}: {key}", leaves(value))
        now.launch()

    def _state(self, prefix: str, optimizer: Any) -> None:
        """Digest an optimizer's options and what it keeps for each parameter."""
        alike = self._replicas.of_options(optimizer)
        for name, value in options_of(optimizer):
            self._now.put(OPTIMIZER, prefix + name, leaves(value), alike)
        for name, parameter, kept in state_of(optimizer, self._names):
            self._now.put(OPTIMIZER, prefix + name, leaves(kept), self._replicas.of_state(optimizer, parameter))

    def _parameters(self) -> Iterator[tuple[str, Any]]:
        for prefix, model in self._models.items():
            for name, parameter in model.named_parameters():
                yield prefix + name, parameter


def of_optimizer(optimizer: Any, names: Mapping[int, str]) -> Iterator[tuple[str, Any]]:
    """The parameters of an optimizer, by the name that `names` has for their identity; else by place."""
    for number, group in enumerate(optimizer.param_groups):
        for place, parameter in enumerate(group["params"]):
            yield names.get(id(parameter), f"group {number}, parameter {place}"), parameter


def options_of(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """The options of each group of an optimizer."""
    for number, group in enumerate(optimizer.param_groups):
        for option in sorted(group):
            if option != "params":
                yield f"{option} (group {number})", group[option]


def state_of(optimizer: Any, names: Mapping[int, str]) -> Iterator[tuple[str, Any, list[Any]]]:
    """What an optimizer keeps for each parameter, by name."""
    states = getattr(optimizer, "state", {})
    for name, parameter in of_optimizer(optimizer, names):
        state = states.get(parameter, {})
        yield name, parameter, [state[key] for key in sorted(state)]


def _by_name(value: Any, what: str, needed: str) -> dict[str, Any]:
    """One or several, by what stands before the names of their parts."""
    if value is None:
        return {}
    found = {f"{name}.": one for name, one in value.items()} if isinstance(value, Mapping) else {"": value}
    for one in found.values():
        if not hasattr(one, needed):
            raise TypeError(f"Checkpoints: `{what}` is a {type(one).__name__}, which has no {needed}")
    return found


def _rank() -> tuple[int, int]:
    """This process's rank and the number of ranks."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


def of_rank(path: Path) -> Path:
    """The file of this process's rank, where the run's is `path`."""
    rank, _ = _rank()
    return path.with_name(f"{path.stem}.rank{rank}{path.suffix}") if rank else path


@dataclasses.dataclass
class Opening:
    """The arguments of `Checkpoints` for the callbacks of trainers, which know the model only when training begins."""

    path: str | os.PathLike[str]
    every: int = EVERY
    others: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    checkpoints: Checkpoints | None = None

    def open(self, **found: Any) -> Checkpoints:
        """Begin with what the trainer has."""
        self.close()
        self.checkpoints = Checkpoints(self.path, every=self.every, **{**found, **self.others}).__enter__()
        return self.checkpoints

    def close(self, error: BaseException | None = None) -> None:
        """End, in order or by `error`."""
        if self.checkpoints is not None:
            self.checkpoints.__exit__(None, error)
        self.checkpoints = None
