"""Memory that nobody wrote -> zeros by the fix, opposite patterns by the two sides of a stress pair."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchdet_lint.verifier.remedies.context import Context

# glibc writes the complement of the byte into fresh memory: 255 makes it zero.
HEAP_BYTE: Mapping[str, str] = {"zero": "255", "A": "85", "B": "170"}
TUNABLES = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
"""glibc fills no block that it takes from a thread's cache of small ones: with the byte goes that there is no cache."""
_FACTORIES = ("empty", "empty_like", "empty_strided", "empty_permuted")
_METHODS = ("new_empty", "new_empty_strided")


def has_heap_byte() -> bool:
    """Whether the C library can fill fresh memory for us (glibc)."""
    import platform

    return sys.platform.startswith("linux") and platform.libc_ver()[0] == "glibc"


def with_tunable(tunables: str) -> str:
    """The user's value of `GLIBC_TUNABLES` with ours last, where the last of several holds."""
    return ":".join(filter(None, (tunables.removesuffix(":" + TUNABLES[1]), TUNABLES[1])))


def zero_fresh(context: Context) -> None:
    """`torch.empty` and its kin hand out zeros, as their `zeros` twins would."""

    def install(torch: Any) -> None:
        for owner, names in ((torch, _FACTORIES), (torch.Tensor, _METHODS)):
            for name in names:
                if hasattr(owner, name):
                    original = getattr(owner, name)
                    zeroed = _zeroed(torch, original)
                    context.patches.set(owner, name, zeroed)
                    _keep_scriptable(context, torch, original, zeroed)
        context.patches.set(torch.Tensor, "resize_", _zeroed_growth(torch, torch.Tensor.resize_))
        _zero_constructor(context, torch)

    after_import(context.patches, "torch", install)


def _zeroed(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def fresh(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        written = not isinstance(result, torch.Tensor) or result.is_meta or result.is_quantized
        # Batches that arrive from workers are bound to empty tensors, in an order that means nothing: no op for those.
        if not written and result.numel():
            with torch.no_grad():
                result.zero_()
        return result

    return fresh


def _zeroed_growth(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def resize_(self: Any, *sizes: Any, **kwargs: Any) -> Any:
        before = self.numel()
        result = original(self, *sizes, **kwargs)
        if result.numel() > before and result.is_contiguous() and not result.is_meta:
            with torch.no_grad():
                result.view(-1)[before:].zero_()
        return result

    return resize_


def _zero_constructor(context: Context, torch: Any) -> None:
    """`torch.Tensor(3, 4)` takes sizes and hands out unwritten memory."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        del kwargs
        if args and type(self) is torch.Tensor and all(isinstance(arg, int) for arg in args) and not self.is_meta:
            with torch.no_grad():
                self.zero_()

    context.patches.set(torch.Tensor, "__init__", __init__)


def _keep_scriptable(context: Context, torch: Any, original: Any, wrapped: Any) -> None:
    """TorchScript knows builtins by identity: tell it that the wrapper is the builtin."""
    builtins = sys.modules.get("torch.jit._builtins")
    if builtins is None:
        return
    known = builtins._find_builtin(original)
    if known is not None:
        builtins._register_builtin(wrapped, known)


def fill_mode(byte: int) -> Any:
    """A dispatch mode that fills what `empty` and its kin return with `byte`.

    For systems and devices without a heap byte. Acts in the thread that enters it.
    """
    import torch

    from torchdet_lint.verifier.ops.allocations import is_unused, not_ours
    from torchdet_lint.verifier.ops.dispatch import OpMode, name_of

    fresh = frozenset(f"aten::{name}" for name in (*_FACTORIES, *_METHODS))

    def fill(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = function(*args, **kwargs)
        if name_of(function) in fresh and isinstance(result, torch.Tensor) and not result.is_meta:
            _fill(torch, result, 0 if is_unused(not_ours(sys._getframe())) else byte)
        return result

    return OpMode(fill)


def _fill(torch: Any, tensor: Any, byte: int) -> None:
    if tensor.layout is not torch.strided or tensor.is_quantized or not tensor.numel():
        return
    from torch.utils._python_dispatch import _disable_current_modes

    # A recorder must not see the fill: to the program the memory is unwritten.
    with _disable_current_modes():
        storage = tensor.untyped_storage()
        if storage.device.type == "meta":  # a fake one's
            return
        torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).fill_(byte)
