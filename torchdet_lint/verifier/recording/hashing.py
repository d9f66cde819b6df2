"""A tensor -> an order-sensitive digest: equal digests mean equal bits at equal places, NaN payloads and signed zeros
included.

A dense tensor is digested as it lies in memory, with the order of its dimensions (channels last, transposed) as part
of the digest, so that none is copied; one with gaps or overlaps is digested as its contiguous copy. On the CPU the
bytes are hashed in place by xxh3, or by crc32 beside a sum of words where `xxhash` is not installed. On any other
device the digest is the multilinear sum of 32-bit words times 64-bit weights modulo 2**64: integer addition is
associative, so that the digest is the same whatever order the device adds in. The name of the digest stands in every
trace, and digests of different names are never compared.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import math
import operator
import zlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Buffer = ctypes.Array[ctypes.c_char]
    At = Callable[[int], Buffer]
    Bytes = Callable[[Any, int], int]

MASK = (1 << 64) - 1
UNHASHABLE = 0xDEAD_DEAD_DEAD_DEAD
CHUNK = 1 << 20


def _stdlib(buffer: Any, seed: int = 0) -> int:
    view = memoryview(buffer).cast("B")
    words = view[: len(view) & ~7].cast("Q")
    total = sum(words) if len(words) < 512 else _word_sum(view)
    return ((zlib.crc32(view, seed & 0xFFFFFFFF) << 32) ^ total ^ seed) & MASK


def _word_sum(view: memoryview) -> int:
    return int(torch.frombuffer(view, dtype=torch.int64, count=len(view) // 8).sum().item()) & MASK


try:
    import xxhash

    NAME = "xxh3-64-memory-4"
    digest_bytes: Bytes = xxhash.xxh3_64_intdigest
except ImportError:
    NAME = "crc32-sum64-memory-4"
    digest_bytes = _stdlib


class Blocks(dict["tuple[int, ...]", "tuple[int, At | None]"]):
    """Shape of a contiguous tensor -> what its digest begins with, and what makes a buffer of the memory at an address,
    None where it is empty. Emptied when a program uses very many shapes.
    """

    def __init__(self, item: int) -> None:
        super().__init__()
        self._item = item

    def __missing__(self, shape: tuple[int, ...]) -> tuple[int, At | None]:
        if len(self) > 2048:
            self.clear()
        nbytes = self._item * math.prod(shape)
        array = ctypes.c_char * nbytes
        block = self[shape] = hash(shape) & MASK, array.from_address if nbytes else None
        return block


_PLAIN = {
    torch.float32: 4,
    torch.float64: 8,
    torch.float16: 2,
    torch.bfloat16: 2,
    torch.int64: 8,
    torch.int32: 4,
    torch.int16: 2,
    torch.int8: 1,
    torch.uint8: 1,
    torch.bool: 1,
}
"""Types of numbers whose bytes are digested as they lie in memory -> how many bytes (torch 2.0 does not tell)."""


_OWN = (torch.Tensor, torch.nn.Parameter)
_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def on_other_device(tensor: torch.Tensor) -> bool:
    """Whether it is a plain tensor whose digest another device than the CPU can make."""
    return type(tensor) in _OWN and tensor.dtype in _PLAIN and tensor.device.type not in ("cpu", "meta")


def blocks() -> dict[torch.dtype, Blocks]:
    """A table for each type of numbers whose bytes are digested as they lie in memory."""
    return {dtype: Blocks(item) for dtype, item in _PLAIN.items()}


def hasher(digest: Bytes = digest_bytes) -> Callable[[torch.Tensor], int]:
    """A function from a tensor to its 64-bit digest, which covers the shape and every element in order.

    It reads the memory of plain CPU tensors directly and copies nothing; it neither draws random numbers nor touches
    autograd. A tensor that has no data (meta, fake) has the digest `UNHASHABLE`.
    """
    located = locator(digest)

    def of(tensor: torch.Tensor) -> int:
        return located(tensor)[0]

    return of


def locator(digest: Bytes = digest_bytes) -> Callable[[torch.Tensor], tuple[int, int]]:
    """As `hasher`, a function from a tensor to its digest and to the address of its first element, which is 0 where
    the digest was not made of the memory there.
    """
    tables, own = blocks(), _OWN

    def of(tensor: torch.Tensor) -> tuple[int, int]:
        try:
            if type(tensor) in own and tensor.is_cpu and (table := tables.get(tensor.dtype)) is not None:
                seed, at = table[tensor.shape]
                if not tensor.is_contiguous():
                    seed = dense_seed(tensor.shape, tensor.stride())
                    if not seed or tensor.is_neg():
                        return general(tensor, digest), 0
                if at is None:
                    return seed, 0
                if address := tensor.data_ptr():
                    return digest(at(address), seed), address
        except RuntimeError:
            pass
        return general(tensor, digest), 0

    return of


@functools.lru_cache(maxsize=4096)
def dense_seed(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """What the digest of a tensor that fills a block of memory in another order begins with: a digest of its shape and
    of the order of its dimensions. 0 for a tensor with gaps or overlaps.
    """
    order = sorted((n for n, size in enumerate(shape) if size > 1), key=lambda n: -stride[n])
    expected = 1
    for n in reversed(order):
        if stride[n] != expected:
            return 0
        expected *= shape[n]
    return hash((shape, *order)) & MASK or 1


def general(tensor: torch.Tensor, digest: Bytes = digest_bytes) -> int:
    """The digest of any tensor: strided however, sparse, nested, quantized, a wrapper, on any device."""
    try:
        parts = _parts(tensor)
        if parts is not None:
            digests = tuple(general(part, digest) for part in parts)
            return hash((tuple(tensor.shape) if not tensor.is_nested else len(digests), digests)) & MASK
        if tensor.is_meta or is_fake(tensor):
            return UNHASHABLE
        if tensor._is_zerotensor():
            tensor = torch.zeros_like(tensor)
        return _strided(tensor.detach(), digest)
    except (RuntimeError, NotImplementedError, AttributeError, TypeError):
        return UNHASHABLE


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
    """The plain tensors that together hold the value of one that is not plain; None for a plain one."""
    if type(tensor) not in _OWN and hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return tuple(getattr(tensor, name) for name in names)
    if tensor.is_nested:
        return tuple(tensor.detach().unbind())
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    if tensor.is_mkldnn:
        return (tensor.to_dense(),)
    if tensor.is_quantized:
        if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            return tensor.int_repr(), torch.tensor([tensor.q_scale(), tensor.q_zero_point()], dtype=torch.float64)
        return tensor.int_repr(), tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return None


def inner_tensors(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The tensors that a sparse one or a wrapper (jagged, distributed, a user's own) is made of; empty for others."""
    if tensor.layout in _SPARSE and (type(tensor) in _OWN or not is_fake(tensor)):
        return _parts(tensor.detach()) or ()
    if type(tensor) in _OWN or not hasattr(tensor, "__tensor_flatten__") or is_fake(tensor):
        return ()
    names, _ = tensor.__tensor_flatten__()
    return tuple(part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor))


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether it stands for a tensor that is not there."""
    return type(tensor).__name__ in ("FakeTensor", "FunctionalTensor") or torch._is_functional_tensor(tensor)


def _strided(tensor: torch.Tensor, digest: Bytes) -> int:
    flat, seed = _flat(tensor)
    if flat.numel() == 0:
        return seed
    if not flat.data_ptr():
        return UNHASHABLE
    if flat.device.type == "cpu":
        return digest((ctypes.c_char * flat.nbytes).from_address(flat.data_ptr()), seed)
    return (multilinear(flat) ^ seed) & MASK


def _flat(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The elements of a strided tensor in one dimension, and what its digest begins with."""
    seed = hash(tensor.shape) & MASK
    tensor = tensor.resolve_conj().resolve_neg()
    if not tensor.is_contiguous():
        dense = dense_seed(tensor.shape, tensor.stride())
        seed = dense or seed
        tensor = tensor if dense else tensor.contiguous()
    return tensor.as_strided((tensor.numel(),), (1,)), seed


@functools.lru_cache(maxsize=8)
def _weights(device: torch.device) -> torch.Tensor:
    """`CHUNK` odd 64-bit weights that are the same on every machine: splitmix64 of the position."""
    z = torch.arange(1, CHUNK + 1, dtype=torch.int64, device=device) * -7046029254386353131
    z = (z ^ ((z >> 30) & ((1 << 34) - 1))) * -4658895280553007687
    z = (z ^ ((z >> 27) & ((1 << 37) - 1))) * -7723592293110705685
    return (z ^ ((z >> 31) & ((1 << 33) - 1))) | 1


@functools.lru_cache(maxsize=4096)
def _weight_sum(count: int) -> int:
    """The sum of the first weights."""
    return int(_weight_sums()[count - 1]) & MASK


@functools.lru_cache(maxsize=1)
def _weight_sums() -> torch.Tensor:
    return _weights(torch.device("cpu")).cumsum(0)


def multilinear(flat: torch.Tensor) -> int:
    """The digest of a flat, contiguous tensor on any device, in temporary memory of 8 bytes a word and chunk.

    For most tensors these are two kernels on the device: the sum of (word + 1) times its weight is that of word times
    weight, and the sum of the weights, which is known here.
    """
    words = _words(flat)
    count = words.numel()
    if count > CHUNK:
        return int(multilinear_on_device(flat).item()) & MASK
    return (int((words * _weights(flat.device)[:count]).sum().item()) + _weight_sum(count)) & MASK


def _words(flat: torch.Tensor) -> torch.Tensor:
    if flat.dtype is torch.bool or flat.element_size() in (1, 2):
        return flat.view(torch.uint8 if flat.element_size() == 1 else torch.int16)
    return flat.view(torch.int32)


def many_on_device(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The digests of plain tensors of one device, as `general` gives them, left there as int64, in a few kernels: the
    small ones are put together, within `CHUNK` words at a time.
    """
    flats = [_flat(tensor.detach()) for tensor in tensors]
    pieces: list[tuple[list[int], torch.Tensor]] = []
    waiting: dict[torch.dtype, list[tuple[int, torch.Tensor]]] = {}
    filled: collections.Counter[torch.dtype] = collections.Counter()

    def together(batch: list[tuple[int, torch.Tensor]]) -> None:
        ends = torch.tensor([len(words) for _, words in batch]).cumsum(0).to(batch[0][1].device) - 1
        weights = _weights(batch[0][1].device)
        every = torch.cat([words for _, words in batch]).to(torch.int64) + 1
        sums = (every * torch.cat([weights[: len(words)] for _, words in batch])).cumsum(0)[ends]
        pieces.append(([number for number, _ in batch], sums.diff(prepend=sums.new_zeros(1))))

    for number, (flat, _) in enumerate(flats):
        if flat.numel() == 0:
            pieces.append(([number], torch.zeros(1, dtype=torch.int64, device=flat.device)))
            continue
        words = _words(flat)
        if len(words) > CHUNK:
            pieces.append(([number], multilinear_on_device(flat).reshape(1)))
            continue
        batch = waiting.setdefault(words.dtype, [])
        if batch and filled[words.dtype] + len(words) > CHUNK:
            together(batch)
            batch.clear()
            filled[words.dtype] = 0
        batch.append((number, words))
        filled[words.dtype] += len(words)
    for batch in waiting.values():
        together(batch)
    order = sorted(range(len(flats)), key=[number for numbers, _ in pieces for number in numbers].__getitem__)
    found = torch.cat([sums for _, sums in pieces])
    signed = [seed - (1 << 64) if seed >> 63 else seed for _, seed in flats]
    return found[torch.tensor(order, device=found.device)] ^ torch.tensor(signed, device=found.device)


def multilinear_on_device(flat: torch.Tensor) -> torch.Tensor:
    """As `multilinear`, left on the device as one int64 element, so that nothing waits for the device."""
    words = _words(flat)
    weights = _weights(flat.device)
    pieces = []
    for number, start in enumerate(range(0, words.numel(), CHUNK)):
        piece = words[start : start + CHUNK].to(torch.int64) + 1
        pieces.append((piece * weights[: piece.numel()]).sum() * (2 * number + 1))
    return functools.reduce(operator.add, pieces)
