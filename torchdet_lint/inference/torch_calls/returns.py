"""A function of torch or a method of a tensor, and its call -> the abstract value of what it returns."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.inference.abstract_values import (
    OTHER,
    SIZES,
    TENSOR,
    UNKNOWN,
    AbstractValue,
    arithmetic,
    either,
    joined,
)
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.torch_calls.arguments import TorchArguments
from torchdet_lint.inference.torch_calls.creation import Creation, type_of
from torchdet_lint.inference.torch_calls.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.inference.abstract_values import Gradient
    from torchdet_lint.module.module import Call, Module
# A reduction takes the dimension, and behind that whether it is kept.
_REDUCES = 1


class TorchReturns:
    """What calls of torch give; `infer` gives the abstract value of an expression."""

    def __init__(self, module: Module, infer: Callable[[cst.BaseExpression], AbstractValue]) -> None:
        self.module = module
        self.infer = infer
        self.facts = module.library.facts.tensors
        self.gradients = module.shared(Gradients)
        self.arguments = TorchArguments(module, infer)
        self.shapes = Shapes(module, self.arguments)
        self.creation = Creation(module, self.arguments, self.shapes)

    def function(self, name: str, call: Call) -> AbstractValue:
        """What the function `name` of torch gives."""
        if name in self.facts.no_tensor:
            return OTHER
        positional = call.arguments.positional
        if name in self.facts.joining:
            return self._collected(name, call)
        if name in self.facts.adopting:
            array = self.arguments.kind_of(call, 0)
            return AbstractValue(
                "tensor", device="cpu", gradient="no", distinct=array.distinct, overlapping=array.overlapping
            )
        if name in self.facts.creation:
            return self.creation.created(name, call)
        if name in self.facts.looking_up:
            return self._looked_up(call)
        if name == "where" and len(positional) == 1:
            index = AbstractValue(what="tensor", dtype="integer", gradient="no", distinct=True)
            return AbstractValue(what="other", items=(), each=index)
        if name == "where":
            options = [self.infer(value.node) for value in positional[1:3]]
            found = arithmetic(options[0], options[1], cst.Add()) if len(options) == 2 else TENSOR
            return replace(found, what="tensor", dims=None)
        return self._applied(name, self.arguments.kind_of(call, 0), call)

    def method(self, owner: AbstractValue, call: Call) -> AbstractValue:
        """What a method of the tensor `owner` gives."""
        name = call.attribute
        if name in self.facts.scalar or name.startswith("is_"):
            return SIZES if name == "size" and not call.node.args else OTHER
        if name == "new":
            return AbstractValue(what="tensor", device=owner.device, gradient="no")
        return self._applied(name, owner, call)

    def _applied(self, name: str, first: AbstractValue, call: Call) -> AbstractValue:
        """A function of the tensor `first`, called as a function or as a method."""
        gradient = self._gradient_of(name, first, call)
        base = AbstractValue(what="tensor", dtype=first.dtype, device=first.device, gradient=gradient)
        if name in self.facts.like:
            dtype = self.arguments.dtype(call)
            return replace(
                base,
                dtype=dtype or first.dtype,
                gradient="no",
                device=self.arguments.device(call, first.device),
                dims=first.dims if name.endswith("_like") else self.shapes.dims(call, 0),
                single=first.single if name.endswith("_like") else frozenset(),
                whole=name in self.facts.ones_and_zeros,
            )
        if name in self.facts.indexed and self._has_dim(name, call):
            dims = first.dims if name in self.facts.rearranging else self._reduced(first.dims, call)
            index = AbstractValue(
                "tensor", "integer", first.device, "no", dims, self.shapes.kept(call),
                distinct=name in self.facts.distinct_indices, overlapping=first.dims != 1,
            )  # fmt: skip
            return AbstractValue(what="other", gradient=gradient, items=(replace(base, dims=dims), index))
        if name in ("unique", "unique_consecutive"):
            counts = AbstractValue(what="tensor", dtype="integer", gradient="no", device=first.device, dims=1)
            once = replace(base, distinct=name == "unique", dims=1)
            several = bool(call.arguments.keywords)
            return AbstractValue(what="other", gradient=gradient, items=(once, counts, counts)) if several else once
        if name in self.facts.several:
            return AbstractValue(what="other", gradient=gradient, each=base)
        bare = name.rstrip("_")
        dtype = self.arguments.dtype(call) or type_of(name, bare, self.facts)
        if dtype is not None:
            base = replace(base, dtype=dtype)
        elif first.is_integral and bare in self.facts.retyping:
            base = replace(base, dtype="integer" if bare in self.facts.adding_up else "unknown")
        if base.is_integral:
            base = replace(base, gradient="no")
        return self.shapes.shaped(bare, base, first, call)

    def _reduced(self, dims: int | None, call: Call) -> int | None:
        """The dimensions that a reduction leaves of `dims`, unless it is told to keep the one that it reduces."""
        keep = call.arguments.keywords.get("keepdim")
        if keep is None and len(call.arguments.positional) <= _REDUCES + (not self.arguments.is_method(call)):
            return dims - 1 if dims else None
        return dims if keep is not None and keep.constant is True else None

    def _looked_up(self, call: Call) -> AbstractValue:
        """The rows that an index takes of a table: `torch.embedding` has them in the other order."""
        first, second = self.arguments.kind_of(call, 0), self.arguments.kind_of(call, 1, "weight")
        table = first if second.is_integral and not first.is_integral else second
        gradient = "no" if self.gradients.untracked(call.node) else table.gradient
        return AbstractValue(what="tensor", dtype=table.dtype, device=table.device, gradient=gradient)

    def _gradient_of(self, name: str, first: AbstractValue, call: Call) -> Gradient:
        if name in self.facts.untracked or self.gradients.untracked(call.node):
            return "no"
        if name == "requires_grad_":
            asked = call.argument("requires_grad", ("requires_grad",))
            return "no" if asked is not None and asked.constant is False else "yes"
        if name in self.facts.own_gradient:
            return first.gradient
        others: list[Gradient] = []
        for inferred in itertools.chain((first,), (self.infer(value.node) for value in call.arguments.positional)):
            if inferred.gradient == "yes" and not inferred.is_integral:
                return "yes"
            if inferred is not first and inferred.what != "other":
                others.append(inferred.gradient)
        if first.gradient == "no" and (first.is_integral or all(gradient == "no" for gradient in others)):
            return "no"
        return "unknown" if others else first.gradient

    def _has_dim(self, name: str, call: Call) -> bool:
        if name in self.facts.always_indexed:
            return True
        arguments = call.arguments
        if "dim" in arguments.keywords or "axis" in arguments.keywords:
            return True
        offset = 0 if self.arguments.is_method(call) else 1
        if len(arguments.positional) <= offset:
            return False
        return not self.infer(arguments.positional[offset].node).is_tensor

    def _collected(self, name: str, call: Call) -> AbstractValue:
        parts = self.arguments.kind_of(call, 0, "tensors")
        if name == "einsum":
            every = [self.infer(value.node) for value in call.arguments.positional[1:]]
            gradient: Gradient = "unknown"
            for inferred in every:
                gradient = either(gradient, inferred.gradient) if inferred.gradient == "yes" else gradient
            return AbstractValue(what="tensor", gradient=gradient)
        each = parts.each or (joined(parts.items) if parts.items else UNKNOWN)
        gradients = [inferred.gradient for inferred in parts.items] or [each.gradient]
        gradient = "yes" if "yes" in gradients else each.gradient
        dims = each.dims
        if name == "stack" and dims is not None:
            dims += 1
        if name not in ("stack", "cat", "concat", "concatenate"):
            dims = None
        return AbstractValue(
            "tensor", each.dtype, each.device, gradient, dims, distinct=parts.distinct and name != "stack"
        )
