"""The runs of a verification as forks of a process that has torch, where no fresh process is what a test is of.

Importing torch is what a small program costs. A fork has a process of its own all the same, with the environment, the
streams and the generators of a new one, and goes through `child.py`. What it shares with the others is what a process
gets as it starts: the hash seed, the places of objects in memory, and what is set before torch is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from torchdet_lint.verifier.launch import launch

SERVER = Path(__file__).with_name("forker.py")


class Forked:
    """A fork of the forker's, adopted by this process, as much as `launch` needs of a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = os.pidfd_open(pid)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("fork", timeout or 0)
            os.close(self._ended)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)


class Forker:
    """The process that has imported torch, and forks."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with theirs:
            command = [sys.executable, str(SERVER), str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
        assert self._socket.recv(1), "the forker did not start"

    def start(self, command, program, environment, stdin, stdout, stderr):
        """As `launch._start`."""
        assert command[0] == sys.executable
        assert not program.flags
        order = {
            "arguments": command[command.index(str(launch.CHILD)) :],
            "directory": program.directory or str(Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
        }
        with tempfile.TemporaryFile() as file, Path(os.devnull).open("rb") as nothing:
            file.write(json.dumps(order).encode())
            file.flush()
            streams = []
            for number, stream in enumerate((stdin, stdout, stderr)):
                own = nothing if stream == subprocess.DEVNULL else number if stream is None else stream
                streams.append(own if isinstance(own, int) else own.fileno())
            socket.send_fds(self._socket, [b"!"], [file.fileno(), *streams])
            return Forked(int(self._socket.recv(20)))

    def end(self) -> None:
        self._socket.close()
        self._process.wait()
