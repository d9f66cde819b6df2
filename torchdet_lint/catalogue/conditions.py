"""A condition of the catalogue and what is known of an argument → whether the argument meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.catalogue.schema import Condition


def matches(value: object, wanted: object) -> bool:
    """Equality in which `True` is not `1` and a tuple equals the list of its elements."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, (tuple, list)) and isinstance(wanted, (tuple, list)):
        return len(value) == len(wanted) and all(map(matches, value, wanted))
    return value == wanted and (value is None) == (wanted is None)


def condition_holds(condition: Condition, *, passed: bool, opaque: bool, known: bool, value: object) -> bool:
    """Whether an argument meets `condition`; an argument that is not passed has the condition's default."""
    test = condition.test
    if not passed:
        if opaque:
            return condition.opaque
        if test in ("absent", "missing", "given"):
            return test != "given"
        known, value = True, condition.default
    if test == "absent":
        return False
    if test == "missing":
        return known and value is None
    if test == "given":
        return not (known and value is None)
    if not known:
        return test in ("possible", "unless")
    if test in ("truthy", "falsy"):
        return bool(value) is (test == "truthy")
    return any(matches(value, wanted) for wanted in condition.values) is (test not in ("not-in", "unless"))
