"""What the threads of a process record -> the blocks of its trace file: sites, records, and what they share."""

from __future__ import annotations

import collections
import itertools
import linecache
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.ops.plans import Plan
from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.environment import environment
from torchdet_lint.verifier.recording.generators import python_digest, quick_digests, quick_numpy_digest, torch_digest
from torchdet_lint.verifier.recording.lines import (
    INITIALIZER,
    LIBRARY,
    LOADER,
    OPTIMIZER,
    OWN,
    READER,
    SPLITTER,
    Classifier,
    ForwardLines,
    line_of,
)
from torchdet_lint.verifier.recording.op.loans import Loans

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from torchdet_lint.verifier.recording.op.captured import Captured

_LONGEST = 200
_FUNCTIONS = torch.autograd.function.__file__
TASK_TAKERS = (
    "torch.utils.data", "concurrent.futures", "multiprocessing.pool", "multiprocessing.queues", "joblib", "billiard",
)  # fmt: skip
_PHASES = {OPTIMIZER: "optimizer", LOADER: "data", SPLITTER: "split", INITIALIZER: "init", READER: "load"}


class _Called:
    """Stands for the op where what is recorded is none of torch."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name


class Run:
    """What the threads of one process share: the file, the plans, who wrote which memory, the generators at the
    start.

    `owners` maps the address of a storage to a digest of what was written there, and how: even, or odd while a part
    of it may be memory that nothing has written; what is `filled` C++ has written, though no op did, and what is
    `begun` NumPy, at least in part. Others than torch may write what is `foreign`: NumPy the `loans`, which it was
    handed. `arrivals` maps that of one that came from another process to the site, of the stream that received it. A
    process that is `called` something is `rank` of a process group. It is `alone` until a thread may run code of the
    program's beside it, and has `seeded` torch itself, or not yet. While a CUDA graph is `captured`, ops do not run.
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
        self.opening = threading.Lock()
        self.plans: dict[int, Plan] = {}
        self.others: dict[str, Plan] = {}
        self.captured: Captured | None = None
        self.owners: dict[int, int] = {}
        self.arrivals: dict[int, tuple[Stream, int]] = {}
        self.foreign: set[int] = set()
        self.filled: set[int] = set()
        self.begun: set[int] = set()
        self.loans = Loans(self.owners, self.foreign)
        self.missed: set[str] = set()
        self.order: list[int] = []
        self.forks = itertools.count(1)
        self.threads: collections.Counter[str] = collections.Counter()
        self.starts_threads = False
        self.alone = True
        self.live: dict[int, Stream] = {}
        self.fork_number = 0
        self.rank, self.called = -1, ""
        self.first_seed = torch.initial_seed()
        self.seeded = False
        self.starts = (
            starts.get("python", python_digest()),
            starts["numpy"] if "numpy" in starts else quick_numpy_digest(),
            torch_digest(),
        )
        if not label:
            self.writer = trace.Writer(path)
            self.writer.json(b"H", 0, {**self.about, "order": []})

    def plan(self, function: Any) -> Plan:
        """The plan of an op that is met for the first time."""
        plan = self.plans[id(function)] = Plan(function, len(self.plans))
        return plan

    def plan_named(self, name: str) -> Plan:
        """The plan of what has a record and is no op of torch."""
        return self.others.get(name) or self.others.setdefault(name, self.plan(_Called(name)))

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
        """Keep half of what is known of memory: a digest that is missed is worked out again."""
        for key in list(itertools.islice(self.owners, len(self.owners) // 2)):
            del self.owners[key]

    def open(self) -> trace.Writer:
        """The file of this process; a child's is made when one of its threads first has something to say."""
        with self.opening:
            if self.writer is None:
                writer = trace.Writer(trace.part_of(self.path, os.getpid()))
                writer.json(b"H", 0, {**self.about, "order": self.order, "began": self.began})
                if self.rank >= 0:
                    self._tell_rank(writer)
                self.writer = writer
            return self.writer

    def join(self, rank: int) -> None:
        """This process is a rank of a process group. One that a launcher started is called so already."""
        if not self.label.startswith("rank ") and (self.label or self.order):
            self.rank, self.called = rank, self.process_name()
            if self.writer is not None:
                self._tell_rank(self.writer)

    def _tell_rank(self, writer: trace.Writer) -> None:
        how = f" ({self.label})" if self.label in ("spawn", "forkserver") else ""
        writer.json(b"N", 0, {"rank": f"rank {self.rank}{how}", "called": self.called})

    def process_name(self) -> str:
        """What this process is called in every run: its place in the tree of processes."""
        forks = ".".join(map(str, self.order))
        process = sys.modules.get("multiprocessing.process")
        identity = process.current_process()._identity if process is not None and not forks else ()
        return " ".join(filter(None, (self.label, ":".join(map(str, identity)), forks)))

    def thread_name(self, called: str) -> str:
        """What the stream of a thread is called; of several with one name the later ones get a number."""
        self.threads[called] += 1
        number = self.threads[called]
        return f"thread {called}" if number == 1 else f"thread {called} #{number}"

    def outside(self, value: int) -> tuple[int, tuple[int, ...]]:
        """The flags and extra words of data that came from outside; a generator not used so far has the digest 0."""
        flags, states = trace.OUTSIDE, [value]
        used = (trace.PYTHON_USED, trace.NUMPY_USED, trace.TORCH_USED)
        for flag, now, start in zip(used, quick_digests(), self.starts, strict=True):
            flags |= flag if now != start else 0
            states.append(now if now != start else 0)
        return flags, tuple(states)


class Stream:
    """The records of one thread: their bytes in a buffer, the sites seen, the forward lines of its autograd nodes.
    While it waits for the engine of autograd, `engine` is the frame that called it.
    """

    def __init__(self, run: Run, kind: str, name: str, role: str = "worker") -> None:
        self.run = run
        self.kind = kind
        self.name = name
        self.role = role
        self.buffer = bytearray()
        self.rows: list[trace.Site] = []
        self.sites: dict[tuple[int, int, int], dict[int, int]] = {}
        self.codes: list[Any] = []
        self.adopted: dict[trace.Site, int] = {}
        self.forward = ForwardLines()
        self.number = -1
        self.defined = 0
        self.records = 0
        self.ident = threading.get_ident()
        self.lock = threading.Lock()
        self.marks: list[trace.Mark] = []
        self.batch: Callable[[Any], None] = lambda _: None
        self.handed: Callable[[torch.Tensor, Any], None] = lambda _, __: None
        self.whole: Callable[..., Any] = lambda name, inputs, function, outputs: function()
        self.engine: FrameType | None = None
        self.mode: object = None
        self.folded: Callable[..., Any] = lambda name, given, function, **_: function()
        self.unseen: Callable[[Plan, Any, Any], Any] = lambda plan, args, kwargs: plan.call(*args, **kwargs)

    def after_fork(self) -> None:
        """In the child: drop what the parent has still to write, and begin a stream of its own."""
        self.buffer.clear()
        self.marks.clear()
        self.number, self.defined, self.records = -1, 0, 0
        self.kind = "process"
        self.lock = threading.Lock()

    def site(self, plan: Plan, frame: FrameType | None, forward: int, room: int, backward: bool) -> int:
        """A new site, of the op of `plan` where `frame` is now."""
        code = frame.f_code if frame is not None else None
        self.codes.append(code)
        file = self.run.classifier.shown(code.co_filename) if code is not None else ""
        line = line_of(code, frame.f_lasti) if frame is not None and code is not None else 0
        function = getattr(code, "co_qualname", code.co_name) if code is not None else ""
        phase = _PHASES.get(room, "forward")
        origin = self.rows[forward] if 0 <= forward < len(self.rows) else None
        row = trace.Site(plan.name, "backward" if backward else phase, file, line, function)
        if code is not None:
            row = row._replace(text=_source(code.co_filename, line))
        if origin is not None and backward and not _in_own_backward(frame):
            row = row._replace(forward_op=origin.op, forward_file=origin.file, forward_line=origin.line)
        self.rows.append(row)
        return len(self.rows) - 1

    def adopt(self, other: Stream, number: int) -> int:
        """The number that a site of `other`, which may be another thread's, has in this stream."""
        if other is self:
            return number
        row = other.rows[number]
        if row not in self.adopted:
            self.rows.append(row)
            self.adopted[row] = len(self.rows) - 1
        return self.adopted[row]

    def flush(self) -> None:
        """Write what is in the buffer."""
        with self.lock:
            records = bytes(self.buffer)
            del self.buffer[: len(records)]
            marks, self.marks[:] = self.marks[:], []
            if not records and not marks and self.number >= 0:
                return
            writer = self.run.open()
            if self.number < 0 and self.kind == "process":
                self.number = writer.stream(self.kind, self.run.process_name(), role=_role())
            elif self.number < 0:
                self.number = writer.stream(self.kind, self.name, role=self.role)
            if self.defined < len(self.rows):
                writer.json(b"D", self.number, self.rows[self.defined :])
                self.defined = len(self.rows)
            if records:
                writer.block(b"R", self.number, records)
            if marks:
                writer.json(b"T", self.number, marks)

    def mark(self, kind: str, number: int, value: float = 0.0, name: str = "") -> None:
        """Note something of the program's progress."""
        self.marks.append(trace.Mark(self.records, kind, number, value, name))

    def mark_task(self, begin: int, name: str) -> None:
        """Note that the task `name` made the records from `begin` on."""
        last = self.marks[-1] if self.marks else None
        if last is not None and (last.kind, last.name, last.at + last.number) == ("task", name, begin):
            begin = self.marks.pop().at
        self.marks.append(trace.Mark(begin, "task", self.records - begin, 0.0, name))

    def close(self) -> None:
        """Write the rest, and the mark of a stream that ended in order."""
        self.flush()
        states = {"generators": self.run.outside(0)[1][1:]} if self.kind == "main" else {}
        self.run.open().json(b"F", self.number, {"records": self.records, **states})


def _in_own_backward(frame: FrameType | None) -> bool:
    """Whether the engine called Python for this op: a `torch.autograd.Function` of the program's, whose own lines in
    `backward` say more than the forward op.
    """
    while frame is not None:
        if frame.f_code.co_filename == _FUNCTIONS:
            return True
        frame = frame.f_back
    return False


def _source(file: str, line: int) -> str:
    """A line of source without its indentation; empty where the file cannot be read."""
    try:
        return linecache.getline(file, line).strip()[:_LONGEST]
    except Exception:
        return ""


def _role() -> str:
    """`worker` for a process that takes tasks from a queue, where who does which is the scheduler's choice."""
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return "process"
    process = module.current_process()
    target = str(getattr(getattr(process, "_target", None), "__module__", ""))
    return "worker" if "PoolWorker" in process.name or target.startswith(TASK_TAKERS) else "process"
