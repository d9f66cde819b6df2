"""A process -> a recorded one, once it has imported torch, and not before.

The program itself is told by `child.py`, a Python process that it starts (multiprocessing, subprocess) by the
environment. Nothing is imported here that a program could have wanted to configure first.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import sys
import threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching import outputs, reach
from torchdet_lint.verifier.patching.events import ENTROPY, Reporter
from torchdet_lint.verifier.patching.frames import is_users
from torchdet_lint.verifier.patching.inheritance import EVENTS, RECORD, with_bootstrap
from torchdet_lint.verifier.patching.patches import Patches, after_import
from torchdet_lint.verifier.recording import draws
from torchdet_lint.verifier.recording.watching import stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from torchdet_lint.verifier.recording.recorder import Recorder


def begin(order: Mapping[str, Any], *, started: bool = False) -> None:
    """Record this process from the import of torch on.

    `order` says where to (`trace`), whose code is the program's (`roots`), what goes into the header (`about`) and
    after how many optimizer steps to end (`steps`); the processes below the program print to files beside its own, if
    that is the file `output`; with `limited` the process says where it stands when it is asked.
    The program itself goes in `lockstep` with the run that made the file of that name, or makes it. `started` is a
    process that the program started.
    """
    starts: dict[str, int] = {"python": _python_digest()}
    numpy_state: list[dict[str, Any]] = []
    patches = Patches()
    if order.get("output"):
        outputs.watch(order["output"], _label() if started else "")
    if order.get("limited"):
        stacks.arm(order["trace"])
    reporter = Reporter(os.environ.get(EVENTS, ""))
    reach.watch(patches, reporter)
    if reporter.path:
        draws.watch_entropy(patches, functools.partial(reporter.report, ENTROPY, ""))
    recorders: list[Recorder] = []

    def drawn(digest: int) -> None:
        starts["python"] = digest
        for one in recorders:
            one.begin_python_at(digest)

    _watch_imports(patches, starts, drawn)

    def torch_begins(_: object) -> None:
        from torchdet_lint.verifier.recording import generators, recorder
        from torchdet_lint.verifier.trace import TraceError

        if numpy_state:
            starts["numpy"] = generators.quick_state_digest(numpy_state[0])
        roots = [*order["roots"], *(_own_folder() if started else ())]
        try:
            one = recorder.Recorder(
                order["trace"],
                roots=roots,
                about=order["about"],
                starts=starts,
                label=_label() if started else "",
                closeup=order.get("closeup"),
                lockstep="" if started else order.get("lockstep", ""),
            ).__enter__()
        except TraceError as error:
            _say(order["trace"], str(error))
            return
        recorders.append(one)
        atexit.register(_end, one, os.getpid())
        if order.get("steps"):
            one.end_after(int(order["steps"]))

    after_import(patches, "numpy.random", lambda module: numpy_state.append(module.get_state(legacy=False)))
    after_import(patches, "torch", torch_begins)


def _python_digest() -> int:
    """As `generators.python_digest`, before torch is there."""
    return hash(random.getstate()[1]) & (1 << 64) - 1


def _watch_imports(patches: Patches, starts: Mapping[str, int], drawn: Callable[[int], object]) -> None:
    """Call `drawn` with the digest of Python's generator where the body of a library's module, `rich.style` say, is the
    first to draw from it: no value of the program's comes of that.
    """
    execute = SourceFileLoader.exec_module
    busy = threading.local()

    @functools.wraps(execute)
    def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
        if getattr(busy, "inside", False) or is_users(loader.path):
            execute(loader, module)
            return
        busy.inside, before = True, _python_digest()
        try:
            execute(loader, module)
        finally:
            busy.inside = False
            if before == starts["python"] and (now := _python_digest()) != before:
                drawn(now)

    patches.set(SourceFileLoader, "exec_module", exec_module)


def begin_below(order: Mapping[str, Any]) -> None:
    """Have the Python processes that this one starts recorded too."""
    os.environ.update(with_bootstrap({RECORD: json.dumps(order, separators=(",", ":"))}))


def from_environment() -> None:
    """Record this process if the one that started it is."""
    try:
        order = json.loads(os.environ[RECORD])
        begin(order, started=True)
    except (KeyError, ValueError, TypeError) as error:
        print(f"torchdet-lint: {RECORD} cannot be read ({error}); this process is not recorded", file=sys.stderr)


def _own_folder() -> list[str]:
    script = Path(sys.argv[0]) if getattr(sys, "argv", None) and sys.argv[0] not in ("", "-c", "-m") else None
    return [str(script.resolve().parent)] if script is not None and script.is_file() else []


def _label() -> str:
    """What this process is, the same in every run: its place among multiprocessing's, else its command line; before
    that its rank, where a launcher has given it one."""
    words = getattr(sys, "orig_argv", sys.argv)[1:]
    rank = os.environ.get("RANK", "")
    ranked = rank.isdigit() and "WORLD_SIZE" in os.environ
    for kind in ("spawn", "forkserver"):
        if any(f"from multiprocessing.{kind}" in word for word in words):
            return f"rank {rank} {kind}" if ranked else kind
    if ranked and words[:1] == ["-u"]:
        words = words[1:]
    command = " ".join(map(_without_folder, words))[:200] or "python"
    return f"rank {rank} of {command}" if ranked else command


def _without_folder(word: str) -> str:
    """A word of a command line, a path without its folder, which may be another in each run; an address stays whole."""
    scheme, mark, _ = word.partition("://")
    return Path(word).name if os.sep in word and (not mark or scheme.endswith("file")) else word


def _end(one: Recorder, pid: int) -> None:
    if os.getpid() != pid:
        one.write()
        return
    one.close()
    if one.failure:
        _say(str(one.path), f"{one.path}: the trace could not be written: {one.failure}")


def _say(trace: str, text: str) -> None:
    try:
        with Path(trace + ".error").open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError:
        os.write(2, f"torchdet-lint: {text}\n".encode())
