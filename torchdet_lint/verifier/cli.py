"""The words behind `torchdet-lint verify | run | record | compare | …` -> the command that they ask for."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from torchdet_lint.verifier.commands import comparing, running, terminal, verifying
from torchdet_lint.verifier.commands.options import UsageError
from torchdet_lint.verifier.commands.words import USAGE, need_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(argv: Sequence[str], measured: str = "") -> int:
    """Run one command; `argv` begins with its name, `measured` is the file of measurements that the project's
    configuration names. Returns the exit status: 0 identical (or done), 1 diverged, 2 usage, 3 the program itself
    failed; for `run`, the program's own. Torch that is missing costs one line and status 2.
    """
    commands: dict[str, Callable[[list[str]], int]] = {
        "record": running.record,
        "compare": comparing.compare,
        "show": comparing.show,
        "verify": functools.partial(verifying.verify, configured=measured),
        "run": running.run,
        "forecast": functools.partial(_forecast, configured=measured),
        "probe": _probe,
        "preflight": verifying.preflight,
    }
    arguments = list(argv)
    command = commands.get(arguments[0]) if arguments else None
    if command is None:
        return _fail(f"torchdet-lint: which of {', '.join(commands)}?")
    from torchdet_lint.catalogue.texts import CatalogueError
    from torchdet_lint.verifier.launch.launch import LaunchError

    try:
        if arguments[0] != "compare" and not {"-h", "--help"} & set(arguments[1:2]):
            need_torch(arguments[0])
        from torchdet_lint.verifier.trace import TraceError
        from torchdet_lint.verifier.verification.outcome import VerifyError
    except UsageError as error:
        return _fail(str(error))
    try:
        with terminal.ended_in_order():
            return command(arguments[1:])
    except (UsageError, VerifyError, TraceError, LaunchError, CatalogueError) as error:
        return _fail(f"torchdet-lint {arguments[0]}: {error}" if not isinstance(error, UsageError) else str(error))
    except BrokenPipeError:
        raise  # nobody reads the rest, which is no error
    except OSError as error:
        return _fail(f"torchdet-lint {arguments[0]}: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def _fail(message: str) -> int:
    sys.stderr.write(f"torchdet-lint: error: {message.removeprefix('torchdet-lint').lstrip(' :')}\n")
    return USAGE


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
