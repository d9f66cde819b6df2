"""A parameter -> its abstract value, by its annotation, its default, its docstring and what calls its function."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.call_edges import is_public, passed_by_place
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.handing.invocations import calls_through_self, makings
from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.inference.abstract_values import (
    OTHER,
    STEP_BATCH,
    TENSOR,
    UNKNOWN,
    AbstractValue,
    joined,
    named,
    portable,
    stands_for,
)
from torchdet_lint.module.tree import positional
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import TEST_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.inference.annotations import Annotations
    from torchdet_lint.inference.attributes import Attributes
    from torchdet_lint.inference.gradients import Gradients
    from torchdet_lint.module.calls import Call
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Scope

# Of so many calls it is asked what they hand over.
_CALLERS = 4
# And of so many what networks they hand over.
_HANDED = 12
# So many calls of the objects of a layer are asked for what they pass.
_APPLIED = 12
# What takes the gradient from a tensor that is handed on; who never says it hands on no such tensor.
_DETACHES = "detach"
# So many classes that derive from one are asked what they give its methods.
_HEIRS = 12
# `x.sum(dim=0)`, `x.amax(1, keepdim=True)`: NumPy says `axis` and `keepdims`, and xarray gives `dim` a name.
_REDUCED = lazy(r"(?<![\w.])(\w+)\.\w+\((?:[^()\n]*,)?[ \t]*(?:keepdim[ \t]*=|dim[ \t]*=[ \t]*[-(]?[ \t]*\d)")
_ASKED = lazy(r"\bisinstance[ \t]*\([ \t]*(\w+)")
_TRAINED = "lightning.pytorch.LightningModule"


class Parameters:
    """The parameters of the functions of one file."""

    def __init__(
        self,
        module: Module,
        annotations: Annotations,
        attributes: Attributes,
        gradients: Gradients,
        infer: Callable[[cst.BaseExpression], AbstractValue],
        infer_in: Callable[[Module, cst.BaseExpression], AbstractValue],
    ) -> None:
        """`infer` gives the abstract value of an expression of the file, `infer_in` that of one of another file."""
        self.module = module
        self.infer = infer
        self.infer_in = infer_in
        self.facts = module.library.facts.tensors
        self.annotations = annotations
        self.attributes = attributes
        self.gradients = gradients
        self._imports_torch = module.imports("torch")
        self._reducing: dict[int, frozenset[str]] = {}
        self._taking_data: dict[str, bool] = {}
        self._detached: dict[int, bool] = {}
        self._applications: dict[str, list[tuple[Module, Call]]] = {}
        self._handed: dict[int, AbstractValue] = {}
        self._elsewhere: dict[int, AbstractValue] = {}
        self._inherited: dict[int, AbstractValue] = {}
        self._heirs: dict[Class, list[tuple[Module, Class]]] = {}

    def of(self, node: cst.Param, home: Scope) -> AbstractValue:
        """What the parameter `node` of the function `home` is given."""
        found = self._declared(node, home)
        function = home.node
        if not isinstance(function, cst.FunctionDef) or home.outer is None:
            return found
        if found == UNKNOWN:
            if id(node) not in self._handed:
                self._handed[id(node)] = UNKNOWN  # where the answer depends on itself
                self._handed[id(node)] = self._objects(node, function, home.outer)
            if (objects := self._handed[id(node)]).classes:
                return objects
        if found.gradient != "no" and found.what != "other" and self._is_detached(node, function, home.outer):
            return replace(found, gradient="no")
        if home.outer is not self.module.scope and not isinstance(home.outer.node, cst.FunctionDef):
            return self._of_method(node, function, home.outer, found)
        if found.gradient == "yes":
            return found
        open_ = found.what == "unknown" or (found.is_tensor and found.gradient == "unknown")
        passed = self._passed(node, function) if open_ else None
        if passed is None and open_ and home.outer is self.module.scope:
            passed = self._given_elsewhere(node, function)
        elif passed is not None and passed.gradient == "no" and self._is_for_every_device(node, function):
            passed = replace(passed, gradient="unknown")
        if passed is None:
            return found
        if passed.is_tensor:
            return _told(found, passed)
        if found.what == "unknown" and _is_data(passed):
            return replace(found, gradient=passed.gradient, each=passed.each)
        return passed if _holds_tensors(passed) else found

    def _is_for_every_device(self, node: cst.Param, function: cst.FunctionDef) -> bool:
        return self.gradients.for_every_device(function, {node.name.value})

    def _objects(self, node: cst.Param, function: cst.FunctionDef, outer: Scope) -> AbstractValue:
        """The objects that a function, a method or a constructor is handed in this file and in others, where it calls
        them as networks: each one that is in sight."""
        name = node.name.value
        class_ = self.module.classes.get(outer)
        if outer is not self.module.scope and class_ is None:
            return UNKNOWN
        maker = function.name.value == "__init__"
        text = self.module.text if maker else self.module.code(function)
        if not re.search(rf"\b(?:self\.\w+|super|{name})[ \t]*\(" if maker else rf"(?<![\w.]){name}[ \t]*\(", text):
            return UNKNOWN
        calls = itertools.islice(self._running(function, class_), _HANDED)
        parameters = passed_by_place(self.module, function)
        values = [
            portable(self.infer_in(there, value.node), there.source.path, self.module.library.roots)
            if there is not self.module
            else self.infer(value.node)
            for there, call in calls
            if (value := call.argument(name, parameters)) is not None
        ]
        return joined(value for value in values if value.classes)

    def _running(self, function: cst.FunctionDef, class_: Class | None) -> Iterator[tuple[Module, Call]]:
        """The calls in sight that run `function`, a method of `class_` if there is one."""
        name = function.name.value
        if class_ is not None:
            made = name == "__init__"
            yield from makings(self.module, class_) if made else calls_through_self(self.module, name, class_)
            return
        self.module.look_for(name)
        yield from ((self.module, call) for call in self.module.calls_to(f"@.{name}"))
        yield from self.module.callers(name) if self.module.callers is not None else ()

    def _of_method(
        self, node: cst.Param, function: cst.FunctionDef, outer: Scope, found: AbstractValue
    ) -> AbstractValue:
        """What the parameter of a layer's method is, of which `found` is known: a tensor with a gradient where all
        methods of the class that call it through `self` pass one, and one without where all of the file pass such."""
        class_ = self.module.classes.get(outer)
        name = function.name.value
        if found.is_integral or class_ is None or name.startswith("__"):
            return found
        if not self.gradients.is_layer(class_) or self._static(function):
            return found
        if f"self.{name}(" not in self.module.text:
            return self._of_heirs(node, function, class_, found)
        parameters = positional(function)
        calls = list(_calls_of_self(self.module, name, class_))
        if not calls:
            return self._of_heirs(node, function, class_, found)
        passed = self._joined(node, calls, parameters[1:])
        if passed is None or not passed.is_tensor or passed.gradient == "unknown":
            return found
        if passed.gradient == "no" and len(re.findall(rf"\.{name}\b", self.module.text)) != len(calls):
            return found
        return replace(found, gradient=passed.gradient) if found.is_tensor else passed

    def _of_heirs(
        self, node: cst.Param, function: cst.FunctionDef, class_: Class, found: AbstractValue
    ) -> AbstractValue:
        """What the parameter of a method is, of which `found` is known and which its own class never calls, where that
        leaves its `forward` to those that derive from it: a tensor with a gradient where one of these passes one."""
        if found.gradient == "yes" or found.what == "other" or self._applies_itself(class_):
            return found
        if id(node) not in self._inherited:
            self._inherited[id(node)] = UNKNOWN  # where the answer depends on itself
            name, parameters = node.name.value, positional(function)[1:]
            calls = itertools.islice(self._calls_of_heirs(function.name.value, class_), _CALLERS)
            given = [
                portable(self.infer_in(there, value.node), there.source.path, self.module.library.roots)
                for there, call in calls
                if (value := call.argument(name, parameters)) is not None
            ]
            told = [one for one in given if one.is_tensor and one.gradient == "yes"]
            self._inherited[id(node)] = joined(told)
        given_there = self._inherited[id(node)]
        return _told(found, given_there) if given_there.is_tensor else found

    def _applies_itself(self, class_: Class) -> bool:
        """Whether a layer has a `forward`, its own or one of a base in the file."""
        return any("forward" in one.methods for one in self.module.family(class_))

    def _calls_of_heirs(self, name: str, class_: Class) -> Iterator[tuple[Module, Call]]:
        """The calls `self.name(…)` in classes that derive from `class_`, of this file and of those beside it."""
        if class_ not in self._heirs:
            found = [(self.module, one) for one in self.module.shared(Relatives).derived(class_)]
            find = self.module.heirs
            found += find(class_.name) if find is not None and class_.outer is self.module.scope else []
            self._heirs[class_] = found[:_HEIRS]
        for there, heir in self._heirs[class_]:
            yield from ((there, call) for call in _calls_of_self(there, name, heir))

    def _passed(self, node: cst.Param, function: cst.FunctionDef) -> AbstractValue | None:
        """What all functions of the file that call `function` pass for its parameter; the top level only tries it."""
        parameters = positional(function)
        self.module.look_for(function.name.value)
        name = self.module.scope_of(function).qualified(function.name.value)
        calls = [call for call in self.module.calls_to(name) if call.scope.function is not self.module.scope]
        return self._joined(node, calls, parameters)

    def _given_elsewhere(self, node: cst.Param, function: cst.FunctionDef) -> AbstractValue:
        """What other files give a function that its own file calls nowhere, where all of them give a tensor."""
        if id(node) not in self._elsewhere:
            self._elsewhere[id(node)] = UNKNOWN  # where the answer depends on itself
            name, other = function.name.value, self.module.callers
            here = [read for read in self.module.shared(Reads).of(None, name) if read is not function.name]
            open_ = here or function.decorators or is_public(self.module, name)
            calls = other(name) if other is not None and not open_ else []
            # Who tests a function gives it plain tensors.
            calls = [one for one in calls if not TEST_FILE.fullmatch(Path(one[0].source.path).name)]
            if len(calls) <= _CALLERS:
                self._elsewhere[id(node)] = self._tensor_of(node, function, calls)
        return self._elsewhere[id(node)]

    def _tensor_of(
        self, node: cst.Param, function: cst.FunctionDef, calls: Sequence[tuple[Module, Call]]
    ) -> AbstractValue:
        """What all of `calls` of other files pass for the parameter `node`, where that is a tensor; else nothing."""
        values = [(module, call.argument(node.name.value, positional(function))) for module, call in calls]
        if any(call.opaque for _, call in calls) or any(value is None for _, value in values):
            return UNKNOWN
        given = [
            portable(self.infer_in(module, value.node), module.source.path, self.module.library.roots)
            for module, value in values
            if value is not None
        ]
        alike = all(one.is_tensor for one in given) or all(map(_holds_tensors, given))
        return joined(given) if alike else UNKNOWN

    def _joined(self, node: cst.Param, calls: Sequence[Call], parameters: Sequence[str]) -> AbstractValue | None:
        """What all of `calls` pass for the parameter `node`; None where one passes nothing in sight."""
        if not calls or any(call.opaque for call in calls):
            return None
        values = [call.argument(node.name.value, parameters) for call in calls]
        if any(value is None for value in values):
            return None
        return joined(self.infer(value.node) for value in values if value is not None)

    def _is_detached(self, node: cst.Param, function: cst.FunctionDef, outer: Scope) -> bool:
        """Whether `node` is a parameter of the `forward` of a layer to which all that apply it pass a tensor without a
        gradient: `self.head(x.detach())`."""
        class_ = self.module.classes.get(outer)
        if class_ is None or function.name.value != "forward" or not self.gradients.is_layer(class_):
            return False
        if id(node) not in self._detached:
            self._detached[id(node)] = False  # where the answer depends on itself
            calls = [
                (there, call.argument(node.name.value, positional(function)[1:]), call.opaque)
                for there, call in self._applied(class_)
            ]
            # Who passes nothing leaves the default, which has no gradient.
            given = [(there, value) for there, value, _ in calls if value is not None]
            whole = bool(calls) and not any(opaque for _, _, opaque in calls)
            self._detached[id(node)] = whole and all(
                self.infer_in(there, value.node).gradient == "no" for there, value in given
            )
        return self._detached[id(node)]

    def _applied(self, class_: Class) -> list[tuple[Module, Call]]:
        """The calls of the objects of a layer, in the file and in those around it, where each one is kept in an
        attribute that is only called; none where one is not."""
        name = class_.name
        if name not in self._applications:
            self._applications[name] = []  # where the answer depends on itself
            makings = self._makings(class_) if not _is_decorated(class_) and self._speaks_of_detaching(name) else []
            if len(makings) <= _APPLIED and _made_everywhere(makings, name, self.module):
                found = [self._applied_as(there, call) for there, call in makings]
                self._applications[name] = [one for calls in found for one in calls] if all(found) else []
        return self._applications[name]

    def _makings(self, class_: Class) -> list[tuple[Module, Call]]:
        """The calls that make objects of a layer, in the file and in those around it; none where anybody may."""
        name = class_.name
        self.module.look_for(name)
        makings = [(self.module, call) for call in self.module.calls_to(f"@.{name}")]
        if makings and _DETACHES not in self.module.text:
            return []
        beside = self.module.callers
        if beside is not None and class_.outer is self.module.scope and (makings or not is_public(self.module, name)):
            makings += beside(name)
        return makings

    def _speaks_of_detaching(self, name: str) -> bool:
        """Whether the file, or one around it that has the `name` of a layer, says `detach`."""
        beside = self.module.speaking
        return _DETACHES in self.module.text or (beside is not None and beside(name, _DETACHES))

    def _applied_as(self, there: Module, making: Call) -> list[tuple[Module, Call]]:
        """The calls of the attribute of `self` that keeps the object of a layer which the call `making` makes; none
        where something else is done with it."""
        holder = there.parent(making.node)
        class_ = there.enclosing_class(making.node)
        target = holder.targets[0].target if isinstance(holder, cst.Assign) and len(holder.targets) == 1 else None
        if class_ is None or not isinstance(target, cst.Attribute) or bare(target.value) != "self":
            return []
        kept = target.attr.value
        there.look_for(kept)
        calls = list(_calls_of_self(there, kept, class_))
        whole = len(re.findall(rf"\.{kept}\b", there.text)) == len(calls) + 1
        return [(there, call) for call in calls] if whole else []

    def _takes_data(self, class_: Class) -> bool:
        """Whether the file makes objects of a layer and applies them to nothing but tensors without a gradient."""
        name, text = class_.name, self.module.text
        if name not in self._taking_data:
            self._taking_data[name] = False  # where the answer depends on itself
            made = text.count(f"{name}(") - text.count(f"class {name}(")
            self._taking_data[name] = made > 0 and self._applied_to_data(f"@.{name}", name, made)
        return self._taking_data[name]

    def _applied_to_data(self, made: str, name: str, count: int) -> bool:
        """Whether the `count` objects that are `made` of a class called `name` are kept under names, or applied at
        once, and applied to data alone."""
        self.module.look_for(name)
        found = list(self.module.calls_to(made))
        kept = [self._kept_as(call.node) for call in found if not self._is_applied_at_once(call.node)]
        if len(found) != count or not all(kept):
            return False
        for target in (one for targets in kept for one in targets):
            self.module.look_for(last_word(target))
        calls = list(self.module.calls_to(f"{made}()"))
        given = [value for call in calls for value in call.arguments.positional]
        whole = not any(call.opaque or call.arguments.keywords for call in calls)
        return bool(given) and whole and all(self.infer(value.node).gradient == "no" for value in given)

    def _is_applied_at_once(self, node: cst.BaseExpression) -> bool:
        """Whether the object that is made at `node` is called there: `Down(factor=2)(x)`."""
        call = self.module.parent(node)
        return isinstance(call, cst.Call) and call.func is node

    def _kept_as(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What a statement binds to the object that is made, which may be moved or stand in a tuple."""
        holder = self.module.parent(node)
        while isinstance(holder, cst.Attribute) and holder.attr.value in self.module.library.facts.programs.moves:
            moved = self.module.parent(holder)
            if not isinstance(moved, cst.Call) or moved.func is not holder:
                return []
            node, holder = moved, self.module.parent(moved)
        if isinstance(holder, cst.AnnAssign):
            return [holder.target]
        if isinstance(holder, cst.Assign):
            return [one.target for one in holder.targets]
        row = self.module.parent(holder) if isinstance(holder, cst.Element) else None
        statement = self.module.parent(row) if isinstance(row, cst.Tuple) else None
        bound = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(row, cst.Tuple) or not isinstance(bound, cst.Tuple):
            return []
        pairs = zip(bound.elements, row.elements, strict=False)
        return [target.value for target, element in pairs if element is holder]

    def _declared(self, node: cst.Param, home: Scope) -> AbstractValue:
        function = home.node
        class_ = self.module.classes.get(home.outer) if home.outer is not None else None
        if class_ is not None and isinstance(function, cst.FunctionDef):
            applied = self.attributes.applied(node, function, class_)
            if applied is not None:
                return applied
        if node.annotation is not None:
            found = self.annotations.infer(node.annotation.annotation)
            if found.what != "unknown":
                return self._differentiable(found, node.name.value, home) if found.is_tensor else found
        if isinstance(node.star, str) and node.star:
            # What a layer is given is not known; what other functions are given so is hardly ever a tensor.
            open_ = node.star == "*" and class_ is not None and self.gradients.is_layer(class_)
            return AbstractValue(what="other", gradient="no", each=UNKNOWN) if open_ else OTHER
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
            return AbstractValue(what="other", gradient="no", instance=f"@.{class_.name}")
        step = class_ is not None and function.name.value in self.facts.steps and parameters[1:2] == [node]
        if step and class_ is not None and _TRAINED in self.module.ancestry(f"@.{class_.name}"):
            return STEP_BATCH
        layer = class_ is not None and self.gradients.is_layer(class_)
        given = function.name.value == "forward" and layer and default is None
        if given and not stands_for(node.name.value, self.facts.graph_words):
            found = self._differentiable(TENSOR, node.name.value, home)
            takes_data = found.gradient == "yes" and class_ is not None and self._takes_data(class_)
            return replace(found, gradient="no") if takes_data else found
        told = UNKNOWN
        if node.annotation is None and not given:
            told = self.annotations.documented(function, node.name.value)
            told = TENSOR if not told.is_tensor and self._reduced(node, function, home) else told
        return self._differentiable(told if told.is_tensor else UNKNOWN, node.name.value, home)

    def _reduced(self, node: cst.Param, function: cst.FunctionDef, home: Scope) -> bool:
        """Whether `function` tells a method of the parameter `node` a dimension in torch's words, and never asks what
        that is, nor gives it another value."""
        name = node.name.value
        if not self._imports_torch or len(home.bindings[name]) != 1:
            return False
        if id(function) not in self._reducing:
            text = self.module.code(function)
            self._reducing[id(function)] = frozenset(_REDUCED.findall(text)).difference(_ASKED.findall(text))
        return name in self._reducing[id(function)]

    @staticmethod
    def _static(function: cst.FunctionDef) -> bool:
        return any(
            isinstance(item.decorator, cst.Name) and item.decorator.value == "staticmethod"
            for item in function.decorators
        )

    def _differentiable(self, inferred: AbstractValue, name: str, home: Scope) -> AbstractValue:
        """A parameter: in a method of a layer it is an activation, unless its type or its name says otherwise."""
        if inferred.is_integral:
            return replace(inferred, gradient="no")
        class_ = self.module.enclosing_class_of_scope(home)
        layer = class_ is not None and self.gradients.is_layer(class_)
        # What is called a mask, and no more, may well be worked out by another layer.
        if layer and name not in self.facts.whole_words and stands_for(name, self.facts.input_words):
            return replace(inferred, gradient="no")
        found = named(inferred, name, self.facts)
        if found.gradient != "unknown" or not inferred.is_tensor:
            return found
        return replace(found, gradient="yes") if layer else found


def _told(found: AbstractValue, passed: AbstractValue) -> AbstractValue:
    """What a parameter is of which `found` is known where its callers pass tensors like `passed`."""
    gradient = found.gradient if passed.gradient == "unknown" else passed.gradient
    if found.is_tensor:
        return replace(
            found,
            gradient=gradient,
            dtype=passed.dtype if found.dtype == "unknown" else found.dtype,
            dims=passed.dims if found.dims is None else found.dims,
        )
    return AbstractValue(
        "tensor", passed.dtype, "unknown", "no" if passed.is_integral else gradient, passed.dims,
        distinct=passed.distinct, overlapping=passed.overlapping,
    )  # fmt: skip


def _is_data(value: AbstractValue) -> bool:
    """Whether a value that may be a tensor has no gradient, or may hold such as have none: what was saved."""
    return value.what == "unknown" and (value.gradient == "no" or value.each is not None)


def _holds_tensors(passed: AbstractValue) -> bool:
    """Whether something is a list or a dictionary, and tensors are in it."""
    held = (passed.each, *passed.items, *(value for _, value in passed.entries))
    return passed.what == "other" and any(one is not None and one.is_tensor for one in held)


def _made_everywhere(makings: Sequence[tuple[Module, Call]], name: str, home: Module) -> bool:
    """Whether the `makings` of a class called `name`, of the file `home`, are all that the files have to do with it:
    nothing derives from it."""
    files = {there.source.path: there for there, _ in makings} | {home.source.path: home}
    spoken = sum(len(re.findall(rf"\b{name}\b(?![ \t]*,[ \t]*self\b)", there.text)) for there in files.values())
    told = sum(
        len(re.findall(rf"(?m)^[ \t]*(?:class[ \t]+{name}\b|(?:from|import)\b.*\b{name}\b)", there.text))
        for there in files.values()
    )
    return bool(makings) and spoken == len(makings) + told


def _calls_of_self(module: Module, name: str, class_: Class) -> Iterator[Call]:
    """The calls `self.name(…)` in the methods of `class_`."""
    for unit in module.holding(name):
        if unit.piece.owner != class_.index or name not in module.words[unit.index]:
            continue
        module.load(unit)
        for attribute in module.attributes_under(unit.root, name) if unit.root is not None else ():
            node = module.parent(attribute)
            if isinstance(node, cst.Call) and node.func is attribute and bare(attribute.value) == "self":
                call = module.call_at(node)
                if call is not None:
                    yield call


def _is_decorated(class_: Class) -> bool:
    """Whether a decorator stands above a class, a registry's, say."""
    return class_.node is not None and bool(class_.node.decorators)
