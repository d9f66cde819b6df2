"""Paths -> the files of each project, by the configuration nearest to each file; results of projects -> one result."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.config import judged_for
from torchdet_lint.engine.run import exclusion
from torchdet_lint.finding import Result
from torchdet_lint.patterns import compiled
from torchdet_lint.source.discovery import Excluded, File, discover

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torchdet_lint.config import Required, Settings


class Part(NamedTuple):
    """Files that one configuration, and one release of torch, hold for."""

    settings: Settings
    files: tuple[File, ...]


def parts(
    paths: Sequence[str],
    settings: Settings,
    nearest: Callable[[str], Settings | None],
    *,
    requirements: bool = True,
) -> tuple[list[Part], list[str]]:
    """The files below `paths`, part by part, and one line for every path that cannot be read.

    `settings` hold where `nearest` gives none for the folder of a file. Without `requirements` no folder may require
    another release of torch than its project. Raises what `nearest` raises.
    """
    seen: dict[str, Required | None] = {}
    listed, errors = discover(paths, exclusion(settings))
    named = {os.path.normpath(path) for path in paths}
    found: dict[str, tuple[Settings, list[File], Excluded]] = {}
    base = Excluded(exclusion(settings))
    for file in listed:
        folder = os.path.dirname(os.path.abspath(file.path))
        own = nearest(folder)
        mine = judged_for(own or settings, folder, seen) if requirements else own or settings
        key = f"{mine.root}\0{mine.file}\0{mine.older or mine.torch}"
        if key not in found:
            found[key] = (mine, [], base if own is None else Excluded(exclusion(mine)))
        _, files, excluded = found[key]
        if file.path in named:
            if mine.force_exclude and excluded.leaves_out(file.path):
                continue
        elif own is not None and excluded.leaves_out(file.path):
            continue
        files.append(file)
    return [Part(mine, tuple(files)) for mine, files, _ in found.values()] or [Part(settings, ())], errors


def without_entry_points(parts: Iterable[Part], paths: Sequence[str]) -> list[tuple[Settings, str]]:
    """The patterns of entry points that fit no file, of the projects that lie below `paths` as a whole."""
    looked_at = [os.path.join(os.path.realpath(path), "") for path in paths if os.path.exists(path)]
    found: dict[str, Settings] = {}
    matched: set[str] = set()
    for part in parts:
        root = part.settings.root
        if not os.path.join(os.path.realpath(root), "").startswith(tuple(looked_at)):
            continue
        relative = [os.path.relpath(file.path, root).replace(os.sep, "/") for file in part.files]
        for pattern in part.settings.entry_points:
            found.setdefault(pattern, part.settings)
            if os.path.lexists(os.path.join(root, pattern.lstrip("/"))) or any(
                compiled((pattern,)).match_files(relative)
            ):
                matched.add(pattern)
    return [(settings, pattern) for pattern, settings in sorted(found.items()) if pattern not in matched]


def together(results: Iterable[Result], errors: Iterable[str] = ()) -> Result:
    """The results of all projects as one."""
    every = list(results)
    findings = [finding for result in every for finding in result.findings]
    findings.sort(key=lambda finding: finding.sort_key)
    complaints = {*errors, *(error for result in every for error in result.errors)}
    return Result(
        tuple(findings),
        sum(result.files for result in every),
        tuple(sorted(complaints)),
        sum(result.known for result in every),
    )
