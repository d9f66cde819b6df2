"""A program and the causes -> the smallest set of fixes that makes its runs equal: guessed, else searched for."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchdet_lint.verifier.remedies.fixes import BY_RULE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.verification.report import Report

_GUESSES = 6
_ATTEMPTS = 4
_MOST = 40


class Verify(Protocol):
    """Verifies the program under the given interventions."""

    def __call__(self, interventions: Interventions, /) -> Report:
        """The report on the runs."""
        ...


class Smallest(NamedTuple):
    """The codes of a sufficient set of fixes, sorted, and the report on the runs under it.

    `without` has for each code the report on the runs with the others alone: what differs there is what it cures.
    Empty, with `spent`, where the budget was at its end before no code could be left out. `tried` are all sets that
    were verified.
    """

    codes: tuple[str, ...]
    report: Report
    without: Mapping[str, Report] = {}
    spent: bool = False
    tried: Mapping[frozenset[str], Report] = {}


class _SpentError(Exception):
    """No further verification is allowed."""


def minimise(
    verify: Verify,
    asked: Interventions,
    plain: Report,
    fixed: Report,
    *,
    confirmations: int = 1,
    most: int = _MOST,
    reported: Iterable[str] = (),
) -> Smallest:
    """A smallest sufficient subset of `asked.fixes`, found in at most `most` verifications. Of several that suffice it
    is one whose codes the linter has `reported`, or the causes name.

    `plain` is the report without fixes (diverged), `fixed` the one with all of them (identical). Smallest means that
    none can be left out; another set of the same size may do as well. Rules that share a fix count as one, under the
    code that a cause names. The set must pass `confirmations` further verifications: one that luck made look
    sufficient does not, and the search goes on from what then differed.
    """
    search = _Search(verify, asked, plain, fixed, most, reported)
    whole = search.units(asked.fixes)
    codes: tuple[str, ...] = ()
    report = plain
    try:
        for _ in range(_ATTEMPTS):
            codes = search.shrink(search.guess(codes, report, whole) or whole)
            for _ in range(confirmations):
                report = search.verified(codes)
                if report.verdict != "identical":
                    search.refuted.append(frozenset(codes))
                    break
            else:
                return Smallest(codes, report, search.without(codes), tried=search.seen)
    except _SpentError:
        return Smallest(*search.sufficient(whole), spent=True, tried=search.seen)
    return Smallest(whole, fixed, tried=search.seen)


class _Search:
    def __init__(
        self, verify: Verify, asked: Interventions, plain: Report, fixed: Report, most: int, reported: Iterable[str]
    ) -> None:
        self._verify = verify
        self._asked = asked
        self._left = most
        self.seen: dict[frozenset[str], Report] = {frozenset(): plain}
        self._whole = fixed
        self._named = {code for cause in plain.causes for code in (cause.rule, *cause.also)}
        likely = [
            *reported,
            *(cause.rule for cause in plain.causes),
            *(c for cause in plain.causes for c in cause.also),
        ]
        self._likely = {BY_RULE[code]: -number for number, code in reversed([*enumerate(likely)]) if code in BY_RULE}
        self.refuted: list[frozenset[str]] = []

    def units(self, codes: Iterable[str]) -> tuple[str, ...]:
        """One code for each fix, the one that a cause names where there is a choice."""
        chosen: dict[str, str] = {}
        for code in sorted(codes, key=lambda code: (code not in self._named, code)):
            chosen.setdefault(BY_RULE[code], code)
        return tuple(sorted(chosen.values()))

    def verified(self, codes: tuple[str, ...]) -> Report:
        if not self._left:
            raise _SpentError
        self._left -= 1
        report = self._verify(dataclasses.replace(self._asked, fixes=codes))
        known = self.seen.get(frozenset(codes))
        # What once differed is not equal, whatever luck shows later.
        if known is None or known.verdict == "identical":
            self.seen[frozenset(codes)] = report
        return report

    def sufficient(self, whole: tuple[str, ...]) -> tuple[tuple[str, ...], Report]:
        """The fewest codes under which the runs were equal so far, and never differed."""
        equal = [(tuple(sorted(codes)), one) for codes, one in self.seen.items() if one.verdict == "identical"]
        return min([*equal, (whole, self._whole)], key=lambda pair: (len(pair[0]), pair[0]))

    def without(self, codes: tuple[str, ...]) -> dict[str, Report]:
        """For each of `codes` the report on the runs with the others, as far as they differed and the budget allows."""
        found = {}
        for code in codes:
            rest = tuple(other for other in codes if other != code)
            with contextlib.suppress(_SpentError):
                report = self.seen.get(frozenset(rest)) or self.verified(rest)
                if report.verdict == "diverged":
                    found[code] = report
        return found

    def suffices(self, codes: tuple[str, ...]) -> bool:
        if any(refuted.issuperset(codes) for refuted in self.refuted):
            return False
        return self.verified(codes).verdict == "identical"

    def guess(self, codes: tuple[str, ...], report: Report, whole: tuple[str, ...]) -> tuple[str, ...]:
        """Fix what the causes name besides `codes`, the likeliest rules first, look again, and so on; empty where that
        leads nowhere."""
        chosen = {BY_RULE[code]: code for code in codes}
        offered = {BY_RULE[code]: code for code in whole}
        for _ in range(_GUESSES):
            before = len(chosen)
            likeliest = [cause.rule for cause in report.causes]
            for named in (likeliest, [code for cause in report.causes for code in cause.also]):
                for code in named:
                    name = BY_RULE.get(code, "")
                    if name in offered:
                        chosen.setdefault(name, code if code in self._asked.fixes else offered[name])
                if len(chosen) > before:
                    break
            if len(chosen) == before:
                return ()
            codes = tuple(sorted(chosen.values()))
            report = self.verified(codes)
            if report.verdict == "identical":
                return codes
            if report.verdict != "diverged":
                return ()
        return ()

    def shrink(self, codes: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out halves, quarters, … single codes, the least likely first, as long as what remains suffices."""
        codes = tuple(sorted(codes, key=lambda code: (self._likely.get(BY_RULE[code], -len(BY_RULE)), code)))
        size = max(1, len(codes) // 2)
        while len(codes) > 1:
            for start in range(0, len(codes), size):
                rest = codes[:start] + codes[start + size :]
                if rest and self.suffices(rest):
                    codes = rest
                    size = min(size, max(1, len(codes) // 2))
                    break
            else:
                if size == 1:
                    break
                size = max(1, size // 2)
        return tuple(sorted(codes))
