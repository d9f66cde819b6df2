"""A call -> the function that runs, in whichever file, and the parameter that an argument binds; its callers, and what
these pass."""

from __future__ import annotations

import itertools
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.relatives import Relatives, annotated_class
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.module.tree import is_super, positional
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module, Value

_PROPERTIES = ("property", "cached_property")


class Callee(NamedTuple):
    """A function that a call runs, in the file `module`, `bound` where its first parameter is not among the arguments;
    without a function `class_`, whose fields the arguments are."""

    module: Module
    function: cst.FunctionDef | None
    bound: bool = False
    class_: Class | None = None

    def parameter(self, call: cst.Call, arg: cst.Arg) -> str:
        """The name of the parameter or field that `arg` binds; empty where that is not in sight."""
        if self.function is None:
            assert self.class_ is not None
            names = every = [name for name, _ in self.module.fields(self.class_)]
        else:
            params = self.function.params
            names = [one.name.value for one in (*params.posonly_params, *params.params)]
            every = names + [one.name.value for one in params.kwonly_params]
        if arg.keyword is not None:
            return arg.keyword.value if arg.keyword.value in every else ""
        place = list(call.args).index(arg)
        index = place + self.bound
        if any(one.star for one in call.args[: place + 1]) or index >= len(names):
            return ""
        return names[index]


class CallEdges:
    """The calls of one file."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def callee(self, call: cst.Call, names: Sequence[str]) -> Callee | None:
        """What `call` of `names` runs; None where that is not in sight."""
        function = call.func
        if isinstance(function, cst.Attribute):
            own = self._own_method(function)
            if own is not None:
                return own
        for name in names:
            found = self._named(self.module, name.removeprefix("@.")) if name.startswith("@.") else self.foreign(name)
            if found is not None:
                explicit = isinstance(function, cst.Attribute) and not is_super(function.value)
                return found._replace(bound=False) if name.endswith(".__init__") and explicit else found
        return self._nested(function) if isinstance(function, cst.Name) else None

    def annotated(self, call: cst.Call) -> Callee | None:
        """The method that `call` runs of a parameter, by the class that this is annotated with."""
        function = call.func
        if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
            return None
        found = annotated_class(self.module, function.value)
        return self._method(*found, function.attr.value, 4) if found is not None else None

    def _nested(self, name: cst.Name) -> Callee | None:
        """The function in a function that `name` is, where nothing else binds it."""
        home = self.module.scope_of(name).home(name.value)
        bindings = home.bindings[name.value] if home is not None and home is not self.module.scope else ()
        function = bindings[0].node if len(bindings) == 1 else None
        return Callee(self.module, function) if isinstance(function, cst.FunctionDef) else None

    def foreign(self, name: str) -> Callee | None:
        """The function of another file that goes by `name`, or what makes an object of the class of that name."""
        found = self.module.neighbour(name) if self.module.neighbour is not None else None
        return self._named(*found) if found is not None else None

    def _named(self, module: Module, name: str) -> Callee | None:
        """The function `name`, or the constructor or method of the class `name`, of `module`."""
        head, _, method = name.partition(".")
        class_ = module.local_class(f"@.{head.removesuffix('()')}")
        if class_ is None:
            function = module.definition(head) if not method else None
            return Callee(module, function) if function is not None else None
        return self._method(module, class_, method or "__init__", 4)

    def _own_method(self, function: cst.Attribute) -> Callee | None:
        """`self.method`, or `super().method`."""
        module, owner = self.module, function.value
        above = is_super(owner)
        if not above and not (isinstance(owner, cst.Name) and owner.value in ("self", "cls")):
            return None
        class_ = module.enclosing_class(function)
        if class_ is None:
            return None
        if not above:
            return self._method(module, class_, function.attr.value, 4)
        for base_module, base in self.bases(module, class_):
            found = self._method(base_module, base, function.attr.value, 4)
            if found is not None:
                return found
        return None

    def _method(self, module: Module, class_: Class, name: str, depth: int) -> Callee | None:
        """Method `name` of `class_` or of one that it derives from; the fields of a class without a constructor."""
        if name in class_.methods:
            function = module.definition(name, class_)
            return Callee(module, function, not is_static(function), class_) if function is not None else None
        if depth > 0:
            for base_module, base in self.bases(module, class_):
                found = self._method(base_module, base, name, depth - 1)
                if found is not None and (found.function is not None or not module.fields(class_)):
                    return found
        return Callee(module, None, class_=class_) if name == "__init__" and module.fields(class_) else None

    def bases(self, module: Module, class_: Class) -> Iterator[tuple[Module, Class]]:
        """The classes that `class_` of `module` names as its bases, and their files, where they are in sight."""
        for name in module.base_names(class_):
            local = module.local_class(name)
            if local is not None:
                yield module, local
            elif module.neighbour is not None and (found := module.neighbour(name)) is not None:
                base = found[0].local_class(f"@.{found[1]}")
                if base is not None:
                    yield found[0], base

    def ancestors(self, module: Module, class_: Class) -> list[tuple[Module, Class]]:
        """`class_` and all that it derives from, in whichever file."""
        found: list[tuple[Module, Class]] = []
        queue = [(module, class_)]
        while queue and len(found) < 12:
            current = queue.pop(0)
            if current not in found:
                found.append(current)
                queue += self.bases(*current)
        return found

    def kept(self, module: Module, class_: Class, name: str) -> Iterator[tuple[Module, Value]]:
        """What `class_`, or else the next that it derives from, gives its attribute `name`, each with its file."""
        for there, relative in self.ancestors(module, class_):
            values = there.attribute_values(relative, name)
            if values:
                yield from ((there, there.value_at(*value)) for value in values)
                return

    def derived(self, class_: Class) -> list[tuple[Module, Class]]:
        """The classes of the file that derive from `class_`."""
        return [(self.module, one) for one in self.module.shared(Relatives).derived(class_)]

    def heirs(self, class_: Class) -> list[tuple[Module, Class]]:
        """The classes of files beside this one that derive from `class_`, which stands at its top level."""
        find = self.module.heirs
        return find(class_.name) if find is not None and class_.outer is self.module.scope else []

    def is_open(self, module: Module, class_: Class) -> bool:
        """Whether `class_` derives from a class out of sight that may read its attributes."""
        closed = self.module.library.facts.conventions.bases
        for relative_module, relative in self.ancestors(module, class_):
            seen = list(self.bases(relative_module, relative))
            names = [name for name in relative_module.base_names(relative) if name not in closed]
            if len(names) > len(seen):
                return True
        return False

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a top-level function, or of a method through `self`, in the file."""
        return self.module.shared(Relatives).callers(function)

    def callers_anywhere(self, function: cst.FunctionDef) -> Iterator[Call]:
        """The calls of a function or constructor, or of a method through `self`, in the file; of one at top level also
        those of files around it."""
        yield from (call for _, call in self.callers_with_files(function))

    def calls_by_name(self, function: cst.FunctionDef) -> Iterator[Call]:
        """The calls, here and in files around, of a method called as `function` is, of whatever object."""
        name = function.name.value
        yield from self.module.method_calls(name)
        yield from self.module.methods(name) if self.module.methods is not None else ()

    def callers_with_files(self, function: cst.FunctionDef) -> Iterator[tuple[Module, Call]]:
        """The same, each with the file that it stands in."""
        module, name = self.module, function.name.value
        class_ = module.enclosing_class(function)
        if class_ is not None and name == "__init__":
            name = class_.name
        for node in module.shared(Relatives).calls_of(name):
            call = module.call_at(node)
            if call is not None:
                yield module, call
        outer = class_.outer if class_ is not None else module.scope_of(function)
        if module.callers is not None and outer is module.scope and (class_ is None or name == class_.name):
            yield from module.callers(name)


class Sites:
    """The calls of methods in one file, by the function that runs, in whichever file that is."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._edges = CallEdges(module)
        self._libraries = frozenset((*module.library.roots, *STANDARD, "builtins"))
        self._seen = 0
        self._named: dict[str, list[Call]] = {}
        # With the number of calls that there were.
        self._known: dict[str, tuple[int, dict[int, list[Call]]]] = {}

    def of(self, method: cst.FunctionDef) -> list[tuple[Module, Call]]:
        """Those of `method`, each with the file."""
        module, name = self.module, method.name.value
        module.shared(Relatives).calls_of(name)
        calls = module.calls
        for call in calls[self._seen :]:
            if call.attribute:
                self._named.setdefault(call.attribute, []).append(call)
        self._seen = len(calls)
        named = self._named.get(name, ())
        seen, found = self._known.get(name, (0, {}))
        for call in named[seen:]:
            roots = {own.partition(".")[0] for own in call.own}
            if roots and roots <= self._libraries:
                continue
            callee = self._edges.callee(call.node, call.own) or self._edges.annotated(call.node)
            if callee is not None and callee.function is not None:
                found.setdefault(id(callee.function), []).append(call)
        self._known[name] = len(named), found
        return [(module, call) for call in found.get(id(method), ())]


class Given(NamedTuple):
    """What a call passes, and its file: `node`, or what stands at `path` in that."""

    module: Module
    node: cst.BaseExpression
    path: tuple[int, ...] = ()


def taking(module: Module, node: cst.Name) -> cst.FunctionDef | None:
    """The function of which `node` is a parameter that keeps its value."""
    home = module.scope_of(node).home(node.value)
    bound = [binding.kind for binding in home.bindings[node.value]] if home is not None else []
    function = home.node if home is not None else None
    return function if bound == ["parameter"] and isinstance(function, cst.FunctionDef) else None


def calls_here(module: Module, function: cst.FunctionDef) -> list[tuple[Module, Call]]:
    """The calls of `function` in its own file, each with that."""
    name, home = function.name.value, module.scope_of(function)
    class_ = module.enclosing_class(function)
    if class_ is not None and not isinstance(home.node, cst.FunctionDef):
        found = module.shared(Sites).of(function)
        sites = module.shared(Relatives).calls_of(class_.name) if name == "__init__" else []
        known = {id(call.node) for _, call in found}
        made = (module.call_at(site) for site in sites if id(site) not in known)
        return [*found, *((module, call) for call in made if call is not None)]
    module.look_for(name)
    return [(module, call) for call in module.calls_to(home.qualified(name))]


def given_for(node: cst.Name, function: cst.FunctionDef, calls: Sequence[tuple[Module, Call]]) -> list[Given]:
    """What `calls` of `function` pass for its parameter `node`; nothing where one of them does not show it."""
    parameters = positional(function)
    parameters = parameters[parameters[:1] in (("self",), ("cls",)) :]
    given = [_given_by(there, call, node.value, parameters) for there, call in calls]
    shown = [one for one in given if one is not None]
    return shown if len(shown) == len(calls) else []


def _given_by(module: Module, call: Call, name: str, parameters: Sequence[str]) -> Given | None:
    """What `call` passes for the parameter `name`, also where it unpacks a row of arguments: `add(*line.split())`."""
    if not call.opaque:
        value = call.argument(name, parameters)
        return Given(module, value.node) if value is not None else None
    args = call.node.args
    stars = [arg for arg in args if arg.star]
    if call.partial is not None or len(stars) != 1 or stars[0].star != "*" or name not in parameters:
        return None
    place, start = parameters.index(name), args.index(stars[0])
    behind = any(arg.keyword is None for arg in args[start + 1 :])
    named = any(arg.keyword is not None and arg.keyword.value == name for arg in args)
    if place < start or behind or named or any(own.endswith("__init__") for own in call.own):
        return None
    return Given(module, stars[0].value, (place - start,))


def values_given(
    module: Module, parameter: cst.Param, function: cst.FunctionDef, most: int | None = None
) -> Iterator[tuple[Module, Value]]:
    """What the calls in sight, the first `most` of them, give the `parameter` of `function`, each with its file."""
    names = passed_by_place(module, function)
    for there, call in itertools.islice(CallEdges(module).callers_with_files(function), most):
        value = call.argument(parameter.name.value, names)
        if value is not None:
            yield there, value


def passed_by_place(module: Module, function: cst.FunctionDef) -> tuple[str, ...]:
    """The parameters of a function that a call passes by place: of a method, all but the first."""
    bound = module.enclosing_class(function) is not None and not is_static(function)
    return tuple(positional(function)[bound:])


def is_public(module: Module, name: str) -> bool:
    """Whether the package of the file takes in its function or class `name`: all may call it then."""
    if PurePath(module.source.path).name == "__init__.py":
        return True
    return module.neighbour is not None and module.neighbour(f".{name}") is not None


def is_static(function: cst.FunctionDef) -> bool:
    """Whether `function` is a static method."""
    return any(
        isinstance(one.decorator, cst.Name) and one.decorator.value == "staticmethod" for one in function.decorators
    )


def is_property(function: cst.FunctionDef | None) -> bool:
    """Whether `function` is what reading an attribute runs."""
    return function is not None and any(last_word(one.decorator) in _PROPERTIES for one in function.decorators)
