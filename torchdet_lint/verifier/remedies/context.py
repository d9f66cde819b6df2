"""What the installers of fixes share, plain data: the seed, the chosen rules, the changes made, numbers that repeat."""

from __future__ import annotations

import collections
import functools
import hashlib
import os
import sys
from typing import TYPE_CHECKING

from torchdet_lint.verifier.patching.events import Reporter
from torchdet_lint.verifier.patching.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Lineage:
    """Which fork of which fork this process is: the same in every run that forks in the same order."""

    def __init__(self) -> None:
        self.path: tuple[int, ...] = ()
        self.hooks: list[Callable[[tuple[int, ...]], object]] = []
        self._forks = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_child=self._in_child)

    def _before(self) -> None:
        self._forks += 1

    def _in_child(self) -> None:
        self.path, self._forks = (*self.path, self._forks), 0
        for hook in self.hooks:
            hook(self.path)


@functools.lru_cache(maxsize=1)
def lineage() -> Lineage:
    """This process's lineage; it counts from the first call on."""
    return Lineage()


def after_fork(context: Context, action: Callable[[tuple[int, ...]], object]) -> None:
    """Run `action(lineage)` in every child that this process or a child of its forks, until the change is undone."""
    lineage().hooks.append(action)
    context.patches.on_undo(lambda: lineage().hooks.remove(action))


def is_multiprocessing_child() -> bool:
    """Whether this interpreter was started by multiprocessing (spawn, forkserver) and not as a program of its own."""
    arguments = getattr(sys, "orig_argv", sys.argv)
    return "--multiprocessing-fork" in arguments or any("from multiprocessing." in text for text in arguments)


class Context:
    """One application of fixes to this process."""

    def __init__(self, codes: Iterable[str], seed: int = 0, reporter: Reporter | None = None) -> None:
        self.codes = frozenset(codes)
        self.seed = seed
        self.patches = Patches()
        self.reporter = reporter or Reporter()
        # The program's own last seed of each library, as text: what is derived follows it.
        self.program_seeds: dict[str, str] = {}
        self.on_seed: list[Callable[[], object]] = []
        # Whether a fix seeds at this moment, and not the program.
        self.seeds_itself = False
        self._ordinals: collections.Counter[str] = collections.Counter()
        lineage()

    def derive(self, *parts: object) -> int:
        """A number in [0, 2**63) that depends on the seed, the seeds that the program has set, and `parts` only."""
        text = repr((self.seed, *parts, *sorted(self.program_seeds.items()))).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1

    def next(self, kind: str) -> int:
        """The next number of the sequence `kind` in this process: no two calls, processes or ranks get the same."""
        return self.derive(*self.place(kind))

    def place(self, kind: str) -> tuple[object, ...]:
        """The next place of the sequence `kind` in this process, as the parts that a number derives from."""
        self._ordinals[kind] += 1
        process = sys.modules.get("multiprocessing.process")
        identity = process.current_process()._identity if process is not None else ()
        rank = os.environ.get("RANK", "")
        return kind, lineage().path, tuple(identity), rank, self._ordinals[kind]
