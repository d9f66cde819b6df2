"""A program -> three runs: to a save, resumed from it, and uninterrupted -> what the resumed one has lost."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torchdet_lint
from torchdet_lint.verifier.comparison.verdict import Verdicts
from torchdet_lint.verifier.launch import launch
from torchdet_lint.verifier.launch.standard import last_words, standard_input
from torchdet_lint.verifier.patching.inheritance import RESUME, with_bootstrap
from torchdet_lint.verifier.steps.compare import Difference, difference, losses_of
from torchdet_lint.verifier.steps.format import (
    BATCH,
    BUFFERS,
    GENERATORS,
    GRADIENTS,
    LOSS,
    OPTIMIZER,
    PARAMETERS,
    STATES,
    Step,
    Steps,
)
from torchdet_lint.verifier.steps.resuming import Order
from torchdet_lint.verifier.verification.outcome import VerifyError
from torchdet_lint.verifier.verification.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.verification.options import Progress

PLACEHOLDER = "{resume}"
_NAMES = ("saving", "resumed", "uninterrupted")
_HELD = (PARAMETERS, BUFFERS, OPTIMIZER, STATES)
_ORDER = (PARAMETERS, OPTIMIZER, STATES, BATCH, LOSS, GRADIENTS)
"""What stands before a step comes first, then what happens in it."""


_IN_ALL = tuple(group for group in _ORDER if group != STATES)
"""What every step holds."""


class ResumeReport(Verdicts, frozen=True):
    """Whether a run that was resumed after step `saved` is the uninterrupted one, in `compared` steps.

    `forgotten` is what differs before the first resumed step, and what the program would have to save and load;
    `step` is the first that differs in its batch, loss, gradients, parameters or optimizer (0: none) and `differences`
    what differs in it. `unsteady` is the first step at which two runs without a resume differ already (0: none).
    `without_effect` are generators that stand elsewhere, while nothing in these steps shows it.
    """

    verdict: Literal["identical", "diverged"]
    program: tuple[str, ...]
    resumed_with: tuple[str, ...]
    saved: int
    compared: int
    step: int
    forgotten: tuple[Difference, ...]
    differences: tuple[Difference, ...]
    losses: dict[str, tuple[float, float]]
    last_losses: dict[str, tuple[float, float]]
    unsteady: int = 0
    without_effect: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    schema: str = "torchdet-lint/resume/1"
    version: str = torchdet_lint.__version__


def least_of(words: str) -> int:
    """N of `step=N`. Raises `VerifyError`."""
    match = re.fullmatch(r"(?:step=)?(\d{1,9})", words)
    if match is None or not int(match[1]):
        raise VerifyError(f"--resume {words}: write step=N, the optimizer step after which the program saves")
    return int(match[1])


def check_resume(
    program: Program,
    least: int,
    resume_with: str = "",
    *,
    timeout: float | None = None,
    workdir: Path | None = None,
    progress: Progress | None = None,
) -> ResumeReport:
    """Run `program` until it has saved after step `least` or later, end it, start it again in the folder that it left,
    and compare that run with an uninterrupted one, step by step.

    The words `resume_with` stand in the resumed run where the command has `{resume}`, else at its end; in the other
    runs there is nothing. Raises `VerifyError`, `LaunchError` and `StepsError`, each in one line.
    """
    try:
        more = tuple(shlex.split(resume_with))
    except ValueError as error:
        raise VerifyError(f"--resume-with {resume_with}: {error}") from error
    with contextlib.ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torchdet-", dir=workdir)))
        runs = _Runs(program, room, timeout, progress, bounded=workdir is None)
        until = runs.run(_NAMES[0], (), least=least, end=2 * least + 1)
        saved = until.saved(least)
        left = runs.left
        resumed = runs.run(_NAMES[1], more, begin=left, census=1, end=saved + 1)
        if not any(what == "load" for what, _, _ in resumed.notes):
            raise VerifyError(
                "the resumed run loads nothing by torch.load or safetensors: tell it what to load with --resume-with"
            )
        whole = runs.run(_NAMES[2], (), census=saved + 1, end=2 * saved + 1)
        return _judged(program, more, saved, until, resumed, whole)


class _Run:
    """What one run noted."""

    def __init__(self, name: str, steps: Path, notes: Path) -> None:
        self.name = name
        self.path = steps
        self.notes = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]

    @property
    def steps(self) -> dict[int, Step]:
        """Its steps, by number."""
        if not self.path.exists():
            hint = "let the program make twice as many steps"
            if self.name != "resumed":
                hint = "runs are held against each other at the steps of torch's optimizers"
            raise VerifyError(f"the {self.name} run made no step of an optimizer: {hint}")
        return {step.number: step for step in Steps(self.path)}

    def saved(self, least: int) -> int:
        """The step after which it saved last. Raises `VerifyError`."""
        saves = [step for what, step, _ in self.notes if what == "save" and step >= least]
        if not saves:
            last = max(self.steps)
            if last < least:
                made = f"{last} step{'s' * (last != 1)}"
                raise VerifyError(f"--resume step={least}: the program ends after {made}")
            raise VerifyError(f"the program saved nothing by torch.save or safetensors after steps {least} to {last}")
        return int(saves[-1])


class _Runs:
    """Runs of a program, each in a copy of its folder."""

    def __init__(
        self, program: Program, room: Path, timeout: float | None, progress: Progress | None, *, bounded: bool
    ) -> None:
        self.program, self.room, self.timeout, self.progress = program, room, timeout, progress
        self.workspace = Workspace(Path(program.directory or Path.cwd()), room, bounded=bounded)
        if self.workspace.in_place:
            raise VerifyError(f"--resume needs copies of the working folder: {self.workspace.in_place}")
        self.left: dict[str, Path] = {}

    def run(self, name: str, more: tuple[str, ...], *, begin: Mapping[str, Path] | None = None, **order: int) -> _Run:
        """One run; `begin` are files that it finds beside those of the folder."""
        steps, notes = self.room / f"{name}.tdsteps", self.room / f"{name}.notes"
        notes.touch()
        self.workspace.begin()
        for file, kept in (begin or {}).items():
            target = self.workspace.folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(kept, target)
        told = json.dumps(Order(str(steps), str(notes), **order)._asdict(), separators=(",", ":"))
        with (self.room / f"{name}.err").open("w+b") as errors, standard_input() as stdin:
            result = launch.run_child(
                self._there(more),
                environment=with_bootstrap({RESUME: told}),
                timeout=self.timeout,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                tick=lambda: self.progress(f"{_NAMES.index(name) + 1} of 3, {name}", 0, 0) if self.progress else None,
            )
            errors.seek(0)
            said = self.workspace.turned_back(errors.read()[-16384:].decode("utf-8", "replace"))
        if result.status == "interrupted":
            raise KeyboardInterrupt
        if not result.ok:
            root = Path(self.program.directory or Path.cwd())
            tail = last_words(said, result, root)
            raise VerifyError(f"the {name} run {result.sentence(self.timeout)}" + (f": {tail}" if tail else ""))
        self.left = self.workspace.end(self.room / f"{name}.left")
        found = _Run(name, steps, notes)
        outside = [path for what, _, path in found.notes if what == "save" and not self._inside(path)]
        if outside:
            raise VerifyError(
                f"the program saves {outside[0]}, outside of its working folder: the runs would mix there"
            )
        return found

    def _inside(self, path: str) -> bool:
        return Path(path).resolve().is_relative_to(self.workspace.folder.resolve())

    def _there(self, more: tuple[str, ...]) -> Program:
        words: list[str] = []
        for word in self.program.arguments:
            words += more if word == PLACEHOLDER else [word]
        if PLACEHOLDER not in self.program.arguments:
            words += more
        turned = self.workspace.turned
        return dataclasses.replace(
            self.program,
            directory=str(self.workspace.folder),
            target=turned(self.program.target),
            arguments=tuple(turned(word) for word in words),
        )


def _judged(
    program: Program, more: tuple[str, ...], saved: int, until: _Run, resumed: _Run, whole: _Run
) -> ResumeReport:
    first, after, all_of_it = until.steps, resumed.steps, whole.steps
    common = sorted(first.keys() & all_of_it.keys())
    unsteady = next((n for n in common if _differing(all_of_it[n], first[n], _IN_ALL)), 0)
    unseeded = _differing(first[common[-1]], all_of_it[common[-1]], (GENERATORS,)) if common else ()
    pairs = [(n, all_of_it[saved + n], after[n]) for n in sorted(after) if saved + n in all_of_it]
    if not pairs:
        raise VerifyError(
            f"the uninterrupted run ends after {max(all_of_it)} steps, the checkpoint was made after {saved}: "
            "let the program make twice as many steps"
        )
    head = _differing(pairs[0][1], pairs[0][2], (*_ORDER, GENERATORS))
    found = _with_effect([(saved + n, _differing(one, two, _IN_ALL)) for n, one, two in pairs])
    step, differences = next(((n, told) for n, told in found if told), (0, ()))
    if not {one.group for one in head} & {PARAMETERS, BATCH, GENERATORS}:
        # Else the forward pass of this step may have made them different.
        head = (*head, *_differing(pairs[0][1], pairs[0][2], (BUFFERS,)))
    forgotten = [one for one in head if one.group in (*_HELD, BATCH, GENERATORS) and one not in unseeded]
    aside: tuple[str, ...] = ()
    if not step:
        aside = tuple(name for one in forgotten if one.group == GENERATORS for name in one.names)
        forgotten = [one for one in forgotten if one.group not in (GENERATORS, BATCH)]
    return ResumeReport(
        "diverged" if step or forgotten or unsteady else "identical",
        tuple(program.words),
        more,
        saved,
        len(pairs),
        step,
        tuple(forgotten),
        differences,
        next((losses_of(one, two) for n, one, two in pairs if saved + n == step), {}),
        losses_of(*pairs[-1][1:]),
        unsteady,
        aside,
        tuple(_not_covered(pairs[0][1], len(pairs), saved)),
    )


def _with_effect(found: list[tuple[int, tuple[Difference, ...]]]) -> list[tuple[int, tuple[Difference, ...]]]:
    """What differs by steps, without batches after which nothing differs: those of a validation, say, that only the
    uninterrupted run had before this step.
    """
    alone = [{one.group for one in told} <= {BATCH} for _, told in found]
    return [
        (step, () if alone[n] and all(alone[n + 1 : n + 2]) and n + 1 < len(found) else told)
        for n, (step, told) in enumerate(found)
    ]


def _differing(a: Step, b: Step, groups: tuple[str, ...]) -> tuple[Difference, ...]:
    found = []
    for group in groups:
        lost = a.parts(group) if group == STATES and group not in b.digests else {}
        told = Difference(group, len(lost), len(lost), tuple(lost)) if lost and group in a.digests else None
        found.append(told or difference(group, a, b, {}))
    return tuple(one for one in found if one is not None)


def _not_covered(step: Step, compared: int, saved: int) -> Iterator[str]:
    names = {name for name, _ in step.definition.groups}
    if BATCH not in names:
        yield "batches: no torch DataLoader hands them to this process, so the position in the data is not known"
    if LOSS not in names:
        yield "loss: no backward() was seen before the end of the first step"
    if compared < saved:
        yield f"steps {saved + compared + 1} to {2 * saved}: one of the runs ended before them"
