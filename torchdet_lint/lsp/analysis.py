"""Unsaved buffers -> findings and fixed texts, with one linter per configuration and one record per buffer."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint import config
from torchdet_lint.engine import repair, run
from torchdet_lint.engine.linter import Linter
from torchdet_lint.source.cache import content_hash
from torchdet_lint.source.discovery import Exclusion, discover
from torchdet_lint.source.modules import Still

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.config import Options, Settings
    from torchdet_lint.engine.record import Record
    from torchdet_lint.finding import Finding
    from torchdet_lint.lsp.work import Work


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
            self.read_anew()
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


def _below(root: str, finding: Finding) -> Finding:
    """`finding` with the paths in its texts as seen from `root`."""

    def told(text: str) -> str:
        return text.replace(os.path.join(root, ""), "")

    related = tuple(msgspec.structs.replace(other, message=told(other.message)) for other in finding.related)
    return msgspec.structs.replace(finding, message=told(finding.message), help=told(finding.help), related=related)


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
        self._frozen = False

    def forget(self) -> None:
        """Read every configuration anew: one of them has changed."""
        self._settings.clear()
        self._linters.clear()
        self._frozen = False
        self.forget_files()

    def forget_files(self) -> None:
        """Look anew at the files that are not open: one of them has changed."""
        self._left_out.clear()
        self._around.clear()
        for linter in self._linters.values():
            linter.stand_in({})

    def tidy(self) -> None:
        """Free what is left of the work so far, most of it cycles, while nobody waits for an answer.

        What stays, the catalogue above all, is looked at once.
        """
        if self._frozen:
            gc.collect()
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._frozen = True

    def settings(self, path: str) -> Settings:
        """The settings of the file `path`. Raises `ConfigError`."""
        folder = os.path.dirname(path)
        if folder not in self._settings:
            # One process: a server with threads must not fork.
            settings = config.judged_alone(config.merge(config.find([path]), self.options), path)
            self._settings[folder] = msgspec.structs.replace(settings, jobs=1)
        return self._settings[folder]

    def linter(self, settings: Settings) -> Remembering:
        """The linter of `settings`."""
        key = f"{settings.root}\0{settings.file}\0{settings.older or settings.torch}"
        if key not in self._linters:
            self._linters[key] = Remembering(settings)
        return self._linters[key]

    def catalogue(self, path: str) -> Catalogue:
        """The rules that the file `path` is judged by, the user's own among them. Raises `ConfigError` and
        `CatalogueError`."""
        return self.linter(self.settings(path)).catalogue

    def together(self, path: str, texts: Mapping[str, bytes]) -> dict[str, bytes]:
        """The buffers of `texts` that belong to the project of `path`, `path` among them."""
        mine = self.settings(path)
        return {
            other: data
            for other, data in texts.items()
            if (theirs := self.settings(other)).root == mine.root and theirs.file == mine.file
        }

    def findings(
        self, path: str, texts: Mapping[str, bytes], work: Work | None = None
    ) -> tuple[dict[str, list[Finding]], list[str]]:
        """The findings of every buffer in the project of `path`, by path, and complaints.

        Raises `ConfigError`, `CatalogueError`, and `Dropped` where `work` was dropped.
        """
        together = self.together(path, texts)
        project = {other: data for other, data in together.items() if not self._excluded(other)}
        found: dict[str, list[Finding]] = {other: [] for other in together}
        if not project:
            return found, []
        result = run.conclude(self._gathered(path, project, work), project)
        for finding in result.findings:
            found.setdefault(finding.filename, []).append(_below(self.settings(path).root, finding))
        return found, list(result.errors)

    def fixed(self, path: str, texts: Mapping[str, bytes], work: Work | None = None, *, unsafe: bool = False) -> bytes:
        """The text of the buffer `path` after its fixes. Raises as `findings` does."""
        project = self.together(path, texts)
        changes = repair.mend(self._gathered(path, project, work), project, unsafe=unsafe).changes
        return changes[path].new if path in changes else texts[path]

    def _gathered(self, path: str, project: Mapping[str, bytes], work: Work | None) -> run.Gathered:
        """What the buffers `project` yield one by one, and the files on disk that import one of them or are imported
        by those."""
        linter = self.linter(self.settings(path))
        linter.interrupt = work.go_on if work is not None else None
        gathered = run.gather_texts(linter, project)
        by = tuple((path, record.outline.imports) for path, record in gathered.records.items())
        key = f"{linter.settings.root}\0{linter.settings.file}"
        known = self._around.get(key)
        if known is None or known.by != by:
            progress = work.progress if work is not None else None
            found = run.around(linter, gathered.records, shown=str, progress=progress).records
            known = self._around[key] = Around(by, found)
        return gathered._replace(context=known.records)

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
