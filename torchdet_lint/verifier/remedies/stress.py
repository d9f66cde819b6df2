"""A run -> one side of a stress pair: both are legal, and opposite in every order and byte that nobody promised."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.patches import after_import
from torchdet_lint.verifier.remedies import memory, ordering, turns
from torchdet_lint.verifier.remedies.context import Context

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from torchdet_lint.verifier.patching.events import Reporter

_HASH_SEED: Mapping[str, str] = {"A": "1", "B": "2"}
PERTURBATIONS: tuple[str, ...] = (
    "order of files in a folder",
    "order in which futures and pools complete",
    "order in which threads of the program's own run",
    "PYTHONHASHSEED",
    "addresses of objects",
    "content of fresh memory",
)
_SIZES = range(16, 513, 16)
_HELD = 101


def environment(side: str, base_env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of one side (`"A"`, `"B"`, or `""` for none) of a stress pair."""
    if not side:
        return {}
    result = {"PYTHONHASHSEED": _HASH_SEED[side]}
    if memory.has_heap_byte():
        result["MALLOC_PERTURB_"] = memory.HEAP_BYTE[side]
        result[memory.TUNABLES[0]] = memory.with_tunable(base_env.get(memory.TUNABLES[0], ""))
    return result


def install(side: str, fixed: Collection[str], reporter: Reporter | None = None, *, running: bool = False) -> Context:
    """Apply one side to this process. What one of the `fixed` rules holds fast is left alone.

    `running`: the process did not start in the side's environment, so that fresh memory is filled at dispatch.
    """
    context = Context((), 0, reporter)
    reverse = side == "B"
    if "TDL304" not in fixed:
        ordering.files(context, reverse=reverse)
    if "TDL306" not in fixed:
        ordering.completion(context, reverse=reverse)
        turns.threads(context, reverse=reverse)
    if reverse:
        _shift(context)
    if "TDL501" not in fixed:
        after_import(
            context.patches, "torch", lambda torch: _fill(context, torch, int(memory.HEAP_BYTE[side]), running)
        )
    return context


def _shift(context: Context) -> None:
    """Keep small objects of every size that the allocator knows: those made later stand elsewhere, and what is hashed
    by address comes in another order."""
    held = [bytes(size - sys.getsizeof(b"")) for size in _SIZES for _ in range(_HELD) if size > sys.getsizeof(b"")]
    context.patches.on_undo(held.clear)


def _fill(context: Context, torch: Any, byte: int, running: bool) -> None:
    """Where the heap byte does not reach (other systems, CUDA's own allocator) fresh tensors are filled at dispatch."""
    if memory.has_heap_byte() and not running and not torch.cuda.is_available():
        return
    mode = memory.fill_mode(byte)
    mode.__enter__()
    context.patches.on_undo(lambda: mode.__exit__(None, None, None))
