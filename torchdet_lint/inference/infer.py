"""What an expression evidently is: a tensor or not, of which type, on which device, and whether a gradient flows.

Everything is inferred from what stands in the file, and from what `module.foreign` tells of the functions of others;
`unknown` is always an answer, and the checks treat it as one.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.reaching_definitions import reaching
from torchdet_lint.inference import devices, distinct_indices
from torchdet_lint.inference.abstract_values import (
    BATCH,
    EMPTY,
    FLOAT,
    FOREIGN,
    INTEGER,
    NONE,
    OTHER,
    PARAMETER,
    SIZES,
    STEP_BATCH,
    TENSOR,
    UNKNOWN,
    Kind,
    arithmetic,
    joined,
    named,
    of_tensor,
    stands_for,
    unpacked,
)
from torchdet_lint.inference.annotations import Annotations, instance_of
from torchdet_lint.inference.attributes import Members
from torchdet_lint.inference.containers import Containers
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.integrality import Wholes
from torchdet_lint.inference.narrowing import Narrowing
from torchdet_lint.inference.torch_returns import Results
from torchdet_lint.module import names
from torchdet_lint.module.names import live
from torchdet_lint.module.tree import children
from torchdet_lint.prefilter.library import BUILTINS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.inference.abstract_values import Dtype, Gradient
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Binding, Scope

_DEPTH = 24
_RETURNS = 6
# What is being worked out: in a loop, a name is that and nothing else if all else agrees.
_CIRCLE = Kind()
_TRAINED = "lightning.pytorch.LightningModule"
_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))
_SETTINGS = frozenset(("config", "cfg", "hparams"))
# Layers without parameters, which pass a gradient on or not as it comes.
_PASSING = re.compile(
    r"torch\.nn\.(?:Dropout\w*|AlphaDropout|FeatureAlphaDropout|Identity|(?:Leaky)?ReLU6?|ELU|GELU|SiLU|Sigmoid|Tanh|"
    r"(?:Log)?Softmax|Softplus|(?:Max|Avg|AdaptiveAvg|AdaptiveMax)Pool\dd|Flatten|Unflatten|Upsample|\w+Pad\dd|"
    r"PixelShuffle|PixelUnshuffle|Fold|Unfold)"
)


class Inference:
    """The kinds of the expressions of one file, each worked out once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self.annotations = Annotations(module)
        self.gradients = module.shared(Gradients)
        self.results = Results(module, self.kind)
        self.members = Members(module, self.annotations, self.kind, self.returned)
        self.narrowing = Narrowing(module, self.annotations)
        self.containers = Containers(module, self.kind)
        self.wholes = Wholes(module, self.kind)
        self._known: dict[int, Kind] = {}
        self._tentative: dict[int, Kind] = {}
        self._cut = False
        self._busy: set[int] = set()
        self._depth = 0
        # What a name is when a loop comes to it first, while it is worked out what later rounds make of it.
        self._first: dict[int, Kind] = {}
        self._returns: dict[int, Kind] = {}
        self._used: dict[int, dict[str, Kind]] = {}

    @cached_property
    def _distinctive(self) -> frozenset[str]:
        return frozenset(self.facts.distinctive)

    # ------------------------------------------------------------------ the question

    def kind(self, node: cst.BaseExpression) -> Kind:
        """What `node` evidently is, where it stands."""
        key = id(node)
        found = self._known.get(key) or self._tentative.get(key)
        if found is not None:
            return found
        if key in self._busy or self._depth >= _DEPTH:
            self._cut = True
            return self._first.get(key, _CIRCLE) if key in self._busy else UNKNOWN
        self._busy.add(key)
        self._depth += 1
        try:
            found = self._infer(node)
        finally:
            self._busy.discard(key)
            self._depth -= 1
        if not self._busy:
            self._tentative.clear()
            self._cut = False
        # What was cut short inside a cycle holds for this question only.
        (self._tentative if self._cut else self._known)[key] = found
        return found

    def _infer(self, node: cst.BaseExpression) -> Kind:
        if isinstance(node, cst.Name):
            return self._name(node)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.Subscript):
            return self._subscript(node)
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node)
        if isinstance(node, cst.Comparison):
            return self._comparison(node)
        if isinstance(node, cst.UnaryOperation):
            return OTHER if isinstance(node.operator, cst.Not) else self.kind(node.expression)
        if isinstance(node, cst.IfExp):
            return joined(self.kind(branch) for branch in devices.choices(self.module, node))
        if isinstance(node, cst.BooleanOperation):
            return joined((self.kind(node.left), self.kind(node.right)))
        if isinstance(node, cst.NamedExpr):
            return self.kind(node.value)
        return self._display(node)

    def _operation(self, node: cst.BinaryOperation) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        return distinct_indices.combined(
            arithmetic(left, right, node.operator),
            left,
            right,
            node.operator,
            lambda first: self.module.code(node.left if first else node.right),
        )

    def _display(self, node: cst.BaseExpression) -> Kind:
        """A literal, or what is written as a list, tuple or dictionary."""
        if isinstance(node, cst.Integer):
            return INTEGER
        if isinstance(node, cst.Float):
            return FLOAT
        if isinstance(node, (cst.Tuple, cst.List)):
            items = tuple(
                self.kind(element.value) if isinstance(element, cst.Element) else UNKNOWN for element in node.elements
            )
            return Kind(what="other", items=items, each=joined(items) if items else None)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
            return Kind(what="other", each=self.kind(node.elt), distinct=self._counts_up(node))
        if isinstance(node, cst.Dict):
            entries = [self.kind(element.value) for element in node.elements]
            return Kind(what="other", each=joined(entries) if entries else None)
        if isinstance(node, cst.DictComp):
            return Kind(what="other", each=self.kind(node.value))
        return UNKNOWN if isinstance(node, cst.Await) else OTHER

    def _counts_up(self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp) -> bool:
        """Whether the elements are those of a range, or some of them."""
        loop = node.for_in
        if loop.inner_for_in is not None or not isinstance(node.elt, cst.Name) or not isinstance(loop.target, cst.Name):
            return False
        counted = isinstance(loop.iter, cst.Call) and self.module.resolve(loop.iter.func) == ("builtins.range",)
        return counted and node.elt.value == loop.target.value

    # ------------------------------------------------------------------ names

    def _name(self, node: cst.Name) -> Kind:
        if node.value == "None":
            return NONE
        module = self.module
        scope, order = module.scope_of(node), module.order_of(node)
        home = scope.home(node.value)
        if home is None:
            # What comes in by a star is a module, a function or a class; hardly ever a tensor.
            return OTHER if node.value in BUILTINS or module.scope.stars else UNKNOWN
        here = home.function is scope.function
        bindings = live(home.bindings[node.value], order if here else None)
        if here:
            bindings = reaching(module, bindings, node, order)
        found = self._bound(node, order, bindings, home)
        for binding in bindings:
            if binding.kind == "augment" and binding.value is not None and not found.instance:
                found = joined((found, self._augmented(found, binding)))
        if found.whole and found.is_tensor:
            kept = here and home.kind == "function" and self.wholes.stay(node, bindings, home)
            found = replace(found, whole=kept)
        if here and home.kind == "function":
            if found == EMPTY:
                found = self.containers.filled(node.value, home)
            if found.what == "unknown":
                used = self._usage(home).get(node.value)
                if used is not None:
                    found = replace(found, what=used.what, dims=used.dims)
            elif found.is_tensor and found.dims is None and len(home.bindings[node.value]) == 1:
                used = self._usage(home).get(node.value)
                found = replace(found, dims=used.dims) if used is not None else found
        return named(found, node.value, self.facts)

    def _bound(self, node: cst.Name, order: int, bindings: Sequence[Binding], home: Scope) -> Kind:
        """What `bindings` give to `node`, which stands at `order`; in a loop, also from the second round on."""
        kinds: list[Kind] = []
        for binding in bindings:
            if binding.kind == "augment":
                continue
            if binding.order > order and binding.looped and kinds:
                self._first[id(node)] = joined([kind for kind in kinds if kind is not _CIRCLE])
            kinds.append(self.narrowing.kind(self._binding(binding, home), binding, node, home))
        self._first.pop(id(node), None)
        return joined([kind for kind in kinds if kind is not _CIRCLE])

    def _augmented(self, kind: Kind, binding: Binding) -> Kind:
        """What `name += value` makes of a name of that kind."""
        assert binding.value is not None
        value = self.kind(binding.value)
        found = arithmetic(kind, value, cst.Add())
        if isinstance(binding.node, cst.AugAssign):
            return distinct_indices.combined(found, kind, value, binding.node.operator, lambda _: "")
        return found

    def _binding(self, binding: Binding, home: Scope) -> Kind:
        if binding.kind == "parameter" and isinstance(binding.node, cst.Param):
            return self._parameter(binding.node, home)
        if binding.value is None:
            return OTHER if binding.kind in ("import", "def", "class") else UNKNOWN
        if binding.kind == "loop":
            return unpacked(self._iterated(binding.value), binding.path)
        if binding.kind == "with":
            return UNKNOWN
        if binding.kind in ("assign", "unpack"):
            annotation = binding.node.annotation.annotation if isinstance(binding.node, cst.AnnAssign) else None
            found = unpacked(self.kind(binding.value), binding.path)
            if found.what == "unknown" and annotation is not None:
                return self.annotations.kind(annotation)
            return found
        return UNKNOWN

    def _iterated(self, node: cst.BaseExpression) -> Kind:
        """What one step of `for x in node` gives."""
        kind = self.kind(node)
        if kind.each is not None:
            return kind.each
        if kind.items:
            return joined(kind.items)
        if kind.is_tensor or kind.instance == FOREIGN.instance:
            return unpacked(kind, (0,))
        loader = kind.what == "unknown" and names.dotted(node).rpartition(".")[2].lower().endswith("loader")
        return BATCH if loader else UNKNOWN

    def _parameter(self, node: cst.Param, home: Scope) -> Kind:
        function = home.node
        class_ = self.module.classes.get(home.outer) if home.outer is not None else None
        if class_ is not None and isinstance(function, cst.FunctionDef):
            applied = self.members.applied(node, function, class_)
            if applied is not None:
                return applied
        if node.annotation is not None:
            found = self.annotations.kind(node.annotation.annotation)
            if found.what != "unknown":
                return self._differentiable(found, node.name.value, home) if found.is_tensor else found
        if isinstance(node.star, str) and node.star:
            return OTHER
        default = node.default
        if default is not None and not (isinstance(default, cst.Name) and default.value == "None"):
            if isinstance(default, (cst.Integer, cst.Float, cst.SimpleString, cst.Tuple, cst.List, cst.Dict)):
                return OTHER
            if isinstance(default, cst.Name) and default.value in ("True", "False"):
                return OTHER
        if not isinstance(function, cst.FunctionDef):
            return UNKNOWN
        parameters = [*function.params.posonly_params, *function.params.params]
        if class_ is not None and parameters and parameters[0] is node and not self._static(function):
            return Kind(what="other", gradient="no", instance=f"@.{class_.name}")
        step = class_ is not None and function.name.value in _STEPS and parameters[1:2] == [node]
        if step and class_ is not None and _TRAINED in self.module.ancestry(f"@.{class_.name}"):
            return STEP_BATCH
        layer = class_ is not None and self.gradients.is_layer(class_)
        given = function.name.value == "forward" and layer and default is None
        if given and not stands_for(node.name.value, self.facts.graph_words):
            return self._differentiable(TENSOR, node.name.value, home)
        if (
            node.annotation is None
            and not given
            and (told := self.annotations.documented(function, node.name.value)).is_tensor
        ):
            return self._differentiable(told, node.name.value, home)
        return self._differentiable(UNKNOWN, node.name.value, home)

    @staticmethod
    def _static(function: cst.FunctionDef) -> bool:
        return any(
            isinstance(item.decorator, cst.Name) and item.decorator.value == "staticmethod"
            for item in function.decorators
        )

    def _differentiable(self, kind: Kind, name: str, home: Scope) -> Kind:
        """A parameter: in a method of a layer it is an activation, unless its type or its name says otherwise."""
        if kind.is_integral:
            return replace(kind, gradient="no")
        found = named(kind, name, self.facts)
        if found.gradient != "unknown" or not kind.is_tensor:
            return found
        class_ = self.module.enclosing_class_of_scope(home)
        if class_ is not None and self.gradients.is_layer(class_):
            return replace(found, gradient="yes")
        return found

    def _usage(self, home: Scope) -> dict[str, Kind]:
        """The names of a function that it treats as tensors: by a method that only tensors have, or by their shape."""
        key = id(home)
        if key not in self._used:
            found: dict[str, Kind] = {}
            for call in self.module.calls_in(home):
                receiver = call.receiver
                if isinstance(receiver, cst.Name) and call.attribute in self._distinctive:
                    found.setdefault(receiver.value, TENSOR)
            for target, value in self.module.assignments_in(home):
                shaped = self._shape_of(value)
                if isinstance(shaped, cst.Name):
                    dims = None
                    if isinstance(target, cst.Tuple) and all(type(item) is cst.Element for item in target.elements):
                        dims = len(target.elements)
                    evident = shaped.value in found or isinstance(value, cst.Call)
                    found[shaped.value] = Kind(what="tensor" if evident else "unknown", dims=dims)
            self._used[key] = found
        return self._used[key]

    @staticmethod
    def _shape_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
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

    # ------------------------------------------------------------------ attributes

    def _attribute(self, node: cst.Attribute) -> Kind:
        name = node.attr.value
        module = self.module
        scope = module.scope_of(node)
        values = module.self_attribute(node, scope)
        if values:
            found = joined(self.kind(value.node) for value in values)
            class_ = module.local_class(self.kind(node.value).instance) if found == UNKNOWN else None
            if class_ is not None:
                found = self.members.told(class_, name)
            if found.gradient == "yes" and self.members.frozen(node, name):
                found = replace(found, gradient="no")
            # What other methods write into it is not looked at.
            return named(replace(found, whole=False) if found.whole else found, name, self.facts)
        owner = self.kind(node.value)
        member = self._member(owner, name)
        if member is not None:
            return member
        if name == "saved_tensors":
            return self.members.saved(node)
        if name in ("weight", "bias") and owner.instance:
            layer = node.value
            fixed = isinstance(layer, cst.Attribute) and self.members.frozen(layer, f"{layer.attr.value}.{name}")
            return Kind(what="tensor", dtype="floating", gradient="no" if fixed else "yes")
        resolved = module.resolve(node)
        if resolved and not any("()" in full for full in resolved):
            return OTHER
        if owner.what == "other" and not owner.instance:
            return UNKNOWN
        if not _SETTINGS.isdisjoint(names.dotted(node.value).split(".")):
            return Kind(gradient="no")
        return named(UNKNOWN, name, self.facts)

    def _member(self, owner: Kind, name: str) -> Kind | None:
        """The attribute `name` of a value of which enough is known."""
        if owner.instance == FOREIGN.instance:
            return owner
        if owner.instance.startswith("@."):
            class_ = self.module.local_class(owner.instance)
            if class_ is not None:
                return named(self.members.attribute(class_, name), name, self.facts)
        if len(owner.items) == 2 and name in ("values", "indices"):
            return owner.items[name == "indices"]
        return of_tensor(owner, name) if owner.is_tensor else None

    # ------------------------------------------------------------------ operators

    def _comparison(self, node: cst.Comparison) -> Kind:
        kinds = [self.kind(node.left), *(self.kind(part.comparator) for part in node.comparisons)]
        identity = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
        if any(isinstance(part.operator, identity) for part in node.comparisons):
            return OTHER
        tensors = [kind for kind in kinds if kind.is_tensor]
        if not tensors:
            return OTHER if all(kind.what == "other" for kind in kinds) else Kind(dtype="bool", gradient="no")
        return Kind(what="tensor", dtype="bool", gradient="no", device=tensors[0].device, dims=tensors[0].dims)

    def _subscript(self, node: cst.Subscript) -> Kind:
        kind = self.kind(node.value)
        if kind.instance == FOREIGN.instance:
            return kind
        indices = [element.slice for element in node.slice]
        if kind.is_tensor or (kind.what == "unknown" and len(indices) > 1):
            return self._indexed(kind, indices)
        index = indices[0] if len(indices) == 1 and isinstance(indices[0], cst.Index) else None
        if index is not None:
            constant = self.module.value(index.value).constant
            if kind.items and isinstance(constant, int) and -len(kind.items) <= constant < len(kind.items):
                return kind.items[constant]
            if isinstance(constant, str):
                return self._entry(node.value, kind, constant)
        elif kind.each is not None:
            return kind
        if kind.each is not None:
            return kind.each
        if self._shape_of(node.value) is not None or kind.what == "other":
            return OTHER if kind.gradient == "no" and not kind.instance else UNKNOWN
        return Kind(dtype=kind.dtype, gradient=kind.gradient)

    def _entry(self, node: cst.BaseExpression, kind: Kind, key: str) -> Kind:
        """`node["key"]`: what all entries are, or the one of that name in a dictionary in sight."""
        found = kind.each or UNKNOWN
        if kind.instance.startswith("@.") and (class_ := self.module.local_class(kind.instance)) is not None:
            found = self.members.attribute(class_, key)
        elif found.what == "unknown" and kind.what == "other":
            entries = self.module.dictionary(node, self.module.scope_of(node), self.module.order_of(node))
            if entries is not None and key in entries:
                found = self.kind(entries[key].node)
        return named(found, key, self.facts)

    def _indexed(self, kind: Kind, indices: Sequence[cst.BaseSlice]) -> Kind:
        """`kind[indices]`: numbers take a dimension, `None` adds one of size 1, slices keep theirs."""
        if kind.divided and _is_between(indices):
            # The tokens of one expert, of all that were sorted by the expert they go to: none goes to one twice.
            kind = replace(kind, distinct=True, divided=False)
        dims = kind.dims
        ellipsis = next((place for place, index in enumerate(indices) if _is_ellipsis(index)), None)
        single: set[int] = set()
        # Dimensions are counted from the front up to an ellipsis, and from the end behind it.
        front = indices if ellipsis is None else indices[:ellipsis]
        back = [] if ellipsis is None else list(reversed(indices[ellipsis + 1 :]))
        for part, step in ((front, 1), (back, -1)):
            before = after = 0 if step > 0 else -1
            for index in part:
                if isinstance(index, cst.Slice):
                    if before in kind.single or self._is_one(index):
                        single.add(after)
                    before, after = before + step, after + step
                    continue
                assert isinstance(index, cst.Index)
                value = index.value
                if isinstance(value, cst.Name) and value.value == "None":
                    dims = dims + 1 if dims is not None else None
                    single.add(after)
                    after += step
                elif self.module.value(value).known or self.kind(value).what == "other":
                    dims = dims - 1 if dims else None
                    before += step
                else:
                    chosen = self.kind(value)
                    kept = kind.distinct and (chosen.distinct or chosen.dtype == "bool")
                    return replace(kind, dims=None, single=frozenset(), items=(), distinct=kept)
            if step > 0:
                single |= {size - before + after for size in kind.single if size >= before}
            elif ellipsis is not None:
                single |= {size - before + after for size in kind.single if size <= before}
        return replace(kind, dims=dims, single=frozenset(single), items=())

    def _is_one(self, index: cst.Slice) -> bool:
        """Whether a slice evidently keeps one place: `:1`, `0:1`, `-1:`."""
        lower = self.module.value(index.lower).constant if index.lower is not None else None
        upper = self.module.value(index.upper).constant if index.upper is not None else None
        if index.upper is None:
            return index.lower is not None and lower == -1
        return isinstance(upper, int) and upper == 1 and (index.lower is None or lower == 0)

    # ------------------------------------------------------------------ calls

    def _call(self, node: cst.Call) -> Kind:
        call = self.module.call_at(node)
        if call is None:
            return UNKNOWN
        for name in call.own:
            found = self._called(name, call)
            if found is not None:
                return found
        receiver = call.receiver
        if receiver is not None and not any(name[:1] != "@" and "()" not in name for name in call.own):
            if self._is_self(receiver, call.scope):
                return self._own_method(call)
            if call.attribute in self.facts.counting:
                return Kind(what="tensor", dtype="integer", gradient="no")
            owner = self.kind(receiver)
            told = call.attribute in self._distinctive or owner.dtype != "unknown"
            # NumPy says `keepdims`.
            told = told or "keepdim" in call.arguments.keywords
            if owner.is_tensor or (owner.what == "unknown" and told):
                return self.results.method(replace(owner, what="tensor"), call)
            if owner.instance == FOREIGN.instance:
                return owner
            if call.attribute in ("numpy", "tolist", "item"):
                return OTHER
            if (held := self._held(owner, call)) is not None:
                return held
        elif receiver is None and (inner := self._inner(call)) is not None:
            return self._given(inner, call)
        return self._unknown_call(call)

    @staticmethod
    def _held(owner: Kind, call: Call) -> Kind | None:
        """What a method of a layer or a container gives of what it holds."""
        if call.attribute == "parameters" and not call.arguments.positional:
            return Kind(what="other", each=PARAMETER)
        if call.attribute == "named_parameters" and not call.arguments.positional:
            return Kind(what="other", each=Kind(what="other", items=(OTHER, PARAMETER)))
        if owner.what == "other" and call.attribute == "items" and owner.each is not None:
            return Kind(what="other", each=Kind(what="other", items=(UNKNOWN, owner.each)))
        if owner.what == "other" and call.attribute in ("values", "get", "pop", "copy") and owner.each is not None:
            return owner.each if call.attribute in ("get", "pop") else owner
        if owner.what == "other" and not owner.instance:
            return UNKNOWN if owner.each or owner.items else OTHER
        return None

    def _inner(self, call: Call) -> Kind | None:
        """What a lambda, or a function that stands in a function, returns."""
        function = call.node.func
        if not isinstance(function, cst.Name):
            return None
        home = call.scope.home(function.value)
        if home is None:
            return None
        bindings = live(home.bindings[function.value], call.order if home.function is call.scope.function else None)
        if len(bindings) != 1:
            return None
        made = bindings[0].value if bindings[0].kind == "assign" and not bindings[0].path else bindings[0].node
        if isinstance(made, cst.Lambda):
            return self.kind(made.body)
        if isinstance(made, cst.FunctionDef) and home.kind == "function":
            return self.returned(made)
        return None

    def _given(self, found: Kind, call: Call) -> Kind:
        """What a function of the file returns, with the gradient of what it was given where its own is unknown."""
        if found.gradient == "unknown" and found.dtype in ("unknown", "floating"):
            return replace(found, gradient=self._unknown_call(call).gradient)
        return found

    def _unknown_call(self, call: Call) -> Kind:
        """A callable that is not in sight: what it returns carries the gradient of what it was given."""
        given = [arg.value for arg in call.node.args if not arg.star]
        if call.receiver is not None:
            given.append(call.receiver)
        if self.gradients.untracked(call.node) or not any(self.kind(value).gradient == "yes" for value in given):
            return UNKNOWN
        return Kind(gradient="yes")

    def _called(self, name: str, call: Call) -> Kind | None:
        """What a call of the qualified name gives; None where the name tells nothing."""
        owner, _, last = name.rpartition(".")
        if name.endswith("()"):
            return self._instance_called(name[:-2], call)
        if owner in self.facts.modules and last[:1].islower():
            return self.results.function(last, call)
        if last == "one_hot":
            return Kind(what="tensor", gradient="no", whole=True)
        if name == "collections.defaultdict":
            return EMPTY
        if name.startswith("torch."):
            return self._torch_class(name, last, call)
        if name.startswith("@."):
            return self._local(name, call)
        if owner.endswith("()"):
            return None
        if name.startswith("builtins."):
            return self._builtin(last, call)
        library = name.partition(".")[0]
        if library in ("numpy", "pandas"):
            return FOREIGN
        if library in ("math", "random", "os", "time", "json", "scipy", "itertools"):
            return OTHER
        if library == "tqdm" and last in ("tqdm", "auto") and call.node.args:
            return Kind(what="other", each=self._iterated(call.node.args[0].value))
        if last[:1].isupper():
            return Kind(what="other", gradient="no", instance=name)
        found = self.module.foreign(name) if self.module.foreign is not None else None
        return self._given(found, call) if found is not None else None

    def _torch_class(self, name: str, last: str, call: Call) -> Kind | None:
        if "()" in name:
            return None
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            inner = self.results.argument_kind(call, 0, "data")
            wanted = call.argument("requires_grad", ("data", "requires_grad"))
            fixed = wanted is not None and wanted.constant is False
            return replace(inner, what="tensor", device="unknown", gradient="no" if fixed else "yes", whole=False)
        if last.endswith("Tensor"):
            made = instance_of(f"torch.{last}", self.facts)
            dtype: Dtype = made.dtype if made.dtype != "unknown" else "floating"
            return Kind(what="tensor", dtype=dtype, device="cuda" if ".cuda." in name else "cpu", gradient="no")
        if name == "torch.utils.data.DataLoader":
            plain = Kind(gradient="no")
            batch = replace(plain, each=plain) if "collate_fn" in call.arguments.keywords or call.opaque else BATCH
            return Kind(what="other", gradient="no", instance=name, each=batch)
        if name in ("torch.nn.Buffer", "torch.nn.parameter.Buffer"):
            return replace(self.results.argument_kind(call, 0, "data"), what="tensor", device="unknown", gradient="no")
        if name == "torch.autograd.grad":
            graph = call.arguments.keywords.get("create_graph")
            gradient: Gradient = "no" if not call.opaque and (graph is None or graph.constant is False) else "yes"
            return Kind(what="other", each=Kind(what="tensor", dtype="floating", gradient=gradient))
        if name == "torch.nn.ParameterList":
            return Kind(what="other", gradient="no", instance=name, each=PARAMETER)
        if name in ("torch.nn.ModuleList", "torch.nn.Sequential"):
            return Kind(what="other", gradient="no", instance=name, each=Kind(what="other", instance="torch.nn.Module"))
        if last[:1].isupper():
            return Kind(what="other", gradient="no", instance=name)
        return None

    def _builtin(self, last: str, call: Call) -> Kind:
        args = [arg.value for arg in call.node.args if arg.keyword is None and not arg.star]
        if last in ("list", "tuple", "reversed", "sorted", "iter") and args:
            return Kind(what="other", each=self._iterated(args[0]))
        if last == "next" and args:
            return self._iterated(args[0])
        if last == "range":
            return SIZES
        if last == "dict" and not args and call.node.args and not call.opaque:
            return Kind(what="other", each=joined(self.kind(arg.value) for arg in call.node.args))
        if last == "enumerate" and args:
            return Kind(what="other", each=Kind(what="other", items=(OTHER, self._iterated(args[0]))))
        if last == "zip":
            return Kind(what="other", each=Kind(what="other", items=tuple(map(self._iterated, args))))
        if last == "getattr" and len(args) > 1 and isinstance(name := self.module.value(args[1]).constant, str):
            return self._member(self.kind(args[0]), name) or UNKNOWN
        if last in ("sum", "max", "min", "abs", "getattr", "super", "map", "filter", "dict"):
            inner = self.kind(args[0]) if args else UNKNOWN
            if last == "abs" or (last in ("max", "min") and len(args) > 1):
                return inner
            return inner.each if last in ("sum", "max", "min") and inner.each is not None else UNKNOWN
        return OTHER

    def _instance_called(self, class_name: str, call: Call) -> Kind | None:
        """`layer(x)`: a layer gives a tensor that carries a gradient."""
        ancestry = self.module.ancestry(class_name)
        class_ = self.module.local_class(class_name)
        if class_ is not None and self.gradients.is_layer(class_):
            forward = self.members.method(class_, "forward")
            found = self.returned(forward) if forward is not None else UNKNOWN
            if found.what == "unknown":
                found = replace(found, what="unknown" if forward is not None else "tensor")
            return replace(found, gradient="no" if self.gradients.untracked(call.node) else "yes")
        if any(name.startswith("torch.nn.") for name in ancestry):
            dims = self.facts.dims.get(class_name)
            if dims is None and class_name.rpartition(".")[2] in ("ReLU", "GELU", "SiLU", "Dropout", "LayerNorm"):
                dims = self.results.argument_kind(call, 0).dims
            single = class_name.rpartition(".")[2] not in ("LSTM", "GRU", "RNN", "MultiheadAttention", "Sequential")
            gradient: Gradient = "no" if self.gradients.untracked(call.node) else "yes"
            if gradient == "yes" and _PASSING.fullmatch(class_name):
                gradient = "no" if self.results.argument_kind(call, 0).gradient == "no" else "yes"
            return Kind(what="tensor" if single else "unknown", dtype="floating", gradient=gradient, dims=dims)
        return None

    def _is_self(self, node: cst.BaseExpression, scope: Scope) -> bool:
        return isinstance(node, cst.Name) and self.kind(node).instance.startswith("@.")

    def _own_method(self, call: Call) -> Kind:
        """`self.name(…)`: a method of the class, or a layer that it holds."""
        assert call.receiver is not None
        class_ = self.module.local_class(self.kind(call.receiver).instance)
        if class_ is None:
            return UNKNOWN
        method = self.members.method(class_, call.attribute)
        if method is not None:
            found = self.returned(method)
            if self.gradients.untracked(call.node):
                return replace(found, gradient="no")
            return self._given(found, call)
        if not self.gradients.is_layer(class_) or self.gradients.untracked(call.node):
            return UNKNOWN
        if self._unknown_call(call).gradient == "yes":
            return Kind(gradient="yes")
        # The call was named before the constructor was read, which says what the layer is.
        made = [
            self._instance_called(name[:-2], call) for name in self.module.resolve(call.node.func) if name[-1] == ")"
        ]
        return joined(kind or UNKNOWN for kind in made)

    def _local(self, name: str, call: Call) -> Kind | None:
        if self.module.local_class(name) is not None:
            return self.annotations.instance(name)
        owner, _, last = name[2:].rpartition(".")
        class_ = self.module.local_class(f"@.{owner}") if owner else None
        if owner and class_ is None:
            return None
        function = self.members.method(class_, last) if class_ is not None else self.module.definition(last)
        if function is None:
            return None
        return self._given(self.returned(function), call)

    def returned(self, function: cst.FunctionDef) -> Kind:
        """What a function of the file returns."""
        key = id(function)
        if key not in self._returns:
            self._returns[key] = UNKNOWN
            if function.returns is not None:
                annotated = self.annotations.kind(function.returns.annotation)
                if annotated.what == "other" and annotated != EMPTY and not (annotated.items or annotated.each):
                    self._returns[key] = annotated
                    return annotated
            returns = list(_returns(function))
            found = UNKNOWN
            if 0 < len(returns) <= _RETURNS:
                found = joined(self.kind(value) for value in returns)
            if function.returns is not None and found.what == "unknown" and annotated.what != "unknown":
                found = replace(annotated, gradient=found.gradient)
            if self.gradients.not_tracked(function):
                found = replace(found, gradient="no")
            self._returns[key] = found
        return self._returns[key]


def _is_between(indices: Sequence[cst.BaseSlice]) -> bool:
    """Whether `x[indices]` is a slice from one place to another."""
    index = indices[0]
    return len(indices) == 1 and isinstance(index, cst.Slice) and index.lower is not None and index.upper is not None


def _is_ellipsis(index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis)


def _returns(function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """The expressions that `function` itself returns."""
    stack: list[cst.CSTNode] = [function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Return):
            if node.value is not None:
                yield node.value
        elif not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
            stack.extend(reversed(children(node)))
