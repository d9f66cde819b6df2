"""The name of a mode of torch, or of a provocation -> a run under it."""

from __future__ import annotations

import contextlib
import random
import threading
import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def mode(name: str, *, compiled: bool = False) -> Iterator[list[warnings.WarningMessage]]:
    """Run in a mode of `plan.MODES`; gives the list that warnings are collected in, and puts everything back.

    Only what is `compiled` needs inductor to know of deterministic mode, and its import takes seconds.
    """
    switch = torch.use_deterministic_algorithms if compiled else torch._C._set_deterministic_algorithms
    strict = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    switch(name in ("deterministic", "warn-only"), warn_only=name == "warn-only")
    torch.backends.cudnn.deterministic = name == "cudnn-deterministic"
    torch.backends.cudnn.benchmark = name == "benchmark"  # noqa: TDL201
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        switch(strict[0], warn_only=strict[1])
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn


_COSTLY = ("busy threads", "emptied cache")


class Provocations:
    """What lies legally within what a machine may do to a run: memory at other addresses, work beside it."""

    def __init__(self, device: str, *, seed: int) -> None:
        self.device = device
        self._random = random.Random(seed)
        self._held: list[Any] = []
        self._busy = _Busy() if device == "cpu" else None
        self._streams: list[Any] = []
        self._load: Any = None
        kinds: dict[str, Callable[[], None]] = {"plain": self._plain, "other addresses": self._move}
        if device == "cpu":
            kinds["busy threads"] = self._plain
        if device == "cuda":
            kinds |= {"busy streams": self._beside, "other occupancy": self._occupy, "emptied cache": self._empty}
        self._kinds = kinds
        self.names = tuple(name for name in kinds for _ in range(1 if name in _COSTLY else 3))

    @contextlib.contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Prepare one run under the provocation `name`, and undo it after."""
        if name == "busy threads" and self._busy is not None:
            with self._busy:
                yield
            return
        self._kinds[name]()
        try:
            yield
        finally:
            self._held.clear()

    def close(self) -> None:
        """End what still runs."""
        if self._busy is not None:
            self._busy.close()

    def _plain(self) -> None:
        pass

    def _move(self) -> None:
        """Take blocks of every size from 64 bytes to 4 MiB, write another byte to each, and give some of them
        back: whichever size the op asks for, the place that it had last may be taken.
        """
        sizes = [self._random.randrange(1 << power, 2 << power) for power in range(6, 22) for _ in range(2)]
        blocks = [torch.empty(size, dtype=torch.uint8, device=self.device) for size in sizes]
        for block in blocks:
            block[:4_000].fill_(self._random.randrange(256))
        self._held[:] = [block for block in blocks if self._random.random() < 0.5]

    def _empty(self) -> None:
        torch.cuda.empty_cache()

    def _beside(self) -> None:
        """Matrix products on streams of their own, still under way when the op starts."""
        self._ready()
        for stream in self._streams:
            with torch.cuda.stream(stream):
                self._held.append(self._load @ self._load)

    def _occupy(self) -> None:
        """Small kernels that hold some of the processors for a random while."""
        self._ready()
        for stream in self._streams[: self._random.randrange(1, len(self._streams) + 1)]:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(self._random.randrange(1_000, 200_000))  # type: ignore[no-untyped-call]

    def _ready(self) -> None:
        if not self._streams:
            self._streams = [torch.cuda.Stream() for _ in range(4)]  # type: ignore[no-untyped-call]
            self._load = torch.zeros(512, 512, device="cuda")
            torch.cuda.synchronize()


class _Busy:
    """A thread that keeps a processor busy while it is entered, with work that holds Python's lock for moments only."""

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._wanted.set()

    def __exit__(self, *_: object) -> None:
        self._wanted.clear()

    def close(self) -> None:
        self._ended = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        load = torch.arange(20_000).flip(0).float().sin()
        while self._wanted.wait() and not self._ended:
            load.sort()
