"""A type annotation -> what it says of a value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.inference.abstract_values import (
    EMPTY,
    FOREIGN,
    NONE,
    OTHER,
    PARAMETER,
    TENSOR,
    UNKNOWN,
    AbstractValue,
    joined,
)
from torchdet_lint.module import names
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.catalogue.facts import Tensors
    from torchdet_lint.module.module import Module

# A tensor as docstrings write it: `:param torch.Tensor x:`, `x (torch.Tensor): …`, `x : torch.Tensor`.
_DOCUMENTED = lazy(
    r"^[ \t]*:param[ \t]+(?:torch\.)?(\w*Tensor)[ \t]+(\w+)[ \t]*:"
    r"|^[ \t]*`*(\w+)`*[ \t]*\([ \t]*(?::class:)?[`~]*(?:torch\.)?(\w*Tensor)`*"
    r"(?=[ \t]*(?:\)|,[ \t]*optional|of shape))"
    r"|^[ \t]*(\w+)[ \t]*:[ \t]*(?:torch\.)?(\w*Tensor)[ \t]*(?:,[ \t]*optional)?[ \t]*$",
    re.MULTILINE,
)
_CONTAINERS = frozenset({"builtins.dict", "builtins.list", "builtins.tuple", "builtins.set"})


def instance_of(name: str, facts: Tensors) -> AbstractValue:
    """What an instance of the class of this qualified name is."""
    meaning = facts.annotations.get(name)
    if meaning is None and name.rpartition(".")[2] in ("Tensor", "FloatTensor", "LongTensor", "BoolTensor"):
        meaning = facts.annotations.get(f"torch.{name.rpartition('.')[2]}")
    if name in _CONTAINERS:
        return EMPTY
    if meaning == "other":
        return FOREIGN if name.startswith(("numpy.", "pandas.")) else OTHER
    if meaning == "parameter":
        return PARAMETER
    if meaning in ("integer", "bool"):
        return AbstractValue(what="tensor", dtype=meaning, gradient="no")  # type: ignore[arg-type]
    if meaning == "floating":
        return AbstractValue(what="tensor", dtype="floating")
    return TENSOR if meaning == "tensor" else UNKNOWN


# A text that is longer is no type; libcst's parser may exhaust the stack with it.
_LONGEST = 1000


class Annotations:
    """The abstract values that the annotations of one file name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self._instances: dict[str, AbstractValue] = {}
        self._documented: dict[int, dict[str, AbstractValue]] = {}

    def infer(self, node: cst.BaseExpression) -> AbstractValue:
        """What a value annotated with `node` is."""
        if isinstance(node, cst.SimpleString):
            text = node.evaluated_value
            if not isinstance(text, str) or len(text) > _LONGEST:
                return UNKNOWN
            try:
                node = cst.parse_expression(text)
            except cst.ParserSyntaxError:
                return UNKNOWN
            last = names.dotted(node).rpartition(".")[2]
            return instance_of(f"torch.{last}", self.facts) if last.endswith("Tensor") else UNKNOWN
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            return joined((self.infer(node.left), self.infer(node.right)))
        if isinstance(node, cst.Name) and node.value == "None":
            return NONE
        if isinstance(node, cst.Subscript):
            return self._generic(node)
        for name in self.module.resolve(node) or (names.dotted(node),):
            found = self.instance(name) if name.startswith("@.") else instance_of(name, self.facts)
            if found.what != "unknown":
                return found
        return UNKNOWN

    def documented(self, function: cst.FunctionDef, name: str) -> AbstractValue:
        """What the docstring of `function` says of its parameter `name`."""
        key = id(function)
        if key not in self._documented:
            text = function.get_docstring(clean=False) if "Tensor" in self.module.text else None
            matches = _DOCUMENTED.finditer(text) if text and "Tensor" in text else ()
            self._documented[key] = {
                match[2] or match[3] or match[5]: instance_of(f"torch.{match[1] or match[4] or match[6]}", self.facts)
                for match in matches
            }
        return self._documented[key].get(name, UNKNOWN)

    def instance(self, name: str) -> AbstractValue:
        """An instance of a class of the file: a named tuple with its fields, a tensor where it derives from one."""
        known = self._instances.get(name)
        if known is None:
            class_ = self.module.local_class(name)
            if class_ is None:
                return UNKNOWN
            self._instances[name] = known = AbstractValue(what="other", gradient="no", instance=name)
            ancestry = self.module.ancestry(name)
            if any(ancestor.endswith("Tensor") for ancestor in ancestry):
                known = TENSOR if "torch.Tensor" in ancestry else UNKNOWN
            elif "typing.NamedTuple" in ancestry:
                fields = tuple(self.infer(annotation) for _, annotation in self.module.fields(class_))
                known = replace(known, items=fields)
            self._instances[name] = known
        return known

    def _generic(self, node: cst.Subscript) -> AbstractValue:
        """`Optional[Tensor]`, `list[Tensor]`, `tuple[Tensor, int]`, `Float[Tensor, "b n"]`."""
        outer = names.dotted(node.value).rpartition(".")[2]
        inner = [self.infer(element.slice.value) for element in node.slice if isinstance(element.slice, cst.Index)]
        if not inner:
            return UNKNOWN
        if outer in ("Optional", "Union", "Annotated", "Final"):
            return joined(inner)
        if outer in ("tuple", "Tuple"):
            return AbstractValue(what="other", items=tuple(inner), each=joined(inner))
        if outer in ("dict", "Dict", "Mapping"):
            return AbstractValue(what="other", each=inner[-1])
        if inner[0].is_tensor:
            meaning = self.facts.shaped.get(outer)
            if meaning in ("integer", "bool"):
                return AbstractValue(what="tensor", dtype=meaning, gradient="no")  # type: ignore[arg-type]
            if meaning == "given":
                return inner[0]
        if outer in ("list", "List", "Sequence", "Iterable", "Iterator", "set"):
            return AbstractValue(what="other", each=inner[0])
        return UNKNOWN
