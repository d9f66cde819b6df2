"""What the functions and methods of torch return."""

from __future__ import annotations

import itertools
import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.catalogue.conditions import matches
from torchdet_lint.inference import devices
from torchdet_lint.inference.abstract_values import OTHER, SIZES, TENSOR, UNKNOWN, Kind, arithmetic, either, joined
from torchdet_lint.inference.gradients import Gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.inference.abstract_values import Device, Dtype, Gradient
    from torchdet_lint.module.module import Call, Module, Value

_KEEP_VALUES = frozenset(
    """clone contiguous cpu cuda to long int float half double type type_as view reshape flatten unsqueeze squeeze
    expand expand_as repeat permute transpose t detach flip""".split()
)
# What chooses or adds up whole numbers gives whole numbers, and what rounds does.
_CHOOSING = frozenset("repeat_interleave index_select gather masked_select roll narrow sum abs neg".split())
_ROUNDING = frozenset("floor ceil round sign trunc".split())
# What their arguments are makes no difference to the gradient.
_OWN = frozenset(
    """to type type_as view view_as reshape reshape_as expand expand_as repeat permute transpose flatten unsqueeze
    squeeze float double half bfloat16 contiguous clone cuda cpu roll flip narrow repeat_interleave unflatten
    movedim""".split()
)


def _with_values(kind: Kind, source: Kind) -> Kind:
    """`kind`, with what is known of the values of `source`."""
    return replace(
        kind,
        distinct=source.distinct,
        overlapping=source.overlapping,
        rising=source.rising,
        extent=source.extent,
        step=source.step,
    )


class TorchReturns:
    """What calls of torch give; `kind` tells of their arguments."""

    def __init__(self, module: Module, kind: Callable[[cst.BaseExpression], Kind]) -> None:
        self.module = module
        self.kind = kind
        self.facts = module.library.facts.tensors
        self.gradients = module.shared(Gradients)

    def function(self, name: str, call: Call) -> Kind:
        """What the function `name` of torch gives."""
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
            found = arithmetic(options[0], options[1], cst.Add()) if len(options) == 2 else TENSOR
            return replace(found, what="tensor", dims=None)
        return self._applied(name, self.argument_kind(call, 0), call)

    def method(self, owner: Kind, call: Call) -> Kind:
        """What a method of the tensor `owner` gives."""
        name = call.attribute
        if name in self.facts.scalar or name.startswith("is_"):
            return SIZES if name == "size" and not call.node.args else OTHER
        if name == "new":
            return Kind(what="tensor", device=owner.device, gradient="no")
        return self._applied(name, owner, call)

    def argument_kind(self, call: Call, position: int, keyword: str = "input") -> Kind:
        """The kind of the argument at `position`, or of the one called `keyword`."""
        arguments = call.arguments
        if keyword in arguments.keywords:
            return self.kind(arguments.keywords[keyword].node)
        if position < len(arguments.positional):
            return self.kind(arguments.positional[position].node)
        return UNKNOWN

    def _applied(self, name: str, first: Kind, call: Call) -> Kind:
        """A function of the tensor `first`, called as a function or as a method."""
        gradient = self._gradient_of(name, first, call)
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
                "tensor", "integer", first.device, "no", first.dims, self._kept(call),
                distinct=name in ("sort", "topk"), overlapping=first.dims != 1,
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
        elif bare not in ("clone", "abs", "relu") and first.is_integral and self._changes(bare):
            base = replace(base, dtype="integer" if bare in ("sum", "prod", "cumsum", "cumprod") else "unknown")
        if base.is_integral:
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
        return bare in casts and first.is_integral

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
            if candidate in self.facts.integer:
                return "integer"
            if candidate in self.facts.boolean:
                return "bool"
            if candidate in self.facts.floating:
                return "floating"
        return None

    def _gradient_of(self, name: str, first: Kind, call: Call) -> Gradient:
        if name in self.facts.untracked or self.gradients.untracked(call.node):
            return "no"
        if name == "requires_grad_":
            return "yes"
        if name in _OWN:
            return first.gradient
        others: list[Gradient] = []
        for kind in itertools.chain((first,), (self.kind(value.node) for value in call.arguments.positional)):
            if kind.gradient == "yes" and not kind.is_integral:
                return "yes"
            if kind is not first and kind.what != "other":
                others.append(kind.gradient)
        if first.gradient == "no" and (first.is_integral or all(gradient == "no" for gradient in others)):
            return "no"
        return "unknown" if others else first.gradient

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
            node = devices.choices(self.module, followed.node)[0]
        for name in self.module.resolve(node):
            owner, _, last = name.rpartition(".")
            if owner in ("torch", "builtins", "numpy"):
                found = self.facts.dtypes.get(last)
                return found if found in ("integer", "bool", "floating") else None  # type: ignore[return-value]
        if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return self.kind(node.value).dtype
        return None if "dtype" not in keywords and devices.names_a_device(self.module, node) else "unknown"

    def _device_argument(self, call: Call, default: Device) -> Device:
        value = call.arguments.keywords.get("device")
        return devices.named_device(self.module, value.node) if value is not None else default

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
        elif name in ("randint", "tensor", "as_tensor", "normal", "from_numpy"):
            dims = self._literal_dims(call) if name in ("tensor", "as_tensor") else None
        made = Kind(
            "tensor", dtype or "unknown", device, gradient, dims, sparse=name.startswith("sparse"),
            whole=name in ("zeros", "ones", "eye"),
        )  # fmt: skip
        if name in ("arange", "randperm"):
            values = call.arguments.positional
            counted = len(values) == 1 and "end" not in call.arguments.keywords
            return replace(
                made,
                distinct=True,
                rising=name == "arange",
                extent=self.module.code(values[0].node) if counted else "",
            )
        if name in ("tensor", "as_tensor"):
            data = self.argument_kind(call, 0, "data")
            single = frozenset({0}) if dims is None and len(data.items) == 1 else frozenset[int]()
            return replace(made, distinct=data.distinct, dims=1 if single else dims, single=single)
        if name == "full":
            sizes = call.arguments.positional[:1]
            elements = self.module.elements(sizes[0].node, sizes[0].scope, sizes[0].order) if sizes else None
            made = replace(made, dims=len(elements) if elements is not None else None)
            return replace(made, single=self._ones(sizes, made.dims))
        return replace(made, single=self._ones(call.arguments.positional, dims))

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
        parts = self.argument_kind(call, 0, "tensors")
        if name == "einsum":
            every = [self.kind(value.node) for value in call.arguments.positional[1:]]
            gradient: Gradient = "unknown"
            for kind in every:
                gradient = either(gradient, kind.gradient) if kind.gradient == "yes" else gradient
            return Kind(what="tensor", gradient=gradient)
        each = parts.each or (joined(parts.items) if parts.items else UNKNOWN)
        gradients = [kind.gradient for kind in parts.items] or [each.gradient]
        gradient = "yes" if "yes" in gradients else each.gradient
        dims = each.dims
        if name == "stack" and dims is not None:
            dims += 1
        if name not in ("stack", "cat", "concat", "concatenate"):
            dims = None
        return Kind("tensor", each.dtype, each.device, gradient, dims, distinct=parts.distinct and name != "stack")

    # ------------------------------------------------------------------ shapes

    def _shape_dims(self, call: Call, skip: int) -> int | None:
        """The number of dimensions of a shape given as `(2, 3)` or as `2, 3`."""
        values = call.arguments.positional[skip:]
        if "size" in call.arguments.keywords and not values:
            values = (call.arguments.keywords["size"],)
        if call.opaque or not values:
            return None
        if len(values) > 1:
            # Behind a shape in one piece stands something else, as in `full((2, 3), 1)`.
            return None if self.kind(values[0].node).each else len(values)
        elements = self.module.elements(values[0].node, values[0].scope, values[0].order)
        if elements is not None:
            return len(elements)
        return 1 if isinstance(values[0].constant, int) else None

    def _valued(self, bare: str, base: Kind, first: Kind) -> Kind:
        """`base`, with what holds of the values."""
        if bare in _KEEP_VALUES:
            return replace(_with_values(base, first), whole=first.whole or self._cast(bare, first))
        if bare in ("argsort", "nonzero", "argwhere", "unique"):
            return replace(base, distinct=True, overlapping=bare == "argsort" and first.dims != 1)
        if bare in _CHOOSING or bare in _ROUNDING:
            return replace(base, whole=first.whole or bare in _ROUNDING)
        return replace(base, rising=bare == "cumsum" or first.rising) if bare in ("cumsum", "pad") else base

    def _shaped(self, bare: str, base: Kind, first: Kind, call: Call) -> Kind:
        skip = 0 if self._is_method(call) else 1
        base = self._valued(bare, base, first)
        if bare in ("view", "reshape"):
            dims = self._shape_dims(call, skip)
            base = replace(base, distinct=base.distinct and not (base.overlapping and dims == 1))
            return replace(base, dims=dims, single=self._ones(call.arguments.positional[skip:], dims))
        if bare == "expand" and (kept_sizes := self._grown_at_the_end(first, call, skip)) is not None:
            return replace(base, dims=first.dims, single=kept_sizes)
        if bare in ("expand", "repeat"):
            kept = 1 if bare == "repeat" else -1
            sizes = [self._size(value) for value in call.arguments.positional[skip:]]
            if bare == "expand" and len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
                sizes = list(sizes[0])
            before = {size + len(sizes) if size < 0 else size for size in first.single}
            same = {position for position in before if 0 <= position < len(sizes) and sizes[position] == kept}
            if bare == "expand":
                same |= {position for position, size in enumerate(sizes) if size == 1}
            dims = self._shape_dims(call, skip)
            alike = bare == "repeat" and first.dims == len(sizes) == 1 and not isinstance(sizes[0], (tuple, list))
            base = replace(base, distinct=base.distinct and not alike, overlapping=True)
            return replace(base, dims=dims, single=frozenset(same))
        if bare in ("permute", "new_zeros", "tile"):
            return replace(base, dims=self._shape_dims(call, skip))
        if bare in ("flatten", "ravel"):
            plain = len(call.arguments.positional) == skip and not call.arguments.keywords
            flat = plain or bare == "ravel"
            return replace(base, dims=1 if flat else None, distinct=base.distinct and not (flat and base.overlapping))
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

    def _ones(self, values: Sequence[Value], dims: int | None) -> frozenset[int]:
        """The dimensions of size 1 of a shape; at most the last where not all of the shape is in sight."""
        sizes = [self._size(value) for value in values]
        if len(values) == 1 and (elements := self.module.elements(values[0].node, values[0].scope, values[0].order)):
            sizes = [self.module.value(element).constant for element in elements]
        last = frozenset({-1}) if len(sizes) > 1 and matches(sizes[-1], 1) else frozenset[int]()
        if dims is None or dims != len(sizes):
            return last
        first = sizes[:-1] if len(sizes) > 1 else sizes
        return last | {place for place, size in enumerate(first) if matches(size, 1)}

    @staticmethod
    def _size(value: Value) -> object:
        """A size that is written down; what an object was made with is not looked up for it."""
        return value.constant if not isinstance(value.node, cst.Attribute) else None

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
        if not any(matches(constant, [-1]) for constant in constants) or not isinstance(last, cst.Tuple):
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
        return devices.named_device(self.module, target.node)
