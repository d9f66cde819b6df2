"""A rule's tables and a file -> the calls and assignments of the file that a row speaks of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.catalogue.conditions import condition_holds, matches
from torchdet_lint.checks.kept_defaults import is_always_given, is_left_none
from torchdet_lint.dataflow.syntax import nodes
from torchdet_lint.finding import RelatedNode, Withhold

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.rules import Call as Row
    from torchdet_lint.catalogue.rules import Rule, Setting
    from torchdet_lint.catalogue.tables.conventions import Conventions
    from torchdet_lint.module.module import Assignment, Call, Module, Value

FOR_CALLERS = Withhold("the seed is for the callers to give")
"""There is no fix where a parameter is left at None."""


def calls(module: Module, rule: Rule, *, by_callers: bool = False) -> Iterator[tuple[Call, Row]]:
    """The calls that a row of the rule means, each once, with the first row that does; `by_callers` also those to which
    a function hands a parameter that every call in sight gives a value of which the row speaks."""
    seen = set[int]()
    for row in rule.calls if module.calls_any(module.library.meant_by(rule)) else ():
        for call in module.calls_to(*row.names):
            if id(call) in seen or not set(row.excluding).isdisjoint(call.names):
                continue
            if module.meets(call, row.when, row.parameters) or (by_callers and _met_by_callers(module, call, row)):
                seen.add(id(call))
                yield call, row


def _met_by_callers(module: Module, call: Call, row: Row) -> bool:
    """Whether `call` meets the conditions of `row` by what every call in sight gives the parameters handed to it."""

    def holds(condition: Condition) -> bool:
        value = call.argument(condition.argument, row.parameters or None)
        if value is None or value.known or module.holds(call, condition, row.parameters):
            return module.holds(call, condition, row.parameters)
        return is_always_given(module, value, lambda given: given.known and _meets(condition, given.constant))

    return all(map(holds, row.when))


def _meets(condition: Condition, value: object) -> bool:
    return condition_holds(condition, passed=True, opaque=False, known=True, value=value)


def left_none(module: Module, rule: Rule) -> Iterator[tuple[Call, Row, RelatedNode]]:
    """The calls that a row of the rule would mean without an argument, where this is a parameter that every call in
    sight leaves at None; and what is said of it."""
    for row in rule.calls if module.calls_any(module.library.meant_by(rule)) else ():
        missing = [condition for condition in row.when if condition.test == "missing"]
        if not missing:
            continue
        others = [condition for condition in row.when if condition.test != "missing"]
        for call in module.calls_to(*row.names):
            given = [call.argument(condition.argument, row.parameters or None) for condition in missing]
            seeds = [value for value in given if value is not None and not value.known]
            if not seeds or call.opaque or len(seeds) + given.count(None) < len(given):
                continue
            if module.meets(call, others, row.parameters) and all(is_left_none(module, seed) for seed in seeds):
                told = f"`{module.code(seeds[0].node)}` is None by default, and no call in sight gives another"
                yield call, row, RelatedNode(seeds[0].node, told)


def assignments(module: Module, rule: Rule) -> Iterator[tuple[Assignment, Setting]]:
    """The assignments that a row of the rule means."""
    for setting in rule.settings:
        for assignment in module.assignments_to(*setting.names):
            value = assignment.value
            if _is_wrong(value, setting) if value.known else setting.possible or gives_wrong(module, value, setting):
                yield assignment, setting


def gives_wrong(module: Module, value: Value, setting: Setting) -> bool:
    """Whether `value` is a parameter to which every call in sight gives a value that is wrong."""
    return not value.known and is_always_given(module, value, lambda given: _is_wrong(given, setting))


def _is_wrong(value: Value, setting: Setting) -> bool:
    return value.known and any(matches(value.constant, wrong) for wrong in setting.values)


def may_be_asked_for(module: Module, node: cst.CSTNode, values: tuple[Value, ...]) -> bool:
    """Whether what stands at `node` happens where determinism may be asked for.

    It does not where an enclosing `if` names an option such as `deterministic` or `seed` and this is the branch without
    it, in a function that says of itself that it undoes determinism, nor where one of `values`, that only the run
    knows, is worked out from such an option, or from a parameter that is one in every call in sight.
    """
    option = module.library.facts.conventions.asks_for_determinism
    if any(option.search(value.source) or _is_given_one(module, value, option) for value in values):
        return False
    wanted = asked_for(module, node)
    return wanted is None or (wanted and not values)


def _is_given_one(module: Module, value: Value, option: re.Pattern[str]) -> bool:
    """Whether `value` is worked out from a parameter to which every call in sight gives an `option`."""
    return any(
        is_always_given(module, module.value_at(name, value.scope, value.order), lambda one: _is_one(one, option))
        for name in nodes(value.node)
        if isinstance(name, cst.Name)
    )


def _is_one(given: Value, option: re.Pattern[str]) -> bool:
    return not given.known and option.search(given.source) is not None


def asked_for(module: Module, node: cst.CSTNode) -> bool | None:
    """Whether `node` stands in the branch of an option that asks for determinism (False: in the one that does not)."""
    conventions = module.library.facts.conventions
    for around, inner in module.deciding(node):
        if isinstance(around, cst.FunctionDef):
            return None if conventions.undoes_determinism.search(around.name.value) is None else False
        if isinstance(around, (cst.If, cst.IfExp)) and inner is not around.test:
            wanted = _asks(conventions, around.test)
            if wanted is not None:
                return wanted is (inner is around.body)
    return None


def _asks(conventions: Conventions, test: cst.BaseExpression) -> bool | None:
    """Whether `test` holds where determinism is asked for (False: where it is not); None where it does not say."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = _asks(conventions, test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        sides = [side for side in (_asks(conventions, test.left), _asks(conventions, test.right)) if side is not None]
        return all(sides) if sides else None
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        inner = _asks(conventions, test.left)
        part = test.comparisons[0]
        if inner is None:
            return None
        absent = cst.Module([]).code_for_node(part.comparator) in ("None", "False", "-1", "0", '""', "''")
        equal = isinstance(part.operator, (cst.Is, cst.Equal, cst.LessThan, cst.LessThanEqual))
        return inner is not (absent and equal)
    text = cst.Module([]).code_for_node(test)
    if conventions.asks_for_determinism.search(text) is None:
        return None
    return conventions.asks_against_determinism.search(text) is None
