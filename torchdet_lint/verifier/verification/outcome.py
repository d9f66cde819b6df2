"""The result of a verification, plain data: runs, causes, how far they spread, what the fixes did, the verdict."""

from __future__ import annotations

from typing import Literal

import msgspec

import torchdet_lint
from torchdet_lint.catalogue.measured import Machine
from torchdet_lint.verifier.comparison.explain import Finding
from torchdet_lint.verifier.comparison.losses import Losses
from torchdet_lint.verifier.comparison.outcome import Lockstep, Parting
from torchdet_lint.verifier.comparison.verdict import Verdicts

SCHEMA = "torchdet-lint/verify/1"
Mode = Literal["pair", "stress", "lockstep"]


class VerifyError(Exception):
    """A verification that cannot be done; the text is one line."""


class Diverged(AssertionError):
    """Raised by `Report.raise_if_diverged`; the text is the report for a screen."""


class RunSummary(msgspec.Struct, frozen=True):
    """One run: how it ended, how long it took (wall time, and CPU time of all its
    processes), how many ops were recorded, what it was subjected to."""

    name: str
    status: str
    returncode: int
    seconds: float
    records: int
    stress: str = ""
    strays: int = 0
    recording: str = ""
    cpu_seconds: float = 0.0


class Cause(msgspec.Struct, frozen=True):
    """One root cause: where, which op, the rule that speaks of it, and the evidence. `proven` says that the fix of the
    rule makes the runs equal here, and that they differ without it. `step` and `epoch` count from 1 (0: not known); for
    memory that nothing had written the place is its allocation, where known, and `reader` is who read it; `places` are
    the others at which the same cause was met; `decided` is the one condition on the way of paths that part, if it is
    known; the fix of each rule in `gone_with` alone made it go, of those in `left_with` not. See docs/verifier-json.md.
    """

    rule: str
    name: str
    also: tuple[str, ...]
    message: str
    kind: str
    source: str
    op: str
    phase: str
    file: str
    line: int
    function: str
    forward_op: str
    forward_file: str
    forward_line: int
    op_index: int
    differing: int
    compared: int
    inputs_equal: bool
    generators: dict[str, str]
    stream: str
    other: str = ""
    finding: Finding | None = None
    instead: str = ""
    runtime_fix: str = ""
    runtime_note: str = ""
    proven: bool = False
    step: int = 0
    epoch: int = 0
    reader: str = ""
    task: str = ""
    places: tuple[str, ...] = ()
    decided: str = ""
    gone_with: tuple[str, ...] = ()
    left_with: tuple[str, ...] = ()


class Tolerance(msgspec.Struct, frozen=True):
    """Whether the losses of both runs agree within `relative`: all that a recording keeps the values of. `met` is False
    where there is none to compare; `why` says in a few words what decided.
    """

    relative: float
    met: bool
    why: str


class Values(msgspec.Struct, frozen=True):
    """What differs at one op, from a second pass that kept its tensors: how many of `elements` values, the largest
    absolute and relative difference and that in units in the last place, where the largest is and both values there.

    `name` is the parameter's or the variable's, where one is known. `one_ulp` is how far the output moves where each
    input moves by one unit in the last place; `size` is `rounding` or `larger` by it, or empty where that is not
    established. Of `replayed` repetitions on the same inputs `replay_differing` gave another result than most, at a
    rate between `replay_low` and `replay_high` (95 %). Where the second pass showed no difference, `differing` is 0; so
    it is where run B's tensor is of an `other_shape` than run A's, and values have no twins.
    """

    op: str
    phase: str
    step: int
    tensors: int
    tensors_differing: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    differing: int
    largest: float
    relative: float
    ulp: int
    index: tuple[int, ...]
    a: float
    b: float
    not_finite: int = 0
    one_ulp: float = 0.0
    size: Literal["", "rounding", "larger"] = ""
    replayed: int = 0
    replay_differing: int = 0
    replay_low: float = 0.0
    replay_high: float = 1.0
    other_shape: tuple[int, ...] | None = None


class Spread(msgspec.Struct, frozen=True):
    """How far the difference goes: records compared and differing, whether it lasts, where paths part."""

    compared: int
    differing: int
    persistence: str
    consequences: int
    partings: tuple[Parting, ...] = ()


class Attempt(msgspec.Struct, frozen=True):
    """A set of fixes that was tried: the verdict of the runs under it, and the places (`file:line`) of the causes that
    were left."""

    fixes: tuple[str, ...]
    verdict: str
    left: tuple[str, ...] = ()


class FixOutcome(msgspec.Struct, frozen=True):
    """What the fixes did: `fixes` is the smallest set that suffices (all that were tried, where none does), `ratio` the
    CPU time of a fixed run to a plain one, 0 where that is not known. `command` edits the source; of the edited program
    `edited_runs` runs were verified, and all were equal.
    """

    cured: bool
    fixes: tuple[str, ...]
    tried: tuple[str, ...]
    ratio: float
    command: str = ""
    notes: tuple[str, ...] = ()
    edited_runs: int = 0
    attempts: tuple[Attempt, ...] = ()


class Judged(msgspec.Struct, frozen=True):
    """A finding of the linter's and what the runs say of it: `state`, and in a few words `why`. `digest` is the sha256
    of the file that was linted and run.
    """

    code: str
    filename: str
    line: int
    message: str
    state: Literal["confirmed", "not reached", "not reproduced"]
    why: str
    digest: str


class Left(msgspec.Struct, frozen=True):
    """Something that the runs left behind and that differs: a file by its name, standard output or the exit status.

    `certain` is False where the difference may be one of order or of a format that is not understood; `last` is the
    last line with a number that differs, `hint` what to do where it is of no matter.
    """

    name: str
    difference: str
    certain: bool = True
    last: str = ""
    hint: str = ""


class Held(msgspec.Struct, frozen=True):
    """What the program did against a fix, and what came of it: refused or replaced."""

    rule: str
    message: str
    file: str
    line: int


class Outcome(Verdicts, frozen=True):
    """The outcome of a verification; `verdict` first, then what was not covered, the causes in order of execution,
    how far they spread, and what differs between the two environments. `without_effect` are differences that left no
    trace in the results; `held` is what the program did against the fixes; `left` what differs in what the runs left
    behind, of which `compared_files` and `compared_lines` were compared; `masked_files` and `masked_lines` are
    equal only without timings, dates and the like; `crash` how a run ended that failed alone;
    `measured_on` the machine whose measurement the ops were judged by; `losses` those of both runs, by step; `values`
    how much differs at the first difference, and at the first of an optimizer; `tolerance` is that of `compare`;
    `evidence` what the runs say of the linter's findings; `lockstep` how far run B went on with run A's values.
    """

    mode: str
    program: tuple[str, ...]
    runs: tuple[RunSummary, ...]
    causes: tuple[Cause, ...]
    spread: Spread
    not_covered: tuple[str, ...]
    environment: dict[str, tuple[str, str]]
    without_effect: tuple[Cause, ...] = ()
    fixes: tuple[str, ...] = ()
    fix: FixOutcome | None = None
    held: tuple[Held, ...] = ()
    left: tuple[Left, ...] = ()
    compared_files: int = 0
    compared_lines: int = 0
    masked_files: int = 0
    masked_lines: int = 0
    crash: str = ""
    failure: str = ""
    command: str = ""
    measured_on: Machine | None = None
    losses: Losses | None = None
    values: tuple[Values, ...] = ()
    tolerance: Tolerance | None = None
    evidence: tuple[Judged, ...] = ()
    lockstep: Lockstep | None = None
    schema: str = SCHEMA
    version: str = torchdet_lint.__version__

    @property
    def first(self) -> Cause | None:
        """The earliest cause, or None."""
        return self.causes[0] if self.causes else None

    @property
    def exit_status(self) -> int:
        """0 identical, or within the tolerance that was asked for; 1 diverged, 3 the program itself failed, or nothing
        was compared."""
        if self.verdict == "diverged" and self.tolerance is not None and self.tolerance.met:
            return 0
        return super().exit_status
