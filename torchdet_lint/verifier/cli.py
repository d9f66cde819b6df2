"""The words behind `torchdet-lint record | compare | verify | run | forecast | probe` -> the room that does it."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from torchdet_lint.verifier import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import ChildResult, Program
    from torchdet_lint.verifier.probe.validity import Valid
    from torchdet_lint.verifier.verification.report import Report

OK, DIVERGED, USAGE, FAILED = 0, 1, 2, 3
FORMATS = ("text", "json", "github", "junit", "sarif")


class _UsageError(Exception):
    """One line for standard error; exit status 2."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.prog}: {message}")


def main(argv: Sequence[str], measured: str = "") -> int:
    """Run one command; `argv` begins with its name, `measured` is the file of measurements that the project's
    configuration names. Returns the exit status: 0 identical (or done), 1 diverged, 2
    usage, 3 the program itself failed; for `run`, the program's own. Torch that is missing costs one line and status
    2.
    """
    commands: dict[str, Callable[[list[str]], int]] = {
        "record": _record,
        "compare": _compare,
        "verify": functools.partial(_verify, configured=measured),
        "run": _run,
        "forecast": functools.partial(_forecast, configured=measured),
        "probe": _probe,
    }
    arguments = list(argv)
    command = commands.get(arguments[0]) if arguments else None
    if command is None:
        return _fail(f"torchdet-lint: which of {', '.join(commands)}?")
    from torchdet_lint.catalogue.texts import CatalogueError
    from torchdet_lint.verifier.launch.launch import LaunchError

    try:
        if not {"-h", "--help"} & set(arguments[1:2]):
            _need_torch(arguments[0])
        from torchdet_lint.verifier.trace import TraceError
        from torchdet_lint.verifier.verification.outcome import VerifyError
    except _UsageError as error:
        return _fail(str(error))
    try:
        with terminal.ended_in_order():
            return command(arguments[1:])
    except (_UsageError, VerifyError, TraceError, LaunchError, CatalogueError) as error:
        return _fail(f"torchdet-lint {arguments[0]}: {error}" if not isinstance(error, _UsageError) else str(error))
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

    if command != "run" and find_spec("torch") is None:
        raise _UsageError(f"torchdet-lint {command} needs torch: install it with `pip install 'torchdet-lint[verify]'`")


def _parser(command: str, about: str, words: str = "script.py [args…] | -m module [args…]") -> _Parser:
    usage = f"torchdet-lint {command} [options] {words}"
    return _Parser(prog=f"torchdet-lint {command}", usage=usage, description=about, allow_abbrev=False)


def _fix_options(parser: _Parser) -> None:
    parser.add_argument(
        "--fix", nargs="?", const="all", default=None, metavar="CODES", help="apply the runtime fixes (of CODES)"
    )
    parser.add_argument("--no-fix", default="", metavar="CODES", help="leave the fixes of CODES out")
    parser.add_argument("--seed", type=int, default=0, help="the seed that the fixes start from (default 0)")


def _report_options(parser: _Parser) -> None:
    parser.add_argument("--output-format", choices=FORMATS, default="text")
    parser.add_argument("-o", "--output-file", "--output", type=Path, default=None, help="write the report there")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--no-lint", action="store_true", help="do not look for the linter's findings on the lines")


def _split(parser: _Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """The options of ours, and the program with its own. An option that may go without a value takes it with `=`."""
    takes = {}
    for action in parser._actions:
        for option in action.option_strings:
            takes[option] = action.nargs is None
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return arguments[:position], arguments[position + 1 :]
        if word == "-m" or not word.startswith("-") or word == "-":
            break
        name = word.partition("=")[0]
        position += 2 if takes.get(name, False) and "=" not in word else 1
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
        raise _UsageError(f"torchdet-lint: {', '.join(strange)}: no such runtime fix; there are {', '.join(known)}")
    return Interventions(fixes=tuple(code for code in wanted if code not in dropped), seed=options.seed)


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


_seconds.__name__ = "number of seconds above 0"


def _record(arguments: list[str]) -> int:
    parser = _parser("record", "Run a program once and record every op of it into a trace.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.tdtrace")
    parser.add_argument("--timeout", type=_seconds, default=None, metavar="SECONDS")
    _fix_options(parser)
    ours, words = _split(parser, arguments)
    options = parser.parse_args(ours)
    from torchdet_lint.verifier.launch.interventions import environment
    from torchdet_lint.verifier.launch.launch import run_child
    from torchdet_lint.verifier.trace import unwritable

    program, asked = _program(words), _interventions(options, default=False)
    parent = options.output.absolute().parent
    if not parent.is_dir():
        raise _UsageError(f"torchdet-lint record: {parent}: no such folder")
    reason = unwritable(options.output)
    if reason:
        raise _UsageError(f"torchdet-lint record: {options.output}: {reason}")
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
    parser = _parser("compare", "Compare two traces.", "a.tdtrace b.tdtrace")
    parser.add_argument("a", type=Path)
    parser.add_argument("b", type=Path)
    _report_options(parser)
    options = parser.parse_args(arguments)
    from torchdet_lint.verifier.verification.verify import compare_traces

    return _deliver(compare_traces(options.a, options.b, lint=not options.no_lint), options)


def _verify(arguments: list[str], *, configured: str) -> int:
    parser = _parser("verify", "Run a program twice or more and say where and why the runs differ.")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--mode", choices=("pair", "stress"), default="pair")
    parser.add_argument("--timeout", type=_seconds, default=None, metavar="SECONDS", help="for each run")
    parser.add_argument(
        "--in-place", action="store_true", help="run in the working folder itself, not in a copy of it for each run"
    )
    parser.add_argument(
        "--workdir", type=Path, default=None, metavar="FOLDER", help="make the copies there, however large"
    )
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="end each run after N steps of an optimizer")
    parser.add_argument(
        "--keep", type=Path, default=None, metavar="FOLDER", help="keep the traces and the output there"
    )
    parser.add_argument("--measured", metavar="FILE", help="judge ops by what `torchdet-lint probe` wrote there too")
    parser.add_argument("--no-measured", action="store_const", dest="measured", const="", help="by the table alone")
    parser.add_argument(
        "--most-runs",
        type=int,
        default=60,
        metavar="N",
        help="with --fix: for the search of the smallest set (default 60)",
    )
    _fix_options(parser)
    _report_options(parser)
    ours, words = _split(parser, arguments)
    options = parser.parse_args(ours)
    from torchdet_lint.verifier.verification.outcome import VerifyError
    from torchdet_lint.verifier.verification.verify import verify_program

    program = _program(words)
    if options.runs < 2:
        raise VerifyError("--runs must be at least 2: one run alone shows nothing")
    if options.most_runs < 1:
        raise VerifyError("--most-runs must be a positive number")
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
        }
        if options.fix is None:
            report = verify_program(program, **how)
        else:
            from torchdet_lint.verifier.verification.repair import verify_fixed

            report = verify_fixed(program, asked, most_runs=options.most_runs, **how)
    return _deliver(report, options)


def _valid(path: str) -> Valid | None:
    """The measurement that the ops are judged by, if it holds here; else a line says why not."""
    if not path:
        return None
    from torchdet_lint.catalogue.measured import MeasuredError
    from torchdet_lint.verifier.probe import validity

    try:
        valid, why = validity.here(Path(path))
    except (MeasuredError, validity.ChildError) as error:
        raise _UsageError(f"torchdet-lint verify: {error}") from error
    if why:
        sys.stderr.write(f"torchdet-lint verify: {why}\n")
    return valid


def _run(arguments: list[str]) -> int:
    parser = _parser("run", "Run a program with the runtime fixes applied; the exit status is the program's own.")
    parser.add_argument("--timeout", type=_seconds, default=None, metavar="SECONDS")
    parser.add_argument(
        "--strict", action="store_true", help="seed nothing: a draw that the program has not seeded raises"
    )
    _fix_options(parser)
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
        raise _UsageError(f"torchdet-lint run: --strict and --fix={','.join(contrary)} contradict each other")
    kept = tuple(code for code in asked.fixes if code not in SEEDS)
    return dataclasses.replace(asked, fixes=kept, strict=True)


def _forecast(arguments: list[str], *, configured: str) -> int:
    try:
        from torchdet_lint.verifier.verification import forecast
    except ImportError as error:
        raise _UsageError(f"torchdet-lint forecast: not available: {error}") from error
    status: int = forecast.main(arguments, configured)
    return status


def _probe(arguments: list[str]) -> int:
    from torchdet_lint.verifier.probe import command

    try:
        return command.main(arguments)
    except command.ProbeError as error:
        raise _UsageError(f"torchdet-lint probe: {error}") from error


def _deliver(report: Report, options: argparse.Namespace) -> int:
    from torchdet_lint.verifier.verification import machine
    from torchdet_lint.verifier.verification.text import text as on_screen

    to_screen = options.output_file is None
    if options.output_format == "json":
        text = report.to_json().decode() + "\n"
    elif options.output_format == "text":
        text = on_screen(report, colour=to_screen and terminal.coloured(options.color))
    else:
        text = {"github": machine.github, "junit": machine.junit, "sarif": machine.sarif}[options.output_format](report)
    if to_screen:
        sys.stdout.write(text)
    else:
        options.output_file.write_text(text, encoding="utf-8")
    return report.exit_status
