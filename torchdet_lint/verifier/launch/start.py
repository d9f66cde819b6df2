"""The environment of a Python process of a verified program -> what is applied before the program's own code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.verifier.remedies.context import Context


class Started:
    """Marks this process as started, and keeps what was applied."""

    contexts: tuple[Context, ...] | None = None


def start() -> None:
    """Apply the interventions that the environment names, once a process."""
    if Started.contexts is not None:
        return
    from torchdet_lint.verifier.launch.interventions import from_environment
    from torchdet_lint.verifier.patching.inheritance import EVENTS, LINES, RECORD, RESUME, WITNESS
    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.recording import onset

    if WITNESS in os.environ:
        from torchdet_lint.verifier.recording import witness

        # Only in this process: a child would overwrite what it wrote.
        witness.install(Patches(), Path(os.environ.pop(WITNESS)))
        Started.contexts = ()
    if LINES in os.environ:
        from torchdet_lint.verifier.recording.watching import reached

        reached.install(os.environ[LINES])
        Started.contexts = ()
    if RESUME in os.environ:
        from torchdet_lint.verifier.steps import resuming

        resuming.install(Patches(), os.environ[RESUME])
        Started.contexts = ()
    interventions = from_environment(os.environ)
    if interventions:
        from torchdet_lint.verifier.patching import reach
        from torchdet_lint.verifier.patching.events import Reporter
        from torchdet_lint.verifier.remedies import fixes, stress

        reporter = Reporter(os.environ.get(EVENTS, ""))
        applied = []
        if interventions.stress:
            applied.append(stress.install(interventions.stress, interventions.fixes, reporter))
        applied.append(fixes.install(interventions.fixes, interventions.seed, reporter))
        reach.watch(applied[-1].patches, reporter)
        if interventions.strict:
            from torchdet_lint.verifier.recording import strict

            strict.install(applied[-1].patches)
        if interventions.tick:
            from torchdet_lint.verifier.remedies import clock

            clock.install(applied[-1].patches, interventions.tick)
        Started.contexts = tuple(applied)
    if RECORD in os.environ:
        # After the fixes: what they do to torch is no part of the program.
        onset.from_environment()
        Started.contexts = Started.contexts or ()


def start_safely() -> None:
    """`start`, and one clear line where it fails: a process that is not what it claims to be must not run on."""
    try:
        start()
    except Exception as error:
        print(
            f"torchdet-lint: the interventions could not be applied: {type(error).__name__}: {error}", file=sys.stderr
        )
        sys.stderr.flush()
        os._exit(2)
