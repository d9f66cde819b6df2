"""`torchdet-lint baseline`: the present findings -> a file that later runs subtract."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdet_lint.cli.console import CLEAN, UsageError, fail, say
from torchdet_lint.cli.options import settings_of

if TYPE_CHECKING:
    import argparse

    from torchdet_lint.config import Settings


def baseline(given: argparse.Namespace) -> int:
    """Write the baseline; the exit status."""
    import msgspec

    from torchdet_lint.engine import baseline, run

    paths = given.paths or [os.curdir]
    settings, complaints = settings_of(given, paths)
    target = _target(given, settings)
    result = run.run(paths, msgspec.structs.replace(settings, baseline=""))
    for error in (*complaints, *result.errors):
        fail(error)
    if complaints or result.errors:
        return fail(f"baseline: {os.path.relpath(target)} is left as it was: not everything could be looked at")
    if not result.files:
        return fail(f"baseline: no Python file or notebook found in {', '.join(paths)}")
    try:
        number = baseline.write(target, result.findings)
    except OSError as error:
        return fail(f"baseline: {target}: {(error.strerror or str(error)).lower()}")
    if not given.quiet:
        say(f"Wrote {number} finding{'s' * (number != 1)} to {os.path.relpath(target)}.")
        if settings.baseline != target:
            say(f"`--baseline {os.path.relpath(target)}`, or `baseline` in the configuration, subtracts them.")
    return CLEAN


def _target(given: argparse.Namespace, settings: Settings) -> str:
    """The file to write. What only the configuration names may not lead out of the project, nor be something else."""
    from torchdet_lint.config.merge import inside
    from torchdet_lint.engine import baseline

    named: str = given.output_file or given.baseline or ""
    if named:
        target = os.path.realpath(named)
        if os.path.isfile(target) and os.path.getsize(target) and not baseline.is_one(target):
            raise UsageError(f"baseline: {named} is no baseline, and is not written over; name another file")
        return target
    target = settings.baseline or os.path.join(settings.root, ".torchdet-baseline.json")
    if os.path.islink(target) or not inside(target, settings.root):
        reason = "a link" if os.path.islink(target) else "outside of the project"
    elif os.path.lexists(target) and not baseline.is_one(target):
        reason = "there, and no baseline"
    else:
        return target
    raise UsageError(f"baseline: {target} is {reason}; name the file with --output-file")
