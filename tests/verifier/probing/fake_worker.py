"""A measuring process without torch, which starts at once; by its name an op is equal, crashes, hangs or grows."""

from __future__ import annotations

import os
import signal
import sys
import time

import msgspec

from torchdet_lint.catalogue.measured import Machine
from torchdet_lint.verifier.probe.batches import Batch, Task


def answer(task: Task) -> Batch:
    if "segfault" in task.program.call:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "leaves" in task.program.call:
        os._exit(7)
    if "hangs" in task.program.call:
        time.sleep(1000)
    if "grows" in task.program.call:
        held = []
        while True:
            held.append(b"x" * (16 << 20))
    return Batch(ending="ran", digests=(("plain", "a", task.runs),), inputs="i", seconds=1e-6)


machine = Machine(device="cpu", name="fake", torch="2.13.0", threads=1, platform="Linux", python="3.11")
sys.stdout.buffer.write(msgspec.json.encode(machine) + b"\n")
sys.stdout.flush()
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(msgspec.json.encode(answer(msgspec.json.decode(line, type=Task))) + b"\n")
    sys.stdout.flush()
