"""TDL305: sets -> those whose order reaches a result, and the places to sort."""

from __future__ import annotations

import functools
import operator
import re
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.agreement import Agreement
from torchdet_lint.checks.order.elements import collection_kind, passed_elsewhere, scalar_kind, set_kind
from torchdet_lint.checks.order.given.given_sets import given_sets
from torchdet_lint.checks.order.given.implemented_sets import implemented_sets
from torchdet_lint.checks.order.joined_sets import joined_sets
from torchdet_lint.checks.order.results import telling
from torchdet_lint.checks.order.set_candidates import CALLS_SET, iterating
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.finding import Change, RelatedNode, Replace, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.dataflow.uses import Use
    from torchdet_lint.module.module import Module


_STRONG = ("numbered",)
_ORDERED_SET = (
    "indexed", "first", "numbered", "joined", "written", "saved", "drawn", "gathered", "returned", "yielded", "handed",
    "kept", "summed", "trained", "dealt", "initialised",
)  # fmt: skip


class _Lengths:
    """Which functions of a file ask for lengths."""

    def __init__(self, module: Module) -> None:
        # A function is asked once, for its source costs more than a look at it.
        self._source = functools.cache(module.code)
        self._text = module.text

    def asked(self, function: cst.FunctionDef | None) -> bool:
        """Whether `function`, or the file, asks for a length."""
        return "len(" in self._text and (function is None or "len(" in self._source(function))


def set_order(module: Module, rule: Rule) -> Iterator[Violation]:
    """A set iterated into something whose order matters."""
    display = re.compile(rule.patterns[0])
    reported: set[cst.CSTNode] = set()
    found: list[tuple[int, Violation]] = []
    for node, kind, uses in chain(_made_sets(module, display), given_sets(module), implemented_sets(module)):
        if kind == "number" and _is_joined(module, node):
            kind = "text"
        if kind in ("number", "nothing"):
            continue
        for use in uses if uses is not None else Follower(module).uses(node, is_set=True):
            if use.kind in (_STRONG if kind == "label" else _ORDERED_SET) or _picks_text(module, kind, use):
                taken = _taken_at(module, use.origin or node)
                if taken not in reported and not _holds_numbers(module, kind, node, taken):
                    reported.add(taken)
                    found.append((module.order_of(taken), _set_found(module, node, kind, use, taken)))
    for _, one in sorted(found, key=operator.itemgetter(0)):
        yield one


def _picks_text(module: Module, kind: str, use: Use) -> bool:
    """Whether one text of several is taken, or each by its place. A set of which somebody asks the length may well hold
    one alone."""
    if use.kind != "picked" or kind != "text" or _is_any(module, use.node):
        return False
    if isinstance(use.node, cst.Assign):
        return True
    return not module.shared(_Lengths).asked(module.enclosing_function(use.node))


def _is_any(module: Module, taken: cst.CSTNode) -> bool:
    """Whether the name that gets the element `taken`, or the function that gives it back, says that any will do."""
    line = module.statement(taken)
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    name = ""
    if isinstance(statement, cst.Assign):
        name = last_word(statement.targets[0].target)
    elif isinstance(statement, cst.Return) and (function := module.enclosing_function(taken)) is not None:
        name = function.name.value
    return not module.library.facts.orders.words["arbitrary"].isdisjoint(name.split("_"))


def _is_joined(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the elements of `node` become one text as they are, so that they are texts, whatever a name says."""
    arg = module.parent(node)
    call = module.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "join"


def _taken_at(module: Module, origin: cst.BaseExpression) -> cst.BaseExpression:
    """Where the order of the set `origin` is taken: the call that it is an argument of, or where it is gone through."""
    arg = module.parent(origin)
    call = module.parent(arg) if isinstance(arg, cst.Arg) else None
    return call if isinstance(call, cst.Call) else origin


def _holds_numbers(module: Module, kind: str, node: cst.BaseExpression, taken: cst.BaseExpression) -> bool:
    """Whether the set `node`, of which no more than `kind` is known, holds numbers, by where its order is `taken` or by
    what other files pass."""
    if kind == "unknown" and _becomes_tensor(module, taken):
        return True
    return kind in ("unknown", "label") and passed_elsewhere(module, node) == "number"


def _becomes_tensor(module: Module, taken: cst.BaseExpression) -> bool:
    """Whether a tensor, or an array of numbers, is made of what is taken alone: it holds numbers, whose order is that
    of their values."""
    arg = module.parent(taken)
    around = module.parent(arg) if isinstance(arg, cst.Arg) else None
    call = module.call_at(around) if around is not None else None
    if call is None or call.node.args[0] is not arg:
        return False
    sets = module.library.facts.orders.sets
    if not sets["arrays"].isdisjoint(call.names):
        dtype = call.argument("dtype", ("object", "dtype"))
        return dtype is not None and last_word(dtype.node) in module.library.facts.tensors.dtypes
    return not sets["tensors"].isdisjoint(call.names)


def _made_sets(module: Module, display: re.Pattern[str]) -> Iterator[tuple[cst.BaseExpression, str, None]]:
    """The sets that the file makes, and what they hold."""
    if CALLS_SET.search(module.text) or display.search(module.text):
        module.load_where(iterating(module, display))
        for node in _sets(module):
            yield node, set_kind(module, node), None
        for node, kind in joined_sets(module):
            yield node, kind, None


def _sets(module: Module) -> list[cst.BaseExpression]:
    """The calls, displays and comprehensions that make sets, in the order of the source."""
    found: list[cst.BaseExpression] = [
        call.node for call in module.calls_to(*module.library.facts.orders.sets["makes"])
    ]
    return sorted([*found, *module.set_displays], key=module.order_of)


def _set_found(module: Module, node: cst.BaseExpression, kind: str, use: Use, taken: cst.BaseExpression) -> Violation:
    """Sort the set where it is gone through: one that is kept must stay a set."""
    source = module.code(use.origin or node)
    details = {"set": f"`{source}`" if len(source) < 60 and "\n" not in source else "this set"}
    written = isinstance(node, (cst.Call, cst.Set, cst.SetComp))
    made = () if use.origin in (node, None) or not written else (RelatedNode(node, "the set is made here"),)
    changes: tuple[Change, ...] = ()
    safe = False
    if (
        kind not in ("identity", "unsortable")
        and use.origin is not None
        and not isinstance(module.parent(use.origin), cst.Attribute)
        and not _holds_functions(module, kind, use.origin)
    ):
        agreement = Agreement(
            module,
            lambda made: set_kind(module, made),
            lambda value: collection_kind(module, value, 4),
            lambda element: scalar_kind(module, element),
        )
        places, safe = agreement.of(use.origin)
        if agreement.complete or not any(_is_paired(module, place) for place in places):
            changes = tuple(_sorted_at(module, place) for place in places)
    return Violation(
        taken,
        details,
        kind if kind in ("identity", "unknown", "unsortable") else "",
        related=(*made, *telling(use)),
        changes=changes,
        applicability="safe" if safe else "unsafe",
    )


def _is_paired(module: Module, place: cst.BaseExpression) -> bool:
    """Whether the elements of a set at `place` are paired with those of something else, which may be in its order."""
    arg = module.parent(place)
    around = module.parent(arg) if isinstance(arg, cst.Arg) else None
    call = module.call_at(around) if around is not None else None
    orders = module.library.facts.orders
    if call is None or orders.sets["pairs"].isdisjoint(call.names):
        return False
    others = [one.value for one in call.node.args if one is not arg and one.keyword is None]
    if "builtins.map" in call.names:
        del others[:1]
    return any(
        not isinstance(one, cst.Call) or orders.sets["counts"].isdisjoint(module.resolve(one.func)) for one in others
    )


def _holds_functions(module: Module, kind: str, origin: cst.BaseExpression) -> bool:
    """Whether a set of unknown elements is named after functions, which cannot be sorted."""
    return kind == "unknown" and module.library.facts.orders.endings["functions"].search(last_word(origin)) is not None


def _sorted_at(module: Module, place: cst.BaseExpression) -> Replace:
    """Sort what is gone through at `place`."""
    parent = module.parent(place)
    call = module.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and bare(call.func) == "list" and len(call.args) == 1 and not call.args[0].star:
        return Replace(call.func, "sorted")
    return Replace(place, f"sorted({module.code(place)})")
