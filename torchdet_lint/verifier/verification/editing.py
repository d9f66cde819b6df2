"""The rules whose fixes make the runs equal -> the linter's command whose edit of the source does so too.

Nothing is believed: the edit is made on a copy of the working folder, or of the program's where that lies outside of
it, and the edited program is verified.
"""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.comparison import explain
from torchdet_lint.verifier.remedies.fixes import BY_RULE
from torchdet_lint.verifier.verification.report import seen_from_here
from torchdet_lint.verifier.verification.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.verification.outcome import Cause
    from torchdet_lint.verifier.verification.report import Report

_CONFIRMATIONS = 2


class Verify(Protocol):
    """Verifies a program without any intervention."""

    def __call__(self, program: Program) -> Report:
        """The report on its runs."""
        ...


class Edit(NamedTuple):
    """A command that edits the source, and how many runs of the edited program were equal."""

    command: str
    runs: int


def spoken_of(codes: Iterable[str], findings: Iterable[explain.Finding]) -> tuple[str, ...]:
    """`codes`; one that the linter does not report is changed for one of the same runtime fix that it does."""
    found = sorted({finding.code for finding in findings})
    chosen = []
    for code in codes:
        alike = [other for other in found if other in BY_RULE and BY_RULE[other] == BY_RULE.get(code)]
        chosen.append(code if code in found or not alike else alike[0])
    return tuple(sorted(set(chosen)))


def reported(program: Program, causes: Iterable[Cause]) -> tuple[explain.Finding, ...]:
    """What the linter reports in the program's file and in those of the causes."""
    home = _home(program)
    found = explain.lint(home / name for name in _files(program, causes, home))
    return tuple(msgspec.structs.replace(one, filename=seen_from_here(one.filename, Path())) for one in found)


def _start(program: Program) -> Path:
    return Path(program.directory or Path.cwd()).resolve()


def _home(program: Program) -> Path:
    """The folder that an edit is tried on a copy of: the working folder, or the program's where that is another."""
    start = _start(program)
    folder = (start / program.target).resolve().parent
    return start if program.kind == "module" or folder.is_relative_to(start) else folder


def cure(
    program: Program,
    codes: Iterable[str],
    causes: Sequence[Cause],
    findings: Sequence[explain.Finding],
    verify: Verify,
) -> Edit | None:
    """The first edit, the smallest before the larger, the safe before the unsafe, after which all runs are equal; None
    where none is, or where the folder cannot be copied. `findings` are those that `reported` gives for `causes`.
    """
    home = _home(program)
    files = _files(program, causes, home)
    tried: set[tuple[str, ...]] = set()
    for chosen in _choices(tuple(codes), findings, causes):
        for unsafe in (False, True):
            words = ["--fix", *(["--unsafe-fixes"] if unsafe else []), "--select", ",".join(chosen)]
            with tempfile.TemporaryDirectory(prefix="torchdet-") as room:
                copy = Workspace(home, Path(room))
                if copy.in_place:
                    return None
                copy.begin()
                before = _texts(copy.folder, files)
                explain.run_linter([*words, *files], copy.folder)
                after = _texts(copy.folder, files)
                if after == before or after in tried:
                    continue
                tried.add(after)
                edited = _edited(program, copy)
                equal = 0
                for _ in range(_CONFIRMATIONS):
                    report = verify(edited)
                    if report.verdict != "identical":
                        break
                    equal += len(report.runs)
                else:
                    named = [_as_named(program, home, name) for name in files]
                    return Edit(f"torchdet-lint {shlex.join([*words, *named])}", equal)
    return None


def _edited(program: Program, copy: Workspace) -> Program:
    """The program as it stands in the copy of its home; one from outside of the working folder stays there."""
    if copy.original == _start(program):
        return dataclasses.replace(program, directory=str(copy.folder), target=copy.turned(program.target))
    return dataclasses.replace(program, target=str(copy.folder / (_start(program) / program.target).resolve().name))


def _as_named(program: Program, home: Path, name: str) -> str:
    """A file of the home as it is named from the working folder: in full where the program is."""
    start = _start(program)
    in_full = home != start and Path(program.target).is_absolute()
    return str(home / name) if in_full else relpath(home / name, start)


def by_hand(codes: Iterable[str]) -> tuple[str, ...]:
    """What to put into the code where no edit cures, in the rules' own words."""
    rules = loading.load().rules
    return tuple(f"by hand: {code}: {rules[code].instead}" for code in codes if code in rules and rules[code].instead)


def _files(program: Program, causes: Iterable[Cause], home: Path) -> list[str]:
    """The program's file, and those of the causes, relative to its home where they lie in it."""
    named = [] if program.kind == "module" else [program.target]
    for cause in causes:
        named += [cause.file, cause.forward_file, cause.finding.filename if cause.finding is not None else ""]
    start = _start(program)
    folders = [start, (start / program.target).parent]
    found: dict[str, None] = {}
    for name in filter(None, (name.partition("#cell-")[0] for name in named)):
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is not None and path.resolve().is_relative_to(home):
            found.setdefault(path.resolve().relative_to(home).as_posix())
    return list(found)


def _choices(
    codes: tuple[str, ...], findings: Sequence[explain.Finding], causes: Sequence[Cause]
) -> Iterator[tuple[str, ...]]:
    """Codes to select, the fewest first: those that suffice at run time, all of the same fixes, those of the causes."""
    rules = loading.load().rules
    found = {finding.code for finding in findings}
    fixable = {code for code in found if code in rules and rules[code].fix is not None}
    fixes = {BY_RULE[code] for code in codes if code in BY_RULE}
    named = {code for cause in causes for code in (cause.rule, *cause.also)}
    told = {cause.finding.code for cause in causes if cause.finding is not None}
    first = set(spoken_of(codes, findings)) & fixable
    if "seed-everything" in fixes:
        # At run time it stands for each of the seeds that the program may lack.
        first |= {code for code in fixable if BY_RULE.get(code, "").startswith("seed-")}
    second = first | {code for code in fixable if BY_RULE.get(code) in fixes}
    third = second | (fixable & (named | told))
    seen: set[frozenset[str]] = {frozenset()}
    for choice in (first, second, third):
        if frozenset(choice) not in seen:
            seen.add(frozenset(choice))
            yield tuple(sorted(choice))


def _texts(folder: Path, files: Iterable[str]) -> tuple[str, ...]:
    return tuple((folder / name).read_text(encoding="utf-8", errors="replace") for name in files)
