"""A call of torch and the tensor that it works on -> the dimensions of the result, and what holds of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.catalogue.conditions import matches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.inference.abstract_values import AbstractValue
    from torchdet_lint.inference.torch_calls.arguments import TorchArguments
    from torchdet_lint.module.module import Call, Module, Value

# A size is worked out from so many numbers.
_OPERANDS = 8
_COUNTS = frozenset({"builtins.len", "builtins.int"})
# The parameters of `interpolate`, in order.
RESAMPLES = ("input", "size", "scale_factor", "mode")


def _with_values(inferred: AbstractValue, source: AbstractValue) -> AbstractValue:
    """`inferred`, with what is known of the values of `source`."""
    return replace(
        inferred,
        distinct=source.distinct,
        overlapping=source.overlapping,
        rising=source.rising,
        extent=source.extent,
        step=source.step,
    )


def resampled_dims(call: Call, modes: Mapping[str, int]) -> int | None:
    """How many dimensions a call that resamples takes, and gives, by its mode: `interpolate(x, mode="bilinear")`."""
    mode = call.argument("mode", RESAMPLES)
    return modes.get(str(mode.constant)) if mode is not None else None


class Shapes:
    """The shapes that calls of torch in one file give their results."""

    def __init__(self, module: Module, arguments: TorchArguments) -> None:
        self.module = module
        self.arguments = arguments

    def shaped(self, bare: str, base: AbstractValue, first: AbstractValue, call: Call) -> AbstractValue:
        """`base`, with the dimensions and the values that the op `bare` makes of those of `first`."""
        skip = 0 if self.arguments.is_method(call) else 1
        base = self._valued(bare, base, first)
        if bare in ("view", "reshape"):
            dims = self.dims(call, skip)
            merged = base.overlapping and self._merges_rows(first, dims, call.arguments.positional[skip:])
            base = replace(base, distinct=base.distinct and not merged)
            return replace(base, dims=dims, single=self.ones(call.arguments.positional[skip:], dims))
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
            dims = self.dims(call, skip)
            alike = bare == "repeat" and first.dims == len(sizes) == 1 and not isinstance(sizes[0], (tuple, list))
            base = replace(base, distinct=base.distinct and not alike, overlapping=True)
            return replace(base, dims=dims, single=frozenset(same))
        if bare in ("permute", "new_zeros", "tile"):
            return replace(base, dims=self.dims(call, skip))
        if bare in ("flatten", "ravel"):
            plain = len(call.arguments.positional) == skip and not call.arguments.keywords
            flat = plain or bare == "ravel"
            dims = 1 if flat else self._flattened_from(call, skip)
            return replace(base, dims=dims, distinct=base.distinct and not (flat and base.overlapping))
        if bare == "unsqueeze":
            position = call.argument("dim", ("dim",) if skip == 0 else ("input", "dim"))
            at = position.constant if position is not None else None
            dims = first.dims + 1 if first.dims is not None else None
            base = replace(base, sparse=first.sparse)
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

    def _merges_rows(self, first: AbstractValue, dims: int | None, sizes: Sequence[Value]) -> bool:
        """Whether a shape of `sizes` evidently makes one row of several of `first`: the last size that is not 1 is a
        product, `x.view(b, n * k, 1)`, or what is left, of fewer dimensions."""
        elements = self.module.elements(sizes[0].node, sizes[0].scope, sizes[0].order) if len(sizes) == 1 else None
        nodes = elements if elements is not None else [size.node for size in sizes]
        longer = [node for node in nodes if not matches(self.module.value(node).constant, 1)]
        if dims == 1 or not longer:
            return dims == 1
        last = longer[-1]
        if isinstance(last, cst.BinaryOperation) and isinstance(last.operator, cst.Multiply):
            return True
        fewer = dims is not None and first.dims is not None and dims < first.dims
        return fewer and matches(self.module.value(last).constant, -1)

    def dims(self, call: Call, skip: int) -> int | None:
        """The number of dimensions of a shape given as `(2, 3)` or as `2, 3`."""
        values = call.arguments.positional[skip:]
        if "size" in call.arguments.keywords and not values:
            values = (call.arguments.keywords["size"],)
        if call.opaque or not values:
            return None
        if len(values) > 1:
            # Behind a shape in one piece stands something else, as in `full((2, 3), 1)`.
            return None if self.arguments.infer(values[0].node).each else len(values)
        elements = self.module.elements(values[0].node, values[0].scope, values[0].order)
        if elements is not None:
            return len(elements)
        return 1 if isinstance(values[0].constant, int) or self._is_count(values[0]) else None

    def _is_count(self, value: Value) -> bool:
        """Whether `value` is evidently one number, whichever it is: a length, a size, a parameter that says so."""
        left = [(value.node, value.scope, value.order)]
        for _ in range(_OPERANDS):
            if not left:
                return True
            node, scope, order = left.pop()
            followed = self.module.followed(node, scope, order)
            if followed is not None:
                node, scope, order = followed.node, followed.scope, followed.order
            if isinstance(node, cst.BinaryOperation):
                # What a number is added to is one: nothing else that is a size takes it.
                added = isinstance(node.operator, (cst.Add, cst.Subtract))
                if not added or not (isinstance(node.left, cst.Integer) or isinstance(node.right, cst.Integer)):
                    left += [(node.left, scope, order), (node.right, scope, order)]
            elif isinstance(node, cst.Name):
                home = scope.home(node.value)
                bindings = home.bindings[node.value] if home is not None else ()
                param = bindings[0].node if len(bindings) == 1 else None
                annotation = param.annotation if isinstance(param, cst.Param) else None
                if annotation is None or self.module.code(annotation.annotation) != "int":
                    return False
            elif not self._is_size(node):
                return False
        return False

    def _is_size(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is a number in the source, a length, or the size of one dimension."""
        if isinstance(node, cst.Call):
            bare = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
            if bare == "size":
                return len(node.args) == 1
            return bare in ("numel", "dim") or not _COUNTS.isdisjoint(self.module.resolve(node.func))
        if isinstance(node, cst.Subscript):
            one = node.slice[0].slice
            shape = isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"
            return shape and len(node.slice) == 1 and isinstance(one, cst.Index)
        return isinstance(node, cst.Integer)

    def ones(self, values: Sequence[Value], dims: int | None) -> frozenset[int]:
        """The dimensions of size 1 of a shape; at most the last where not all of the shape is in sight."""
        sizes = [self._size(value) for value in values]
        if len(values) == 1 and (elements := self.module.elements(values[0].node, values[0].scope, values[0].order)):
            sizes = [self.module.value(element).constant for element in elements]
        last = frozenset({-1}) if len(sizes) > 1 and matches(sizes[-1], 1) else frozenset[int]()
        if dims is None or dims != len(sizes):
            return last
        first = sizes[:-1] if len(sizes) > 1 else sizes
        return last | {place for place, size in enumerate(first) if matches(size, 1)}

    def kept(self, call: Call) -> frozenset[int]:
        """The dimension that a reduction keeps with size 1, by `keepdim=True`."""
        keep = call.arguments.keywords.get("keepdim")
        at = call.arguments.keywords.get("dim")
        positional = call.arguments.positional
        if at is None and positional:
            at = positional[0 if self.arguments.is_method(call) or len(positional) == 1 else 1]
        where = at.constant if at is not None else None
        return (
            frozenset({where}) if keep is not None and keep.constant is True and isinstance(where, int) else frozenset()
        )

    def _valued(self, bare: str, base: AbstractValue, first: AbstractValue) -> AbstractValue:
        """`base`, with what holds of the values."""
        if bare in self.arguments.facts.keeping_values:
            return replace(_with_values(base, first), whole=first.whole or self._cast(bare, first))
        if bare in self.arguments.facts.finding_places:
            return replace(base, distinct=True, overlapping=bare == "argsort" and first.dims != 1)
        if bare in self.arguments.facts.choosing or bare in self.arguments.facts.rounding:
            return replace(base, whole=first.whole or bare in self.arguments.facts.rounding)
        return replace(base, rising=bare == "cumsum" or first.rising) if bare in ("cumsum", "pad") else base

    @staticmethod
    def _size(value: Value) -> object:
        """A size that is written down; what an object was made with is not looked up for it."""
        return value.constant if not isinstance(value.node, cst.Attribute) else None

    def _grown_at_the_end(self, first: AbstractValue, call: Call, skip: int) -> frozenset[int] | None:
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

    @staticmethod
    def _flattened_from(call: Call, skip: int) -> int | None:
        """How many dimensions are left of a tensor of which all from one on are made one: `x.flatten(1)`."""
        names = ("input", "start_dim", "end_dim")[1 - skip :]
        start, end = call.argument("start_dim", names), call.argument("end_dim", names)
        first = start.constant if start is not None else 0
        last = end.constant if end is not None else -1
        return first + 1 if last == -1 and isinstance(first, int) and first >= 0 else None

    def _resized(self, bare: str, base: AbstractValue, first: AbstractValue, call: Call) -> AbstractValue:
        facts = self.arguments.facts
        if bare in ("argmax", "argmin"):
            return replace(base, single=self.kept(call))
        if bare == "multinomial":
            drawn = call.argument(
                "num_samples", ("num_samples",) if self.arguments.is_method(call) else ("input", "num_samples")
            )
            one = drawn is not None and matches(drawn.constant, 1)
            return replace(base, dims=first.dims, single=frozenset({-1}) if one else frozenset())
        if bare == "gather":
            names = ("dim", "index") if self.arguments.is_method(call) else ("input", "dim", "index")
            index = call.argument("index", names)
            asked = self.arguments.infer(index.node) if index is not None else None
            return replace(base, dims=asked.dims, single=asked.single) if asked is not None else base
        if bare in facts.reducing:
            return base
        if bare in facts.flattening:
            return replace(base, dims=1)
        if bare in facts.resampling:
            dims = resampled_dims(call, facts.modes)
            return replace(base, dims=dims if dims is not None else first.dims)
        if bare == "to_sparse":
            return replace(base, sparse=True, dims=first.dims)
        if bare in ("cpu", "cuda", "to"):
            device = self.arguments.moved(bare, first, call)
            return replace(base, dims=first.dims, single=first.single, device=device, sparse=first.sparse)
        if bare in facts.keeping_sizes:
            base = replace(base, single=first.single)
        return replace(base, dims=first.dims, sparse=first.sparse and bare in facts.keeping_sparse)

    def _cast(self, bare: str, first: AbstractValue) -> bool:
        """Whether an op makes floating-point numbers of whole ones."""
        return bare in self.arguments.facts.floating_casts and first.is_integral
