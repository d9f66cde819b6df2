"""A name -> its abstract value where it is read, from all bindings that reach it and from how its function uses it."""

from __future__ import annotations

import bisect
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.reaching_definitions import reaching
from torchdet_lint.inference.abstract_values import (
    BATCH,
    CIRCLE,
    EMPTY,
    FOREIGN,
    NONE,
    OTHER,
    STEP_BATCH,
    TENSOR,
    UNKNOWN,
    AbstractValue,
    arithmetic,
    joined,
    named,
    unpacked,
)
from torchdet_lint.inference.elements import distinct_indices
from torchdet_lint.inference.elements.containers import Containers
from torchdet_lint.inference.elements.integrality import Integrality
from torchdet_lint.inference.narrowing import Narrowing
from torchdet_lint.inference.torch_calls.shapes import RESAMPLES, resampled_dims
from torchdet_lint.module import names
from torchdet_lint.module.names import live
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from torchdet_lint.inference.annotations import Annotations
    from torchdet_lint.inference.parameters import Parameters
    from torchdet_lint.module.calls import Call
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope

# What goes through a loop that takes steps may be optimized, or differentiated again.
_OWN_GRAPH = lazy(r"\brequires_grad|\bretain_graph\b|\bParameter[ \t]*\(|\boptim\.\w+[ \t]*\(\s*\[")
_MASK = AbstractValue(what="tensor", dtype="bool", gradient="no")


class Variables:
    """The names of one file; `infer` gives the abstract value of an expression."""

    def __init__(
        self,
        module: Module,
        annotations: Annotations,
        parameters: Parameters,
        infer: Callable[[cst.BaseExpression], AbstractValue],
        asked: Callable[[Hashable, Callable[[], AbstractValue]], AbstractValue],
        first: dict[Hashable, AbstractValue],
    ) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self.annotations = annotations
        self.parameters = parameters
        self.infer = infer
        self.asked = asked
        self.narrowing = Narrowing(module, annotations)
        self.containers = Containers(module, infer)
        self.integrality = Integrality(module, infer)
        # What a name is when a loop comes to it first, while it is worked out what later rounds make of it.
        self.first = first
        self._triton = module.imports("triton")
        self._kernels: dict[int, bool] = {}
        self._training: dict[int, bool] = {}
        self._used: dict[int, dict[str, AbstractValue]] = {}
        self._reshaped: dict[int, set[str]] = {}
        self._unfolded: dict[int, set[str]] = {}
        self._written: dict[int, dict[str, list[cst.BaseExpression]]] = {}
        self._placed: dict[int, dict[str, list[tuple[cst.Subscript, cst.BaseExpression]]]] = {}

    @cached_property
    def _distinctive(self) -> frozenset[str]:
        return frozenset(self.facts.distinctive)

    def of(self, node: cst.Name) -> AbstractValue:
        """What the name `node` stands for there."""
        if node.value == "None":
            return NONE
        module = self.module
        scope, order = module.scope_of(node), module.order_of(node)
        home = scope.home(node.value)
        if home is None:
            # What comes in by a star is a module, a function or a class; hardly ever a tensor.
            return OTHER if node.value in BUILTINS or module.scope.stars else UNKNOWN
        here = home.function is scope.function
        if here or self.narrowing.tests(node.value, home):
            return self.asked(id(node), lambda: self._read(node, order, home, here=here))
        # All other functions see the same.
        key = (id(home), node.value, len(home.bindings[node.value]))
        return self.asked(key, lambda: self._read(node, order, home, here=False))

    def _read(self, node: cst.Name, order: int, home: Scope, *, here: bool) -> AbstractValue:
        """What is read at `node`, which stands at `order`, of a name of `home`: `here`, or in another function."""
        module = self.module
        bindings = live(home.bindings[node.value], order if here else None)
        if here:
            bindings = reaching(module, bindings, node, order)
        found = self._bound(node, order, bindings, home)
        for binding in bindings:
            if binding.kind == "augment" and binding.value is not None and not found.instance:
                found = joined((found, self._augmented(found, binding)))
        if found.whole and found.is_tensor:
            kept = here and home.kind == "function" and self.integrality.stay(node, bindings, home)
            found = replace(found, whole=kept)
        if here and home.kind == "function":
            open_ = found.dtype == "floating" if found.is_tensor else found.what == "unknown" and not found.is_integral
            if found == UNKNOWN or (open_ and found.gradient == "no"):
                start = min((binding.order for binding in bindings), default=order)
                found = self._as_written(found, node, range(start, order), home)
            return self._as_used(found, node.value, home)
        return self._named(found, node.value, home)

    def _as_written(self, found: AbstractValue, name: cst.Name, between: range, home: Scope) -> AbstractValue:
        """A tensor without a gradient, or what is not known, with what is written into it on the way, or in an earlier
        round of a loop, which may bring one, or ask for one."""
        writes = self._writes(home).get(name.value, [])
        untracked = self.parameters.gradients.untracked
        order_of = self.module.order_of
        loops = [one for one in self._loops(name) if order_of(one) > between.start] if writes else []
        if not loops:
            first, last = (bisect.bisect_left(writes, end, key=order_of) for end in (between.start, between.stop))
            writes = writes[first:last]
        if found.what == "unknown" and found.gradient == "no":
            # What is put into a dictionary says nothing of what else is in it.
            writes = [value for value in writes if _is_request(value)]
        if any(
            (order_of(value) in between or any(self.module.contains(loop, value) for loop in loops))
            and (isinstance(value, cst.Attribute) or self.infer(value).gradient == "yes")
            and not untracked(value)
            for value in writes
        ):
            return replace(found, gradient="yes", whole=False)
        return found

    def _loops(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The loops around `node` in its function."""
        for around in self.module.ancestors(node):
            if isinstance(around, (cst.FunctionDef, cst.Lambda)):
                return
            if isinstance(around, (cst.For, cst.While)):
                yield around

    def _writes(self, home: Scope) -> dict[str, list[cst.BaseExpression]]:
        """What a function writes into the tensors that its names are: `x.index_add_(0, i, source)`, `x[i] = row`, or
        where it asks for a gradient: `x.requires_grad` of `x.requires_grad = True`."""
        key = id(home)
        if key not in self._written:
            self._written[key] = found = dict[str, list[cst.BaseExpression]]()
            for call in self.module.calls_in(home):
                if isinstance(call.receiver, cst.Name) and call.attribute in self.facts.taking:
                    found.setdefault(call.receiver.value, []).extend(arg.value for arg in call.node.args[-1:])
                elif isinstance(call.receiver, cst.Name) and call.attribute in self.facts.taking_at:
                    place, name = self.facts.taking_at[call.attribute]
                    given = call.argument(name, ("",) * place + (name,))
                    found.setdefault(call.receiver.value, []).extend([given.node] if given is not None else ())
                elif isinstance(call.receiver, cst.Name) and call.attribute == "requires_grad_":
                    found.setdefault(call.receiver.value, []).append(call.node)
            for target, value in self.module.assignments_in(home):
                if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                    found.setdefault(target.value.value, []).append(value)
                elif _asks_for_gradient(target, value):
                    found.setdefault(names.dotted(target.value), []).append(target)
            for values in found.values():
                values.sort(key=self.module.order_of)
        return self._written[key]

    def _named(self, found: AbstractValue, name: str, home: Scope) -> AbstractValue:
        """`found`, with what the name says; in a Triton kernel, which holds no tensors, it says nothing."""
        function = home.function.node
        if self._triton and isinstance(function, cst.FunctionDef):
            if id(function) not in self._kernels:
                made = [one.decorator for one in function.decorators]
                called = [one.func if isinstance(one, cst.Call) else one for one in made]
                self._kernels[id(function)] = any("triton.jit" in self.module.resolve(one) for one in called)
            if self._kernels[id(function)]:
                return found
        return named(found, name, self.facts)

    def _as_used(self, found: AbstractValue, name: str, home: Scope) -> AbstractValue:
        """What a name of a function is that is `found`, with what the function does with it."""
        if found.is_integral and found.is_tensor and not found.distinct and self._is_inverse(name, home):
            found = replace(found, distinct=True)
        if found.entries and self.containers.changes(name, home, by_key=True):
            found = replace(found, entries=())
        if found.distinct and found.what == "other" and self.containers.grows(name, home):
            found = replace(found, distinct=False)
        if found == EMPTY:
            found = self.containers.filled(name, home)
        if found.dtype == "unknown" and self._usage(home).get(name) is _MASK:
            return replace(found, what="tensor", dtype="bool", gradient="no")
        if found.what == "unknown":
            used = self._usage(home).get(name)
            if used is not None:
                found = replace(found, what=used.what, dims=None if name in self._unfolded_in(home) else used.dims)
        elif found.is_tensor and found.dims is None and len(home.bindings[name]) == 1:
            used = self._usage(home).get(name)
            found = replace(found, dims=used.dims) if used is not None else found
        if found.dims is not None and name in self._reshaped_in(home):
            found = replace(found, dims=None)
        return self._named(found, name, home)

    def _reshaped_in(self, home: Scope) -> set[str]:
        """The names of a function that it gives another number of dimensions in place, `x.squeeze_(-1)`."""
        key = id(home)
        if key not in self._reshaped:
            calls = [call for call in self.module.calls_in(home) if call.attribute in self.facts.reshaping]
            self._reshaped[key] = {call.receiver.value for call in calls if isinstance(call.receiver, cst.Name)}
        return self._reshaped[key]

    def _unfolded_in(self, home: Scope) -> set[str]:
        """The names of a function that it takes the sizes of and then gives another shape: which of the two they have
        is not known where both come."""
        key = id(home)
        if key not in self._unfolded:
            sized = set[str]()
            self._unfolded[key] = found = set[str]()
            for target, value in self.module.assignments_in(home):
                shaped = shape_of(value)
                if isinstance(shaped, cst.Name):
                    sized.add(shaped.value)
                elif isinstance(target, cst.Name) and target.value in sized:
                    found |= {target.value} & {_reshaped(value, self.facts.folding)}
        return self._unfolded[key]

    def _is_inverse(self, name: str, home: Scope) -> bool:
        """Whether `name[permutation] = arange(…)` is all that is written into a tensor: no value occurs twice."""
        key = id(home)
        if key not in self._placed:
            placed: dict[str, list[tuple[cst.Subscript, cst.BaseExpression]]] = {}
            self._placed[key] = placed
            for target, value in self.module.assignments_in(home):
                if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                    placed.setdefault(target.value.value, []).append((target, value))
        written = self._placed[key].get(name, [])
        if len(written) != 1:
            return False
        target, value = written[0]
        index = target.slice[0].slice
        if len(target.slice) != 1 or not isinstance(index, cst.Index) or not self.infer(index.value).distinct:
            return False
        return self.infer(value).distinct

    def _bound(self, node: cst.Name, order: int, bindings: Sequence[Binding], home: Scope) -> AbstractValue:
        """What `bindings` give to `node`, which stands at `order`; in a loop, also from the second round on."""
        values: list[AbstractValue] = []
        for binding in bindings:
            if binding.kind == "augment":
                continue
            if binding.order > order and binding.looped and values:
                self.first[id(node)] = joined([value for value in values if value is not CIRCLE])
            values.append(self.narrowing.narrowed(self._binding(binding, home), binding, node, home))
        self.first.pop(id(node), None)
        return joined([value for value in values if value is not CIRCLE])

    def _augmented(self, inferred: AbstractValue, binding: Binding) -> AbstractValue:
        """What `name += value` makes of a name with that value."""
        assert binding.value is not None
        value = self.infer(binding.value)
        found = arithmetic(inferred, value, cst.Add())
        if isinstance(binding.node, cst.AugAssign):
            return distinct_indices.combined(found, inferred, value, binding.node.operator, lambda _: "")
        return found

    def _binding(self, binding: Binding, home: Scope) -> AbstractValue:
        if binding.kind == "parameter" and isinstance(binding.node, cst.Param):
            return self.parameters.of(binding.node, home)
        if binding.value is None:
            return OTHER if binding.kind in ("import", "def", "class") else UNKNOWN
        if binding.kind == "loop":
            found = unpacked(iterated(binding.value, self.infer(binding.value)), binding.path)
            return STEP_BATCH if found == UNKNOWN and self._trains_on(binding.node) else found
        if binding.kind == "with":
            return UNKNOWN
        if binding.kind in ("assign", "unpack"):
            annotation = binding.node.annotation.annotation if isinstance(binding.node, cst.AnnAssign) else None
            found = unpacked(self.infer(binding.value), binding.path)
            if found.what == "unknown" and annotation is not None:
                return self.annotations.infer(annotation)
            return found
        return UNKNOWN

    def _trains_on(self, loop: cst.CSTNode | None) -> bool:
        """Whether a loop takes a step of an optimizer in each round: what it goes through is data then, for the graph
        of a round is gone after its `backward`."""
        if not isinstance(loop, cst.For) or ".backward(" not in self.module.text:
            return False
        key = id(loop)
        if key not in self._training:
            text = self.module.code(loop)
            self._training[key] = ".backward(" in text and ".step(" in text and _OWN_GRAPH.search(text) is None
        return self._training[key]

    def _usage(self, home: Scope) -> dict[str, AbstractValue]:
        """The names of a function that it treats as tensors: by a method that only tensors have, or by their shape."""
        key = id(home)
        if key not in self._used:
            found: dict[str, AbstractValue] = {}
            for call in self.module.calls_in(home):
                receiver = call.receiver
                if isinstance(receiver, cst.Name) and call.attribute in self._distinctive:
                    found.setdefault(receiver.value, TENSOR)
                if (mask := _condition(call)) is not None:
                    found[mask] = _MASK
                if (resampled := self._resampled(call)) is not None:
                    found.setdefault(*resampled)
            for target, value in self.module.assignments_in(home):
                shaped = shape_of(value)
                if isinstance(shaped, cst.Name):
                    dims = None
                    if isinstance(target, cst.Tuple) and all(type(item) is cst.Element for item in target.elements):
                        dims = len(target.elements)
                    evident = shaped.value in found or isinstance(value, cst.Call)
                    found[shaped.value] = AbstractValue(what="tensor" if evident else "unknown", dims=dims)
            self._used[key] = found
        return self._used[key]

    def _resampled(self, call: Call) -> tuple[str, AbstractValue] | None:
        """The name that a call resamples, and what the mode says of it: `interpolate(x, mode="bilinear")`."""
        if self.facts.resampling.isdisjoint(name.rpartition(".")[2] for name in call.own):
            return None
        given, dims = call.argument("input", RESAMPLES), resampled_dims(call, self.facts.modes)
        name = given.node if given is not None else None
        return (name.value, replace(TENSOR, dims=dims)) if dims and isinstance(name, cst.Name) else None


def _asks_for_gradient(target: cst.BaseExpression, value: cst.BaseExpression) -> TypeGuard[cst.Attribute]:
    """Whether an assignment is one like `x.requires_grad = True`."""
    asked = isinstance(target, cst.Attribute) and target.attr.value == "requires_grad"
    return asked and isinstance(value, cst.Name) and value.value == "True"


def _is_request(node: cst.BaseExpression) -> bool:
    """Whether `node` is what asks for a gradient: `x.requires_grad_()`, or the target `x.requires_grad`."""
    asked = names.dotted(node.func if isinstance(node, cst.Call) else node).rpartition(".")[2]
    return asked.removesuffix("_") == "requires_grad"


def _condition(call: Call) -> str | None:
    """The name that a call takes for a condition on every element: it holds booleans."""
    masked = call.attribute in ("masked_fill", "masked_fill_", "masked_select")
    first = call.node.args[0].value if call.node.args and (masked or "torch.where" in call.own) else None
    return first.value if isinstance(first, cst.Name) and (masked or len(call.node.args) == 3) else None


def _reshaped(node: cst.BaseExpression, folding: Sequence[str]) -> str:
    """The name `x` of `x.contiguous().view(-1, 4)`, by methods one of which gives another shape; else nothing."""
    found = False
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        found = found or node.func.attr.value in folding
        node = node.func.value
    return node.value if found and isinstance(node, cst.Name) else ""


def iterated(node: cst.BaseExpression, inferred: AbstractValue) -> AbstractValue:
    """What one step of `for x in node` gives, where `node` has that value."""
    if inferred.each is not None:
        return inferred.each
    if inferred.items:
        return joined(inferred.items)
    if inferred.is_tensor or inferred.instance == FOREIGN.instance:
        return unpacked(inferred, (0,))
    loader = inferred.what == "unknown" and names.dotted(node).rpartition(".")[2].lower().endswith("loader")
    return BATCH if loader else UNKNOWN


def shape_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `x.shape` and `x.size()`."""
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return node.value
    if (
        isinstance(node, cst.Call)
        and not node.args
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "size"
    ):
        return node.func.value
    return None
