"""Arithmetic on indices -> whether they name no place twice, and which numbers are whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.syntax import names_in
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.inference.abstract_values import AbstractValue

# Adds up to itself in any order.
_INFINITE = lazy(r"[-+]?(?:float\(['\"][-+]?inf(?:inity)?['\"]\)|(?:math|np|numpy|torch)\.inf)")
# A factor that is 0 in some places.
_CHOICE = lazy(r"mask|valid|[<>=]")


def combined(
    found: AbstractValue,
    left: AbstractValue,
    right: AbstractValue,
    operator: cst.BaseBinaryOp | cst.BaseAugOp,
    code: Callable[[bool], str],
) -> AbstractValue:
    """`found`, the abstract value of `left operator right`, with what holds of its elements; `code` gives the text of
    the left or the right side."""
    sums = isinstance(operator, (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign))
    scales = isinstance(operator, (cst.Multiply, cst.MultiplyAssign))
    if (sums or scales) and (
        (left.is_whole and (right.is_whole or _INFINITE.fullmatch(code(False))))
        or (right.is_whole and _INFINITE.fullmatch(code(True)))
    ):
        found = replace(found, whole=True)
    if not found.is_tensor:
        return found
    if not left.distinct and not right.distinct:
        rises = (left.rising and _is_number(right)) or (right.rising and _is_number(left))
        return replace(found, rising=True) if rises and (sums or scales) else found
    if sums:
        return _added(found, left, right)
    if scales:
        index, factor = (left, right) if left.distinct else (right, left)
        step = code(not left.distinct)
        if not _is_number(factor) or _CHOICE.search(step):
            return found
        return replace(found, distinct=True, rising=index.rising, step=step, single=index.single)
    if isinstance(operator, cst.FloorDivide) and left.distinct and not left.rising and _is_number(right):
        return replace(found, divided=True)
    if isinstance(operator, cst.Modulo) and left.distinct and left.extent == code(False) and not left.step:
        return replace(found, distinct=True, overlapping=left.overlapping, single=left.single)
    return found


def _added(found: AbstractValue, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The sum of an index that names no place twice and something else."""
    index, other = (left, right) if left.distinct else (right, left)
    rises = index.rising and (other.rising or _is_number(other))
    kept = replace(found, distinct=True, overlapping=index.overlapping, rising=rises, extent=index.extent)
    if _is_number(other):
        return replace(kept, step=index.step, single=index.single)
    crossed = left.ones != right.ones
    if other.distinct:
        fits = _fits(left, right) or _fits(right, left)
        if crossed:
            return replace(kept, overlapping=not fits, extent="")
        return replace(kept, extent="") if fits or (left.rising and right.rising) else found
    if crossed:
        # Rows of an index, each moved by its own number.
        return replace(kept, overlapping=True) if other.single and not index.single else found
    if index.step or other.rising:
        return replace(kept, extent="")
    return found


def _fits(scaled: AbstractValue, index: AbstractValue) -> bool:
    """Whether `scaled` makes as much room for each of its values as `index` needs: `arange(n) * width + column`."""
    if not scaled.step:
        return False
    return index.extent == scaled.step if index.extent else len(scaled.ones) < 2


def _is_number(inferred: AbstractValue) -> bool:
    """Whether a value is one number for all: no tensor, or one of a single element."""
    if inferred.is_tensor:
        return inferred.dims is not None and len(inferred.ones) >= inferred.dims
    if inferred.what == "other":
        return inferred.each is None and not inferred.items
    return inferred.gradient != "yes" and not inferred.single


def moves(element: cst.BaseExpression, name: str) -> bool:
    """Whether `element` gives another number for each `name`: `name` itself, `n - 1 - name`, or `2 * name + 1`."""
    match element:
        case cst.Name(value=value):
            return value == name
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
            return (moves(left, name) and name not in names_in(right)) or (
                moves(right, name) and name not in names_in(left)
            )
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return (moves(left, name) and _is_factor(right)) or (moves(right, name) and _is_factor(left))
    return False


def _is_factor(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.evaluated_value != 0


def follow_each_other(start: str, stop: str, counter: str) -> bool:
    """Whether `[start, stop)` ends where the next one begins, as `[at[i], at[i + 1])` does."""
    plain = re.sub(r"\((\w+)\)", r"\1", start.replace(" ", ""))
    after = stop.replace(" ", "").replace(f"({counter}+1)", counter).replace(f"{counter}+1", counter)
    return bool(re.search(rf"\b{counter}\b", plain)) and re.sub(r"\((\w+)\)", r"\1", after) == plain
