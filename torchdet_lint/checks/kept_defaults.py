"""A value -> whether it is a parameter of which every call in sight leaves what is asked about: its default, say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, passed_by_place
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.dataflow.syntax import bare, last_word, nodes
from torchdet_lint.module.tree import named_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module, Value

_DEEP = 3
# Nobody asks what more files do with a method.
_SPOKEN = 8
# Decorators that leave a method what it takes by name.
_PLAIN = ("classmethod", "staticmethod")


def keeps(module: Module, value: Value, is_meant: Callable[[Value], bool], *, by_name: bool = False) -> bool:
    """Whether `value` is a parameter that nothing else binds, and each call in sight, of which there is one, gives what
    `is_meant`, or leaves a default that is. `by_name`: those of a method are all of that name."""
    found = _parameter(module, value)
    if found is None or not isinstance(value.node, cst.Name):
        return False
    function, default = found
    of_class = module.enclosing_class(function) is not None
    parameters = passed_by_place(module, function)
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
    """Whether `value` is None though a caller could give another: a parameter of a function at top level, of a
    constructor or of a method that keeps its default of None, or an attribute that is one. It is not where the function
    asks for it, nor where anything but a call may give it."""
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
        and keeps(module, value, is_none, by_name=True)
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
    """Whether a function at top level, a method, or the class of a constructor, is nothing but called, as far as anyone
    sees."""
    class_ = module.enclosing_class(function)
    if class_ is not None and function.name.value != "__init__":
        return _is_method_only_called(module, class_, function)
    if function.decorators:
        return False
    if class_ is not None:
        return (
            _is_only_made(module, class_)
            and not module.shared(Relatives).derived(class_)
            and not CallEdges(module).heirs(class_)
        )
    return module.scope_of(function) is module.scope and all(
        _is_called(other.parent(read), read) for other, read in _reads(module, function.name)
    )


def _is_method_only_called(module: Module, class_: Class, function: cst.FunctionDef) -> bool:
    """Whether a method of a class in sight, all that it derives from too, is nothing but called, at least once
    evidently of an object of it; a call within the class counts where something in sight makes one."""
    name = function.name.value
    if name.startswith("__") or any(last_word(one.decorator) not in _PLAIN for one in function.decorators):
        return False
    if CallEdges(module).is_open(module, class_) or not _is_only_made(module, class_):
        return False
    others = module.naming(name, _SPOKEN) if module.naming is not None else []
    read = re.compile(rf"\.{name}\b(?!\s*\()|attr\(.*[\"']{name}[\"']")
    if others is None or any(read.search(there.text) for there in (module, *others)):
        return False
    made = class_.node is not None and bool(_reads(module, class_.node.name))
    return any(
        made or not (isinstance(call.receiver, cst.Name) and call.receiver.value in ("self", "cls"))
        for there in (module, *others)
        for call in _calls(there, module, class_, name)
    )


def _calls(there: Module, module: Module, class_: Class, name: str) -> Iterator[Call]:
    """The calls in the file `there` that are evidently of the method `name` of a class of `module`."""
    edges = CallEdges(there)
    there.load_where(word=name)
    for call in there.calls:
        callee = edges.callee(call.node, call.own) if call.attribute == name else None
        owner = callee.class_ if callee is not None else None
        if callee is not None and owner is not None and owner.name == class_.name and callee.module.text == module.text:
            yield call


def _is_only_made(module: Module, class_: Class) -> bool:
    """Whether a class at top level is nothing but called, derived from, or asked for an attribute."""
    module.load_where(word=class_.name)
    if class_.node is None or class_.node.decorators or class_.outer is not module.scope:
        return False
    return all(_is_made(other, read) for other, read in _reads(module, class_.node.name))


def _reads(module: Module, defined: cst.Name) -> list[tuple[Module, cst.Name | cst.Attribute]]:
    """Where what is defined at top level is read, here and in files around."""
    reads: list[tuple[Module, cst.Name | cst.Attribute]]
    reads = [(module, one) for one in module.shared(Reads).of(None, defined.value) if one is not defined]
    return reads + (module.readers(defined.value) if module.readers is not None else [])


def _is_made(module: Module, read: cst.CSTNode) -> bool:
    around = module.parent(read)
    above = module.parent(around) if isinstance(around, cst.Arg) else None
    if isinstance(around, cst.Attribute):
        return around.value is read
    return _is_called(around, read) or isinstance(above, cst.ClassDef)


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
