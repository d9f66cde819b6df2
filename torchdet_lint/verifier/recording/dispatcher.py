"""One op of one thread -> the op run, and its record: place, digests of what it read, wrote and took in."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.ops.plans import COLLECTIVE, LIFT, PICK, RESIZE, SET, VALUE, VIEW, Plan
from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.lines import LIBRARY, OWN, TORCH
from torchdet_lint.verifier.recording.values import (
    MINUS_ONE,
    base_of,
    exact,
    leaves_of,
    number_digest,
    plain_digest,
    tensors_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from torchdet_lint.verifier.recording.streams import Run, Stream

_MASK = hashing.MASK
_FLUSH_WORDS = 8192
_MOST_OWNERS = 400_000
_UNWRITTEN = 1
_SEQUENCE = 1 << 60
_NONE: frozenset[int] = frozenset()
_CLEAN = _MASK - 1


class _Batch:
    """Stands for the op of taking a batch from a loader."""

    def __str__(self) -> str:
        return trace.BATCH


class _Region:
    """Stands for a call of what torch.compile has compiled."""

    def __str__(self) -> str:
        return trace.REGION


def dispatcher(run: Run, stream: Stream) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:  # noqa: C901
    """The function that runs one op and records it. Everything it needs is bound here: it runs for every op."""
    plans, owners, arrivals, foreign = run.plans, run.owners, run.arrivals, run.foreign
    kinds, sites, forward_lines = run.classifier, stream.sites, stream.forward
    buffer, extend = stream.buffer, stream.buffer.extend
    digest = hashing.hasher()
    parts_of = hashing.inner_tensors
    sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", lambda: 0)
    current_node = getattr(torch._C, "_current_autograd_node", lambda: None)
    get_frame = sys._getframe
    plain, parameter = torch.Tensor, torch.nn.Parameter
    last_sequence = -1
    batches, regions = run.plan(_Batch()), run.plan(_Region())
    allocated: dict[int, int] = {}
    inside = False
    drawn: list[tuple[int, int]] = []

    unwritten_base = [0]

    def find_site(plan: Plan, node: Any) -> int:
        nonlocal last_sequence
        frame: FrameType | None = get_frame(2)
        library: FrameType | None = None
        room = TORCH
        while frame is not None:
            kind = kinds[frame.f_code.co_filename]
            if kind:
                if kind == OWN:
                    break
                if kind != LIBRARY:
                    room = kind
                elif library is None:
                    library = frame
            frame = frame.f_back
        if frame is None:
            frame = library
        forward = -1 if node is None else forward_lines.get(node._sequence_nr())
        code, instruction = (id(frame.f_code), frame.f_lasti) if frame is not None else (0, 0)
        key = (plan.index, code, instruction, forward, room if node is None else -1)
        site = sites.get(key)
        if site is None:
            site = sites[key] = stream.site(plan, frame, instruction, forward, room, node is not None)
        sequence = sequence_number()
        if sequence != last_sequence:
            last_sequence = sequence
            forward_lines.put(sequence - 1, site)
        return site

    def read(arguments: Any, tensors: list[int], numbers: list[int], came: list[tuple[int, int]]) -> int:
        """Digest what an op reads into `tensors` and `numbers`; what came from outside into `came`. Returns flags."""
        flags = 0
        for value in arguments:
            kind = type(value)
            if kind is plain or kind is parameter or isinstance(value, plain):
                if kind is not plain and kind is not parameter and (parts := parts_of(value)):
                    flags |= read(parts, tensors, numbers, came)
                    continue
                base = quick_base(value)
                if not base:
                    continue
                known = owners.get(base)
                if known is None or base in foreign:
                    known = digest(value) & _CLEAN
                    if owners.get(base) != known:
                        owners[base] = known
                        note_foreign(value, base)
                        came.append((known, base))
                elif known & 1:
                    flags = trace.UNWRITTEN
                    unwritten_base[0] = base
                tensors.append(known + extent(value))
            elif kind is float:
                numbers.append(number_digest(value))
            elif kind is int or kind is bool:
                numbers.append(value if value != -1 else MINUS_ONE)
            elif kind is list or kind is tuple:
                if value:
                    flags |= read(value, tensors, numbers, came)
                numbers.append(_SEQUENCE + len(value))
            elif kind is complex:
                numbers.append(number_digest(value))
        return flags

    def extent(tensor: torch.Tensor) -> int:
        """Which part of its storage a view is: two views of one storage have one digest but for this."""
        try:
            return (tensor.storage_offset() << 20) + tensor.numel()  # type: ignore[operator]
        except (RuntimeError, NotImplementedError):
            return 0

    def note_foreign(tensor: torch.Tensor, base: int) -> None:
        """Memory that torch did not allocate may be written behind its back: it is digested at every read."""
        with contextlib.suppress(RuntimeError, NotImplementedError):
            if not tensor.untyped_storage().resizable():
                foreign.add(base)

    def quick_base(tensor: torch.Tensor) -> int:
        kind = type(tensor)
        if kind is not plain and kind is not parameter:
            return base_of(tensor)
        try:
            offset: Any = tensor.storage_offset()
            return tensor.data_ptr() - (offset * tensor.element_size() if offset else 0)
        except (RuntimeError, NotImplementedError):
            return base_of(tensor)

    def fresh(value: torch.Tensor, digests: list[int]) -> None:
        known = digest(value)
        digests.append(known)
        kind = type(value)
        if kind is not plain and kind is not parameter and (parts := parts_of(value)):
            for part in parts:
                fresh(part, [])
            return
        base = quick_base(value)
        if base:
            owners[base] = known & _CLEAN

    def several(out: Any, digests: list[int], scratch: tuple[int, ...], unwritten: frozenset[int]) -> None:
        for number, value in enumerate(tensors_in(out)):
            if number in scratch:
                digests.append(0)
                owners[base_of(value)] = 0
            elif unwritten and isinstance(value, plain) and quick_base(value) in unwritten:
                # Returned as it came, while a part of it is still to be written: nothing reads that part yet.
                digests.append(0)
            elif isinstance(value, plain):
                fresh(value, digests)
            else:
                digests.append(exact(value))

    def still_unwritten(arguments: Any) -> frozenset[int]:
        bases = (quick_base(value) for value in tensors_in(arguments) if isinstance(value, plain))
        return frozenset(base for base in bases if base and owners.get(base, 0) & 1)

    def written(value: Any, digests: list[int]) -> int:
        if isinstance(value, plain):
            kind = type(value)
            if kind is not plain and kind is not parameter and (parts := parts_of(value)):
                return written(parts, digests)
            known = digest(value)
            digests.append(known)
            base = quick_base(value)
            if not base:
                return 0
            old = owners.get(base, 0)
            owners[base] = hash((old, known)) & _CLEAN
            if not old & 1:
                return 0
            if value.numel() * value.element_size() < value.untyped_storage().nbytes():
                owners[base] |= 1
            return trace.SCRATCH
        flags = 0
        if isinstance(value, (list, tuple)):
            for item in value:
                flags |= written(item, digests)
        return flags

    def call(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        except RuntimeError:
            mended = plan.mended(args)
            if mended is None:
                raise
            return plan.call(*mended, **kwargs)

    def simple(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Views, storages bound, memory not yet written: no digest."""
        size = args[0].numel() if plan.kind == RESIZE else 0
        if plan.kind == COLLECTIVE:
            send(plan, args, kwargs)
        out = call(plan, args, kwargs)
        try:
            pass_on(plan, args, kwargs, out, size)
        except Exception as error:
            run.miss(plan, error)
        return out

    def send(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The record of what goes to other processes; what comes from them is digested where it is read."""
        tensors: list[int] = []
        numbers: list[int] = []
        try:
            read((args, *kwargs.values()), tensors, numbers, [])
            site = find_site(plan, current_node())
            extend((site, hash(tuple(numbers)) & _MASK, hash(tuple(tensors)) & _MASK))
            stream.records += 1
        except Exception as error:
            run.miss(plan, error)

    def pass_on(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, size: int) -> None:
        if plan.kind == RESIZE:
            if args[0].numel() > size:
                base = base_of(args[0])
                owners[base] = owners.get(base, 0) | 1
        elif plan.kind == VIEW:
            if sequence_number() != last_sequence and current_node() is None:
                find_site(plan, None)
        elif plan.kind == PICK:
            if current_node() is None:
                picked: list[int] = []
                read(args[1:], [], picked, [])
                site = find_site(plan, None) | 1 << 32
                extend((site, hash(tuple(picked)) & _MASK, extent(args[0]) & _MASK, extent(out) & _MASK))
                stream.records += 1
                if len(buffer) > _FLUSH_WORDS:
                    stream.flush()
        elif plan.kind == SET:
            if isinstance(out, plain):
                base = base_of(out)
                owners.pop(base, None)
                arrivals[base] = find_site(plan, current_node())
        elif plan.kind == COLLECTIVE:
            received = [args[at] if at < len(args) else kwargs.get(name) for at, name in plan.written]
            site = find_site(plan, current_node())
            for value in tensors_in([received, out]):
                if isinstance(value, plain) and (base := base_of(value)):
                    owners.pop(base, None)
                    arrivals[base] = site
        elif isinstance(out, plain) and (base := base_of(out)):
            site = find_site(plan, current_node())
            owners[base] = _UNWRITTEN
            allocated[base] = site
            numbers: list[int] = []
            read((args, *kwargs.values()), [], numbers, [])
            extend((site, hash(tuple(numbers)) & _MASK, 0))
            stream.records += 1

    def seed_of(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> tuple[int, int]:
        generator = kwargs.get("generator")
        if generator is None:
            generator = next((a for a in args if isinstance(a, torch.Generator)), None)
        if generator is not None and generator.initial_seed() != torch.default_generator.initial_seed():
            return trace.RANDOM | trace.DRAWN_FROM_OWN, generator.initial_seed() & _MASK
        device = next((t.device for t in tensors_in(out) if isinstance(t, plain)), None)
        if device is not None and device.type == "cuda":
            seed = torch.cuda.default_generators[device.index or 0].initial_seed()
        else:
            seed = torch.default_generator.initial_seed()
        return trace.RANDOM | (trace.UNSEEDED if seed == run.first_seed else 0), seed & _MASK

    def outside(came: list[tuple[int, int]], extra: list[int]) -> int:
        flags, words = run.outside(hash(tuple(known for known, _ in came)) & _MASK)
        extra += words
        sites = [arrivals.pop(base) for _, base in came if base in arrivals]
        arrived = sites[0] if sites else None
        if arrived is None:
            return flags
        extra.append(arrived)
        return flags | trace.ARRIVED

    def batch(value: Any) -> None:
        """A batch that a loader's workers made, at the moment the program takes it."""
        digests = [digest_of(item) for item in leaves_of(value)]
        site = find_site(batches, None)
        extra: list[int] = []
        flags = outside([(hash(tuple(digests)) & _MASK, 0)], extra)
        if len(digests) > 0xFFFF:
            digests = [hash(tuple(digests)) & _MASK]
        extend((site | len(digests) << 32 | flags << 48, 0, 0, *digests, *extra))
        stream.records += 1

    def region(inputs: Any, mutated: Any, compiled: Callable[[], Any]) -> Any:
        """A call of what torch.compile has compiled: one record of what it read and wrote, whatever runs inside."""
        nonlocal inside
        if inside:
            return compiled()
        tensors: list[int] = []
        numbers: list[int] = []
        came: list[tuple[int, int]] = []
        flags = 0
        changed = [inputs[number] for number in mutated if number < len(inputs)]
        try:
            flags = read(inputs, tensors, numbers, came)
        except Exception as error:
            run.miss(regions, error)
        inside = True
        drawn.clear()
        try:
            out = compiled()
        finally:
            inside = False
        try:
            node = current_node()
            site = find_site(regions, node)
            digests: list[int] = []
            several(out, digests, (), _NONE)
            for value in changed:
                written(value, digests)
            extra: list[int] = []
            if drawn:
                more, seed = drawn[0]
                flags |= more
                extra.append(seed)
            if came and node is None:
                flags |= outside(came, extra)
            if len(digests) > 0xFFFF:
                digests = [hash(tuple(digests)) & _MASK]
            head = site | len(digests) << 32 | (flags & ~trace.UNWRITTEN) << 48
            extend((head, hash(tuple(numbers)) & _MASK, hash(tuple(tensors)) & _MASK, *digests, *extra))
            stream.records += 1
        except Exception as error:
            run.miss(regions, error)
        return out

    def digest_of(value: Any) -> int:
        if not isinstance(value, plain):
            return plain_digest(value)
        known = digest(value)
        base = quick_base(value)
        if base:
            owners[base] = known & _CLEAN
        return known

    def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: C901
        plan = plans.get(id(function)) or run.plan(function)
        if inside:
            out = call(plan, args, kwargs)
            if plan.random:
                drawn.append(seed_of(args, kwargs, out))
            return out
        if plan.kind < LIFT:
            return simple(plan, args, kwargs)
        tensors: list[int] = []
        numbers: list[int] = []
        came: list[tuple[int, int]] = []
        flags = 0
        try:
            if plan.kind == VALUE:
                flags = read(args, tensors, numbers, came)
                if kwargs:
                    flags |= read(kwargs.values(), tensors, numbers, came)
                if flags and plan.overwrites:
                    flags = read(args[1:], [], [], [])
        except Exception as error:
            run.miss(plan, error)
        out = call(plan, args, kwargs)
        try:
            node = current_node()
            site = find_site(plan, node)
            digests: list[int] = []
            if out is not None and (plan.fresh == 1 or plan.kind == LIFT):
                fresh(out, digests)
            elif plan.fresh:
                several(out, digests, plan.scratch, still_unwritten((args, *kwargs.values())) if flags else _NONE)
            for position, name in plan.written:
                flags |= written(args[position] if position < len(args) else kwargs.get(name), digests)
            extra: list[int] = []
            if plan.random:
                more, seed = seed_of(args, kwargs, out)
                flags |= more
                extra.append(seed)
            if plan.kind == LIFT:
                came = [(digests[0], 0)]
                note_foreign(out, quick_base(out))
            if came and (node is None or plan.kind == LIFT):
                flags |= outside(came, extra)
            if flags & trace.UNWRITTEN and not flags & trace.ARRIVED and unwritten_base[0] in allocated:
                flags |= trace.ARRIVED
                extra.append(allocated[unwritten_base[0]])
            if len(digests) > 0xFFFF:
                digests = [hash(tuple(digests)) & _MASK]
            extend(
                (
                    site | len(digests) << 32 | flags << 48,
                    hash(tuple(numbers)) & _MASK,
                    hash(tuple(tensors)) & _MASK,
                    *digests,
                    *extra,
                )
            )
            stream.records += 1
            if len(buffer) > _FLUSH_WORDS:
                stream.flush()
                if len(owners) > _MOST_OWNERS:
                    run.forget_old_owners()
                if len(allocated) > _MOST_OWNERS:
                    allocated.clear()
        except Exception as error:
            run.miss(plan, error)
        return out

    stream.batch, stream.region = batch, region
    return dispatch
