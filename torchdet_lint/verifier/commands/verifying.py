"""The words behind `verify` and `preflight` -> runs of a program held against each other, and two machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.verifier.commands import terminal
from torchdet_lint.verifier.commands.options import UsageError, preflight_parser, verify_parser
from torchdet_lint.verifier.commands.output import deliver, put
from torchdet_lint.verifier.commands.words import OK, interventions, program_of, split

if TYPE_CHECKING:
    import argparse

    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.probe.validity import Valid


def verify(arguments: list[str], *, configured: str) -> int:
    """Run a program more than once and compare; `configured` is the file of measurements of the configuration."""
    parser = verify_parser()
    ours, words = split(parser, arguments)
    options = parser.parse_args(ours)
    if options.preflight:
        return _compare_preflight(options, words)
    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.verification.options import VerifyOptions
    from torchdet_lint.verifier.verification.outcome import VerifyError
    from torchdet_lint.verifier.verification.verify import verified

    program = program_of(words)
    if options.resume or options.resume_with:
        return _resume(options, program)
    if options.runs < 2:
        raise VerifyError("--runs must be at least 2: one run alone shows nothing")
    if options.most_runs < 1:
        raise VerifyError("--most-runs must be a positive number")
    if options.replay < 0:
        raise VerifyError("--replay must be a positive number")
    if options.steps < 0:
        raise VerifyError("--steps must be a positive number")
    if options.diagnose and options.fix is not None:
        raise UsageError("torchdet-lint verify: --diagnose and --fix are two searches: ask for one")
    if options.mode == "lockstep":
        _need_one_process(options, program)
    asked = interventions(options, default=False)
    terminal.keep_piped_input()
    valid = valid_here(configured if options.measured is None else options.measured)
    with terminal.Progress(many=options.fix is not None or options.diagnose) as progress:
        how = VerifyOptions(
            runs=options.runs,
            mode=options.mode,
            interventions=asked if options.fix is not None else Interventions(),
            timeout=options.timeout,
            steps=options.steps,
            progress=progress,
            keep=options.keep,
            lint=not options.no_lint,
            in_place=options.in_place,
            workdir=options.workdir,
            valid=valid,
            values=not options.no_values or options.replay > 0,
            replay=options.replay,
            prove=options.fix is None and not options.diagnose,
            times=True,
            diagnose=options.diagnose,
            early_end=options.early_end,
            eager=options.compile == "eager",
        )
        if options.fix is None:
            report = verified(program, how)
        else:
            from torchdet_lint.verifier.verification.repair import verify_fixed

            report = verify_fixed(program, how, most_runs=options.most_runs)
        if options.lint:
            from torchdet_lint.verifier.verification.evidence.evidence import with_evidence

            where = {"in_place": options.in_place, "workdir": options.workdir}
            report = with_evidence(report, program, options.lint, timeout=options.timeout, **where)
    return deliver(report, options)


def _need_one_process(options: argparse.Namespace, program: Program) -> None:
    """Refuse what lockstep has no answer for."""
    from torchdet_lint.verifier.launch.launch import starts_ranks

    command = "torchdet-lint verify: --mode lockstep"
    if options.diagnose or options.fix is not None:
        raise UsageError(f"{command} shows causes and tries nothing: ask for it without --diagnose and --fix")
    if starts_ranks(program):
        raise UsageError(f"{command} follows one process, and {program.target} starts several: use --mode pair")


def _resume(options: argparse.Namespace, program: Program) -> int:
    from torchdet_lint.verifier.verification.resume.check import check_resume, least_of
    from torchdet_lint.verifier.verification.resume.text import text

    if not options.resume:
        raise UsageError("torchdet-lint verify: --resume-with needs --resume step=N")
    if options.output_format not in ("text", "json"):
        raise UsageError(f"torchdet-lint verify: --resume has no --output-format {options.output_format}")
    if options.in_place:
        raise UsageError("torchdet-lint verify: --resume needs copies of the working folder, and not --in-place")
    least = least_of(options.resume)
    terminal.keep_piped_input()
    with terminal.Progress() as progress:
        report = check_resume(
            program,
            least,
            options.resume_with,
            timeout=options.timeout,
            workdir=options.workdir,
            progress=progress,
        )
    return put(report, text, options)


def _compare_preflight(options: argparse.Namespace, words: list[str]) -> int:
    from torchdet_lint.verifier.verification.preflight.compare import compare_preflight, text

    if words:
        raise UsageError(f"torchdet-lint verify: --preflight runs no program, and {words[0]} is given")
    if options.output_format not in ("text", "json"):
        raise UsageError(f"torchdet-lint verify: --preflight has no --output-format {options.output_format}")
    return put(compare_preflight(*options.preflight), text, options)


def preflight(arguments: list[str]) -> int:
    """Write down what a run will depend on here."""
    options = preflight_parser().parse_args(arguments)
    from torchdet_lint.verifier.verification.preflight import gather

    gather.preflight(
        options.output,
        weights=options.weights,
        data=options.data,
        contents=options.contents,
        seed=options.seed,
        generators=False,
    )
    return OK


def valid_here(path: str) -> Valid | None:
    """The measurement that the ops are judged by, if it holds here; else a line says why not."""
    if not path:
        return None
    from torchdet_lint.catalogue.measured import MeasuredError
    from torchdet_lint.verifier.probe import validity

    try:
        valid, why = validity.here(Path(path))
    except (MeasuredError, validity.ChildError) as error:
        raise UsageError(f"torchdet-lint verify: {error}") from error
    if why:
        sys.stderr.write(f"torchdet-lint: warning: {why}\n")
    return valid
