"""`deterministic()`: a block of code -> the same block with all that a running process can do to repeat it."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from typing import TYPE_CHECKING, Any, Literal

from torchdet_lint.verifier.patching.events import Reporter
from torchdet_lint.verifier.remedies import fixes

if TYPE_CHECKING:
    from types import TracebackType

    from torchdet_lint.verifier.patching.events import Event
    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.remedies.context import Context

# Hash seeds are set before the interpreter starts; tensors that already hash by address must go on doing so.
_BEFORE_THE_START = ("TDL305", "TDL601")
_SEEDS = ("TDL101", "TDL102", "TDL103", "TDL106")
_MODE = ("TDL203", "TDL204", "TDL208", "TDL402", "TDL403")
_FILL = ("TDL206", "TDL501")

_LOCK = threading.RLock()
_INSIDE: list[deterministic] = []


class deterministic(contextlib.ContextDecorator):  # noqa: N801
    """Make what runs in the block repeat, and put everything back at its end, also when it raises.

    Inside: the generators of `random`, NumPy and torch stand at `seed`, unseeded generators, loaders and samplers get
    seeds that derive from it, deterministic algorithms are on (an op that has none warns and runs), cuDNN does not
    autotune, folders list by name, finished work arrives in the order of submission. `scope="ops"` turns deterministic
    algorithms on around the ops that need them only, in this thread; everything else runs as fast as ever. `fill`
    says whether fresh memory is filled, which is most of the cost of deterministic mode.

    Put back: every flag, environment variable, generator state and patched function. Blocks nest. Blocks of several
    threads may overlap: what they share is the process's, and is put back when the last one ends.

    `events` lists what the block tried to relax, with lines. The hash seed cannot change in a running process.
    """

    def __init__(self, seed: int = 0, *, scope: Literal["global", "ops"] = "global", fill: bool = False) -> None:
        if scope not in ("global", "ops"):
            raise ValueError(f'scope is "global" or "ops", not {scope!r}')
        self.seed = seed
        self.scope = scope
        self.fill = fill
        self._reporter = Reporter(quiet=True)
        self._context: Context | None = None
        self._states: _States | None = None
        self._mode: Any = None

    @property
    def events(self) -> tuple[Event, ...]:
        """What the block tried to relax, in order."""
        return tuple(self._reporter.events)

    def _recreate_cm(self) -> deterministic:
        return deterministic(self.seed, scope=self.scope, fill=self.fill)

    def __enter__(self) -> deterministic:
        import torch

        with _LOCK:
            if self in _INSIDE:
                raise RuntimeError("this deterministic() is already entered; make another one")
            self._states = _States(torch)
            try:
                self._apply(torch, seeds=True)
            except BaseException:
                self._states.put_back(torch)
                raise
            _INSIDE.append(self)
        if self.scope == "ops":
            from torchdet_lint.verifier.ops.aten import switchable_ops
            from torchdet_lint.verifier.remedies.modes import scoped_mode

            self._mode = scoped_mode(switchable_ops())
            self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import torch

        if self._mode is not None:
            self._mode.__exit__(kind, error, trace)
            self._mode = None
        with _LOCK:
            place = _INSIDE.index(self)
            later = _INSIDE[place + 1 :]
            for block in [*reversed(later), self]:
                block._take_back()
            del _INSIDE[place]
            if later:
                # Whoever leaves last restores the states from before the first.
                later[0]._states = self._states
                for block in later:
                    block._apply(torch, seeds=False)
            elif self._states is not None:
                self._states.put_back(torch)

    def _apply(self, torch: Any, *, seeds: bool) -> None:
        left_out = {*_BEFORE_THE_START, *_FILL}
        if self.scope == "ops":
            left_out.update(_MODE)
        if not seeds:
            left_out.update(_SEEDS)
        codes = [code for code in fixes.every_code() if code not in left_out]
        self._context = fixes.install(codes, self.seed, self._reporter)
        if self.scope == "global":
            _set_fill(self._context.patches, torch, self.fill)

    def _take_back(self) -> None:
        if self._context is not None:
            self._context.patches.undo()
            self._context = None


def _set_fill(patches: Patches, torch: Any, fill: bool) -> None:
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = fill
    patches.on_undo(lambda: setattr(torch.utils.deterministic, "fill_uninitialized_memory", before))


class _States:
    """The states of the global generators when a block began."""

    def __init__(self, torch: Any) -> None:
        numpy = sys.modules.get("numpy.random")
        self.python = random.getstate()
        self.numpy = numpy.get_state() if numpy is not None else None
        self.torch = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def put_back(self, torch: Any) -> None:
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy.random"].set_state(self.numpy)
        torch.set_rng_state(self.torch)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)
