"""Results -> words and numbers, the same in every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.catalogue.measured import Machine, Measurement, Result, Row

_READABLE_ULP = 1 << 20
_FEW_PERCENT = 0.1


def outcome(result: Result) -> str:
    """What a result says: "differed in 34 of 200 runs (17 %, 95 % interval 12 % to 23 %), by up to 3 ulp"."""
    if result.outcome == "equal":
        return unseen(result)
    if result.outcome != "differs":
        return f"{result.outcome}: {result.note}" if result.note else result.outcome
    rate = result.differing / result.runs
    text = f"differed in {result.differing} of {result.runs} runs"
    text += f" ({percent(rate)}, 95 % interval {percent(result.low)} to {percent(result.high)})"
    if result.ulp is not None and result.ulp < _READABLE_ULP:
        text += f", by up to {result.ulp} ulp in {result.elements} of {result.of} elements"
    elif result.elements:
        text += f", by up to {result.absolute:.3g} in {result.elements} of {result.of} elements"
    elif result.processes_differing:
        text += f", between processes ({result.processes_differing} of {result.processes})"
    return text


def unseen(result: Result) -> str:
    """That no difference was seen, and what so many runs would have found."""
    return f"no difference seen in {result.runs} runs (99 % sure to find a rate of {percent(result.finds)})"


def brief(result: Result | None) -> str:
    """A result in a cell of a table."""
    if result is None:
        return ""
    if result.outcome == "equal":
        return f"0 of {result.runs}"
    if result.outcome == "differs":
        return f"**{result.differing} of {result.runs}**"
    return result.outcome


def percent(rate: float) -> str:
    """A rate as a percentage, with as many digits as it needs."""
    value = 100 * rate
    if value and value < _FEW_PERCENT:
        return f"{value:.2g} %"
    return f"{value:.1f} %" if 0 < value < 10 or 99 < value < 100 else f"{value:.0f} %"


def title(row: Row) -> str:
    """What a row is about: the op, or its gradient."""
    return f"gradient of {row.op}" if row.direction == "backward" else row.op


def how(result: Result) -> str:
    """The type, the layout and the mode of a result, as far as they are not the usual ones."""
    parts = [result.dtype] if result.dtype != "float32" else []
    if result.layout != "contiguous":
        parts.append(result.layout.replace("_", " "))
    if result.mode != "default":
        parts.append(f"{result.mode} mode")
    return ", ".join(parts)


def machine(about: Machine) -> str:
    """The machine on one line."""
    return f"{about.whole}, {about.platform}"


def slowdown(row: Row) -> float | None:
    """How many times longer deterministic mode takes, where both modes ran."""
    default, strict = row.found("default"), row.found("deterministic")
    if default is None or strict is None or not default.seconds or not strict.seconds:
        return None
    return strict.seconds / default.seconds


def duration(measurement: Measurement) -> str:
    """How long it took, "3 min 20 s"."""
    minutes, seconds = divmod(round(measurement.seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
