"""The findings of a run -> fixed files: round after round in memory until nothing is left to fix, then written once."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.engine import run
from torchdet_lint.finding import WITHHELD
from torchdet_lint.fixes import patch
from torchdet_lint.reading import read
from torchdet_lint.source import writing
from torchdet_lint.source.decoding import decode
from torchdet_lint.source.modules import Still

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from torchdet_lint.config import Settings
    from torchdet_lint.engine.record import Record
    from torchdet_lint.engine.run import Gathered, Progress
    from torchdet_lint.finding import Finding, Result
    from torchdet_lint.source.discovery import File

ROUNDS = 12

_Key = tuple[str, str, str, int]


class Change(NamedTuple):
    """A file before and after, and how many findings of each (code, name) the difference cures."""

    old: bytes
    new: bytes
    fixed: Counter[tuple[str, str]]


class Repaired(NamedTuple):
    """What is left to report, and the files that change, by path. Nothing has been written."""

    result: Result
    changes: Mapping[str, Change]
    work: _Work

    def without(self, paths: Collection[str]) -> Repaired:
        """The same, had the files `paths` not been fixed."""
        return self.work.without(paths) if paths else self

    @property
    def texts(self) -> dict[str, bytes]:
        """The files as they are to be."""
        return {path: change.new for path, change in self.changes.items()}


def repair(
    paths: Sequence[str],
    settings: Settings,
    *,
    texts: Mapping[str, bytes] | None = None,
    files: Sequence[File] | None = None,
    progress: Progress | None = None,
) -> Repaired:
    """Fix what `settings` allow in `paths` and in the given `texts`, in memory. Raises as `engine.run` does."""
    return mend(run.gather(paths, settings, texts=texts, files=files, progress=progress), texts or {})


def mend(gathered: Gathered, texts: Mapping[str, bytes], *, unsafe: bool | None = None) -> Repaired:
    """Fix gathered files, in memory; those of `texts` are not read from disk. `unsafe` says whether unsafe fixes are
    made; without it the settings do."""
    work = _Work(gathered, texts, gathered.linter.settings.unsafe_fixes if unsafe is None else unsafe)
    for _ in range(ROUNDS):
        if not work.round():
            break
    else:
        work.give_up()
    return work.outcome()


def total(changes: Mapping[str, Change]) -> dict[tuple[str, str], int]:
    """How many findings of each (code, name) `changes` cure."""
    counts: Counter[tuple[str, str]] = Counter()
    for change in changes.values():
        counts.update(change.fixed)
    return dict(sorted(counts.items()))


def write(changes: Mapping[str, Change]) -> dict[str, str]:
    """Write the changed files; path and reason of each that was left as it was."""
    errors: dict[str, str] = {}
    for path, change in sorted(changes.items()):
        try:
            writing.replace(path, change.old, change.new)
        except writing.WriteError as error:
            errors[path] = str(error)
    return errors


class _Work:
    """The files of one run on their way to having nothing left to fix."""

    def __init__(self, gathered: Gathered, given: Mapping[str, bytes], unsafe: bool) -> None:
        self.gathered = gathered
        self.unsafe = unsafe
        self.old: dict[str, bytes] = dict(given)
        self.new: dict[str, bytes] = dict(given)
        self.fixed: dict[str, Counter[tuple[str, str]]] = {}
        self.reasons: dict[_Key, str] = {}
        self.moved: set[str] = set()
        self.result = run.conclude(gathered, self.new)

    def round(self) -> bool:
        """Make the fixes that can be made at once in each file; whether there was any."""
        todo: dict[str, list[Finding]] = {}
        for finding in self.result.findings:
            if self._wanted(finding):
                todo.setdefault(finding.filename, []).append(finding)
        if self._open(path for path in todo if path not in self.new):
            return self.round()
        self.moved = set()
        waiting = False
        for path, findings in sorted(todo.items()):
            waiting |= self._mend(path, findings)
        if self.moved:
            self._look_again(self.moved)
        return bool(self.moved) or waiting

    def _wanted(self, finding: Finding) -> bool:
        fix = finding.fix
        return (
            fix is not None
            and bool(fix.edits)
            and (fix.applicability == "safe" or self.unsafe)
            and _key(finding) not in self.reasons
        )

    def _open(self, paths: Iterable[str]) -> bool:
        """Read files about to be fixed; whether one of them is no longer what was linted."""
        stale = False
        for path in list(paths):
            try:
                data = read(path)
            except OSError as error:
                self.gathered.errors.append(f"{path}: {(error.strerror or str(error)).lower()}")
                del self.gathered.records[path]
                stale = True
                continue
            record = self.gathered.linter.record(path, data)
            stale = stale or record != self.gathered.records[path]
            self.gathered.records[path] = record
            self.old[path] = self.new[path] = data
        if stale:
            self.result = run.conclude(self.gathered, self.new)
        return stale

    def _mend(self, path: str, findings: Sequence[Finding]) -> bool:
        """Make fixes of one file; whether some could not be made because of others that turned out to be impossible."""
        source = decode(path, self.new[path])
        fixes = [finding.fix for finding in findings if finding.fix is not None]
        patched = patch.apply(source, fixes)
        for index, reason in patched.refused.items():
            self.reasons[_key(findings[index])] = reason
        if not patched.applied or patched.data == self.new[path]:
            return bool(patched.refused and patched.waiting)
        counts = self.fixed.setdefault(path, Counter())
        counts.update((findings[index].code, findings[index].name) for index in patched.applied)
        self.new[path] = patched.data
        self.moved.add(path)
        return False

    def _look_again(self, moved: Collection[str]) -> None:
        """The result with the files `moved` as they are now; those that rely on one of them are looked at again too."""
        gathered = self.gathered
        gathered.linter.stand_in(self.new)
        still = Still(gathered.linter.modules, gathered.linter.bytes_of)

        def now(path: str, record: Record) -> Record:
            if path not in moved and all(map(still.holds, record.relied)):
                return record
            data = gathered.linter.bytes_of(os.path.abspath(path))
            return record if data is None else gathered.linter.record(path, data)

        gathered.records.update([(path, now(path, record)) for path, record in gathered.records.items()])
        self.gathered = gathered._replace(context={path: now(path, one) for path, one in gathered.context.items()})
        self.result = run.conclude(self.gathered, self.new)

    def give_up(self) -> None:
        """Put back the files whose fixes would go on for ever."""
        for path in sorted(self.moved):
            self.gathered.errors.append(f"{path}: not fixed: its fixes do not come to an end, please report it")
        self._put_back(self.moved)

    def outcome(self) -> Repaired:
        """What is left, with the reason where a fix could not be made."""
        left = tuple(self._explained(finding) for finding in self.result.findings)
        changes = {
            path: Change(self.old[path], new, self.fixed[path])
            for path, new in sorted(self.new.items())
            if new != self.old[path]
        }
        return Repaired(self.result._replace(findings=left), changes, self)

    def without(self, paths: Collection[str]) -> Repaired:
        """The outcome with the files `paths` as they were."""
        self._put_back(paths)
        return self.outcome()

    def _put_back(self, paths: Collection[str]) -> None:
        for path in paths:
            self.new[path] = self.old[path]
            self.fixed.pop(path, None)
        self._look_again(paths)

    def _explained(self, finding: Finding) -> Finding:
        reason = self.reasons.get(_key(finding))
        if reason is None:
            return finding
        return msgspec.structs.replace(finding, fix=None, help=f"{finding.help}{WITHHELD}{reason}.")


def _key(finding: Finding) -> _Key:
    """What names a finding from one round to the next, though its row moves."""
    return finding.filename, finding.code, finding.message, finding.location.column
