"""`kill.py --kills 200`: runs that write are killed at random moments, and nothing may come of it.

`--fix`, a run that fills the cache, and both in two processes are killed by SIGKILL, SIGTERM, SIGHUP and SIGINT in
turn, half of them while they write. After each kill every source is whole, the old or the new one, and no process of
the run is left. The next run ends as if nothing had happened: the same files, the same report from the cache as
without one, and no temporary file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from torchdet_lint.cli.main import main as command

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILES = 24
# The time that a run takes is guessed anew after each: longer where it was killed, shorter where it had ended.
_LONGER, _SHORTER = 1.05, 0.9
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_KINDS = {
    "--fix": (".", "--fix", "--unsafe-fixes", "--no-cache", "-q"),
    "cache": (".", "-q"),
    "--fix --jobs 2": (".", "--fix", "--unsafe-fixes", "--jobs", "2", "-q"),
    "cache --jobs 2": (".", "--jobs", "2", "-q"),
}
_FAULTY = """\
import torch
from torch.utils.data import DataLoader

torch.backends.cudnn.benchmark = True


def load{i}(data):
    return DataLoader(data, shuffle=True)
"""


class Kill(NamedTuple):
    """What was killed, whether it still ran, what it had left, and what did not hold afterwards (empty: all did)."""

    kind: str
    running: bool
    left: int
    fault: str


class Project:
    """A folder of sources, what they are before and after `--fix`, and what a run reports of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pyproject.toml").write_text("[tool.torchdet-lint]\n")
        for number in range(_FILES):
            (folder / f"load{number}.py").write_text(_FAULTY.replace("{i}", str(number)))
        self.old = self.sources()
        with contextlib.redirect_stdout(io.StringIO()):  # what is imported here, no child has to import
            command([str(folder), "--fix", "--unsafe-fixes", "-q", "--jobs", "1"])
        self.reset()
        self.report = self.run("--no-cache")
        self.seconds = {}
        for kind, arguments in _KINDS.items():
            self.reset()
            began = time.monotonic()
            os.waitpid(self.start(arguments), 0)
            self.seconds[kind] = time.monotonic() - began
            if kind == "--fix":
                self.new = self.sources()
                self.fixed_report = self.run("--no-cache")
        assert self.new.keys() == self.old.keys()
        assert all(self.new[name] != self.old[name] for name in self.old)

    def sources(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.folder.glob("*.py"))}

    def reset(self) -> None:
        """Everything as before the first run."""
        for name, data in self.old.items():
            (self.folder / name).write_bytes(data)
        shutil.rmtree(self.folder / ".torchdet_cache", ignore_errors=True)

    def start(self, arguments: Sequence[str], output: int = -1) -> int:
        """Run the command line in a child with a session of its own, which has everything imported; its number."""
        child = os.fork()
        if child == 0:
            status = 99
            with contextlib.suppress(BaseException):
                os.setsid()
                for number in (1, 2):
                    os.dup2(output if output >= 0 else os.open(os.devnull, os.O_WRONLY), number)
                os.chdir(self.folder)
                status = command(list(arguments))
            os._exit(status)
        return child

    def run(self, *arguments: str) -> bytes:
        """The report of a run, as JSON."""
        with tempfile.TemporaryFile() as out:
            os.waitpid(self.start([".", "--output-format", "json", *arguments], out.fileno()), 0)
            out.seek(0)
            return out.read()

    def temporary(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix in (".part", ".torchdet-tmp"))


def kill(project: Project, kind: str, sent: signal.Signals, moment: float) -> Kill:
    """Kill one run after `moment` of its usual time, and look at what is there, then and after the next run."""
    project.reset()
    child = project.start(_KINDS[kind])
    time.sleep(moment * project.seconds[kind])
    os.kill(child, sent)
    _, status = os.waitpid(child, 0)
    left = len(project.temporary())
    return Kill(kind, os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 130, left, _fault(project, kind, child))


def _fault(project: Project, kind: str, session: int) -> str:
    for name, data in project.sources().items():
        if data not in (project.old[name], project.new[name]):
            return f"{name} is damaged"
    until = time.monotonic() + 20
    while alive := _of_session(session):
        if time.monotonic() > until:
            return f"processes are left: {alive}"
        time.sleep(0.05)
    _, status = os.waitpid(project.start(_KINDS[kind]), 0)
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) not in (0, 1):
        return f"the next run ends with {status}"
    expected = project.new if "--fix" in kind else project.old
    if project.sources() != expected:
        return "the next run leaves other sources"
    if project.temporary():
        return f"the next run leaves {project.temporary()[0].name}"
    report = project.fixed_report if "--fix" in kind else project.report
    return "" if project.run() == report else "the cache changes what is reported"


def _of_session(session: int) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            if process.pid != os.getpid() and os.getsid(process.pid) == session and process.status() != "zombie":
                found.append(process.pid)
    return found


def campaign(kills: int, seed: int) -> list[Kill]:
    """So many runs that were killed while they ran; runs that had ended already are not counted, but judged."""
    chooser = random.Random(seed)
    found: list[Kill] = []
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        kinds = list(_KINDS)
        while sum(one.running for one in found) < kills and len(found) < 4 * kills:
            kind = kinds[len(found) % len(kinds)]
            sent = _SIGNALS[len(found) // len(kinds) % len(_SIGNALS)]
            moment = chooser.random() if chooser.random() < 0.5 else chooser.uniform(0.7, 1.0)
            found.append(kill(project, kind, sent, moment))
            # What a run took before other work on the machine ended, or began, says little of what it takes now.
            project.seconds[kind] *= _LONGER if found[-1].running else _SHORTER
            if found[-1].fault:
                print(f"{kind}, {sent.name} at {moment:.2f} of the run: {found[-1].fault}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = campaign(given.kills, given.seed)
    for kind, number in Counter(one.kind for one in found if one.running).items():
        print(f"{kind}: {number} killed")
    killed = [one for one in found if one.running]
    print(
        f"{len(killed)} runs killed ({len(found) - len(killed)} had ended); {sum(one.left > 0 for one in killed)} left "
        f"temporary files; {sum(bool(one.fault) for one in found)} faults"
    )
    return int(any(one.fault for one in found) or len(killed) < given.kills)


if __name__ == "__main__":
    sys.exit(main())
