"""The update of an optimizer of torch -> one record, where what its many small ops do follows from what they are given.

`torch.optim.adam.adam` and its like take all that they read as arguments and write to nothing else; their ops go over
elements one by one. Left to a record for each op are parameters that are not on the CPU, that other processes or
threads share, of which a part was never written, and whatever is not a plain tensor; updates beside which another mode
of the program's wants to see each op; and fused ones, which are one op already and do not mark all that they write.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _python_dispatch

from torchdet_lint.verifier import trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run, Stream

_NAMES = ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd")


def watch(run: Run, patches: Patches, here: Callable[[Run], Stream | None], unwatched: Callable[[], bool]) -> None:
    """Record the updates of `run`, where they are `unwatched`, until `patches` are taken back."""
    for name in _NAMES:
        module = importlib.import_module(f"torch.optim.{name}")
        original = getattr(module, name, None)
        if original is not None:
            patches.set(module, name, _recorded(run, here, original, unwatched))


def nobody_looks(run: Run) -> Callable[[], bool] | None:
    """What tells whether nobody but the recorder sees the ops of this thread, not the compiler either, and no other
    thread changes what they read; None where a release of torch does not tell.
    """
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    names = ("_len_torch_dispatch_stack", "_len_torch_function_stack")
    ops, functions = (getattr(torch._C, name, None) for name in names)
    if compiling is None or ops is None or functions is None or not hasattr(_python_dispatch, "_pop_mode"):
        return None
    # The compiler looks into what is patched, and is to find the original alone.
    return lambda: not compiling() and run.alone and ops() == 1 and not functions()


def _recorded(
    run: Run, here: Callable[[Run], Stream | None], original: Callable[..., Any], unwatched: Callable[[], bool]
) -> Callable[..., Any]:
    called = f"{trace.UPDATE}.{original.__name__}"

    @functools.wraps(original)
    def update(*args: Any, **kwargs: Any) -> Any:
        if not unwatched() or torch.is_grad_enabled() or kwargs.get("fused") or (stream := here(run)) is None:
            return original(*args, **kwargs)
        return stream.folded(called, (*args, *kwargs.values()), lambda: original(*args, **kwargs))

    return update
