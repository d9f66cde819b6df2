"""Two runs that differ -> the one factor, held fixed alone, that makes each cause go: `--diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.verifier.launch.processes import fixed_addresses
from torchdet_lint.verifier.remedies.fixes import BY_RULE, every_code
from torchdet_lint.verifier.trace import TraceError
from torchdet_lint.verifier.verification.closer.proven import under
from torchdet_lint.verifier.verification.closer.turns import is_long, passed, site_of
from torchdet_lint.verifier.verification.outcome import VerifyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdet_lint.verifier.trace import Site
    from torchdet_lint.verifier.verification.outcome import Cause
    from torchdet_lint.verifier.verification.report import Report
    from torchdet_lint.verifier.verification.session import Session

ADDRESSES = "addresses"
"""What is held fixed and is the fix of no rule: where memory is."""
_SETS, _HASHES = "TDL305", "TDL601"
_OF_ADDRESSES = (_SETS, _HASHES)
_BY_ADDRESS = (
    "the addresses of objects decide, which are different in every run: the order of a set of objects that hash by "
    "address, or `id()`"
)
_AGAIN = 2
"""Further pairs without any fix, which must all differ at a place, and with the factor that made it equal, which must
all be equal there: where it differs in half of all pairs whatever is held, that happens once in 32 times for each
factor."""


def diagnose(session: Session, report: Report) -> Report:
    """Run a program again with one factor held fixed at a time, by the runtime fix of a rule: those that the causes
    name first, then the addresses of objects and all others where a cause is left. A cause that one of them alone makes
    go is told under its rule, one that several make go under the likeliest.
    """
    outcome = session.outcome
    if outcome is None or report.verdict != "diverged":
        return report
    known = {(item.index, item.stream): item.site for item in outcome.causes}
    sites = {site for cause in report.causes if (site := site_of(cause, known)) is not None}
    why = _why_not(session, sites)
    if why:
        return msgspec.structs.replace(report, not_covered=(*report.not_covered, f"--diagnose held nothing: {why}"))
    for found in session.beside("again").compared(_AGAIN):
        sites &= {item.site for item in found if item.kind != "consequence"}
    gone: dict[str, set[Site]] = {}
    for code in _in_turn(report.causes, gone, sites):
        # Addresses hang on the hash seed, which is held with them: where that alone decides, they do not.
        where = _equal_with(session, code, sites - gone[_HASHES] if code == ADDRESSES else sites, 1)
        gone[code] = where and _equal_with(session, code, where, _AGAIN)
    causes = (_judged(cause, site_of(cause, known), sites, gone) for cause in report.causes)
    notes = [*report.not_covered]
    if _may_hang_on_addresses(gone, sites) and not _can_fix_addresses():
        notes.append("--diagnose could not hold the addresses of objects fixed: this system does not allow it")
    return msgspec.structs.replace(report, causes=tuple(causes), not_covered=tuple(notes))


def _why_not(session: Session, sites: set[Site]) -> str:
    if not sites:
        return "no op differs by itself"
    if session.workspace.in_place:
        return "each run must find what the one before found (--in-place)"
    return "a run takes more than a minute of CPU" if any(map(is_long, session.results)) else ""


def _in_turn(causes: Iterable[Cause], gone: dict[str, set[Site]], sites: set[Site]) -> Iterator[str]:
    """One code for each fix: of those that the causes name, the likeliest first; then the addresses of objects, and the
    rest while a place is left.
    """
    named = [code for cause in causes for code in (cause.rule, *cause.also) if code in BY_RULE]
    yield from _one_a_fix(named, set())
    if _may_hang_on_addresses(gone, sites) and _can_fix_addresses():
        yield from () if _HASHES in gone else (_HASHES,)
        yield from (ADDRESSES,) if sites - gone[_HASHES] else ()
    tried = {BY_RULE[code] for code in gone if code in BY_RULE}
    for code in _one_a_fix(every_code(), tried):
        if sites <= set().union(*gone.values()):
            return
        yield code


def _may_hang_on_addresses(gone: dict[str, set[Site]], sites: set[Site]) -> bool:
    """Whether a place is left, or one where a set has another order."""
    return bool(gone.get(_SETS)) or not sites <= set().union(*gone.values())


def _can_fix_addresses() -> bool:
    with fixed_addresses() as allowed:
        return allowed


def _one_a_fix(codes: Iterable[str], tried: set[str]) -> list[str]:
    chosen: dict[str, str] = {}
    for code in codes:
        if BY_RULE[code] not in tried:
            chosen.setdefault(BY_RULE[code], code)
    return list(chosen.values())


def _equal_with(session: Session, code: str, sites: set[Site], pairs: int) -> set[Site]:
    """Those of `sites` at which no pair with the fix of `code` alone differs; none where a run with it fails."""
    fix = _HASHES if code == ADDRESSES else code
    held = session.beside(f"held-{code}", fix, same_addresses=code == ADDRESSES)
    left = set(sites)
    try:
        for found in held.compared(pairs):
            left -= {item.site for item in found}
    except (VerifyError, TraceError):
        return set()
    return left & passed(held)


def _judged(cause: Cause, site: Site | None, steady: set[Site], gone: dict[str, set[Site]]) -> Cause:
    """A cause with what the runs say of it, under the rule of the fix that makes it go, or the likeliest of them."""
    if site not in steady:
        told = f"{cause.message}; not established: it differs in some pairs only"
        return msgspec.structs.replace(cause, message=told)
    helping = sorted((code for code, sites in gone.items() if site in sites), key=_likeliness(cause))
    left = tuple(code for code in gone if code not in helping)
    rules = [code for code in helping if code != ADDRESSES]
    # Without a fix that helps, the rules that speak of addresses are left.
    speaking = rules or [code for code in (cause.rule, *cause.also) if code in _OF_ADDRESSES and helping]
    if speaking:
        cause = msgspec.structs.replace(under(speaking[0], cause, ()), also=tuple(speaking[1:]))
    if ADDRESSES in helping:
        cause = msgspec.structs.replace(cause, message=_BY_ADDRESS)
    return msgspec.structs.replace(cause, proven=len(rules) == 1, gone_with=tuple(helping), left_with=left)


def _likeliness(cause: Cause) -> Callable[[str], int]:
    named = [code for code in (cause.rule, *cause.also) if code]
    return lambda code: named.index(code) if code in named else len(named)
