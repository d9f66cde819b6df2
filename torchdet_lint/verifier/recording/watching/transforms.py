"""What a library's transform of one image computes or draws -> one record of what it was given and what it gives.

`ToTensor` and `Normalize` of torchvision run up to ten small ops for each image, and `RandomResizedCrop` twenty, most
of which read numbers of their own. The tables `folded` and `folded_draws` of `dispatch.toml` name the functions: all
that they do follows from what they are given and from torch's generator. Left to a record for each op are images with a
gradient, tensors as those of an optimizer's update, and what another mode, thread or the compiler looks at.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.catalogue import runtime
from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording.streams import Run, Stream


def watch(
    run: Run,
    patches: Patches,
    here: Callable[[Run], Stream | None],
    unwatched: Callable[[], bool],
    keep_compiler_out: Callable[..., None],
) -> None:
    """Record the transforms of `run`, where they are `unwatched`, until `patches` are taken back."""
    table = runtime.dispatch()
    for draws, modules in ((False, table.folded), (True, table.folded_draws)):
        recorded = functools.partial(_recorded, run, here, unwatched, keep_compiler_out, draws)
        for module, names in modules.items():
            after_import(patches, module, functools.partial(_replace, patches, names, recorded))


def _replace(patches: Patches, names: Iterable[str], recorded: Callable[[Any, str], Any], module: ModuleType) -> None:
    for name in names:
        holder, _, last = name.rpartition(".")
        owner: Any = getattr(module, holder, None) if holder else module
        held = vars(owner).get(last) if owner is not None else None
        if isinstance(held, staticmethod):
            patches.set(owner, last, staticmethod(recorded(held.__func__, name)))
        elif isinstance(held, types.FunctionType):
            patches.set(owner, last, recorded(held, name))


def _recorded(
    run: Run,
    here: Callable[[Run], Stream | None],
    unwatched: Callable[[], bool],
    keep_compiler_out: Callable[..., None],
    draws: bool,
    original: types.FunctionType,
    name: str,
) -> Any:
    def transform(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if not unwatched() or needs_gradient(given) or (stream := here(run)) is None:
            return original(*args, **kwargs)
        inputs = given, *map(form, given)
        return stream.folded(called, inputs, lambda: original(*args, **kwargs), draws=draws, takes=True)

    called, form, needs_gradient = f"transforms.{name}", _form, _needs_gradient
    # TorchScript reads the source of the original, and looks its names up where this function says.
    found = types.FunctionType(transform.__code__, original.__globals__, original.__name__, None, transform.__closure__)
    keep_compiler_out(found)
    return functools.update_wrapper(found, original)


def _form(value: Any) -> Any:
    """What is no tensor in it, on which what is drawn depends: the size of an image, the settings of a transform."""
    if isinstance(value, torch.Tensor):
        return None
    if isinstance(value, (list, tuple)):
        return [*map(_form, value)]
    if isinstance(value, torch.nn.Module):
        return [setting for name, setting in vars(value).items() if not name.startswith("_")]
    return getattr(value, "shape", None) or getattr(value, "size", None)


def _needs_gradient(values: Iterable[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)
