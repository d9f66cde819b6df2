"""A value that an op read or wrote -> its tensors and numbers, its storage, and the digest of a number."""

from __future__ import annotations

import ctypes
import functools
import struct
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.recording import hashing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MINUS_ONE, NAN = 0x5BD1E9955BD1E995, 7
_OPAQUE = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    functools.partial,
    torch.nn.Module,
)
"""What is no data though it has attributes."""


def number_digest(value: Any) -> int:
    """A digest of a Python number that is the same in every process."""
    if isinstance(value, complex):
        return hash((number_digest(value.real), number_digest(value.imag)))
    # In Python, -1 and -2 have the same hash.
    if value == -1:
        return MINUS_ONE
    if isinstance(value, float):
        return hash(value) if value == value else NAN
    return hash(value) if isinstance(value, int) else 0


def exact(value: Any) -> int:
    """A digest of a Python number that tells apart all bits of a float."""
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d", value), "little")
    return number_digest(value) & hashing.MASK


def base_of(tensor: torch.Tensor) -> int:
    """The address of the first byte of a tensor's storage, which all its views share; 0 where there is none."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter and hashing.is_fake(tensor):
        return 0
    try:
        offset: Any = tensor.storage_offset()
        return tensor.data_ptr() - (offset * tensor.element_size() if offset else 0)
    except (RuntimeError, NotImplementedError):
        pass
    try:
        parts = hashing._parts(tensor)
        return base_of(parts[-1]) if parts else 0
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


def bytes_of(tensor: torch.Tensor) -> bytes | None:
    """The elements of a tensor in order; None where it is no plain one."""
    try:
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            return None
        flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
        return ctypes.string_at(flat.data_ptr(), flat.nbytes) if flat.numel() else b""
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def is_spread(value: Any) -> bool:
    """Whether it is a tensor that several processes hold together, a `DTensor`: its ops may be collectives."""
    return isinstance(value, torch.Tensor) and hasattr(value, "placements")


def local_of(tensor: Any) -> torch.Tensor:
    """What this process holds of a tensor."""
    here: torch.Tensor = tensor._local_tensor if is_spread(tensor) else tensor
    return here


def tensors_in(value: Any) -> Iterable[Any]:
    """The tensors and numbers in a nested return value, in order."""
    if isinstance(value, (torch.Tensor, int, float, complex)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for key in value:
            yield from tensors_in(value[key])


def leaves(value: Any) -> Iterator[Any]:
    """The tensors, numbers, texts and arrays in a value, in order: in containers, and in the attributes of objects.
    What is met again counts once, so that objects may refer to each other; of what is none of these, nothing.
    """
    waiting = [value]
    # Holding them keeps the address of what a lazy mapping makes from being another's.
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        if isinstance(value, (torch.Tensor, int, float, complex, str, bytes)):
            yield value
            continue
        if isinstance(value, _OPAQUE) or id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, Mapping):
            waiting += reversed([value[key] for key in value])
        elif isinstance(value, (list, tuple)):
            waiting += reversed(value)
        elif getattr(getattr(value, "dtype", None), "hasobject", False):
            # Its memory holds addresses.
            waiting.append(value.tolist())
        elif hasattr(value, "tobytes"):
            yield value
        else:
            waiting += reversed(_attributes(value))


def _attributes(value: Any) -> list[Any]:
    """What the attributes of an object hold: those of its slots first, which have no dictionary."""
    slots = [getattr(kind, "__slots__", ()) for kind in reversed(type(value).__mro__)]
    names = [name for some in slots for name in ((some,) if isinstance(some, str) else some)]
    held = [getattr(value, name, None) for name in names if name not in ("__dict__", "__weakref__")]
    return [*held, *getattr(value, "__dict__", {}).values()]


def plain_digest(value: Any) -> int:
    """The digest of a number, a text, bytes or an array."""
    if isinstance(value, (int, float, complex)):
        return exact(value)
    data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else value.tobytes()
    return hashing.digest_bytes(data, 0)
