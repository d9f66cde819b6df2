"""A program and the causes -> the smallest set of fixes that makes its runs equal: guessed, else searched for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from torchdet_lint.verifier.remedies.fixes import BY_RULE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdet_lint.verifier.launch.interventions import Interventions
    from torchdet_lint.verifier.verification.report import Report

_GUESSES = 6
_ATTEMPTS = 4


class Verify(Protocol):
    """Verifies the program under the given interventions."""

    def __call__(self, *, interventions: Interventions, lint: bool) -> Report:
        """The report on the runs."""
        ...


def minimise(
    verify: Verify, asked: Interventions, plain: Report, fixed: Report, *, confirmations: int = 1
) -> tuple[tuple[str, ...], Report]:
    """The codes of a smallest sufficient subset of `asked.fixes`, sorted, and the report on the runs under it.

    `plain` is the report without fixes (diverged), `fixed` the one with all of them (identical). Smallest means that
    none can be left out; another set of the same size may do as well. Rules that share a fix count as one, under the
    code that a cause names. The set must pass `confirmations` further verifications: one that luck made look
    sufficient does not, and the search goes on from what then differed.
    """
    search = _Search(verify, asked, plain)
    whole = search.units(asked.fixes)
    codes: tuple[str, ...] = ()
    report = plain
    for _ in range(_ATTEMPTS):
        codes = search.shrink(search.guess(codes, report, whole) or whole)
        for _ in range(confirmations):
            report = search.verified(codes)
            if report.verdict != "identical":
                search.refuted.append(frozenset(codes))
                break
        else:
            return codes, report
    return whole, fixed


class _Search:
    def __init__(self, verify: Verify, asked: Interventions, plain: Report) -> None:
        self._verify = verify
        self._asked = asked
        self._named = {code for cause in plain.causes for code in (cause.rule, *cause.also)}
        self.refuted: list[frozenset[str]] = []

    def units(self, codes: Iterable[str]) -> tuple[str, ...]:
        """One code for each fix, the one that a cause names where there is a choice."""
        chosen: dict[str, str] = {}
        for code in sorted(codes, key=lambda code: (code not in self._named, code)):
            chosen.setdefault(BY_RULE[code], code)
        return tuple(sorted(chosen.values()))

    def verified(self, codes: tuple[str, ...]) -> Report:
        return self._verify(interventions=dataclasses.replace(self._asked, fixes=codes), lint=False)

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
        """Leave out halves, quarters, … single codes, as long as what remains suffices."""
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
        return codes
