"""A row of `rules/facts/ops.toml` -> an op: its spellings, what it does in each release, the rule that reports it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from torchdet_lint.catalogue.conditions import Condition, Table
from torchdet_lint.catalogue.probes import Probe
from torchdet_lint.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable


class Spelling(Table, frozen=True, kw_only=True):
    """One way to write a callable: its canonical dotted name and its parameters in order (no `self`).

    `parameters` stops at `*` where the rest is keyword-only. A method of a tensor is `torch.Tensor.name`. `forward`
    are the parameters of the call of an instance: with them the op is found where the instance is called.
    """

    name: str
    parameters: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()


class Status(Table, frozen=True, kw_only=True):
    """What an op does from release `since` on, until the next row: `errors` means that it raises in deterministic mode,
    `switchable` that the mode makes it deterministic, `silent` that nothing does and nothing tells. `instead` is what
    to do in these releases, where it is not what the op says."""

    since: str
    status: Literal["errors", "switchable", "silent", "deterministic", "absent"]
    note: str = ""
    instead: str = ""


class Rewrite(Table, frozen=True, kw_only=True):
    """Another way to write a call of an op, which is deterministic and gives the same values and gradients.

    In `content`, the new expression, `{name}` stands for the argument `name`, `{*name}` for its elements, `{self}` for
    the tensor that the op works on, `{function}` and `{*}` for what is called and all that is passed, `{torch}` for the
    module. An argument that `content` does not use may not be passed, unless `when` says what it is. In its place
    `arguments` gives single arguments another value. `names` are the last names of the spellings that it is for (none:
    all), `since` the first release of torch in which it helps; with `statement` nobody may use the result.
    """

    content: str = ""
    arguments: dict[str, str] = msgspec.field(default_factory=dict)
    names: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    since: str = "1.7"
    statement: bool = False
    dense: bool = False


class Op(Table, frozen=True, kw_only=True):
    """One nondeterministic op: all its spellings, the direction that varies, and where and when it does.

    `when` holds for the call; `dtypes` is `floating` where integer tensors are exact, `evident-floating` where almost
    every tensor is one and only evidence counts. A backward op asks for a tensor that may carry a gradient, with
    `gradient` `evident` for one that evidently does, and with `own` a layer of it has weights that do. `exact` says
    that it raises though its results do not vary, `values_exact` that only the indices beside its values do, and a
    gradient, which goes where they point. `aggregate` marks an op that is everywhere (a convolution): it is
    listed with the program's missing mode and never reported alone; `silent_because` one that no check reports, and
    why. `unless_within` are context managers, `name` or `name(argument)`, under which it does not vary. `rule` is the
    code that reports it where direction and status do not say. `package` is the distribution whose releases the history
    counts. `severity` is one of its own; `strict` says that deterministic mode makes it so only without `warn_only`.
    `measured`, `machine` and `softened` stand in no rule file: they say what a measurement showed, what machine it is
    valid for, and that it showed no difference.
    """

    op: str
    spellings: tuple[Spelling, ...]
    rule: str = ""
    package: str = "torch"
    direction: Literal["forward", "backward"]
    devices: tuple[str, ...] = ("cuda",)
    status: tuple[Status, ...]
    when: tuple[Condition, ...] = ()
    dtypes: Literal["any", "floating", "evident-floating"] = "any"
    receiver: Literal["tensor", "distinctive"] = "tensor"
    gradient: Literal["possible", "evident", "own"] = "possible"
    exact: bool = False
    values_exact: bool = False
    severity: Severity | None = None
    strict: bool = False
    aggregate: bool = False
    silent_because: str = ""
    unless_within: tuple[str, ...] = ()
    condition: str = ""
    instead: str = ""
    rewrites: tuple[Rewrite, ...] = ()
    evidence: tuple[str, ...] = ()
    probe: Probe | None = None
    measured: str = ""
    machine: str = ""
    softened: bool = False


def reported_as(op: Op, status: str) -> str:
    """The code that reports `op` where it has `status`: its own, or the one of its direction and status."""
    if op.rule:
        return op.rule
    if op.direction == "backward":
        return "TDL403"
    return "TDL402" if status == "switchable" else "TDL401"


def ops_of(code: str, ops: Iterable[Op], target: tuple[int, int] | None = None) -> list[Op]:
    """Those of `ops` that `code` reports, alone or with the program's mode, in release `target` of torch or in some."""
    found = []
    for op in ops:
        if op.silent_because:
            continue
        known = {row.status for row in op.status} if target is None else {status_at(op, target)}
        if any(reported_as(op, status) == code for status in known - {"absent", "deterministic"}):
            found.append(op)
    return found


def status_at(op: Op, target: tuple[int, int]) -> str:
    """The status of `op` in release `target` of torch; of another package the newest release is meant."""
    return status_in(op.status, target) if op.package == "torch" else op.status[-1].status


def instead_at(op: Op, target: tuple[int, int]) -> str:
    """What to do instead of `op` in release `target` of torch."""
    rows = [row for row in op.status if op.package == "torch" and release(row.since) <= target]
    return (rows[-1].instead if rows else "") or op.instead


def release(text: str) -> tuple[int, int]:
    """`"2.13"`, `"2.13.0+cpu"` -> `(2, 13)`. Raises `ValueError` for anything else."""
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"{text!r} is not a torch release such as 2.13")
    return int(match[1]), int(match[2])


def status_in(history: Iterable[Status], target: tuple[int, int]) -> str:
    """The status of an op in release `target`, from its history; `absent` before the first row."""
    found = "absent"
    for row in history:
        if release(row.since) <= target:
            found = row.status
    return found
