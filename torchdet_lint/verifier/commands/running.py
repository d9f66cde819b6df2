"""The words behind `run` and `record` -> one run of a program, with fixes, or with a trace of it."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.verifier.commands.options import UsageError, record_parser, run_parser
from torchdet_lint.verifier.commands.words import FAILED, OK, codes, interventions, program_of, split

if TYPE_CHECKING:
    import argparse

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import ChildResult


def record(arguments: list[str]) -> int:
    """Run a program once and write the trace."""
    parser = record_parser()
    ours, words = split(parser, arguments)
    options = parser.parse_args(ours)
    from torchdet_lint.verifier.launch.interventions import EAGER, environment
    from torchdet_lint.verifier.launch.launch import run_child
    from torchdet_lint.verifier.trace import unwritable
    from torchdet_lint.verifier.trace.redact import redact

    program, asked = program_of(words), interventions(options, default=False)
    parent = options.output.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"torchdet-lint record: {parent}: no such folder")
    reason = unwritable(options.output)
    if reason:
        raise UsageError(f"torchdet-lint record: {options.output}: {reason}")
    told = {"timeout": options.timeout, "about": {"fixes": list(asked.fixes)}}
    there = {**environment(asked), **(EAGER if options.compile == "eager" else {})}
    if options.redact:
        with tempfile.TemporaryDirectory(prefix="torchdet-") as name:
            whole = Path(name) / "whole.tdtrace"
            result = run_child(program, environment=there, trace=whole, **told)
            if whole.exists():
                redact(whole, options.output)
    else:
        result = run_child(program, environment=there, trace=options.output, **told)
    if result.recording and result.status != "interrupted" and (result.ok or not options.output.exists()):
        raise UsageError(f"torchdet-lint record: {result.recording}")
    return _ended(result, options.timeout)


def _ended(result: ChildResult, timeout: float | None) -> int:
    if result.ok:
        return OK
    if result.status == "interrupted":
        return 130
    sys.stderr.write(f"torchdet-lint: the program {result.sentence(timeout)}\n")
    return FAILED


def run(arguments: list[str]) -> int:
    """Run a program once, with the fixes; returns its own exit status."""
    parser = run_parser()
    ours, words = split(parser, arguments)
    options = parser.parse_args(ours)
    from torchdet_lint.verifier.launch.interventions import environment
    from torchdet_lint.verifier.launch.launch import run_child

    program, asked = program_of(words), interventions(options, default=True)
    if options.strict:
        asked = _strictly(asked, options)
    result = run_child(program, environment=environment(asked), timeout=options.timeout, end_strays=False)
    if result.status == "timeout":
        sys.stderr.write(f"torchdet-lint: the program {result.sentence(options.timeout)}\n")
        return FAILED
    if result.status == "interrupted":
        return 130
    return result.returncode if result.returncode >= 0 else 128 - result.returncode


def _strictly(asked: Interventions, options: argparse.Namespace) -> Interventions:
    from torchdet_lint.verifier.recording.strict import SEEDS

    named = set(codes(options.fix)) if options.fix not in (None, "all", "") else set()
    if contrary := sorted(named & set(SEEDS)):
        raise UsageError(f"torchdet-lint run: --strict and --fix={','.join(contrary)} contradict each other")
    kept = tuple(code for code in asked.fixes if code not in SEEDS)
    return dataclasses.replace(asked, fixes=kept, strict=True)
