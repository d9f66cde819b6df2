"""Changes to live objects that can be put back, hooks that wait for an import, and what guards report."""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.util
import json
import os
import stat
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType

_BEGIN = b'{"code": '
_MISSING = object()
_OWN = str(Path(__file__).parents[1]) + os.sep
_STANDARD = str(Path(os.__file__).parent) + os.sep
_FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", "<frozen ", "<string>")


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


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that a guard refused or replaced: the rule, what the program asked for, and its line. Without a rule:
    something that is out of reach.
    """

    code: str
    text: str
    file: str
    line: int
    pid: int


class Reporter:
    """Where guards report: a file of JSON lines, standard error, or (`quiet`) only `events`. Each place once."""

    def __init__(self, path: str = "", *, quiet: bool = False) -> None:
        self.path = path
        self.quiet = quiet
        self.events: list[Event] = []
        self._seen: set[tuple[str, str, str, int]] = set()

    def report(self, code: str, text: str) -> None:
        """Report `text` for rule `code` at the line of the user's code that is running."""
        file, line = user_line()
        if (code, text, file, line) in self._seen:
            return
        self._seen.add((code, text, file, line))
        event = Event(code, text, file, line, os.getpid())
        self.events.append(event)
        if self.quiet:
            return
        if not self.path or not self._appended(json.dumps(dataclasses.asdict(event)) + "\n"):
            print(f"torchdet-lint: {file}:{line}: {code}{' ' if code else ''}{text}", file=sys.stderr)

    def _appended(self, record: str) -> bool:
        """Append to the file of events; a file of anything else is left alone, for the environment names it."""
        # One O_APPEND write a record: several processes share the file and lines must not mix.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(self.path, flags, 0o644)
        except OSError:
            return False
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.read(descriptor, len(_BEGIN)) not in (b"", _BEGIN):
                return False
            os.write(descriptor, record.encode())
            return True
        finally:
            os.close(descriptor)


def read_events(path: Path) -> tuple[Event, ...]:
    """The events in a file that guards wrote, in its order; a line cut short by a killed process is left out."""
    if not path.exists():
        return ()
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found.append(Event(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return tuple(found)


def is_users(file: str) -> bool:
    """Whether `file` is the user's own source: not ours, the standard library's or an installed package's."""
    return not file.startswith((_OWN, _STANDARD)) and not any(part in file for part in _FOREIGN)


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame of the user's own code above `frame`: not ours, the standard library's or a package's."""
    start = frame or sys._getframe(1)
    fallback: FrameType | None = None
    found: FrameType | None = start
    while found is not None:
        name = found.f_code.co_filename
        if is_users(name):
            return found
        if not name.startswith(_OWN):
            fallback = fallback or found
        found = found.f_back
    return fallback


def user_line() -> tuple[str, int]:
    """File and line of the innermost frame of the user's own code; `("?", 0)` where there is none."""
    frame = user_frame(sys._getframe(1))
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("?", 0)


def shown(file: str, roots: Iterable[Path]) -> str:
    """A file as the recorder shows it: relative to the innermost of the roots that hold it."""
    path = Path(file).resolve()
    for root in sorted(roots, key=lambda root: -len(root.parts)):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return Path(file).as_posix()
