"""The working folder of a program -> a copy of it for each run, and which files each run left behind there.

A program that writes into its folder would else find, in run B, what run A left, and would write over the user's own
results. All copies stand at one path in turn, so that a program cannot tell the runs apart by it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.verifier.verification.above import changes_path, named_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_BYTES = 2 << 30
MOST_FILES = 50_000
_LINKED = frozenset({".git", ".hg", ".svn", "node_modules"})
_NOT_FOUND = re.compile(r"No module named '(?P<module>[^'.]+)|No such file or directory: '(?P<path>[^']+)'")
_FRAME = re.compile(r'^\s*File "([^"]+)", line \d+', re.MULTILINE)
_OF_SOURCE = re.compile(
    r"^(?:SyntaxError|IndentationError|TabError|NameError|AttributeError|TypeError|ImportError|ModuleNotFoundError)\b",
    re.MULTILINE,
)
"""What a program raises that is wrong itself, or misses a module."""
_WORD = re.compile(r"[^\s'\"<>(),;=]+")
_LEFT_OUT = frozenset({"__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".torchdet_cache"})

State = dict[str, tuple[int, int, int]]
"""File -> size, time of the last change, inode."""


class Scan(NamedTuple):
    """A folder: its files, what is linked and not copied, and how much it holds."""

    files: State
    folders: tuple[str, ...]
    linked: tuple[str, ...]
    size: int


def scan(folder: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> Scan | None:
    """What stands in `folder`; None where that is more than the bounds, or cannot be read.

    Folders of version control and of virtual environments are not entered.
    """
    files: State = {}
    folders: list[str] = []
    linked: list[str] = []
    size = 0
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
            for entry in listed:
                name = f"{inside}{entry.name}"
                about = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    if entry.name in _LINKED or Path(entry.path, "pyvenv.cfg").exists():
                        linked.append(name)
                    elif entry.name not in _LEFT_OUT:
                        folders.append(name)
                        waiting.append(f"{name}/")
                elif stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
                    files[name] = (about.st_size, about.st_mtime_ns, about.st_ino)
                    size += about.st_size
                if size > most_bytes or len(files) + len(folders) > most_files:
                    return None
        except OSError:
            return None
    return Scan(files, tuple(sorted(folders)), tuple(sorted(linked)), size)


class Workspace:
    """Where the runs of a verification take place: in copies of `original`, or in it, for the reason `in_place`.

    `room` is an empty folder that this object may fill; what stands under `own` is no file of the program's.
    """

    def __init__(
        self, original: Path, room: Path, *, in_place: bool = False, own: Path | None = None, bounded: bool = True
    ) -> None:
        self.original = original.resolve()
        self.folder = self.original
        self.in_place = "asked for" if in_place else ""
        self._room = room.resolve()
        self._before: Scan | None = None
        inside = own is not None and own.resolve().is_relative_to(self.original) and own.resolve() != self.original
        self._own = f"{own.resolve().relative_to(self.original)}/" if own is not None and inside else "\0"
        bounds = (MOST_BYTES, MOST_FILES) if bounded else (1 << 62, 1 << 62)
        self._start = None if in_place else scan(self.original, *bounds)
        if self.in_place:
            return
        if self._start is None:
            self.in_place = f"it holds more than {MOST_BYTES >> 30} GiB or {MOST_FILES} files"
        elif shutil.disk_usage(self._room).free < 3 * self._start.size:
            self.in_place = f"{self._room} has no room for copies of it"
        else:
            self.folder = self._room / "work" / (self.original.name or "root")

    def begin(self) -> None:
        """Make the folder as it was at the beginning, for the next run."""
        if self.in_place:
            self._before = scan(self.original)
            return
        shutil.rmtree(self.folder.parent, ignore_errors=True)
        try:
            self._fill()
        except OSError as error:
            if self._before is not None:
                raise
            # Before the first run: all of them stay where they can be.
            self.in_place, self.folder = f"it cannot be copied: {error}", self.original
            self._before = scan(self.original)

    def _fill(self) -> None:
        assert self._start is not None
        self.folder.mkdir(parents=True)
        for name in self._start.folders:
            (self.folder / name).mkdir(exist_ok=True)
        for name in self._start.linked:
            (self.folder / name).symlink_to(self.original / name, target_is_directory=True)
        # What another program has removed since is not there for any run to find.
        for name in self._start.files:
            with contextlib.suppress(FileNotFoundError):
                self._copy(name)
        for name in reversed(self._start.folders):
            with contextlib.suppress(FileNotFoundError):
                shutil.copystat(self.original / name, self.folder / name)
        self._before = scan(self.folder, 1 << 62, 1 << 62)

    def _copy(self, name: str) -> None:
        source, target = self.original / name, self.folder / name
        if source.is_symlink():
            aim = source.readlink()
            try:
                inside = aim.is_absolute() or (source.parent / aim).resolve().is_relative_to(self.original)
            except (OSError, RuntimeError):  # a link to itself, which leads nowhere in the copy either
                inside = True
            target.symlink_to(aim if inside else (source.parent / aim).resolve())
        else:
            shutil.copy2(source, target)

    def end(self, kept: Path) -> dict[str, Path]:
        """The files that the run made or changed, by name, put aside under `kept`; those that it removed as they stood
        nowhere.
        """
        after = scan(self.folder, 1 << 62, 1 << 62) if not self.in_place else scan(self.folder)
        if after is None or self._before is None:
            return {}
        changed = [name for name, about in after.files.items() if self._before.files.get(name) != about]
        found = {}
        kept.mkdir(parents=True, exist_ok=True)
        for name in changed:
            target = kept / name
            target.parent.mkdir(parents=True, exist_ok=True)
            source = self.folder / name
            if not source.is_file() or name.startswith(self._own):
                continue
            if self.in_place or source.is_symlink():
                shutil.copy2(source, target)
            else:
                source.replace(target) if source.stat().st_dev == kept.stat().st_dev else shutil.move(source, target)
            found[name] = target
        return found

    def turned(self, word: str) -> str:
        """A word of the command line or of the environment with the folder's name turned to the copy's, and a path that
        leads out of the folder written in full: from the copy it would lead elsewhere.
        """
        if self.in_place:
            return word
        whole = rf"{re.escape(str(self.original))}(?=$|[{re.escape(os.sep + os.pathsep)}])"
        parts = re.split(f"([={re.escape(os.pathsep)}])", re.sub(whole, lambda _: str(self.folder), word))
        return "".join(self._in_full(part) if ".." in Path(part).parts else part for part in parts)

    def _in_full(self, part: str) -> str:
        path = Path(os.path.normpath(self.original / part))
        leads_out = not Path(part).is_absolute() and not path.is_relative_to(self.original)
        return str(path) if leads_out and os.path.exists(path) else part  # noqa: PTH110 - no error for a long word

    def turned_back(self, text: str) -> str:
        """A text that the program wrote with the copy's name turned to the folder's."""
        return text if self.in_place else text.replace(str(self.folder), str(self.original))

    def without(self, error: str, source: Sequence[str] = ()) -> str:
        """What a run did not find, as `error` says (folder's name turned back), though it stands above the folder, of
        which alone there are copies: where, and what to do. A module that nothing in the `source` makes Python look
        for there would not be found without a copy either.
        """
        if self.in_place:
            return ""
        named = _NOT_FOUND.search(error)
        relative = False
        if named is not None and named["module"]:
            found = self._module_above(named["module"])
        else:
            # Libraries have words of their own: `../data/a.csv not found.`
            words = [named["path"]] if named is not None else [word.rstrip(".:!?") for word in _WORD.findall(error)]
            word = next(filter(self._file_above, words), "")
            found, relative = self._file_above(word), not Path(word).is_absolute()
        if found is None or found.is_relative_to(self.original):
            return ""
        above = os.path.relpath(found.parent, self.original)
        if named is not None and named["module"] and source and not changes_path(self.original, source):
            return f"{found.name} is in {above}, where Python does not look: verify with PYTHONPATH={above}"
        # What is relative to the working folder would lead elsewhere from a folder above it.
        way = "verify with --in-place" if relative else "verify from a folder that holds both, or with --in-place"
        return f"the runs are made in a copy of this folder, and {found.name} is in {above}: {way}"

    def source(self, words: Iterable[str], error: str) -> list[str]:
        """The files of the folder that are among `words` of a command, or that `error` names on the way to it."""
        folder = f"{self.original}{os.sep}"
        files = dict.fromkeys([*words, *(name.removeprefix(folder) for name in _FRAME.findall(error))])
        return [name for name in files if self._start is not None and name in self._start.files]

    def beside(self, words: Iterable[str], error: str) -> str:
        """What the source of a program names above the folder and may have missed in the copy: where, and what to do.
        `words` are those of its command, and `error` (folder's name turned back) names the files on the way to it.
        """
        if self.in_place or _OF_SOURCE.search(error):
            return ""
        found = named_above(self.original, self.source(words, error))
        if found is None:
            return ""
        place, path = found
        return (
            f"the runs are made in a copy of this folder, from which {path} ({place}) leads elsewhere: if the program "
            "needs it, verify with --in-place"
        )

    def _module_above(self, name: str) -> Path | None:
        made = (one for folder in self.original.parents for one in (folder / f"{name}.py", folder / name))
        return next((one for one in made if one.is_file() or next(one.glob("*.py"), None)), None)

    def _file_above(self, word: str) -> Path | None:
        """What a path that leads out of the copy is outside of the folder; None for any other word."""
        path = Path(word)
        if path.is_relative_to(self.folder.parent):
            path = self.original.parent / path.relative_to(self.folder.parent)
        elif ".." not in path.parts:
            return None
        found = Path(os.path.normpath(self.original / path))
        return found if os.path.lexists(found) else None
