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
_STATE = struct.Struct("=QiiQ624Q3dixxxxfBxxx")
"""What `torch.Generator.get_state()` gives on the CPU: seed, words left, seeded, position, words, a second normal
number (three doubles and whether there is one), and one of single precision.
"""
_BEFORE_WORDS, _AFTER_WORDS = 20, 28
"""How many bytes of an engine lie before its words: seed, left, seeded, position; after them: the normal numbers."""
_HEAD = 512
"""The words of an engine begin within so many bytes of a generator's object, which is larger."""
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
    """As `generator_digests`, in a tenth of the time, for all data that comes in: without the second normal number that
    NumPy's generator may keep for later.
    """
    return quick_python_digest(), quick_numpy_digest(), quick_torch_digest()


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


def quick_torch_digest() -> int:
    """As `torch_digest`, which is worked out where the state in memory is not what it was the last time."""
    found = _torch_state()
    return _torch_digest_at(hashing.digest_bytes(found, 0)) if found is not None else torch_digest()


@functools.lru_cache(maxsize=1)
def _torch_digest_at(_memory: int) -> int:
    return torch_digest()


@functools.cache
def _torch_state() -> ctypes.Array[ctypes.c_char] | None:
    """The state of torch's global CPU generator in memory; None where our own generator does not show how it lies."""
    try:
        offset = _engine_offset(torch.Generator())
        if offset is None:
            return None
        return _engine(torch.default_generator, offset)
    except (AttributeError, RuntimeError, TypeError, ValueError, struct.error):
        return None


def _engine(generator: Any, offset: int) -> ctypes.Array[ctypes.c_char]:
    """The memory of a generator from the seed to the normal numbers kept for later."""
    size = _BEFORE_WORDS + 624 * 4 + _AFTER_WORDS
    return (ctypes.c_char * size).from_address(generator._cdata + offset - _BEFORE_WORDS)


def _engine_offset(generator: Any) -> int | None:
    """Where the words begin in the object of a generator that nobody else uses, if all that its state consists of lies
    around them.
    """
    first = _STATE.unpack(generator.get_state().numpy().tobytes())
    words = struct.pack("=624I", *first[4:628])
    offset = ctypes.string_at(generator._cdata, _HEAD).find(words[:16])
    if offset < _BEFORE_WORDS or ctypes.string_at(generator._cdata + offset, len(words)) != words:
        return None
    memory, seen = _engine(generator, offset), set()
    seed, left, seeded, position, *rest = first
    normal, single = [0.25, 0.5, 0.75, 1, *rest[-2:]], [*rest[-6:-2], 0.25, 1]
    states = (
        first,
        (seed + 1, left, seeded, position, *rest),
        (seed, left + 1, seeded, position, *rest),
        (seed, left, seeded, position + 1, *rest),
        (seed, left, seeded, position, *rest[:-6], *normal),
        (seed, left, seeded, position, *rest[:-6], *single),
    )
    for state in states:
        generator.set_state(torch.frombuffer(bytearray(_STATE.pack(*state)), dtype=torch.uint8))
        seen.add(memory.raw)
    return offset if len(seen) == len(states) else None
