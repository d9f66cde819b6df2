"""A recorded program -> marks in its trace: an optimizer's steps, the losses, passes over a loader; the first seed;
tasks; compiled regions; what runs on a GPU beside torch's ops; what NumPy is handed.

What is changed about torch for it is put back when the recording ends.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _python_dispatch

from torchdet_lint.verifier.patching.patches import Patches, after_import
from torchdet_lint.verifier.recording.op import regions
from torchdet_lint.verifier.recording.op.places import current_node
from torchdet_lint.verifier.recording.watching import (
    constraints,
    handed,
    kernels,
    ranks,
    seeds,
    tasks,
    transforms,
    updates,
)
from torchdet_lint.verifier.recording.watching.expected import RUNS

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable

    from torchdet_lint.verifier.recording.streams import Run, Stream

_REGION_HOMES = ("torch._inductor.output_code", "torch._inductor.codecache")
"""The modules that define `CompiledFxGraph`, of newer releases first."""


def watch(run: Run, undo: contextlib.ExitStack, keep_compiler_out: Callable[..., None]) -> None:
    """Mark the progress of `run` until `undo` is closed."""
    patches = Patches()
    undo.callback(patches.undo)
    RUNS.add(run)
    undo.callback(RUNS.discard, run)
    _watch_steps(run, undo)
    _watch_engine(run, patches, keep_compiler_out)
    _watch_passes(run, patches)
    handed.watch(run, patches, _here, keep_compiler_out)
    ranks.watch(run, patches)
    seeds.watch(run, patches, _here)
    tasks.watch(run, patches, _here)
    if (unwatched := updates.nobody_looks(run)) is not None:
        updates.watch(run, patches, _here, unwatched)
        constraints.watch(run, patches, _here, unwatched, keep_compiler_out)
        transforms.watch(run, patches, _here, unwatched, keep_compiler_out)
    kernels.watch(run, patches, _here)
    for name in _REGION_HOMES:
        after_import(patches, name, lambda module: _watch_regions(run, patches, module, keep_compiler_out))


def _here(run: Run) -> Stream | None:
    """The stream of the thread that calls; in a thread of autograd's own that of the thread that waits for it, whose
    modes it has.
    """
    ident = threading.get_ident()
    live = list(run.live.values())
    found = next((stream for stream in live if stream.ident == ident), None)
    if found is not None or current_node() is None:
        return found
    modes = _python_dispatch._get_current_dispatch_mode_stack()
    return next((stream for stream in live if any(mode is stream.mode for mode in modes)), None)


def _watch_steps(run: Run, undo: contextlib.ExitStack) -> None:
    from torch.optim import optimizer as optimizers

    register = getattr(optimizers, "register_optimizer_step_post_hook", None)
    if register is None:
        return
    made: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()

    def stepped(optimizer: Any, *_: Any) -> None:
        count = made.setdefault(optimizer, [0, len(made)])
        count[0] += 1
        if (stream := _here(run)) is not None:
            stream.mark("step", count[0], name=f"{type(optimizer).__name__} {count[1] + 1}")

    undo.callback(register(stepped).remove)


def _watch_engine(run: Run, patches: Patches, keep_compiler_out: Callable[..., None]) -> None:
    """Note the losses, and where the program waits for the engine: on a GPU it runs in a thread without its frames."""
    backward, grad = torch.autograd.backward, torch.autograd.grad
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

    def waiting(stream: Stream | None, function: Callable[..., Any], args: Any, named: Any) -> Any:
        if stream is None:
            return function(*args, **named)
        before, stream.engine = stream.engine, sys._getframe(1)
        try:
            return function(*args, **named)
        finally:
            stream.engine = before

    @functools.wraps(backward)
    def backward_noting_loss(tensors: Any, *more: Any, **named: Any) -> Any:
        stream = _here(run)
        value = _number(tensors) if stream is not None else None
        if stream is not None and value is not None:
            stream.mark("loss", 0, value)
        return waiting(stream, backward, (tensors, *more), named)

    @functools.wraps(grad)
    def gradients(*args: Any, **named: Any) -> Any:
        # The compiler looks into this function, and is to find the original alone.
        if compiling():
            return grad(*args, **named)
        return waiting(_here(run), grad, args, named)

    keep_compiler_out(backward_noting_loss, waiting)
    patches.set(torch.autograd, "backward", backward_noting_loss)
    patches.set(torch.autograd, "grad", gradients)


def _number(tensors: Any) -> float | None:
    """The value of the one number that `backward` is called on. Reading it is no op of the program's."""
    try:
        with torch._C.DisableTorchFunction():
            one = tensors if isinstance(tensors, torch.Tensor) else tensors[0] if len(tensors) == 1 else None
            if one is None or one.numel() != 1 or not one.is_floating_point() or one.device.type not in ("cpu", "cuda"):
                return None
            if one.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
                return None
            with _python_dispatch._disable_current_modes():
                return float(one.detach().item())
    except Exception:
        return None


def _watch_passes(run: Run, patches: Patches) -> None:
    from torch.utils.data import DataLoader

    begun: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
    original = DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(loader: Any) -> Any:  # noqa: N807
        count = begun.setdefault(loader, [0, len(begun)])
        count[0] += 1
        if (stream := _here(run)) is not None:
            stream.mark("pass", count[0], name=f"loader {count[1] + 1}")
        return original(loader)

    patches.set(DataLoader, "__iter__", __iter__)


def _watch_regions(run: Run, patches: Patches, module: Any, keep_compiler_out: Callable[..., None]) -> None:
    kind = getattr(module, "CompiledFxGraph", None)
    if kind is None or kind.__module__ != module.__name__:
        return
    original = kind.__call__

    @functools.wraps(original)
    def __call__(graph: Any, inputs: Any) -> Any:  # noqa: N807
        stream = _here(run)
        if stream is None:
            return original(graph, inputs)
        mutated = sorted(getattr(graph, "mutated_input_idxs", None) or ())
        # A boxed call empties the list that it is given.
        given = list(inputs)
        changed = [given[number] for number in mutated if number < len(given)]
        return stream.whole(regions.called(graph), given, lambda: original(graph, inputs), lambda out: (out, changed))

    keep_compiler_out(__call__)
    patches.set(kind, "__call__", __call__)
