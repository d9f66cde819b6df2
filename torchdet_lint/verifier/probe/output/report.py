"""A measurement -> a report for a screen, and a table for a wiki."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.probe import statistics
from torchdet_lint.verifier.probe.output import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.measured import Measurement, Result, Row

_ALERT = "does not have a deterministic implementation"
_RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
_FATAL = ("crashes", "hangs", "out of memory")


def text(measurement: Measurement, said: Callable[[Row], str]) -> str:
    """What was measured, and first what varies. `said` is what the catalogue says of a row that turned out otherwise
    (empty: they agree).
    """
    return "\n".join(_lines(measurement, said)) + "\n"


def _lines(measurement: Measurement, said: Callable[[Row], str]) -> Iterator[str]:
    yield wording.machine(measurement.machine)
    rows = measurement.rows
    ran = [row for row in rows if any(result.runs for result in row.results)]
    yield f"{len(ran)} of {len(rows)} rows of the table measured in {wording.duration(measurement)}"
    groups: tuple[tuple[str, list[Row]], ...] = (
        ("nondeterministic", [row for row in rows if _some(row, "differs")]),
        ("ended its process", [row for row in rows if any(_some(row, outcome) for outcome in _FATAL)]),
        ("raises", [row for row in rows if _raises(row)]),
    )
    told: set[int] = set()
    for heading, members in groups:
        members = [row for row in members if id(row) not in told]
        told.update(map(id, members))
        if members:
            yield f"\n{heading}: {len(members)}"
        for row in members:
            yield from _told(row, said(row))
    quiet = [row for row in ran if id(row) not in told]
    if quiet:
        yield f"\nno difference seen: {len(quiet)}"
        yield from _unseen(quiet, measurement.runs)
    missing = [row for row in rows if row not in ran and id(row) not in told]
    if missing:
        yield f"\nnot measured: {len(missing)}"
        yield from _grouped((_reason(row), row) for row in sorted(missing, key=_reason))
    yield ""
    yield from _footer(measurement)


def _told(row: Row, otherwise: str) -> Iterator[str]:
    condition = f" ({row.condition})" if row.condition else ""
    yield f"  {wording.title(row)}{condition}"
    times = wording.slowdown(row)
    for result in row.results:
        if result.outcome == "not run" or (result.outcome == "equal" and not result.met and result.runs < 2):
            continue
        how = wording.how(result)
        name = ", ".join(dict.fromkeys(part for part in (result.control, how) if part)) or "as it stands"
        line = f"    {name}: {wording.outcome(result)}"
        if result.met and result.mode == "deterministic" and result.outcome == "equal" and times is not None:
            line += f"; takes {times:.2g} times as long"
        yield line
    if otherwise:
        yield f"    the table of operations says otherwise: {otherwise}"


def _unseen(rows: Sequence[Row], wanted: int) -> Iterator[str]:
    """The rows by how much their runs would have found."""
    steps = {wanted, *(statistics.runs_needed(rate) for rate in _RATES)}
    left = list(rows)
    for step in sorted((step for step in steps if step <= wanted), reverse=True):
        members = [row for row in left if _runs(row) >= step]
        left = [row for row in left if _runs(row) < step]
        finds = wording.percent(statistics.findable(step))
        yield from _grouped((f"in {step} runs or more, which find a rate of {finds} with 99 %", row) for row in members)
    yield from _grouped((f"in {min(map(_runs, left))} runs or more, which show little", row) for row in left)


def _runs(row: Row) -> int:
    result = row.found()
    return result.runs if result is not None else max(result.runs for result in row.results)


def _alerting(row: Row) -> str:
    strict = row.found("deterministic")
    alerts = strict is not None and strict.outcome == "raises"
    return wording.title(row) + (" (raises in deterministic mode)" if alerts else "")


def _grouped(pairs: Iterable[tuple[str, Row]]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for heading, row in pairs:
        groups.setdefault(heading, []).append(_alerting(row))
    for heading, names in groups.items():
        yield f"  {heading}:"
        for name in sorted(set(names)):
            count = names.count(name)
            yield f"    {name}" + (f" ({count} rows)" if count > 1 else "")


def _footer(measurement: Measurement) -> Iterator[str]:
    yield "No difference seen is no proof: rarer differences, other sizes and other machines are not covered."
    if not measurement.complete:
        results = [
            (row, result) for row in measurement.rows for result in row.results if result.outcome != "unavailable"
        ]
        short = [row.key for row, result in results if _short(result, measurement.runs)]
        rows = len(set(short))
        yield (
            f"{len(short)} of {len(results)} results, in {rows} row{'s' * (rows != 1)}, have fewer than their "
            f"{measurement.runs} runs: a larger --budget, or the same -o again, adds runs."
        )


def _short(result: Result, runs: int) -> bool:
    """Whether more runs, of `runs` that are wanted, would say more."""
    known = result.outcome == "differs" and result.processes > 1 and statistics.settled(result.differing, result.runs)
    return result.outcome in ("equal", "differs", "not run") and result.runs < runs and not known


def _some(row: Row, outcome: str) -> bool:
    return any(result.outcome == outcome for result in row.results)


def _raises(row: Row) -> bool:
    """Whether something of it raises, but for the alert of deterministic mode."""
    return any(result.outcome == "raises" and _ALERT not in result.note for result in row.results)


def _reason(row: Row) -> str:
    return next((result.note for result in row.results if result.note), "not run")


def markdown(measurement: Measurement) -> str:
    """A table with a line for each row."""
    about = measurement.machine
    lines = [
        f"**{wording.machine(about)}**: runs with the same inputs whose bits were others than those of most.",
        "",
        "| op | condition | differs | in deterministic mode | slower | condition not met |",
        "|---|---|---|---|---|---|",
    ]
    for row in measurement.rows:
        times = wording.slowdown(row)
        controls = [result for result in row.results if not result.met]
        cells = [
            wording.title(row),
            row.condition,
            _cell(row.found()) if row.found() is not None else _cell(next(iter(row.results), None)),
            wording.brief(row.found("deterministic")),
            f"{times:.2g}" if times is not None else "",
            "; ".join(f"{result.control}: {wording.brief(result)}" for result in controls),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(result: Result | None) -> str:
    if result is not None and not result.runs and result.note:
        return f"{result.outcome}: {result.note}"
    return wording.brief(result)
