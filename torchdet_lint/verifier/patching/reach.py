"""A start of Python that neither PYTHONPATH nor a .pth file reaches -> an event that says so."""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.frames import asker
from torchdet_lint.verifier.patching.inheritance import BOOTSTRAP
from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.verifier.patching.events import Reporter
    from torchdet_lint.verifier.patching.patches import Patches

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?(\.exe)?")
_COMPILER = os.path.join("torch", "_inductor", "")  # noqa: PTH118
"""Where torch.compile starts processes in which it compiles, and tries what the processor can: none runs the program's
code.
"""
_FLAGS = re.compile(r"-[a-zA-Z]+")


def watch(patches: Patches, reporter: Reporter) -> None:
    """Report every Python program that `subprocess` starts past the bootstrap."""

    def install(subprocess: Any) -> None:
        original = subprocess.Popen.__init__
        if hasattr(original, "watched"):
            return

        @functools.wraps(original)
        def __init__(self: Any, args: Any, *more: Any, **named: Any) -> None:  # noqa: N807
            reason = why_unreached(args, named.get("env"))
            if reason and _COMPILER not in asker(sys._getframe(1)):
                reporter.report("", f"a Python process starts {reason}: what it does is neither recorded nor changed")
            original(self, args, *more, **named)

        __init__.watched = True  # type: ignore[attr-defined]
        patches.set(subprocess.Popen, "__init__", __init__)

    after_import(patches, "subprocess", install)


def why_unreached(arguments: Any, environment: Mapping[str, str] | None) -> str:
    """Why a command line would not run the bootstrap, in a few words; empty where it would, or is no Python."""
    words = _words(arguments)
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return ""
    flags = "".join(_flags(words[1:]))
    if "S" in flags:
        return "with -S, which leaves out what starts the verifier in it"
    if set("IE") & set(flags) and not _has_path_file():
        return "with -I or -E, which ignore PYTHONPATH (an installed torchdet-lint would reach it)"
    if environment is not None and str(BOOTSTRAP) not in environment.get("PYTHONPATH", "").split(os.pathsep):
        return "in an environment made without this one's PYTHONPATH"
    return ""


def _words(arguments: Any) -> list[str]:
    if isinstance(arguments, (list, tuple)):
        return [os.fsdecode(word) for word in arguments if isinstance(word, (str, bytes, os.PathLike))]
    try:
        return shlex.split(os.fsdecode(arguments))
    except (ValueError, TypeError):
        return []


def _flags(words: Sequence[str]) -> list[str]:
    """The letters of the interpreter's own flags, which end at the program."""
    found = []
    for word in words:
        if word in ("-c", "-m") or not _FLAGS.fullmatch(word):
            break
        if word[1] in "WX" and len(word) == 2:
            break
        found.append(word[1:])
        if word[-1] in "cm":
            break
    return found


def _has_path_file() -> bool:
    return any(Path(sysconfig.get_path(kind), "torchdet_lint.pth").exists() for kind in ("purelib", "platlib"))
