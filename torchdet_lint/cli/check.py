"""`torchdet-lint check`: paths and options -> a report, and with `--fix` or `--diff` what was or would be changed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.cli.console import (
    CLEAN,
    FAILED,
    FINDINGS,
    Progress,
    UsageError,
    ending,
    fail,
    flush,
    paint,
    patch_lines,
    say,
    wants_colour,
    width_of,
)
from torchdet_lint.cli.options import nearest_of, settings_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from torchdet_lint.config import Settings
    from torchdet_lint.engine.projects import Part
    from torchdet_lint.finding import Result


def check(given: argparse.Namespace) -> int:
    """Lint, and fix where that was asked for; the exit status. With `--watch` again and again."""
    if given.watch:
        from torchdet_lint.cli.watch import watch

        settings, _ = settings_of(given, given.paths or [os.curdir])
        named = [path if os.path.isdir(path) else os.path.dirname(path) for path in given.paths]
        folders = {os.path.realpath(path or os.curdir) for path in (settings.root, *named)}
        return watch(given, _once, sorted(folders))
    return _once(given)


def _once(given: argparse.Namespace) -> int:
    from torchdet_lint.config import judged_alone
    from torchdet_lint.engine import projects, run
    from torchdet_lint.source.snippets import Snippets

    if given.statistics and given.output_format not in (None, "json", "full", "concise", "grouped"):
        raise UsageError(f"--statistics: there are none as {given.output_format}, only as text or json")
    paths = given.paths or ([] if given.stdin_filename else [os.curdir])
    stdin = _stdin(given, paths)
    settings, complaints = settings_of(given, [stdin[0]] if stdin else paths)
    for complaint in complaints:
        fail(complaint)
    if given.verbose:
        _verbose(settings)
    if given.show_settings:
        with ending(CLEAN):
            _shown(settings)
        return CLEAN
    texts = dict([stdin]) if stdin else {}
    if stdin and not given.isolated:
        settings = judged_alone(settings, stdin[0])
    parts, errors = _parts(given, [] if stdin else paths, settings)
    if not stdin and not any(part.files for part in parts) and not errors and not settings.force_exclude:
        say(f"torchdet-lint: warning: no Python file or notebook found in {', '.join(paths)}", sys.stderr)
    _warn_of_entry_points(given, parts, paths)
    if given.show_files:
        return _files_shown(parts, errors, FAILED if complaints or errors else CLEAN)
    if given.add_noqa is not None:
        from torchdet_lint.cli.noqa import checked_reason

        if given.fix or stdin:
            raise UsageError("--add-noqa goes neither with --fix nor with standard input")
        checked_reason(given.add_noqa)
    elif settings.fix or given.diff:
        return max(_fixed(given, paths, settings, parts, errors, texts), FAILED if complaints else CLEAN)
    with Progress(quiet=given.quiet) as progress:
        results = [
            run.run([] if stdin else paths, part.settings, texts=texts, files=part.files, progress=progress.step)
            for part in parts
        ]
    result = projects.together(results, errors)
    given.rule_files = _rule_files(parts)
    if given.add_noqa is not None:
        from torchdet_lint.cli.noqa import add_noqa

        return max(add_noqa(given, settings, result, show_patch), FAILED if complaints else CLEAN)
    result = _with_evidence(given, result)
    for error in result.errors:
        fail(error)
    status = FINDINGS if _failing(result, settings) and not given.exit_zero else CLEAN
    if complaints or result.errors:
        status = FAILED
    with ending(status):
        _write(given, settings, result, Snippets(texts))
    return status


def _warn_of_entry_points(given: argparse.Namespace, parts: Sequence[Part], paths: Sequence[str]) -> None:
    from torchdet_lint.engine import projects

    for settings, pattern in projects.without_entry_points(parts, paths):
        where = f"{settings.file}: " if settings.file and given.entry_points is None else "--"
        say(f"torchdet-lint: warning: {where}entry-points: nothing matches {pattern!r}", sys.stderr)


def _files_shown(parts: Sequence[Part], errors: Sequence[str], status: int) -> int:
    """Print the files that would be linted, and what cannot be read; `status` is the exit status."""
    for error in errors:
        fail(error)
    with ending(status):
        for path in sorted(file.path for part in parts for file in part.files):
            say(path)
    return status


def _with_evidence(given: argparse.Namespace, result: Result) -> Result:
    if given.evidence is None:
        return result
    from torchdet_lint.cli.evidence import with_evidence

    return with_evidence(result, given.evidence)


def _parts(given: argparse.Namespace, paths: Sequence[str], settings: Settings) -> tuple[list[Part], list[str]]:
    """The files of each configuration. With --config or --isolated there is but one."""
    from torchdet_lint.engine import projects

    nearest = (lambda _: None) if given.config or given.isolated else nearest_of(given, paths)
    return projects.parts(paths, settings, nearest, requirements=not given.isolated)


def _rule_files(parts: Sequence[Part]) -> tuple[tuple[str, ...], ...]:
    """The user's own rule files of each configuration, where it has some."""
    return tuple(sorted({part.settings.rule_files for part in parts} - {()}))


def _shown(settings: Settings) -> None:
    """Print what holds, one key a line."""
    import msgspec

    for name, value in msgspec.to_builtins(settings).items():
        told = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        say(f"{name.replace('_', '-')}: {told}")


def _failing(result: Result, settings: Settings) -> bool:
    return any(settings.fails(finding.severity) for finding in result.findings)


def _stdin(given: argparse.Namespace, paths: Sequence[str]) -> tuple[str, bytes] | None:
    if "-" not in paths and given.stdin_filename is None:
        return None
    if list(paths) not in ([], ["-"]):
        raise UsageError("`-` and --stdin-filename read standard input; name no other path with them")
    name: str = given.stdin_filename or "-"
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise UsageError("--stdin-filename: the name is not UTF-8 text") from error
    return name, sys.stdin.buffer.read()


def _verbose(settings: Settings) -> None:
    say(f"configuration: {settings.file or 'none'} (project {settings.root})", sys.stderr)
    say(f"target: torch {settings.torch[0]}.{settings.torch[1]} on {', '.join(settings.devices)}", sys.stderr)
    from torchdet_lint.source.cache import refusal

    refused = refusal(settings.cache_dir) if settings.cache_dir else ""
    say(f"cache: {settings.cache_dir or 'none'}{f' (not used: {refused})' if refused else ''}", sys.stderr)


def _write(given: argparse.Namespace, settings: Settings, result: Result, snippets: Any, stream: Any = None) -> None:
    """Report `result` to the file that was asked for, else to `stream` (default: standard output)."""
    from torchdet_lint import report
    from torchdet_lint.report import text

    quiet = given.quiet or bool(result.errors) or not result.files
    width = 0 if given.output_file else width_of(stream or sys.stdout)
    wanted = report.Report(result, snippets, quiet, given.rule_files, getattr(given, "fixed", None), width)
    name: str = settings.output_format
    if given.statistics:
        name = "json-statistics" if name == "json" else "statistics"
    writer = report.writer(name)
    lines = writer(wanted)
    if given.output_file:
        try:
            with open(given.output_file, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{text.plain(line)}\n" for line in lines)
        except OSError as error:
            raise UsageError(f"--output-file: {given.output_file}: {(error.strerror or str(error)).lower()}") from error
        return
    paint(lines, given.color, stream or sys.stdout)


def show_patch(given: argparse.Namespace, patch: bytes) -> None:
    """The patch as it is for a file or a pipe, in colour for a terminal."""
    if given.output_file:
        try:
            with open(given.output_file, "wb") as file:
                file.write(patch)
        except OSError as error:
            raise UsageError(f"--output-file: {given.output_file}: {(error.strerror or str(error)).lower()}") from error
    elif wants_colour(given.color, sys.stdout):
        paint(patch_lines(patch), given.color, sys.stdout)
    else:
        flush(patch)


def _fixed(
    given: argparse.Namespace,
    paths: Sequence[str],
    settings: Settings,
    parts: Sequence[Part],
    errors: list[str],
    texts: dict[str, bytes],
) -> int:
    """`--fix` and `--diff`; the exit status is ruff's: a patch that is not empty is something to report."""
    from torchdet_lint.engine import projects, repair
    from torchdet_lint.fixes import patch
    from torchdet_lint.source.snippets import Snippets

    repaired = []
    with Progress(quiet=given.quiet) as progress:
        for part in parts:
            where = [] if texts else paths
            repaired.append(repair.repair(where, part.settings, texts=texts, files=part.files, progress=progress.step))
    changes = {path: change for one in repaired for path, change in one.changes.items()}
    result = projects.together((one.result for one in repaired), errors)
    errors = list(result.errors)
    if not (given.diff or texts):
        unwritten = repair.write(changes)
        errors += unwritten.values()
        if unwritten:
            repaired = [one.without(unwritten.keys() & one.changes.keys()) for one in repaired]
            changes = {path: change for one in repaired for path, change in one.changes.items()}
            result = projects.together(one.result for one in repaired)
    given.fixed = repair.total(changes)
    given.rule_files = _rule_files(parts)
    status = FAILED if errors else _after_fixing(given, bool(changes), _failing(result, settings))
    try:
        with ending(status):
            if given.diff:
                show_patch(given, b"".join(patch.diff(path, one.old, one.new) for path, one in sorted(changes.items())))
                if not given.quiet:
                    number = sum(given.fixed.values())
                    told = f"Would fix {number} finding{'s' * (number != 1)}." if number else "Nothing to fix."
                    say(told, sys.stderr)
            else:
                if texts:
                    flush(b"".join(changes[name].new if name in changes else data for name, data in texts.items()))
                snippets = Snippets({path: change.new for path, change in changes.items()})
                _write(given, settings, result, snippets, sys.stderr if texts else sys.stdout)
    finally:
        for error in errors:
            fail(error)
    return status


def _after_fixing(given: argparse.Namespace, changed: bool, failing: bool) -> int:
    """The exit status where nothing went wrong: `changed` files, or, with --diff, files that would be."""
    if given.exit_zero and not (given.exit_non_zero_on_fix and changed):
        return CLEAN
    if given.diff:
        return FINDINGS if changed else CLEAN
    return FINDINGS if failing or (given.exit_non_zero_on_fix and changed) else CLEAN
