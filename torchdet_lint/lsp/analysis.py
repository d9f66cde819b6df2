"""Unsaved buffers -> findings and fixed texts, with one linter per configuration and one record per buffer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint import config
from torchdet_lint.engine import repair, run
from torchdet_lint.engine.linter import Linter
from torchdet_lint.engine.workers import collector_off
from torchdet_lint.source.cache import Cache, content_hash
from torchdet_lint.source.discovery import Exclusion, discover
from torchdet_lint.source.modules import Still

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.config import Options, Settings
    from torchdet_lint.engine.record import Record
    from torchdet_lint.finding import Finding


class Known(NamedTuple):
    """The record of a buffer, and the hash of the text that it was made from."""

    content: str
    record: Record


class Remembering(Linter):
    """A linter that looks at a buffer again only where its text, or a file that its record relies on, has changed."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.known: dict[str, Known] = {}

    def record(self, path: str, data: bytes) -> Record:
        """All that the buffer `path` with the bytes `data` yields by itself."""
        content = content_hash(data)
        known = self.known.get(path)
        if known is None or known.content != content or not self._holds(known.record):
            known = self.known[path] = Known(content, super().record(path, data))
        return known.record

    def _holds(self, record: Record) -> bool:
        still = Still(self.modules, self.bytes_of)
        return all(map(still.holds, record.relied))


class Around(NamedTuple):
    """Files of the project that are not open, as the buffers' findings depend on them, and what they were chosen by:
    the buffers and what these import."""

    by: tuple[tuple[str, tuple[str, ...]], ...]
    records: dict[str, Record]


class Analysis:
    """What the server knows of the projects that its buffers belong to.

    `options` are the client's own, which win over the configuration, as flags do.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._settings: dict[str, Settings] = {}
        self._linters: dict[str, Remembering] = {}
        self._left_out: dict[str, bool] = {}
        self._around: dict[str, Around] = {}

    def forget(self) -> None:
        """Read every configuration anew: one of them has changed."""
        self._settings.clear()
        self._linters.clear()
        self._left_out.clear()
        self._around.clear()

    def settings(self, path: str) -> Settings:
        """The settings of the file `path`. Raises `ConfigError`."""
        folder = os.path.dirname(path)
        if folder not in self._settings:
            # One process: a server with threads must not fork.
            self._settings[folder] = msgspec.structs.replace(config.merge(config.find([path]), self.options), jobs=1)
        return self._settings[folder]

    def linter(self, settings: Settings) -> Remembering:
        """The linter of `settings`."""
        key = f"{settings.root}\0{settings.file}"
        if key not in self._linters:
            self._linters[key] = Remembering(settings)
        return self._linters[key]

    def together(self, path: str, texts: Mapping[str, bytes]) -> dict[str, bytes]:
        """The buffers of `texts` that belong to the project of `path`, `path` among them."""
        mine = self.settings(path)
        return {
            other: data
            for other, data in texts.items()
            if (theirs := self.settings(other)).root == mine.root and theirs.file == mine.file
        }

    def findings(self, path: str, texts: Mapping[str, bytes]) -> tuple[dict[str, list[Finding]], list[str]]:
        """The findings of every buffer in the project of `path`, by path, and complaints.

        Raises `ConfigError` and `CatalogueError`.
        """
        settings = self.settings(path)
        project = {other: data for other, data in self.together(path, texts).items() if not self._excluded(other)}
        found: dict[str, list[Finding]] = {other: [] for other in self.together(path, texts)}
        if not project:
            return found, []
        linter = self.linter(settings)
        findings, errors = run.examine(linter, project, self._records_around(linter, project))
        for finding in findings:
            found.setdefault(finding.filename, []).append(finding)
        return found, errors

    def _records_around(self, linter: Remembering, project: Mapping[str, bytes]) -> dict[str, Record]:
        """The records of files on disk that import a buffer, and of those that these import."""
        linter.stand_in(project)
        with collector_off():
            records = {path: linter.record(path, data) for path, data in sorted(project.items())}
        by = tuple((path, record.outline.imports) for path, record in records.items())
        key = f"{linter.settings.root}\0{linter.settings.file}"
        known = self._around.get(key)
        if known is None or known.by != by:
            cache = Cache(linter.settings.cache_dir, linter.key())
            found = run.around(linter, cache, records, {}, shown=str)
            cache.save()
            for path in found:
                linter.known.pop(path, None)
            known = self._around[key] = Around(by, found)
        return known.records

    def fixed(self, path: str, texts: Mapping[str, bytes], *, unsafe: bool = False) -> bytes:
        """The text of the buffer `path` after its fixes."""
        settings = msgspec.structs.replace(self.settings(path), fix=True, unsafe_fixes=unsafe, cache_dir="", jobs=1)
        project = self.together(path, texts)
        changes = repair.repair([], settings, texts=project).changes
        return changes[path].new if path in changes else texts[path]

    def _excluded(self, path: str) -> bool:
        """Whether the configuration leaves the file out when its folder is linted."""
        if path not in self._left_out:
            settings = self.settings(path)
            exclusion = Exclusion(
                settings.root, settings.exclude, settings.default_excludes, settings.respect_gitignore
            )
            listed = {os.path.abspath(file.path) for file in discover([os.path.dirname(path)], exclusion)[0]}
            self._left_out[path] = os.path.exists(path) and path not in listed
        return self._left_out[path]
