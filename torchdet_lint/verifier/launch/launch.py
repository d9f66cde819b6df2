"""A command -> the user's program, run in a fresh interpreter as `python` would run it; no process is left behind.

The child sees the user's arguments, `sys.path[0]`, working folder, `__main__` and standard streams, and its exit
status is the program's. With a trace it is recorded from the moment it imports torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from torchdet_lint.verifier import trace as tracing
from torchdet_lint.verifier.launch import stuck
from torchdet_lint.verifier.launch.processes import (
    GRACE,
    adopting,
    children,
    descendants,
    end_tree,
    fixed_addresses,
    kept,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CHILD = Path(__file__).with_name("child.py")
_LAUNCHERS = (
    (["torchrun"], "torch.distributed.run"),
    (["accelerate", "launch"], "accelerate.commands.launch"),
    (["deepspeed"], "deepspeed.launcher.runner"),
)
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?(\.exe)?")
_FLAG = re.compile(r"-(?:[uBqdvbO]+|[WX].+)")
"""Flags of the interpreter that change neither the path nor what is started."""
_ENDS_EARLY = "the recording ends early"

Stream = int | IO[bytes] | None


class LaunchError(Exception):
    """A program that cannot be started; the text is one line."""


@dataclasses.dataclass(frozen=True)
class Program:
    """What the user runs: a script or notebook file, or a module (`-m`), with its arguments.

    `directory` is the working folder (empty: the present one); `python` the interpreter, `flags` its flags.
    """

    kind: Literal["script", "module", "notebook"]
    target: str
    arguments: tuple[str, ...] = ()
    directory: str = ""
    python: str = sys.executable
    flags: tuple[str, ...] = ()

    @classmethod
    def parse(cls, words: list[str]) -> Program:
        """From the end of a command line: `script.py args…`, `-m module args…`, `notebook.ipynb`, each also after
        `python` with flags, and after `uv run`; `torchrun …` and the like; a command that a package installed. Raises
        `LaunchError`.
        """
        rest = words[1:] if words[:1] == ["--"] else words
        rest, flags = _without_interpreter(rest)
        rest = _as_module(rest)
        return dataclasses.replace(cls._parsed(rest), flags=flags)

    @classmethod
    def _parsed(cls, rest: list[str]) -> Program:
        if rest[:1] == ["-m"]:
            if len(rest) < 2:
                raise LaunchError("-m needs the name of a module")
            return cls("module", rest[1], tuple(rest[2:]))
        if not rest:
            raise LaunchError("which program? give a script, a notebook, or -m and a module")
        path = Path(rest[0])
        if (command := _installed_command(rest[0])) is not None:
            return cls("script", str(command), tuple(rest[1:]))
        if not path.exists():
            raise LaunchError(f"{rest[0]}: no such file")
        return cls("notebook" if path.suffix == ".ipynb" else "script", rest[0], tuple(rest[1:]))

    @property
    def words(self) -> list[str]:
        """The program as the user would write it after `python`."""
        interpreter = ["python", *self.flags] if self.flags else []
        return [*interpreter, *(["-m"] if self.kind == "module" else []), self.target, *self.arguments]


def _without_interpreter(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """What follows `uv run` and `python`, and the flags of the interpreter."""
    rest = words[2:] if words[:2] == ["uv", "run"] else words
    if len(rest) != len(words) and rest and rest[0].startswith("-") and rest[0] != "-m":
        raise LaunchError(f"uv run {rest[0]}: options of uv are not taken; give the script itself")
    if len(rest) < 2 or not _PYTHON.fullmatch(Path(rest[0]).name):
        return rest, ()
    _need_own(rest[0])
    flags: list[str] = []
    rest = rest[1:]
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-"):
        flag = rest[0]
        takes = flag in ("-W", "-X")
        if not (takes or _FLAG.fullmatch(flag)):
            raise LaunchError(f"python {flag}: not a flag that a verified program can be started with")
        flags += rest[: 1 + takes]
        rest = rest[1 + takes :]
    return rest, tuple(flags)


def _as_module(words: list[str]) -> list[str]:
    """A launcher's command as the module that it runs."""
    for launcher, module in _LAUNCHERS:
        if [Path(word).name for word in words[:1]] + words[1 : len(launcher)] == launcher:
            if os.sep in words[0] and Path(words[0]).absolute().parent != Path(sys.executable).absolute().parent:
                raise LaunchError(f"{words[0]} belongs to another interpreter than the one that runs torchdet-lint")
            return ["-m", module, *words[len(launcher) :]]
    return words


def _installed_command(word: str) -> Path | None:
    """The script of Python's that a package installed beside the interpreter under this name, where no file here has
    it: `tune run …`.
    """
    command = Path(sys.executable).parent / word
    if os.sep in word or Path(word).exists() or not command.is_file():
        return None
    with command.open("rb") as opened:
        first = opened.read(2) + opened.readline()
    return command if first.startswith(b"#!") and b"python" in first else None


def starts_ranks(program: Program) -> bool:
    """Whether a program is a launcher, of which every process is a rank."""
    return program.kind == "module" and program.target in {module for _, module in _LAUNCHERS}


def _need_own(word: str) -> None:
    """Raise `LaunchError` for another interpreter than this one, which would be no run of the program's."""
    found = shutil.which(word) if os.sep in word else word
    if os.sep in word:
        same = found is not None and Path(found).absolute().parent == Path(sys.executable).absolute().parent
        same = same or (found is not None and sys.prefix == sys.base_prefix and Path(found).samefile(sys.executable))
    else:
        wanted = Path(word).name.removesuffix(".exe").removeprefix("python")
        same = ".".join(map(str, sys.version_info[:3])).startswith(wanted) if wanted else True
    if not same:
        raise LaunchError(f"{word} is not the interpreter that runs torchdet-lint: use `{word} -m torchdet_lint …`")


@dataclasses.dataclass(frozen=True)
class ChildResult:
    """How a run ended.

    `status` is `finished` (exit status 0), `failed` (another one), `signal` (killed by `signal_name`), `timeout`,
    `early` (ended by us, with all that was asked of it) or `interrupted` (Ctrl-C). `seconds` is wall time,
    `cpu_seconds` what all its processes took of the CPU (0 where the system does not say), `strays` the processes that
    were still there and were ended, `recording` why no trace or an incomplete one was written, `standing` where a
    recorded run stood that did not end, `processes` the numbers of those that were recorded.
    """

    status: Literal["finished", "failed", "signal", "timeout", "early", "interrupted"]
    returncode: int
    seconds: float
    strays: int = 0
    recording: str = ""
    cpu_seconds: float = 0.0
    standing: str = ""
    processes: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether the program itself ended with exit status 0, or had gone far enough."""
        return self.status in ("finished", "early")

    @property
    def signal_name(self) -> str:
        """The signal that ended it, `SIGKILL` say, or an empty text."""
        with contextlib.suppress(ValueError):
            return signal.Signals(-self.returncode).name if self.returncode < 0 else ""
        return f"signal {-self.returncode}"

    def sentence(self, timeout: float | None = None) -> str:
        """How it ended, in a few words."""
        said = {
            "finished": "ended with exit status 0",
            "failed": f"ended with exit status {self.returncode}",
            "signal": f"was ended by {self.signal_name}",
            "timeout": f"did not end within {timeout:g} s" if timeout else "did not end in time",
            "early": "was ended, having gone far enough",
            "interrupted": "was interrupted",
        }[self.status]
        return f"{said}: {self.standing}" if self.standing else said


def run_child(
    program: Program,
    *,
    environment: Mapping[str, str] | None = None,
    trace: Path | None = None,
    timeout: float | None = None,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    about: Mapping[str, Any] | None = None,
    steps: int = 0,
    tick: Callable[[], None] | None = None,
    end_strays: bool = True,
    roots: tuple[str, ...] = (),
    closeup: Mapping[str, Any] | None = None,
    enough: Callable[[], bool] | None = None,
    lockstep: Path | None = None,
    same_addresses: bool = False,
    output: Path | None = None,
) -> ChildResult:
    """Run `program` once and wait for it; record it into `trace` if one is given.

    `environment` is the child's whole environment (default: this process's). Streams are those of `subprocess`; None
    means this process's own. `timeout` is in seconds of wall time; a recorded program is ended in order after `steps`
    steps of an optimizer (0: it is not). `closeup` names ops to look at, after which it is ended. `roots` are further
    folders whose code is the program's. `lockstep` is the file of values that runs in lockstep share. `tick` is called
    about ten times a second, and so is `enough`: the program is ended once that is true.
    `output` is the file of standard output; each recorded process below the program is to print to one of its own. With
    `same_addresses` its memory is at the same addresses in every run, where the system allows that.
    Whatever is left of the program's process tree is ended if `end_strays`. A Ctrl-C reaches the program; if it does
    not end, it is ended, and the status is `interrupted`. Raises `LaunchError` if the interpreter cannot be started.
    """
    control = {
        "kind": program.kind,
        "target": program.target,
        "arguments": program.arguments,
        "trace": str(trace.absolute()) if trace is not None else "",
        "about": {"program": program.words, **(about or {})},
        "steps": steps,
        "roots": roots,
        "limited": timeout is not None,
        **({"closeup": closeup} if closeup is not None else {}),
        **({"lockstep": str(lockstep.absolute())} if lockstep is not None else {}),
        **({"output": str(output.absolute())} if output is not None else {}),
    }
    command = [program.python, *_interpreter_flags(), *program.flags, str(CHILD), json.dumps(control)]
    if trace is not None:
        _clear(trace)
    begin, before = time.monotonic(), _cpu_of_children()
    with adopting() as adopts:
        known = set(children()) if adopts else set()
        with fixed_addresses() if same_addresses else contextlib.nullcontext():
            process = _start(command, program, environment, stdin, stdout, stderr)
        with kept(process.pid, whole=end_strays) as keeper:
            try:
                status, standing = _wait(process, timeout, tick, trace, enough)
            finally:
                strays = end_tree(process, {*known, keeper}, adopts) if end_strays or process.poll() is None else 0
            seconds, cpu = time.monotonic() - begin, _cpu_of_children() - before
    code = process.returncode
    if status == "ended":
        status = "finished" if code == 0 else "signal" if code < 0 else "failed"
    recorded = tracing.parts_of(trace) if trace is not None else []
    processes = frozenset({str(process.pid), *(part.name.split(".")[-2] for part in recorded)})
    recording = _finish(trace) if trace is not None else ""
    if status == "early":
        strays, recording = 0, recording.replace(_ENDS_EARLY, "")
    return ChildResult(status, code, seconds, strays, recording, cpu, standing, processes)  # type: ignore[arg-type]


def _cpu_of_children() -> float:
    if sys.platform == "win32":
        return 0.0
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _start(
    command: list[str],
    program: Program,
    environment: Mapping[str, str] | None,
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            env=dict(environment) if environment is not None else None,
            cwd=program.directory or None,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    except OSError as error:
        raise LaunchError(f"{program.python}: cannot be started: {error.strerror}") from error


def _interpreter_flags() -> list[str]:
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    return [flag for flag in flags if not flag.startswith(("-I", "-E", "-s", "-P"))]


def _wait(
    process: subprocess.Popen[bytes],
    timeout: float | None,
    tick: Callable[[], None] | None,
    trace: Path | None,
    enough: Callable[[], bool] | None,
) -> tuple[str, str]:
    """How it ended, and where it stood if it had to be ended."""
    end = time.monotonic() + timeout if timeout else None
    while True:
        try:
            process.wait(0.1)
            return "ended", ""
        except subprocess.TimeoutExpired:
            if tick is not None:
                tick()
            if enough is not None and enough() and process.poll() is None:
                _stop(process, signal.SIGTERM)
                return "early", ""
        except KeyboardInterrupt:
            _stop(process, signal.SIGINT)
            return "interrupted", ""
        if end is not None and time.monotonic() > end:
            below = descendants(process.pid)[1:]
            standing = stuck.ask(trace.absolute(), process.pid, below) if trace is not None else ""
            _stop(process, signal.SIGTERM)
            return "timeout", standing


def _stop(process: subprocess.Popen[bytes], first: signal.Signals) -> None:
    """Ask, wait, then end. A second Ctrl-C ends at once. The terminal's own Ctrl-C has already reached the program."""
    try:
        if first != signal.SIGINT or not _on_terminal():
            process.send_signal(first)
        process.wait(GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def _on_terminal() -> bool:
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    os.close(descriptor)
    return True


def _clear(trace: Path) -> None:
    for path in (trace.with_name(trace.name + ".error"), *tracing.parts_of(trace)):
        path.unlink(missing_ok=True)
    stuck.clear(trace)
    if trace.is_file():
        trace.unlink()


def _finish(trace: Path) -> str:
    """Put the streams of the children into the trace; returns why there is none, or not a whole one."""
    stuck.clear(trace)
    error = trace.with_name(trace.name + ".error")
    if error.exists():
        text = error.read_text(encoding="utf-8").strip()
        error.unlink()
        return text or _ENDS_EARLY
    try:
        tracing.gather(trace)
        if not trace.exists():
            return "the program did not import torch"
        opened = tracing.Trace(trace)
    except (tracing.TraceError, OSError) as failure:
        return str(failure)
    return "" if opened.main.complete else _ENDS_EARLY
