"""Paths or source text -> findings and fixed text, for programs that use the linter as a library."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint import config
from torchdet_lint.engine import projects, repair, run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdet_lint.finding import Finding


class LintError(Exception):
    """A run that could not look at everything; the text has one line for each thing that went wrong."""


def lint(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ".", **options: Any) -> list[Finding]:
    """The findings in files and folders, in the order of every report.

    `options` are the keys of the configuration with underscores (`select=["TDL3"]`, `torch_version="2.4"`) and win over
    it; `isolated=True` reads none. Nothing is written but the cache, and that not with `cache_dir=""`.

    Raises `torchdet_lint.config.ConfigError` for an option or a configuration that cannot be used, and `LintError` for
    a path that cannot be read.
    """
    given = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    isolated = bool(options.pop("isolated", False))
    flags = _options(options)
    base = _merged(config.isolated(given) if isolated else config.find(given), flags)
    top = config.top_of(given)
    known: dict[str, config.Configuration | None] = {}

    def nearest(folder: str) -> config.Settings | None:
        found = None if isolated else config.nested(folder, top, known)
        return _merged(found, flags) if found is not None and found.file else None

    parts, errors = projects.parts(given, base, nearest, requirements=not isolated)
    result = projects.together((run.run(given, part.settings, files=part.files) for part in parts), errors)
    if result.errors:
        raise LintError("\n".join(result.errors))
    return list(result.findings)


def lint_source(text: str | bytes, filename: str = "source.py", **options: Any) -> list[Finding]:
    """The findings in `text`, as if it stood in the file `filename`, which need not be there. Raises as `lint` does."""
    settings, data = _for_text(text, filename, options)
    result = run.run([], settings, texts={filename: data})
    if result.errors:
        raise LintError("\n".join(result.errors))
    return list(result.findings)


def fix_source(text: str, filename: str = "source.py", *, unsafe: bool = False, **options: Any) -> str:
    """`text` after the safe fixes, with `unsafe` after the unsafe ones too. Raises as `lint` does."""
    settings, data = _for_text(text, filename, options)
    settings = msgspec.structs.replace(settings, fix=True, unsafe_fixes=unsafe)
    repaired = repair.repair([], settings, texts={filename: data})
    if repaired.result.errors:
        raise LintError("\n".join(repaired.result.errors))
    return repaired.changes[filename].new.decode() if filename in repaired.changes else text


def _for_text(text: str | bytes, filename: str, options: dict[str, Any]) -> tuple[config.Settings, bytes]:
    isolated = bool(options.pop("isolated", False))
    settings = _merged(config.isolated([filename]) if isolated else config.find([filename]), _options(options))
    if not isolated:
        settings = config.judged_alone(settings, filename)
    return settings, text if isinstance(text, bytes) else text.encode()


def _options(options: dict[str, Any]) -> config.Options:
    for name in options:
        if name not in config.Options.__struct_fields__:
            raise config.ConfigError(f"no option {name!r}{config.nearest(name, config.Options.__struct_fields__)}")
    try:
        return msgspec.convert({name.replace("_", "-"): value for name, value in options.items()}, config.Options)
    except msgspec.ValidationError as error:
        raise config.ConfigError(str(error)) from error


def _merged(found: config.Configuration, flags: config.Options) -> config.Settings:
    settings = config.merge(found, flags)
    return msgspec.structs.replace(settings, cache_dir="") if flags.cache_dir == "" else settings
