"""What runs on a GPU without an op of torch -> one record each: the replay of a CUDA graph, a kernel of Triton.

The ops of a graph are not digested while they are captured: they have not run yet, and a digest, which waits for the
GPU, ends the capture with an error.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.patching.patches import Patches, after_import
from torchdet_lint.verifier.recording.op.captured import Captured
from torchdet_lint.verifier.recording.values import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.recording.streams import Run, Stream

    Here = Callable[[Run], Stream | None]

_LAUNCHERS = {
    "triton.runtime.jit": ("JITFunction",),
    "triton.runtime.autotuner": ("Autotuner", "Heuristics"),
}
"""Modules of Triton, and their classes whose `run` launches a kernel."""


def watch(run: Run, patches: Patches, here: Here) -> None:
    """Record them in `run` until `patches` are taken back."""
    _watch_graphs(run, patches, here)
    _take_lengths_as_numbers(patches)
    for name, kinds in _LAUNCHERS.items():
        after_import(patches, name, lambda module, kinds=kinds: _watch_launchers(run, patches, module, kinds, here))  # type: ignore[misc]


def _watch_graphs(run: Run, patches: Patches, here: Here) -> None:
    from torch.cuda import graphs as home

    kind = home.CUDAGraph
    graphs: weakref.WeakKeyDictionary[Any, Captured] = weakref.WeakKeyDictionary()
    capture_begin, capture_end, replay = kind.capture_begin, kind.capture_end, kind.replay

    @functools.wraps(capture_begin)
    def begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
        out = capture_begin(graph, *args, **kwargs)
        run.captured = graphs[graph] = Captured()
        return out

    @functools.wraps(capture_end)
    def end(graph: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return capture_end(graph, *args, **kwargs)
        finally:
            run.captured = None

    @functools.wraps(replay)
    def replayed(graph: Any, *args: Any, **kwargs: Any) -> Any:
        stream, captured = here(run), graphs.get(graph)
        if stream is None or captured is None:
            return replay(graph, *args, **kwargs)
        return stream.whole(
            trace.GRAPH, captured.read(), lambda: replay(graph, *args, **kwargs), lambda _: ((), captured.written())
        )

    patches.set(kind, "capture_begin", begin)
    patches.set(kind, "capture_end", end)
    patches.set(kind, "replay", replayed)


def _take_lengths_as_numbers(patches: Patches) -> None:
    """Give `torch.ctc_loss` lengths that lie on the CPU as numbers, as it takes them itself where no dispatch mode is
    active: under one it hands tensors of two devices to an op, which raises.
    """
    original = torch.ctc_loss
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)

    @functools.wraps(original)
    def ctc_loss(
        log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *args: Any, **kwargs: Any
    ) -> Any:
        given = (input_lengths, target_lengths)
        plain = compiling is not None and not compiling() and log_probs.is_cuda
        if plain and all(isinstance(lengths, torch.Tensor) and lengths.is_cpu for lengths in given):
            input_lengths, target_lengths = (lengths.flatten().tolist() for lengths in given)
        return original(log_probs, targets, input_lengths, target_lengths, *args, **kwargs)  # noqa: TDL403

    patches.set(torch, "ctc_loss", ctc_loss)


def _watch_launchers(run: Run, patches: Patches, module: Any, kinds: tuple[str, ...], here: Here) -> None:
    for name in kinds:
        kind = getattr(module, name, None)
        if kind is not None and "run" in vars(kind):
            patches.set(kind, "run", _launching(run, kind.run, here))


def _launching(run: Run, original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def launch(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        stream = None if kwargs.get("warmup") or run.captured is not None else here(run)
        given = [value for value in tensors_in([args, kwargs]) if isinstance(value, torch.Tensor)]
        if stream is None or not given:
            return original(kernel, *args, **kwargs)
        # Which of them it writes stands in no signature.
        name = f"{trace.KERNEL}.{_name_of(kernel)}"
        return stream.whole(name, given, lambda: original(kernel, *args, **kwargs), lambda _: ((), given))

    return launch


def _name_of(kernel: Any) -> str:
    """What the function of a kernel is called, below what tunes it."""
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", "kernel"))
