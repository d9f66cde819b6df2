"""`--add-noqa`: the findings of a run -> comments in the sources that silence them, or a patch with these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.cli import annotate
from torchdet_lint.cli.console import CLEAN, FAILED, UsageError, fail, say
from torchdet_lint.engine import repair
from torchdet_lint.engine.linter import rule_names
from torchdet_lint.fixes import patch
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from torchdet_lint.config import Settings
    from torchdet_lint.finding import Result

_BEGINS_WITH_A_CODE = lazy(r"[A-Za-z]+[0-9]+(?![\w-])")


def checked_reason(reason: str) -> str:
    """The reason that `--add-noqa=` gave. Raises `UsageError` for one that would end the comment or begin its list."""
    told = reason.strip()
    if not told.isprintable() or "#" in told or _BEGINS_WITH_A_CODE.match(told) or told in rule_names().values():
        raise UsageError("--add-noqa: the reason must be one line, without `#`, that does not begin with a code")
    return told


def add_noqa(
    given: argparse.Namespace,
    settings: Settings,
    result: Result,
    show_patch: Callable[[argparse.Namespace, bytes], None],
) -> int:
    """Silence the findings of `result` by comments; the exit status."""
    for error in result.errors:
        fail(error)
    names = {name: code for code, name in rule_names(settings.rule_files).items()}
    annotated = annotate.annotate(result.findings, names, checked_reason(given.add_noqa))
    changes, unwritten = annotated.changes, {}
    if given.diff:
        show_patch(given, b"".join(patch.diff(path, one.old, one.new) for path, one in sorted(changes.items())))
    else:
        unwritten = repair.write(changes)
        for reason in unwritten.values():
            fail(reason)
    number = sum(sum(change.fixed.values()) for path, change in changes.items() if path not in unwritten)
    if not given.quiet:
        done = "Would suppress" if given.diff else "Suppressed"
        files = len(changes) - len(unwritten)
        say(f"{done} {number} finding{'s' * (number != 1)} in {files} file{'s' * (files != 1)}.")
        for finding in annotated.left:
            place = f"{finding.filename}:{finding.location.row}"
            say(f"{place}: {finding.code} stays: no comment there can suppress it.")
    return FAILED if result.errors or unwritten else CLEAN
