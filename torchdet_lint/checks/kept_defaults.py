"""A value -> whether it is a parameter of which every call in sight leaves what is asked about: its default, say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.dataflow.syntax import bare, nodes
from torchdet_lint.module.tree import named_parameters, positional

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.module.module import Module, Value

_DEEP = 3


def keeps(module: Module, value: Value, is_meant: Callable[[Value], bool], *, by_name: bool = False) -> bool:
    """Whether `value` is a parameter that nothing else binds, and each call in sight, of which there is one, gives what
    `is_meant`, or leaves a default that is. `by_name`: those of a method are all of that name."""
    found = _parameter(module, value)
    if found is None or not isinstance(value.node, cst.Name):
        return False
    function, default = found
    of_class = module.enclosing_class(function) is not None
    parameters = positional(function)[of_class:]
    named = by_name and of_class and function.name.value != "__init__"
    edges = CallEdges(module)
    calls = list(edges.calls_by_name(function) if named else edges.callers_anywhere(function))
    passed = [call.argument(value.node.value, parameters) for call in calls]
    left = default is not None and None in passed and is_meant(default)
    whole = not any(call.opaque for call in calls)
    return bool(calls) and whole and all(left if given is None else is_meant(given) for given in passed)


def keeps_attribute(module: Module, value: Value, is_meant: Callable[[object], bool]) -> bool:
    """Whether `value` is an attribute, `cfg.benchmark`, of a parameter that nothing else binds, and each call in sight,
    of which there is one, gives or leaves a class, an object made of one without arguments, or a module, in which that
    is a constant that `is_meant`."""
    found = module.values.followed(value.node, value.scope, value.order)
    node = found.node if found is not None else None
    if found is None or not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name):
        return False
    name = node.attr.value
    if module.values.changes(node.value.value, name):
        return False

    def holds_it(given: Value) -> bool:
        constant = _attribute_of(given, name)
        return constant is not None and is_meant(constant[0])

    return keeps(module, module.value_at(node.value, found.scope, found.order), holds_it)


def _attribute_of(given: Value, name: str) -> tuple[object] | None:
    """The constant that is the attribute `name` of a class or module, or of an object made without arguments."""
    value = given.evaluator.followed(given.node, given.scope, given.order) or given
    node = value.node
    if isinstance(node, cst.Call):
        if node.args:
            return None
        node = node.func
    owners = given.evaluator.resolver.resolve(node, value.scope, value.order)
    return given.evaluator.constant_of(owners[0], name) if len(owners) == 1 else None


def is_always_given(module: Module, value: Value, is_meant: Callable[[Value], bool]) -> bool:
    """Whether `value` is a parameter that nothing else binds, and every call in sight, of which there is one, gives
    what `is_meant`: a default that nobody gives is a choice that is left open."""
    found = _parameter(module, value)
    default = found[1].node if found is not None and found[1] is not None else None
    return found is not None and keeps(module, value, lambda given: given.node is not default and is_meant(given))


def is_parameter(module: Module, value: Value) -> bool:
    """Whether `value` is a parameter that nothing else binds."""
    return _parameter(module, value) is not None


def default_of(module: Module, value: Value) -> Value | None:
    """The default of the parameter that `value` is, where nothing else binds it."""
    found = _parameter(module, value)
    return found[1] if found is not None else None


def is_left_none(module: Module, value: Value, depth: int = _DEEP) -> bool:
    """Whether `value` is None though a caller could give another: a parameter of a constructor or of a function at top
    level that keeps its default of None, or an attribute that is one. It is not where the function asks for it, nor
    where anything but a call may give it."""
    node = value.node
    if isinstance(node, cst.Attribute):
        given = module.self_attribute(node, value.scope)
        stored = module.text.count(f".{node.attr.value} =") + module.text.count(f".{node.attr.value}:")
        whole = depth > 0 and 0 < len(given) == stored and not _is_tested_above(module, node)
        return whole and all(is_left_none(module, one, depth - 1) for one in given)
    if not isinstance(node, cst.Name) or depth <= 0:
        return False

    def is_none(given: Value) -> bool:
        own = given.evaluator is module.values
        return given.is_none or (not given.known and own and is_left_none(module, given, depth - 1))

    found = _parameter(module, value)
    return (
        found is not None
        and found[1] is not None
        and found[1].is_none
        and _is_only_called(module, found[0])
        and not any(_is_asked_for(module, read) for read in module.shared(Reads).of(found[0], node.value))
        and keeps(module, value, is_none)
    )


def _parameter(module: Module, value: Value) -> tuple[cst.FunctionDef, Value | None] | None:
    """The function of which `value` is a parameter that nothing else binds, and its default."""
    node = value.node
    home = value.scope.home(node.value) if isinstance(node, cst.Name) else None
    function = home.node if home is not None else None
    if not isinstance(node, cst.Name) or home is None or not isinstance(function, cst.FunctionDef):
        return None
    if [binding.kind for binding in home.bindings[node.value]] != ["parameter"]:
        return None
    params = named_parameters(function.params)
    default = next((one.default for one in params if one.name.value == node.value), None)
    return function, module.value_at(default, home, None) if default is not None else None


def _is_only_called(module: Module, function: cst.FunctionDef) -> bool:
    """Whether a function at top level, or the class of a constructor, is nothing but called, as far as anyone sees."""
    class_ = module.enclosing_class(function)
    if function.decorators or (class_ is not None and function.name.value != "__init__"):
        return False
    defined, outer = function.name, module.scope_of(function)
    if class_ is not None:
        module.load_where(word=class_.name)
        if class_.node is None or class_.node.decorators or module.shared(Relatives).derived(class_):
            return False
        defined, outer = class_.node.name, class_.outer
    if outer is not module.scope or (class_ is not None and CallEdges(module).heirs(class_)):
        return False
    reads: list[tuple[Module, cst.Name | cst.Attribute]]
    reads = [(module, one) for one in module.shared(Reads).of(None, defined.value) if one is not defined]
    reads += module.readers(defined.value) if module.readers is not None else []
    return all(_is_called(other.parent(read), read) for other, read in reads)


def _is_called(around: cst.CSTNode | None, read: cst.CSTNode) -> bool:
    return around.func is read if isinstance(around, cst.Call) else isinstance(around, cst.Annotation)


def _is_tested_above(module: Module, attribute: cst.Attribute) -> bool:
    """Whether an `if` around `attribute` asks for it: `if self.seed is not None: random.seed(self.seed)`."""
    return any(
        isinstance(node, cst.Attribute) and bare(node) == bare(attribute)
        for around in module.ancestors(attribute)
        if isinstance(around, (cst.If, cst.IfExp))
        for node in nodes(around.test)
    )


def _is_asked_for(module: Module, read: cst.Name) -> bool:
    """Whether a test, or what stands in for the value, asks for it: `if seed:`, `seed is None`, `seed or 0`."""
    around = module.parent(read)
    tests = (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation, cst.Assert, cst.While)
    return isinstance(around, tests) or (isinstance(around, (cst.If, cst.IfExp)) and around.test is read)
