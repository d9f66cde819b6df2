"""A value that an op read or wrote -> its tensors and numbers, its storage, and the digest of a number."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.recording import hashing

if TYPE_CHECKING:
    from collections.abc import Iterable


MINUS_ONE, NAN = 0x5BD1E9955BD1E995, 7


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


def leaves_of(value: Any) -> Iterable[Any]:
    """The tensors, arrays, numbers and texts of a batch, in order."""
    if isinstance(value, Mapping):
        for key in value:
            yield from leaves_of(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves_of(item)
    elif isinstance(value, torch.Tensor) or hasattr(value, "tobytes") or isinstance(value, (int, float, str, bytes)):
        yield value
    elif hasattr(value, "__dict__"):
        yield from leaves_of(vars(value))


def plain_digest(value: Any) -> int:
    """The digest of a number, a text, bytes or an array."""
    if isinstance(value, (int, float)):
        return exact(value)
    data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else value.tobytes()
    return hashing.digest_bytes(data, 0)
