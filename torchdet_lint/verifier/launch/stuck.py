"""A run that does not end -> where its processes stand: which rank hangs, and what the others wait for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

from torchdet_lint.verifier.recording.watching.stacks import SIGNAL, SUFFIX, file_of

_PATIENCE = 2.0
"""Seconds in which a process has to answer."""
_THREAD = re.compile(r"(?:Current thread|Thread) 0x(?P<ident>[0-9a-f]+)")
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')
_LIBRARIES = ("site-packages", "dist-packages")
_WAITING = ("/torch/distributed/", "/torch/nn/parallel/distributed.py")
_LOGGER = "/torch/distributed/c10d_logger.py"
_ENGINE = "/torch/autograd/"


class Standing(NamedTuple):
    """Where a process stands: its line of the program (`file:line`, or empty), and what of torch's that waits for other
    ranks it is in (`all_reduce`, `backward`), if anything. `rank` is -1 where it is none; `main` is the program itself.
    """

    place: str
    waits: str = ""
    rank: int = -1
    world: int = 0
    main: bool = False


def ask(trace: Path, pid: int, below: list[int]) -> str:
    """Have the process `pid` of a run and those `below` it say where they stand; a few words, or none where they do
    not answer.
    """
    files = {one: Path(file_of(str(trace), one)) for one in (pid, *below)}
    files = {one: path for one, path in files.items() if path.exists()}
    sizes = {path: path.stat().st_size for path in files.values()}
    for one in files:
        with contextlib.suppress(OSError):
            os.kill(one, SIGNAL)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and any(path.stat().st_size == size for path, size in sizes.items()):
        time.sleep(0.02)
    time.sleep(0.1)
    found = [standing(path.read_text(encoding="utf-8", errors="replace"), one == pid) for one, path in files.items()]
    return sentence([one for one in found if one is not None])


def clear(trace: Path) -> None:
    """Remove what the processes of a run have written."""
    for path in trace.parent.glob(f"{trace.name}.*{SUFFIX}"):
        path.unlink(missing_ok=True)


def standing(text: str, main: bool) -> Standing | None:
    """Where a process stands, by the last answer that it wrote; None where it did not answer."""
    about: dict[str, int] = {}
    frames: list[tuple[str, str, str]] = []
    here = answered = False
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                about.update(json.loads(line))
        elif thread := _THREAD.match(line):
            here = int(thread["ident"], 16) == about.get("main")
            if here:
                answered, frames = True, []
        elif here and (frame := _FRAME.match(line)):
            frames.append((frame["file"], frame["line"], frame["function"]))
    if not answered:
        return None
    own = next((number for number, (file, _, _) in enumerate(frames) if _is_own(file)), len(frames))
    place = f"{frames[own][0]}:{frames[own][1]}" if own < len(frames) else ""
    return Standing(place, _waits(frames[:own]), about.get("rank", -1), about.get("world", 0), main)


def _is_own(file: str) -> bool:
    """Whether a file is the program's, and none of a library or of this package."""
    if file.startswith("<") or any(name in Path(file).parts for name in _LIBRARIES):
        return False
    folders = (sysconfig.get_path("stdlib"), str(Path(__file__).parents[2]))
    return not any(file.startswith(folder + os.sep) for folder in folders)


def _waits(inner: list[tuple[str, str, str]]) -> str:
    """What of torch's that waits for other ranks the frames within the program's line are in."""
    for file, _, function in inner:
        if any(part in file for part in _WAITING) and not file.endswith(_LOGGER):
            return function
    return "backward" if any(_ENGINE in file for file, _, _ in inner) else ""


def sentence(found: list[Standing]) -> str:
    """In a few words: the ranks that hang, and what those wait for that do not; without ranks, where the program is."""
    ranks = {one.rank: one for one in found if one.rank >= 0}
    if not ranks:
        return next((f"it stands at {one.place}" for one in found if one.main and one.place), "")
    world = max(one.world for one in ranks.values())
    gone = [rank for rank in range(world) if rank not in ranks]
    waiting = {rank: one for rank, one in ranks.items() if one.waits}
    hanging = {rank: one for rank, one in ranks.items() if not one.waits}
    parts = _told(hanging, "hangs", "hang") + ([f"{_named(gone)} ended before"] if gone else [])
    return ", ".join([*parts, *_told(waiting, "waits", "wait")])


def _told(standing: dict[int, Standing], one: str, several: str) -> list[str]:
    """The ranks by where they stand."""
    by_place: dict[tuple[str, str], list[int]] = {}
    for rank in sorted(standing):
        by_place.setdefault((standing[rank].waits, standing[rank].place), []).append(rank)
    return [
        f"{_named(ranks)} {one if len(ranks) == 1 else several}"
        + (f" in {waits}" if waits else "")
        + (f" at {place}" if place else "")
        for (waits, place), ranks in by_place.items()
    ]


def _named(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
    return f"rank{'s' * (len(ranks) > 1)} {shown}"
