"""Runs programs, each in a fork of one process that has imported torch: `zygote.py output-folder program[@CODE]...`.

Importing torch is what a small program costs; the isolation of a process of its own stays. `@CODE` applies the fix of
that rule in the fork first. Each program's standard output goes to a file, with its exit status on the last line.
"""

import importlib
import os
import runpy
import sys
import traceback
from pathlib import Path

import numpy.random  # noqa: F401
import torch  # noqa: F401

sys.path.append(str(Path(__file__).parents[2]))

from torchdet_lint.verifier.remedies import fixes


def run(output: Path, program: Path, code: str) -> None:
    file = output / (f"{program.stem}@{code}" if code else program.stem)
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        with file.open("a") as stream:
            stream.write(f"exit {os.waitstatus_to_exitcode(status)}\n")
        return
    status = 1
    try:
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        sys.argv[:] = [str(program)]
        sys.path[0] = str(program.parent)
        if code:
            fixes.install((code,))
        runpy.run_path(str(program), run_name="__main__")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if len(sys.argv) > 20:
    # What an optimizer and the deterministic mode import, once for all of them.
    for name in ("torch._dynamo", "torch._inductor.config"):
        importlib.import_module(name)

for argument in sys.argv[2:]:
    path, _, rule = argument.partition("@")
    run(Path(sys.argv[1]), Path(path), rule)
