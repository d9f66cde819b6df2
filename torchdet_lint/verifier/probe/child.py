"""A task -> the answer of a measuring process, which is ended where it dies, takes too long or too much memory."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.catalogue.measured import Machine
from torchdet_lint.verifier.probe.batches import Batch

if TYPE_CHECKING:
    from torchdet_lint.verifier.probe.batches import Task

WORKER = "torchdet_lint.verifier.probe.measuring.worker"
START_TIMEOUT = 180.0
_POLL = 0.05
_SLEEPING = {"OMP_WAIT_POLICY": "passive"}
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class ChildError(Exception):
    """A measuring process that does not start; the text is one line."""


class AbsentError(ChildError):
    """Torch sees no such device here."""


class _EndedError(Exception):
    """The process ended, or was ended; carries the batch that says so."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch.note)
        self.batch = batch


class Child:
    """A process that measures. `machine` is what it says that it runs on. It ends with its `with`."""

    def __init__(self, device: str, *, threads: int = 0, memory: int, spins: bool = True) -> None:
        """Start it. `device` may be empty: the one that a program would train on. With `spins` threads of the CPU wait
        for each other as the OpenMP runtime likes best, which is by spinning; else they sleep. Raises `ChildError`.
        """
        self.memory = memory
        self.alive = True
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._words = ""
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        command = [sys.executable, "-m", WORKER, device, str(threads), str(memory)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**({} if spins else _SLEEPING), **os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
                start_new_session=True,
            )
        except OSError as error:
            raise ChildError(f"{sys.executable}: cannot be started: {error.strerror}") from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            hello = self._line(START_TIMEOUT)
        except _EndedError as end:
            raise ChildError(f"the measuring process {end.batch.note}: {self._last_words()}") from end
        except BaseException:
            self.close()
            raise
        if hello == b"null":
            self.close()
            raise AbsentError(f"torch sees no {device} device here")
        self.machine = msgspec.json.decode(hello, type=Machine)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, task: Task, timeout: float) -> Batch:
        """What comes of a task; after a batch that ends with the process, `alive` is False."""
        assert self._process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(msgspec.json.encode(task) + b"\n")
                self._process.stdin.flush()
            return msgspec.json.decode(self._line(timeout), type=Batch)
        except _EndedError as end:
            return end.batch

    def close(self) -> None:
        """End the process and all that it started; once is enough."""
        if self._errors.closed:
            return
        self.alive = False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()

    def _line(self, timeout: float) -> bytes:
        end = time.monotonic() + timeout
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._answers.get(timeout=_POLL)
                if line:
                    return line.rstrip(b"\n")
                raise self._end(Batch(ending="crashes", note=self._ending()))
            if time.monotonic() > end:
                raise self._end(Batch(ending="hangs", note=f"gave no answer in {timeout:.0f} s"))
            if (taken := _resident(self._process.pid)) > self.memory:
                note = f"took {taken / 2**30:.1f} GiB, more than the limit of {self.memory / 2**30:.1f} GiB"
                raise self._end(Batch(ending="out of memory", note=note))

    def _read(self) -> None:
        """Hand on the lines of the process, and an empty one at its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _end(self, batch: Batch) -> _EndedError:
        self._words = self._last_words()
        self.close()
        return _EndedError(batch)

    def _ending(self) -> str:
        code = self._process.wait()
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-code).name}"
        return f"left with exit status {code}"

    def _last_words(self) -> str:
        if self._errors.closed:
            return self._words
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _resident(pid: int) -> int:
    """The memory that a process holds, in bytes; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0
