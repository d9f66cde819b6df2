"""`--watch`: a run -> the same run again whenever a file of the project changes, until Ctrl-C ends it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from torchdet_lint.cli.console import CLEAN, UsageError, emit, fail, say
from torchdet_lint.source.discovery import EXCLUDED, SUFFIXES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

_OTHERS = ("pyproject.toml", "torchdet-lint.toml", ".gitignore", ".torchdet-baseline.json")
_DATA = (".toml", ".yaml", ".yml")
_WRITES = ("fix", "diff", "output_file", "show_files", "show_settings", "stdin_filename")
_PAUSE = 200
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def watch(given: argparse.Namespace, run: Callable[[argparse.Namespace], int], folders: Sequence[str]) -> int:
    """Call `run` with `given` now and after every change below `folders`; the exit status.

    Raises `UsageError` where an option asks for more than findings.
    """
    for name in _WRITES:
        if getattr(given, name):
            raise UsageError(f"--watch goes with findings on the terminal, not with --{name.replace('_', '-')}")
    if given.add_noqa is not None or "-" in given.paths:
        raise UsageError("--watch goes neither with --add-noqa nor with standard input")
    try:
        from watchfiles import watch as changes
    except ModuleNotFoundError as error:
        return fail(f"`--watch` needs {error.name}: install it with `pip install 'torchdet-lint[watch]'`")
    given.watch, given.fix = False, False
    begun = False
    try:
        for changed in changes(
            *folders, watch_filter=lambda _, path: matters(path), yield_on_timeout=True, rust_timeout=_PAUSE
        ):
            if changed or not begun:
                begun = True
                _again(given, run)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        raise
    except OSError as error:
        return fail(f"--watch: {error}")
    return CLEAN


def matters(path: str) -> bool:
    """Whether a change of the file `path` may change a finding."""
    name = os.path.basename(path)
    if not (name.endswith((*SUFFIXES, *_DATA)) or name in _OTHERS or name.startswith("requirements")):
        return False
    return not any(part in EXCLUDED for part in path.split(os.sep)[:-1])


def _again(given: argparse.Namespace, run: Callable[[argparse.Namespace], int]) -> None:
    from torchdet_lint.catalogue.texts import CatalogueError
    from torchdet_lint.config import ConfigError

    if sys.stdout.isatty():
        emit([_CLEAR])
    try:
        run(given)
    except (ConfigError, CatalogueError, UsageError) as error:
        fail(str(error))
    say("Waiting for changes; Ctrl-C ends it.", sys.stderr)
