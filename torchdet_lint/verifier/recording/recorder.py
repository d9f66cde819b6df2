"""A program as it runs -> a trace of every op: place, digests of what it wrote, of what it read, and of what came
from outside.

`Recorder` is a context manager for this process; `child.py` enters one for a whole program. It changes no result: it
draws no random number, touches no autograd state, and leaves `torch.compile` alone (what runs inside a compiled
region is seen only where it calls an op of torch). One stream of records for each thread, one file for each process:
forked ones go on recording, and those that a program starts afresh begin by themselves (`onset.py`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.ops.dispatch import OpMode, direct
from torchdet_lint.verifier.patching.frames import runs_users, starter
from torchdet_lint.verifier.recording.dispatcher import dispatcher
from torchdet_lint.verifier.recording.forks import watch_forks, write_all
from torchdet_lint.verifier.recording.lines import Classifier
from torchdet_lint.verifier.recording.lockstep.joining import Lockstep
from torchdet_lint.verifier.recording.streams import TASK_TAKERS, Run, Stream
from torchdet_lint.verifier.recording.watching import closeup as closeups
from torchdet_lint.verifier.recording.watching import progress, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType


_COMPILER = str(Path(torch.__file__).parent / "_inductor") + os.sep
"""Where torch.compile starts threads, in those runs in which it finds nothing compiled before: none runs the program's
code.
"""


_LOADER = str(Path(torch.utils.data.__file__).parent) + os.sep
"""Where a DataLoader starts the threads that feed its queues: with places in the main process, with batches that are
done in a worker.
"""


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

    `closeup` names ops to look at and to end after; `lockstep` is the file of values of runs that go in lockstep. With
    a `label` this is a process below the one that writes `path`: it is called so, and has a file of its own until
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
        closeup: dict[str, Any] | None = None,
        lockstep: str = "",
    ) -> None:
        self.path = Path(path)
        self._label = label
        self._closeup = closeup
        self._values = lockstep
        self._lockstep: Lockstep | None = None
        self._roots = tuple(roots)
        self._about = about or {}
        self._starts = starts or {}
        self._run: Run | None = None
        self.failure = ""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Recorder:
        roots = self._roots or (Path.cwd(), Path(sys._getframe(1).f_code.co_filename).parent)
        classifier = Classifier(roots, str(Path(torch.__file__).parent))
        self._run = run = Run(self.path, classifier, self._about, self._starts, self._label)
        self._lockstep = Lockstep(Path(self._values)) if self._values else None
        self._mode = self._enter(run, Stream(run, "process" if self._label else "main", "main"))
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
            self._mode.__exit__(None, None, None)
        self._stack.close()
        for stream in list(run.live.values()):
            if stream.records or not self._label:
                stream.close()
        if run.writer is not None:
            self.failure = run.writer.failure
            run.writer.close()
        run.live.clear()
        run.loans.clear()

    def begin_python_at(self, digest: int) -> None:
        """Take this as the state in which the program found `random`'s generator."""
        if self._run is not None:
            self._run.starts = (digest, *self._run.starts[1:])

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
            write_all(weakref.ref(self._run))

    def _enter(self, run: Run, stream: Stream) -> OpMode:
        run.live[id(stream)] = stream
        if stream.kind == "main":
            stream.flush()
        dispatch = dispatcher(run, stream)
        if self._closeup:
            dispatch = closeups.watching(self._closeup, run, stream, dispatch)
        if self._lockstep is not None:
            dispatch = self._lockstep.join(run, stream, dispatch)
        mode = stream.mode = direct(dispatch)
        _keep_compiler_out(dispatch)
        mode.__enter__()
        return mode

    def _patch(self, run: Run) -> None:
        owner = weakref.ref(run)
        watch_forks(owner)
        exit_now = os._exit

        @functools.wraps(exit_now)
        def exit_after_writing(status: int) -> None:
            with contextlib.suppress(Exception):
                write_all(owner)
            exit_now(status)

        os._exit = exit_after_writing  # type: ignore[assignment]
        self._stack.callback(lambda: setattr(os, "_exit", exit_now) if os._exit is exit_after_writing else None)
        self._patch_threads(run)
        self._patch_loaders(run)
        progress.watch(run, self._stack, _keep_compiler_out)

    def _patch_loaders(self, run: Run) -> None:
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

    def _patch_threads(self, run: Run) -> None:
        original: Any = getattr(threading.Thread, "_bootstrap_inner", None)
        if original is None:
            return

        def recorded(thread: threading.Thread) -> None:
            target = getattr(getattr(thread, "_target", None) or type(thread), "__module__", "") or ""
            if self._run is not run or target.startswith("torch.utils.data"):
                original(thread)
                return
            role = "worker" if target.startswith(TASK_TAKERS) else "thread"
            users = runs_users(thread)
            run.alone &= (role == "thread" and not users) or starter(thread).startswith((_COMPILER, _LOADER))
            if not run.starts_threads and users:
                run.starts_threads = True
                self._note({"threads": "the program starts threads"})
            stream = Stream(run, "thread", run.thread_name(tasks.of_thread(thread)), role)
            mode = self._enter(run, stream)
            try:
                original(thread)
            finally:
                with contextlib.suppress(Exception):
                    mode.__exit__(None, None, None)
                if run.live.pop(id(stream), None) is not None and stream.records:
                    stream.close()

        threading.Thread._bootstrap_inner = recorded  # type: ignore[attr-defined]

        def restore() -> None:
            if threading.Thread._bootstrap_inner is recorded:  # type: ignore[attr-defined]
                threading.Thread._bootstrap_inner = original  # type: ignore[attr-defined]

        self._stack.callback(restore)
