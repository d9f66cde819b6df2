"""A class of the file -> what its attributes and methods are."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.handing.invocations import heirs_of
from torchdet_lint.inference.abstract_values import ASSIGNED, CIRCLE, UNKNOWN, AbstractValue, joined, portable
from torchdet_lint.module import names
from torchdet_lint.module.tree import is_left_open

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from torchdet_lint.inference.abstract_values import Device
    from torchdet_lint.inference.annotations import Annotations
    from torchdet_lint.module.module import Class, Module

_FUNCTIONS = frozenset(("torch.autograd.Function", "torch.autograd.function.Function"))
_PROPERTIES = frozenset({"builtins.property", "functools.cached_property", "abc.abstractproperty"})
_MOVES = frozenset({"cuda", "to"})


class Elsewhere(NamedTuple):
    """What a class of whatever file has: an attribute by its name, and what a method gives."""

    attribute: Callable[..., AbstractValue]
    method: Callable[..., AbstractValue]


class Attributes:
    """The members of the classes of one file; `infer` gives the abstract value of an expression, `returned` that
    of what a function returns, `asked` the answer to a question; `first` keeps what is known while one is open, and
    `elsewhere` tells of the classes of any file."""

    def __init__(
        self,
        module: Module,
        annotations: Annotations,
        infer: Callable[[cst.BaseExpression], AbstractValue],
        returned: Callable[[cst.FunctionDef], AbstractValue],
        asked: Callable[[Hashable, Callable[[], AbstractValue]], AbstractValue],
        first: dict[Hashable, AbstractValue],
        elsewhere: Elsewhere,
    ) -> None:
        self.module = module
        self.annotations = annotations
        self.infer = infer
        self.returned = returned
        self.asked = asked
        self.first = first
        self.elsewhere = elsewhere
        self._told: dict[tuple[int, str], AbstractValue] = {}
        self._asks = "requires_grad" in module.text

    def attribute(self, class_: Class, name: str) -> AbstractValue:
        """What attribute `name` of an instance is: by what it is assigned, registered or declared as, or returns."""
        values = [value.node for value in self.module.attribute_values(class_, name)]
        found = self.assigned(values, name)
        return self.told(class_, name) if found.what == "unknown" and found.gradient == "unknown" else found

    def assigned(self, values: Sequence[cst.BaseExpression], name: str, asking: Hashable = None) -> AbstractValue:
        """What an attribute `name` is that is assigned `values`, for the question `asking`: those that are made of the
        attribute itself, `self.x = pad(self.x)`, come when the others are known."""
        if len(values) < 2:
            return joined(map(self.infer, values))
        key = ("assigned", *map(id, values))
        return self.asked(key, lambda: self._assigned((key, asking or key), values, name))

    def _assigned(self, keys: Sequence[Hashable], values: Sequence[cst.BaseExpression], name: str) -> AbstractValue:
        own = re.compile(rf"\.{name}\b")
        found: list[AbstractValue] = []
        for value in sorted(values, key=lambda one: own.search(self.module.code(one)) is not None):
            self.first.update(dict.fromkeys(keys, joined(found)))
            found += [one] if (one := self.infer(value)) is not CIRCLE else []
        for key in keys:
            self.first.pop(key, None)
        return joined(found)

    def told(self, class_: Class, name: str) -> AbstractValue:
        """What attribute `name` is where no assignment says it."""
        key = (id(class_), name)
        if key not in self._told:
            self._told[key] = UNKNOWN
            for ask in (self._registered, self._declared, self._property, self._of_base, self._of_relatives):
                found = ask(class_, name)
                if found is not UNKNOWN:
                    self._told[key] = found
                    break
        return self._told[key]

    def _of_base(self, class_: Class, name: str) -> AbstractValue:
        """An attribute that the constructor of a base in another file assigns."""
        find = self.module.foreign
        if find is None or self.method(class_, name) is not None:
            return UNKNOWN
        bases = [base for relative in self.module.family(class_) for base in self.module.base_names(relative)]
        others = [base for base in bases if "." in base and "(" not in base and not base.startswith("@.")]
        roots = self.module.library.roots
        found = (find(f"{base}.{name}{ASSIGNED}") for base in others if base.partition(".")[0] not in roots)
        return next((one for one in found if one is not None), UNKNOWN)

    def _of_relatives(self, class_: Class, name: str) -> AbstractValue:
        """An attribute that a class leaves to those that derive from it, or that a base in another file has of what its
        callers, or others that derive from it, give."""
        if self.method(class_, name) is not None:
            return UNKNOWN
        bases = [one for one in CallEdges(self.module).bases(self.module, class_) if one[0] is not self.module]
        return self._of_each([*bases, *heirs_of(self.module, class_)], partial(self.elsewhere.attribute, name=name))

    def of_implementations(self, class_: Class, name: str) -> AbstractValue:
        """What the method `name` gives, which a class leaves to those that derive from it."""
        own = self.method(class_, name)
        if own is not None and not is_left_open(own):
            return UNKNOWN
        having = [one for one in heirs_of(self.module, class_) if name in one[1].methods]
        return self._of_each(having, partial(self.elsewhere.method, name=name))

    def _of_each(
        self, classes: Sequence[tuple[Module, Class]], ask: Callable[[Module, Class], AbstractValue]
    ) -> AbstractValue:
        """What `ask` tells of each of `classes`, as far as it is known there."""
        found = ((there, ask(there, one)) for there, one in classes)
        roots = self.module.library.roots
        told = [
            one if there is self.module else portable(one, there.source.path, roots)
            for there, one in found
            if one.classes or one.is_tensor
        ]
        return joined(told) if told else UNKNOWN

    def _registered(self, class_: Class, name: str) -> AbstractValue:
        """An attribute of a layer that was registered as a buffer or a parameter."""
        for call in self.module.registrations(class_, name):
            value = call.argument("tensor", ("name", "tensor")) or call.argument("param", ("name", "param"))
            inferred = self.infer(value.node) if value is not None else UNKNOWN
            if call.attribute == "register_buffer":
                return replace(inferred, what="tensor", device="unknown", gradient="no", whole=False)
            return replace(inferred, what="tensor", device="unknown", gradient="yes", whole=False)
        return UNKNOWN

    def registered_above(self, node: cst.Attribute) -> Device:
        """Where a buffer still is that the function around `node`, which reads it, has registered: nothing there moves
        the layer."""
        class_, function = self.module.enclosing_class(node), self.module.enclosing_function(node)
        found = list(self.module.registrations(class_, node.attr.value)) if class_ is not None else []
        if len(found) != 1 or self.module.enclosing_function(found[0].node) is not function:
            return "unknown"
        owner = names.dotted(node.value)
        moved = any(
            one.attribute in _MOVES and names.dotted(one.node.func.value) == owner
            for one in self.module.calls_in(found[0].scope)
            if isinstance(one.node.func, cst.Attribute)
        )
        value = found[0].argument("tensor", ("name", "tensor"))
        if moved or value is None or self.module.order_of(found[0].node) > self.module.order_of(node):
            return "unknown"
        return self.infer(value.node).device

    def _declared(self, class_: Class, name: str) -> AbstractValue:
        return joined(self.annotations.infer(annotation) for annotation in self.module.declared(class_, name))

    def _property(self, class_: Class, name: str) -> AbstractValue:
        method = self.method(class_, name)
        if method is None or not any(self._is_property(item.decorator) for item in method.decorators):
            return UNKNOWN
        return self.returned(method)

    def _is_property(self, decorator: cst.BaseExpression) -> bool:
        resolved = self.module.resolve(decorator)
        return not _PROPERTIES.isdisjoint(resolved) or names.dotted(decorator).endswith("cached_property")

    def method(self, class_: Class, name: str) -> cst.FunctionDef | None:
        """The method `name` of `class_`, its own or one of a base in the file."""
        for relative in self.module.family(class_):
            if name in relative.methods:
                return self.module.definition(name, relative)
        return None

    def frozen(self, node: cst.Attribute, name: str) -> bool:
        """Whether the constructor of the class around `node` takes the gradient from `self.name` in any case."""
        if not self._asks or not isinstance(node.value, cst.Name):
            return False
        class_ = self.module.enclosing_class(node)
        constructor = self.method(class_, "__init__") if class_ is not None else None
        own = f"{node.value.value}.{name}"
        for statement in constructor.body.body if constructor is not None else ():
            for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
                if isinstance(small, cst.Assign) and names.dotted(small.targets[0].target) == f"{own}.requires_grad":
                    return self.module.value(small.value).constant is False
                call = self.module.call_at(small.value) if isinstance(small, cst.Expr) else None
                if call is not None and names.dotted(call.node.func) == f"{own}.requires_grad_":
                    wanted = call.argument("requires_grad", ("requires_grad",))
                    return wanted is not None and wanted.constant is False
        return False

    def saved(self, node: cst.Attribute) -> AbstractValue:
        """What the `forward` of an autograd function saved for its `backward`."""
        class_ = self.module.enclosing_class(node)
        forward = self.module.definition("forward", class_) if class_ is not None else None
        scope = self.module.inner_scope(forward) if forward is not None else None
        for call in self.module.calls_in(scope) if scope is not None else ():
            if call.attribute == "save_for_backward" and not call.opaque:
                return AbstractValue(
                    what="other", items=tuple(self.infer(value.node) for value in call.arguments.positional)
                )
        return UNKNOWN

    def applied(self, node: cst.Param, function: cst.FunctionDef, class_: Class) -> AbstractValue | None:
        """What the file passes for a parameter of an autograd function's `forward` by `apply`."""
        if function.name.value != "forward" or set(self.module.ancestry(f"@.{class_.name}")).isdisjoint(_FUNCTIONS):
            return None
        parameters = list(function.params.params)
        place = parameters.index(node) - 1 if node in parameters else -1
        self.module.look_for(class_.name)
        calls = list(self.module.calls_to(f"@.{class_.name}.apply"))
        if place < 0 or not calls or any(place >= len(call.arguments.positional) for call in calls):
            return None
        return joined(self.infer(call.arguments.positional[place].node) for call in calls)
