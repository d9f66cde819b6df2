"""Changes to live objects -> a stack that puts them back; hooks that wait for an import."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_MISSING = object()


class Patches:
    """A stack of changes; `undo` takes them back in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set the attribute `name` of a module, class or object, and remember what was there (perhaps inherited)."""
        old = vars(owner).get(name, _MISSING) if hasattr(owner, "__dict__") else getattr(owner, name, _MISSING)
        setattr(owner, name, value)
        self.on_undo(lambda: delattr(owner, name) if old is _MISSING else setattr(owner, name, old))

    def set_variable(self, name: str, value: str) -> None:
        """Set an environment variable of this process."""
        old = os.environ.get(name)
        os.environ[name] = value
        self.on_undo(lambda: os.environ.pop(name, None) if old is None else os.environ.__setitem__(name, old))

    def replace_everywhere(self, old: Any, new: Any, classes_of: tuple[str, ...] = ()) -> None:
        """Put `new` wherever an imported module, or a class in the modules `classes_of`, holds the object `old`."""
        for module in [found for _, found in sorted(sys.modules.items()) if found is not None]:
            space = getattr(module, "__dict__", {})
            for name in [name for name, value in list(space.items()) if value is old]:
                self.set(module, name, new)
            if getattr(module, "__name__", "").partition(".")[0] in classes_of:
                for kind in [value for value in list(space.values()) if isinstance(value, type)]:
                    self._replace_in_class(kind, old, new)

    def _replace_in_class(self, kind: type, old: Any, new: Any) -> None:
        for name, value in list(vars(kind).items()):
            if value is old or (isinstance(value, staticmethod) and value.__func__ is old):
                self.set(kind, name, staticmethod(new))

    def on_undo(self, action: Callable[[], object]) -> None:
        """Run `action` when the changes are taken back."""
        self._undo.append(action)

    def undo(self) -> None:
        """Take everything back; every step is tried, and the first error is raised when all are done."""
        first: BaseException | None = None
        while self._undo:
            try:
                self._undo.pop()()
            except Exception as error:
                first = first or error
        if first is not None:
            raise first


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the other finders find a watched module and runs its callbacks after the body."""

    def __init__(self) -> None:
        self.callbacks: dict[str, list[Callable[[ModuleType], object]]] = {}
        self._busy = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a watched module, its loader made to run the callbacks."""
        if fullname not in self.callbacks or getattr(self._busy, "name", None) == fullname:
            return None
        self._busy.name = fullname
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.name = None
        loader = getattr(spec, "loader", None)
        if spec is None or loader is None or not hasattr(loader, "exec_module"):
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            loader.exec_module = execute
            for callback in self.callbacks.pop(fullname, ()):
                callback(module)

        loader.exec_module = exec_module
        return spec


def after_import(patches: Patches, name: str, callback: Callable[[ModuleType], object]) -> None:
    """Call `callback(module)` right after the body of module `name` has run; now, if it has.

    The hook imports nothing: a module that the program never imports stays unimported.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        callback(module)
        return
    watcher = next((finder for finder in sys.meta_path if isinstance(finder, _Watcher)), None)
    if watcher is None:
        watcher = _Watcher()
        sys.meta_path.insert(0, watcher)
    waiting = watcher.callbacks.setdefault(name, [])
    waiting.append(callback)
    patches.on_undo(lambda: waiting.remove(callback) if callback in waiting else None)
