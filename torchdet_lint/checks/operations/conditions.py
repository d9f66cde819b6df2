"""A call of an op and a condition of the table -> whether the call meets it, as written or as inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.catalogue.conditions import condition_holds, matches
from torchdet_lint.checks.operations.given_values import given_dims, is_given_sparse, part_behind
from torchdet_lint.checks.operations.gone_through import numbers, numbers_by_place
from torchdet_lint.checks.operations.never_given import is_never_given
from torchdet_lint.checks.operations.unpacked import unpacked
from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.syntax import parameter_behind
from torchdet_lint.inference.abstract_values import OTHER, UNKNOWN, AbstractValue
from torchdet_lint.inference.narrowing import Comparisons, tests_around
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import positional
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.inference.infer import Inference
    from torchdet_lint.module.module import Call, Module, Value
    from torchdet_lint.module.names import Scope
    from torchdet_lint.prefilter.library import Operation

_SIZES = lazy(
    r"\w\.(?:shape|size\(\))(?:\[[-\d:]+\])?$|\w\.size\(-?\d+\)$|^int\(\w[\w.]*\.(?:shape\[-?\d\]|size\(-?\d\)) [*/]"
)
_SWAPPING = ("transpose", "swapaxes", "swapdims")
# So many methods in a row are looked through.
_DEEP = 4
# A test of a number for more than 1, and one that is left behind by what is more.
_MORE = frozenset({(">", "1"), (">", "1.0"), (">=", "2"), ("!=", "1")})
_NO_MORE = frozenset({("<=", "1"), ("<=", "1.0"), ("<", "2"), ("==", "1")})
INFERRED = frozenset(
    {
        "tensor",
        "dims",
        "sparse",
        "length",
        "contains",
        "repeats",
        "several",
        "overlapping",
        "side-by-side",
        "from",
        "not-from",
        "integer",
        "not-integer",
        "not-floating",
    }
)
# What is asked of one argument alone, whatever the op works on.
_APART = frozenset({"tensor", "length", "contains", "repeats", "overlapping", "side-by-side", "from", "not-from"})


class Candidate(NamedTuple):
    """A call that spells an op, and the call that made the instance where an instance is called."""

    operation: Operation
    call: Call
    made: Call | None


class Conditions:
    """The conditions of the table of ops, asked of the calls of one file."""

    def __init__(self, module: Module, inference: Inference) -> None:
        self.module = module
        self.inference = inference
        self.comparisons = module.shared(Comparisons)
        self._dictionaries: dict[int, list[dict[str, Value]]] = {}

    def hold(self, candidate: Candidate, condition: Condition, inferred: AbstractValue) -> bool:
        """Whether the call meets `condition`, where the op works on a tensor with that value."""
        operation, call, made = candidate
        parameters: Sequence[str] = operation.spelling.forward or operation.spelling.parameters
        if made is not None and condition.argument not in parameters:
            call, parameters = made, operation.spelling.parameters
        if condition.test in INFERRED:
            value = call.argument(condition.argument, parameters)
            if condition.argument != "self":
                inferred = self.inference.infer(value.node) if value is not None else OTHER
            elif condition.test == "sparse":
                value = self._subject(operation, call, parameters)
            return self._inferred(condition, inferred, value, call, parameters)
        value = call.argument(condition.argument, parameters)
        if value is not None and not value.known:
            if condition.test == "not-in" and (self._is_extent(value) or self._is_more_than_one(call, value)):
                return True
            allowed = self.comparisons.texts(value.node, value.scope)
            if allowed:
                return any(_met_by(condition, one) for one in allowed)
            if condition.test in ("given", "missing") and self._is_never_given(value):
                return _met_by(condition, None)
            if condition.test == "not-in" and (places := numbers_by_place(self.module, value)) is not None:
                return _differ(places, condition)
            if condition.test == "not-in" and (sizes := numbers(self.module, value)):
                return any(_met_by(condition, one) for one in sizes)
            told = [self._told(one, condition) for one in self._arms(value)]
            if any(one is not None for one in told):
                return any(told)
        if value is None and call.opaque and self._unpacked(call, condition):
            return True
        return self.module.holds(call, condition, parameters)

    def _subject(self, operation: Operation, call: Call, parameters: Sequence[str]) -> Value | None:
        """The tensor that the op works on: the receiver of a method, the first argument of a function."""
        if operation.method:
            return self.module.value(call.receiver) if call.receiver is not None else None
        return call.argument(parameters[0], parameters) if parameters else None

    def _unpacked(self, call: Call, condition: Condition) -> bool:
        """Whether a dictionary that `call` may unpack has a constant that meets `condition`."""
        known = self._dictionaries.get(id(call.node))
        if known is None:
            known = self._dictionaries[id(call.node)] = list(unpacked(self.module, call))
        given = (entries.get(condition.argument) for entries in known)
        return any(
            one is not None and isinstance(one.constant, (str, int)) and _met_by(condition, one.constant)
            for one in given
        )

    def evidently_failing(self, candidate: Candidate) -> Condition | None:
        """A condition that the call does not meet, by what costs less to ask than what the op works on."""
        operation, call, _ = candidate
        parameters: Sequence[str] = operation.spelling.forward or operation.spelling.parameters
        subject = "self" if operation.method else parameters[0] if parameters else ""
        for condition in operation.op.when:
            if condition.argument not in ("self", subject):
                if condition.test in _APART and not self.hold(candidate, condition, UNKNOWN):
                    return condition
            elif condition.test == "dims" and (value := call.argument(subject, parameters)) is not None:
                sizes = self._sizes(value.node)
                if sizes and sizes not in condition.values:
                    return condition
        return None

    def _sizes(self, node: cst.BaseExpression) -> int:
        """How many sizes `x.view(-1, 10)` is given one by one; 0 where `node` is something else."""
        call = self.module.call_at(node) if isinstance(node, cst.Call) else None
        if call is None or call.own or call.opaque or call.attribute not in ("view", "reshape"):
            return 0
        given = len(call.arguments.positional)
        return given if given > 1 and not call.arguments.keywords else 0

    def _is_extent(self, value: Value) -> bool:
        """Whether it is the extent of a tensor, as `y.shape[-2:]`, which is not written for a constant."""
        elements = self.module.elements(value.node, value.scope, value.order)
        if elements is not None:
            return any(self._is_size(element, value) for element in elements)
        return self._is_size(value.node, value)

    def _is_more_than_one(self, call: Call, value: Value) -> bool:
        """Whether a test around `call` makes sure that the number `value` is more than 1."""
        name = dotted(value.node)
        for test, holds in tests_around(self.module, call.node) if name else ():
            if isinstance(test, cst.Comparison) and dotted(test.left) == name and len(test.comparisons) == 1:
                asked = test.comparisons[0]
                told = self.module.code(asked.operator).strip(), self.module.code(asked.comparator)
                if told in (_MORE if holds else _NO_MORE):
                    return True
        return False

    def _is_size(self, node: cst.BaseExpression, value: Value) -> bool:
        followed = self.module.followed(node, value.scope, value.order)
        node = followed.node if followed is not None else node
        home = value.scope.home(node.value) if isinstance(node, cst.Name) else None
        bindings = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else []
        sources = [binding.value for binding in bindings] if bindings else [node]
        return all(source is not None and _SIZES.search(self.module.code(source)) is not None for source in sources)

    def _parameter(self, value: Value) -> tuple[Scope, cst.Param] | None:
        """The parameter that a name, or an attribute that is given it, stands for, and the function that has it."""
        followed = self.module.followed(value.node, value.scope, value.order) or value
        if isinstance(followed.node, cst.Attribute):
            assigned = self.module.self_attribute(followed.node, followed.scope)
            followed = assigned[0] if len(assigned) == 1 else followed
        found = parameter_behind(followed.node, followed.scope)
        home = followed.scope.home(found.name.value) if found is not None else None
        return (home, found) if home is not None and found is not None else None

    def _is_never_given(self, value: Value) -> bool:
        """Whether `value` stands for a parameter that every call in sight leaves at None."""
        found = self._parameter(value)
        return found is not None and is_never_given(self.module, found[1])

    def _passed(self, value: Value, condition: Condition) -> bool:
        """Whether a call in sight gives the parameter that `value` stands for a constant that meets `condition`."""
        found = self._parameter(value)
        function = found[0].node if found is not None else None
        if found is None or not isinstance(function, cst.FunctionDef):
            return False
        names = positional(function)[self.module.enclosing_class(function) is not None :]
        given = (
            call.argument(found[1].name.value, names) for call in CallEdges(self.module).callers_anywhere(function)
        )
        return any(
            one is not None and isinstance(one.constant, (str, int)) and _met_by(condition, one.constant)
            for one in given
        )

    def _arms(self, value: Value) -> list[Value]:
        """What `value`, or the attribute that is given it, is one of: the arms of `a if test else b`; else itself."""
        followed = self.module.followed(value.node, value.scope, value.order) or value
        if isinstance(followed.node, cst.Attribute):
            assigned = self.module.self_attribute(followed.node, followed.scope)
            followed = assigned[0] if len(assigned) == 1 else followed
        if not isinstance(followed.node, cst.IfExp):
            return [value]
        arms = (followed.node.body, followed.node.orelse)
        return [self.module.value_at(arm, followed.scope, followed.order) for arm in arms]

    def _told(self, value: Value, condition: Condition) -> bool | None:
        """Whether the constant that `value` is, the default of the parameter that it is, or what a call in sight gives
        that, meets `condition`; None where it is neither."""
        if value.known:
            return isinstance(value.constant, (str, int)) and _met_by(condition, value.constant)
        default = self._by_default(value)
        return None if default is None else _met_by(condition, default) or self._passed(value, condition)

    def _by_default(self, value: Value) -> str | int | tuple[int, ...] | None:
        """The text, number or numbers that a parameter has where the caller says nothing, as `mode="reflect"`."""
        found = self._parameter(value)
        if found is None:
            return None
        node = found[1]
        if isinstance(node.default, cst.Tuple):
            sizes = [one.value for one in node.default.elements]
            numbers = tuple(one.evaluated_value for one in sizes if isinstance(one, cst.Integer))
            return numbers if len(numbers) == len(sizes) else None
        if not isinstance(node.default, (cst.SimpleString, cst.Integer)):
            return None
        default = node.default.evaluated_value
        return default if isinstance(default, (str, int)) else None

    def _inferred(
        self, condition: Condition, inferred: AbstractValue, value: Value | None, call: Call, parameters: Sequence[str]
    ) -> bool:
        if condition.test == "tensor":
            return inferred.is_tensor
        if condition.test == "dims":
            return self._has_dims(condition, inferred, value, call.argument(condition.beside, parameters))
        if condition.test == "sparse":
            return inferred.sparse or self._is_given_sparse(value)
        if condition.test == "repeats":
            return not (
                inferred.distinct or self._single(inferred, call, parameters) or self._squeezed(call, parameters)
            )
        if condition.test in ("overlapping", "side-by-side"):
            return self._overlap(value, call, parameters) is (condition.test == "overlapping")
        if condition.test == "several":
            return inferred.what != "other" or bool(inferred.items or inferred.each)
        if condition.test == "not-floating":
            return inferred.dtype != "floating"
        if condition.test in ("integer", "not-integer"):
            return inferred.is_integral is (condition.test == "integer")
        if condition.test == "from":
            return value is None or self._is_from(value, [str(module) for module in condition.values])
        if condition.test == "not-from":
            return value is None or condition.values.count(self._member(value)) == 0
        if value is None:
            return False
        if condition.test == "length":
            elements = self.module.elements(value.node, value.scope, value.order)
            return elements is not None and len(elements) in condition.values
        entries = self.module.dictionary(value.node, value.scope, value.order)
        return entries is not None and any(entry.constant in condition.values for entry in entries.values())

    def _has_dims(
        self, condition: Condition, inferred: AbstractValue, value: Value | None, beside: Value | None
    ) -> bool:
        """Whether a tensor has one of the numbers of dimensions, by itself, by the argument beside it, or by what is
        swapped: `x.transpose(1, 2)` has three at least."""
        if inferred.dims is None and beside is not None:
            told = self.inference.infer(beside.node)
            if told.dims is not None and told.dtype == "integer":
                return told.dims + 1 in condition.values
        if inferred.dims is None and value is not None:
            return self._at_least(value) in condition.values or self._are_given(value, condition)
        return inferred.dims in condition.values

    def _are_given(self, value: Value, condition: Condition) -> bool:
        """Whether a call in sight gives the parameter that `value` is as many dimensions as `condition` asks for."""
        found = self._parameter(value) if isinstance(value.node, cst.Name) else None
        if found is not None:
            return not given_dims(self.module, found[1]).isdisjoint(condition.values)
        part = part_behind(self.module, value)
        return part is not None and not given_dims(self.module, *part).isdisjoint(condition.values)

    def _is_given_sparse(self, value: Value | None) -> bool:
        """Whether `value` stands for a parameter that a call in sight gives a sparse tensor."""
        found = self._parameter(value) if value is not None else None
        return found is not None and is_given_sparse(self.module, found[1])

    def _at_least(self, value: Value, depth: int = _DEEP) -> int:
        """How many dimensions there are at least, by those that a method swaps and those that are added to them; 0
        where nothing tells."""
        followed = self.module.followed(value.node, value.scope, value.order) or value
        call = self.module.call_at(followed.node) if isinstance(followed.node, cst.Call) else None
        if call is None or call.receiver is None or depth == 0:
            return 0
        if call.attribute in _SWAPPING:
            swapped = [given.constant for given in call.arguments.positional]
            return 1 + max((place for place in swapped if isinstance(place, int)), default=-1)
        if call.attribute == "unsqueeze" or call.attribute in self.module.library.facts.tensors.keeping_sizes:
            there = self._at_least(self.module.value_at(call.receiver, call.scope, call.order), depth - 1)
            return there + (call.attribute == "unsqueeze") if there else 0
        return 0

    def given_by_package(self, candidate: Candidate) -> bool:
        """Whether the call is given what the package of the op makes for it: no tensor has such a method."""
        operation, call, _ = candidate
        for condition in operation.op.when:
            value = call.argument(condition.argument, operation.spelling.parameters)
            if condition.test != "from" or value is None or not isinstance(value.node, cst.Call):
                continue
            names = self.module.resolve(value.node.func, value.scope, value.order)
            if any(name.startswith(f"{module}.") for name in names for module in condition.values):
                return True
        return False

    def _is_from(self, value: Value, modules: Sequence[str]) -> bool:
        """Whether `value` is not evidently another than a member of one of `modules`."""
        followed = self.module.followed(value.node, value.scope, value.order) or value
        if isinstance(followed.node, cst.Lambda):
            return False
        node = followed.node.func if isinstance(followed.node, cst.Call) else followed.node
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self":
            return isinstance(followed.node, cst.Call)
        known = self.module.resolve(node, followed.scope, followed.order)
        return not known or any(name == module or name.startswith(f"{module}.") for name in known for module in modules)

    def _member(self, value: Value) -> str:
        """The name of what `value` evidently is, or is made by a call of; or nothing."""
        followed = self.module.followed(value.node, value.scope, value.order) or value
        node = followed.node.func if isinstance(followed.node, cst.Call) else followed.node
        known = self.module.resolve(node, followed.scope, followed.order)
        return known[0] if len(known) == 1 else ""

    def _squeezed(self, call: Call, parameters: Sequence[str]) -> bool:
        """Whether what was picked along a dimension is squeezed there, so that one was picked of each row."""
        attribute = self.module.parent(call.node)
        if isinstance(attribute, cst.Assign) and isinstance(target := attribute.targets[0].target, cst.Name):
            loads = self.module.shared(DefUse).loads_after(target, attribute)
            return any(self._takes_one(load, call, parameters) for load in loads)
        return self._takes_one(call.node, call, parameters)

    def _takes_one(self, node: cst.BaseExpression, call: Call, parameters: Sequence[str]) -> bool:
        """Whether `node`, what `call` picked along a dimension, is squeezed there, or wherever it can be."""
        attribute = self.module.parent(node)
        outer = self.module.parent(attribute) if isinstance(attribute, (cst.Attribute, cst.Arg)) else None
        squeeze = self.module.call_at(outer) if isinstance(outer, cst.Call) else None
        dimension = call.argument("dim", parameters)
        if squeeze is None or dimension is None or not dimension.known:
            return False
        if squeeze.attribute in ("view", "reshape", "flatten"):
            return call.attribute == "gather" and dimension.constant in (1, -1) and self._is_flat(squeeze)
        if squeeze.attribute != "squeeze":
            return False
        at = squeeze.argument("dim", ("dim",) if isinstance(attribute, cst.Attribute) else ("input", "dim"))
        return at is None or matches(at.constant, dimension.constant)

    @staticmethod
    def _is_flat(shape: Call) -> bool:
        """Whether `shape` gives a tensor one dimension: `x.view(-1)`, `x.flatten()`."""
        given = shape.arguments.positional
        return not given if shape.attribute == "flatten" else len(given) == 1 and matches(given[0].constant, -1)

    def _overlap(self, stride: Value | None, call: Call, parameters: Sequence[str]) -> bool:
        """Whether the windows of a pooling may overlap: the stride is another than their size, or they have gaps. By
        default they do not, and nothing else is known of a call that only hands on what it was given."""
        size, gaps = call.argument("kernel_size", parameters), call.argument("dilation", parameters)
        if call.opaque and size is None and stride is None and gaps is None:
            return False
        if call.opaque or size is None or (gaps is not None and not matches(gaps.constant, 1)):
            return True
        if stride is None or (stride.known and stride.constant is None):
            return False
        if self.module.code(stride.node) == self.module.code(size.node):
            return False
        return not (stride.known and size.known and matches(stride.constant, size.constant))

    @staticmethod
    def _single(inferred: AbstractValue, call: Call, parameters: Sequence[str]) -> bool:
        """Whether an index evidently has size 1 along the dimension that it indexes."""
        dimension = call.argument("dim", parameters)
        at = dimension.constant if dimension is not None else None
        if not isinstance(at, int):
            return False
        if inferred.dims is None and any((size < 0) != (at < 0) for size in inferred.single):
            return True
        dims = inferred.dims or 0
        return not inferred.single.isdisjoint({at, at - dims, at + dims})


def _met_by(condition: Condition, value: object) -> bool:
    """Whether an argument that is `value` meets a condition."""
    return condition_holds(condition, passed=True, opaque=False, known=True, value=value)


def _differ(places: Sequence[Sequence[int]], condition: Condition) -> bool:
    """Whether a tuple, of which each element is one of some numbers, as far as they are known, is none of the values of
    a condition."""
    return all(
        not isinstance(wanted, list)
        or len(wanted) != len(places)
        or any(not matches(one, size) for numbers, size in zip(places, wanted, strict=True) for one in numbers)
        for wanted in condition.values
    )
