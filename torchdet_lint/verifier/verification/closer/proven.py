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


def speaks(rule: str, code: str) -> bool:
    """Whether `rule` has the fix that `code` stands for."""
    mine, fix = BY_RULE.get(rule, ""), BY_RULE.get(code, "")
    return bool(mine) and (mine == fix or (fix == "seed-everything" and mine.startswith("seed-")))


def under(code: str, cause: Cause, findings: Sequence[explain.Finding]) -> Cause:
    """The cause under a rule that its proven fix is that of."""
    if speaks(cause.rule, code):
        return msgspec.structs.replace(cause, proven=True, also=())
    alike = [other for other in cause.also if speaks(other, code)]
    code = alike[0] if alike else code
    rule = loading.load().rules[code]
    finding = next((one for one in findings if one.code == code), None)
    return msgspec.structs.replace(
        cause,
        rule=code,
        name=rule.name,
        also=(),
        message=rule.summary,
        finding=finding,
        instead=rule.instead,
        runtime_fix=rule.runtime_fix,
        runtime_note=rule.runtime_note,
        proven=True,
    )
