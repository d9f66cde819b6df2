"""How much two runs differ -> lines for a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.verifier.verification.outcome import Outcome, Values


_MANY_ULP = 1_000_000
"""From so many units in the last place on, their number says no more than the relative difference."""


def amounts(report: Outcome) -> list[str]:
    """How much differs at the first difference, at the optimizer's first, and in the losses; each line may be long."""
    return [*_values(report.values), *_losses(report)]


def _many(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def _values(values: tuple[Values, ...]) -> list[str]:
    lines = []
    nothing = (
        ""
        if any(one.differing or one.other_shape is not None for one in values)
        else ": how much differs is not established"
    )
    for number, one in enumerate(values):
        name = one.name or f"the output of {one.op}"
        if one.other_shape is not None:
            if not number:
                lines.append(f"values: {name} has the shape {list(one.shape)} | {list(one.other_shape)}")
            continue
        if not one.differing:
            if not number:
                lines.append(f"values: a second pass showed no difference at {one.op}{nothing}")
            continue
        more = one.tensors_differing - 1
        also = f" and {more} more tensor{'s' * (more > 1)}" if more > 0 else ""
        place = f" at {list(one.index)}" if one.index else ""
        ulp = f", {_many(one.ulp)} ulp" if 0 < one.ulp < _MANY_ULP else ""
        head = f"the optimizer, in step {one.step}" if number else "values"
        far = f"; {_many(one.not_finite)} not finite" if one.not_finite else ""
        size = f"the largest by {one.largest:.3g} (relative {one.relative:.2g}{ulp})"
        if one.not_finite == one.differing:
            size, far = "all where a run has no finite number", ""
        lines.append(
            f"{head}: {_many(one.differing)} of {_many(one.elements)} of {name}{also} differ, {size}: "
            f"{one.a:.9g} | {one.b:.9g}{place}{far}"
        )
        if one.size == "rounding":
            lines.append(f"rounding: one ulp in its inputs moves it by {one.one_ulp:.3g}")
        elif one.size == "larger":
            lines.append(f"more than rounding: one ulp in its inputs moves it by {one.one_ulp:.3g} only")
        if one.replayed:
            lines.append(
                f"replayed {one.replayed} times on the same inputs: {one.replay_differing} gave another result than "
                f"most (a rate between {one.replay_low:.1%} and {one.replay_high:.1%}, 95 %)"
            )
    return lines


def _losses(report: Outcome) -> list[str]:
    """When the losses of the two runs differ, and by how much."""
    told = report.losses
    if report.verdict != "diverged" or told is None or not told.compared:
        return []
    if told.first is None:
        end = f"; the last is {told.last.a:.9g}" if told.last is not None else ""
        return [f"loss: equal in both runs, {told.compared} of {told.compared}{end}"]
    first, last = told.first, told.last or told.first
    most = f", by at most {told.largest:.3g} ({told.relative:.2g} of its value)" if told.largest else ""
    when = f"from step {first.step} on" if first.step else f"in {told.differing} of {told.compared}, first"
    begin = f"loss: differs {when} ({first.a:.9g} | {first.b:.9g}){most}"
    return [f"{begin}; the last is {last.a:.9g} | {last.b:.9g}"]
