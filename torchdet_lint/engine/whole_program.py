"""The records of all files -> what the rules about whole programs find, from the entry points on, and what becomes of
what the rules of single files left open; what was found is cached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.engine.outcome import Outcome, Settled, is_open
from torchdet_lint.engine.settled import merged
from torchdet_lint.reading import read
from torchdet_lint.regex import lazy
from torchdet_lint.source.cache import Cache, content_hash, decoded, encoded
from torchdet_lint.source.modules import Still

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from torchdet_lint.engine.linter import Linter
    from torchdet_lint.engine.record import Look, Record
    from torchdet_lint.finding import Finding
    from torchdet_lint.source.suppress import Rows

_TOKEN = lazy(r"\0([^\0]*)\0")


def conclude(
    linter: Linter,
    records: Mapping[str, Record],
    texts: Mapping[str, bytes],
    contents: Mapping[str, str],
    context: Collection[str] = (),
    look: Look = lambda _: {},
) -> tuple[Mapping[str, Record], list[str]]:
    """The records with what the files say together, and complaints.

    `texts` are files that are given as bytes, `contents` the content hashes of the others, both by the path shown;
    `context` are those of `records` that the user did not name, which are sketches; `look` gives such files' whole
    records.
    """
    paths = {os.path.abspath(path): path for path in records}
    if not paths:
        return records, []
    key = (*linter.key(), repr(linter.settings.entry_points), linter.settings.root)
    cache = Cache(_folder(linter, texts), key, "project")
    states = sorted(
        (path, contents.get(shown, ""), bool(records[shown].findings), _left(records[shown]), shown in context)
        for path, shown in paths.items()
    )
    state = content_hash(msgspec.json.encode(states))
    outcome = _known(cache, linter, state)
    if outcome is None:
        outcome, changed = Outcome(), False
        if _matters(linter, records):
            from torchdet_lint.engine.program_run import ProgramRun

            given = {os.path.abspath(path): data for path, data in texts.items()}
            by_path = {path: records[shown] for path, shown in paths.items()}
            unnamed = frozenset(map(os.path.abspath, context))
            summaries = Cache(_folder(linter, texts), key, "summaries")
            program = ProgramRun(linter, by_path, paths, given, summaries, unnamed, look)
            outcome = program.run()
            changed = any(
                content != contents.get(paths.get(path, ""), content) for path, content in program.read.items()
            )
        if not outcome.errors and not changed and (data := encoded(outcome)) is not None:
            cache.put(linter.settings.root, state, data)
            cache.save()

    def shown(text: str) -> str:
        return _TOKEN.sub(lambda match: paths.get(match[1]) or os.path.relpath(match[1]), text)

    found = {
        path: [(_readable(finding, shown), rows) for finding, rows in pairs] for path, pairs in outcome.findings.items()
    }
    together = {
        name: merged(records[name], found.get(path, []), outcome.settled.get(path, Settled()))
        for path, name in paths.items()
    }
    return together, [shown(error) for error in outcome.errors]


def _readable(finding: Finding, shown: Callable[[str], str]) -> Finding:
    """`finding` with the paths in it as the user is shown them."""
    related = tuple(
        msgspec.structs.replace(other, filename=shown(other.filename), message=shown(other.message))
        for other in finding.related
    )
    cause = finding.cause
    if cause is not None:
        cause = msgspec.structs.replace(cause, filename=shown(cause.filename))
    return msgspec.structs.replace(
        finding, message=shown(finding.message), help=shown(finding.help), related=related, cause=cause
    )


def _left(record: Record) -> list[tuple[str, Rows]]:
    """What the whole program has a say in, of what a file yields by itself."""
    pairs = zip(record.findings, record.rows, strict=True)
    return [(finding.code, rows) for finding, rows in pairs if is_open(finding)]


def _folder(linter: Linter, texts: Mapping[str, bytes]) -> str:
    """The cache folder; none where files are not as they are on disk."""
    return "" if texts else linter.settings.cache_dir


def _matters(linter: Linter, records: Mapping[str, Record]) -> bool:
    """Whether there may be a program, and a rule that has something to say about it."""
    startable = any(
        record.outline.guard or record.outline.works or path.endswith(".ipynb") for path, record in records.items()
    )
    if not (startable or linter.settings.entry_points or linter.settings.deterministic_algorithms):
        return False
    scopes = {linter.catalogue.rules[code].scope for code in linter.codes if code in linter.catalogue.rules}
    return "project" in scopes or any(is_open(finding) for record in records.values() for finding in record.findings)


def _known(cache: Cache, linter: Linter, state: str) -> Outcome | None:
    """What an earlier run found, if all that it went by is as it was: what is there, and what is not."""
    outcome = decoded(cache.get(linter.settings.root, state), Outcome)
    if (
        outcome is None
        or not all(finding.sound(linter.codes) for pairs in outcome.findings.values() for finding, _ in pairs)
        or any(linter.modules.state(folder) != known for folder, known in outcome.folders.items())
        or any(_content(path) != known for path, known in outcome.read.items())
        or not all(map(Still(linter.modules, linter.bytes_of).holds, outcome.relied))
    ):
        return None
    return outcome


def _content(path: str) -> str:
    try:
        return content_hash(read(path))
    except (OSError, ValueError):
        return ""
