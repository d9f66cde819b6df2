"""Given files of a project -> the files that import them, and those that they import: what their findings go by."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.outline import imports
from torchdet_lint.reading import read
from torchdet_lint.source.decoding import SourceFault, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torchdet_lint.source.discovery import File
    from torchdet_lint.source.modules import ModuleMap

_MOST_FILES = 20_000
_MOST_BYTES = 1 << 28


class Context:
    """The files of a project that were not given. Paths are absolute."""

    def __init__(self, files: Iterable[File], given: Iterable[str], modules: ModuleMap) -> None:
        """`files` are all of the project; of very many, only so many are looked at."""
        self.given = frozenset(given)
        self.modules = modules
        self.files = {file.path: file for file in islice(files, _MOST_FILES) if file.path not in self.given}
        self._imports: dict[str, frozenset[str]] = {}
        self._names: dict[str, tuple[str, ...]] = {}

    def importers(self) -> set[str]:
        """The files that import a given one, directly or not."""
        texts: dict[str, bytes] = {}
        left = _MOST_BYTES
        for path, file in self.files.items():
            left -= file.size
            if left > 0:
                texts[path] = _bytes(path)
        found: set[str] = set()
        reached = set(self.given)
        frontier = reached
        while frontier:
            named = re.compile(b"|".join(re.escape(stem) for stem in sorted(_stems(frontier))))
            for path, data in texts.items():
                if path not in self._imports and named.search(data):
                    self._imports[path] = self._located(path, self._named(path, data))
            frontier = {path for path, wanted in self._imports.items() if path not in reached and wanted & reached}
            reached |= frontier
            found |= frontier
        return found

    def imported(self, start: Iterable[str], imports_of: Callable[[str], Iterable[str]]) -> set[str]:
        """The files among those not given that `start` import, directly or not; `imports_of` gives the dotted names
        that a file imports."""
        found: set[str] = set()
        queue = sorted(start)
        while queue:
            path = queue.pop()
            for other in sorted(self._located(path, imports_of(path))):
                if other in self.files and other not in found:
                    found.add(other)
                    queue.append(other)
        return found

    def names(self, path: str) -> tuple[str, ...]:
        """The dotted names that the file `path` imports."""
        return self._named(path, _bytes(path)) if path not in self._names else self._names[path]

    def _named(self, path: str, data: bytes) -> tuple[str, ...]:
        try:
            found = self._names[path] = imports(decode(path, data).text)
        except SourceFault:
            found = self._names[path] = ()
        return found

    def _located(self, path: str, names: Iterable[str]) -> frozenset[str]:
        places = (self.modules.locate(dotted, path) for dotted in names)
        return frozenset(place.path for place in places if place is not None)


def _stems(paths: Iterable[str]) -> set[bytes]:
    """Words of which one is in every file that imports one of `paths`."""
    found = set()
    for path in paths:
        folder, name = os.path.split(path)
        if name == "__init__.py":
            found |= {os.path.basename(folder).encode(), b"from ."}
        else:
            found.add(name.rpartition(".")[0].encode() or name.encode())
    return found


def _bytes(path: str) -> bytes:
    try:
        return read(path)
    except OSError:
        return b""
