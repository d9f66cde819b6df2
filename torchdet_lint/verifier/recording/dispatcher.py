"""One op of one thread -> the op run, and its record: place, digests of what it read, wrote and took in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _python_dispatch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.ops.allocations import is_filled, is_unused, not_ours
from torchdet_lint.verifier.ops.dispatch import tracing, while_traced
from torchdet_lint.verifier.ops.plans import COLLECTIVE, LIFT, MADE, NUMBER, PICK, RESIZE, SET, VALUE, VIEW, Plan
from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.generators import torch_digest
from torchdet_lint.verifier.recording.op.memory import PART, UNWRITTEN, extent, form_of, memory
from torchdet_lint.verifier.recording.op.places import caller, current_node, places
from torchdet_lint.verifier.recording.values import base_of, exact, leaves, local_of, plain_digest, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from torchdet_lint.verifier.ops.dispatch import Direct
    from torchdet_lint.verifier.recording.streams import Run, Stream

_FLUSH_BYTES = 65_536
_MOST_OWNERS = 400_000
_NONE: frozenset[int] = frozenset()
_STORAGES = torch.UntypedStorage.clone.__code__.co_filename


def _copies_storage(frame: FrameType | None) -> bool:
    """Whether an op is part of the copy of a storage: into shared memory (`share_memory_`), for a clone."""
    frame = not_ours(frame)
    return frame is not None and frame.f_code.co_filename == _STORAGES


class Quiet:
    """Neither modes for ops nor those for functions of torch, the program's among them, hear what is done inside."""

    __slots__ = ("_guards",)

    def __enter__(self) -> None:
        self._guards: tuple[Any, Any] = torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction()
        for guard in self._guards:
            guard.__enter__()

    def __exit__(self, *_: object) -> None:
        for guard in reversed(self._guards):
            guard.__exit__(None, None, None)


def dispatcher(run: Run, stream: Stream) -> Direct:  # noqa: C901
    """The function that runs one op and records it, to be called by torch itself (`ops.dispatch.direct`). Everything it
    needs is bound here: it runs for every op.
    """
    plans, owners, arrivals = run.plans, run.owners, run.arrivals
    buffer, extend, pack = stream.buffer, stream.buffer.extend, trace.RECORD.pack
    pack_drawn, pack_taken, pack_allocated = trace.DRAWN.pack, trace.TAKEN.pack, trace.ALLOCATED.pack
    plain, mask = torch.Tensor, hashing.MASK
    read, fresh, several, written, changed, still_unwritten, last_unwritten, note_foreign, digest_of, settled = memory(
        run
    )
    find_site, passed, sequence_number, last = places(run, stream)
    batches, reads = run.plan_named(trace.BATCH), run.plan_named(trace.HANDED)
    quiet: Any = Quiet
    functions_watched = getattr(torch._C, "_is_torch_function_mode_enabled", lambda: False)
    unheard: Any = torch._C.DisableTorchFunction
    allocated: dict[int, int] = {}
    get_frame = sys._getframe
    no_numbers = hash(())
    default = torch.default_generator
    numeric = (float, int, bool)
    nothing: dict[str, Any] = {}
    inside = False
    drawn: list[tuple[int, int]] = []

    def within(digests: list[int]) -> list[int]:
        """As many digests as a record may have."""
        return digests if len(digests) <= 0xFFFF else [hash(tuple(digests)) & mask]

    def call(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        except RuntimeError:
            return again(plan, args, kwargs)

    def again(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an op gives that has just failed, where its arguments can be mended; else it raises on."""
        mended = plan.mended(args)
        if mended is None:
            raise
        return plan.call(*mended, **kwargs)

    def unseen(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An op that a thread without Python runs, as those of gloo do beside this one: when it comes means nothing,
        and what it writes is digested where it is read.
        """
        out = call(plan, args, kwargs)
        written = [args[at] if at < len(args) else kwargs.get(name) for at, name in plan.written]
        for value in tensors_in([out, written]):
            if isinstance(value, plain):
                owners.pop(base_of(value), None)
        return out

    def simple(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> Any:
        """Storages bound, values picked or exchanged, memory not yet written: no digest of what comes out."""
        size = args[0].numel() if plan.kind == RESIZE else 0
        if plan.kind == COLLECTIVE:
            send(plan, args, kwargs, frame)
        out = call(plan, args, kwargs)
        try:
            pass_on(plan, args, kwargs, out, size, frame)
        except Exception as error:
            run.miss(plan, error)
        return out

    def send(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        """The record of what goes to other processes; what comes from them is digested where it is read."""
        tensors: list[int] = []
        numbers: list[int] = []
        try:
            read((args, *kwargs.values()), tensors, numbers, [])
            site = find_site(plan, current_node(), frame)
            extend(trace.record(site, 0, hash(tuple(numbers)), hash(tuple(tensors)), (), ()))
            stream.records += 1
        except Exception as error:
            run.miss(plan, error)

    def pass_on(
        plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, size: int, frame: FrameType | None
    ) -> None:
        if plan.kind == RESIZE:
            if args[0].numel() > size:
                base = base_of(args[0])
                owners[base] = owners.get(base, 0) | 1
                if is_unused(not_ours(frame)):
                    args[0].view(-1)[size:].zero_()
                    fresh(args[0])
        elif plan.kind == PICK:
            if current_node() is None:
                picked: list[int] = []
                read(args[1:], [], picked, [])
                site = find_site(plan, None, frame)
                extend(pack(site, 1, 0, hash(tuple(picked)), extent(args[0]), extent(out) & mask))
                stream.records += 1
                if len(buffer) > _FLUSH_BYTES:
                    stream.flush()
        elif plan.kind == SET:
            if isinstance(out, plain):
                bind(plan, out, frame)
        elif plan.kind == COLLECTIVE:
            received = [args[at] if at < len(args) else kwargs.get(name) for at, name in plan.written]
            site = find_site(plan, current_node(), frame)
            for value in tensors_in([received, out]):
                if isinstance(value, plain) and (base := base_of(value)):
                    owners.pop(base, None)
                    arrivals[base] = stream, site
        elif isinstance(out, plain) and (base := base_of(here := local_of(out))):
            site = find_site(plan, current_node(), frame)
            owners[base] = UNWRITTEN
            run.begun.discard(base)
            maker = not_ours(frame)
            (run.filled.add if is_filled(maker) else run.filled.discard)(base)
            if is_unused(maker):
                here.zero_()
                fresh(here)
            allocated[base] = site
            numbers: list[int] = []
            read((args, *kwargs.values()), [], numbers, [])
            extend(pack_allocated(site, 0, 0, hash(tuple(numbers)), 0))
            stream.records += 1

    def bind(plan: Plan, out: torch.Tensor, frame: FrameType | None) -> None:
        """A tensor was given a storage: one that arrives, or one that torch is about to copy or to fill."""
        base = base_of(out)
        if not _copies_storage(frame):
            owners.pop(base, None)
            arrivals[base] = stream, find_site(plan, current_node(), frame)
        elif base not in owners or not out.untyped_storage().resizable():
            owners[base] = 0
            arrivals.pop(base, None)
            note_foreign(out)

    def move(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A storage that nothing has written is copied, into memory that processes share, say: nothing is read yet."""
        out = call(plan, args, kwargs)
        base = base_of(args[0])
        owners[base] = UNWRITTEN
        if last_unwritten() in allocated:
            allocated[base] = allocated[last_unwritten()]
        return out

    def seed_of(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> tuple[int, int]:
        generator = kwargs.get("generator")
        if generator is None and 0 <= plan.generator < len(args):
            generator = args[plan.generator]
        seed = default.initial_seed()
        if generator is not None and (own := generator.initial_seed()) != seed:
            return trace.RANDOM | trace.DRAWN_FROM_OWN, own & mask
        for value in (out,) if type(out) is plain else tensors_in(out):
            if isinstance(value, plain):
                if value.is_cuda:
                    seed = torch.cuda.default_generators[value.device.index or 0].initial_seed()
                break
        return trace.RANDOM | (trace.UNSEEDED if seed == run.first_seed else 0), seed & mask

    def outside(came: list[tuple[int, int]], extra: list[int]) -> int:
        digests = tuple(known for known, _ in came)
        digest = hash(digests) & mask
        flags, words = run.outside(trace.digest_of_several(digest, digests) if len(came) > 1 else digest)
        extra += words
        sites = [arrivals.pop(base) for _, base in came if base in arrivals]
        if not sites:
            return flags
        extra.append(stream.adopt(*sites[0]))
        return flags | trace.ARRIVED

    def batch(value: Any) -> None:
        """A batch that a loader's workers made, at the moment the program takes it."""
        try:
            extra: list[int] = []
            site = find_site(batches, None, caller())
            with quiet():
                digests = [digest_of(item) if isinstance(item, plain) else plain_digest(item) for item in leaves(value)]
                flags = outside([(hash(tuple(digests)) & mask, 0)], extra)
            extend(trace.record(site, flags, 0, 0, within(digests), extra))
            stream.records += 1
        except Exception as error:
            run.miss(batches, error)

    def handed(value: torch.Tensor, array: Any) -> None:
        """A tensor that NumPy is handed; not memory that nothing has written: NumPy may be to fill it."""
        if inside:
            return
        try:
            tensors: list[int] = []
            came: list[tuple[int, int]] = []
            extra: list[int] = []
            with quiet():
                flags = read((value,), tensors, [], came)
                run.loans.lend(base_of(value), value, array)
                if flags & trace.UNWRITTEN or not tensors:
                    return
                site = find_site(reads, current_node(), caller())
                if came:
                    flags |= outside(came, extra)
            known = hash(tuple(tensors))
            extend(trace.record(site, flags, no_numbers, known, (known & mask,), extra))
            stream.records += 1
        except Exception as error:
            run.miss(reads, error)

    def whole(
        name: str, inputs: Any, function: Callable[[], Any], outputs: Callable[[Any], tuple[Any, Sequence[Any]]]
    ) -> Any:
        """A call that has one record of what it read and wrote, whatever runs inside. `outputs` are of what it gives
        what is new, and what else it wrote.
        """
        nonlocal inside
        if inside:
            return function()
        plan = run.plan_named(name)
        tensors: list[int] = []
        numbers: list[int] = []
        came: list[tuple[int, int]] = []
        flags = 0
        try:
            with quiet():
                flags = read(inputs, tensors, numbers, came)
        except Exception as error:
            run.miss(plan, error)
        inside = True
        drawn.clear()
        try:
            out = function()
        finally:
            inside = False
        if run.captured is not None:
            return out
        try:
            node = current_node()
            site = find_site(plan, node, caller())
            digests: list[int] = []
            new, changed = outputs(out)
            extra: list[int] = []
            if drawn:
                more, seed = drawn[0]
                flags |= more
                extra.append(seed)
            with quiet():
                several(new, digests, (), _NONE)
                flags |= written(changed, digests)
                if came and node is None:
                    flags |= outside(came, extra)
            flags &= ~trace.UNWRITTEN
            extend(trace.record(site, flags, hash(tuple(numbers)), hash(tuple(tensors)), within(digests), extra))
            stream.records += 1
        except Exception as error:
            run.miss(plan, error)
        return out

    def captured(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An op that becomes a part of a CUDA graph: it has not run yet."""
        out = call(plan, args, kwargs)
        if run.captured is not None:
            for base in run.captured.note(plan, args, kwargs, out):
                owners.pop(base, None)
        return out

    def folded(
        name: str, given: Sequence[Any], function: Callable[[], Any], *, draws: bool = False, takes: bool = False
    ) -> Any:
        """Many small ops, of which all follows from what they are given: one record of what they read and wrote. They
        may be those of a function that `draws` from torch's generator, or that `takes` what is no tensor, an image say.
        """
        before: dict[int, int] = {}
        if inside or not settled(given, before):
            return function()
        tensors: list[int] = []
        numbers: list[int] = []
        came: list[tuple[int, int]] = []
        plan = run.plan_named(name)
        flags = 0
        generator = torch_digest() if draws else 0
        try:
            flags = read(given, tensors, numbers, came)
        except Exception as error:
            run.miss(plan, error)
        out = None
        mode = _python_dispatch._pop_mode()
        try:
            out = function()
            return out
        finally:
            _python_dispatch._push_mode(mode)
            try:
                digests: list[int] = []
                extra: list[int] = []
                if type(out) is plain:
                    digests.append(fresh(out))
                else:
                    several(out, digests, (), _NONE)
                for value in tensors_in(given):
                    if isinstance(value, plain):
                        version = before.get(id(value))
                        if version is None:
                            digests.append(fresh(value))
                        elif version != value._version:
                            flags |= written(value, digests)
                if draws and torch_digest() != generator:
                    seed = default.initial_seed()
                    flags |= trace.RANDOM | (trace.UNSEEDED if seed == run.first_seed else 0)
                    extra.append(seed & mask)
                if takes and not tensors and type(out) is plain:
                    note_foreign(out)
                    came.append((digests[0], 0))
                if came:
                    flags |= outside(came, extra)
                site = find_site(plan, None, caller())
                extend(trace.record(site, flags, hash(tuple(numbers)), hash(tuple(tensors)), within(digests), extra))
                stream.records += 1
                if len(buffer) > _FLUSH_BYTES:
                    stream.flush()
            except Exception as error:
                run.miss(plan, error)

    def dispatch(  # noqa: C901
        _mode: Any, function: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if functions_watched():
            with unheard():
                return dispatch(_mode, function, _types, args, kwargs)
        if (state := tracing()) is not None:
            return while_traced(state, function, lambda traced: dispatch(_mode, traced, _types, args, kwargs))
        plan = plans.get(id(function)) or run.plan(function)
        try:
            frame = get_frame(1)
        except ValueError:
            frame = None
        if kwargs is None:
            kwargs = nothing
        if frame is None and current_node() is None:
            return unseen(plan, args, kwargs)
        if inside:
            out = call(plan, args, kwargs)
            if plan.random:
                drawn.append(seed_of(plan, args, kwargs, out))
            return out
        if run.captured is not None:
            return captured(plan, args, kwargs)
        kind = plan.kind
        if kind == VIEW:
            try:
                out = plan.call(*args, **kwargs) if kwargs else plan.call(*args)
            except RuntimeError:
                out = again(plan, args, kwargs)
            if sequence_number() != last[0]:
                try:
                    passed(plan, frame)
                except Exception as error:
                    run.miss(plan, error)
            return out
        if kind < LIFT:
            return simple(plan, args, kwargs, frame)
        tensors: list[int] = []
        numbers: list[int] = []
        came: list[tuple[int, int]] = []
        flags = 0
        try:
            if kind == VALUE:
                flags = read(args, tensors, numbers, came)
                if kwargs:
                    flags |= read(plan.inputs_of(kwargs) if plan.outs else kwargs.values(), tensors, numbers, came)
                if flags & trace.UNWRITTEN and plan.overwrites >= 0:
                    flags = read(plan.read_of(args), [], [], [])
                    if flags & trace.UNWRITTEN and _copies_storage(frame):
                        return move(plan, args, kwargs)
        except Exception as error:
            run.miss(plan, error)
        try:
            out = plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        except RuntimeError:
            out = again(plan, args, kwargs)
        try:
            node = current_node()
            site = find_site(plan, node, frame)
            read_numbers = hash(tuple(numbers)) if numbers else no_numbers
            digest = -1
            if not flags and not came and (form := plan.form):
                if form == MADE:
                    digest = fresh(out) if out is not None else -1
                elif form == NUMBER:
                    digest = exact(out) if type(out) in numeric else -1
                elif args:
                    digest = changed(args[0])
                if digest > mask:
                    digest -= PART
                    flags = trace.SCRATCH
            if digest >= 0 and plan.random:
                more, seed = seed_of(plan, args, kwargs, out)
                extend(pack_drawn(site, 1, flags | more, read_numbers, hash(tuple(tensors)), digest, seed))
            elif digest >= 0:
                extend(pack(site, 1, flags, read_numbers, hash(tuple(tensors)), digest))
            elif kind == LIFT and type(out) is plain and not plan.written:
                digest = fresh(out)
                note_foreign(out)
                flags, states = run.outside(hash((digest,)) & mask)
                extend(pack_taken(site, 1, flags, no_numbers, no_numbers, digest, *states))
            else:
                digests: list[int] = []
                extra: list[int] = []
                if out is not None and (plan.fresh == 1 or kind == LIFT):
                    digests.append(fresh(out))
                elif plan.fresh:
                    unwritten = _NONE
                    if flags & trace.UNWRITTEN:
                        unwritten = still_unwritten((plan.read_of(args), *kwargs.values()))
                    several(out, digests, plan.scratch, unwritten)
                elif plan.binds:
                    digests.append(hash((form_of(out), *tensors)) & mask)
                for position, name in plan.written:
                    flags |= written(args[position] if position < len(args) else kwargs.get(name), digests)
                if plan.random:
                    more, seed = seed_of(plan, args, kwargs, out)
                    flags |= more
                    extra.append(seed)
                if kind == LIFT:
                    came = [(digests[0], 0)]
                    note_foreign(out)
                if came and (node is None or kind == LIFT):
                    flags |= outside(came, extra)
                came_here = trace.ARRIVED | trace.NUMPY_WROTE
                if flags & trace.UNWRITTEN and not flags & came_here and last_unwritten() in allocated:
                    flags |= trace.ARRIVED
                    extra.append(allocated[last_unwritten()])
                extend(trace.record(site, flags, read_numbers, hash(tuple(tensors)), within(digests), extra))
            stream.records += 1
            if len(buffer) > _FLUSH_BYTES:
                stream.flush()
                if len(owners) > _MOST_OWNERS:
                    run.forget_old_owners()
                if len(allocated) > _MOST_OWNERS:
                    allocated.clear()
        except Exception as error:
            run.miss(plan, error)
        return out

    stream.batch, stream.handed, stream.whole, stream.folded, stream.unseen = batch, handed, whole, folded, unseen
    return dispatch
