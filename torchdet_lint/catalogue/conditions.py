"""A condition of the catalogue and what is known of an argument -> whether the argument meets it."""

from __future__ import annotations

from typing import Literal

import msgspec

Scalar = str | int | float | bool | None


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every table: an unknown key is an error."""


class Condition(Table, frozen=True, kw_only=True):
    """What one argument of a call must be.

    `test` reads the argument's value, followed through simple assignments:

    * `absent`: not passed; `missing`: not passed, or evidently `None`; `given`: passed, and not evidently `None`;
    * `in`: evidently one of `values`; `not-in`: evidently none of `values`; `truthy`, `falsy`: evidently so;
    * `possible`: one of `values`, or a value that only the run knows; `unless`: not evidently one of `values`;
    * `ranging`: two numbers that are not evidently the same, and not evidently a single one.

    An argument that is not passed has the value `default`. `opaque`: whether the condition holds where `**options`
    that are not in sight may carry the argument (by default it does not).

    Ops have further tests, that ask for what is inferred of a tensor: `tensor`: evidently one; `dims`: evidently one
    with a number of dimensions in `values` (`beside` names an argument with one less, which tells where it holds
    integers); `sparse`: evidently a sparse one; `length`: evidently a sequence with a
    number of elements in `values`; `contains`: a dictionary that holds one of `values`; `repeats`: an index that may
    name one place twice: not evidently a permutation, nor of size 1 along the argument `dim`; `several`: not
    evidently one number; `overlapping`: the stride of windows that may share places, `side-by-side`: of windows that
    evidently do not; `from`: not evidently another than a member of one of the modules `values`, as a function of the
    file is, `not-from`: not evidently one of those members; `integer`: evidently of an integer type or of booleans,
    `not-integer`: not evidently so; `not-floating`: not evidently of a floating type. There `self` is the tensor
    that the op works on: the receiver of a method, the first argument of a function.
    """

    argument: str
    test: Literal[
        "absent", "missing", "given", "in", "not-in", "truthy", "falsy", "possible", "unless", "ranging",
        "tensor", "dims", "sparse", "length", "contains", "repeats", "several",
        "overlapping", "side-by-side", "from", "not-from", "integer", "not-integer", "not-floating",
    ]  # fmt: skip
    values: tuple[Scalar | list[Scalar], ...] = ()
    default: Scalar | list[Scalar] = None
    opaque: bool = False
    beside: str = ""


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
        return test in ("possible", "unless", "ranging")
    if test == "ranging":
        return isinstance(value, (tuple, list)) and any(not matches(value[0], end) for end in value[1:])
    if test in ("truthy", "falsy"):
        return bool(value) is (test == "truthy")
    return any(matches(value, wanted) for wanted in condition.values) is (test not in ("not-in", "unless"))
