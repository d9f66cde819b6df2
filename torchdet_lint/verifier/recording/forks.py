"""A process that forks -> a file of its own for each child; one that leaves without exit handlers, what it recorded."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from typing import TYPE_CHECKING

from torchdet_lint.verifier.recording.generators import python_digest

if TYPE_CHECKING:
    import weakref

    from torchdet_lint.verifier.recording.streams import Run


def write_all(owner: weakref.ref[Run]) -> None:
    """Before a process leaves without its exit handlers."""
    run = owner()
    if run is not None:
        for stream in list(run.live.values()):
            if stream.records:
                stream.close()


def watch_forks(owner: weakref.ref[Run]) -> None:
    """Give every forked child its own file: what the parent has not yet written stays the parent's."""

    def before() -> None:
        run = owner()
        if run is not None:
            run.fork_number = next(run.forks)

    def in_child() -> None:
        run = owner()
        if run is None:
            return
        run.order = [*run.order, run.fork_number]
        run.forks = itertools.count(1)
        run.writer = None
        run.opening = threading.Lock()
        # Python has given the child's generator of `random` a state of its own by now.
        run.starts = (python_digest(), *run.starts[1:])
        surviving = [stream for stream in run.live.values() if stream.ident == threading.get_ident()]
        run.live.clear()
        for stream in surviving[:1]:
            stream.after_fork()
            run.live[id(stream)] = stream
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(run, lambda _: util.Finalize(None, write_all, args=(owner,), exitpriority=0))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_child=in_child)
