"""A cause and the fix under which it is gone -> the cause under the rule of that fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.remedies.fixes import BY_RULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.verifier.comparison import explain
    from torchdet_lint.verifier.verification.outcome import Cause


_HASHES, _SETS = "TDL601", "TDL305"
_HASH_SEED = "the hash seed decides: the order of a set of text, or `hash()` of text"


def speaks(rule: str, code: str) -> bool:
    """Whether `rule` has the fix that `code` stands for."""
    mine, fix = BY_RULE.get(rule, ""), BY_RULE.get(code, "")
    return bool(mine) and (mine == fix or (fix == "seed-everything" and mine.startswith("seed-")))


def beside(code: str, findings: Sequence[explain.Finding]) -> tuple[str, ...]:
    """Other rules that the fix of `code` is of use to: with one hash seed a set of text has one order too."""
    reported = any(one.code == code for one in findings)
    return (_SETS,) if code == _HASHES and not reported else ()


def under(code: str, cause: Cause, findings: Sequence[explain.Finding]) -> Cause:
    """The cause under a rule that its proven fix is that of."""
    if speaks(cause.rule, code):
        return msgspec.structs.replace(cause, proven=True, also=())
    alike = [other for other in cause.also if speaks(other, code)]
    code = alike[0] if alike else code
    rule = loading.load().rules[code]
    finding = next((one for one in findings if one.code == code), None)
    others = beside(code, findings)
    advice = [loading.load().rules[other].instead for other in others]
    return msgspec.structs.replace(
        cause,
        rule=code,
        name=rule.name,
        also=others,
        message=_HASH_SEED if others else rule.summary,
        finding=finding,
        instead=" Or: ".join([*advice, rule.instead]),
        runtime_fix=rule.runtime_fix,
        runtime_note=rule.runtime_note,
        proven=True,
    )
