"""What stands in for a seed or a generator that is not given -> whether every call in sight gives one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, is_public
from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.module.tree import positional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Call, Module, Value

# Nobody asks what more files do with a method.
_SPOKEN = 8


class _Missing(NamedTuple):
    """A parameter that is None where something runs, or that may be nought too (`empty`)."""

    name: str
    empty: bool


class Spared:
    """The functions of one file that make a seed where they are given none."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._given: dict[tuple[int, _Missing], bool] = {}

    def __contains__(self, node: cst.CSTNode) -> bool:
        """Whether `node` runs only where a parameter of the function around it is None, which none of its calls leaves
        it at."""
        inner = node
        missing: list[_Missing] = []
        for around in self.module.ancestors(node):
            if isinstance(around, cst.FunctionDef):
                return any(self._is_given(around, one) for one in missing)
            missing += _missing(around, inner)
            inner = around
        return False

    def _is_given(self, function: cst.FunctionDef, missing: _Missing) -> bool:
        key = id(function), missing
        if key not in self._given:
            parameters = positional(function)[self.module.enclosing_class(function) is not None :]
            calls = self._calls(function) if missing.name in parameters else []
            given = [(there, call.argument(missing.name, parameters)) for there, call in calls]
            self._given[key] = bool(calls) and all(_is_something(there, value, missing) for there, value in given)
        return self._given[key]

    def _calls(self, function: cst.FunctionDef) -> list[tuple[Module, Call]]:
        """The calls of a function or constructor, or all those of a method by its name where nothing but calls name it,
        and no package makes its class public."""
        module, name = self.module, function.name.value
        class_ = module.enclosing_class(function)
        if class_ is None or name == "__init__":
            return list(CallEdges(module).callers_with_files(function))
        others = module.naming(name, _SPOKEN) if module.naming is not None and not name.startswith("__") else None
        if others is None or is_public(module, class_.name):
            return []
        found: list[tuple[Module, Call]] = []
        spoken = 0
        for there in (module, *others):
            there.load_where(word=name)
            found += ((there, call) for call in there.method_calls(name))
            spoken += len(re.findall(rf"\.{name}\b|[\"']{name}[\"']", there.text))
        return found if len(found) == spoken else []


def _missing(around: cst.CSTNode, inner: cst.CSTNode) -> Iterator[_Missing]:
    """The parameters that are nothing where `inner` runs, a part of `around`: `if rng is None:`, `rng or …`."""
    if isinstance(around, (cst.If, cst.IfExp)):
        option, is_body = asks_for_none(around.test)
        empty = False
        if option is None and isinstance(around.test, cst.UnaryOperation) and isinstance(around.test.operator, cst.Not):
            option, is_body, empty = around.test.expression, True, True
        if isinstance(option, cst.Name) and inner is (around.body if is_body else around.orelse):
            yield _Missing(option.value, empty)
    elif isinstance(around, cst.BooleanOperation) and isinstance(around.left, cst.Name) and inner is around.right:
        yield from [_Missing(around.left.value, True)] if isinstance(around.operator, cst.Or) else []


def _is_something(module: Module, value: Value | None, missing: _Missing) -> bool:
    """Whether a value is evidently not None: a number, a generator, or an option that has a default, or has to be
    given."""
    if value is None or value.is_none:
        return False
    if value.known:
        return bool(value.constant) or not missing.empty
    if _is_generator(module, value):
        return True
    option = value.node.attr.value if isinstance(value.node, cst.Attribute) and not missing.empty else ""
    written = re.search(rf"add_argument[ \t]*\([^()]*[\"']--?{option}[\"'][^()]*\)", module.text) if option else None
    return (
        written is not None and re.search(r"\bdefault\s*=\s*(?!None\b)|\brequired\s*=\s*True", written[0]) is not None
    )


def _is_generator(module: Module, value: Value) -> bool:
    """Whether a value is evidently a generator that somebody made, also by a name of it."""
    made = module.followed(value.node, value.scope, value.order) or value
    kept = [(module, made)]
    if isinstance(made.node, cst.Attribute) and bare(made.node.value) == "self":
        class_ = module.enclosing_class(made.node)
        kept = list(CallEdges(module).kept(module, class_, made.node.attr.value)) if class_ is not None else []
    makers = module.library.facts.workers.generators
    return bool(kept) and all(
        isinstance(one.node, cst.Call) and not makers.isdisjoint(there.resolve(one.node.func)) for there, one in kept
    )


def asks_for_none(test: cst.BaseExpression) -> tuple[cst.BaseExpression | None, bool]:
    """What `test` compares with None, and whether it is true for None."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        if isinstance(target.comparator, cst.Name) and target.comparator.value == "None":
            return test.left, isinstance(target.operator, (cst.Is, cst.Equal))
    return None, False
