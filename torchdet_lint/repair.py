"""Lint, fix, and lint again until nothing is left to fix; then write the files, or show a patch."""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint import engine, fix
from torchdet_lint.source import SourceFault, decode, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchdet_lint.config import Settings
    from torchdet_lint.engine import Progress, Result
    from torchdet_lint.finding import Finding

_PASSES = 10


class Repaired(NamedTuple):
    """What is left after the fixes, how many there were by code and name, and the bytes of every changed file, before
    and after."""

    result: Result
    fixed: Mapping[tuple[str, str], int]
    changed: Mapping[str, tuple[bytes, bytes]]


def repair(
    paths: Sequence[str],
    settings: Settings,
    *,
    texts: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> Repaired:
    """Fix what `settings` allow in `paths` and in the given `texts`, in memory; `write` puts it on disk."""
    overlay = dict(texts or {})
    originals = dict(overlay)
    fixed: Counter[tuple[str, str]] = Counter()
    errors: list[str] = []
    given_up: set[str] = set()
    result = engine.run(paths, settings, texts=overlay, progress=progress)
    for _ in range(_PASSES):
        step = _step(result, settings, overlay, given_up)
        if not step:
            break
        for path in step:
            originals.setdefault(path, overlay[path] if path in overlay else read(path))
        tried = engine.run(paths, settings, texts={**overlay, **{path: applied.data for path, applied in step.items()}})
        broken = _newly_broken(result, tried)
        for path, applied in step.items():
            if path in broken:
                given_up.add(path)
                errors.append(
                    f"{path}: a fix would have left a file that does not parse; nothing was changed, please report it"
                )
                continue
            overlay[path] = applied.data
            fixed.update((finding.code, finding.name) for finding in applied.done)
        result = engine.run(paths, settings, texts=overlay) if broken else tried
    changed = {
        path: (originals[path], overlay[path])
        for path in sorted(originals)
        if originals[path] != overlay.get(path, originals[path])
    }
    result = result._replace(errors=(*result.errors, *errors))
    return Repaired(result, dict(sorted(fixed.items())), changed)


def _step(
    result: Result, settings: Settings, overlay: Mapping[str, bytes], given_up: set[str]
) -> dict[str, fix.Applied]:
    wanted: dict[str, list[Finding]] = {}
    for finding in result.findings:
        if finding.fix is not None and (finding.fix.applicability == "safe" or settings.unsafe_fixes):
            wanted.setdefault(finding.filename, []).append(finding)
    step: dict[str, fix.Applied] = {}
    for path, findings in wanted.items():
        if path in given_up:
            continue
        try:
            data = overlay[path] if path in overlay else read(path)
            applied = fix.apply(decode(path, data), findings)
        except (OSError, SourceFault):
            continue
        if applied.done and applied.data != data:
            step[path] = applied
    return step


def _newly_broken(before: Result, after: Result) -> set[str]:
    known = {finding.filename for finding in before.findings if finding.code == engine.SYNTAX}
    return {finding.filename for finding in after.findings if finding.code == engine.SYNTAX} - known


def write(changed: Mapping[str, tuple[bytes, bytes]]) -> list[str]:
    """Put the changed files on disk, each at once and with its mode kept; returns a complaint for each that would not.

    A file that somebody else has changed since it was read is left alone.
    """
    errors: list[str] = []
    for path, (before, after) in changed.items():
        real = os.path.realpath(path)
        part = ""
        try:
            if read(real) != before:
                errors.append(f"{path}: changed while it was linted; not fixed")
                continue
            handle, part = tempfile.mkstemp(prefix=".torchdet-", dir=os.path.dirname(real))
            with os.fdopen(handle, "wb") as stream:
                stream.write(after)
            shutil.copymode(real, part)
            os.replace(part, real)
        except OSError as error:
            errors.append(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}")
            if part:
                with contextlib.suppress(OSError):
                    os.unlink(part)
    return errors


def patch(changed: Mapping[str, tuple[bytes, bytes]]) -> Iterator[bytes]:
    """A patch that `git apply` takes, from the current folder, line by line."""
    for path, (before, after) in changed.items():
        name = os.path.relpath(path).replace(os.sep, "/").encode()
        yield from difflib.diff_bytes(_unified, _lines(before), _lines(after), b"a/" + name, b"b/" + name)


def _unified(before: Sequence[str], after: Sequence[str], old: str, new: str, *_: object) -> Iterator[str]:
    """Unified diff of lines that keep their ends; git's mark stands where a file does not end in a newline."""
    for line in difflib.unified_diff(before, after, old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[bytes]:
    """Lines as git sees them: only a line feed ends one."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
