"""Folder listings, finished work and sets -> in an order that is promised, or under stress in two that are not."""

from __future__ import annotations

import collections
import functools
import itertools
import os
import time
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.frames import is_users
from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from torchdet_lint.verifier.remedies.context import Context

# How long the reversed side waits for stragglers, and how many results it holds back, before it lets the rest through.
_PATIENCE_SECONDS = 5.0
_WINDOW = 64
# Their classes took hold of the functions when they were made (Python 3.10, 3.13).
_HOLDERS = ("glob", "pathlib")


def files(context: Context, *, reverse: bool = False) -> None:
    """`os.listdir` and `os.scandir`, and with them glob, walk and pathlib, list by name."""
    listdir, scandir = os.listdir, os.scandir

    @functools.wraps(listdir)
    def sorted_listdir(path: Any = ".") -> list[Any]:
        return sorted(listdir(path), reverse=reverse)

    @functools.wraps(scandir)
    def sorted_scandir(path: Any = ".") -> _Entries:
        with scandir(path) as entries:
            return _Entries(sorted(entries, key=lambda entry: entry.name, reverse=reverse))

    context.patches.replace_everywhere(listdir, sorted_listdir, _HOLDERS)
    context.patches.replace_everywhere(scandir, sorted_scandir, _HOLDERS)


class _Entries:
    """What `os.scandir` returns: an iterator, a context manager, closable."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the entries not yet read."""
        self._entries = iter(())


def completion(context: Context, *, reverse: bool = False) -> None:
    """`as_completed` and `imap_unordered` hand results over in the order of submission (`reverse`: against it)."""
    patches = context.patches

    def patch_futures(module: ModuleType) -> None:
        original = module.as_completed
        ordered = _as_completed(original, reverse)
        patches.replace_everywhere(original, ordered)

    def patch_pool(module: ModuleType) -> None:
        original = module.Pool.imap_unordered
        patches.set(module.Pool, "imap_unordered", _reversed_imap(original) if reverse else module.Pool.imap)

    def patch_asyncio(module: ModuleType) -> None:
        patches.replace_everywhere(module.as_completed, functools.partial(_asyncio_as_completed, reverse))

    after_import(patches, "concurrent.futures._base", patch_futures)
    after_import(patches, "multiprocessing.pool", patch_pool)
    after_import(patches, "asyncio.tasks", patch_asyncio)


def _as_completed(original: Callable[..., Iterator[Any]], reverse: bool) -> Callable[..., Iterator[Any]]:
    @functools.wraps(original)
    def as_completed(fs: Iterable[Any], timeout: float | None = None) -> Iterator[Any]:
        futures = list(dict.fromkeys(fs))
        return backwards(futures, timeout) if reverse else forwards(futures, timeout)

    def forwards(futures: list[Any], timeout: float | None) -> Iterator[Any]:
        end = None if timeout is None else time.monotonic() + timeout
        for future in futures:
            # The original waits, so that its timeouts and its errors stay what the program knows.
            yield from original([future], None if end is None else max(0.0, end - time.monotonic()))

    def backwards(futures: list[Any], timeout: float | None) -> Iterator[Any]:
        start = time.monotonic()
        patience = _PATIENCE_SECONDS if timeout is None else min(_PATIENCE_SECONDS, timeout)
        while not all(future.done() for future in futures) and time.monotonic() - start < patience:
            time.sleep(0.001)
        done = [future for future in futures if future.done()]
        yield from reversed(done)
        rest = [future for future in futures if future not in done]
        if rest:
            yield from original(rest, None if timeout is None else max(0.0, timeout - (time.monotonic() - start)))

    return as_completed


def _reversed_imap(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def imap_unordered(self: Any, func: Any, iterable: Iterable[Any], chunksize: int = 1) -> Iterator[Any]:
        results = original(self, func, iterable, chunksize)
        # With chunks it is a generator, which cannot wait for a time.
        return _Reversed(results) if hasattr(results, "next") else _reversed_windows(results)

    return imap_unordered


def _reversed_windows(results: Iterator[Any]) -> Iterator[Any]:
    """Results of a pool that come in chunks, the latest first, in windows."""
    for window in iter(lambda: list(itertools.islice(results, _WINDOW)), []):
        yield from reversed(window)


class _Reversed:
    """Results of a pool, the latest first, in windows: an endless input still flows."""

    def __init__(self, results: Any) -> None:
        self._results = results
        self._held: collections.deque[Callable[[], Any]] = collections.deque()
        self._ended = False

    def __iter__(self) -> _Reversed:
        return self

    def __next__(self, timeout: float | None = None) -> Any:
        if not self._held:
            self._fill(timeout)
        if not self._held:
            raise StopIteration
        return self._held.pop()()

    next = __next__

    def _fill(self, timeout: float | None) -> None:
        import multiprocessing

        end = time.monotonic() + _PATIENCE_SECONDS
        while not self._ended and len(self._held) < _WINDOW:
            wait = max(0.0, end - time.monotonic()) if self._held else timeout
            try:
                value = self._results.next(wait)
            except StopIteration:
                self._ended = True
            except multiprocessing.TimeoutError:
                if not self._held:
                    raise
                return
            except Exception as error:
                self._held.append(functools.partial(_raise, error))
            else:
                self._held.append(functools.partial(lambda value: value, value))


def _raise(error: Exception) -> None:
    raise error


class _InOrder:
    """What `asyncio.as_completed` returns, in the order of submission or against it."""

    def __init__(self, tasks: list[Any], timeout: float | None, reverse: bool) -> None:
        self._tasks = tasks
        self._reverse = reverse
        self._left_over = len(tasks)
        self._end = None if timeout is None else time.monotonic() + timeout

    def __iter__(self) -> _InOrder:
        return self

    def __aiter__(self) -> _InOrder:
        return self

    def __next__(self) -> Any:
        if not self._left_over:
            raise StopIteration
        self._left_over -= 1
        return self._result()

    async def __anext__(self) -> Any:
        if not self._left_over:
            raise StopAsyncIteration
        self._left_over -= 1
        return await self._take()

    async def _result(self) -> Any:
        return (await self._take()).result()

    async def _take(self) -> Any:
        import asyncio

        if self._reverse:
            await asyncio.wait(self._tasks, timeout=min(_PATIENCE_SECONDS, self._seconds_left() or _PATIENCE_SECONDS))
            done = [task for task in self._tasks if task.done()]
            task = (done or self._tasks)[-1]
        else:
            task = self._tasks[0]
        self._tasks.remove(task)
        await asyncio.wait([task], timeout=self._seconds_left())
        if not task.done():
            raise asyncio.TimeoutError
        return task

    def _seconds_left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())


def _asyncio_as_completed(reverse: bool, fs: Iterable[Any], *, timeout: float | None = None) -> _InOrder:
    import asyncio

    return _InOrder([asyncio.ensure_future(future) for future in list(dict.fromkeys(fs))], timeout, reverse)


def address_free_hashes(context: Context) -> None:
    """Tensors, modules and objects of the program's own classes hash by the order of first use, not by address."""
    import builtins
    import weakref

    ordinals = itertools.count(1)
    known: dict[int, tuple[Any, int]] = {}

    def ordinal(self: Any) -> int:
        place = id(self)
        if place not in known:
            try:
                alive = weakref.ref(self, lambda _: known.pop(place, None))
            except TypeError:
                return object.__hash__(self)
            known[place] = (alive, next(ordinals))
        return known[place][1]

    def patch(torch: Any) -> None:
        for kind in (torch.Tensor, torch.nn.Module, torch.utils.data.Dataset):
            context.patches.set(kind, "__hash__", ordinal)

    # A base, not an attribute: a class that defines __eq__, and a dataclass, keep the hash that Python gives them.
    identity = type("Identity", (), {"__slots__": (), "__hash__": ordinal, "__module__": __name__})
    original = builtins.__build_class__

    @functools.wraps(original)
    def build_class(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        if not bases and not keywords and is_users(body.__code__.co_filename):
            bases = (identity,)
        return original(body, name, *bases, **keywords)

    context.patches.set(builtins, "__build_class__", build_class)
    after_import(context.patches, "torch", patch)
