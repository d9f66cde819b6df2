"""Files x a linter -> their records, in worker processes where there is much to do."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.engine.linter import Linter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchdet_lint.config import Settings
    from torchdet_lint.engine.record import Record
    from torchdet_lint.source.discovery import File

_PARALLEL_BYTES = 400_000


def linted(linter: Linter, files: Sequence[File]) -> Iterator[tuple[str, str, Record | str]]:
    """Path, content hash and record (or a complaint) of every file, in whatever order they are done."""
    jobs = min(linter.settings.jobs or _processors(), len(files))
    if jobs < 2 or not (linter.settings.jobs or sum(file.size for file in files) > _PARALLEL_BYTES):
        with collector_off():
            for file in files:
                yield file.path, *linter.file(file.path)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    fork = sys.platform == "linux"
    if fork:
        linter.prepare()
        gc.collect()
        gc.freeze()
    context = multiprocessing.get_context("fork" if fork else "spawn")
    left = {file.path for file in files}
    try:
        with ProcessPoolExecutor(
            jobs, context, _start, (None if fork else (linter.settings, linter.texts or {}),)
        ) as pool:
            _Worker.linter = linter
            futures = [pool.submit(_work, paths) for paths in _batches(files, jobs)]
            for future in as_completed(futures):  # noqa: TDL306
                for path, content, record in future.result():
                    left.discard(path)
                    yield path, content, record
    except BrokenProcessPool:
        for path in sorted(left):
            yield _alone(context, linter, path)
    finally:
        if fork:
            gc.unfreeze()


class _Worker:
    """What a worker process holds."""

    linter: Linter | None = None


def _start(given: tuple[Settings, Mapping[str, bytes]] | None) -> None:
    """Make a worker ready: a forked one has everything, a spawned one reads the catalogue."""
    from threading import Thread

    Thread(target=_end_with_parent, daemon=True).start()
    if given is not None:
        settings, texts = given
        _Worker.linter = Linter(settings)
        _Worker.linter.stand_in(texts)


def _end_with_parent() -> None:
    """Wait until the process that started this one is gone, however it died, and follow it."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(paths: Sequence[str]) -> list[tuple[str, str, Record | str]]:
    assert _Worker.linter is not None
    with collector_off():
        return [(path, *_Worker.linter.file(path)) for path in paths]


def _alone(context: Any, linter: Linter, path: str) -> tuple[str, str, Record | str]:
    """Lint one file in a process of its own, because some file has killed a worker."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        with ProcessPoolExecutor(1, context, _start, ((linter.settings, linter.texts or {}),)) as pool:
            return pool.submit(_work, (path,)).result()[0]
    except BrokenProcessPool:
        return path, "", f"{path}: the parser crashed on this file; it was not linted"


def _batches(files: Sequence[File], jobs: int) -> list[list[str]]:
    """Paths in batches of falling size: the largest files first, so that no worker is left with a long one."""
    goal = max(sum(file.size for file in files) // (jobs * 24), 1)
    batches: list[list[str]] = []
    filled = goal
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        if filled >= goal:
            batches.append([])
            filled = 0
        batches[-1].append(file.path)
        filled += file.size
    return batches


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class collector_off:  # noqa: N801
    """The garbage collector is a third of the cost of parsing, and parsing makes no garbage that only it finds."""

    def __enter__(self) -> None:
        self.was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was:
            gc.enable()
