"""An attribute or a subscript -> its abstract value, from that of what it is taken of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.inference.abstract_values import FOREIGN, OTHER, UNKNOWN, AbstractValue, named, of_tensor
from torchdet_lint.inference.variables import shape_of
from torchdet_lint.module import names
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.inference.attributes import Attributes
    from torchdet_lint.module.module import Module

_PARAMETERS = frozenset({"weight", "bias"})
_LOADS = ".load_state_dict("
_LOADED = lazy(r"\.load_state_dict[ \t]*\(\s*([A-Za-z_]\w*)\s*[,)]")


class Accesses:
    """The attributes and subscripts in one file; `infer` gives the abstract value of an expression."""

    def __init__(
        self, module: Module, attributes: Attributes, infer: Callable[[cst.BaseExpression], AbstractValue]
    ) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self.attributes = attributes
        self.infer = infer
        self._loads_states = _LOADS in module.text
        self._loaded: dict[cst.FunctionDef, frozenset[str]] = {}

    def attribute(self, node: cst.Attribute) -> AbstractValue:
        """What `owner.name` is."""
        name = node.attr.value
        module = self.module
        scope = module.scope_of(node)
        values = module.self_attribute(node, scope)
        if values:
            found = self.attributes.assigned([value.node for value in values], name, id(node))
            class_ = module.local_class(self.infer(node.value).instance) if found == UNKNOWN else None
            if class_ is not None:
                found = self.attributes.told(class_, name)
            if found.gradient == "yes" and self.attributes.frozen(node, name):
                found = replace(found, gradient="no")
            # What other methods write into it is not looked at.
            return named(replace(found, whole=False) if found.whole else found, name, self.facts)
        owner = self.infer(node.value)
        member = self.member(owner, name)
        if member is not None:
            device = self.attributes.registered_above(node) if member.is_tensor else "unknown"
            return replace(member, device=device) if device != "unknown" else member
        if name == "saved_tensors":
            return self.attributes.saved(node)
        if name in _PARAMETERS and owner.instance:
            layer = node.value
            fixed = isinstance(layer, cst.Attribute) and self.attributes.frozen(layer, f"{layer.attr.value}.{name}")
            return AbstractValue(what="tensor", dtype="floating", gradient="no" if fixed else "yes")
        resolved = module.resolve(node)
        if resolved and not any("()" in full for full in resolved):
            return OTHER
        if owner.what == "other" and not owner.classes:
            return UNKNOWN
        if not self.facts.settings.isdisjoint(names.dotted(node.value).split(".")):
            return AbstractValue(gradient="no")
        return named(UNKNOWN if name in _PARAMETERS else _part_of(owner), name, self.facts)

    def member(self, owner: AbstractValue, name: str) -> AbstractValue | None:
        """The attribute `name` of a value of which enough is known."""
        if owner.instance == FOREIGN.instance:
            return FOREIGN
        if owner.instance.startswith("@."):
            class_ = self.module.local_class(owner.instance)
            if class_ is not None:
                return named(self.attributes.attribute(class_, name), name, self.facts)
        if len(owner.items) == 2 and name in ("values", "indices"):
            return owner.items[name == "indices"]
        return of_tensor(owner, name) if owner.is_tensor else None

    def subscript(self, node: cst.Subscript) -> AbstractValue:
        """What `owner[index]` is."""
        inferred = self.infer(node.value)
        indices = [element.slice for element in node.slice]
        if inferred.instance == FOREIGN.instance:
            return inferred if all(isinstance(index, cst.Slice) for index in indices) else FOREIGN
        if inferred.is_tensor or (inferred.what == "unknown" and len(indices) > 1):
            return self._indexed(inferred, indices)
        if self._becomes_state(node):
            return AbstractValue(what="tensor", gradient="no")
        index = indices[0] if len(indices) == 1 and isinstance(indices[0], cst.Index) else None
        if index is not None:
            constant = self.module.value(index.value).constant
            if inferred.items and isinstance(constant, int) and -len(inferred.items) <= constant < len(inferred.items):
                return inferred.items[constant]
            if isinstance(constant, str):
                return self._entry(node.value, inferred, constant)
        elif inferred.each is not None:
            return inferred
        if inferred.each is not None:
            return inferred.each
        if shape_of(node.value) is not None or inferred.what == "other":
            return OTHER if inferred.gradient == "no" and not inferred.classes else UNKNOWN
        return AbstractValue(dtype=inferred.dtype, gradient=inferred.gradient)

    def _becomes_state(self, node: cst.Subscript) -> bool:
        """Whether `node` is an entry of what its function loads into a model, by a name: whatever is worked out of such
        entries is copied without a gradient."""
        if not self._loads_states or not isinstance(node.value, cst.Name):
            return False
        function = self.module.enclosing_function(node)
        if function is None:
            return False
        if function not in self._loaded:
            self._loaded[function] = frozenset(_LOADED.findall(self.module.code(function)))
        return node.value.value in self._loaded[function]

    def _entry(self, node: cst.BaseExpression, inferred: AbstractValue, key: str) -> AbstractValue:
        """`node["key"]`: what all entries are, or the one of that name in a dictionary in sight."""
        found = dict(inferred.entries).get(key) or inferred.each or _part_of(inferred)
        if inferred.instance.startswith("@.") and (class_ := self.module.local_class(inferred.instance)) is not None:
            found = self.attributes.attribute(class_, key)
        elif found.what == "unknown" and inferred.what == "other":
            entries = self.module.dictionary(node, self.module.scope_of(node), self.module.order_of(node))
            if entries is not None and key in entries:
                found = self.infer(entries[key].node)
        return named(found, key, self.facts)

    def _indexed(self, inferred: AbstractValue, indices: Sequence[cst.BaseSlice]) -> AbstractValue:
        """`inferred[indices]`: numbers take a dimension, `None` adds one of size 1, slices keep theirs."""
        if inferred.divided and _is_between(indices):
            # The tokens of one expert, of all that were sorted by the expert they go to: none goes to one twice.
            inferred = replace(inferred, distinct=True, divided=False)
        dims = inferred.dims
        ellipsis = next((place for place, index in enumerate(indices) if _is_ellipsis(index)), None)
        single: set[int] = set()
        # Dimensions are counted from the front up to an ellipsis, and from the end behind it.
        front = indices if ellipsis is None else indices[:ellipsis]
        back = [] if ellipsis is None else list(reversed(indices[ellipsis + 1 :]))
        for part, step in ((front, 1), (back, -1)):
            before = after = 0 if step > 0 else -1
            for index in part:
                if isinstance(index, cst.Slice):
                    if before in inferred.single or self._is_one(index):
                        single.add(after)
                    before, after = before + step, after + step
                    continue
                assert isinstance(index, cst.Index)
                value = index.value
                if isinstance(value, cst.Name) and value.value == "None":
                    dims = dims + 1 if dims is not None else None
                    single.add(after)
                    after += step
                elif self.module.value(value).known or self.infer(value).what == "other":
                    dims = dims - 1 if dims else None
                    before += step
                else:
                    chosen = self.infer(value)
                    # A column of the rows that are chosen may hold one number twice.
                    whole = all(isinstance(one, cst.Slice) for one in indices if one is not index)
                    kept = inferred.distinct and (chosen.distinct or chosen.dtype == "bool") and whole
                    return replace(inferred, dims=None, single=frozenset(), items=(), distinct=kept)
            if step > 0:
                single |= {size - before + after for size in inferred.single if size >= before}
            elif ellipsis is not None:
                single |= {size - before + after for size in inferred.single if size <= before}
        return replace(inferred, dims=dims, single=frozenset(single), items=())

    def _is_one(self, index: cst.Slice) -> bool:
        """Whether a slice evidently keeps one place: `:1`, `0:1`, `-1:`."""
        lower = self.module.value(index.lower).constant if index.lower is not None else None
        upper = self.module.value(index.upper).constant if index.upper is not None else None
        if index.upper is None:
            return index.lower is not None and lower == -1
        return isinstance(upper, int) and upper == 1 and (index.lower is None or lower == 0)


def _part_of(owner: AbstractValue) -> AbstractValue:
    """What is known of a part of `owner` of which nothing else is: it has no gradient where that has none."""
    return AbstractValue(gradient="no") if owner.what == "unknown" and owner.gradient == "no" else UNKNOWN


def _is_between(indices: Sequence[cst.BaseSlice]) -> bool:
    """Whether `x[indices]` is a slice from one place to another."""
    index = indices[0]
    return len(indices) == 1 and isinstance(index, cst.Slice) and index.lower is not None and index.upper is not None


def _is_ellipsis(index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis)
