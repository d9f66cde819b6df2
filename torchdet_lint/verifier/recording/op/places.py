"""An op and the stack -> its site: the line of the program it belongs to, and for a backward op that of its forward."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torchdet_lint.verifier.recording.lines import LIBRARY, OWN, TORCH

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from torchdet_lint.verifier.ops.plans import Plan
    from torchdet_lint.verifier.recording.streams import Run, Stream

current_node: Callable[[], Any] = getattr(torch._C, "_current_autograd_node", lambda: None)
"""The autograd node that the thread is in; None in the forward pass."""
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_FAR = 3


class Places(NamedTuple):
    """`find(plan, node, frame)` is the site of an op that is called from `frame`, in the backward pass of `node` where
    that is not None. `passed(plan, frame)` does so for an op that has no record, where that op made an autograd node:
    `sequence_number()` is then another than that of the `last` op.
    """

    find: Callable[[Plan, Any, FrameType | None], int]
    passed: Callable[[Plan, FrameType | None], None]
    sequence_number: Callable[[], int]
    last: list[int]


class Way:
    """Where the frames above an op lead, and the sites there: by op, and by op and forward site.

    A function of torch that runs many ops, as the step of an optimizer or the engine of autograd, is called from one
    place while it runs: its frame keeps the way as its `f_trace`, which only a tracer looks at, and nothing walks up
    from it again. Such a tracer may call it, and hears nothing.
    """

    __slots__ = ("backward", "forward")

    def __init__(self, forward: dict[int, int], backward: dict[int, int]) -> None:
        self.forward, self.backward = forward, backward

    def __call__(self, *_: object) -> None:
        """What a tracer hears."""


def caller() -> FrameType | None:
    """The frame that calls the function that asks; a thread of autograd's own has none there."""
    try:
        return sys._getframe(2)
    except ValueError:
        return None


def _stays(frame: FrameType) -> bool:
    """Whether what is above a frame stays the same for as long as it runs, and nobody traces it."""
    return not frame.f_code.co_flags & _RESUMED and frame.f_trace is None and sys.gettrace() is None


def places(run: Run, stream: Stream) -> Places:  # noqa: C901
    """The places of one thread's ops."""
    kinds, sites, forward_lines = run.classifier, stream.sites, stream.forward
    sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", lambda: 0)
    forward_site, put_site = forward_lines.get, forward_lines.put
    nobodys: set[str] = set()
    """The files of torch without a meaning of their own, which most frames are of."""
    ways: dict[tuple[int, int, int], OwnWay] = {}
    last = [-1]

    class OwnWay(Way):
        """A way of this stream."""

        __slots__ = ()

    def walk(frame: FrameType | None) -> tuple[FrameType | None, int, int]:
        """The frame that an op belongs to, the room that it was called from, and how far up that is."""
        library: FrameType | None = None
        room, passed = TORCH, 0
        while frame is not None:
            if (file := frame.f_code.co_filename) not in nobodys:
                kind = kinds[file]
                if kind == OWN:
                    return frame, room, passed
                if kind == TORCH:
                    nobodys.add(file)
                elif kind != LIBRARY:
                    room = kind
                elif library is None:
                    library = frame
            frame = frame.f_back
            passed += 1
        return library, room, passed

    def belongs(frame: FrameType | None) -> tuple[FrameType | None, int, int]:
        """As `walk`; what the engine calls in a thread of its own belongs to who waits for it."""
        found = walk(frame)
        waiting = stream.engine
        return found if found[0] is not None or waiting is None or waiting is frame else walk(waiting)

    def find(plan: Plan, node: Any, frame: FrameType | None) -> int:
        if frame is None:
            frame = stream.engine
        if frame is None or type(way := frame.f_trace) is not OwnWay:
            found: FrameType | None = frame
            room, passed = TORCH, 0
            if frame is None or kinds[frame.f_code.co_filename] != OWN:
                found, room, passed = belongs(frame)
            place = (id(found.f_code), found.f_lasti, room) if found is not None else (0, 0, room)
            way = ways.get(place)
            if way is None:
                above = sites.setdefault(place, {}), sites.setdefault((*place[:2], -1), {})
                way = ways[place] = OwnWay(*above)
            if passed >= _FAR and frame is not None and frame is not found and _stays(frame):
                frame.f_trace = way
        if node is None:
            known, key = way.forward, plan.index
        else:
            forward = forward_site(node._sequence_nr())
            known, key = way.backward, (forward + 2) << 20 | plan.index
        site = known.get(key)
        if site is None:
            found, room, _ = belongs(frame)
            forward = -1 if node is None else forward
            site = known[key] = stream.site(plan, found, forward, room, node is not None)
        sequence = sequence_number()
        if sequence != last[0]:
            last[0] = sequence
            put_site(sequence - 1, site)
        return site

    def passed(plan: Plan, frame: FrameType | None) -> None:
        if current_node() is None:
            find(plan, None, frame)

    return Places(find, passed, sequence_number, last)
