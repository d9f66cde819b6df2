"""The constructor that subclasses of tensors inherit -> the same, out of the hearing of our modes.

`Named(tensor)` makes an alias, which is an op, and then an object of `Named` for it. What a mode hands back has an
object already, a plain tensor's, and torch refuses to make another. The same holds of `Named(2, 3)` and of
`Named([1.0])`, whose values the modes are to hear of. torch.compile knows the constructor by what it is: it finds the
original.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from opcode import opname
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _python_dispatch

from torchdet_lint.verifier.patching.patches import Patches, after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, ModuleType

_ORIGINAL = torch.Tensor.__new__
_TORCH = str(Path(torch.__file__).parent) + os.sep
_NAME = "__new__"


class Constructors:
    """Mends the constructor for as long as a mode of class `ours` is entered, in whichever thread."""

    def __init__(self, ours: type) -> None:
        self._constructor = _Constructor(ours)
        self._unlock()
        self._entered = self._compilations = 0
        self._patches = Patches()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def enter(self) -> None:
        """A mode is entered."""
        with self._lock:
            self._entered += 1
            if self._entered == 1 and _NAME not in vars(torch.Tensor):
                self._show()
                self._patches.on_undo(self._hide)
                after_import(self._patches, "torch._dynamo.callback", self._watch_compiler)

    def leave(self) -> None:
        """A mode is left."""
        with self._lock:
            self._entered -= 1
            if not self._entered:
                self._patches.undo()

    def _show(self) -> None:
        setattr(torch.Tensor, _NAME, self._constructor)

    def _hide(self) -> None:
        if vars(torch.Tensor).get(_NAME) is self._constructor:
            delattr(torch.Tensor, _NAME)

    def _watch_compiler(self, module: ModuleType) -> None:
        """While it traces, torch.compile looks into the class, and finds it as it is."""
        kind = getattr(module, "CompilationCallbackHandler", None)
        original = getattr(kind, "install_callbacks", None)
        if original is None:
            return

        @functools.wraps(original)
        @contextlib.contextmanager
        def install_callbacks(*args: Any, **kwargs: Any) -> Iterator[Any]:
            self._compiling(1)
            try:
                with original(*args, **kwargs) as entered:
                    yield entered
            finally:
                self._compiling(-1)

        self._patches.set(kind, "install_callbacks", install_callbacks)

    def _compiling(self, more: int) -> None:
        with self._lock:
            self._compilations += more
            if self._compilations:
                self._hide()
            elif self._entered:
                self._show()


class _Constructor:
    """`torch.Tensor.__new__` as a descriptor: who looks it up gets what makes an object of any subclass."""

    def __init__(self, ours: type) -> None:
        self._made = _making(ours)

    def __get__(self, instance: object, kind: type) -> Callable[..., Any]:
        return _ORIGINAL if kind is torch.Tensor and not _names_it(sys._getframe(1)) else self._made


def _names_it(frame: FrameType) -> bool:
    """Whether the program spells `torch.Tensor.__new__` here; torch itself, and what the compiler's guards ask for, get
    the original.
    """
    code = frame.f_code
    if _NAME not in code.co_names or code.co_filename.startswith(_TORCH):
        return False
    return opname[code.co_code[frame.f_lasti]].startswith("LOAD_")


def _making(ours: type) -> Callable[..., Any]:
    @functools.wraps(_ORIGINAL)
    def __new__(kind: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if kind is torch.Tensor or not isinstance(_python_dispatch._get_current_dispatch_mode(), ours):
            return _ORIGINAL(kind, *args, **kwargs)
        if len(args) != 1 or kwargs or not isinstance(args[0], torch.Tensor):
            return torch.Tensor._make_subclass(kind, _ORIGINAL(torch.Tensor, *args, **kwargs))
        modes = []
        try:
            while isinstance(_python_dispatch._get_current_dispatch_mode(), ours):
                modes.append(_python_dispatch._pop_mode())
            return _ORIGINAL(kind, *args)
        finally:
            for mode in reversed(modes):
                _python_dispatch._push_mode(mode)

    return __new__
