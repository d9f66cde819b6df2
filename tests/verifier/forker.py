"""Started by `forking.py`: imports torch, and forks for each run that it is told of, on the socket that it is given."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import socket
import sys
import threading
import time
import traceback
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from torchdet_lint.verifier.launch import launch
from torchdet_lint.verifier.launch.start import start_safely
from torchdet_lint.verifier.patching.inheritance import BOOTSTRAP

_STREAMS = 3


def serve(orders: socket.socket) -> None:
    """Fork for each order, and answer with the number of the process, once it is not below this one any more."""
    orders.send(b"!")
    while True:
        asked, descriptors, *_ = socket.recv_fds(orders, 1, 1 + _STREAMS)
        if not asked:
            return
        read, write = os.pipe()
        if not (between := os.fork()):
            between = os.getpid()
            if pid := os.fork():
                os.write(write, str(pid).encode())
                os._exit(0)
            # A program is ended with the process above it.
            while os.getppid() == between:
                time.sleep(0.001)
            leave = os._exit
            try:
                status = become(*descriptors)
            except BaseException:
                traceback.print_exc()
                status = 1
            leave(status & 255)
        os.waitpid(between, 0)
        orders.send(os.read(read, 20))
        for descriptor in (*descriptors, read, write):
            os.close(descriptor)


def become(order: int, *streams: int) -> int:
    """In the fork: what a new process is given, then `child.py`, then what Python does at the end."""
    asked = json.loads(os.pread(order, os.fstat(order).st_size, 0))
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(_STREAMS, 256)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [str(launch.CHILD.parent), *(entry for entry in entries if entry != str(BOOTSTRAP)), *sys.path]
    sys.argv[:] = asked["arguments"]
    random.seed()
    np.random.seed()
    torch.default_generator.seed()
    if str(BOOTSTRAP) in entries:
        start_safely()
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = sys.argv[0]
    status = 0
    try:
        exec(compile(launch.CHILD.read_bytes(), sys.argv[0], "exec"), module.__dict__)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else error.code is not None
        if status and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
    except BaseException as error:
        status = 1
        sys.excepthook(type(error), error, error.__traceback__.tb_next)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return status


# What a recording and a first step of an optimizer import.
for name in ("torch._dynamo", "torchdet_lint.verifier.recording.recorder"):
    importlib.import_module(name)
del sys.path[:2]
gc.freeze()
serve(socket.socket(fileno=int(sys.argv[1])))
