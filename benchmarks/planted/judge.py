"""A planted program and the verifier's JSON report -> which causes it named, and what it said that is not so."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from programs import Planted


@dataclasses.dataclass
class Judged:
    """Of the causes in the program: how many were `named` by a right rule, told at their lines with `no_rule` (though
    `among` the candidates), under a `wrong` one, or not at all (`missed`). Those at other lines are `invented`.
    """

    verdict: str
    named: int = 0
    no_rule: int = 0
    among: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    missed: list[str] = dataclasses.field(default_factory=list)
    invented: list[str] = dataclasses.field(default_factory=list)


def judge(program: Planted, report: dict[str, Any]) -> Judged:
    """What the report's causes are worth."""
    judged = Judged(report["verdict"])
    told: dict[int, list[dict[str, Any]]] = {}
    for cause in report["causes"]:
        number = _part(program, cause)
        if number is None:
            judged.invented.append(f"{cause['rule'] or 'no rule'} at line {cause['line']}: {cause['op']}")
        else:
            told.setdefault(number, []).append(cause)
        for place in re.findall(r":(\d+)(?: in |$)", "\n".join(cause["places"]), re.MULTILINE):
            more = _at(program, [int(place)])
            if more is not None and more != number:
                told.setdefault(more, []).append(cause)
    for number, planted in enumerate(program.causes):
        rules = [cause["rule"] for cause in told.get(number, [])]
        wrong = [rule for rule in rules if rule and rule not in planted.rules]
        judged.wrong += [f"{planted.name}: {rule}" for rule in wrong]
        if set(rules) & set(planted.rules):
            judged.named += 1
        elif not rules:
            judged.missed.append(planted.name)
        elif not wrong:
            judged.no_rule += 1
            judged.among += any(set(cause["also"]) & set(planted.rules) for cause in told[number])
    return judged


def _part(program: Planted, cause: dict[str, Any]) -> int | None:
    """Which of the program's causes one of the report's stands on, by its own line first."""
    finding = cause["finding"] or {}
    places = [cause["line"], cause["forward_line"], finding.get("line", 0)]
    places.append(int(cause["reader"].rpartition(":")[2] or 0))
    places += map(int, re.findall(r"\(line (\d+)\)", finding.get("message", "")))
    number = _at(program, places)
    if number is None and not cause["line"] and len(program.causes) == 1:
        return 0  # what the runs left behind has no line
    return number


def _at(program: Planted, lines: list[int]) -> int | None:
    """The cause in whose lines the first of `lines` stands that stands in any."""
    for line in lines:
        for number, spans in enumerate(program.spans):
            if any(line in span for span in spans):
                return number
    return None
