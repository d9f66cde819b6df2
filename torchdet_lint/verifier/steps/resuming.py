"""A program that knows nothing of it -> a file of steps: what stands before each step of its optimizer, and notes of
what it saves and loads.

A step is one of the first optimizer that makes any. Batches are those that a `DataLoader` hands to the process, the
loss is what `backward` is called on. What else a checkpoint has to hold is looked for among the live objects: modules,
schedulers, scalers, optimizers, samplers, and objects of the program's own classes with a `state_dict()`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import json
import os
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.steps.digests import Digests

_CLOCK_NS = 20_000_000
"""By how much the time of a file may lie before that of the clock: file systems count in ticks of the kernel."""


class Order(NamedTuple):
    """What a run notes: steps into `out`, saves and loads into `notes`; the live objects before step `census`.

    It ends before step `end` (0: never), and, with `least`, before the first step that follows a save after step
    `least` or later.
    """

    out: str
    notes: str
    census: int = 0
    end: int = 0
    least: int = 0


def install(patches: Patches, order: str) -> None:
    """Watch this process from its import of torch on; `order` is an `Order` as JSON."""
    after_import(patches, "torch", lambda _: _Watch(Order(**json.loads(order))).begin(patches))


class _Watch:
    def __init__(self, order: Order) -> None:
        self.order = order
        self.done = 0
        self.saved = -1
        self.writer: Any = None
        self.optimizer: Any = None
        self.busy = self.open = False
        self.in_memory: list[tuple[int, int]] = []
        self.batches: dict[int, Digests] = {}

    def begin(self, patches: Patches) -> None:
        """Change what torch calls when it steps, saves, loads, goes back and hands over a batch."""
        import torch
        from torch.optim import optimizer as optimizers
        from torch.utils.data import dataloader

        from torchdet_lint.verifier.steps.digests import Digests, global_generators

        self.starts = global_generators()
        self.now = Digests()
        optimizers.register_optimizer_step_pre_hook(self._before)
        optimizers.register_optimizer_step_post_hook(self._after)
        self._wrap(patches, torch, "save", "save", 1)
        self._wrap(patches, torch, "load", "load", 0)
        for name, what, at in (("save_file", "save", 1), ("load_file", "load", 0)):
            after_import(
                patches, "safetensors.torch", functools.partial(self._wrap, patches, name=name, what=what, at=at)
            )
        backward, following = torch.autograd.backward, dataloader._BaseDataLoaderIter.__next__

        @functools.wraps(backward)
        def noted(tensors: Any, *more: Any, **named: Any) -> Any:
            if not self.busy:
                self.now.loss("loss", tensors if isinstance(tensors, torch.Tensor) else list(tensors))
            return backward(tensors, *more, **named)

        @functools.wraps(following)
        def __next__(iterator: Any) -> Any:  # noqa: N807
            try:
                batch = following(iterator)
            except StopIteration:
                # No step came of what it handed over last: a validation, say, that only one of the runs has just made.
                self.batches.pop(id(iterator), None)
                raise
            self._batch(self.batches.setdefault(id(iterator), Digests()), batch)
            return batch

        patches.set(torch.autograd, "backward", noted)
        patches.set(dataloader._BaseDataLoaderIter, "__next__", __next__)

    def _wrap(self, patches: Patches, module: Any, name: str, what: str, at: int) -> None:
        original = getattr(module, name)

        @functools.wraps(original)
        def noted(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            target = arguments[at] if at < len(arguments) else named.get("f", named.get("filename"))
            path = os.fspath(target) if isinstance(target, (str, os.PathLike)) else getattr(target, "name", "")
            if path:
                self._note(what, str(Path(str(path)).absolute()))
            elif what == "load":
                self._note(what, "")
            elif isinstance(target, io.BytesIO):
                self.in_memory.append((target.getbuffer().nbytes, time.time_ns()))
            return result

        patches.set(module, name, noted)

    def _written(self) -> None:
        """What was saved into memory is a save once a file of that size is there, written since then."""
        pending, self.in_memory = self.in_memory, []
        if not pending:
            return
        files: list[tuple[Path, int, int]] = []
        for folder, _, names in os.walk("."):
            for path in (Path(folder, name) for name in names):
                with contextlib.suppress(OSError):
                    about = path.stat()
                    files.append((path, about.st_size, about.st_mtime_ns + _CLOCK_NS))
        for size, since in pending:
            for path in sorted(path for path, large, at in files if large == size and at >= since)[:1]:
                self._note("save", str(path.absolute()))

    def _note(self, what: str, told: str) -> None:
        if what == "save":
            self.saved = self.done
        with Path(self.order.notes).open("a", encoding="utf-8") as file:
            file.write(json.dumps([what, self.done, told]) + "\n")

    def _batch(self, kept: Digests, batch: Any) -> None:
        from torchdet_lint.verifier.recording.values import leaves
        from torchdet_lint.verifier.steps.digests import batch_parts
        from torchdet_lint.verifier.steps.format import BATCH

        for name, part in batch_parts(batch).items():
            kept.put(BATCH, name, leaves(part))
        kept.launch()

    def _before(self, optimizer: Any, arguments: Any, named: Any) -> tuple[Any, Any] | None:
        """Before a step: note what stands, and end where that is ordered. A closure is handed on in one that notes the
        loss and the gradients when it has been called for the first time.
        """
        if self.optimizer is None:
            self.optimizer = optimizer
        if optimizer is not self.optimizer:
            return None
        self._written()
        order = self.order
        if (order.least and self.saved == self.done >= order.least) or (order.end and self.done + 1 >= order.end):
            self._note("ended", "")
            if self.writer is not None:
                self.writer.close(in_order=True)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # as a job is that is taken from its machine: nothing of the program runs after it
        self.busy = True
        self._whole()
        self.busy, self.open = False, True
        closure = next((one for one in (*arguments, named.get("closure")) if callable(one)), None)
        if closure is None:
            self._close()
            return None

        @functools.wraps(closure)
        def noted(*more: Any, **others: Any) -> Any:
            value = closure(*more, **others)
            self._close()
            return value

        handed = {name: noted if one is closure else one for name, one in named.items()}
        return tuple(noted if one is closure else one for one in arguments), handed

    def _close(self) -> None:
        """Note the gradients of a step, and write what is known of it, once."""
        from torchdet_lint.verifier.steps.checkpoints import of_optimizer
        from torchdet_lint.verifier.steps.format import GRADIENTS

        if not self.open:
            return
        self.busy, self.open = True, False
        for name, parameter in of_optimizer(self.optimizer, self.names):
            self.now.put(GRADIENTS, name, () if parameter.grad is None else (parameter.grad,))
        self._write()
        self.busy = False

    def _after(self, optimizer: Any, *_: Any) -> None:
        from torchdet_lint.verifier.steps.digests import Digests

        if optimizer is self.optimizer:
            self._close()
            self.done += 1
            self.now = Digests()
            self.batches.clear()

    def _whole(self) -> None:
        from torchdet_lint.verifier.recording.values import leaves
        from torchdet_lint.verifier.steps.checkpoints import of_optimizer, options_of, state_of
        from torchdet_lint.verifier.steps.format import OPTIMIZER, PARAMETERS

        if not self.done:
            self.names = {id(p): name for module in roots() for name, p in module.named_parameters()}
        for name, parameter in of_optimizer(self.optimizer, self.names):
            self.now.put(PARAMETERS, name, (parameter,))
        for name, value in options_of(self.optimizer):
            self.now.put(OPTIMIZER, name, leaves(value))
        for name, _, kept in state_of(self.optimizer, self.names):
            self.now.put(OPTIMIZER, name, leaves(kept))
        if self.done + 1 == self.order.census:
            for group, name, value in census(self.optimizer):
                self.now.put(group, name, leaves(value))
        for handed in self.batches.values():
            self.now.take(handed)
        self.now.generators(self.starts, {})

    def _write(self) -> None:
        from torchdet_lint.verifier.recording import hashing
        from torchdet_lint.verifier.steps.checkpoints import of_rank
        from torchdet_lint.verifier.steps.format import StepsWriter

        if self.writer is None:
            self.writer = StepsWriter(of_rank(Path(self.order.out)), {"digest": hashing.NAME})
        self.writer.step(self.done + 1, *self.now.finished())


def roots() -> list[Any]:
    """The live modules that are part of no other."""
    import torch

    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    inner = {id(child) for module in modules for child in module._modules.values()}
    return [module for module in modules if id(module) not in inner]


def census(optimizer: Any) -> Iterator[tuple[str, str, Any]]:
    """What a checkpoint has to hold besides the parameters and the optimizer that is known: group, name, value.
    Objects of one class are told apart by their order of names, then by number. The group `buffers` is what a module
    holds beside parameters of an optimizer, which the forward pass of this step may have changed already.
    """
    import torch
    from torch.optim import lr_scheduler

    from torchdet_lint.verifier.steps.format import BUFFERS, STATES

    own = _parameters(optimizer)
    others = [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)]
    trained = set().union(*map(_parameters, others))
    scheduler = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
    scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
    found: list[tuple[str, dict[str, Any]]] = []
    for module in roots():
        pairs = (*module.named_parameters(), *module.named_buffers())
        state = {name: tensor for name, tensor in pairs if id(tensor) not in own}
        if len(state) < len(pairs):
            yield from ((BUFFERS, name, state[name]) for name in state)
            continue
        if trained & {id(parameter) for parameter in module.parameters()}:
            buffers = {name for name, _ in module.named_buffers()}
            yield from ((BUFFERS, f"{type(module).__name__}: {name}", state.pop(name)) for name in sorted(buffers))
        found += [(type(module).__name__, state)] if state else []
    for one in gc.get_objects():
        kind = type(one)  # and no isinstance: a proxy would be asked, and may raise
        if issubclass(kind, torch.nn.Module) or one is optimizer:
            continue
        if issubclass(kind, (scheduler, scaler, torch.optim.Optimizer)):
            found.append((kind.__name__, one.state_dict()))
        elif issubclass(kind, torch.utils.data.Sampler):
            found.append((kind.__name__, _of_sampler(one)))
        elif hasattr(kind, "state_dict") and _of_the_program(kind.__module__):
            found.append((kind.__name__, _tensors(one)))
    counts: dict[str, int] = {}
    for name, state in sorted(found, key=lambda pair: (pair[0], sorted(map(str, pair[1])))):
        counts[name] = counts.get(name, 0) + 1
        number = f" {counts[name]}" if counts[name] > 1 else ""
        for key in state:
            yield STATES, f"{name}{number}: {key}", state[key]


def _parameters(optimizer: Any) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}


def _of_sampler(sampler: Any) -> dict[str, Any]:
    generator = getattr(sampler, "generator", None)
    state = {"epoch": sampler.epoch} if isinstance(getattr(sampler, "epoch", None), int) else {}
    return {**state, **({"generator": generator.get_state()} if generator is not None else {})}


@functools.cache
def _installed() -> tuple[str, ...]:
    """The folders of Python's own modules and of installed packages."""
    return tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib"))


@functools.cache
def _of_the_program(module: str) -> bool:
    """Whether a module is neither Python's nor of an installed package."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return module == "__main__" or (file is not None and not file.startswith(_installed()))


def _tensors(one: Any) -> dict[str, Any]:
    """The tensors of an object's own state; other values may be times, or names of this run."""
    import torch

    try:
        state = one.state_dict()
        return {str(key): state[key] for key in state if isinstance(state[key], torch.Tensor)}
    except Exception:
        return {}
