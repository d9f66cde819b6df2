"""The words behind `compare` and `show` -> what files of runs that are over say, traces or steps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from torchdet_lint.verifier.commands.options import UsageError, compare_parser, show_parser
from torchdet_lint.verifier.commands.output import deliver, put
from torchdet_lint.verifier.commands.words import OK, need_torch

if TYPE_CHECKING:
    import argparse


def compare(arguments: list[str]) -> int:
    """Compare two traces, two runs by their files of steps, or the ranks of one run."""
    parser = compare_parser()
    options = parser.parse_args(arguments)
    from torchdet_lint.verifier.steps.format import is_steps

    if options.ranks:
        return _compare_ranks(options)
    if options.b is None:
        raise UsageError("torchdet-lint compare: a second file is needed, or --ranks for one run's ranks")
    if is_steps(options.a) or is_steps(options.b):
        return _compare_steps(options)
    need_torch("compare")
    from torchdet_lint.verifier.verification.verify import compare_traces

    return deliver(compare_traces(options.a, options.b, lint=not options.no_lint, tolerance=options.tolerance), options)


def _compare_ranks(options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.steps.ranks import compare_ranks
    from torchdet_lint.verifier.steps.text import text_of_ranks

    if options.b is not None:
        raise UsageError("torchdet-lint compare: --ranks takes one file; those of the other ranks are beside it")
    _only_for_traces(options)
    return put(compare_ranks(options.a), text_of_ranks, options)


def _compare_steps(options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.steps.runs import compare_runs
    from torchdet_lint.verifier.steps.text import text

    _only_for_traces(options)
    return put(compare_runs(options.a, options.b), text, options)


def _only_for_traces(options: argparse.Namespace) -> None:
    """Raise `UsageError` for an option that files of steps have nothing for."""
    if options.output_format not in ("text", "json"):
        raise UsageError(f"torchdet-lint compare: --output-format {options.output_format} is for traces, not for steps")
    if options.tolerance is not None:
        raise UsageError("torchdet-lint compare: --tolerance is for traces, not for steps")


def show(arguments: list[str]) -> int:
    """Print what is in a trace or a file of steps."""
    options = show_parser().parse_args(arguments)
    from torchdet_lint.verifier.comparison.screen import inert
    from torchdet_lint.verifier.steps.format import is_steps
    from torchdet_lint.verifier.trace.listing import Asked, overview, records
    from torchdet_lint.verifier.trace.reader import Trace

    if options.step < 0 or options.limit < 1:
        raise UsageError("torchdet-lint show: --step and --limit must be positive numbers")
    if is_steps(options.trace):
        return _show_steps(options)
    asked = Asked(options.stream, options.step, options.op, options.at, options.limit)
    as_json = options.output_format == "json"
    trace = Trace(options.trace)
    for line in records(trace, asked, as_json=as_json) if asked.anything or as_json else overview(trace):
        sys.stdout.write(f"{line if as_json else inert(line)}\n")
    return OK


def _show_steps(options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.comparison.screen import inert
    from torchdet_lint.verifier.steps.format import Steps
    from torchdet_lint.verifier.steps.listing import as_json, overview, parts

    if options.at or options.stream:
        raise UsageError("torchdet-lint show: --at and --stream are for traces, not for steps")
    file = Steps(options.trace)
    if options.output_format == "json":
        lines = as_json(file, options.step, options.op, options.limit)
    elif options.step or options.op:
        lines = map(inert, parts(file, options.step, options.op, options.limit))
    else:
        lines = map(inert, overview(file))
    for line in lines:
        sys.stdout.write(f"{line}\n")
    return OK
