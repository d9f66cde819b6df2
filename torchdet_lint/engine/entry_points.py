"""The records of the linted files -> those that a person starts, and what files import."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchdet_lint.config import Settings
    from torchdet_lint.engine.record import Record
    from torchdet_lint.program.files import ProjectFiles

TEST = re.compile(r"(?:test_.*|.*_test|conftest)\.py")


class EntryPoints:
    """The entry points among the linted files."""

    def __init__(self, records: Mapping[str, Record], settings: Settings, files: ProjectFiles) -> None:
        self.records = records
        self.settings = settings
        self.files = files
        self._imported: dict[str, set[str]] = {}

    def paths(self) -> list[str]:
        """The linted files that a person starts, in order."""
        named = self.named
        found, perhaps = [], []
        for path in sorted(self.records):
            outline = self.records[path].outline
            name = os.path.basename(path)
            if path in named:
                found.append(path)
            elif TEST.fullmatch(name) or name in ("__init__.py", "setup.py"):
                continue
            elif outline.guard or name.endswith(".ipynb"):
                found.append(path)
            elif outline.works and name.endswith((".py", ".pyw")):
                perhaps.append(path)
        if perhaps:
            imported: set[str] = set()
            for path in sorted(self.records):
                imported |= self.imports(path)
            found += [path for path in perhaps if path not in imported]
        return sorted(found)

    def imports(self, path: str) -> set[str]:
        """The files that `path` imports, by its outline."""
        known = self._imported.get(path)
        if known is not None:
            return known
        found = self._imported[path] = set()
        for dotted in self.files.outline(path).imports:
            place = self.files.modules.locate(dotted, path)
            if place is not None and place.path != path:
                found.add(place.path)
        return found

    @functools.cached_property
    def named(self) -> set[str]:
        """Those that the configuration names."""
        patterns = self.settings.entry_points
        if not patterns:
            return set()
        import pathspec

        spec = pathspec.GitIgnoreSpec.from_lines(patterns)
        root = os.path.abspath(self.settings.root)
        return {path for path in self.records if spec.match_file(os.path.relpath(path, root).replace(os.sep, "/"))}

    def reached(self, files: Iterable[str]) -> set[str]:
        """The files that `files` import, directly or not, and themselves."""
        queue = list(files)
        seen = set(queue)
        while queue:
            for file in sorted(self.imports(queue.pop())):
                if file not in seen and file.endswith(".py"):
                    seen.add(file)
                    queue.append(file)
        return seen
