"""`torchdet-lint baseline`: the present findings -> a file that later runs subtract."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdet_lint.cli.console import CLEAN, FAILED, fail, say
from torchdet_lint.cli.options import settings_of

if TYPE_CHECKING:
    import argparse


def baseline(given: argparse.Namespace) -> int:
    """Write the baseline; the exit status."""
    import msgspec

    from torchdet_lint.engine import baseline, run

    paths = given.paths or [os.curdir]
    settings, complaints = settings_of(given, paths)
    target = os.path.abspath(given.output_file) if given.output_file else settings.baseline
    target = target or os.path.join(settings.root, ".torchdet-baseline.json")
    result = run.run(paths, msgspec.structs.replace(settings, baseline=""))
    for error in (*complaints, *result.errors):
        fail(error)
    try:
        number = baseline.write(target, result.findings)
    except OSError as error:
        return fail(f"baseline: {target}: {(error.strerror or str(error)).lower()}")
    if not given.quiet:
        say(f"Wrote {number} finding{'s' * (number != 1)} to {os.path.relpath(target)}.")
        if settings.baseline != target:
            say(f"`--baseline {os.path.relpath(target)}`, or `baseline` in the configuration, subtracts them.")
    return FAILED if complaints or result.errors else CLEAN
