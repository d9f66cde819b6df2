"""The frame in which an op hands out memory that nothing has written -> what torch does with it there, where no op says
so: fills it, or computes with whatever it holds and uses nothing of that."""

from __future__ import annotations

import contextlib
import inspect
import os
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.catalogue import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType

_OURS = str(Path(__file__).parents[1]) + os.sep


def _codes(names: Iterable[str]) -> dict[int, CodeType]:
    """The code of those functions that this release of torch has, inside of what decorates them, by its identity: to
    hash a code is slow.
    """
    found = {}
    for name in names:
        with contextlib.suppress(ImportError, AttributeError):
            code = inspect.unwrap(pkgutil.resolve_name(name)).__code__
            found[id(code)] = code
    return found


_FILLS, _UNUSED = _codes(runtime.dispatch().fills), _codes(runtime.dispatch().unused)


def not_ours(frame: FrameType | None) -> FrameType | None:
    """The first of a frame and those above it that is not ours."""
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def is_filled(frame: FrameType | None) -> bool:
    """Whether the memory that an op hands out here, in a frame that is not ours, is filled in C++."""
    return frame is not None and id(frame.f_code) in _FILLS


def is_unused(frame: FrameType | None) -> bool:
    """Whether nothing is used of what the memory holds that an op hands out here, in a frame that is not ours, or in a
    comprehension here.
    """
    if frame is None:
        return False
    above = frame.f_back
    return id(frame.f_code) in _UNUSED or (above is not None and id(above.f_code) in _UNUSED)
