"""Paths of the user -> the files to lint: folders are walked, with what is left out of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint import reading
from torchdet_lint.patterns import compiled
from torchdet_lint.source.tracked import Tracked, tracked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pathspec

    Ignores = tuple[tuple[str, pathspec.GitIgnoreSpec], ...]

SUFFIXES = (".py", ".pyi", ".pyw", ".ipynb")
EXCLUDED = frozenset(
    (
        ".bzr .direnv .eggs .git .git-rewrite .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv .pytest_cache "
        ".pytype .ruff_cache .svn .torchdet_cache .tox .venv .vscode __pycache__ __pypackages__ _build buck-out dist "
        "node_modules site-packages venv"
    ).split()
)


class File(NamedTuple):
    """A file to lint: the path shown and opened, and its size in bytes."""

    path: str
    size: int


class Exclusion(NamedTuple):
    """What is left out of a folder. `patterns` are the user's, in gitignore's language, relative to `root`;
    `defaults` says whether `EXCLUDED` names are left out too."""

    root: str = ""
    patterns: tuple[str, ...] = ()
    defaults: bool = True
    gitignore: bool = True


def discover(paths: Iterable[str], exclusion: Exclusion) -> tuple[list[File], list[str]]:
    """The files under `paths`, sorted by path and each once, and one line for every path that cannot be read.

    A file that is named is linted whatever its suffix and whatever is excluded; links to folders are not followed. Of
    several links to a file, and the file, the file is taken, or the first link where it is not among them.
    """
    found: dict[str, File] = {}
    errors: list[str] = []
    for path in paths:
        # An empty name, as of a variable of the shell that is not set, is not the current folder.
        shown = os.path.normpath(path) if path else path
        try:
            if os.path.isdir(shown):
                for file in _Walk(exclusion, errors).files(shown):
                    found.setdefault(file.path, file)
            else:
                found.setdefault(shown, File(shown, os.stat(shown).st_size))
        except (OSError, ValueError) as error:
            errors.append(f"{path or repr(path)}: {_reason(error)}")
    for path in sorted(found):
        try:
            os.path.abspath(path).encode()
        except UnicodeEncodeError:
            del found[path]
            errors.append(f"{path}: the path is not UTF-8 text; rename it")
    return _without_links(found), sorted(errors)


def _without_links(found: Mapping[str, File]) -> list[File]:
    """The files in order, none of them twice under several names."""
    links = [path for path in sorted(found) if os.path.islink(path)]
    if not links:
        return [found[path] for path in sorted(found)]
    taken = {os.path.realpath(path) for path in found.keys() - set(links)}
    again: set[str] = set()
    for path in links:
        real = os.path.realpath(path)
        if real in taken:
            again.add(path)
        taken.add(real)
    return [found[path] for path in sorted(found) if path not in again]


def walked(folder: str, exclusion: Exclusion) -> Iterator[File]:
    """The files below `folder`, in no particular order but always the same; what cannot be read is passed over."""
    return _Walk(exclusion, []).files(folder)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "a path cannot hold a NUL byte"


class _Walk:
    """One walk through a folder, with the `.gitignore` files that hold on the way down."""

    def __init__(self, exclusion: Exclusion, errors: list[str]) -> None:
        self.exclusion = exclusion
        self.errors = errors
        self.excluded = compiled(exclusion.patterns) if exclusion.patterns else None
        self.base = os.path.realpath(exclusion.root) if exclusion.patterns else ""
        self._tracked: dict[str, Tracked] = {}

    def files(self, folder: str) -> Iterator[File]:
        """The files below `folder`."""
        real = os.path.realpath(folder)
        ignores = tuple(self.above(real)) if self.exclusion.gitignore else ()
        todo = [("" if folder == os.curdir else folder, real, ignores)]
        while todo:
            yield from self._inside(*todo.pop(), todo)

    def _inside(self, shown: str, real: str, ignores: Ignores, todo: list[tuple[str, str, Ignores]]) -> Iterator[File]:
        """The files in one folder; the folders in it are added to `todo`."""
        if self.exclusion.gitignore:
            ignores = (*ignores, *_ignore_files(real))
        try:
            with os.scandir(shown or os.curdir) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.errors.append(f"{shown or os.curdir}: {_reason(error)}")
            return
        for entry in listed:
            name = entry.name
            try:
                folder = entry.is_dir(follow_symlinks=False)
                if not folder and not (name.endswith(SUFFIXES) and entry.is_file()):
                    continue
                if self.left_out(name, f"{real}/{name}", folder, ignores):
                    continue
                path = os.path.join(shown, name)
                if folder:
                    todo.append((path, f"{real}/{name}", ignores))
                else:
                    yield File(path, entry.stat().st_size)
            except OSError as error:
                self.errors.append(f"{os.path.join(shown, name)}: {_reason(error)}")

    def left_out(self, name: str, real: str, folder: bool, ignores: Ignores) -> bool:
        if folder and self.exclusion.defaults and name in EXCLUDED:
            return True
        slash = "/" if folder else ""
        if self.excluded is not None:
            relative = os.path.relpath(real, self.base).replace(os.sep, "/")
            if self.excluded.match_file(relative + slash):
                return True
        for base, spec in reversed(ignores):
            verdict: bool | None = spec.check_file(real[len(base) + 1 :].replace(os.sep, "/") + slash).include
            if verdict is not None:
                return verdict and not self._is_tracked(base, real, folder)
        return False

    def _is_tracked(self, base: str, real: str, folder: bool) -> bool:
        """Whether git tracks `real`, which an ignore file in `base` names: such a pattern means nothing to git then."""
        if base not in self._tracked:
            top = base
            while not os.path.exists(os.path.join(top, ".git")) and top != os.path.dirname(top):
                top = os.path.dirname(top)
            self._tracked[base] = self._tracked.get(top) or tracked(top, SUFFIXES)
            self._tracked.setdefault(top, self._tracked[base])
        known = self._tracked[base]
        return real in (known.folders if folder else known.files)

    def above(self, real: str) -> Iterator[tuple[str, pathspec.GitIgnoreSpec]]:
        """The ignore files between the top of the git repository and `real`, outermost first."""
        chain = [real]
        while not os.path.exists(os.path.join(chain[-1], ".git")):
            parent = os.path.dirname(chain[-1])
            if parent == chain[-1]:
                return
            chain.append(parent)
        for folder in reversed(chain[1:]):
            yield from _ignore_files(folder)


class Excluded:
    """Whether single files are left out: what a walk from the top of the project would not come to."""

    def __init__(self, exclusion: Exclusion) -> None:
        self.walk = _Walk(exclusion, [])
        self.root = os.path.realpath(exclusion.root)
        self._known: dict[str, Ignores | None] = {}

    def leaves_out(self, path: str) -> bool:
        """Whether the file `path` is left out."""
        folder, name = os.path.split(os.path.abspath(path))
        real = os.path.realpath(folder)
        ignores = self._ignores(real)
        return ignores is None or self.walk.left_out(name, f"{real}/{name}", False, ignores)

    def _ignores(self, folder: str) -> Ignores | None:
        """The ignore files that hold in `folder`; None where it is itself left out."""
        if folder not in self._known:
            gitignore = self.walk.exclusion.gitignore
            above: Ignores | None
            if folder == self.root or not folder.startswith(os.path.join(self.root, "")):
                above = tuple(self.walk.above(folder)) if gitignore else ()
            else:
                parent, name = os.path.split(folder)
                above = self._ignores(parent)
                if above is None or self.walk.left_out(name, folder, True, above):
                    above = None
            if above is not None and gitignore:
                above = (*above, *_ignore_files(folder))
            self._known[folder] = above
        return self._known[folder]


def _ignore_files(folder: str) -> Iterator[tuple[str, pathspec.GitIgnoreSpec]]:
    for name in (".git/info/exclude", ".gitignore"):
        try:
            text = reading.text(f"{folder}/{name}")
        except OSError:
            continue
        patterns = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if patterns:
            yield folder, compiled(patterns)
