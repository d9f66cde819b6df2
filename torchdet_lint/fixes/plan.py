"""The changes that a check asks for -> the fix: which kind of change comes when, and what is refused."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from torchdet_lint.finding import (
    DropArgument,
    Edit,
    Fix,
    InsertBefore,
    NeedFunction,
    NeedHelper,
    NeedImport,
    Replace,
    SeedFunction,
    SetArgument,
    Withhold,
)
from torchdet_lint.fixes.arguments import dropped, move_to_holder, set_arguments
from torchdet_lint.fixes.definitions import function, seed_source, worker_function
from torchdet_lint.fixes.draft import Draft
from torchdet_lint.fixes.edits import Refusal
from torchdet_lint.fixes.entry import CUBLAS, DETERMINISTIC, enter, enter_seeds, seeded_function
from torchdet_lint.fixes.layout import Layout
from torchdet_lint.fixes.statements import inserted, replaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change, Violation
    from torchdet_lint.module.module import Module


class Planner:
    """Plans the fixes of one file; `seed` is the configured one."""

    def __init__(self, module: Module, seed: int = 0) -> None:
        self.module = module
        self.seed = seed

    @functools.cached_property
    def layout(self) -> Layout:
        """The file as a whole, looked at when the first fix is planned."""
        return Layout(self.module)

    def plan(self, found: Violation, rule: Rule) -> Fix | None:
        """The edits that `found.changes` come to, or why there are none; None where nothing was asked for."""
        if not found.changes:
            return None
        applicability = found.applicability or rule.fix or "unsafe"
        message = rule.fix_title or f"Fix {rule.name}"
        try:
            edits = _edits(Draft(self.layout, found.node, rule, self.seed), found.changes)
        except Refusal as refusal:
            return Fix(applicability, message, (), str(refusal))
        return Fix(applicability, message, edits)


def _edits(draft: Draft, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """All edits: imports, helpers, then what happens at the place of the finding."""
    for change in changes:
        if isinstance(change, NeedImport):
            draft.needed[change.module.rpartition(":")[2]] = change.module
        elif isinstance(change, Withhold):
            raise Refusal(change.reason)
        elif isinstance(change, SetArgument):
            move_to_holder(draft, change)
    for change in changes:
        if isinstance(change, NeedHelper):
            _helper(draft, change)
        elif isinstance(change, NeedFunction):
            draft.helpers[change.name] = function(draft, change)
    local = [edit for change in changes for edit in _local(draft, change)]
    passed: dict[int, list[SetArgument]] = {}
    for change in changes:
        if isinstance(change, SetArgument):
            passed.setdefault(id(change.call), []).append(change)
    for arguments in passed.values():
        local += set_arguments(draft, arguments)
    for change in changes:
        if isinstance(change, NeedImport) and change.module not in draft.named:
            draft.name(change.module, "", draft.node, None)
    return tuple(dict.fromkeys([*draft.file_edits, *local]))


def _local(draft: Draft, change: Change) -> list[Edit]:
    """The edits of a change of one place."""
    if isinstance(change, Replace):
        return [replaced(draft, change)]
    if isinstance(change, DropArgument):
        return [dropped(draft, change)]
    if isinstance(change, InsertBefore):
        return [inserted(draft, change)]
    return [seeded_function(draft, change)] if isinstance(change, SeedFunction) else []


def _helper(draft: Draft, need: NeedHelper) -> None:
    if need.name == "seed_worker":
        draft.helpers["seed_worker"] = worker_function(draft)
    elif need.name == "seed_source":
        draft.helpers["seed_source"] = seed_source(draft, need.seed)
    elif need.name == "seeds":
        enter_seeds(draft, need)
    elif need.name == "deterministic":
        enter(draft, [DETERMINISTIC])
    elif need.name == "cublas":
        enter(draft, [CUBLAS])
    else:
        raise ValueError(f"no helper is called {need.name!r}")
