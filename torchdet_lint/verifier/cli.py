"""The words behind `torchdet-lint record | compare | verify | run | forecast | probe` -> the room that does it."""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier import terminal
from torchdet_lint.verifier.options import (
    Parser,
    UsageError,
    compare_parser,
    preflight_parser,
    record_parser,
    run_parser,
    show_parser,
    verify_parser,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import ChildResult, Program
    from torchdet_lint.verifier.probe.validity import Valid
    from torchdet_lint.verifier.verification.report import Report

OK, DIVERGED, USAGE, FAILED = 0, 1, 2, 3


def main(argv: Sequence[str], measured: str = "") -> int:
    """Run one command; `argv` begins with its name, `measured` is the file of measurements that the project's
    configuration names. Returns the exit status: 0 identical (or done), 1 diverged, 2
    usage, 3 the program itself failed; for `run`, the program's own. Torch that is missing costs one line and status
    2.
    """
    commands: dict[str, Callable[[list[str]], int]] = {
        "record": _record,
        "compare": _compare,
        "show": _show,
        "verify": functools.partial(_verify, configured=measured),
        "run": _run,
        "forecast": functools.partial(_forecast, configured=measured),
        "probe": _probe,
        "preflight": _preflight,
    }
    arguments = list(argv)
    command = commands.get(arguments[0]) if arguments else None
    if command is None:
        return _fail(f"torchdet-lint: which of {', '.join(commands)}?")
    from torchdet_lint.catalogue.texts import CatalogueError
    from torchdet_lint.verifier.launch.launch import LaunchError

    try:
        if arguments[0] != "compare" and not {"-h", "--help"} & set(arguments[1:2]):
            _need_torch(arguments[0])
        from torchdet_lint.verifier.trace import TraceError
        from torchdet_lint.verifier.verification.outcome import VerifyError
    except UsageError as error:
        return _fail(str(error))
    try:
        with terminal.ended_in_order():
            return command(arguments[1:])
    except (UsageError, VerifyError, TraceError, LaunchError, CatalogueError) as error:
        return _fail(f"torchdet-lint {arguments[0]}: {error}" if not isinstance(error, UsageError) else str(error))
    except OSError as error:
        return _fail(f"torchdet-lint {arguments[0]}: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def _fail(message: str) -> int:
    sys.stderr.write(f"torchdet-lint: error: {message.removeprefix('torchdet-lint').lstrip(' :')}\n")
    return USAGE


def _need_torch(command: str) -> None:
    from importlib.util import find_spec

    if command not in ("run", "show") and find_spec("torch") is None:
        raise UsageError(f"torchdet-lint {command} needs torch: install it with `pip install 'torchdet-lint[verify]'`")


def _split(parser: Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """The options of ours, and the program with its own. An option that may go without a value takes it with `=`."""
    takes = {}
    for action in parser._actions:
        for option in action.option_strings:
            takes[option] = 1 if action.nargs is None else action.nargs if isinstance(action.nargs, int) else 0
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return arguments[:position], arguments[position + 1 :]
        if word == "-m" or not word.startswith("-") or word == "-":
            break
        name = word.partition("=")[0]
        position += 1 + (takes.get(name, 0) if "=" not in word else 0)
    return arguments[:position], arguments[position:]


def _program(words: list[str]) -> Program:
    from torchdet_lint.verifier.launch.launch import Program

    return Program.parse(words)


def _codes(text: str) -> tuple[str, ...]:
    return tuple(sorted({word.strip().upper() for word in text.split(",") if word.strip()}))


def _interventions(options: argparse.Namespace, *, default: bool) -> Interventions:
    """The fixes asked for; all of them where `--fix` names none (or nothing was said and `default`)."""
    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.remedies import fixes

    if options.fix is None and not default:
        return Interventions(seed=options.seed)
    known: tuple[str, ...] = fixes.every_code()
    wanted = _codes(options.fix) if options.fix not in (None, "all", "") else known
    dropped = set(_codes(options.no_fix))
    strange = sorted((set(wanted) | dropped) - set(known))
    if strange:
        raise UsageError(f"torchdet-lint: {', '.join(strange)}: no such runtime fix; there are {', '.join(known)}")
    return Interventions(fixes=tuple(code for code in wanted if code not in dropped), seed=options.seed)


def _record(arguments: list[str]) -> int:
    parser = record_parser()
    ours, words = _split(parser, arguments)
    options = parser.parse_args(ours)
    from torchdet_lint.verifier.launch.interventions import environment
    from torchdet_lint.verifier.launch.launch import run_child
    from torchdet_lint.verifier.trace import unwritable

    program, asked = _program(words), _interventions(options, default=False)
    parent = options.output.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"torchdet-lint record: {parent}: no such folder")
    reason = unwritable(options.output)
    if reason:
        raise UsageError(f"torchdet-lint record: {options.output}: {reason}")
    result = run_child(
        program,
        environment=environment(asked),
        trace=options.output,
        timeout=options.timeout,
        about={"fixes": list(asked.fixes)},
    )
    if result.recording and result.status != "interrupted" and (result.ok or not options.output.exists()):
        return _fail(f"torchdet-lint record: {result.recording}")
    return _ended(result, options.timeout)


def _ended(result: ChildResult, timeout: float | None) -> int:
    if result.ok:
        return OK
    if result.status == "interrupted":
        return 130
    sys.stderr.write(f"torchdet-lint: the program {result.sentence(timeout)}\n")
    return FAILED


def _compare(arguments: list[str]) -> int:
    parser = compare_parser()
    options = parser.parse_args(arguments)
    from torchdet_lint.verifier.steps.format import is_steps

    if options.ranks:
        return _compare_ranks(options)
    if options.b is None:
        raise UsageError("torchdet-lint compare: a second file is needed, or --ranks for one run's ranks")
    if is_steps(options.a) or is_steps(options.b):
        return _compare_steps(options)
    _need_torch("compare")
    from torchdet_lint.verifier.verification.verify import compare_traces

    return _deliver(
        compare_traces(options.a, options.b, lint=not options.no_lint, tolerance=options.tolerance), options
    )


def _compare_ranks(options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.steps.ranks import compare_ranks
    from torchdet_lint.verifier.steps.text import text_of_ranks

    if options.b is not None:
        raise UsageError("torchdet-lint compare: --ranks takes one file; those of the other ranks are beside it")
    _only_for_traces(options)
    return _put(compare_ranks(options.a), text_of_ranks, options)


def _only_for_traces(options: argparse.Namespace) -> None:
    """Raise `UsageError` for an option that files of steps have nothing for."""
    if options.output_format not in ("text", "json"):
        raise UsageError(f"torchdet-lint compare: --output-format {options.output_format} is for traces, not for steps")
    if options.tolerance is not None:
        raise UsageError("torchdet-lint compare: --tolerance is for traces, not for steps")


def _compare_steps(options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.steps.compare import compare_steps
    from torchdet_lint.verifier.steps.text import text

    _only_for_traces(options)
    return _put(compare_steps(options.a, options.b), text, options)


def _put(report: Any, text: Callable[..., str], options: argparse.Namespace) -> int:
    """Print a report, or write it where it is asked for, as JSON or as the lines that `text` makes of it."""
    to_screen = options.output_file is None
    if options.output_format == "json":
        import msgspec

        lines = msgspec.json.encode(report).decode() + "\n"
    else:
        lines = text(report, colour=to_screen and terminal.coloured(options.color))
    if to_screen:
        sys.stdout.write(lines)
    else:
        options.output_file.write_text(lines, encoding="utf-8")
    status: int = report.exit_status
    return status


def _show(arguments: list[str]) -> int:
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


def _verify(arguments: list[str], *, configured: str) -> int:
    parser = verify_parser()
    ours, words = _split(parser, arguments)
    options = parser.parse_args(ours)
    if options.preflight:
        return _compare_preflight(options, words)
    from torchdet_lint.verifier.verification.outcome import VerifyError
    from torchdet_lint.verifier.verification.verify import verify_program

    program = _program(words)
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
    asked = _interventions(options, default=False)
    terminal.keep_piped_input()
    valid = _valid(configured if options.measured is None else options.measured)
    with terminal.Progress(many=options.fix is not None) as progress:
        how: dict[str, Any] = {
            "runs": options.runs,
            "mode": options.mode,
            "timeout": options.timeout,
            "steps": options.steps,
            "progress": progress,
            "keep": options.keep,
            "lint": not options.no_lint,
            "in_place": options.in_place,
            "workdir": options.workdir,
            "valid": valid,
            "values": not options.no_values or options.replay > 0,
            "replay": options.replay,
        }
        if options.fix is None:
            report = verify_program(program, **how)
        else:
            from torchdet_lint.verifier.verification.repair import verify_fixed

            report = verify_fixed(program, asked, most_runs=options.most_runs, **how)
        if options.lint:
            from torchdet_lint.verifier.verification.evidence.evidence import with_evidence

            where = {"in_place": options.in_place, "workdir": options.workdir}
            report = with_evidence(report, program, options.lint, timeout=options.timeout, **where)
    return _deliver(report, options)


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
    report = check_resume(program, least, options.resume_with, timeout=options.timeout, workdir=options.workdir)
    return _put(report, text, options)


def _compare_preflight(options: argparse.Namespace, words: list[str]) -> int:
    from torchdet_lint.verifier.verification.preflight.compare import compare_preflight, text

    if words:
        raise UsageError(f"torchdet-lint verify: --preflight runs no program, and {words[0]} is given")
    if options.output_format not in ("text", "json"):
        raise UsageError(f"torchdet-lint verify: --preflight has no --output-format {options.output_format}")
    return _put(compare_preflight(*options.preflight), text, options)


def _preflight(arguments: list[str]) -> int:
    options = preflight_parser().parse_args(arguments)
    from torchdet_lint.verifier.verification.preflight.gather import preflight

    preflight(
        options.output,
        weights=options.weights,
        data=options.data,
        contents=options.contents,
        seed=options.seed,
        generators=False,
    )
    return OK


def _valid(path: str) -> Valid | None:
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


def _run(arguments: list[str]) -> int:
    parser = run_parser()
    ours, words = _split(parser, arguments)
    options = parser.parse_args(ours)
    from torchdet_lint.verifier.launch.interventions import environment
    from torchdet_lint.verifier.launch.launch import run_child

    program, asked = _program(words), _interventions(options, default=True)
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

    named = set(_codes(options.fix)) if options.fix not in (None, "all", "") else set()
    if contrary := sorted(named & set(SEEDS)):
        raise UsageError(f"torchdet-lint run: --strict and --fix={','.join(contrary)} contradict each other")
    kept = tuple(code for code in asked.fixes if code not in SEEDS)
    return dataclasses.replace(asked, fixes=kept, strict=True)


def _forecast(arguments: list[str], *, configured: str) -> int:
    try:
        from torchdet_lint.verifier.verification import forecast
    except ImportError as error:
        raise UsageError(f"torchdet-lint forecast: not available: {error}") from error
    status: int = forecast.main(arguments, configured)
    return status


def _probe(arguments: list[str]) -> int:
    from torchdet_lint.verifier.probe import command

    try:
        return command.main(arguments)
    except command.ProbeError as error:
        raise UsageError(f"torchdet-lint probe: {error}") from error


def _deliver(report: Report, options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.verification import machine
    from torchdet_lint.verifier.verification.text import text as on_screen

    to_screen = options.output_file is None
    if options.output_format == "json":
        text = report.to_json().decode() + "\n"
    elif options.output_format == "html":
        from torchdet_lint.verifier.verification.page.page import html

        text = html(report, report.picture)
    elif options.output_format == "text":
        text = on_screen(report, colour=to_screen and terminal.coloured(options.color))
    else:
        text = {"github": machine.github, "junit": machine.junit, "sarif": machine.sarif}[options.output_format](report)
    if to_screen:
        sys.stdout.write(text)
    else:
        options.output_file.write_text(text, encoding="utf-8")
    return report.exit_status
