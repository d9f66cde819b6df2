"""`import libcst` -> the same in two thirds of the time, with nodes that are made faster.

Most of that import goes into text that `dataclasses` writes and compiles for some two hundred classes of nodes. Left
out is what forbids to assign to a field, which every new node pays for too, and the `__repr__` and comparisons that
libcst replaces. Whether something is a node of a class is asked without looking for virtual subclasses: there are none.
Only in a process
that does nothing else, that of the command line: to whoever imports the linter, libcst stays as it is.
"""

from __future__ import annotations

import abc
import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT = "CSTNode"


class Process:
    """What is known of this process: whether it is the linter's own, so that no other code uses its libcst."""

    is_own = False


class _Nodes(abc.ABCMeta):
    """The class of the classes of nodes."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def import_libcst() -> None:
    """Import libcst, in this way where the process is the linter's own and nothing has imported it yet."""
    if not Process.is_own or "libcst" in sys.modules:
        return
    import dataclasses

    usual: Any = dataclasses.dataclass
    dataclasses.dataclass = functools.partial(_dataclass, usual)
    try:
        import libcst as libcst
    finally:
        dataclasses.dataclass = usual


def _dataclass(usual: Callable[..., Any], kind: type | None = None, /, **options: Any) -> Any:
    """As `dataclasses.dataclass`, the `usual` one, with less for classes of nodes."""
    if kind is None:
        return functools.partial(_dataclass, usual, **options)
    if any(base.__name__ == _ROOT for base in kind.__mro__):
        options |= {"frozen": False, "repr": False, "eq": False}
        if kind.__name__ == _ROOT:
            kind.__class__ = _Nodes
    return usual(kind, **options)
