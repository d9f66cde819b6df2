"""Files x rules -> findings: one file after the other, from the cache or by workers, then all of them together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint import config
from torchdet_lint.engine import whole_program
from torchdet_lint.engine.filtering import blamed, grouped, reported
from torchdet_lint.engine.linter import Linter
from torchdet_lint.engine.record import Record
from torchdet_lint.engine.workers import collector_off, linted
from torchdet_lint.finding import Result
from torchdet_lint.program.importers import Context
from torchdet_lint.reading import read
from torchdet_lint.source.cache import Cache, content_hash, decoded, encoded
from torchdet_lint.source.data_files import names as data_names
from torchdet_lint.source.discovery import Exclusion, File, discover, walked
from torchdet_lint.source.modules import Still

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from torchdet_lint.config import Settings
    from torchdet_lint.finding import Finding

    Progress = Callable[[int, int], None]


class Looked(NamedTuple):
    """What files on disk yield one by one: their records and content hashes by path, and one line for each thing that
    went wrong."""

    records: dict[str, Record]
    contents: dict[str, str]
    errors: list[str]


class Gathered(NamedTuple):
    """What the files yield one by one: their records by path, one line for each thing that went wrong, the hashes of
    the files on disk, and the records of files that were not given but belong to the same programs."""

    linter: Linter
    records: dict[str, Record]
    errors: list[str]
    contents: dict[str, str]
    context: Mapping[str, Record] = {}


def run(
    paths: Sequence[str],
    settings: Settings,
    *,
    texts: Mapping[str, bytes] | None = None,
    files: Sequence[File] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Lint `paths`, and the `texts` that stand for files (standard input, files with fixes that are not written yet).

    `files` are those of `paths` where they are known. Raises `ConfigError` and `CatalogueError`.
    """
    return conclude(gather(paths, settings, texts=texts, files=files, progress=progress), texts)


def gather(
    paths: Sequence[str],
    settings: Settings,
    *,
    texts: Mapping[str, bytes] | None = None,
    files: Sequence[File] | None = None,
    progress: Progress | None = None,
) -> Gathered:
    """Look at every file by itself. Raises as `run` does."""
    given = dict(texts or {})
    linter = Linter(settings)
    linter.stand_in(given)
    errors: list[str] = []
    if files is None:
        files, errors = discover(paths, exclusion(settings))
    files = [file for file in files if file.path not in given]
    records = {path: linter.record(path, data) for path, data in given.items()}
    errors += [error for record in records.values() for error in record.errors]
    cache = Cache(settings.cache_dir, linter.key())
    looked = _look(files, linter, cache, progress)
    records |= looked.records
    beside = Looked({}, {}, []) if _whole(paths, settings) else around(linter, records)
    cache.save()
    contents = looked.contents | beside.contents
    return Gathered(linter, records, errors + looked.errors, contents, beside.records)


def exclusion(settings: Settings) -> Exclusion:
    """What the settings leave out."""
    return Exclusion(settings.root, settings.exclude, settings.default_excludes, settings.respect_gitignore)


def _whole(paths: Iterable[str], settings: Settings) -> bool:
    """Whether the whole project is among `paths`."""
    root = os.path.abspath(settings.root)
    return any(os.path.isdir(path) and os.path.join(root, "").startswith(_folder(path)) for path in paths)


def _folder(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")


def around(
    linter: Linter,
    records: Mapping[str, Record],
    shown: Callable[[str], str] = os.path.relpath,
    progress: Progress | None = None,
) -> Looked:
    """Sketches of the project's files that import one of `records`, and of those that they import, by the paths that
    `shown` makes of absolute ones. `progress` is told how many of those files are done."""
    settings = linter.settings
    root = os.path.abspath(settings.root)
    if not records.keys() - {"-"} or not config.starts_project(root):
        return Looked({}, {}, [])
    listed = walked(root, exclusion(settings))
    mine = {os.path.abspath(path): path for path in records}
    context = Context(listed, mine, linter.modules)
    outlines = {path: records[shown].outline for path, shown in mine.items()}
    wanted = context.importers()
    wanted |= context.imported(
        {*mine, *wanted}, lambda path: outlines[path].imports if path in outlines else context.names(path)
    )
    looked = Looked({}, {}, [])
    for done, path in enumerate(sorted(wanted), 1):
        linter.pause()
        try:
            data = read(path)
        except OSError:
            continue
        looked.records[shown(path)] = linter.sketch(path, data)
        looked.contents[shown(path)] = content_hash(data)
        if progress is not None:
            progress(done, len(wanted))
    return looked


def _look(files: Sequence[File], linter: Linter, cache: Cache, progress: Progress | None = None) -> Looked:
    """What each of `files` yields by itself, from the cache or else by the linter, and then kept there."""
    looked, pending = _from_cache(files, cache, linter)
    done = len(files) - len(pending)
    for path, content, record in linted(linter, pending):
        done += 1
        if progress is not None:
            progress(done, len(files))
        if isinstance(record, str):
            looked.errors.append(record)
            continue
        looked.records[path] = record
        looked.contents[path] = content
        looked.errors.extend(record.errors)
        if not record.errors and (data := encoded(record)) is not None:
            cache.put(os.path.abspath(path), content, data)
    return looked


def conclude(gathered: Gathered, texts: Mapping[str, bytes] | None = None) -> Result:
    """The result of a run whose files were gathered; `texts` are those that are not as they are on disk."""
    settings, records = gathered.linter.settings, gathered.records
    gathered.linter.stand_in(texts or {})

    def look(paths: Sequence[str]) -> Mapping[str, Record]:
        cache = Cache(settings.cache_dir, gathered.linter.key())
        looked = _look([File(path, os.path.getsize(path)) for path in paths], gathered.linter, cache)
        cache.save()
        return looked.records

    with collector_off():
        together, complaints = whole_program.conclude(
            gathered.linter,
            dict(sorted({**gathered.context, **records}.items())),
            texts or {},
            gathered.contents,
            gathered.context.keys(),
            look,
        )
    findings = _of_given(gathered.linter, together, records, texts or {})
    kept = findings
    if settings.baseline:
        from torchdet_lint.engine import baseline

        kept = baseline.subtract(settings.baseline, findings, texts)
    kept.sort(key=lambda finding: finding.sort_key)
    return Result(tuple(kept), len(records), tuple(sorted({*gathered.errors, *complaints})), len(findings) - len(kept))


def _of_given(
    linter: Linter, together: Mapping[str, Record], given: Collection[str], texts: Mapping[str, bytes]
) -> list[Finding]:
    """The findings of the `given` files, and what they bring about in others, at the function that does."""
    others = {path: record for path, record in together.items() if path not in given}
    caused = {path: record for path, record in others.items() if any(one.cause for one in record.findings)}
    mine = {path: record for path, record in together.items() if path in given}
    if caused:
        left = reported(linter, caused)
        if linter.settings.baseline:
            from torchdet_lint.engine import baseline

            left = baseline.subtract(linter.settings.baseline, left, texts)
        for cause, findings in grouped(left):
            mine[cause.filename] = blamed(linter, mine[cause.filename], findings, cause)
    return reported(linter, mine)


def _from_cache(files: Iterable[File], cache: Cache, linter: Linter) -> tuple[Looked, list[File]]:
    """What the cache knows of `files`, and those that it does not know."""
    looked = Looked({}, {}, [])
    still = Still(linter.modules, linter.bytes_of)
    pending: list[File] = []
    for file in files:
        absolute = os.path.abspath(file.path)
        if absolute not in cache:
            pending.append(file)
            continue
        try:
            content = content_hash(read(file.path))
        except OSError as error:
            looked.errors.append(f"{file.path}: {(error.strerror or str(error)).lower()}")
            continue
        record = decoded(cache.get(absolute, content), Record)
        if record is None or not record.sound(linter.run_codes) or not all(map(still.holds, record.relied)):
            pending.append(file)
        else:
            looked.records[file.path] = record
            looked.contents[file.path] = content
    return looked, pending


def examine(linter: Linter, texts: Mapping[str, bytes]) -> tuple[list[Finding], list[str]]:
    """Lint files that are given as bytes, all of them one project: the findings in order, and complaints.

    YAML among them is what programs are configured with."""
    result = conclude(gather_texts(linter, texts), texts)
    return list(result.findings), list(result.errors)


def gather_texts(linter: Linter, texts: Mapping[str, bytes]) -> Gathered:
    """Look at every file by itself, as `gather` does: files that are given as bytes."""
    linter.stand_in(texts)
    with collector_off():
        records = {path: linter.record(path, texts[path]) for path in sorted(texts) if not data_names([path])}
    return Gathered(linter, records, [error for record in records.values() for error in record.errors], {})
