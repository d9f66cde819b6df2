"""What an expression evidently is: a tensor or not, of which type, on which device, and whether a gradient flows.

Everything is inferred from what stands in the file; `unknown` is always an answer, and the checks treat it as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import libcst as cst

from torchdet_lint import names
from torchdet_lint.names import live
from torchdet_lint.tree import children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.module import Call, Class, Module
    from torchdet_lint.names import Binding, Scope

What = Literal["tensor", "other", "unknown"]
Dtype = Literal["integer", "bool", "floating", "unknown"]
Device = Literal["cpu", "cuda", "unknown"]
Gradient = Literal["yes", "no", "unknown"]

_DEPTH = 24
_RETURNS = 6
_KEEP_VALUES = frozenset(
    """clone contiguous cpu cuda to long int float half double type type_as view reshape flatten unsqueeze squeeze
    expand expand_as repeat permute transpose t detach flip""".split()
)
# What their arguments are makes no difference to the gradient.
_OWN = frozenset(
    """to type type_as view view_as reshape reshape_as expand expand_as repeat permute transpose flatten unsqueeze
    squeeze float double half bfloat16 contiguous clone cuda cpu roll flip narrow repeat_interleave unflatten
    movedim""".split()
)
_SETTINGS = frozenset(("config", "cfg", "hparams"))
_SHAPED = frozenset(("expanded", "flat", "flattened", "repeated", "reshaped", "unsqueezed"))
# Layers without parameters, which pass a gradient on or not as it comes.
_PASSING = re.compile(
    r"torch\.nn\.(?:Dropout\w*|AlphaDropout|FeatureAlphaDropout|Identity|(?:Leaky)?ReLU6?|ELU|GELU|SiLU|Sigmoid|Tanh|"
    r"(?:Log)?Softmax|Softplus|(?:Max|Avg|AdaptiveAvg|AdaptiveMax)Pool\dd|Flatten|Unflatten|Upsample|\w+Pad\dd|"
    r"PixelShuffle|PixelUnshuffle|Fold|Unfold)"
)
_COUNT = re.compile(r"(?:\d+d?)?")
_DIMENSIONS = re.compile(r"\.(?:dim\(\)|ndim\b)")
_CAMEL = re.compile(r"[A-Z][a-z0-9]*|[a-z0-9]+")
_DECIDING = frozenset({cst.With, cst.If, cst.IfExp, cst.IndentedBlock, cst.FunctionDef})


@dataclass(frozen=True)
class Kind:
    """What is known of a value.

    `dims` is the number of dimensions, `single` those that evidently have size 1 (-1: the last), `distinct` says that
    no value occurs twice along a dimension, `whole` that all are whole numbers, `items` are the kinds of a tuple's
    elements, `each` that of what iterating gives, `instance` the class of an object that was made in sight.
    """

    what: What = "unknown"
    dtype: Dtype = "unknown"
    device: Device = "unknown"
    gradient: Gradient = "unknown"
    dims: int | None = None
    single: frozenset[int] = frozenset()
    sparse: bool = False
    distinct: bool = False
    whole: bool = False
    items: tuple[Kind, ...] = ()
    each: Kind | None = None
    instance: str = ""

    @property
    def is_tensor(self) -> bool:
        """Whether it is evidently a tensor."""
        return self.what == "tensor"


UNKNOWN = Kind()
OTHER = Kind(what="other", gradient="no")
TENSOR = Kind(what="tensor")
_INTEGER = Kind(what="other", dtype="integer", gradient="no")
_FLOAT = Kind(what="other", dtype="floating", gradient="no")
_NONE = Kind(what="other", gradient="no", instance="None")
_EMPTY = Kind(what="other")
# An array or a table of another library: so are its elements and what its methods give.
_FOREIGN = Kind(what="other", gradient="no", instance="numpy")
_SIZES = Kind(what="other", gradient="no", each=OTHER)
_DATUM = Kind(what="tensor", gradient="no")
# What a loader gives: a tensor, or tensors together.
_BATCH = Kind(gradient="no", each=_DATUM)
_PARAMETER = Kind(what="tensor", dtype="floating", gradient="yes")


def joined(kinds: Iterable[Kind]) -> Kind:
    """What holds of a value that is one of `kinds`; `None` beside something else does not count."""
    every = [kind for kind in kinds if kind is not _NONE]
    if not every:
        return UNKNOWN
    first, rest = every[0], every[1:]
    if not rest:
        return first
    found = first
    for kind in rest:
        found = Kind(
            what=found.what if found.what == kind.what else "unknown",
            dtype=found.dtype if found.dtype == kind.dtype else "unknown",
            device=found.device if found.device == kind.device else "unknown",
            gradient=_either(found.gradient, kind.gradient),
            dims=found.dims if found.dims == kind.dims else None,
            single=found.single & kind.single,
            sparse=found.sparse and kind.sparse,
            distinct=found.distinct and kind.distinct,
            whole=found.whole and kind.whole,
            items=tuple(joined(pair) for pair in zip(found.items, kind.items, strict=True))
            if len(found.items) == len(kind.items)
            else (),
            each=joined((found.each, kind.each)) if found.each and kind.each else None,
            instance=found.instance if found.instance == kind.instance else "",
        )
    return found


def _either(left: Gradient, right: Gradient) -> Gradient:
    """The gradient of what is computed from two values, or may be either."""
    if "yes" in (left, right):
        return "yes"
    return "no" if left == right == "no" else "unknown"


class Inference:
    """The kinds of the expressions of one file, each worked out once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self._known: dict[int, Kind] = {}
        self._tentative: dict[int, Kind] = {}
        self._cut = False
        self._busy: set[int] = set()
        self._depth = 0
        self._returns: dict[int, Kind] = {}
        self._functions: dict[str, cst.FunctionDef | None] = {}
        self._used: dict[int, dict[str, Kind]] = {}
        self._tracked: dict[int, bool] = {}

    # ------------------------------------------------------------------ tables

    @cached_property
    def _integer(self) -> frozenset[str]:
        return frozenset(self.facts.integer)

    @cached_property
    def _boolean(self) -> frozenset[str]:
        return frozenset(self.facts.boolean)

    @cached_property
    def _floating(self) -> frozenset[str]:
        return frozenset(self.facts.floating)

    @cached_property
    def _scalar(self) -> frozenset[str]:
        return frozenset(self.facts.scalar)

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
            return UNKNOWN
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
            return self._arithmetic(self.kind(node.left), self.kind(node.right), node.operator)
        if isinstance(node, cst.Comparison):
            return self._comparison(node)
        if isinstance(node, cst.UnaryOperation):
            return OTHER if isinstance(node.operator, cst.Not) else self.kind(node.expression)
        if isinstance(node, cst.IfExp):
            return joined(self.kind(branch) for branch in self._branches(node))
        if isinstance(node, cst.BooleanOperation):
            return joined((self.kind(node.left), self.kind(node.right)))
        if isinstance(node, cst.NamedExpr):
            return self.kind(node.value)
        return self._display(node)

    def _branches(self, node: cst.IfExp) -> tuple[cst.BaseExpression, ...]:
        """The values of `a if test else b`; only the one for CUDA where the test asks for the device."""
        cuda = self.asks_for_cuda(node.test)
        if cuda is None:
            return (node.body, node.orelse)
        return (node.body if cuda else node.orelse,)

    def asks_for_cuda(self, test: cst.BaseExpression) -> bool | None:
        """Whether `test` is evidently true (or false) on CUDA, as `x.is_cuda` and `x.device.type == "cpu"` are."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self.asks_for_cuda(test.expression)
            return None if inner is None else not inner
        if isinstance(test, cst.Attribute) and test.attr.value in ("is_cuda", "is_cpu"):
            return test.attr.value == "is_cuda"
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return None
        left, part = test.left, test.comparisons[0]
        if not (isinstance(left, cst.Attribute) and left.attr.value == "type"):
            return None
        value = self.module.value(part.comparator).constant
        devices = value if isinstance(value, (list, tuple)) else (value,)
        if not all(isinstance(device, str) for device in devices):
            return None
        if isinstance(part.operator, (cst.Equal, cst.In)):
            return "cuda" in devices
        return "cuda" not in devices if isinstance(part.operator, (cst.NotEqual, cst.NotIn)) else None

    def _display(self, node: cst.BaseExpression) -> Kind:
        """A literal, or what is written as a list, tuple or dictionary."""
        if isinstance(node, cst.Integer):
            return _INTEGER
        if isinstance(node, cst.Float):
            return _FLOAT
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
            return _NONE
        module = self.module
        scope, order = module.scope_of(node), module.order_of(node)
        home = scope.home(node.value)
        if home is None:
            return OTHER
        here = home.function is scope.function
        bindings = live(home.bindings[node.value], order if here else None)
        if here:
            bindings = self._after_the_last_sure(bindings, node, order)
        found = joined(self._binding(binding, home) for binding in bindings if binding.kind != "augment")
        for binding in bindings:
            if binding.kind == "augment" and binding.value is not None and not found.instance:
                found = joined((found, self._arithmetic(found, self.kind(binding.value), cst.Add())))
        if here and home.kind == "function":
            if found == _EMPTY:
                found = replace(found, each=self._stored(node.value, home))
            if found.what == "unknown":
                used = self._usage(home).get(node.value)
                if used is not None:
                    found = replace(found, what=used.what, dims=used.dims)
            elif found.is_tensor and found.dims is None and len(home.bindings[node.value]) == 1:
                used = self._usage(home).get(node.value)
                found = replace(found, dims=used.dims) if used is not None else found
        return self._named(found, node.value)

    def _stored(self, name: str, home: Scope) -> Kind | None:
        """What a function puts into the list or dictionary `name`, by `append` or by key."""
        entries = [
            call.node.args[0].value
            for call in self.module.calls_in(home)
            if len(call.node.args) == 1 and names.dotted(call.node.func) == f"{name}.append"
        ]
        for target, value in self.module.assignments_in(home):
            if isinstance(target, cst.Subscript) and names.dotted(target.value) == name:
                entries.append(value)
        return joined(self.kind(entry) for entry in entries) if entries else None

    def _after_the_last_sure(self, bindings: list[Binding], node: cst.Name, order: int) -> list[Binding]:
        """`bindings` without those before the last that surely ran before `node`: one in a block around it."""
        if len(bindings) < 2:
            return bindings
        around = {id(ancestor) for ancestor in self.module.ancestors(node)}
        bindings = self._after_the_last_choice(bindings, around, order)
        for index in range(len(bindings) - 1, 0, -1):
            binding = bindings[index]
            if binding.order < order and binding.kind in ("assign", "unpack") and binding.node is not None:
                block = self.module.parent(self.module.statement(binding.node))
                if block is not None and self._gives_a_dimension(binding.value, block, node.value):
                    block = self.module.parent(block)
                    block = self.module.parent(block) if block is not None else None
                if block is not None and id(block) in around:
                    later = [other for other in bindings[index + 1 :] if other.order < order]
                    return [binding, *later]
        return bindings

    def _gives_a_dimension(self, value: cst.BaseExpression | None, block: cst.CSTNode, name: str) -> bool:
        """Whether `block` gives `name` the dimension it lacks: `if x.dim() == y.dim() - 1: x = x.unsqueeze(-1)`."""
        choice = self.module.parent(block)
        if not (isinstance(choice, cst.If) and choice.orelse is None and isinstance(choice.test, cst.Comparison)):
            return False
        if not (isinstance(value, cst.Call) and names.dotted(value.func) == f"{name}.unsqueeze"):
            return False
        test = self.module.code(choice.test)
        return len(_DIMENSIONS.findall(test)) == 2 and re.search(rf"\b{name}\.(?:dim\(\)|ndim)", test) is not None

    def _after_the_last_choice(self, bindings: list[Binding], around: set[int], order: int) -> list[Binding]:
        """`bindings` without those before the last `if` all of whose branches bind the name, in a block around."""
        last: dict[int, int] = {}
        blocks = []
        for index, binding in enumerate(bindings):
            if binding.order < order and binding.kind in ("assign", "unpack") and binding.node is not None:
                block = self.module.parent(self.module.statement(binding.node))
                if block is not None:
                    blocks.append(block)
                    last[id(block)] = index
        for block in reversed(blocks):
            choice = self._choice(block)
            if choice is None or id(choice) in around or id(self.module.parent(choice)) not in around:
                continue
            branches = _branches(choice)
            if all(id(branch) in last for branch in branches):
                return bindings[min(last[id(branch)] for branch in branches) :]
        return bindings

    def _choice(self, block: cst.CSTNode) -> cst.If | None:
        """The whole `if`, `elif`, `else` of which `block` is a branch."""
        node = self.module.parent(block)
        while isinstance(node, (cst.Else, cst.If)):
            outer = self.module.parent(node)
            if not isinstance(outer, cst.If) or outer.orelse is not node:
                break
            node = outer
        return node if isinstance(node, cst.If) else None

    def _named(self, kind: Kind, name: str) -> Kind:
        """`kind`, with what the name says where nothing else told."""
        if kind.what == "other":
            return kind
        words = self._words(name)
        if kind.dtype in ("unknown", "integer") and not words.isdisjoint(self.facts.distinct_words):
            return replace(kind, dtype="integer", gradient="no", distinct=True)
        told = kind.gradient == "no" or (kind.gradient == "yes" and kind.is_tensor)
        told = told and words.isdisjoint(self.facts.index_words)
        if not told and kind.dtype == "unknown" and not words.isdisjoint(self.facts.integer_words):
            return replace(kind, dtype="integer", gradient="no")
        if kind.gradient != "unknown":
            return kind
        if not words.isdisjoint(self.facts.data_words):
            return replace(kind, gradient="no")
        if kind.dtype in ("unknown", "floating") and not words.isdisjoint(self.facts.gradient_words):
            return replace(kind, gradient="yes")
        return kind

    @staticmethod
    def _words(name: str) -> frozenset[str]:
        """The name, its last word, and its last two; a word that says what shape it was given does not count."""
        parts = [part for part in name.lower().rstrip("0123456789_").split("_") if not _COUNT.fullmatch(part)]
        while len(parts) > 1 and parts[-1] in _SHAPED:
            parts.pop()
        return frozenset({name.lower(), *parts[-1:], "_".join(parts[-2:])})

    def _binding(self, binding: Binding, home: Scope) -> Kind:
        if binding.kind == "parameter" and isinstance(binding.node, cst.Param):
            return self._parameter(binding.node, home)
        if binding.value is None:
            return OTHER if binding.kind in ("import", "def", "class") else UNKNOWN
        if binding.kind == "loop":
            return self._path(self._iterated(binding.value), binding.path)
        if binding.kind == "with":
            return UNKNOWN
        if binding.kind in ("assign", "unpack"):
            annotation = binding.node.annotation.annotation if isinstance(binding.node, cst.AnnAssign) else None
            found = self._path(self.kind(binding.value), binding.path)
            if found.what == "unknown" and annotation is not None:
                return self._annotated(annotation)
            return found
        return UNKNOWN

    @staticmethod
    def _path(kind: Kind, path: Sequence[int]) -> Kind:
        for index in path:
            if kind.instance == _FOREIGN.instance:
                return kind
            if index < len(kind.items):
                kind = kind.items[index]
            elif kind.each is not None:
                kind = kind.each
            elif kind.is_tensor:
                kind = replace(kind, dims=kind.dims - 1 if kind.dims else None, single=frozenset(), items=())
            else:
                return UNKNOWN if kind.gradient != "yes" else Kind(gradient="yes")
        return kind

    def _iterated(self, node: cst.BaseExpression) -> Kind:
        """What one step of `for x in node` gives."""
        kind = self.kind(node)
        if kind.each is not None:
            return kind.each
        if kind.items:
            return joined(kind.items)
        if kind.is_tensor or kind.instance == _FOREIGN.instance:
            return self._path(kind, (0,))
        loader = kind.what == "unknown" and names.dotted(node).rpartition(".")[2].lower().endswith("loader")
        return _BATCH if loader else UNKNOWN

    def _parameter(self, node: cst.Param, home: Scope) -> Kind:
        function = home.node
        if node.annotation is not None:
            found = self._annotated(node.annotation.annotation)
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
        class_ = self.module.classes.get(home.outer) if home.outer is not None else None
        parameters = [*function.params.posonly_params, *function.params.params]
        if class_ is not None and parameters and parameters[0] is node and not self._static(function):
            return Kind(what="other", gradient="no", instance=f"@.{class_.name}")
        if function.name.value == "forward" and class_ is not None and self.is_layer(class_) and default is None:
            return self._differentiable(TENSOR, node.name.value, home)
        return self._differentiable(UNKNOWN, node.name.value, home)

    @staticmethod
    def _static(function: cst.FunctionDef) -> bool:
        return any(
            isinstance(item.decorator, cst.Name) and item.decorator.value == "staticmethod"
            for item in function.decorators
        )

    def _differentiable(self, kind: Kind, name: str, home: Scope) -> Kind:
        """A parameter: in a method of a layer it is an activation, unless its type or its name says otherwise."""
        if kind.dtype in ("integer", "bool"):
            return replace(kind, gradient="no")
        named = self._named(kind, name)
        if named.gradient != "unknown" or not kind.is_tensor:
            return named
        class_ = self.module.enclosing_class_of_scope(home)
        if class_ is not None and self.is_layer(class_):
            return replace(named, gradient="yes")
        return named

    def _annotated(self, node: cst.BaseExpression) -> Kind:
        if isinstance(node, cst.SimpleString):
            text = node.evaluated_value
            try:
                node = cst.parse_expression(text) if isinstance(text, str) else node
            except cst.ParserSyntaxError:
                return UNKNOWN
            last = names.dotted(node).rpartition(".")[2]
            return self._annotation_named(f"torch.{last}") if last.endswith("Tensor") else UNKNOWN
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            return joined((self._annotated(node.left), self._annotated(node.right)))
        if isinstance(node, cst.Name) and node.value == "None":
            return _NONE
        if isinstance(node, cst.Subscript):
            return self._generic(node)
        for name in self.module.resolve(node) or (names.dotted(node),):
            found = self._annotation_named(name)
            if found.what != "unknown":
                return found
        return UNKNOWN

    def _annotation_named(self, name: str) -> Kind:
        meaning = self.facts.annotations.get(name)
        if meaning is None and name.rpartition(".")[2] in ("Tensor", "FloatTensor", "LongTensor", "BoolTensor"):
            meaning = self.facts.annotations.get(f"torch.{name.rpartition('.')[2]}")
        if meaning == "other":
            return _FOREIGN if name.startswith(("numpy.", "pandas.")) else OTHER
        if meaning == "parameter":
            return _PARAMETER
        if meaning in ("integer", "bool"):
            return Kind(what="tensor", dtype=meaning, gradient="no")  # type: ignore[arg-type]
        if meaning == "floating":
            return Kind(what="tensor", dtype="floating")
        return TENSOR if meaning == "tensor" else UNKNOWN

    def _generic(self, node: cst.Subscript) -> Kind:
        """`Optional[Tensor]`, `list[Tensor]`, `tuple[Tensor, int]`, `Float[Tensor, "b n"]`."""
        outer = names.dotted(node.value).rpartition(".")[2]
        inner = [self._annotated(element.slice.value) for element in node.slice if isinstance(element.slice, cst.Index)]
        if not inner:
            return UNKNOWN
        if outer in ("Optional", "Union", "Annotated", "Final"):
            return joined(inner)
        if outer in ("tuple", "Tuple"):
            return Kind(what="other", items=tuple(inner), each=joined(inner))
        if outer in ("dict", "Dict", "Mapping"):
            return Kind(what="other", each=inner[-1])
        if inner[0].is_tensor:
            if outer in ("Int", "Int32", "Int64", "UInt8", "Integer"):
                return Kind(what="tensor", dtype="integer", gradient="no")
            if outer == "Bool":
                return Kind(what="tensor", dtype="bool", gradient="no")
            if outer in ("Float", "Float32", "BFloat16", "Num", "Shaped"):
                return inner[0]
        if outer in ("list", "List", "Sequence", "Iterable", "Iterator", "set"):
            return Kind(what="other", each=inner[0])
        return UNKNOWN

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
            return self._named(found, name)
        owner = self.kind(node.value)
        if owner.instance == _FOREIGN.instance:
            return owner
        if owner.instance.startswith("@."):
            class_ = module.local_class(owner.instance)
            if class_ is not None:
                return self._named(self._registered(class_, name), name)
        if len(owner.items) == 2 and name in ("values", "indices"):
            return owner.items[name == "indices"]
        if owner.is_tensor:
            return self._tensor_attribute(owner, name)
        if name in ("weight", "bias") and owner.instance:
            return Kind(what="tensor", dtype="floating", gradient="yes")
        resolved = module.resolve(node)
        if resolved and not any("()" in full for full in resolved):
            return OTHER
        if owner.what == "other" and not owner.instance:
            return UNKNOWN
        if not _SETTINGS.isdisjoint(names.dotted(node.value).split(".")):
            return Kind(gradient="no")
        return self._named(UNKNOWN, name)

    def _registered(self, class_: Class, name: str) -> Kind:
        """An attribute of a layer that was registered as a buffer or a parameter."""
        for call in self.module.registrations(class_, name):
            value = call.argument("tensor", ("name", "tensor")) or call.argument("param", ("name", "param"))
            kind = self.kind(value.node) if value is not None else UNKNOWN
            if call.attribute == "register_buffer":
                return replace(kind, what="tensor", device="unknown", gradient="no")
            return replace(kind, what="tensor", device="unknown", gradient="yes")
        return UNKNOWN

    @staticmethod
    def _tensor_attribute(owner: Kind, name: str) -> Kind:
        if name in ("T", "mT", "H", "mH", "real", "imag"):
            return replace(owner, single=frozenset(), items=())
        if name == "data":
            return replace(owner, gradient="no")
        if name == "grad":
            return Kind(what="tensor", dtype="floating", gradient="no", device=owner.device, dims=owner.dims)
        if name == "values":
            return replace(owner, items=())
        if name == "indices":
            return Kind(what="tensor", dtype="integer", gradient="no", device=owner.device)
        return _SIZES if name == "shape" else OTHER

    # ------------------------------------------------------------------ operators

    @staticmethod
    def _arithmetic(left: Kind, right: Kind, operator: cst.BaseBinaryOp) -> Kind:
        if not left.is_tensor and not right.is_tensor:
            if "yes" in (left.gradient, right.gradient):
                return Kind(gradient="yes")
            if left.what == right.what == "other":
                return left if left == right or left is _FOREIGN else right if right is _FOREIGN else OTHER
            return UNKNOWN
        tensors = [kind for kind in (left, right) if kind.is_tensor]
        every = [kind for kind in (left, right) if kind.what != "other" or kind.is_tensor]
        dtype: Dtype = "unknown"
        if "floating" in (left.dtype, right.dtype) or isinstance(operator, cst.Divide):
            dtype = "floating"
        elif len(every) == len(tensors) and all(kind.dtype in ("integer", "bool") for kind in tensors):
            dtype = "integer" if any(kind.dtype == "integer" for kind in tensors) else "bool"
        dims = None
        if len(tensors) == len(every):
            known = [kind.dims for kind in tensors]
            dims = max(value or 0 for value in known) if all(value is not None for value in known) else None
        devices = {kind.device for kind in tensors}
        gradient = tensors[0].gradient if len(every) == 1 else _either(every[0].gradient, every[-1].gradient)
        if isinstance(operator, cst.MatrixMultiply):
            dims = None
        return Kind(
            what="tensor",
            dtype=dtype,
            device=devices.pop() if len(devices) == 1 else "unknown",
            gradient="no" if dtype in ("integer", "bool") else gradient,
            dims=dims,
        )

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
        if kind.instance == _FOREIGN.instance:
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
                return self._named(kind.each or UNKNOWN, constant)
        elif kind.each is not None:
            return kind
        if kind.each is not None:
            return kind.each
        if self._shape_of(node.value) is not None or kind.what == "other":
            return OTHER if kind.gradient == "no" and not kind.instance else UNKNOWN
        return Kind(dtype=kind.dtype, gradient=kind.gradient)

    def _indexed(self, kind: Kind, indices: Sequence[cst.BaseSlice]) -> Kind:
        """`kind[indices]`: numbers take a dimension, `None` adds one of size 1, slices keep theirs."""
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
        if receiver is not None:
            if self._is_self(receiver, call.scope):
                return self._own_method(call)
            owner = self.kind(receiver)
            told = call.attribute in self._distinctive or owner.dtype != "unknown"
            # NumPy says `keepdims`.
            told = told or "keepdim" in call.arguments.keywords
            if owner.is_tensor or (owner.what == "unknown" and told):
                return self._method(replace(owner, what="tensor"), call)
            if owner.instance == _FOREIGN.instance:
                return owner
            if call.attribute in ("numpy", "tolist", "item"):
                return OTHER
            if call.attribute == "parameters" and not call.arguments.positional:
                return Kind(what="other", each=_PARAMETER)
            if call.attribute == "named_parameters" and not call.arguments.positional:
                return Kind(what="other", each=Kind(what="other", items=(OTHER, _PARAMETER)))
            if owner.what == "other" and call.attribute == "items" and owner.each is not None:
                return Kind(what="other", each=Kind(what="other", items=(UNKNOWN, owner.each)))
            if owner.what == "other" and call.attribute in ("values", "get", "pop", "copy") and owner.each is not None:
                return owner.each if call.attribute in ("get", "pop") else owner
            if owner.what == "other" and not owner.instance:
                return UNKNOWN if owner.each or owner.items else OTHER
        return self._unknown_call(call)

    def _unknown_call(self, call: Call) -> Kind:
        """A callable that is not in sight: what it returns carries the gradient of what it was given."""
        gradients = [self.kind(arg.value).gradient for arg in call.node.args if not arg.star]
        if call.receiver is not None:
            gradients.append(self.kind(call.receiver).gradient)
        if "yes" in gradients and not self.untracked(call.node):
            return Kind(gradient="yes")
        return UNKNOWN

    def _called(self, name: str, call: Call) -> Kind | None:
        """What a call of the qualified name gives; None where the name tells nothing."""
        owner, _, last = name.rpartition(".")
        if name.endswith("()"):
            return self._instance_called(name[:-2], call)
        if owner in self.facts.modules and last[:1].islower():
            return self._function(last, call)
        if last == "one_hot":
            return Kind(what="tensor", gradient="no", whole=True)
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
            return _FOREIGN
        if library in ("math", "random", "os", "time", "json", "scipy", "itertools"):
            return OTHER
        if library == "tqdm" and last in ("tqdm", "auto") and call.node.args:
            return Kind(what="other", each=self._iterated(call.node.args[0].value))
        if last[:1].isupper():
            return Kind(what="other", gradient="no", instance=name)
        return None

    def _torch_class(self, name: str, last: str, call: Call) -> Kind | None:
        if "()" in name:
            return None
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            inner = self._argument_kind(call, 0)
            return replace(inner, what="tensor", device="unknown", gradient="yes")
        if last.endswith("Tensor"):
            made = self._annotation_named(f"torch.{last}")
            dtype: Dtype = made.dtype if made.dtype != "unknown" else "floating"
            return Kind(what="tensor", dtype=dtype, device="cuda" if ".cuda." in name else "cpu", gradient="no")
        if name == "torch.utils.data.DataLoader":
            plain = Kind(gradient="no")
            batch = replace(plain, each=plain) if "collate_fn" in call.arguments.keywords or call.opaque else _BATCH
            return Kind(what="other", gradient="no", instance=name, each=batch)
        if name in ("torch.nn.Buffer", "torch.nn.parameter.Buffer"):
            return replace(self._argument_kind(call, 0, "data"), what="tensor", device="unknown", gradient="no")
        if name == "torch.nn.ParameterList":
            return Kind(what="other", gradient="no", instance=name, each=_PARAMETER)
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
            return _SIZES
        if last == "dict" and not args and call.node.args and not call.opaque:
            return Kind(what="other", each=joined(self.kind(arg.value) for arg in call.node.args))
        if last == "enumerate" and args:
            return Kind(what="other", each=Kind(what="other", items=(OTHER, self._iterated(args[0]))))
        if last == "zip":
            return Kind(what="other", each=Kind(what="other", items=tuple(map(self._iterated, args))))
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
        if class_ is not None and self.is_layer(class_):
            forward = self._method_of(class_, "forward")
            found = self._returned(forward) if forward is not None else UNKNOWN
            if found.what == "unknown":
                found = replace(found, what="unknown" if forward is not None else "tensor")
            return replace(found, gradient="no" if self.untracked(call.node) else "yes")
        if any(name.startswith("torch.nn.") for name in ancestry):
            dims = self.facts.dims.get(class_name)
            if dims is None and class_name.rpartition(".")[2] in ("ReLU", "GELU", "SiLU", "Dropout", "LayerNorm"):
                dims = self._argument_kind(call, 0).dims
            single = class_name.rpartition(".")[2] not in ("LSTM", "GRU", "RNN", "MultiheadAttention", "Sequential")
            gradient: Gradient = "no" if self.untracked(call.node) else "yes"
            if gradient == "yes" and _PASSING.fullmatch(class_name) and self._argument_kind(call, 0).gradient == "no":
                gradient = "no"
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
        method = self._method_of(class_, call.attribute)
        if method is not None:
            found = self._returned(method)
            if self.untracked(call.node):
                return replace(found, gradient="no")
            if found.gradient == "unknown" and found.dtype in ("unknown", "floating"):
                return replace(found, gradient=self._unknown_call(call).gradient)
            return found
        if not self.is_layer(class_) or self.untracked(call.node):
            return UNKNOWN
        if self._unknown_call(call).gradient == "yes":
            return Kind(gradient="yes")
        # The call was named before the constructor was read, which says what the layer is.
        made = [
            self._instance_called(name[:-2], call) for name in self.module.resolve(call.node.func) if name[-1] == ")"
        ]
        return joined(kind or UNKNOWN for kind in made)

    def _method_of(self, class_: Class, name: str) -> cst.FunctionDef | None:
        for relative in self.module.family(class_):
            if name in relative.methods:
                return self.module.definition(name, relative)
        return None

    def _local(self, name: str, call: Call) -> Kind | None:
        class_ = self.module.local_class(name)
        if class_ is not None:
            return Kind(what="other", gradient="no", instance=name)
        if name.count(".") != 1:
            return None
        function = self.module.definition(name[2:])
        if function is None:
            return None
        found = self._returned(function)
        if found.gradient == "unknown" and found.dtype in ("unknown", "floating"):
            found = replace(found, gradient=self._unknown_call(call).gradient)
        return found

    def _returned(self, function: cst.FunctionDef) -> Kind:
        """What a function of the file returns."""
        key = id(function)
        if key not in self._returns:
            self._returns[key] = UNKNOWN
            if function.returns is not None:
                annotated = self._annotated(function.returns.annotation)
                if annotated.what == "other" and not (annotated.items or annotated.each):
                    self._returns[key] = annotated
                    return annotated
            returns = list(_returns(function))
            found = UNKNOWN
            if 0 < len(returns) <= _RETURNS:
                found = joined(self.kind(value) for value in returns)
            if function.returns is not None and found.what == "unknown" and annotated.what != "unknown":
                found = replace(annotated, gradient=found.gradient)
            if self._not_tracked(function):
                found = replace(found, gradient="no")
            self._returns[key] = found
        return self._returns[key]

    def _argument_kind(self, call: Call, position: int, keyword: str = "input") -> Kind:
        arguments = call.arguments
        if keyword in arguments.keywords:
            return self.kind(arguments.keywords[keyword].node)
        if position < len(arguments.positional):
            return self.kind(arguments.positional[position].node)
        return UNKNOWN

    # ------------------------------------------------------------------ torch's functions and methods

    def _function(self, name: str, call: Call) -> Kind:
        if name in self.facts.no_tensor:
            return OTHER
        positional = call.arguments.positional
        if name in ("cat", "stack", "concat", "concatenate", "hstack", "vstack", "einsum", "pad_sequence"):
            return self._collected(name, call)
        if name in ("from_numpy", "frombuffer"):
            return Kind(what="tensor", device="cpu", gradient="no")
        if name in self.facts.creation:
            return self._created(name, call)
        if name == "where" and len(positional) == 1:
            index = Kind(what="tensor", dtype="integer", gradient="no", distinct=True)
            return Kind(what="other", items=(), each=index)
        if name == "where":
            options = [self.kind(value.node) for value in positional[1:3]]
            found = self._arithmetic(options[0], options[1], cst.Add()) if len(options) == 2 else TENSOR
            return replace(found, what="tensor", dims=None)
        return self._applied(name, self._argument_kind(call, 0), call, positional[1:])

    def _method(self, owner: Kind, call: Call) -> Kind:
        name = call.attribute
        if name in self._scalar or name.startswith("is_"):
            return _SIZES if name == "size" and not call.node.args else OTHER
        if name == "new":
            return Kind(what="tensor", device=owner.device, gradient="no")
        return self._applied(name, owner, call, call.arguments.positional)

    def _applied(self, name: str, first: Kind, call: Call, rest: Sequence[object]) -> Kind:
        """A function of a tensor, called as a function or as a method; `rest` are the arguments after it."""
        values = [self.kind(value.node) for value in call.arguments.positional]
        gradient = self._gradient_of(name, first, values, call)
        base = Kind(what="tensor", dtype=first.dtype, device=first.device, gradient=gradient)
        if name in self.facts.like:
            dtype = self._dtype_argument(call)
            return replace(
                base,
                dtype=dtype or first.dtype,
                gradient="no",
                device=self._device_argument(call, first.device),
                dims=first.dims if name.endswith("_like") else self._shape_dims(call, 0),
                single=first.single if name.endswith("_like") else frozenset(),
                whole=name in ("new_ones", "ones_like"),
            )
        if name in self.facts.indexed and self._has_dim(name, call):
            index = Kind(
                "tensor", "integer", first.device, "no", first.dims, self._kept(call), distinct=name in ("sort", "topk")
            )  # fmt: skip
            return Kind(what="other", gradient=gradient, items=(replace(base, dims=first.dims), index))
        if name in ("unique", "unique_consecutive"):
            counts = Kind(what="tensor", dtype="integer", gradient="no", device=first.device, dims=1)
            once = replace(base, distinct=name == "unique", dims=1)
            several = bool(call.arguments.keywords)
            return Kind(what="other", gradient=gradient, items=(once, counts, counts)) if several else once
        if name in self.facts.several:
            return Kind(what="other", gradient=gradient, each=base)
        bare = name.rstrip("_")
        dtype = self._dtype_argument(call) or self._type_of(name, bare)
        if dtype is not None:
            base = replace(base, dtype=dtype)
        elif bare not in ("clone", "abs", "relu") and first.dtype in ("integer", "bool") and self._changes(bare):
            base = replace(base, dtype="integer" if bare in ("sum", "prod", "cumsum", "cumprod") else "unknown")
        if base.dtype in ("integer", "bool"):
            base = replace(base, gradient="no")
        return self._shaped(bare, base, first, call)

    @staticmethod
    def _changes(bare: str) -> bool:
        """Whether the function may make another type of an integer."""
        return bare in (
            "sum", "prod", "cumsum", "cumprod", "pow", "mul", "add", "sub", "div", "true_divide", "matmul", "mm", "bmm",
            "masked_fill",
        )  # fmt: skip

    @staticmethod
    def _cast(bare: str, first: Kind) -> bool:
        """Whether an op makes floating-point numbers of whole ones."""
        casts = ("float", "double", "half", "bfloat16", "to", "type", "type_as")
        return bare in casts and first.dtype in ("integer", "bool")

    def _kept(self, call: Call) -> frozenset[int]:
        """The dimension that a reduction keeps with size 1, by `keepdim=True`."""
        keep = call.arguments.keywords.get("keepdim")
        at = call.arguments.keywords.get("dim")
        positional = call.arguments.positional
        if at is None and positional:
            at = positional[0 if self._is_method(call) or len(positional) == 1 else 1]
        where = at.constant if at is not None else None
        return (
            frozenset({where}) if keep is not None and keep.constant is True and isinstance(where, int) else frozenset()
        )

    def _type_of(self, name: str, bare: str) -> Dtype | None:
        for candidate in (name, bare):
            if candidate in self._integer:
                return "integer"
            if candidate in self._boolean:
                return "bool"
            if candidate in self._floating:
                return "floating"
        return None

    def _gradient_of(self, name: str, first: Kind, values: Sequence[Kind], call: Call) -> Gradient:
        if name in self.facts.untracked or self.untracked(call.node):
            return "no"
        if name == "requires_grad_":
            return "yes"
        if name in _OWN:
            return first.gradient
        known = [first, *(kind for kind in values if kind.what != "other")]
        if any(kind.gradient == "yes" and kind.dtype not in ("integer", "bool") for kind in known):
            return "yes"
        if first.gradient == "no" and (first.dtype in ("integer", "bool") or all(k.gradient == "no" for k in known)):
            return "no"
        if len(known) == 1:
            return first.gradient
        return "unknown"

    def _has_dim(self, name: str, call: Call) -> bool:
        if name in ("sort", "topk", "kthvalue", "mode", "cummax", "cummin"):
            return True
        arguments = call.arguments
        if "dim" in arguments.keywords or "axis" in arguments.keywords:
            return True
        offset = 0 if self._is_method(call) else 1
        if len(arguments.positional) <= offset:
            return False
        return not self.kind(arguments.positional[offset].node).is_tensor

    def _is_method(self, call: Call) -> bool:
        return not any(name.rpartition(".")[0] in self.facts.modules for name in call.own)

    def _dtype_argument(self, call: Call) -> Dtype | None:
        """The type that `dtype=`, `.to(…)` or `.type(…)` names."""
        node: cst.BaseExpression | None = None
        keywords = call.arguments.keywords
        if "dtype" in keywords:
            node = keywords["dtype"].node
        elif call.attribute in ("to", "type", "view", "type_as") and call.arguments.positional:
            node = call.arguments.positional[0].node
            other = self.kind(node)
            if call.attribute in ("to", "type_as") and other.is_tensor:
                return other.dtype
        if node is None:
            return None
        followed = self.module.followed(node, call.scope, call.order)
        if followed is not None and isinstance(followed.node, cst.IfExp):
            node = self._branches(followed.node)[0]
        for name in self.module.resolve(node):
            owner, _, last = name.rpartition(".")
            if owner in ("torch", "builtins", "numpy"):
                found = self.facts.dtypes.get(last)
                return found if found in ("integer", "bool", "floating") else None  # type: ignore[return-value]
        if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return self.kind(node.value).dtype
        return None if "dtype" not in keywords and self._names_a_device(node) else "unknown"

    def _names_a_device(self, node: cst.BaseExpression) -> bool:
        """Whether the argument of `.to(…)` looks like a device rather than a type."""
        last = names.dotted(node).rpartition(".")[2]
        constant = self.module.value(node).constant
        return "device" in last or isinstance(constant, (str, int)) or isinstance(node, cst.Call)

    def _device_argument(self, call: Call, default: Device) -> Device:
        value = call.arguments.keywords.get("device")
        return self._device(value.node) if value is not None else default

    def _device(self, node: cst.BaseExpression) -> Device:
        """The device that an expression evidently names."""
        value = self.module.followed(node, self.module.scope_of(node), self.module.order_of(node))
        if value is None:
            return "unknown"
        constant = value.constant
        if isinstance(constant, str):
            return "cpu" if constant.startswith("cpu") else "cuda" if constant.startswith("cuda") else "unknown"
        if isinstance(value.node, cst.Call) and value.node.args:
            names_ = self.module.resolve(value.node.func, value.scope, value.order)
            if "torch.device" in names_:
                return self._device(value.node.args[0].value)
        return "unknown"

    def _created(self, name: str, call: Call) -> Kind:
        dtype = self._dtype_argument(call)
        if dtype is None:
            dtype = self._type_of(name, name)
        if dtype is None and name in ("zeros", "ones", "empty", "eye", "empty_strided"):
            dtype = "floating"
        if dtype is None and name == "arange":
            values = call.arguments.positional
            dtype = "unknown" if any(isinstance(value.constant, float) for value in values) else "integer"
        if dtype is None and name in ("tensor", "full", "as_tensor"):
            dtype = self._literal_type(call)
        gradient: Gradient = "no"
        required = call.arguments.keywords.get("requires_grad")
        if required is not None and required.constant is not False:
            gradient = "yes"
        device = self._device_argument(call, "unknown" if self._default_device_set or name == "as_tensor" else "cpu")
        dims = self._shape_dims(call, 0)
        if name in ("arange", "linspace", "logspace", "randperm"):
            dims = 1
        elif name in ("randint", "full", "tensor", "as_tensor", "normal", "from_numpy"):
            dims = self._literal_dims(call) if name in ("tensor", "as_tensor") else None
        distinct = name in ("arange", "randperm")
        if name in ("tensor", "as_tensor"):
            distinct = self._argument_kind(call, 0, "data").distinct
        return Kind(
            "tensor", dtype or "unknown", device, gradient, dims, sparse=name.startswith("sparse"), distinct=distinct,
            whole=name in ("ones", "eye"),
        )  # fmt: skip

    @cached_property
    def _default_device_set(self) -> bool:
        return re.search(r"\bset_default_(?:device|tensor_type)\b", self.module.text) is not None

    def _literal_type(self, call: Call) -> Dtype | None:
        values = call.arguments.positional
        value = values[-1] if values else None
        constant = value.constant if value is not None and value.known else None
        while isinstance(constant, (list, tuple)) and constant:
            constant = constant[0]
        if isinstance(constant, bool):
            return "bool"
        if isinstance(constant, int):
            return "integer"
        return "floating" if isinstance(constant, float) else None

    @staticmethod
    def _literal_dims(call: Call) -> int | None:
        values = call.arguments.positional
        if not values or not values[0].known:
            return None
        dims, constant = 0, values[0].constant
        while isinstance(constant, (list, tuple)) and constant:
            dims, constant = dims + 1, constant[0]
        return dims

    def _collected(self, name: str, call: Call) -> Kind:
        parts = self._argument_kind(call, 0, "tensors")
        if name == "einsum":
            every = [self.kind(value.node) for value in call.arguments.positional[1:]]
            gradient: Gradient = "unknown"
            for kind in every:
                gradient = _either(gradient, kind.gradient) if kind.gradient == "yes" else gradient
            return Kind(what="tensor", gradient=gradient)
        each = parts.each or (joined(parts.items) if parts.items else UNKNOWN)
        gradients = [kind.gradient for kind in parts.items] or [each.gradient]
        gradient = "yes" if "yes" in gradients else each.gradient
        dims = each.dims
        if name == "stack" and dims is not None:
            dims += 1
        if name not in ("stack", "cat", "concat", "concatenate"):
            dims = None
        return Kind("tensor", each.dtype, each.device, gradient, dims)

    # ------------------------------------------------------------------ shapes

    def _shape_dims(self, call: Call, skip: int) -> int | None:
        """The number of dimensions of a shape given as `(2, 3)` or as `2, 3`."""
        values = call.arguments.positional[skip:]
        if "size" in call.arguments.keywords and not values:
            values = (call.arguments.keywords["size"],)
        if call.opaque or not values:
            return None
        if len(values) > 1:
            return None if any(self.kind(value.node).each for value in values) else len(values)
        elements = self.module.elements(values[0].node, values[0].scope, values[0].order)
        if elements is not None:
            return len(elements)
        return 1 if isinstance(values[0].constant, int) else None

    def _shaped(self, bare: str, base: Kind, first: Kind, call: Call) -> Kind:
        skip = 0 if self._is_method(call) else 1
        if bare in _KEEP_VALUES:
            base = replace(base, distinct=first.distinct, whole=first.whole or self._cast(bare, first))
        elif bare in ("argsort", "nonzero", "argwhere", "unique"):
            base = replace(base, distinct=True)
        if bare in ("view", "reshape"):
            dims = self._shape_dims(call, skip)
            values = call.arguments.positional[skip:]
            last = values[-1].constant if values and len(values) > 1 else None
            return replace(base, dims=dims, single=frozenset({-1}) if last == 1 else frozenset())
        if bare == "expand" and (kept_sizes := self._grown_at_the_end(first, call, skip)) is not None:
            return replace(base, dims=first.dims, single=kept_sizes)
        if bare in ("expand", "repeat"):
            kept = 1 if bare == "repeat" else -1
            sizes = [value.constant for value in call.arguments.positional[skip:]]
            if bare == "expand" and len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
                sizes = list(sizes[0])
            before = {size + len(sizes) if size < 0 else size for size in first.single}
            same = {position for position in before if 0 <= position < len(sizes) and sizes[position] == kept}
            if bare == "expand":
                same |= {position for position, size in enumerate(sizes) if size == 1}
            return replace(base, dims=self._shape_dims(call, skip), single=frozenset(same))
        if bare in ("permute", "new_zeros", "tile"):
            return replace(base, dims=self._shape_dims(call, skip))
        if bare in ("flatten", "ravel"):
            plain = len(call.arguments.positional) == skip and not call.arguments.keywords
            return replace(base, dims=1 if plain or bare == "ravel" else None)
        if bare == "unsqueeze":
            position = call.argument("dim", ("dim",) if skip == 0 else ("input", "dim"))
            at = position.constant if position is not None else None
            dims = first.dims + 1 if first.dims is not None else None
            if not isinstance(at, int):
                return replace(base, dims=dims)
            if at == -1:
                moved = {size - 1 if size < 0 else size for size in first.single}
            else:
                moved = {size + 1 if size >= at else size for size in first.single if size >= 0 <= at}
            return replace(base, dims=dims, single=frozenset({at, *moved}))
        if bare == "one_hot":
            return replace(base, dims=first.dims + 1 if first.dims is not None else None)
        return self._resized(bare, base, first, call)

    def _grown_at_the_end(self, first: Kind, call: Call, skip: int) -> frozenset[int] | None:
        """The dimensions of size 1, from the end, that `x.expand((-1,) * n + (size,))` leaves, or None."""
        values = call.arguments.positional[skip:]
        sizes = values[0].node if len(values) == 1 else None
        if not (isinstance(sizes, cst.BinaryOperation) and isinstance(sizes.operator, cst.Add)):
            return None
        kept, last = sizes.left, sizes.right
        if not (isinstance(kept, cst.BinaryOperation) and isinstance(kept.operator, cst.Multiply)):
            return None
        constants = [self.module.value(side).constant for side in (kept.left, kept.right)]
        if not any(names.matches(constant, [-1]) for constant in constants) or not isinstance(last, cst.Tuple):
            return None
        return frozenset(size for size in first.single if size < -len(last.elements))

    def _resized(self, bare: str, base: Kind, first: Kind, call: Call) -> Kind:
        if bare in ("argmax", "argmin"):
            return replace(base, single=self._kept(call))
        if bare in ("mean", "sum", "prod", "amax", "amin", "argmax", "argmin", "norm", "logsumexp", "squeeze", "std"):
            return base
        if bare in ("masked_select", "bincount", "histc", "unique", "take"):
            return replace(base, dims=1)
        if bare in ("interpolate", "upsample"):
            mode = call.argument("mode", ("input", "size", "scale_factor", "mode"))
            known = {"bilinear": 4, "bicubic": 4, "trilinear": 5, "linear": 3}
            constant = mode.constant if mode is not None else None
            return replace(base, dims=known.get(constant, first.dims) if isinstance(constant, str) else first.dims)
        if bare == "to_sparse":
            return replace(base, sparse=True, dims=first.dims)
        if bare in ("cpu", "cuda", "to"):
            return replace(base, dims=first.dims, single=first.single, device=self._moved(bare, first, call))
        if bare in ("matmul", "mm", "bmm", "gather", "index_select", "unfold", "fold", "diag", "diagonal", "linear"):
            return base
        if bare in ("long", "int", "float", "clone", "detach", "contiguous", "clamp", "clip", "masked_fill"):
            base = replace(base, single=first.single)
        return replace(base, dims=first.dims, sparse=first.sparse and bare in ("coalesce", "t", "transpose", "clone"))

    def _moved(self, bare: str, first: Kind, call: Call) -> Device:
        if bare in ("cpu", "cuda"):
            return "cpu" if bare == "cpu" else "cuda"
        target = call.arguments.keywords.get("device")
        if target is None and call.arguments.positional:
            target = call.arguments.positional[0]
            if any(name.startswith("torch.") and name != "torch.device()" for name in target.names):
                return first.device
            if isinstance(target.node, cst.Attribute) and target.node.attr.value == "dtype":
                return first.device
            if self.kind(target.node).is_tensor:
                return self.kind(target.node).device
        if target is None:
            return first.device
        return self._device(target.node)

    # ------------------------------------------------------------------ what is differentiated

    def is_layer(self, class_: Class) -> bool:
        """Whether a class of the file is a layer: it derives from `torch.nn.Module`, or it has a `forward`."""
        ancestry = self.module.ancestry(f"@.{class_.name}")
        if not set(ancestry).isdisjoint(self.facts.untracked_bases):
            return False
        return "torch.nn.Module" in ancestry or any(
            "forward" in member.methods for member in self.module.family(class_)
        )

    def untracked(self, node: cst.CSTNode) -> bool:
        """Whether no gradient can flow through `node`: under `no_grad`, in a data set, in an autograd function."""
        inner = node
        for ancestor in self.module.ancestors(node):
            if type(ancestor) not in _DECIDING:
                inner = ancestor
                continue
            if isinstance(ancestor, cst.With) and any(self._stops(item.item) for item in ancestor.items):
                return True
            if isinstance(ancestor, (cst.If, cst.IfExp)) and inner is not ancestor.test:
                if _only_evaluated(ancestor.test)[inner is not ancestor.body]:
                    return True
            elif isinstance(ancestor, cst.IndentedBlock) and _after_training(ancestor, inner):
                return True
            inner = ancestor
            if isinstance(ancestor, cst.FunctionDef) and self._not_tracked(ancestor):
                return True
        class_ = self.module.enclosing_class(node)
        return class_ is not None and self._untracked_class(class_)

    def _not_tracked(self, function: cst.FunctionDef) -> bool:
        """Whether a function is decorated so, or its name, its parameters or all its callers in the file say so."""
        key = id(function)
        if key not in self._tracked:
            self._tracked[key] = True
            self._tracked[key] = not self._evidently_not_tracked(function)
        return not self._tracked[key]

    def _evidently_not_tracked(self, function: cst.FunctionDef) -> bool:
        if any(self._stops(item.decorator) for item in function.decorators):
            return True
        # What a search for sequences calls, though it is a method of the layer.
        if function.name.value.endswith(self.facts.untracked_methods):
            return True
        scope = self.module.inner_scope(function)
        class_ = self.module.enclosing_class_of_scope(scope.outer if scope is not None else None)
        if class_ is not None:
            return not self.is_layer(class_) and self._untracked_name(function)
        if self._untracked_name(function):
            return True
        if scope is None or scope.outer is not self.module.scope:
            return False
        self.module.look_for(function.name.value)
        callers = list(self.module.calls_to(f"@.{function.name.value}"))
        return bool(callers) and all(self.untracked(call.node) for call in callers)

    def called_untracked(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in a private function that is nowhere in the file but called, each time where no
        gradient flows."""
        function = self.module.enclosing_function(node)
        while function is not None and (outer := self.module.enclosing_function(function)) is not None:
            function = outer
        name = function.name.value if function is not None else ""
        if not name.startswith("_") or name.endswith("__") or id(function) in self._busy:
            return False
        self.module.look_for(name)
        callers = [call for call in self.module.calls if names.dotted(call.node.func).rpartition(".")[2] == name]
        written = _rows_with(name, self.module.text)
        self._busy.add(id(function))
        found = all(self.untracked(call.node) or self.called_untracked(call.node) for call in callers)
        self._busy.discard(id(function))
        return found and 0 < len(callers) == written

    def _untracked_name(self, function: cst.FunctionDef) -> bool:
        name = function.name.value
        words = name.strip("_").split("_")
        if name in self.facts.untracked_functions or words[0] in self.facts.untracked_functions:
            return True
        if words[-1] in ("postprocess", "preprocess"):
            return True
        parameters = {param.name.value for param in function.params.params}
        return not parameters.isdisjoint(self.facts.untracked_parameters)

    def _untracked_class(self, class_: Class) -> bool:
        layer = self.is_layer(class_)
        every = [class_.name]
        for relative in self.module.family(class_):
            every += self.module.base_names(relative)
        if not set(every).isdisjoint(self.facts.untracked_bases):
            return True
        words = {word for name in every for word in _CAMEL.findall(name.rpartition(".")[2])}
        return not layer and not words.isdisjoint(self.facts.untracked_words)

    def _stops(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is `torch.no_grad()` or one of its kin."""
        function = node.func if isinstance(node, cst.Call) else node
        resolved = self.module.resolve(function)
        if any(name in self.facts.no_grad for name in resolved):
            if isinstance(node, cst.Call) and node.args:
                return self.module.value(node.args[0].value).constant is not False
            return True
        if isinstance(node, cst.Call) and node.args and any(name.endswith("set_grad_enabled") for name in resolved):
            value = self.module.value(node.args[0].value)
            return value.known and value.constant is False
        return False


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


def _branches(choice: cst.If) -> list[cst.CSTNode]:
    """The blocks of an `if`, and of no `else` where it has none."""
    found: list[cst.CSTNode] = [choice.body]
    rest = choice.orelse
    while isinstance(rest, cst.If):
        found.append(rest.body)
        rest = rest.orelse
    return [*found, rest.body if rest is not None else choice]


def _only_evaluated(test: cst.BaseExpression) -> tuple[bool, bool]:
    """Whether what runs where `test` holds, and where it does not, runs in evaluation only, as `not self.training`."""
    if isinstance(test, cst.Attribute) and test.attr.value == "training":
        return (False, True)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        holds, fails = _only_evaluated(test.expression)
        return (fails, holds)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        wanted = test.comparisons[0].comparator
        same = isinstance(test.comparisons[0].operator, (cst.Is, cst.Equal))
        if same and isinstance(wanted, cst.Name) and wanted.value in ("True", "False"):
            holds, fails = _only_evaluated(test.left)
            return (holds, fails) if wanted.value == "True" else (fails, holds)
    if isinstance(test, cst.BooleanOperation):
        left, right = _only_evaluated(test.left), _only_evaluated(test.right)
        both = isinstance(test.operator, cst.And)
        return ((left[0] or right[0], left[1] and right[1]), (left[0] and right[0], left[1] or right[1]))[not both]
    return (False, False)


def _after_training(block: cst.IndentedBlock, statement: cst.CSTNode) -> bool:
    """Whether `statement` stands in `block` behind an `if self.training:` that leaves the function."""
    for before in block.body:
        if before is statement:
            return False
        if isinstance(before, cst.If) and _only_evaluated(before.test)[1]:
            last = before.body.body[-1]
            small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
            if isinstance(small, (cst.Return, cst.Raise)):
                return True
    return False


def _rows_with(name: str, text: str) -> int:
    """In how many rows `name` stands, but for its definition and comments."""
    rows = set()
    for match in re.finditer(rf"\b{name}\b", text):
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[start : match.start()]
        if "#" not in before and not before.endswith("def "):
            rows.add(start)
    return len(rows)
