"""The stack -> the line of the user's code that an op belongs to.

A frame is the program's own when its file lies under one of the program's roots and in no installed library; the line
of an op is that of the innermost such frame, else of the innermost frame that is not torch's. Frames of `torch.optim`
and of `torch.utils.data` on the way tell the phase.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType

TORCH, LIBRARY, OWN, OPTIMIZER, LOADER, INITIALIZER, SPLITTER, READER = range(8)
"""Kinds of file: torch's own (with five rooms of it that matter to the explanation), a library's, the program's."""

_HERE = str(Path(__file__).parents[1]) + os.sep


class Place(NamedTuple):
    """A line of source: `file` as it is shown (relative to a root where possible), `line` from 1, the function
    around.
    """

    file: str
    line: int
    function: str


def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib") if key in paths}
    found.update(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))
    return tuple(sorted(os.path.realpath(path) + os.sep for path in found if path))


class Classifier(dict[str, int]):
    """File name -> kind, worked out once a file. `roots` are the directories of the program's own code."""

    def __init__(self, roots: Iterable[str | Path], torch_directory: str) -> None:
        super().__init__()
        self.roots = tuple(sorted({os.path.realpath(root) + os.sep for root in roots}, key=len, reverse=True))
        self._torch = os.path.realpath(torch_directory) + os.sep
        self._installed = tuple(path for path in _installed() if not any(root.startswith(path) for root in self.roots))

    def __missing__(self, filename: str) -> int:
        kind = self[filename] = self._kind(filename)
        return kind

    def _kind(self, filename: str) -> int:
        if filename.startswith("<"):
            return TORCH if filename.startswith("<frozen") else LIBRARY
        path = os.path.realpath(filename)
        if path.startswith(_HERE):
            return TORCH
        if path.startswith(self._torch):
            return self._room(path[len(self._torch) :].replace(os.sep, "/"))
        if any(path.startswith(entry) for entry in self._installed) or "site-packages" + os.sep in path:
            return LIBRARY
        return OWN if any(path.startswith(root) for root in self.roots) else LIBRARY

    @staticmethod
    def _room(inside: str) -> int:
        if inside.startswith("optim/"):
            return OPTIMIZER
        if inside == "utils/data/dataset.py":
            return SPLITTER
        if inside.startswith("utils/data/"):
            return LOADER
        return {"nn/init.py": INITIALIZER, "serialization.py": READER}.get(inside, TORCH)

    def shown(self, filename: str) -> str:
        """The name of a file in reports: relative to the innermost root, with forward slashes."""
        path = os.path.realpath(filename) if not filename.startswith("<") else filename
        for root in self.roots:
            if path.startswith(root):
                return path[len(root) :].replace(os.sep, "/")
        return path.replace(os.sep, "/")


def line_of(code: CodeType, instruction: int) -> int:
    """The source line of the instruction at byte offset `instruction` of `code`."""
    found = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
        if start <= instruction and line is not None:
            found = line
    return found


class ForwardLines:
    """Sequence number of an autograd node -> the site of the op that made it, in a ring of bounded size.

    The number is per thread and grows by one a node; an entry that has been overwritten is not found, which costs a
    line and never gives a wrong one.
    """

    __slots__ = ("_mask", "_ring")

    def __init__(self, size: int = 1 << 17) -> None:
        import array

        self._ring = array.array("q", bytes(8 * size))
        self._mask = size - 1

    def put(self, sequence: int, site: int) -> None:
        """Remember `site` for the node `sequence`."""
        self._ring[sequence & self._mask] = (sequence & 0x7FFFFFFF) << 32 | site

    def get(self, sequence: int) -> int:
        """The site of node `sequence`, or -1."""
        entry = self._ring[sequence & self._mask]
        return entry & 0xFFFFFFFF if entry >> 32 == sequence & 0x7FFFFFFF and entry else -1
