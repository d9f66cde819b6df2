"""A call that makes a tensor, as `zeros`, `arange` and `tensor` do -> the tensor."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchdet_lint.inference.abstract_values import AbstractValue

if TYPE_CHECKING:
    from torchdet_lint.catalogue.facts import Tensors
    from torchdet_lint.inference.abstract_values import Device, Dtype, Gradient
    from torchdet_lint.inference.torch_calls.arguments import TorchArguments
    from torchdet_lint.inference.torch_calls.shapes import Shapes
    from torchdet_lint.module.module import Call, Module


class Creation:
    """The tensors that one file makes."""

    def __init__(self, module: Module, arguments: TorchArguments, shapes: Shapes) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self.arguments = arguments
        self.shapes = shapes

    def created(self, name: str, call: Call) -> AbstractValue:
        """What the function `name` of torch makes."""
        dtype = self.arguments.dtype(call)
        if dtype is None:
            dtype = type_of(name, name, self.facts)
        if dtype is None and name in self.facts.floating_by_default:
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
        device = self.arguments.device(call, self._usual_device(name, call))
        dims = self.shapes.dims(call, 0)
        if name in self.facts.vectors:
            dims = 1
        elif name in ("randint", "normal"):
            return AbstractValue("tensor", dtype or "unknown", device, gradient, *self._sized(call))
        elif name in ("tensor", "as_tensor", "from_numpy"):
            dims = self._literal_dims(call) if name != "from_numpy" else None
        made = AbstractValue(
            "tensor", dtype or "unknown", device, gradient, dims, sparse=name.startswith("sparse"),
            whole=name in self.facts.ones_and_zeros,
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
            data = self.arguments.kind_of(call, 0, "data")
            single = frozenset({0}) if dims is None and len(data.items) == 1 else frozenset[int]()
            distinct = data.distinct or all_different(call)
            return replace(made, distinct=distinct, dims=1 if single else dims, single=single)
        if name == "full":
            sizes = call.arguments.positional[:1]
            elements = self.module.elements(sizes[0].node, sizes[0].scope, sizes[0].order) if sizes else None
            made = replace(made, dims=len(elements) if elements is not None else None)
            return replace(made, single=self.shapes.ones(sizes, made.dims))
        return replace(made, single=self.shapes.ones(call.arguments.positional, dims))

    def _sized(self, call: Call) -> tuple[int | None, frozenset[int]]:
        """The dimensions, and those of size 1, of what takes its shape last: `randint(0, 10, (4, 1))`."""
        size = call.arguments.keywords.get("size") or next(iter(call.arguments.positional[1:][-1:]), None)
        elements = self.module.elements(size.node, size.scope, size.order) if size is not None else None
        if size is None or elements is None:
            return None, frozenset()
        return len(elements), self.shapes.ones([size], len(elements))

    def _usual_device(self, name: str, call: Call) -> Device:
        """Where a tensor is made for which no device is named: a sparse one where its values are."""
        if self._default_device_set or name == "as_tensor":
            return "unknown"
        place = self.facts.sparse_values.get(name)
        if place is None:
            return "cpu"
        values = self.arguments.kind_of(call, place, "values")
        return "cpu" if values.what == "other" else values.device

    @cached_property
    def _default_device_set(self) -> bool:
        text = self.module.text
        return "set_default_" in text and re.search(r"\bset_default_(?:device|tensor_type)\b", text) is not None

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


def all_different(call: Call) -> bool:
    """Whether the numbers of a list that is written down are all different."""
    values = call.arguments.positional
    numbers = values[0].constant if values and values[0].known else None
    if not isinstance(numbers, (list, tuple)) or not all(isinstance(number, int) for number in numbers):
        return False
    return 0 < len(numbers) == len(set(numbers)) and (min(numbers) >= 0 or len(numbers) == 1)


def type_of(name: str, bare: str, facts: Tensors) -> Dtype | None:
    """The type that a function of torch gives whatever it is given, by its name with and without the underscore."""
    for candidate in (name, bare):
        if candidate in facts.integer:
            return "integer"
        if candidate in facts.boolean:
            return "bool"
        if candidate in facts.floating:
            return "floating"
    return None
