"""`torchdet-lint record | compare | verify | run` -> the parsers of their words; torch is not imported."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from torchdet_lint.verifier.verification.options import new_file

FORMATS = ("text", "json", "html", "github", "junit", "sarif")


class UsageError(Exception):
    """One line for standard error; exit status 2."""


class _Help(argparse.HelpFormatter):
    """Help that shows how an option takes a value that it may go without: with `=`."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if action.option_strings and action.nargs == argparse.OPTIONAL:
            return ", ".join(f"{option}[={action.metavar}]" for option in action.option_strings)
        return super()._format_action_invocation(action)


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are a `UsageError`."""

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`."""
        raise UsageError(f"{self.prog}: {message}")


def _parser(command: str, about: str, words: str = "script.py [args…] | -m module [args…]") -> Parser:
    usage = f"torchdet-lint {command} [options] {words}"
    return Parser(
        prog=f"torchdet-lint {command}", usage=usage, description=about, allow_abbrev=False, formatter_class=_Help
    )


def _fix_options(parser: Parser) -> None:
    parser.add_argument(
        "--fix", nargs="?", const="all", default=None, metavar="CODES", help="apply the runtime fixes (of CODES)"
    )
    parser.add_argument("--no-fix", default="", metavar="CODES", help="leave the fixes of CODES out")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the seed that fixes start from (default 0)")


def _compile_option(parser: Parser) -> None:
    parser.add_argument(
        "--compile",
        choices=("asis", "eager"),
        default="asis",
        help="eager: what torch.compile would compile runs op by op, so that a difference inside has its own line",
    )


def _report_options(parser: Parser) -> None:
    parser.add_argument("--output-format", choices=FORMATS, default="text", help="(default: text)")
    parser.add_argument(
        "-o",
        "--output-file",
        "--output",
        type=new_file,
        default=None,
        metavar="FILE",
        help="write the report there; the screen shows the verdict",
    )
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(default: auto, on a terminal)"
    )
    parser.add_argument("--no-lint", action="store_true", help="do not look for the linter's findings on the lines")


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


_seconds.__name__ = "number of seconds above 0"


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError(text)
    return value


_share.__name__ = "number from 0 up to 1"


def record_parser() -> Parser:
    """The options of `record`."""
    parser = _parser("record", "Run a program once and record every op of it into a trace.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.tdtrace", help="the trace")
    parser.add_argument("--timeout", type=_seconds, default=None, metavar="SECONDS", help="end the program after that")
    parser.add_argument(
        "--redact",
        action="store_true",
        help="leave out the source's text, folders, environment variables and the words of command lines",
    )
    _compile_option(parser)
    _fix_options(parser)
    return parser


def compare_parser() -> Parser:
    """The options of `compare`."""
    parser = _parser(
        "compare",
        "Compare two traces, two files of steps, or the ranks of one run.",
        "a b | --ranks run.tdsteps",
    )
    parser.add_argument("a", type=Path, help="the trace of one run, or what its Checkpoints wrote")
    parser.add_argument("b", type=Path, nargs="?", help="that of another")
    parser.add_argument(
        "--ranks",
        action="store_true",
        help="compare the ranks of one run by their files of steps: what must be equal on all of them",
    )
    parser.add_argument(
        "--tolerance",
        type=_share,
        default=None,
        metavar="R",
        help="say also whether all losses are within R of each other, relatively; then exit status 0 where they are",
    )
    _report_options(parser)
    return parser


def show_parser() -> Parser:
    """The options of `show`."""
    about = "Look into a trace or a file of steps: what is in it, or its records or steps one by one."
    parser = _parser("show", about, "a.tdtrace | a.tdsteps")
    parser.add_argument("trace", type=Path, help="the trace, or what Checkpoints wrote")
    parser.add_argument(
        "--step", type=int, default=0, metavar="N", help="the records of the optimizer's step N, from 1; or this step"
    )
    parser.add_argument(
        "--op", default="", metavar="NAME", help="those of ops (in a file of steps: parts) with NAME in their names"
    )
    parser.add_argument("--at", default="", metavar="FILE[:LINE]", help="those of this file or line")
    parser.add_argument("--stream", default="", metavar="NAME", help="those of another thread or process")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="at most so many (default 100)")
    parser.add_argument("--output-format", choices=("text", "json"), default="text", help="json: one object a line")
    return parser


def verify_parser() -> Parser:
    """The options of `verify`."""
    parser = _parser("verify", "Run a program twice or more and say where and why the runs differ.")
    parser.add_argument("--runs", type=int, default=2, metavar="N", help="how often it runs (default 2)")
    parser.add_argument(
        "--mode",
        choices=("pair", "stress", "lockstep"),
        default="pair",
        help="runs alike (pair, the default), under opposite legal conditions (stress), or alike, where run B goes on "
        "with run A's value wherever it has another, so that one pair shows every cause (lockstep)",
    )
    _compile_option(parser)
    parser.add_argument("--timeout", type=_seconds, default=None, metavar="SECONDS", help="for each run")
    parser.add_argument(
        "--in-place", action="store_true", help="run in the working folder itself, not in a copy of it for each run"
    )
    parser.add_argument(
        "--workdir", type=Path, default=None, metavar="FOLDER", help="make the copies there, however large"
    )
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="end each run after N steps of an optimizer")
    parser.add_argument(
        "--early-end",
        action="store_true",
        help="end a run whose losses have differed from run A's for long enough, and compare nothing after that",
    )
    parser.add_argument(
        "--keep", type=Path, default=None, metavar="FOLDER", help="keep the traces and the output there"
    )
    parser.add_argument(
        "--no-values", action="store_true", help="do not run again to the first difference for the numbers there"
    )
    parser.add_argument(
        "--replay",
        nargs="?",
        type=int,
        const=100,
        default=0,
        metavar="N",
        help="repeat the first op that differs N times on the same inputs, in each run (default 100)",
    )
    parser.add_argument(
        "--diagnose",
        action="store_true",
        help="where runs differ, hold one factor fixed at a time, and name the one that makes each cause go",
    )
    parser.add_argument(
        "--resume",
        default="",
        metavar="step=N",
        help="compare a run that is resumed after the optimizer's step N with an uninterrupted one",
    )
    parser.add_argument(
        "--resume-with",
        default="",
        metavar="WORDS",
        help="the words that make the program resume, for {resume} in its command, or at its end",
    )
    parser.add_argument(
        "--preflight",
        nargs=2,
        type=Path,
        metavar="FILE",
        help="run nothing: compare what `torchdet-lint preflight` wrote on two machines",
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
    parser.add_argument(
        "--lint",
        action="append",
        default=[],
        metavar="PATH",
        help="lint PATH too, and say of each finding whether the runs confirm it (one run more)",
    )
    _fix_options(parser)
    _report_options(parser)
    return parser


def preflight_parser() -> Parser:
    """The options of `preflight`."""
    about = "Write what a run on this machine will depend on, for `verify --preflight` to compare."
    parser = _parser("preflight", about, "-o FILE.json")
    parser.add_argument("-o", "--output", type=new_file, required=True, metavar="FILE", help="the file, as JSON")
    parser.add_argument(
        "--weights", action="append", default=[], metavar="FILE", help="a file of weights (may be repeated)"
    )
    parser.add_argument(
        "--data", action="append", default=[], metavar="FOLDER", help="a folder of data (may be repeated)"
    )
    parser.add_argument("--contents", action="store_true", help="digest the files of data, not only names and sizes")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of the first draws (default 0)")
    return parser


def run_parser() -> Parser:
    """The options of `run`."""
    parser = _parser("run", "Run a program with the runtime fixes applied; the exit status is the program's own.")
    parser.add_argument("--timeout", type=_seconds, default=None, metavar="SECONDS", help="end the program after that")
    parser.add_argument(
        "--strict", action="store_true", help="seed nothing: a draw that the program has not seeded raises"
    )
    _fix_options(parser)
    return parser
