"""An op and the stack -> its site: the line of the program it belongs to, and for a backward op that of its forward."""

from __future__ import annotations

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


class Places(NamedTuple):
    """`find(plan, node, frame)` is the site of an op that is called from `frame`, in the backward pass of `node` where
    that is not None. `passed(plan, frame)` does so for an op that has no record, where that op made an autograd node.
    """

    find: Callable[[Plan, Any, FrameType | None], int]
    passed: Callable[[Plan, FrameType | None], None]


def caller() -> FrameType | None:
    """The frame that calls the function that asks; a thread of autograd's own has none there."""
    try:
        return sys._getframe(2)
    except ValueError:
        return None


def places(run: Run, stream: Stream) -> Places:
    """The places of one thread's ops."""
    kinds, sites, forward_lines = run.classifier, stream.sites, stream.forward
    sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", lambda: 0)
    forward_site, put_site = forward_lines.get, forward_lines.put
    nobodys: set[str] = set()
    """The files of torch without a meaning of their own, which most frames are of."""
    last_sequence = -1

    def find(plan: Plan, node: Any, frame: FrameType | None) -> int:
        nonlocal last_sequence
        library: FrameType | None = None
        room = TORCH
        while frame is not None:
            if (file := frame.f_code.co_filename) not in nobodys:
                kind = kinds[file]
                if kind == OWN:
                    break
                if kind == TORCH:
                    nobodys.add(file)
                elif kind != LIBRARY:
                    room = kind
                elif library is None:
                    library = frame
            frame = frame.f_back
        else:
            frame = library
        code = instruction = 0
        if frame is not None:
            code, instruction = id(frame.f_code), frame.f_lasti
        if node is None:
            forward = -1
            key = (plan.index, code, instruction, forward, room)
        else:
            forward = forward_site(node._sequence_nr())
            key = (plan.index, code, instruction, forward, -1)
        site = sites.get(key)
        if site is None:
            site = sites[key] = stream.site(plan, frame, instruction, forward, room, node is not None)
        sequence = sequence_number()
        if sequence != last_sequence:
            last_sequence = sequence
            put_site(sequence - 1, site)
        return site

    def passed(plan: Plan, frame: FrameType | None) -> None:
        if sequence_number() != last_sequence and current_node() is None:
            find(plan, None, frame)

    return Places(find, passed)
