"""A call of a constructor or function of the project -> the call of a library that it amounts to, in whichever file.

`Fast(data, num_workers=4)` is `DataLoader(data, num_workers=4)` where `Fast.__init__` hands its arguments on, by name
or by `**kwargs`, through as many classes and functions as are in sight.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges, is_static
from torchdet_lint.dataflow.handing.constructors import in_order
from torchdet_lint.dataflow.neighbours import taken_whole
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.module.tree import is_super, named_parameters
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.dataflow.handing.constructors import Above
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module, Value

_LOADER_CALLED = lazy(r"oader\s*\(")
_DEEP = 4
# So many constructors and functions are looked at for one call.
_MANY = 64


class Passed(NamedTuple):
    """Arguments on their way: values by place and by name, whether there may be more, which of the values a constructor
    or function on the way names itself, so that its own call tells of them, whether options go elsewhere too, the
    call, with its file, by which they were handed on last, and whether a constructor out of sight may come between."""

    positional: tuple[Value, ...]
    keywords: dict[str, Value]
    opaque: bool = False
    named: frozenset[int] = frozenset()
    shared: bool = False
    by: tuple[Module, cst.Call] | None = None
    unsure: bool = False


class HandedOn(NamedTuple):
    """`call`, at the node of the one in this file, is the library's; `own` are the parameters of the library's callable
    whose values stand in the file and are told of nowhere else, `added` those that may be added there, `received`
    whether it is the library's call itself with what a caller of the function around passes, `by` the library's call as
    it is written, and its file."""

    call: Call
    own: frozenset[str]
    added: frozenset[str]
    received: bool = False
    by: tuple[Module, cst.Call] | None = None


class HandingOn:
    """The calls of one file that others hand on."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.edges = CallEdges(module)
        self._left = 0
        self._texts: dict[int, str] = {}

    def calls(self, target: str, word: str, added: Sequence[str]) -> Iterator[HandedOn]:
        """The calls of this file with an argument `word`, or of what is called a loader and may give the argument
        another name, that amount to one of `target`."""
        passes = re.compile(rf"(?<!\w){word}\s*=(?!=)")

        def is_written(text: str) -> bool:
            return _LOADER_CALLED.search(text) is not None or (word in text and passes.search(text) is not None)

        if not is_written(self.module.text):
            return
        self.module.load_where(is_written)
        for call in self.module.calls:
            if target in call.names or not (word in call.arguments.keywords or _is_called_loader(call)):
                continue
            start = Passed(call.arguments.positional, dict(call.arguments.keywords), call.opaque)
            found = self._ends_at(call, start, frozenset({target}))
            if found is None:
                continue
            names, passed = found
            made = call.amounting_to(names, passed.positional, passed.keywords, passed.opaque)
            given = (*start.positional, *start.keywords.values())
            here = {id(value.node) for value in given}
            if not _leaves_out(made, passed, added):
                here -= passed.named
            own = frozenset(name for name, value in made.bound.items() if id(value.node) in here)
            if word not in own:
                continue
            mark = made.bound[word]
            more = start._replace(keywords={**start.keywords, **dict.fromkeys(added, mark)})
            further = self._ends_at(call, more, frozenset({target}))
            whole = further is not None and not further[1].shared and not further[1].unsure
            arrived = further[1].keywords if further is not None and whole else {}
            reached = frozenset(name for name in added if arrived.get(name) is mark)
            yield HandedOn(made, own, reached, by=passed.by)

    def passing(self, word: str, targets: frozenset[str]) -> Iterator[Call]:
        """The calls of this file with an argument `word`, in a dictionary in sight too, that amount to a call of one of
        `targets`, as that call. Where this names the argument, it tells of it itself."""
        passes = re.compile(rf"(?<![\w.]){word}\s*=(?!=)|[\"']{word}[\"']\s*:")
        if word not in self.module.text or passes.search(self.module.text) is None:
            return
        self.module.load_where(lambda text: "**" in text or (word in text and passes.search(text) is not None))
        for call in self.module.calls:
            written = any(arg.star == "**" or (arg.keyword and arg.keyword.value == word) for arg in call.node.args)
            if not written or not targets.isdisjoint(call.names) or word not in call.arguments.keywords:
                continue
            start = Passed(call.arguments.positional, dict(call.arguments.keywords), call.opaque)
            found = self._ends_at(call, start, targets)
            given = start.keywords[word]
            if found is None or found[1].keywords.get(word) is not given or _names(found[1].by, word):
                continue
            yield call.amounting_to(found[0], found[1].positional, found[1].keywords, found[1].opaque)

    def receiving(self, target: str) -> Iterator[HandedOn]:
        """The calls of `target` in this file that are passed the `**options` of the function around, or those that the
        constructor of its class was given and keeps, once for each call of that function in sight."""
        for call in self.module.calls_to(target):
            function = self._given_options(self.module, call)
            if function is None:
                continue
            own = {id(arg.value) for arg in call.node.args if not arg.star}
            spelled = {arg.keyword.value for arg in call.node.args if arg.keyword is not None}
            whole = self._passes_a_dictionary(function, call.node)
            self._left = _MANY
            for passed in self._passed_in(self.module, function, call.node, _DEEP):
                made = call.amounting_to(call.names, passed.positional, passed.keywords, opaque=False)
                unpacked = passed.keywords.keys() - spelled if whole else frozenset()
                mine = {name for name, value in made.bound.items() if name in unpacked or id(value.node) in own}
                yield HandedOn(made, frozenset(mine), frozenset(), received=True)

    def _given_options(self, module: Module, call: Call) -> cst.FunctionDef | None:
        """The function of which the parameters alone may hold arguments of `call` that are not in sight."""
        function = module.enclosing_function(call.node) if call.opaque else None
        if function is None or _passes_options(function, call.node):
            return function
        starred = [arg for arg in call.node.args if arg.star]
        kept = kept_parameter(module, starred[0].value) if len(starred) == 1 and starred[0].star == "**" else None
        return kept[0] if kept is not None else None

    def _passes_a_dictionary(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether `call` unpacks a dictionary that is a parameter of `function`."""
        plain = {one.name.value for one in named_parameters(function.params)}
        return any(arg.star and _word_of(self.module, arg.value) in plain for arg in call.args)

    def _passed_in(self, module: Module, function: cst.FunctionDef, call: cst.Call, depth: int) -> Iterator[Passed]:
        """What `call`, which stands in `function`, passes for each call of that function, where all of it is in
        sight."""
        bound = module.scope_of(function) in module.classes and not is_static(function)
        for home, caller in CallEdges(module).callers_with_files(function):
            self._left -= 1
            if self._left < 0:
                return
            starts: Iterable[Passed] = ()
            outer = self._given_options(home, caller) if depth > 0 else None
            if not caller.opaque:
                starts = [Passed(caller.arguments.positional, dict(caller.arguments.keywords))]
            elif outer is not None:
                starts = self._passed_in(home, outer, caller.node, depth - 1)
            for start in starts:
                passed = self._rebound(module, function, call, start, bound=bound)
                if passed is not None and not passed.opaque:
                    yield passed

    def _ends_at(self, call: Call, passed: Passed, targets: frozenset[str]) -> tuple[tuple[str, ...], Passed] | None:
        """The names of the library's callable that `call` ends at where it passes that, and what it is passed."""
        self._left = _MANY
        found = self._above(self.module, call.node, passed, targets, _DEEP)
        if found is None:
            names = call.own or taken_whole(call.node.func, self.module)
            found = self._amounts_to(self.module, names, passed, targets, _DEEP)
        callee = self.edges.callee(call.node, ()) if found is None else None
        if callee is None or callee.function is None:
            return found
        return self._called(callee.module, callee.function, passed, targets, _DEEP, bound=callee.bound)

    def _amounts_to(
        self, module: Module, names: Sequence[str], passed: Passed, targets: frozenset[str], depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """The names of the library's callable that a call of `names` in `module` ends at, and what it is passed."""
        for name in names if depth > 0 and self._left > 0 else ():
            self._left -= 1
            plain = name.removesuffix(".__init__")
            library = tuple(module.library.ancestors(plain))
            if not targets.isdisjoint(library):
                return library, passed
            place = (module, plain[2:]) if plain.startswith("@.") else None
            if place is None and module.neighbour is not None and "()" not in plain:
                place = module.neighbour(plain)
            if place is None or "." in place[1]:
                continue
            class_ = place[0].local_class(f"@.{place[1]}")
            function = place[0].definition(place[1]) if class_ is None else None
            found = (
                self._made(place[0], class_, passed, targets, depth)
                if class_ is not None
                else self._called(place[0], function, passed, targets, depth)
            )
            if found is not None:
                return found
        return None

    def _made(
        self, module: Module, class_: Class, passed: Passed, targets: frozenset[str], depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """An object of `class_` is made."""
        return self._constructed(in_order(module, class_), passed, targets, depth)

    def _above(
        self, module: Module, call: cst.Call, passed: Passed, targets: frozenset[str], depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """A constructor hands on by `call` to the next one, if it is `super().__init__(…)`."""
        function = call.func
        above = isinstance(function, cst.Attribute) and is_super(function.value) and function.attr.value == "__init__"
        class_ = module.enclosing_class(call) if above else None
        order = in_order(module, class_)[1:] if class_ is not None else []
        return self._constructed(order, passed, targets, depth)

    def _constructed(
        self, order: Sequence[Above], passed: Passed, targets: frozenset[str], depth: int
    ) -> tuple[tuple[str, ...], Passed] | None:
        """The first constructor of the classes in `order` runs."""
        for above in order:
            home, class_ = above.place if above.place is not None else (self.module, None)
            if class_ is not None and "__init__" in class_.methods:
                return self._called(home, home.definition("__init__", class_), passed, targets, depth, bound=True)
            library = tuple(self.module.library.ancestors(above.name)) if class_ is None else ()
            if not targets.isdisjoint(library):
                return library, passed
            if class_ is None and not above.is_bare:
                passed = passed._replace(unsure=True)
        return None

    def _called(
        self, module: Module, function: cst.FunctionDef | None, passed: Passed, targets: frozenset[str], depth: int,
        *, bound: bool = False,
    ) -> tuple[tuple[str, ...], Passed] | None:  # fmt: skip
        """The `function` is called, `bound` where its first parameter is not among the arguments: of the ways it may go
        on, the one on which it hands on most."""
        ways: list[tuple[tuple[str, ...], Passed]] = []
        for call in self._calls_in(module, function):
            base = isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__"
            if not base and not any(
                arg.star == "**" or (arg.keyword and arg.keyword.value in passed.keywords) for arg in call.args
            ):
                continue
            inner = self._rebound(module, function, call, passed, bound=bound)
            if inner is not None and (base or inner.keywords):
                found = self._above(module, call, inner, targets, depth - 1) if depth > 1 else None
                found = found or self._amounts_to(module, module.resolve(call.func), inner, targets, depth - 1)
                ways += [found] if found is not None else []
        return max(ways, key=lambda way: _handed_on(passed, way[1]), default=None)

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
        opaque, named, shared = passed.opaque, set(passed.named), passed.shared
        fact = module.call_at(call)
        told = fact is not None and not fact.opaque
        inside = module.enclosing_function(call) is function

        def handed(value: Value) -> Value | None:
            """What `value`, which stands in `function`, is where that is a parameter; None where nothing is given."""
            word = value.node.value if isinstance(value.node, cst.Name) else ""
            if not inside or word not in given or _assigned_again(module, function, word):
                return value
            one, default = given[word]
            off = default is not None and default.known and not default.constant
            if one is not None and told and (module is self.module or not off):
                named.add(id(one.node))
            return one

        for arg in call.args[bool(bound and call.args and _is_self(call)) :]:
            if arg.star:
                taken = self._options(module, function, call, arg, more, given)
                if taken is None and fact is not None and told and arg.star == "**":
                    written = {word: handed(value) for word, value in _unpacked(fact).items()}
                    opaque = opaque or None in written.values()
                    taken = {word: value for word, value in written.items() if value is not None}
                if taken is None:
                    return None
                positional.extend(rest if arg.star == "*" else ())
                keywords.update(taken)
                shared = shared or _goes_elsewhere(self._text(module, function), module.code(arg.value))
                continue
            value = handed(module.value(arg.value))
            if value is None:
                opaque = True
            elif arg.keyword is not None:
                keywords[arg.keyword.value] = value
            else:
                positional.append(value)
        return Passed(tuple(positional), keywords, opaque, frozenset(named), shared, (module, call), passed.unsure)

    def _options(
        self, module: Module, function: cst.FunctionDef, call: cst.Call, arg: cst.Arg, more: dict[str, Value],
        given: dict[str, tuple[Value | None, Value | None]],
    ) -> dict[str, Value] | None:  # fmt: skip
        """What the `*args` or `**options` in `call` hold by name where those of `function` are given `more`, or where
        they are a parameter, of those that are `given`; None where nobody can tell."""
        word, scope = _word_of(module, arg.value), module.inner_scope(function)
        if not word or scope is None or _assigned_again(module, function, word):
            return None
        if word != _starred(function, arg.star):
            value = given[word][0] if word in given and arg.star == "**" else None
            entries = value.evaluator.entries(value) if value is not None else None
            if entries is None:
                return None
            more = entries
        if arg.star == "*":
            return {} if len(re.findall(rf"\b{word}\b", self._text(module, function))) == 1 else None
        return module.dictionaries.changed(word, scope, self._text(module, function), module.order_of(call), more)

    def _text(self, module: Module, function: cst.FunctionDef) -> str:
        """The source of the body of `function`."""
        if id(function) not in self._texts:
            self._texts[id(function)] = module.code(function.body)
        return self._texts[id(function)]


def _names(by: tuple[Module, cst.Call] | None, word: str) -> bool:
    """Whether the call by which arguments were handed on names the argument `word`."""
    return by is not None and any(arg.keyword is not None and arg.keyword.value == word for arg in by[1].args)


def _handed_on(passed: Passed, further: Passed) -> int:
    """How many of the arguments `passed` are among those that are passed `further`."""
    given = {id(value.node) for value in (*passed.positional, *passed.keywords.values())}
    return sum(id(value.node) in given for value in (*further.positional, *further.keywords.values()))


def _unpacked(call: Call) -> dict[str, Value]:
    """What `call` takes from dictionaries in sight."""
    spelled = {arg.keyword.value for arg in call.node.args if arg.keyword is not None}
    return {word: value for word, value in call.arguments.keywords.items() if word not in spelled}


def _leaves_out(made: Call, passed: Passed, added: Sequence[str]) -> bool:
    """Whether the library's call hands on one of the arguments `added` too, of which it cannot tell, and this call
    gives none."""
    by = passed.by[1].args if passed.by is not None else ()
    handed = {arg.keyword.value for arg in by if arg.keyword is not None and isinstance(arg.value, cst.Name)}
    return any(name in handed and name in made.bound and made.bound[name].is_none for name in added)


def _is_called_loader(call: Call) -> bool:
    """Whether `call` is given something and calls what has a loader's name."""
    return bool(call.node.args) and last_word(call.node.func).endswith(("Loader", "loader"))


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


def _passes_options(function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether nothing in `call` but the `**options` that `function` takes, or a parameter that it unpacks, may hold
    arguments that are not in sight."""
    taken = {_starred(function, "**"), *(one.name.value for one in named_parameters(function.params))}
    starred = [arg for arg in call.args if arg.star]
    return all(arg.star == "**" and isinstance(arg.value, cst.Name) and arg.value.value in taken for arg in starred)


def kept_parameter(module: Module, node: cst.BaseExpression) -> tuple[cst.FunctionDef, str] | None:
    """The constructor of a class, and the parameter of it that alone `node`, an attribute of `self`, keeps as it
    came."""
    values = module.self_attribute(node, module.scope_of(node)) if isinstance(node, cst.Attribute) else []
    kept = values[0].node if len(values) == 1 else None
    function = module.enclosing_function(kept) if isinstance(kept, cst.Name) else None
    if function is None or not isinstance(kept, cst.Name) or function.name.value != "__init__":
        return None
    word, class_ = kept.value, module.enclosing_class(function)
    taken = word in {one.name.value for one in named_parameters(function.params)} or word == _starred(function, "**")
    changed = class_ is None or module.dictionaries.changes_in(class_, module.code(node)) > 0
    return (function, word) if taken and not changed and not _assigned_again(module, function, word) else None


def _word_of(module: Module, node: cst.BaseExpression) -> str:
    """The name of a parameter that `node` is, or keeps."""
    if isinstance(node, cst.Name):
        return node.value
    kept = kept_parameter(module, node)
    return kept[1] if kept is not None else ""


def _goes_elsewhere(body: str, options: str) -> bool:
    """Whether the `options` that a call in `body` passes are more than looked up and changed in the rest of it."""
    word = re.escape(options)
    return len(re.findall(rf"(?<!\bin )\b{word}\b(?!\s*(?:\.\w+[ \t]*\(|\[))", body)) != 1


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
