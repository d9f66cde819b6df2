"""A call of a constructor or function of the project -> the call of a library that it amounts to, in whichever file.

`Fast(data, num_workers=4)` is `DataLoader(data, num_workers=4)` where `Fast.__init__` hands its arguments on, by name
or by `**kwargs`, through as many classes and functions as are in sight.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module, Value

_DEEP = 4


class Passed(NamedTuple):
    """Arguments on their way: values by place and by name, whether there may be more, and which of the values a
    constructor or function on the way names itself, so that its own call tells of them."""

    positional: tuple[Value, ...]
    keywords: dict[str, Value]
    opaque: bool = False
    named: frozenset[int] = frozenset()


class HandedOn(NamedTuple):
    """`call`, at the node of the one in this file, is the library's; `own` are the parameters of the library's callable
    whose values stand in the file and are told of nowhere else, `added` those that may be added there."""

    call: Call
    own: frozenset[str]
    added: frozenset[str]


class HandingOn:
    """The calls of one file that others hand on."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.edges = CallEdges(module)

    def calls(self, target: str, word: str, added: Sequence[str]) -> Iterator[HandedOn]:
        """The calls of this file with an argument `word` that amount to one of `target`."""
        written = re.compile(rf"(?<!\w){word}=(?!=)")
        if f"{word}=" not in self.module.text or written.search(self.module.text) is None:
            return
        self.module.load_where(lambda text: written.search(text) is not None, word)
        for call in self.module.calls:
            if target in call.names or word not in call.arguments.keywords:
                continue
            start = Passed(call.arguments.positional, dict(call.arguments.keywords), call.opaque)
            found = self._amounts_to(self.module, call.own, start, target, _DEEP)
            if found is None:
                continue
            names, passed = found
            here = {id(value.node) for value in start.keywords.values()} - passed.named
            own = frozenset(name for name, value in passed.keywords.items() if id(value.node) in here)
            more = start._replace(keywords={**start.keywords, **dict.fromkeys(added, start.keywords[word])})
            further = self._amounts_to(self.module, call.own, more, target, _DEEP)
            reached = further[1].keywords.keys() - passed.keywords.keys() if further is not None else frozenset[str]()
            made = call.amounting_to(names, passed.positional, passed.keywords, passed.opaque)
            yield HandedOn(made, own, frozenset(reached) & frozenset(added))

    def _amounts_to(
        self, module: Module, names: Sequence[str], passed: Passed, target: str, depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """The names of the library's callable that a call of `names` in `module` ends at, and what it is passed."""
        for name in names if depth > 0 else ():
            plain = name.removesuffix(".__init__")
            library = tuple(module.library.ancestors(plain))
            if target in library:
                return library, passed
            place = (module, plain[2:]) if plain.startswith("@.") else None
            if place is None and module.neighbour is not None and "()" not in plain:
                place = module.neighbour(plain)
            if place is None or "." in place[1]:
                continue
            class_ = place[0].local_class(f"@.{place[1]}")
            found = (
                self._made(place[0], class_, passed, target, depth)
                if class_ is not None
                else self._called(place[0], place[1], passed, target, depth)
            )
            if found is not None:
                return found
        return None

    def _made(
        self, module: Module, class_: Class, passed: Passed, target: str, depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """An object of `class_` is made."""
        bases = module.base_names(class_)
        if "__init__" not in class_.methods:
            return self._amounts_to(module, bases, passed, target, depth - 1)
        function = module.definition("__init__", class_)
        for call in self._calls_in(module, function):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__":
                names = module.resolve(call.func)
                inner = self._rebound(module, function, call, passed, bound=True)
                found = self._amounts_to(module, names, inner, target, depth - 1) if inner is not None else None
                if found is not None:
                    return found
        return None

    def _called(
        self, module: Module, name: str, passed: Passed, target: str, depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """The function `name` is called."""
        function = module.definition(name)
        for call in self._calls_in(module, function):
            if not any(arg.star == "**" or (arg.keyword and arg.keyword.value in passed.keywords) for arg in call.args):
                continue
            inner = self._rebound(module, function, call, passed, bound=False)
            if inner is not None and inner.keywords:
                found = self._amounts_to(module, module.resolve(call.func), inner, target, depth - 1)
                if found is not None:
                    return found
        return None

    def _calls_in(self, module: Module, function: cst.FunctionDef | None) -> list[cst.Call]:
        scope = module.inner_scope(function) if function is not None else None
        return [call.node for call in module.calls_in(scope)] if scope is not None else []

    def _rebound(
        self, module: Module, function: cst.FunctionDef | None, call: cst.Call, passed: Passed, *, bound: bool
    ) -> Passed | None:
        """What `call`, which stands in `function`, passes where that is given `passed`; None where nobody can tell."""
        assert function is not None
        given, rest, more = _parameters(module, function, passed, bound=bound)
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        opaque, named = passed.opaque, set(passed.named)
        for arg in call.args[bool(bound and call.args and _is_self(call)) :]:
            word = arg.value.value if isinstance(arg.value, cst.Name) else ""
            if arg.star:
                name = _starred(function, arg.star)
                if not word or word != name or len(re.findall(rf"\b{word}\b", module.code(function.body))) != 1:
                    return None
                positional.extend(rest if arg.star == "*" else ())
                keywords.update(more if arg.star == "**" else {})
                continue
            if word in given and not _assigned_again(module, function, word):
                value, default = given[word]
                if value is None:
                    opaque = True
                    continue
                if module is self.module or not (default is not None and default.known and not default.constant):
                    named.add(id(value.node))
            else:
                value = module.value(arg.value)
            if arg.keyword is not None:
                keywords[arg.keyword.value] = value
            else:
                positional.append(value)
        return Passed(tuple(positional), keywords, opaque, frozenset(named))


def _parameters(
    module: Module, function: cst.FunctionDef, passed: Passed, *, bound: bool
) -> tuple[dict[str, tuple[Value | None, Value | None]], tuple[Value, ...], dict[str, Value]]:
    """What the parameters of `function` are given, each with its default, and what `*args` and `**kwargs` take."""
    params = function.params
    places = [*params.posonly_params, *params.params][1 if bound else 0 :]
    given: dict[str, tuple[Value | None, Value | None]] = {}
    for index, one in enumerate([*places, *params.kwonly_params]):
        default = module.value(one.default) if one.default is not None else None
        name = one.name.value
        by_place = passed.positional[index] if index < min(len(places), len(passed.positional)) else None
        given[name] = (passed.keywords.get(name, by_place) or default, default)
    more = {name: value for name, value in passed.keywords.items() if name not in given}
    return given, passed.positional[len(places) :], more


def _starred(function: cst.FunctionDef, star: str) -> str:
    """The name of `*args` or `**kwargs` of `function`."""
    taken = function.params.star_arg if star == "*" else function.params.star_kwarg
    return taken.name.value if isinstance(taken, cst.Param) else ""


def _is_self(call: cst.Call) -> bool:
    """Whether `DataLoader.__init__(self, …)` is written, and not `super()`."""
    function = call.func
    return isinstance(function, cst.Attribute) and not isinstance(function.value, cst.Call)


def _assigned_again(module: Module, function: cst.FunctionDef, name: str) -> bool:
    scope = module.inner_scope(function)
    return scope is None or len(scope.bindings.get(name, ())) != 1
