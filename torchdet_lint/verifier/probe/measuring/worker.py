"""Tasks, read line by line -> batches; first of all, what machine this is. The program of a measuring process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import msgspec
import torch

from torchdet_lint.verifier.probe.batches import Task
from torchdet_lint.verifier.probe.measuring import machine
from torchdet_lint.verifier.probe.measuring.measure import measure

_PARENT_DEATH_SIGNAL = 1


def main(device: str, threads: int, memory: int) -> int:
    """Answer tasks until standard input ends. `memory` is in bytes; what torch takes of a GPU is held to it."""
    _die_with_parent()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if threads:
        torch.set_num_threads(threads)
    chosen = device or machine.default_device()
    if not machine.available(chosen):
        answers.write(b"null\n")
        return 1
    if chosen == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total))
    answers.write(msgspec.json.encode(machine.describe(chosen)) + b"\n")
    for line in sys.stdin.buffer:
        answers.write(msgspec.json.encode(measure(msgspec.json.decode(line, type=Task))) + b"\n")
    return 0


def _die_with_parent() -> None:
    """A process whose op never returns must not outlive the command that started it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
