"""What an op reads and writes -> digests, and who wrote which memory.

A tensor that an op made is digested once: what reads it later is told by the digest of its storage and by which part of
the storage it is. Memory that torch did not allocate, and what came from outside, is digested where it is read.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.values import MINUS_ONE, NAN, base_of, exact, number_digest, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.recording.streams import Run

CLEAN = hashing.MASK - 1
UNWRITTEN = 1
PART = hashing.MASK + 1
_SEQUENCE = 1 << 60
_MOST_FORMS = 65_536


class Form(NamedTuple):
    """How memory of others' was digested the last time: all of it, from one seed, which gave what is `known` of it."""

    memory: Any
    seed: int
    known: int | None


def covers(tensor: torch.Tensor, memory: Any) -> bool:
    """Whether a tensor is a view of all of `memory` and of nothing else."""
    try:
        if tensor.data_ptr() != ctypes.addressof(memory) or tensor.nbytes != len(memory):
            return False
        return tensor.is_contiguous() or bool(hashing.dense_seed(tensor.shape, tensor.stride()))
    except (RuntimeError, NotImplementedError):
        return False


class Memory(NamedTuple):
    """Functions on the values of ops, all of which share one record of memory.

    `read(arguments, tensors, numbers, came)` digests what an op reads into `tensors` and `numbers`, what came from
    outside into `came`, and returns flags. `fresh(value)` is the digest of a tensor that an op made, `several(out,
    digests, scratch, unwritten)` digests all that it returned, and `written(value, digests)` what it wrote in
    place, with the flags for that; `changed(value)` is the digest of one plain tensor that it wrote, in memory that
    is known and this process's alone, plus `PART` where not all of that was written before, else -1, and `written`
    has to be asked. `still_unwritten(arguments)` are the storages of which a part is not written, `unwritten()` is
    the one that was read last. `note_foreign(tensor)` looks whether torch owns its memory, and `digest_of(value)`
    digests a part of a batch. `settled(arguments, versions)` says whether all tensors are plain ones of the CPU, in
    memory that is this process's and wholly written, and notes their versions.
    """

    read: Callable[[Any, list[int], list[int], list[tuple[int, int]]], int]
    fresh: Callable[[torch.Tensor], int]
    several: Callable[[Any, list[int], tuple[int, ...], frozenset[int]], None]
    written: Callable[[Any, list[int]], int]
    changed: Callable[[Any], int]
    still_unwritten: Callable[[Any], frozenset[int]]
    unwritten: Callable[[], int]
    note_foreign: Callable[[torch.Tensor], int]
    digest_of: Callable[[torch.Tensor], int]
    settled: Callable[[Any, dict[int, int]], bool]


def extent(tensor: torch.Tensor) -> int:
    """Which part of its storage a view is: two views of one storage have one digest but for this."""
    try:
        return (tensor.storage_offset() << 20) + tensor.numel()  # type: ignore[operator]
    except (RuntimeError, NotImplementedError):
        return 0


def place_of(tensor: torch.Tensor) -> object:
    """Where in its storage a tensor was written: the same elements may go to other places."""
    try:
        offset = tensor.storage_offset()
        return offset if tensor.is_contiguous() else (offset, *tensor.stride())
    except (RuntimeError, NotImplementedError):
        return 0


def form_of(tensor: torch.Tensor) -> int:
    """What its parts do not say of a tensor: its shape, and whether a sparse one is known to have each place once."""
    coalesced = tensor.layout is torch.sparse_coo and tensor.is_coalesced()
    return hash((() if tensor.is_nested else tuple(tensor.shape), coalesced))


def memory(run: Run) -> Memory:  # noqa: C901
    """The memory of the process of `run`. What the functions need is bound here: they run for every op."""
    owners, foreign, filled, begun, loans = run.owners, run.foreign, run.filled, run.begun, run.loans
    owner = owners.get
    located, digest, tables = hashing.locator(), hashing.digest_bytes, hashing.blocks()
    parts_of = hashing.inner_tensors
    plain, parameter = torch.Tensor, torch.nn.Parameter
    numeric = (float, int, bool, complex)
    dataless = {type(None), torch.dtype, torch.layout, torch.device, torch.memory_format, torch.Generator, str}
    last_unwritten = 0
    forms: dict[int, Form] = {}

    def read(arguments: Any, tensors: list[int], numbers: list[int], came: list[tuple[int, int]]) -> int:  # noqa: C901
        flags = 0
        for value in arguments:
            kind = type(value)
            if kind is plain or kind is parameter:
                try:
                    base = value.data_ptr()
                    part = value.numel()
                    if offset := value.storage_offset():
                        base -= offset * value.element_size()
                        part += offset << 20
                except (RuntimeError, NotImplementedError):
                    if parts := parts_of(value):
                        tensors.append(form_of(value))
                        flags |= read(parts, tensors, numbers, came)
                        continue
                    base, part = base_of(value), extent(value)
            elif kind is float:
                numbers.append((hash(value) if value == value else NAN) if value != -1 else MINUS_ONE)
                continue
            elif kind is int or kind is bool:
                numbers.append(value if value != -1 else MINUS_ONE)
                continue
            elif kind is list or kind is tuple:
                if value:
                    flags |= read(value, tensors, numbers, came)
                numbers.append(_SEQUENCE + len(value))
                continue
            elif kind in dataless:
                continue
            elif isinstance(value, plain):
                if parts := parts_of(value):
                    flags |= read(parts, tensors, numbers, came)
                    continue
                base, part = base_of(value), extent(value)
            else:
                if kind is complex:
                    numbers.append(number_digest(value))
                continue
            if not base:
                continue
            known = owner(base)
            if known is not None and not known & 1 and base not in foreign:
                tensors.append(known + part)
                continue
            if base in foreign and base not in loans and own(value):
                # The address was that of foreign memory, which was freed since.
                foreign.discard(base)
            if known is None or base in foreign:
                borrowed = base in loans
                now = lent(value, base) if borrowed else looked_at(value, base, known)
                if known != now:
                    owners[base] = now
                    if not borrowed:
                        flags |= note_foreign(value)
                    came.append((now, base))
                elif now & 1:
                    flags |= unwritten(base, came)
                known = now
            elif known & 1 and base in filled:
                filled.discard(base)
                known = owners[base] = located(value)[0] & CLEAN
            elif known & 1:
                flags |= unwritten(base, came)
            tensors.append(known + part)
        return flags

    def looked_at(value: torch.Tensor, base: int, known: int | None) -> int:
        """What stands in memory of others', the same for every view of all that was digested the last time."""
        form = forms.get(base)
        if form is not None and form.known == known and covers(value, form.memory):
            now = digest(form.memory, form.seed) & CLEAN
            forms[base] = form._replace(known=now)
            return now
        return located(value)[0] & CLEAN

    def unwritten(base: int, came: list[tuple[int, int]]) -> int:
        """A part of this memory may be written by nothing; NumPy may have written the rest, nobody knows how much."""
        nonlocal last_unwritten
        last_unwritten = base
        if base not in begun:
            return trace.UNWRITTEN
        came.append((UNWRITTEN, base))
        return trace.UNWRITTEN | trace.NUMPY_WROTE

    def lent(value: torch.Tensor, base: int) -> int:
        """What is known of memory that NumPy was handed, what it wrote there included."""
        digests = loans.found(base)
        known = owner(base)
        if known is None:
            return located(value)[0] & CLEAN
        if known & 1 and digests:
            begun.add(base)
        if known & 1 or not digests:
            return known
        now = hash((known, *digests)) & CLEAN
        if base in loans:
            loans[base].owner = now
        return now

    def note_foreign(tensor: torch.Tensor) -> int:
        """Memory that torch did not allocate, or that other processes share, may be written behind its back: it is
        digested at every read. Returns the flag of memory that is shared.
        """
        try:
            if not own(tensor):
                base = base_of(tensor)
                loans.pop(base, None)
                foreign.add(base)
                note_form(tensor, base)
                return trace.SHARED if tensor.is_cpu and tensor.untyped_storage().is_shared() else 0
        except (RuntimeError, NotImplementedError):
            pass
        return 0

    def note_form(tensor: torch.Tensor, base: int) -> None:
        """What is known of memory of others' is what `tensor` holds."""
        known = owner(base)
        if ((form := forms.get(base)) is not None and form.known == known) or not tensor.is_cpu:
            return
        if len(forms) > _MOST_FORMS:
            forms.clear()
        table = tables.get(tensor.dtype)
        if table is not None and tensor.is_contiguous():
            seed, at = table[tensor.shape]
            if at is not None:
                forms[base] = Form(at(tensor.data_ptr()), seed, known)

    def own(tensor: torch.Tensor) -> bool:
        """Whether torch allocated the memory of a tensor, and no other process has it."""
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a sparse one has none of its own
            return False
        return storage.resizable() and not (tensor.is_cpu and storage.is_shared())

    def fresh(value: torch.Tensor) -> int:
        base = 0
        try:
            if type(value) is plain and value.is_cpu and (table := tables.get(value.dtype)) is not None:
                seed, at = table[value.shape]
                if at is not None and value.is_contiguous():
                    base = value.data_ptr()
        except RuntimeError:
            pass
        if base and at is not None:
            known = digest(at(base), seed)
            offset: Any = value.storage_offset()
            if offset:
                base -= offset * value.element_size()
            owners[base] = known & CLEAN
            return known
        known, base = located(value)
        if base:
            owners[base_of(value)] = known & CLEAN
            return known
        if parts := parts_of(value):
            for part in parts:
                fresh(part)
        elif base := base_of(value):
            owners[base] = known & CLEAN
        return known

    def several(out: Any, digests: list[int], scratch: tuple[int, ...], unwritten: frozenset[int]) -> None:
        if type(out) in numeric:
            digests.append(exact(out))
            return
        for number, value in enumerate(tensors_in(out)):
            if number in scratch:
                digests.append(0)
                owners[base_of(value)] = 0
            elif unwritten and isinstance(value, plain) and base_of(value) in unwritten:
                # Returned as it came, while a part of it is still to be written: nothing reads that part yet.
                digests.append(0)
            elif isinstance(value, plain):
                digests.append(fresh(value))
            else:
                digests.append(exact(value))

    def still_unwritten(arguments: Any) -> frozenset[int]:
        bases = (base_of(value) for value in tensors_in(arguments) if isinstance(value, plain))
        return frozenset(base for base in bases if base and owners.get(base, 0) & 1)

    def changed(value: Any) -> int:
        kind = type(value)
        address = 0
        try:
            table = tables.get(value.dtype) if (kind is plain or kind is parameter) and value.is_cpu else None
            if table is not None:
                seed, at = table[value.shape]
                if at is not None and value.is_contiguous():
                    address = value.data_ptr()
        except RuntimeError:
            pass
        if address and at is not None:
            offset: Any = value.storage_offset()
            base = address - offset * value.element_size() if offset else address
            if (old := owner(base)) is not None and base not in foreign:
                known = digest(at(address), seed)
                now = hash((old, known, offset)) & CLEAN
                if not old & 1:
                    owners[base] = now
                    return known
                part = value.numel() * value.element_size() < value.untyped_storage().nbytes()
                owners[base] = now | part
                return known + PART
        return -1

    def written(value: Any, digests: list[int]) -> int:
        if isinstance(value, plain):
            kind = type(value)
            if kind is not plain and kind is not parameter and (parts := parts_of(value)):
                return written(parts, digests)
            known, base = located(value)
            digests.append(known)
            if base:
                offset: Any = value.storage_offset()
                if offset:
                    base -= offset * value.element_size()
            elif parts := parts_of(value):
                # It may have others than before.
                for part in parts:
                    fresh(part)
                return 0
            elif not (base := base_of(value)):
                return 0
            old = owners.get(base)
            if old is None:
                note_foreign(value)
                old = 0
            owners[base] = hash((old, known, place_of(value))) & CLEAN
            if old & 1 and value.numel() * value.element_size() < value.untyped_storage().nbytes():
                owners[base] |= 1
            if base in loans:
                loans.agree(base)
            return trace.SCRATCH if old & 1 else 0
        flags = 0
        if isinstance(value, (list, tuple)):
            for item in value:
                flags |= written(item, digests)
        return flags

    def digest_of(value: torch.Tensor) -> int:
        if parts := parts_of(value):
            return hash((form_of(value), *map(digest_of, parts))) & hashing.MASK
        known, base = located(value)[0], base_of(value)
        if base:
            owners[base] = known & CLEAN
        return known

    def settled(arguments: Any, versions: dict[int, int]) -> bool:
        for value in arguments:
            kind = type(value)
            if kind is plain or kind is parameter:
                try:
                    if not value.is_cpu:
                        return False
                    versions[id(value)] = value._version
                    base = base_of(value)
                    # What decides must be the same in every run, which addresses are not.
                    if owner(base, 0) & 1 or (base not in loans and not own(value)):
                        return False
                except (RuntimeError, NotImplementedError):
                    return False
            elif kind is list or kind is tuple:
                if not settled(value, versions):
                    return False
            elif isinstance(value, plain):
                return False
        return True

    return Memory(
        read,
        fresh,
        several,
        written,
        changed,
        still_unwritten,
        lambda: last_unwritten,
        note_foreign,
        digest_of,
        settled,
    )
