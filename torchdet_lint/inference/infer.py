"""An expression -> its abstract value: a tensor or not, of which type, on which device, and whether a gradient flows.

Everything is inferred from what stands in the file, and from what `module.foreign` tells of the functions of others;
`unknown` is always an answer, and the checks treat it as one.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.inference import devices
from torchdet_lint.inference.abstract_values import (
    CIRCLE,
    FLOAT,
    INTEGER,
    OTHER,
    UNKNOWN,
    AbstractValue,
    arithmetic,
    by_key,
    joined,
    text_of,
)
from torchdet_lint.inference.accesses import Accesses
from torchdet_lint.inference.annotations import Annotations
from torchdet_lint.inference.attributes import Attributes, Elsewhere
from torchdet_lint.inference.calls import Calls
from torchdet_lint.inference.elements import distinct_indices
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.parameters import Parameters
from torchdet_lint.inference.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module

_DEPTH = 24
# So many questions that were too deep are asked by themselves, and so often in turn.
_CUT = 4
_AGAIN = 3
_LONG = 8
# What only tensors and arrays have, and what holds many values is, as far as one knows.
_SHAPE = frozenset(("shape", "size", "dim", "ndim", "ndimension", "numel"))
_MANY_VALUES = AbstractValue(what="other", each=UNKNOWN)


class Inference:
    """The abstract values of the expressions of one file, each worked out once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        # What a name or an attribute that is made of itself is by what is known of it so far, by the question.
        self._first: dict[Hashable, AbstractValue] = {}
        annotations = Annotations(module)
        gradients = module.shared(Gradients)
        attributes = Attributes(module, annotations, self.infer, self.returned, self._asked, self._first, _IN_ANY_FILE)
        self.variables = Variables(
            module,
            annotations,
            Parameters(module, annotations, attributes, gradients, self.infer, _infer_in),
            self.infer,
            self._asked,
            self._first,
        )
        self.accesses = Accesses(module, attributes, self.infer)
        self.calls = Calls(module, annotations, attributes, self.accesses, gradients, self.infer, self._asked)
        self._known: dict[Hashable, AbstractValue] = {}
        self._tentative: dict[Hashable, AbstractValue] = {}
        # The questions that wait for an answer and their depths; the least depth of those that were asked again.
        self._busy: dict[Hashable, int] = {}
        self._low = _DEPTH
        # The questions that were too deep to be asked, and how often such are being asked by themselves in turn.
        self._cut: dict[Hashable, Callable[[], AbstractValue]] = {}
        self._again = 0

    def returned(self, function: cst.FunctionDef) -> AbstractValue:
        """What a function of the file returns."""
        return self.calls.returned(function)

    def infer(self, node: cst.BaseExpression) -> AbstractValue:
        """What `node` evidently is, where it stands."""
        found = self._known.get(id(node))
        if found is not None:
            return found
        if isinstance(node, cst.Name):
            return self.variables.of(node)
        if not len(self._busy) % _LONG:
            for inner in self._inside(node):
                self._asked(id(inner), partial(self._infer, inner))
        return self._asked(id(node), partial(self._infer, node))

    def _inside(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The expressions that `node` goes on from where they are many, innermost first: asked in this order, none is
        deeper than the next."""
        chain: list[cst.BaseExpression] = []
        inner = _inner(node)
        while inner is not None and id(inner) not in self._known:
            chain.append(inner)
            inner = _inner(inner)
        if len(chain) >= _LONG:
            yield from reversed(chain)

    def _asked(self, key: Hashable, infer: Callable[[], AbstractValue]) -> AbstractValue:
        """The answer to the question `key`, which `infer` finds, unless it is known or being asked."""
        found = self._known.get(key)
        if found is not None:
            return found
        found = self._tentative.get(key)
        if found is not None:
            self._low = -1
            return found
        place, depth = self._busy.get(key), len(self._busy)
        if place is None and depth >= _DEPTH:
            self._cut[key] = infer
        if place is not None or depth >= _DEPTH:
            self._low = min(self._low, -1 if place is None else place)
            return UNKNOWN if place is None else self._first.get(key, CIRCLE)
        self._busy[key] = depth
        outer, self._low = self._low, _DEPTH
        try:
            found = infer()
        finally:
            del self._busy[key]
        if not self._busy:
            self._tentative.clear()
            if self._cut:
                found = self._deeper(key, infer, found)
        # What was cut short inside a cycle that somebody further out began holds for their question only.
        final = not self._busy or self._low >= depth
        (self._known if final else self._tentative)[key] = found
        self._low = outer if final else min(outer, self._low)
        return found

    def _deeper(self, key: Hashable, infer: Callable[[], AbstractValue], found: AbstractValue) -> AbstractValue:
        """The answer to a question that led too deep: what it was cut short at is asked first, so that it hangs less on
        what somebody asked before."""
        cut, self._cut = self._cut, {}
        if self._again >= _AGAIN:
            return found
        self._again += 1
        try:
            for inner, inner_infer in list(cut.items())[:_CUT]:
                self._asked(inner, inner_infer)
            self._busy[key] = 0
            found = infer()
        finally:
            self._busy.clear()
            self._again -= 1
        self._tentative.clear()
        self._cut.clear()
        return found

    def _infer(self, node: cst.BaseExpression) -> AbstractValue:
        if isinstance(node, cst.Attribute):
            return self.accesses.attribute(node)
        if isinstance(node, cst.Call):
            return self.calls.of(node)
        if isinstance(node, cst.Subscript):
            return self.accesses.subscript(node)
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node)
        if isinstance(node, cst.Comparison):
            return self._comparison(node)
        if isinstance(node, cst.UnaryOperation):
            return OTHER if isinstance(node.operator, cst.Not) else self.infer(node.expression)
        if isinstance(node, cst.IfExp):
            return joined(self.infer(branch) for branch in devices.choices(self.module, node))
        if isinstance(node, cst.BooleanOperation):
            return joined((self.infer(node.left), self.infer(node.right)))
        if isinstance(node, cst.NamedExpr):
            return self.infer(node.value)
        return self._display(node)

    def _operation(self, node: cst.BinaryOperation) -> AbstractValue:
        left, right = self.infer(node.left), self.infer(node.right)
        if left.distinct and right == UNKNOWN and self._has_shape(node.right):
            right = _MANY_VALUES
        elif right.distinct and left == UNKNOWN and self._has_shape(node.left):
            left = _MANY_VALUES
        return distinct_indices.combined(
            arithmetic(left, right, node.operator),
            left,
            right,
            node.operator,
            lambda first: self.module.code(node.left if first else node.right),
        )

    def _has_shape(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is a name of which the function around asks the shape: it holds many values."""
        around = self.module.enclosing_function(node) if isinstance(node, cst.Name) else None
        if around is None or not isinstance(node, cst.Name):
            return False
        asked = (self.module.parent(read) for read in self.module.shared(Reads).of(around, node.value))
        return any(isinstance(one, cst.Attribute) and one.attr.value in _SHAPE for one in asked)

    def _display(self, node: cst.BaseExpression) -> AbstractValue:
        """A literal, or what is written as a list, tuple or dictionary."""
        if isinstance(node, cst.Integer):
            return INTEGER
        if isinstance(node, cst.Float):
            return FLOAT
        if isinstance(node, (cst.Tuple, cst.List)):
            items = tuple(
                self.infer(element.value) if isinstance(element, cst.Element) else UNKNOWN for element in node.elements
            )
            return AbstractValue(what="other", items=items, each=joined(items) if items else None)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
            return AbstractValue(what="other", each=self.infer(node.elt), distinct=self._counts_up(node))
        if isinstance(node, cst.Dict):
            values = [self.infer(element.value) for element in node.elements]
            keys = [text_of(getattr(element, "key", None)) for element in node.elements]
            entries = by_key(zip(keys, values, strict=True)) if all(keys) else ()
            return AbstractValue(what="other", each=joined(values) if values else None, entries=entries)
        if isinstance(node, cst.DictComp):
            return AbstractValue(what="other", each=self.infer(node.value))
        return UNKNOWN if isinstance(node, cst.Await) else OTHER

    def _counts_up(self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp) -> bool:
        """Whether the elements are all different: those of a range or of another list without repeats, their numbers in
        an enumeration, or some of them, each moved by the same number."""
        loop = node.for_in
        if loop.inner_for_in is not None:
            return False
        match loop.target:
            case cst.Name(value=name):
                return distinct_indices.moves(node.elt, name) and self.infer(loop.iter).distinct
            case cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), _]) if isinstance(loop.iter, cst.Call):
                counted = self.module.resolve(loop.iter.func) == ("builtins.enumerate",)
                return counted and distinct_indices.moves(node.elt, name)
        return False

    def _comparison(self, node: cst.Comparison) -> AbstractValue:
        operands = [self.infer(node.left), *(self.infer(part.comparator) for part in node.comparisons)]
        identity = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
        if any(isinstance(part.operator, identity) for part in node.comparisons):
            return OTHER
        tensors = [operand for operand in operands if operand.is_tensor]
        if not tensors:
            return (
                OTHER
                if all(operand.what == "other" for operand in operands)
                else AbstractValue(dtype="bool", gradient="no")
            )
        return AbstractValue(what="tensor", dtype="bool", gradient="no", device=tensors[0].device, dims=tensors[0].dims)


def _infer_in(module: Module, node: cst.BaseExpression) -> AbstractValue:
    """What `node` of whatever file evidently is there."""
    return module.shared(Inference).infer(node)


def _attribute_in(module: Module, class_: Class, name: str) -> AbstractValue:
    return module.shared(Inference).calls.attributes.attribute(class_, name)


def _given_in(module: Module, class_: Class, name: str) -> AbstractValue:
    return module.shared(Inference).calls.method_gives(class_, name)


_IN_ANY_FILE = Elsewhere(_attribute_in, _given_in)


_ON: dict[type, Callable[[Any], cst.BaseExpression]] = {
    cst.Attribute: attrgetter("value"),
    cst.BinaryOperation: attrgetter("left"),
    cst.Subscript: attrgetter("value"),
    cst.UnaryOperation: attrgetter("expression"),
}


def _inner(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The receiver of a method, the first argument of another function, the left operand."""
    inner: cst.BaseExpression | None = None
    if isinstance(node, cst.Call):
        inner = node.func
        while isinstance(inner, cst.Attribute):
            inner = inner.value
        if isinstance(inner, cst.Name):
            inner = node.args[0].value if node.args else None
    elif type(node) in _ON:
        inner = _ON[type(node)](node)
    return None if isinstance(inner, cst.Name) else inner
