"""What stands in for a seed that is not given -> whether every call in sight gives one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module, Value


class Spared:
    """The functions of one file that make a seed where they are given none."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._given: dict[tuple[int, str], bool] = {}

    def __contains__(self, node: cst.CSTNode) -> bool:
        """Whether `node` runs only where a parameter of the function around it is None, which none of its calls in the
        file leaves it at."""
        inner = node
        names: list[str] = []
        for around in self.module.ancestors(node):
            if isinstance(around, cst.FunctionDef):
                return any(self._is_given(around, name) for name in names)
            if isinstance(around, (cst.If, cst.IfExp)):
                option, missing = asks_for_none(around.test)
                if isinstance(option, cst.Name) and inner is (around.body if missing else around.orelse):
                    names.append(option.value)
            inner = around
        return False

    def _is_given(self, function: cst.FunctionDef, name: str) -> bool:
        key = id(function), name
        if key not in self._given:
            parameters = positional(function)
            calls = [call for call in self.module.calls if f"@.{function.name.value}" in call.own]
            values = [call.argument(name, parameters) for call in calls]
            self._given[key] = bool(calls) and name in parameters and all(map(self._is_something, values))
        return self._given[key]

    def _is_something(self, value: Value | None) -> bool:
        """Whether a value is evidently not None: a number, or an option that has a default, or has to be given."""
        if value is None or value.is_none:
            return False
        if value.known:
            return True
        option = value.node.attr.value if isinstance(value.node, cst.Attribute) else ""
        written = re.search(rf"add_argument\([^()]*[\"']--?{option}[\"'][^()]*\)", self.module.text) if option else None
        return (
            written is not None
            and re.search(r"\bdefault\s*=\s*(?!None\b)|\brequired\s*=\s*True", written[0]) is not None
        )


def asks_for_none(test: cst.BaseExpression) -> tuple[cst.BaseExpression | None, bool]:
    """What `test` compares with None, and whether it is true for None."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        if isinstance(target.comparator, cst.Name) and target.comparator.value == "None":
            return test.left, isinstance(target.operator, (cst.Is, cst.Equal))
    return None, False
