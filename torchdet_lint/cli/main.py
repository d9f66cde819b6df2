"""The arguments of `torchdet-lint` -> the command that they ask for, and its exit status."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from torchdet_lint import __version__
from torchdet_lint.cli.console import CLEAN, FAILED, INTERRUPTED, Unread, UsageError, emit, fail, hang_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RUNTIME = ("run", "verify", "record", "compare", "show", "forecast", "probe", "preflight")
COMMANDS = ("check", "rule", "config", "baseline", "lsp", "completion", *RUNTIME)
_OTHER_WORDS = {
    "completions": "completion",
    "explain": "rule",
    "help": "--help",
    "lint": "check",
    "rules": "rule --all",
    "server": "lsp",
    "version": "--version",
}
_ONLY_SHOW = ("rule", "config", "completion", "show", "--version", "--help", "-h")
_UNWRITTEN = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


def main(arguments: Sequence[str]) -> int:
    """Run `torchdet-lint` with `arguments`; returns the exit status."""
    try:
        return _dispatch(list(arguments))
    except UsageError as error:
        return fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Unread as error:
        hang_up(sys.stdout)
        return error.status
    except BrokenPipeError:
        hang_up(sys.stdout)
        return CLEAN if arguments and arguments[0] in _ONLY_SHOW else FAILED
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _stranded():
            return fail("the working directory is no longer there")
        if error.filename is not None or error.errno not in _UNWRITTEN:
            raise
        hang_up(sys.stdout)
        return fail(f"standard output: {(error.strerror or str(error)).lower()}")


def _stranded() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _dispatch(arguments: list[str]) -> int:
    command = arguments[0] if arguments else "check"
    rest = arguments[1:]
    if command == "--version":
        emit([f"torchdet-lint {__version__}\n"])
        return CLEAN
    if command in RUNTIME:
        return _runtime(arguments)
    if command == "lsp":
        from torchdet_lint.cli.lsp import lsp

        return _guarded(lambda: lsp(rest))
    if command == "rule":
        if rest[:1] == ["new"] or (rest[:1] == ["test"] and len(rest) > 1):
            from torchdet_lint.cli.own_rules import new, test

            return _guarded(lambda: new(rest[1:]) if rest[0] == "new" else test(rest[1:]))
        from torchdet_lint.cli.rule import rule, rule_parser

        return _guarded(lambda: rule(rule_parser().parse_args(rest)))
    if command == "config":
        from torchdet_lint.cli.config import config_parser, show

        return _guarded(lambda: show(config_parser().parse_args(rest)))
    if command == "completion":
        from torchdet_lint.cli.completion import completion, completion_parser

        return _guarded(lambda: completion(completion_parser().parse_args(rest)))
    from torchdet_lint.cli.options import check_parser

    if command == "baseline":
        from torchdet_lint.cli.baseline import baseline

        return _guarded(lambda: baseline(check_parser("baseline").parse_args(rest)))
    _must_be_a_path(arguments)
    from torchdet_lint.cli.check import check

    if command == "check":
        arguments = rest
    return _guarded(lambda: check(check_parser("check").parse_args(arguments)))


def _must_be_a_path(arguments: Sequence[str]) -> None:
    """Raise `UsageError` where the first argument is a word that is meant for a command, and no file."""
    word = arguments[0] if arguments else ""
    if not word.isalpha() or word in COMMANDS or os.path.lexists(word):
        return
    from torchdet_lint.config.selectors import near

    meant = _OTHER_WORDS.get(word) or near(word, COMMANDS)
    if meant:
        raise UsageError(f"no command `{word}`; did you mean `{meant}`?")


def _guarded(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else CLEAN
    except UsageError:
        raise
    except Exception as error:
        from torchdet_lint.catalogue.texts import CatalogueError
        from torchdet_lint.config import ConfigError

        if isinstance(error, (ConfigError, CatalogueError)):
            return fail(str(error))
        raise


def _runtime(arguments: list[str]) -> int:
    """The verifier, which alone needs torch."""
    try:
        from torchdet_lint.verifier import cli  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError as error:
        return fail(
            f"`torchdet-lint {arguments[0]}` needs {error.name}: install it with `pip install 'torchdet-lint[verify]'`"
        )
    status: int = cli.main(arguments, _configured() if arguments[0] in ("verify", "forecast") else "")
    return status


def _configured() -> str:
    """The file of measurements that the configuration above the working folder names; empty where none does."""
    from torchdet_lint import config

    try:
        found = config.find(["."])
    except config.ConfigError as error:
        raise UsageError(str(error)) from error
    measured = found.options.measured
    return os.path.join(found.root, measured) if measured else ""
