"""What a function asserts of a name, `assert split in ["train", "val"]` -> which tests of that name can hold below."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_DISPLAYS = (cst.List, cst.Tuple, cst.Set)


class Asserted(NamedTuple):
    """A statement that lets a run go on only where a name has one of some values, as these are written."""

    statement: cst.CSTNode
    name: str
    values: frozenset[object]


def asserted_in(statements: Iterable[cst.CSTNode]) -> Iterator[Asserted]:
    """What the statements of a block assert."""
    for one in statements:
        for small in one.body if isinstance(one, cst.SimpleStatementLine) else ():
            told = _asked(small.test) if isinstance(small, cst.Assert) else None
            if told is not None and told[2]:
                yield Asserted(one, told[0], told[1])


def told_by(test: cst.BaseExpression, known: Sequence[Asserted]) -> bool | None:
    """Whether `test` holds, by what is known of names; None where it may hold or not."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        told = told_by(test.expression, known)
        return None if told is None else not told
    if isinstance(test, cst.BooleanOperation):
        parts = [told_by(one, known) for one in (test.left, test.right)]
        ends = isinstance(test.operator, cst.Or)
        return ends if ends in parts else None if None in parts else not ends
    asked = _asked(test)
    values = next((one.values for one in known if asked is not None and one.name == asked[0]), None)
    if asked is None or values is None:
        return None
    held = False if values.isdisjoint(asked[1]) else True if values <= asked[1] else None
    return None if held is None else held is asked[2]


def _asked(test: cst.BaseExpression) -> tuple[str, frozenset[object], bool] | None:
    """The name of which `test` asks whether it has one of some values, these, and whether it is to have one."""
    match test:
        case cst.Comparison(left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(operator, other)]):
            pass
        case _:
            return None
    if isinstance(operator, (cst.Equal, cst.NotEqual)):
        parts: list[cst.BaseExpression] = [other]
    elif isinstance(operator, (cst.In, cst.NotIn)) and isinstance(other, _DISPLAYS):
        parts = [element.value for element in other.elements if isinstance(element, cst.Element)]
        if len(parts) < len(other.elements):
            return None
    else:
        return None
    if not all(isinstance(part, (cst.SimpleString, cst.Integer)) for part in parts):
        return None
    values = frozenset(part.evaluated_value for part in parts if isinstance(part, (cst.SimpleString, cst.Integer)))
    return name, values, isinstance(operator, (cst.Equal, cst.In))
