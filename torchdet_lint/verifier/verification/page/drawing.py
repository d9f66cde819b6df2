"""Lanes and losses -> SVG, of bounded size."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.verifier.comparison.losses import Loss, Losses
    from torchdet_lint.verifier.comparison.picture import Lane

_WIDTH, _LABEL, _ROW = 1200, 200, 22
_MOST_LANES, _MOST_RECTS = 64, 9000
_HEIGHT = 170


def lanes(rows: Sequence[Lane]) -> str:
    """The run as a picture: time across, threads and processes down; those with differences first."""
    order = sorted(rows, key=lambda lane: (lane.name != "main", not any(lane.cells), lane.name))
    shown = order[:_MOST_LANES]
    cells = max(16, _MOST_RECTS // max(1, len(shown)))
    longest = max((lane.records for lane in shown), default=0) or 1
    body = [piece for number, lane in enumerate(shown) for piece in _lane(number, lane, longest, cells)]
    names = [_name(number, lane) for number, lane in enumerate(shown)]
    height = len(shown) * _ROW + 18
    ticks = [
        f'<text x="{min(_x(record, longest), _WIDTH - 44):.1f}" y="{height - 5}">step {step}</text>'
        for record, step in (shown[0].steps[:: max(1, len(shown[0].steps) // 8)] if shown else ())
    ]
    more = f"<p class=dim>{len(order) - len(shown)} more streams are not drawn.</p>" if len(order) > len(shown) else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" tabindex="0" data-zoom="{_LABEL}" '
        f'aria-label="The run: what differs, by op">'
        f'<defs><clipPath id="room"><rect x="{_LABEL}" y="0" width="{_WIDTH - _LABEL}" height="{height}"/></clipPath>'
        f'</defs><g clip-path="url(#room)"><g class="lanes">{"".join(body)}{"".join(ticks)}</g></g>'
        f"{''.join(names)}</svg>{more}"
    )


def _name(number: int, lane: Lane) -> str:
    shown, whole = html.escape(_short(lane.name)), html.escape(lane.name)
    return f'<text x="4" y="{number * _ROW + 15}">{shown}<title>{whole}</title></text>'


def _short(name: str) -> str:
    return name if len(name) <= 27 else f"{name[:24]}…"


def _x(record: float, longest: int) -> float:
    return _LABEL + (_WIDTH - _LABEL) * record / longest


def _lane(number: int, lane: Lane, longest: int, most: int) -> Iterator[str]:
    top = number * _ROW + 4

    def rect(begin: float, end: float, kind: str, told: str) -> str:
        x, width = _x(begin, longest), max(_x(end, longest) - _x(begin, longest), 0.6)
        return (
            f'<rect class="{kind}" x="{x:.2f}" y="{top}" width="{width:.2f}" height="{_ROW - 8}">'
            f"<title>{html.escape(told)}</title></rect>"
        )

    yield rect(0, lane.records, "whole", f"{lane.name}: {lane.records:,} ops")
    kind, words = ("lasting", "lasts") if lane.lasting else ("healed", "heals")
    group = math.ceil(len(lane.cells) / most) if lane.cells else 1
    for begin, end, count in _stretches(lane.cells, group):
        first, last = begin * lane.width, min(end * lane.width, lane.records)
        yield rect(first, last, kind, f"ops {first:,} to {last - 1:,}: {count:,} differ; it {words}")
    for first, last in lane.parted:
        yield rect(first, last, "parted", f"ops {first:,} to {last - 1:,}: run B goes another way")


def _stretches(cells: Sequence[int], group: int) -> Iterator[tuple[int, int, int]]:
    """Neighbouring cells with differences as one, in groups of `group` cells: from, to, how many differ."""
    begin, total = -1, 0
    for at in range(0, len(cells) + group, group):
        count = sum(cells[at : at + group])
        if count and begin < 0:
            begin = at
        if not count and begin >= 0:
            yield begin, at, total
            begin, total = -1, 0
        total += count
    if begin >= 0:
        yield begin, len(cells), total


def losses(told: Losses) -> str:
    """The losses of both runs by step, and below them the difference on a log scale."""
    rows = told.rows
    finite = [value for row in rows for value in (row.a, row.b) if math.isfinite(value)]
    if not finite:
        return "<p>No loss is a finite number.</p>"
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0

    def level(value: float) -> float | None:
        return 14 + (_HEIGHT - 28) * (1 - (value - low) / span) if math.isfinite(value) else None

    lines = _line(rows, "run-a", lambda row: level(row.a)) + _line(rows, "run-b", lambda row: level(row.b))
    labels = f'<text x="4" y="14">{high:.6g}</text><text x="4" y="{_HEIGHT - 8}">{low:.6g}</text>'
    picture = _svg("The loss of run A and of run B", lines + labels + _first(told))
    gaps = [abs(row.a - row.b) for row in rows if math.isfinite(row.a - row.b) and row.a != row.b]
    if not gaps:
        equal = all(row.a == row.b or (math.isnan(row.a) and math.isnan(row.b)) for row in rows)
        words = "The losses are equal." if equal else "No difference that is a finite number."
        return f"{picture}<p class=dim>{words}</p>"
    least, most = math.log10(min(gaps)), math.log10(max(gaps))
    least, most = (least - 0.5, most + 0.5) if most - least < 1 else (least, most)

    def depth(row: Loss) -> float | None:
        gap = abs(row.a - row.b)
        if not math.isfinite(gap) or not gap:
            return None
        return 14 + (_HEIGHT - 28) * (1 - (math.log10(gap) - least) / (most - least))

    labels = f'<text x="4" y="14">{_power(most)}</text><text x="4" y="{_HEIGHT - 8}">{_power(least)}</text>'
    return picture + _svg("The absolute difference on a log scale", _line(rows, "gap", depth) + labels + _first(told))


def _power(exponent: float) -> str:
    """A power of ten as a number."""
    return f"{10**exponent:.2g}" if abs(exponent) < 300 else f"1e{exponent:.0f}"


def _svg(label: str, body: str) -> str:
    told = f'<title>{label}</title><text x="{_WIDTH - 8}" y="14" text-anchor="end">{label}</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{told}{body}</svg>'


def _at(number: int, count: int) -> float:
    return 90 + (_WIDTH - 100) * (number / max(1, count - 1))


def _first(told: Losses) -> str:
    if told.first is None or told.first not in told.rows:
        return ""
    x = _at(told.rows.index(told.first), len(told.rows))
    return (
        f'<line class="first" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}"/>'
        f'<text x="{min(x + 4, _WIDTH - 90):.1f}" y="{_HEIGHT // 2}">step {told.first.step}</text>'
    )


def _line(rows: Sequence[Loss], kind: str, level: Callable[[Loss], float | None]) -> str:
    """A line through the rows that have a level; a gap where one has none, and a dot for one that stands alone."""
    pieces: list[list[str]] = [[]]
    for number, row in enumerate(rows):
        y = level(row)
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{_at(number, len(rows)):.1f},{y:.1f}")
    drawn = []
    for piece in filter(None, pieces):
        if len(piece) == 1:
            across, down = piece[0].split(",")
            drawn.append(f'<circle class="{kind}" cx="{across}" cy="{down}" r="2.5"/>')
        else:
            drawn.append(f'<polyline class="{kind}" points="{" ".join(piece)}"/>')
    return "".join(drawn)
