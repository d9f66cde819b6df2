"""What the project half of a run found, plain data: findings, and what it says of those of single files."""

from __future__ import annotations

import msgspec

from torchdet_lint.finding import Finding
from torchdet_lint.source.modules import Relied
from torchdet_lint.source.suppress import Rows

SWITCHED = "TDL201"
WORKERS = "TDL301"
DRAWN = "TDL107"
FRESH = "TDL105"
RECURRENT = "TDL404"
OPS = "TDL4"
MODE = "TDL203"
MISSED = {"TDL101": "seed:torch", "TDL102": "seed:numpy", "TDL103": "seed:python", MODE: "flag:mode"}
"""Rule -> the effect that a program lacks of which the rule speaks."""
BACKWARD = frozenset({"TDL403", "TDL405"})
LOADERS = frozenset({WORKERS, "TDL302", "TDL303"})
ONCE = frozenset({"TDL104", FRESH, DRAWN, "TDL302", "TDL303"})
"""Rules whose fix is safe where a generator is made, or a seed set, once in a run."""


class Settled(msgspec.Struct, array_like=True, omit_defaults=True):
    """What the whole run knows of one file: whether every entry point that imports it is in deterministic mode, and
    whether one of them seeds torch; if none does, the rows of findings that such a program evidently runs.

    `trained` says that every entry point that imports it and trains is in that mode, `workspace` that every one sets
    the workspace of cuBLAS; `seeds` are the libraries that one of them seeds, `aside` the first and last rows of what
    only tries the file out. `strict` says that no entry point only warns in that mode, `ungraded` that all of them run
    without gradients; `scored` are the rows of findings in what all of them run without gradients, `shared` those of
    findings in what this file runs once, but the files that import it perhaps too. `on_host` says that one of
    them trains, or hides all GPUs, and none that sees them names a device but the CPU, `host_script` that the file
    is a program by itself, which names none either; `off` are the rows of switches that no call in sight turns on,
    `repeated` those of loaders that a program which seeds torch evidently runs, `mixed` those that one runs which does
    not, too. `fresh` says that one of them may take a seed that is different in every run; `unreached` are the rows of
    findings about ops in arms that all calls rule out, `early` those of loaders that a program makes before it seeds
    torch. `drawn` are the rows of draws for want of a generator that only programs which never seed NumPy run.
    `partly` says that one of them seeds torch only in some of its runs."""

    covered: bool = False
    seeded: bool = False
    unseeded: tuple[int, ...] = ()
    trained: bool = False
    workspace: bool = False
    seeds: tuple[str, ...] = ()
    aside: tuple[int, ...] = ()
    strict: bool = False
    ungraded: bool = False
    scored: tuple[int, ...] = ()
    shared: tuple[int, ...] = ()
    on_host: bool = False
    off: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    mixed: tuple[int, ...] = ()
    fresh: bool = False
    unreached: tuple[int, ...] = ()
    host_script: bool = False
    early: tuple[int, ...] = ()
    drawn: tuple[int, ...] = ()
    partly: bool = False


class Outcome(msgspec.Struct, array_like=True, omit_defaults=True):
    """All that the project half found, by absolute path, and what it went by besides the linted files: the hashes of
    the files it read ("": one that cannot be read), the states of the folders it looked into, looks at other files.

    Texts name files by `token`, for what the user is shown depends on where the linter is started."""

    findings: dict[str, list[tuple[Finding, Rows]]] = {}
    settled: dict[str, Settled] = {}
    read: dict[str, str] = {}
    errors: tuple[str, ...] = ()
    folders: dict[str, str] = {}
    relied: tuple[Relied, ...] = ()


def token(path: str) -> str:
    """The absolute `path` as texts have it until the user is shown it."""
    return f"\0{path}\0"


def is_open(finding: Finding) -> bool:
    """Whether the whole program has a say in a finding."""
    return (
        finding.switchable
        or bool(finding.raises)
        or finding.gradient
        or finding.on_device
        or bool(finding.seeded_by)
        or finding.code in {*LOADERS, RECURRENT, SWITCHED}
        or is_mended_once(finding)
    )


def is_mended_once(finding: Finding) -> bool:
    """Whether the fix of a finding is called safe because what it changes runs once."""
    return finding.code in ONCE and finding.fix is not None and finding.fix.applicability == "safe"
