"""`import libcst` -> the same in two thirds of the time, with nodes that are made faster.

Most of that import goes into text that `dataclasses` writes and compiles for some two hundred classes of nodes. Left
out is what forbids to assign to a field, which every new node pays for too, and the `__repr__` and comparisons that
libcst replaces. Whether something is a node of a class is asked without looking for virtual subclasses: there are none.
Where somebody has imported libcst before, it stays as it is.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import sys
from typing import Any

_ROOT = "CSTNode"


class _Nodes(abc.ABCMeta):
    """The class of the classes of nodes."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def _dataclass(kind: type | None = None, /, **options: Any) -> Any:
    """As `dataclasses.dataclass`, with less for classes of nodes."""
    if kind is None:
        return functools.partial(_dataclass, **options)
    if any(base.__name__ == _ROOT for base in kind.__mro__):
        options |= {"frozen": False, "repr": False, "eq": False}
        if kind.__name__ == _ROOT:
            kind.__class__ = _Nodes
    return _real(kind, **options)


_real = dataclasses.dataclass

if "libcst" not in sys.modules:
    dataclasses.dataclass = _dataclass
    try:
        import libcst as libcst
    finally:
        dataclasses.dataclass = _real
