"""Memory that NumPy was handed -> whether NumPy wrote there since, which no op says."""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.recording import hashing

if TYPE_CHECKING:
    import torch

_MOST_BYTES = 1 << 26
_MOST_GAPS = 8
_MOST_STORAGES = 4096


class Span(NamedTuple):
    """What one array covers, the digest of what stood there, and the array while something holds it; the tensor that it
    holds in turn may be given other memory.
    """

    memory: ctypes.Array[ctypes.c_char]
    digest: int
    array: weakref.ref[Any] | None
    tensor: weakref.ref[torch.Tensor]

    @property
    def stands(self) -> bool:
        """Whether the memory is still that of the tensor, and may be read."""
        tensor = self.tensor()
        return tensor is not None and tensor.data_ptr() == ctypes.addressof(self.memory)


class Loan:
    """What NumPy was handed of one storage. `owner` is what was known of the storage when its spans were digested."""

    __slots__ = ("owner", "spans")

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.spans: dict[int, Span] = {}


class Loans(dict[int, Loan]):
    """Base of a storage -> the loan of it. All of them are `foreign`, so that they are looked at when they are read.

    An array is followed until it is freed, for its views hold it. Not followed are those of more than 64 MiB, and those
    that leave out most of what they stretch over.
    """

    def __init__(self, owners: dict[int, int], foreign: set[int]) -> None:
        super().__init__()
        self._owners, self._foreign = owners, foreign
        self._digest = hashing.digest_bytes
        self._numbers = itertools.count()

    def lend(self, base: int, tensor: torch.Tensor, array: Any) -> None:
        """NumPy was handed `array`, the memory of `tensor`, whose storage has just been read."""
        known = self._owners.get(base)
        if not base or known is None or (base in self._foreign and base not in self):
            return
        memory = _memory_of(tensor, array)
        if memory is None:
            return
        loan = self.get(base)
        if loan is None or loan.owner != known:
            if len(self) >= _MOST_STORAGES:
                self.end(next(iter(self)))
            loan = self[base] = Loan(known)
            self._foreign.add(base)
        number = next(self._numbers)
        held = weakref.ref(array, functools.partial(self._freed, base, loan, number))
        loan.spans[number] = Span(memory, self._digest(memory, 0), held, weakref.ref(array.base))

    def _freed(self, base: int, loan: Loan, number: int, _: object) -> None:
        """An array is about to be freed, and not yet the memory that it covers."""
        span = loan.spans.get(number)
        if span is None or self.get(base) is not loan:
            return
        if self._owners.get(base) == loan.owner and span.stands:
            digest = self._digest(span.memory, 0)
            if digest != span.digest:
                # Told when it is read next.
                loan.spans[number] = span._replace(digest=digest, array=None)
                return
        del loan.spans[number]
        if not loan.spans:
            self.end(base)

    def found(self, base: int) -> list[int]:
        """Digests of what NumPy wrote to a storage that is lent since it was read or written last."""
        loan = self[base]
        if self._owners.get(base) != loan.owner:
            # The address is that of other memory now.
            self.end(base)
            return []
        return self._look(base, loan)

    def agree(self, base: int) -> None:
        """An op has written to a storage that is lent."""
        loan = self[base]
        self._look(base, loan)
        loan.owner = self._owners[base]

    def _look(self, base: int, loan: Loan) -> list[int]:
        changed = []
        for number, span in list(loan.spans.items()):
            if span.array is None or not span.stands:
                changed += [span.digest] if span.array is None else []
                del loan.spans[number]
            elif (digest := self._digest(span.memory, 0)) != span.digest:
                changed.append(digest)
                loan.spans[number] = span._replace(digest=digest)
        if not loan.spans:
            self.end(base)
        return changed

    def end(self, base: int) -> None:
        """Nobody but torch writes to this storage any more."""
        if self.pop(base, None) is not None:
            self._foreign.discard(base)


def _memory_of(tensor: torch.Tensor, array: Any) -> ctypes.Array[ctypes.c_char] | None:
    """The memory over which an array stretches; None where it is not followed, as a copy is not."""
    address: int = array.__array_interface__["data"][0]
    if not array.size or not array.flags.writeable or tensor.data_ptr() != address or array.base is None:
        return None
    nbytes: int = (
        sum(stride * (size - 1) for size, stride in zip(array.shape, array.strides, strict=True)) + array.itemsize
    )
    if nbytes > min(_MOST_BYTES, _MOST_GAPS * array.nbytes):
        return None
    return (ctypes.c_char * nbytes).from_address(address)
