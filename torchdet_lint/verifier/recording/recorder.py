"""Records every op that a program runs: place, digests of what it wrote, of what it read, and of what came from
outside.

`Recorder` is a context manager for this process; `child.py` enters one for a whole program. It changes no result: it
draws no random number, touches no autograd state, and leaves `torch.compile` alone (what runs inside a compiled
region is seen only where it calls an op of torch). One stream of records for each thread, one file for each process:
forked ones go on recording, and those that a program starts afresh begin by themselves (`onset.py`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import platform
import random
import struct
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.recording import hashing, trace
from torchdet_lint.verifier.recording.dispatch import OpMode
from torchdet_lint.verifier.recording.lines import (
    INITIALIZER,
    LIBRARY,
    LOADER,
    OPTIMIZER,
    OWN,
    READER,
    SPLITTER,
    TORCH,
    Classifier,
    ForwardLines,
    line_of,
)
from torchdet_lint.verifier.recording.plans import COLLECTIVE, LIFT, RESIZE, SET, VALUE, VIEW, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType, TracebackType

_MASK = hashing.MASK
_FLUSH_WORDS = 8192
_MOST_OWNERS = 400_000
_UNWRITTEN = 1
_TASK_TAKERS = ("torch.utils.data", "concurrent.futures", "multiprocessing.pool", "joblib", "billiard")
_CLEAN = _MASK - 1
_PHASES = {OPTIMIZER: "optimizer", LOADER: "data", SPLITTER: "split", INITIALIZER: "init", READER: "load"}
_ENVIRONMENT = (
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUBLAS_WORKSPACE_CONFIG",
    "MALLOC_PERTURB_",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "TORCHINDUCTOR_DETERMINISTIC",
    "FLASH_ATTENTION_DETERMINISTIC",
    "CUDA_VISIBLE_DEVICES",
)


def generator_digests() -> tuple[int, int, int]:
    """Digests of the states of the global generators of `random`, NumPy (0 while it is not imported) and torch."""
    return python_digest(), numpy_digest(), torch_digest()


def python_digest() -> int:
    """The digest of the state of `random`'s global generator."""
    return hash(random.getstate()[1]) & _MASK


def numpy_digest() -> int:
    """The digest of the state of NumPy's global generator; 0 while NumPy is not imported."""
    numpy_random = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is None:
        return 0
    return state_digest(numpy_random.get_state(legacy=False))


def state_digest(state: dict[str, Any]) -> int:
    """The digest of what `numpy.random.get_state(legacy=False)` returned."""
    key = state.get("state", {}).get("key")
    position = hash((state.get("state", {}).get("pos", 0), state.get("has_gauss", 0))) & _MASK
    return hashing.digest_bytes(key.tobytes() if key is not None else repr(state).encode(), position)


def torch_digest() -> int:
    """The digest of the state of torch's global CPU generator."""
    return hashing.general(torch.default_generator.get_state())


def environment() -> dict[str, Any]:
    """What the results may depend on besides the program: releases, threads, devices, flags, environment variables."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": str(getattr(sys.modules.get("numpy"), "__version__", "")),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "cuda": str(torch.version.cuda or ""),
        "devices": [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if _cuda_ready() else [],
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "variables": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    }


def _cuda_ready() -> bool:
    ready: Callable[[], bool] = torch.cuda.is_initialized
    return bool(torch.version.cuda) and ready()


class _Run:
    """What the threads of one process share: the file, the plans, who wrote which memory, the generators at the
    start.

    `owners` maps the address of a storage to a digest of what was written there, and how: even, or odd while a part
    of it may be memory that nothing has written.
    """

    def __init__(
        self, path: Path, classifier: Classifier, about: dict[str, Any], starts: dict[str, int], label: str
    ) -> None:
        self.path = path
        self.classifier = classifier
        self.about = {**about, "hash": hashing.NAME, "environment": environment()}
        self.label = label
        self.began = time.monotonic()
        self.writer: trace.Writer | None = None
        self.plans: dict[int, Plan] = {}
        self.owners: dict[int, int] = {}
        self.arrivals: dict[int, int] = {}
        self.foreign: set[int] = set()
        self.missed: set[str] = set()
        self.order: list[int] = []
        self.forks = itertools.count(1)
        self.threads = itertools.count(1)
        self.live: dict[int, _Stream] = {}
        self.fork_number = 0
        self.first_seed = torch.initial_seed()
        self.starts = (
            starts.get("python", python_digest()),
            starts.get("numpy", numpy_digest()),
            torch_digest(),
        )
        if not label:
            self.writer = trace.Writer(path)
            self.writer.json(b"H", 0, {**self.about, "order": []})

    def plan(self, function: Any) -> Plan:
        plan = self.plans[id(function)] = Plan(function, len(self.plans))
        return plan

    def miss(self, plan: Plan, error: Exception) -> None:
        """Note, once for each op, that it could not be recorded; the program goes on. What a signal handler of the
        program raised is raised on.
        """
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is not None and self.classifier[traceback.tb_frame.f_code.co_filename] in (OWN, LIBRARY):
            raise error
        if plan.name not in self.missed:
            self.missed.add(plan.name)
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            self.open().json(b"N", 0, {"missed": f"{plan.name} could not be recorded: {reason}"})

    def forget_old_owners(self) -> None:
        for key in list(itertools.islice(self.owners, len(self.owners) // 2)):
            del self.owners[key]

    def open(self) -> trace.Writer:
        """The file of this process; a child's is made when it first has something to say."""
        if self.writer is None:
            self.writer = trace.Writer(trace.part_of(self.path, os.getpid()))
            self.writer.json(b"H", 0, {**self.about, "order": self.order, "began": self.began})
        return self.writer

    def process_name(self) -> str:
        """What this process is called in every run: its place in the tree of processes."""
        forks = ".".join(map(str, self.order))
        process = sys.modules.get("multiprocessing.process")
        identity = process.current_process()._identity if process is not None and not forks else ()
        return " ".join(filter(None, (self.label, ":".join(map(str, identity)), forks)))

    def outside(self, value: int) -> tuple[int, tuple[int, ...]]:
        """The flags and extra words of data that came from outside; a generator not used so far has the digest 0."""
        flags, states = trace.OUTSIDE, [value]
        used = (trace.PYTHON_USED, trace.NUMPY_USED, trace.TORCH_USED)
        for flag, now, start in zip(used, generator_digests(), self.starts, strict=True):
            flags |= flag if now != start else 0
            states.append(now if now != start else 0)
        return flags, tuple(states)


class _Stream:
    """The records of one thread: a buffer of words, the sites seen, and the forward lines of its autograd nodes."""

    def __init__(self, run: _Run, kind: str, name: str) -> None:
        self.run = run
        self.kind = kind
        self.name = name
        self.buffer: list[int] = []
        self.rows: list[trace.Site] = []
        self.sites: dict[tuple[int, int, int, int, int], int] = {}
        self.codes: list[Any] = []
        self.forward = ForwardLines()
        self.number = -1
        self.defined = 0
        self.records = 0
        self.ident = threading.get_ident()
        self.lock = threading.Lock()
        self.batch: Callable[[Any], None] = lambda _: None

    def after_fork(self) -> None:
        """In the child: drop what the parent has still to write, and begin a stream of its own."""
        self.buffer.clear()
        self.number, self.defined, self.records = -1, 0, 0
        self.kind = "process"
        self.lock = threading.Lock()

    def site(
        self, plan: Plan, frame: FrameType | None, instruction: int, forward: int, room: int, backward: bool
    ) -> int:
        """A new site, of the op of `plan` at `instruction` of `frame`."""
        code = frame.f_code if frame is not None else None
        self.codes.append(code)
        file = self.run.classifier.shown(code.co_filename) if code is not None else ""
        line = line_of(code, instruction) if code is not None else 0
        function = getattr(code, "co_qualname", code.co_name) if code is not None else ""
        phase = _PHASES.get(room, "forward")
        origin = self.rows[forward] if 0 <= forward < len(self.rows) else None
        row = trace.Site(plan.name, "backward" if backward else phase, file, line, function)
        if origin is not None and backward:
            row = row._replace(forward_op=origin.op, forward_file=origin.file, forward_line=origin.line)
        self.rows.append(row)
        return len(self.rows) - 1

    def flush(self) -> None:
        """Write what is in the buffer."""
        with self.lock:
            words, self.buffer[:] = self.buffer[:], []
            if not words and self.number >= 0:
                return
            writer = self.run.open()
            if self.number < 0 and self.kind == "process":
                self.number = writer.stream(self.kind, self.run.process_name(), role=_role())
            elif self.number < 0:
                self.number = writer.stream(self.kind, self.name)
            if self.defined < len(self.rows):
                writer.json(b"D", self.number, self.rows[self.defined :])
                self.defined = len(self.rows)
            if words:
                writer.block(b"R", self.number, trace.words(words))

    def close(self) -> None:
        """Write the rest, and the mark of a stream that ended in order."""
        self.flush()
        self.run.open().json(b"F", self.number, {"records": self.records})


def _role() -> str:
    """`worker` for a process that takes tasks from a queue, where who does which is the scheduler's choice."""
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return "process"
    process = module.current_process()
    target = str(getattr(getattr(process, "_target", None), "__module__", ""))
    return "worker" if "PoolWorker" in process.name or target.startswith(_TASK_TAKERS) else "process"


def _number(value: Any) -> int:
    """A digest of a Python number that is the same in every process."""
    if isinstance(value, float):
        return hash(value) if value == value else 7
    if isinstance(value, complex):
        return hash((_number(value.real), _number(value.imag)))
    return hash(value) if isinstance(value, int) else 0


def _exact(value: Any) -> int:
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d", value), "little")
    return _number(value) & _MASK


def _base(tensor: torch.Tensor) -> int:
    """The address of the first byte of a tensor's storage, which all its views share; 0 where there is none."""
    if hashing.is_fake(tensor):
        return 0
    try:
        offset = int(tensor.storage_offset())
        return tensor.data_ptr() - (offset * tensor.element_size() if offset else 0)
    except (RuntimeError, NotImplementedError):
        pass
    try:
        parts = hashing._parts(tensor)
        return _base(parts[-1]) if parts else 0
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


def _tensors(value: Any) -> Iterable[Any]:
    """The tensors and numbers in a nested return value, in order."""
    if isinstance(value, (torch.Tensor, int, float, complex)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for key in value:
            yield from _tensors(value[key])


def _dispatcher(run: _Run, stream: _Stream) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:  # noqa: C901
    """The function that runs one op and records it. Everything it needs is bound here: it runs for every op."""
    plans, owners, arrivals, foreign = run.plans, run.owners, run.arrivals, run.foreign
    kinds, sites, forward_lines = run.classifier, stream.sites, stream.forward
    buffer, extend = stream.buffer, stream.buffer.extend
    digest = hashing.hasher()
    sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", lambda: 0)
    current_node = getattr(torch._C, "_current_autograd_node", lambda: None)
    get_frame = sys._getframe
    plain, parameter = torch.Tensor, torch.nn.Parameter
    last_sequence = -1
    batches = run.plan(_Batch())

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
                tensors.append(known + extent(value))
            elif kind is float:
                numbers.append(hash(value) if value == value else 7)
            elif kind is int or kind is bool:
                numbers.append(value)
            elif kind is list or kind is tuple:
                if value:
                    flags |= read(value, tensors, numbers, came)
                numbers.append(-2 - len(value))
            elif kind is complex:
                numbers.append(_number(value))
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
            return _base(tensor)
        try:
            offset: Any = tensor.storage_offset()
            return tensor.data_ptr() - (offset * tensor.element_size() if offset else 0)
        except (RuntimeError, NotImplementedError):
            return _base(tensor)

    def fresh(value: torch.Tensor, digests: list[int]) -> None:
        known = digest(value)
        digests.append(known)
        base = quick_base(value)
        if base:
            owners[base] = known & _CLEAN

    def several(out: Any, digests: list[int], scratch: tuple[int, ...]) -> None:
        for number, value in enumerate(_tensors(out)):
            if number in scratch:
                digests.append(0)
                owners[_base(value)] = 0
            elif isinstance(value, plain):
                fresh(value, digests)
            else:
                digests.append(_exact(value))

    def written(value: Any, digests: list[int]) -> int:
        if isinstance(value, plain):
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
                base = _base(args[0])
                owners[base] = owners.get(base, 0) | 1
        elif plan.kind == VIEW:
            if sequence_number() != last_sequence and current_node() is None:
                find_site(plan, None)
        elif plan.kind == SET:
            if isinstance(out, plain):
                base = _base(out)
                owners.pop(base, None)
                arrivals[base] = find_site(plan, current_node())
        elif plan.kind == COLLECTIVE:
            received = [args[at] if at < len(args) else kwargs.get(name) for at, name in plan.written]
            site = find_site(plan, current_node())
            for value in _tensors([received, out]):
                if isinstance(value, plain) and (base := _base(value)):
                    owners.pop(base, None)
                    arrivals[base] = site
        elif isinstance(out, plain) and (base := _base(out)):
            site = find_site(plan, current_node())
            owners[base] = _UNWRITTEN
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
        device = next((t.device for t in _tensors(out) if isinstance(t, plain)), None)
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
        digests = [digest_of(item) for item in _leaves(value)]
        site = find_site(batches, None)
        extra: list[int] = []
        flags = outside([(hash(tuple(digests)) & _MASK, 0)], extra)
        if len(digests) > 0xFFFF:
            digests = [hash(tuple(digests)) & _MASK]
        extend((site | len(digests) << 32 | flags << 48, 0, 0, *digests, *extra))
        stream.records += 1

    def digest_of(value: Any) -> int:
        if not isinstance(value, plain):
            return _plain_digest(value)
        known = digest(value)
        base = quick_base(value)
        if base:
            owners[base] = known & _CLEAN
        return known

    def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: C901
        plan = plans.get(id(function)) or run.plan(function)
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
                several(out, digests, plan.scratch)
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
        except Exception as error:
            run.miss(plan, error)
        return out

    stream.batch = batch
    return dispatch


class _Batch:
    """Stands for the op of taking a batch from a loader."""

    def __str__(self) -> str:
        return trace.BATCH


def _leaves(value: Any) -> Iterable[Any]:
    """The tensors, arrays, numbers and texts of a batch, in order."""
    if isinstance(value, Mapping):
        for key in value:
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, torch.Tensor) or hasattr(value, "tobytes") or isinstance(value, (int, float, str, bytes)):
        yield value
    elif hasattr(value, "__dict__"):
        yield from _leaves(vars(value))


def _plain_digest(value: Any) -> int:
    if isinstance(value, (int, float)):
        return _exact(value)
    data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else value.tobytes()
    return hashing.digest_bytes(data, 0)


def _keep_compiler_out(*functions: Callable[..., Any]) -> None:
    """Tell torch.compile not to look into the recorder, where the release has the switch."""
    frame = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    strategy, action = getattr(frame, "_FrameExecStrategy", None), getattr(frame, "_FrameAction", None)
    if frame is None or strategy is None or action is None or not hasattr(frame, "set_code_exec_strategy"):
        return
    for function in functions:
        frame.set_code_exec_strategy(function.__code__, strategy(action.SKIP, action.SKIP))


class Recorder:
    """Records what this process does between entering and leaving, into the trace file `path`.

    `roots` are the directories whose files count as the program's own, by default the caller's and the working
    directory. `about` goes into the trace's header; `starts` are digests of generators taken before the program began
    (`python`, `numpy`). Raises `trace.TraceError` where the file cannot be made. A disk that fills up later does not
    stop the program: once closed, `failure` holds the reason. Not reentrant; enter it once.

    With a `label` this is a process below the one that writes `path`: it is called so, and has a file of its own until
    `trace.gather`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        roots: Iterable[str | Path] = (),
        about: dict[str, Any] | None = None,
        starts: dict[str, int] | None = None,
        label: str = "",
    ) -> None:
        self.path = Path(path)
        self._label = label
        self._roots = tuple(roots)
        self._about = about or {}
        self._starts = starts or {}
        self._run: _Run | None = None
        self.failure = ""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Recorder:
        roots = self._roots or (Path.cwd(), Path(sys._getframe(1).f_code.co_filename).parent)
        classifier = Classifier(roots, str(Path(torch.__file__).parent))
        self._run = run = _Run(self.path, classifier, self._about, self._starts, self._label)
        self._mode = self._enter(run, _Stream(run, "process" if self._label else "main", "main"))
        self._patch(run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        trace.gather(self.path)

    def close(self) -> None:
        """Stop recording in every thread and write the rest. Forked children's streams are left to `trace.gather`."""
        run, self._run = self._run, None
        if run is None:
            return
        with contextlib.suppress(Exception):
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._stack.close()
        for stream in list(run.live.values()):
            if stream.records or not self._label:
                stream.close()
        if run.writer is not None:
            self.failure = run.writer.failure
            run.writer.close()
        run.live.clear()

    def end_after(self, steps: int) -> None:
        """End the program, in order, when an optimizer of it has made so many steps."""
        from torch.optim import optimizer as optimizers

        register = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if register is None:
            self._note({"steps": f"torch {torch.__version__} tells of no optimizer's steps: --steps has no effect"})
            return
        made: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

        def stepped(optimizer: Any, *_: Any) -> None:
            made[optimizer] = made.get(optimizer, 0) + 1
            if made[optimizer] == steps:
                self._note({"steps": f"the program was ended after {steps} optimizer step{'s' * (steps > 1)}"})
            if made[optimizer] >= steps:
                raise SystemExit(0)

        register(stepped)

    def _note(self, note: dict[str, str]) -> None:
        if self._run is not None:
            self._run.open().json(b"N", 0, note)

    def write(self) -> None:
        """In a forked child that ends: write what it did."""
        if self._run is not None:
            _write_all(weakref.ref(self._run))

    def _enter(self, run: _Run, stream: _Stream) -> OpMode:
        run.live[id(stream)] = stream
        if stream.kind == "main":
            stream.flush()
        dispatch = _dispatcher(run, stream)
        mode = OpMode(dispatch)
        _keep_compiler_out(dispatch, OpMode.__torch_dispatch__)
        mode.__enter__()  # type: ignore[no-untyped-call]
        return mode

    def _patch(self, run: _Run) -> None:
        owner = weakref.ref(run)
        _watch_forks(owner)
        exit_now = os._exit

        @functools.wraps(exit_now)
        def exit_after_writing(status: int) -> None:
            with contextlib.suppress(Exception):
                _write_all(owner)
            exit_now(status)

        os._exit = exit_after_writing  # type: ignore[assignment]
        self._stack.callback(lambda: setattr(os, "_exit", exit_now) if os._exit is exit_after_writing else None)
        self._patch_threads(run)
        self._patch_loaders(run)

    def _patch_loaders(self, run: _Run) -> None:
        """Batches are recorded as the program takes them: workers hand them over in an order that means nothing."""
        from torch.utils.data import dataloader

        base = getattr(dataloader, "_BaseDataLoaderIter", None)
        workers = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
        if base is None or workers is None:
            return
        original = base.__next__

        @functools.wraps(original)
        def recorded(iterator: Any) -> Any:
            batch = original(iterator)
            if isinstance(iterator, workers):
                here = threading.get_ident()
                for stream in list(run.live.values()):
                    if stream.ident == here:
                        stream.batch(batch)
            return batch

        base.__next__ = recorded

        def restore() -> None:
            if base.__next__ is recorded:
                base.__next__ = original

        self._stack.callback(restore)

    def _patch_threads(self, run: _Run) -> None:
        original: Any = getattr(threading.Thread, "_bootstrap_inner", None)
        if original is None:
            return

        def recorded(thread: threading.Thread) -> None:
            target = getattr(getattr(thread, "_target", None), "__module__", "") or ""
            if self._run is not run or target.startswith("torch.utils.data"):
                original(thread)
                return
            stream = _Stream(run, "thread", f"thread {next(run.threads)}")
            mode = self._enter(run, stream)
            try:
                original(thread)
            finally:
                with contextlib.suppress(Exception):
                    mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
                if run.live.pop(id(stream), None) is not None and stream.records:
                    stream.close()

        threading.Thread._bootstrap_inner = recorded  # type: ignore[attr-defined]

        def restore() -> None:
            if threading.Thread._bootstrap_inner is recorded:  # type: ignore[attr-defined]
                threading.Thread._bootstrap_inner = original  # type: ignore[attr-defined]

        self._stack.callback(restore)


def _write_all(owner: weakref.ref[_Run]) -> None:
    """Before a process leaves without its exit handlers."""
    run = owner()
    if run is not None:
        for stream in list(run.live.values()):
            if stream.records:
                stream.close()


def _watch_forks(owner: weakref.ref[_Run]) -> None:
    """Give every forked child its own file: what the parent has not yet written stays the parent's."""

    def before() -> None:
        run = owner()
        if run is not None:
            run.fork_number = next(run.forks)

    def in_child() -> None:
        run = owner()
        if run is None:
            return
        run.order = [*run.order, run.fork_number]
        run.forks = itertools.count(1)
        run.writer = None
        surviving = [stream for stream in run.live.values() if stream.ident == threading.get_ident()]
        run.live.clear()
        for stream in surviving[:1]:
            stream.after_fork()
            run.live[id(stream)] = stream
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(run, lambda _: util.Finalize(None, _write_all, args=(owner,), exitpriority=0))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_child=in_child)
