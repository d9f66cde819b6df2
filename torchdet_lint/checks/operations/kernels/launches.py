"""A place in a kernel -> whether the constants of all launches in sight rule out the branch in which it stands."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.call_edges import is_public
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.inference.narrowing import tests_around
from torchdet_lint.module.tree import named_parameters, positional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.module import Call, Module, Value

# Nobody asks what more files do with a kernel, nor further than to the callers of those that launch it.
_SPOKEN = 8
_DEEP = 3
_EITHER = frozenset((True, False))
_OPERATORS: dict[type, Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
}
# Decorators of a kernel that leave its arguments as they are, but for those of which they tell the values.
_PLAIN = ("triton.jit", "triton.autotune", "triton.heuristics")


class Launches:
    """The calls and launches, `kernel[grid](…)`, of the functions of one file, and the constants that they pass."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._known: dict[str, list[tuple[Module, Call]] | None] = {}
        self._given: dict[tuple[str, str, int], list[Any] | None] = {}

    def rule_out(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in a branch of a function that no launch compiles."""
        function = self.module.enclosing_function(node)
        if function is None or self.module.scope_of(function) is not self.module.scope:
            return False
        return any(self._truths(function, test) == {not holds} for test, holds in tests_around(self.module, node))

    def _truths(self, function: cst.FunctionDef, test: cst.BaseExpression) -> frozenset[bool]:
        """What `test` may be, whoever launches `function`."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return frozenset(not one for one in self._truths(function, test.expression))
        if isinstance(test, cst.BooleanOperation):
            both = itertools.product(self._truths(function, test.left), self._truths(function, test.right))
            joins = all if isinstance(test.operator, cst.And) else any
            return frozenset(joins(pair) for pair in both)
        if isinstance(test, cst.Comparison):
            compared = test.comparisons[0]
            compares = _OPERATORS.get(type(compared.operator)) if len(test.comparisons) == 1 else None
            left, right = self._values(function, test.left), self._values(function, compared.comparator)
            if compares is None or left is None or right is None:
                return _EITHER
            try:
                return frozenset(compares(*pair) for pair in itertools.product(left, right))
            except TypeError:
                return _EITHER
        values = self._values(function, test)
        return frozenset(map(bool, values)) if values is not None else _EITHER

    def _values(self, function: cst.FunctionDef, node: cst.BaseExpression) -> list[Any] | None:
        """The constants that `node` may be in `function`; None where one is not known."""
        known = self.module.value(node)
        if known.known:
            return [known.constant]
        return self.given(function, node.value, _DEEP) if isinstance(node, cst.Name) else None

    def given(self, function: cst.FunctionDef, name: str, depth: int) -> list[Any] | None:
        """The constants that all calls of `function`, of which there is one, give its parameter `name`, each once; None
        where one is not known."""
        key = function.name.value, name, depth
        if key not in self._given:
            self._given[key] = self._all_given(function, name, depth)
        return self._given[key]

    def _all_given(self, function: cst.FunctionDef, name: str, depth: int) -> list[Any] | None:
        home = self.module.inner_scope(function)
        params = named_parameters(function.params)
        param = next((one for one in params if one.name.value == name), None)
        kinds = [binding.kind for binding in home.bindings.get(name, ())] if home is not None else []
        calls = self._calls(function) if param is not None and kinds == ["parameter"] and depth > 0 else None
        left = self._left(function, param) if param is not None else None
        found: list[Any] = []
        for there, call in calls or ():
            value = call.argument(name, positional(function))
            values = left if value is None and not call.opaque else _passed(there, value, depth)
            if values is None:
                return None
            found += [value for value in values if value not in found]
        return found or None

    def _left(self, function: cst.FunctionDef, param: cst.Param) -> list[Any] | None:
        """The constants that a parameter has where a call leaves it: those of the tuner's configurations, or its
        default."""
        nodes = (decorator.decorator for decorator in function.decorators)
        made = [self.module.call_at(node) for node in nodes if isinstance(node, cst.Call)]
        default = self.module.value(param.default) if param.default is not None else None
        ways = [way for call in made if call is not None for way in self._set(call, param.name.value, default)]
        found = [value.constant for value in ways or (default,) if value is not None and value.known]
        return found if len(found) == len(ways or (default,)) else None

    def _set(self, decorator: Call, name: str, default: Value | None) -> Iterator[Value | None]:
        """What a decorator gives the parameter `name`, in each of its ways; None where that is not in sight."""
        if "triton.heuristics" in decorator.names:
            entries = self._entries(decorator.argument("values", ("values",)))
            if entries is None or name in entries:
                yield None
        configs = decorator.argument("configs", ("configs", "key")) if "triton.autotune" in decorator.names else None
        if configs is not None:
            elements = self.module.elements(configs.node, configs.scope, configs.order)
            for one in elements if elements is not None else (configs.node,):
                call = self.module.call_at(one) if isinstance(one, cst.Call) else None
                entries = self._entries(call.argument("kwargs", ("kwargs",)) if call is not None else None)
                yield entries.get(name, default) if entries is not None else None

    def _entries(self, value: Value | None) -> dict[str, Value] | None:
        return self.module.dictionary(value.node, value.scope, value.order) if value is not None else None

    def _calls(self, function: cst.FunctionDef) -> list[tuple[Module, Call]] | None:
        """The calls and launches of a function at top level, each with its file; None where something else is done with
        it, or may be done out of sight."""
        name = function.name.value
        if name not in self._known:
            self._known[name] = self._found(function)
        return self._known[name]

    def _found(self, function: cst.FunctionDef) -> list[tuple[Module, Call]] | None:
        name, module = function.name.value, self.module
        decorators = [made for one in function.decorators for made in _decorator(module, one)]
        others = module.naming(name, _SPOKEN) if module.naming is not None else None
        if others is None or not set(decorators) <= set(_PLAIN) or is_public(module, name):
            return None
        found: list[tuple[Module, Call]] = []
        for there in (module, *others):
            calls = [_called(there, read) for read in _reads(there, name) if read is not function.name]
            if None in calls or f"{name} as " in there.text:
                return None
            found += [(there, call) for call in calls if call is not None]
        return found


def _decorator(module: Module, decorator: cst.Decorator) -> Sequence[str]:
    """What a decorator is; a name for one that nobody knows."""
    node = decorator.decorator
    return module.resolve(node.func if isinstance(node, cst.Call) else node) or ("",)


def _reads(module: Module, name: str) -> Iterator[cst.Name | cst.Attribute]:
    """Where a file reads a name, or an attribute of that name."""
    module.load_where(word=name)
    yield from module.shared(Reads).of(None, name)
    for unit in module.holding(name):
        yield from module.attributes_under(unit.root, name) if unit.root is not None else ()


def _called(module: Module, read: cst.CSTNode) -> Call | None:
    """The call, or the launch, of what is read."""
    around = module.parent(read)
    function = around if isinstance(around, cst.Subscript) and around.value is read else read
    call = module.parent(function)
    return module.call_at(call) if isinstance(call, cst.Call) and call.func is function else None


def _passed(module: Module, value: Value | None, depth: int) -> list[Any] | None:
    """The constants that a call passes as `value`: one, or those that the function around it is given for it."""
    if value is None:
        return None
    if value.known:
        return [value.constant]
    home = value.scope.home(value.node.value) if isinstance(value.node, cst.Name) else None
    function = home.node if home is not None else None
    if not isinstance(value.node, cst.Name) or not isinstance(function, cst.FunctionDef):
        return None
    if module.scope_of(function) is not module.scope:
        return None
    return module.shared(Launches).given(function, value.node.value, depth - 1)
