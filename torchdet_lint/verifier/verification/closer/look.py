"""Two runs that differ -> the same runs once more, up to the first difference, and how much differs there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from torchdet_lint.catalogue import runtime
from torchdet_lint.verifier.comparison.explain import op_rule
from torchdet_lint.verifier.probe.statistics import interval
from torchdet_lint.verifier.trace import Trace
from torchdet_lint.verifier.verification.outcome import Values

if TYPE_CHECKING:
    from pathlib import Path

    from torchdet_lint.verifier.comparison.outcome import Comparison, Divergence
    from torchdet_lint.verifier.trace import Site
    from torchdet_lint.verifier.verification.session import Session

REPLAYS = 100
"""How often an op is repeated on the same inputs, where it is asked for."""
_MOST_REPEATED = 4
_ROUNDING, _LARGER = 10.0, 1000.0
"""Up to ten times what one ulp in the inputs gives, a difference is called rounding; from a thousand times on, not."""


def look(session: Session, outcome: Comparison, *, replay: int = REPLAYS) -> tuple[Values, ...]:
    """Run both sides again up to the first op that differs, and to the first optimizer step that does, and compare the
    tensors there. Empty where there is none that could be looked at again: the paths part before, or the runs take
    place in the user's own folder.
    """
    wanted = _wanted(outcome)
    if not wanted or session.workspace.in_place:
        return ()
    last = len(session.results) - 1
    sides = ((0, [item.index for item in wanted]), (last, [item.index_b for item in wanted]))
    rooms = [session.closeup(number, wanted[0].stream, targets, replay) for number, targets in sides]
    found = []
    for item in wanted:
        one, two = (_table(room, number) for room, number in zip(rooms, (item.index, item.index_b), strict=True))
        if one is not None and two is not None:
            found.append(_values(item, one, two))
    return tuple(found)


def repeated(session: Session, devices: tuple[str, ...], *, replay: int) -> tuple[str, ...]:
    """A line for each of the first ops of run A's main thread that the table lists as nondeterministic: what it gave
    when it was repeated on the same inputs. Empty for a program in the user's own folder.
    """
    if session.workspace.in_place or not session.trace(0).exists():
        return ()
    recorded = Trace(session.trace(0))
    sites = recorded.sites(recorded.main)
    listed = {number for number, site in enumerate(sites) if _is_listed(site, devices)}
    first: dict[int, int] = {}
    for index, record in enumerate(recorded.records(recorded.main)) if listed else ():
        if record.site in listed:
            first.setdefault(record.site, index)
        if len(first) == min(len(listed), _MOST_REPEATED):
            break
    if not first:
        return ()
    room = session.closeup(0, "main", list(first.values()), replay)
    told = []
    for number, index in first.items():
        table = _table(room, index)
        runs = table[0].get("replayed", 0) if table is not None else 0
        if table is None or not runs:
            continue
        differing = table[0]["replay_differing"]
        low, high = interval(differing, runs)
        rate = f"{differing} gave another result than most (a rate between {low:.1%} and {high:.1%}, 95 %)"
        equal = f"all gave the same (a rate below {high:.1%}, 95 %)"
        site = sites[number]
        place = f"{site.place} {site.op}".strip()
        found = rate if differing else equal
        told.append(f"equal here, and listed: {place}; repeated {runs} times on the same inputs, {found}")
    return tuple(told)


def _is_listed(site: Site, devices: tuple[str, ...]) -> bool:
    """Whether the table lists an op. What an op gives that only hands out memory means nothing when it is repeated."""
    tables = runtime.dispatch()
    if site.op.partition(".")[2].partition(".")[0] in (*tables.empty, *tables.resizing):
        return False
    if site.phase == "backward" and site.forward_op and op_rule(site.forward_op, "backward", devices):
        return True
    return bool(op_rule(site.op, "forward", devices))


def _wanted(outcome: Comparison) -> list[Divergence]:
    """The first divergence, and the first write of an optimizer that differs, in one stream."""
    end = outcome.partings[0].index if outcome.partings else 1 << 62
    seen = [
        item
        for item in outcome.divergences
        if item.source != "path" and item.index_b >= 0 and item.index < end and " #" not in item.stream
    ]
    first = next((item for item in seen if item.kind == "cause"), None)
    if first is None or not (first.stream == "main" or first.stream.startswith("process ")):
        return []
    steps = (item for item in seen if item.site.phase == "optimizer" and item.stream == first.stream)
    later = next((item for item in steps if item.index > first.index), None)
    return [first] if later is None else [first, later]


def _table(room: Path, number: int) -> tuple[dict[str, Any], bytes] | None:
    try:
        about = json.loads((room / f"{number}.json").read_text(encoding="utf-8"))
        return about, (room / f"{number}.bin").read_bytes()
    except (OSError, ValueError):
        return None


def _values(item: Divergence, one: tuple[dict[str, Any], bytes], two: tuple[dict[str, Any], bytes]) -> Values:
    from torchdet_lint.verifier.verification.closer import numbers

    rows, reshaped = [], []
    for a, b in zip(one[0]["tensors"], two[0]["tensors"], strict=False):
        if (a["dtype"], a["shape"]) == (b["dtype"], b["shape"]):
            data = [side[1][row["offset"] : row["offset"] + row["bytes"]] for side, row in ((one, a), (two, b))]
            rows.append((a, numbers.compare(a["dtype"], a["shape"], data[0], data[1])))
        elif a["shape"] != b["shape"]:
            reshaped.append((a, tuple(b["shape"])))
    unlike = [(row, size) for row, size in rows if size.differing]
    replayed = one[0].get("replayed", 0) + two[0].get("replayed", 0)
    differing = one[0].get("replay_differing", 0) + two[0].get("replay_differing", 0)
    low, high = interval(differing, replayed)
    ulp = max(one[0].get("one_ulp", 0.0), two[0].get("one_ulp", 0.0))
    row, size = unlike[0] if unlike else ({}, None)
    other_shape = None
    if reshaped and not unlike:
        row, other_shape = reshaped[0]
    largest = max((size.largest for _, size in unlike), default=0.0)
    return Values(
        op=item.site.op,
        phase=item.site.phase,
        step=item.step,
        tensors=len(rows),
        tensors_differing=len(unlike),
        name=row.get("name", ""),
        dtype=row.get("dtype", ""),
        shape=tuple(row.get("shape", ())),
        elements=size.elements if size else 0,
        differing=size.differing if size else 0,
        largest=size.largest if size else 0.0,
        relative=size.relative if size else 0.0,
        ulp=size.ulp if size else 0,
        index=size.place if size else (),
        a=size.a if size else 0.0,
        b=size.b if size else 0.0,
        not_finite=size.not_finite if size else 0,
        one_ulp=ulp,
        size=_judged(largest, ulp) if item.source == "op" else "",
        replayed=replayed if item.source == "op" else 0,
        replay_differing=differing if item.source == "op" else 0,
        replay_low=round(low, 4),
        replay_high=round(high, 4),
        other_shape=other_shape,
    )


def _judged(largest: float, one_ulp: float) -> Literal["", "rounding", "larger"]:
    if not one_ulp or not largest:
        return ""
    ratio = largest / one_ulp
    return "rounding" if ratio <= _ROUNDING else "larger" if ratio >= _LARGER else ""
