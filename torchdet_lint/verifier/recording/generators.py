"""The global generators of `random`, NumPy and torch -> digests of their states; their states, kept and put back."""

from __future__ import annotations

import _random
import ctypes
import dataclasses
import functools
import random
import struct
import sys
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.recording import hashing

if TYPE_CHECKING:
    from collections.abc import Callable


_MT19937 = ctypes.c_char * (624 * 4 + 4)
"""The state of this generator in memory: 624 words, and the position in them."""
_digest = hashing.hasher()


@dataclasses.dataclass(frozen=True)
class Kept:
    """States at one moment; NumPy's and CUDA's only where they were in use."""

    python: Any
    numpy: Any
    torch_cpu: Any
    torch_cuda: Any

    def restore(self) -> None:
        """Put every generator back to its state."""
        random.setstate(self.python)
        numpy = sys.modules.get("numpy")
        if numpy is not None and self.numpy is not None:
            numpy.random.set_state(self.numpy)
        torch.set_rng_state(self.torch_cpu)
        if self.torch_cuda is not None:
            torch.cuda.set_rng_state_all(self.torch_cuda)


def kept() -> Kept:
    """The states now."""
    numpy = sys.modules.get("numpy")
    cuda_in_use: Callable[[], bool] = torch.cuda.is_initialized
    return Kept(
        random.getstate(),
        numpy.random.get_state() if numpy is not None else None,
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if cuda_in_use() else None,
    )


def generator_digests() -> tuple[int, int, int]:
    """Digests of the states of the global generators of `random`, NumPy (0 while it is not imported) and torch."""
    return python_digest(), numpy_digest(), torch_digest()


def quick_digests() -> tuple[int, int, int]:
    """As `generator_digests`, in a third of the time, for all data that comes in: without the second normal number that
    NumPy's generator may keep for later.
    """
    return quick_python_digest(), quick_numpy_digest(), torch_digest()


def python_digest() -> int:
    """The digest of the state of `random`'s global generator."""
    return hash(random.getstate()[1]) & hashing.MASK


def quick_python_digest() -> int:
    """As `python_digest`, which is worked out where the state in memory is not what it was the last time."""
    found = _python_state()
    return _python_digest_at(hashing.digest_bytes(found[1], 0)) if found else python_digest()


@functools.lru_cache(maxsize=1)
def _python_digest_at(_memory: int) -> int:
    return python_digest()


@functools.cache
def _python_state() -> tuple[random.Random, ctypes.Array[ctypes.c_char]] | None:
    """`random`'s global generator and its state in memory, the position before the words; None where the state does not
    follow the head of the object, as it does in CPython.
    """
    owner = getattr(random.getstate, "__self__", None)
    head, room = object.__basicsize__, ctypes.sizeof(_MT19937)
    if sys.implementation.name != "cpython" or not isinstance(owner, random.Random):
        return None
    if _random.Random.__basicsize__ < head + room:
        return None
    words = random.getstate()[1]
    state = _MT19937.from_address(id(owner) + head)
    return (owner, state) if state.raw == struct.pack("=625I", words[-1], *words[:-1]) else None


def numpy_digest() -> int:
    """The digest of the state of NumPy's global generator; 0 while NumPy is not imported."""
    numpy_random = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is None:
        return 0
    return state_digest(numpy_random.get_state(legacy=False))


def state_digest(state: dict[str, Any]) -> int:
    """The digest of what `numpy.random.get_state(legacy=False)` returned."""
    key = state.get("state", {}).get("key")
    position = hash((state.get("state", {}).get("pos", 0), state.get("has_gauss", 0))) & hashing.MASK
    return hashing.digest_bytes(key.tobytes() if key is not None else repr(state).encode(), position)


def quick_numpy_digest() -> int:
    """As `numpy_digest`, of the state as it lies in memory."""
    numpy_random = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is None:
        return 0
    generator: Any = getattr(numpy_random.mtrand._rand, "_bit_generator", None)
    if type(generator).__name__ != "MT19937":
        return numpy_digest()
    return hashing.digest_bytes(_MT19937.from_address(generator.ctypes.state_address), 0)


def quick_state_digest(state: dict[str, Any]) -> int:
    """The digest that `quick_numpy_digest` has for what `numpy.random.get_state(legacy=False)` returned."""
    if state.get("bit_generator") != "MT19937":
        return state_digest(state)
    position = int(state["state"]["pos"]).to_bytes(4, sys.byteorder)
    return hashing.digest_bytes(state["state"]["key"].tobytes() + position, 0)


def torch_digest() -> int:
    """The digest of the state of torch's global CPU generator."""
    return _digest(torch.default_generator.get_state())
