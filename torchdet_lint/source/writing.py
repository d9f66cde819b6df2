"""New content -> a file that somebody needs: whole or not at all, and never over what somebody else wrote."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIX = ".torchdet-tmp"
_LEFT_OVER = lazy(r"\..*\.(?P<process>\d+)-[0-9a-f]{16}" + re.escape(_SUFFIX))


class WriteError(Exception):
    """A file that was left as it was; the text is one line that names it."""


def replace(path: str, old: bytes, new: bytes) -> None:
    """Give the file `path`, which holds `old`, the content `new`. Raises `WriteError`, and leaves it alone.

    The content is written to a new file beside it, synced, and renamed over it; its mode, owner and extended
    attributes are kept, and a symbolic link goes on pointing to it.
    """
    target = os.path.realpath(path)
    try:
        before = os.stat(target)
        if not stat.S_ISREG(before.st_mode):
            raise WriteError(f"{path}: not written: not a regular file")
        if not before.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise WriteError(f"{path}: not written: the file is read-only")
        if _read(target) == new:
            return  # the same file by another name
        _sweep(target)
        with _beside(target) as temporary:
            _fill(temporary, new)
            _dress(temporary, target, before)
            if _read(target) != old:
                raise WriteError(f"{path}: not written: the file changed while it was being linted")
            os.replace(temporary, target)
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        raise WriteError(f"{path}: not written: {(error.strerror or str(error)).lower()}") from error


@contextlib.contextmanager
def _beside(target: str) -> Iterator[str]:
    """A name beside `target` that is gone afterwards. A process that is killed leaves the file to the next `_sweep`."""
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{_short(name)}.{os.getpid()}-{os.urandom(8).hex()}{_SUFFIX}")
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _short(name: str) -> str:
    """As much of the name of a file as leaves room for an ending: a name may have 255 bytes."""
    return name.encode("utf-8", "ignore")[:180].decode("utf-8", "ignore")


def put(path: str, content: bytes) -> None:
    """Give the file `path` this content, whole or not at all; a link in its place goes. Raises `OSError`.

    What killed runs left of the same file is swept away.
    """
    _sweep_parts(path)
    part = f"{path}.{os.getpid()}-{os.urandom(8).hex()}.part"
    with open(create(part, 0o666), "wb") as stream:
        try:
            stream.write(content)
            stream.close()
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise


def create(path: str, mode: int = 0o600) -> int:
    """A descriptor to write the new file `path`. Raises `FileExistsError` where anything has that name, a link too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, mode)


def _fill(path: str, content: bytes) -> None:
    handle = create(path)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _dress(path: str, target: str, before: os.stat_result) -> None:
    """Owner, extended attributes and mode of `target`, as far as this process may give them."""
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(path, before.st_uid, before.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                os.setxattr(path, name, os.getxattr(target, name))
    os.chmod(path, stat.S_IMODE(before.st_mode))


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as stream:
        return stream.read()


def _sync_folder(folder: str) -> None:
    """Make the renaming itself last; not every system lets a folder be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(target: str) -> None:
    """Remove what killed runs left beside `target`."""
    folder, name = os.path.split(target)
    begin = f".{_short(name)}."
    for entry in os.listdir(folder):
        if not entry.endswith(_SUFFIX) or not entry.startswith(begin):
            continue
        match = _LEFT_OVER.fullmatch(entry)
        if match is not None and not _alive(int(match["process"])):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, entry))


def _sweep_parts(path: str) -> None:
    """Remove what runs left that were killed in `put(path)`."""
    folder, name = os.path.split(path)
    left = re.compile(re.escape(name) + r"\.(?P<process>\d+)-[0-9a-f]{16}\.part")
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder or os.curdir):
            match = left.fullmatch(entry)
            if match is not None and not _alive(int(match["process"])):
                os.unlink(os.path.join(folder, entry))


def _alive(process: int) -> bool:
    if process == os.getpid():
        return False
    if os.name == "nt":
        return True  # there signal 0 is no question but an event
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
