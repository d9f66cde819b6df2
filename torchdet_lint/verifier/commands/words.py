"""The words of a command line -> our options, the program with its own, and the fixes that are asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.verifier.commands.options import UsageError

if TYPE_CHECKING:
    import argparse

    from torchdet_lint.verifier.commands.options import Parser
    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.launch.launch import Program

_VALUE = re.compile(r"\d+|all|[A-Z]+\d+(?:,[A-Z]+\d+)*")
OK, USAGE, FAILED = 0, 2, 3


def need_torch(command: str) -> None:
    """Raise `UsageError` where torch is missing and the command needs it."""
    from importlib.util import find_spec

    if command not in ("run", "show") and find_spec("torch") is None:
        raise UsageError(f"torchdet-lint {command} needs torch: install it with `pip install 'torchdet-lint[verify]'`")


def split(parser: Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """The options of ours, and the program with its own. An option that may go without a value takes it with `=`.
    Raises `UsageError` where one is followed by what is evidently its value.
    """
    takes, may_take = {}, set()
    for action in parser._actions:
        for option in action.option_strings:
            takes[option] = 1 if action.nargs is None else action.nargs if isinstance(action.nargs, int) else 0
            if action.nargs == "?":
                may_take.add(option)
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return arguments[:position], arguments[position + 1 :]
        if word == "-m" or not word.startswith("-") or word == "-":
            before = arguments[position - 1] if position else ""
            if before in may_take and _VALUE.fullmatch(word) and not Path(word).exists():
                raise UsageError(f"{parser.prog}: {before} takes its value with an equals sign: {before}={word}")
            break
        name = word.partition("=")[0]
        position += 1 + (takes.get(name, 0) if "=" not in word else 0)
    return arguments[:position], arguments[position:]


def program_of(words: list[str]) -> Program:
    """The program that `words` start. Raises `LaunchError`."""
    from torchdet_lint.verifier.launch.launch import Program

    return Program.parse(words)


def codes(text: str) -> tuple[str, ...]:
    """The codes in a list with commas."""
    return tuple(sorted({word.strip().upper() for word in text.split(",") if word.strip()}))


def interventions(options: argparse.Namespace, *, default: bool) -> Interventions:
    """The fixes asked for; all of them where `--fix` names none (or nothing was said and `default`)."""
    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.remedies import fixes

    if options.fix is None and not default:
        return Interventions(seed=options.seed)
    known: tuple[str, ...] = fixes.every_code()
    wanted = codes(options.fix) if options.fix not in (None, "all", "") else known
    dropped = set(codes(options.no_fix))
    strange = sorted((set(wanted) | dropped) - set(known))
    if strange:
        raise UsageError(f"torchdet-lint: {', '.join(strange)}: no such runtime fix; there are {', '.join(known)}")
    return Interventions(fixes=tuple(code for code in wanted if code not in dropped), seed=options.seed)
