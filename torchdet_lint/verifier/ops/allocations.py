"""The frame in which an op hands out memory that nothing has written -> what torch does with it there, where no op says
so: fills it, or computes with whatever it holds and uses nothing of that."""

from __future__ import annotations

import contextlib
import os
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.catalogue import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType

_OURS = str(Path(__file__).parents[1]) + os.sep


def _codes(names: Iterable[str]) -> frozenset[CodeType]:
    """The code of those functions that this release of torch has."""
    found = set()
    for name in names:
        with contextlib.suppress(ImportError, AttributeError):
            found.add(pkgutil.resolve_name(name).__code__)
    return frozenset(found)


_FILLS, _UNUSED = _codes(runtime.dispatch().fills), _codes(runtime.dispatch().unused)


def not_ours(frame: FrameType | None) -> FrameType | None:
    """The first of a frame and those above it that is not ours."""
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def is_filled(frame: FrameType | None) -> bool:
    """Whether the memory that an op hands out here is filled in C++."""
    frame = not_ours(frame)
    return frame is not None and frame.f_code in _FILLS


def is_unused(frame: FrameType | None) -> bool:
    """Whether nothing is used of what the memory holds that an op hands out here, or in a comprehension here."""
    frame = not_ours(frame)
    return frame is not None and any(one is not None and one.f_code in _UNUSED for one in (frame, frame.f_back))
