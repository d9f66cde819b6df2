"""One parsed file -> what a summary asks of it: bodies, classes, globals, dispatch, configurations."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.syntax import defaults_of, walk
from torchdet_lint.program.events import (
    AT,
    CHILDREN,
    KEYS,
    LENGTH,
    LOADED,
    NAMED,
    PLAIN,
    SPELLS,
    Argument,
    Body,
    ClassSummary,
    Event,
    Test,
)
from torchdet_lint.program.syntax.arguments import Arguments
from torchdet_lint.program.syntax.conditions import is_of_run, setting
from torchdet_lint.program.syntax.extract import Extractor
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.named_texts import KEYED_ITEM, OF_PARAMETER, names_attribute, taken_as_text
from torchdet_lint.program.syntax.names import Resolver
from torchdet_lint.program.syntax.parameters.entries import entries_of
from torchdet_lint.program.syntax.registries import ITSELF, texts_given
from torchdet_lint.program.syntax.scopes import NAMES, Scopes, constant, followed
from torchdet_lint.program.syntax.shapes import (
    PASSED_ON,
    accessor,
    as_data,
    entries_returned,
    is_property,
    key_of,
    last_word,
    object_of,
    parameters_of,
    placed,
    required_of,
)
from torchdet_lint.program.syntax.unkept.naming import Naming
from torchdet_lint.program.syntax.unkept.times import Times

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from torchdet_lint.program.events import Event, Names
    from torchdet_lint.program.syntax.hollow import Hollow
    from torchdet_lint.program.syntax.scopes import Scope
    from torchdet_lint.program.syntax.vocabulary import Vocabulary


_HYDRA = ("config_path", "config_name")


class File:
    """One file, parsed as far as it is asked."""

    def __init__(self, hollow: Hollow, vocabulary: Vocabulary) -> None:
        self.hollow = hollow
        self.scopes = Scopes(hollow)
        self.names = Resolver(self.scopes, vocabulary)
        self._times = Times(self.names)
        self._naming = Naming(lambda: hollow.text, vocabulary.programs.naming)
        self.words = vocabulary.programs

    def release(self) -> None:
        """Let go of everything: names and scopes refer to themselves, and the collector, which would find them, is off
        in a lint."""
        self.scopes.release()
        vars(self._times).clear()
        self._naming.release()
        vars(self.names).clear()
        vars(self).clear()

    @property
    def size(self) -> int:
        """How many characters are parsed so far."""
        return self.scopes.size

    def stands_for(self, name: str) -> Names:
        """As `Summary.stands_for`."""
        if name not in self.scopes.module.bindings:
            return ()
        return tuple(dict.fromkeys(self.names.resolve_name(name, self.scopes.module)))[:NAMES]

    def defined(self) -> Names:
        """As `Summary.defined`."""
        return self.names.defined("")[: 2 * NAMES]

    def written(self, place: str) -> dict[str, Any]:
        """As `Summary.written`."""
        found = self._tables.get(place)
        return as_data(found) if found is not None else {}

    def entry(self, function: str, key: str) -> Names:
        """As `Summary.entry`."""
        scope = self.scopes.function(function)
        body = scope.node.body if scope is not None and scope.kind == "function" else []
        found = [
            name
            for value in entries_returned(body, key)
            for name in self.names.resolve(value, scope or self.scopes.module)
        ]
        return tuple(dict.fromkeys(found))[:NAMES]

    @functools.cached_property
    def _tables(self) -> dict[str, ast.Dict]:
        """The dictionaries of the file by the places at which they stand."""
        nodes = (node for one in parsed_body("".join(self.hollow.lines)) for node in walk(one))
        return {f"{node.lineno}:{node.col_offset}": node for node in nodes if isinstance(node, ast.Dict)}

    def class_summary(self, name: str) -> ClassSummary | None:
        """As `Summary.class_summary`."""
        scope = self.scopes.function(name)
        if scope is None or scope.kind != "class":
            return None
        methods: dict[str, str] = {}
        properties: list[str] = []
        setters: dict[str, str] = {}
        for key, bounds in scope.bindings.items():
            for bound in bounds:
                if bound.kind == "def":
                    node = self.scopes.by_name[bound.target].node
                    if key in properties and (changes := accessor(node)):
                        setters |= {key: bound.target} if changes == "setter" else {}
                        continue
                    methods[key] = bound.target
                    if is_property(node):
                        properties.append(key)
        bases = [
            name for base in scope.node.bases for name in self.names.resolve(base, scope.outer or self.scopes.module)
        ]
        return ClassSummary(tuple(bases), methods, tuple(properties), setters)

    def attribute(self, class_: str, name: str) -> Names:
        """As `Summary.attribute`."""
        scope = self.scopes.function(class_)
        if scope is None or scope.kind != "class":
            return ()
        values = self.names.values_of(scope)
        given = [one for key in _meant(name, values) for one in values[key]]
        found = [
            full
            for value, where in given
            for full in tuple(self._copied(value, where)) or self.names.resolve(value, where)
        ]
        for bound in scope.bindings.get(name, ()):
            if bound.kind == "value" and bound.value is not None:
                found.extend(self.names.resolve(bound.value, scope))
            elif bound.kind == "class":
                found.append(f"@.{bound.target}")
        return tuple(dict.fromkeys(found))[:NAMES]

    def _copied(self, value: ast.expr, scope: Scope) -> Iterator[str]:
        """The parameters of which `value` is a copy, a list of all that is in one: `list(hooks or ())`."""
        if isinstance(value, ast.Call) and value.args and last_word(value.func) in PASSED_ON:
            names = self.names.resolve(value.args[0], scope)
            yield from (name for name in names if name[0] == "$" and name[1:].isidentifier())

    def placed(self, attribute: str) -> Names:
        """As `Summary.placed`."""
        names = list(self.scopes.by_name)
        scopes = [self.scopes.module]
        for name in names:
            scope = self.scopes.function(name)
            scopes += [scope] if scope is not None and scope.kind == "function" else []
            names += [inner for inner in self.scopes.by_name if inner.startswith(f"{name}.") and inner not in names]
        found = [
            name
            for scope in scopes
            for value in placed(scope.node.body, attribute)
            for name in self.names.resolve(value, scope)
        ]
        return tuple(dict.fromkeys(name for name in found if name[0] != "$"))[:NAMES]

    def setting(self, class_: str, name: str) -> Argument | None:
        """As `Summary.setting`."""
        scope = self.scopes.function(class_)
        return setting(self.names, scope, name) if scope is not None and scope.kind == "class" else None

    def field(self, class_: str, name: str) -> Argument | None:
        """As `Summary.field`."""
        scope = self.scopes.function(class_)
        if scope is None or scope.kind != "class" or self.names.values_of(scope).get(name):
            return None
        bounds = scope.bindings.get(name, ())
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
        known = constant(value, scope) if value is not None else None
        return Argument((), True, known[0]) if known is not None and isinstance(known[0], PLAIN) else None

    def dispatch(self) -> dict[str, Names]:
        """As `Summary.dispatch`."""
        found: dict[str, list[str]] = {}
        registered = self.words.calls_register.search("".join(self.hollow.lines)) is not None
        if registered:
            self.scopes.fill()
        for name in list(self.scopes.by_name):
            scope = self.scopes.by_name[name]
            if scope.kind != "function":
                continue
            for decorator in scope.node.decorator_list:
                call = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(call, ast.Attribute) and call.attr in self.words.commands:
                    for key in self.names.resolve(call.value, scope.outer or self.scopes.module):
                        found.setdefault(key, []).append(f"@.{name}")
        for node, scope in self._registering() if registered else ():
            assert isinstance(node.func, ast.Attribute)
            for word in node.keywords:
                if word.arg and isinstance(word.value, (ast.Name, ast.Attribute)):
                    found.setdefault(f".{word.arg}", []).extend(self.names.resolve(word.value, scope))
            if node.func.attr == "add_command" and node.args:
                for key in self.names.resolve(node.func.value, scope):
                    found.setdefault(key, []).extend(self.names.resolve(node.args[0], scope))
        return {key: tuple(dict.fromkeys(value)) for key, value in sorted(found.items())}

    def _registering(self) -> Iterator[tuple[ast.Call, Scope]]:
        """The calls that say what a name of a call runs, each with the scope in which it stands."""
        scopes = [scope for scope in self.scopes.by_name.values() if scope.kind == "function"]
        homes = {id(inner): scope for scope in scopes for inner in walk(scope.node) if isinstance(inner, ast.Call)}
        for node in ast.walk(self.scopes.tree):
            method = node.func if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and isinstance(method, ast.Attribute) and method.attr in self.words.registers:
                yield node, homes.get(id(node), self.scopes.module)

    def registers(self) -> dict[str, Names]:
        """As `Summary.registers`."""
        own = {name: self.names.decorators_of(name) for name in self.scopes.module.bindings if self.names.fills(name)}
        return own | self.names.fillers()

    def registered(self) -> Iterator[tuple[str, str, Names]]:
        """As `Summary.registered`."""
        top = self.scopes.module
        for bounds in list(top.bindings.values()):
            for bound in bounds:
                if bound.kind in ("def", "class"):
                    for decorator in self.scopes.by_name[bound.target].node.decorator_list:
                        for name in self.names.dictionary(decorator, top):
                            yield name, f"@.{bound.target}", texts_given(decorator)
        for statement in self.scopes.tree.body:
            where: list[ast.expr] = []
            given: list[str] = []
            texts: Names = ()
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                where, texts = [statement.value], texts_given(statement.value)
                given = [name for one in statement.value.args for name in self.names.resolve(one, top)]
            elif isinstance(statement, ast.Assign):
                where = [target.value for target in statement.targets if isinstance(target, ast.Subscript)]
                given = list(self.names.resolve(statement.value, top)) if where else []
                keys = [key_of(one.slice) for one in statement.targets if isinstance(one, ast.Subscript)]
                texts = (f"{ITSELF}={keys[0]}",) if len(keys) == 1 and keys[0] else ()
            for name in (name for one in where for name in self.names.dictionary(one, top)) if given else ():
                yield from ((name, one, texts) for one in given if not one.endswith(")"))

    def configs(self) -> Iterator[tuple[str, str]]:
        """As `Summary.configs`."""
        for scope in list(self.scopes.by_name.values()):
            for decorator in getattr(scope.node, "decorator_list", ()):
                if not isinstance(decorator, ast.Call):
                    continue
                if self.words.configured.isdisjoint(
                    self.names.resolve(decorator.func, scope.outer or self.scopes.module)
                ):
                    continue
                given = dict(zip(("config_path", "config_name"), decorator.args, strict=False))
                given |= {word.arg: word.value for word in decorator.keywords if word.arg}
                told = [constant(given[key], self.scopes.module) if key in given else (".",) for key in _HYDRA]
                if not all(one is not None and isinstance(one[0], str) for one in told):
                    continue
                path, name = (str(one[0]) for one in told if one is not None)
                if "config_name" in given:
                    yield path, name
                elif path.endswith((".yaml", ".yml")):
                    yield path, ""

    def body(self, name: str) -> Body | None:
        """As `Summary.body`."""
        scope = self.scopes.function(name)
        if scope is None:
            return None
        if scope.kind == "class":
            return None
        walk = Extractor(self.names, scope, self._times, self._naming)
        found = self._body(scope, walk)
        vars(walk).clear()
        return found

    def _body(self, scope: Scope, walk: Extractor) -> Body:
        node = scope.node
        if scope.kind == "module":
            walk.block(node.body, ())
            tests = tuple(filter(is_of_run, walk.tests))
            return Body(1, tuple(walk.events), inner=tuple(self.scopes.functions()), tests=tests)
        walk.function(node)
        parameters = parameters_of(node.args)
        returns: list[str] = []
        returned: dict[str, list[tuple[int, ...]]] = {}
        for value, parts in walk.returns:
            whole = self.names.resolve(value, scope)
            returns.extend(whole)
            named = [(one, arms) for part, arms in parts for one in self.names.resolve(part, scope)]
            # What a name stands for besides is returned in any arm.
            picked = dict(named)
            named += [(one, ()) for one in whole if one not in picked]
            for one, arms in named:
                returned.setdefault(one, []).append(arms)
        names = list(_names_in(walk.events))
        found_by = [name for name in (*names, *returns) if OF_PARAMETER in name]
        texts = {parameter for name in found_by for parameter in taken_as_text(name)}
        texts |= {parameter for event in walk.events for parameter in self._finds_by(event)}
        spelling = (Test(f"{NAMED}{parameter}", SPELLS) for parameter in sorted(texts))
        keys = {match[2] for name in (*names, *returns) for match in KEYED_ITEM.finditer(name) if match[1] == "$"}
        keys |= {parameter for parameter in texts if any(names_attribute(name, parameter) for name in found_by)}
        keying = (Test(parameter, KEYS) for parameter in sorted(keys))
        tests = (*walk.tests, *walk.handed, *walk.asked_inside, *spelling, *keying)
        uses = {name[1:].partition(".")[0].partition("(")[0] for name in names if name.startswith("$")}
        if returns and (told := object_of(node.returns)) is not None:
            returns.extend(self.names.told(told, scope.outer or self.scopes.module))
        return Body(
            node.lineno,
            tuple(walk.events),
            tuple(dict.fromkeys(returns))[:NAMES],
            tuple(parameter.arg for parameter in parameters),
            tuple(sorted(uses - {"self", "cls", "super"})),
            scope.first,
            tuple(
                self.names.resolve(decorator, scope.outer or self.scopes.module) for decorator in node.decorator_list
            ),
            tuple(bound.target for bounds in scope.bindings.values() for bound in bounds if bound.kind == "def"),
            walk.lazy and self.words.lazy.issuperset(last_word(decorator) for decorator in node.decorator_list),
            tests,
            self._defaults(scope, None if node.name == "__init__" else {test.parameter for test in tests} | texts),
            dict(self._arms(scope, walk)) if tests and walk.defined else {},
            required_of(node.args),
            "*" * (node.args.vararg is not None) + "**" * (node.args.kwarg is not None),
            len(node.args.posonlyargs) + len(node.args.args),
            tuple(sorted(set(_gone_through(walk.events, self.names.roots)))),
            {one: tuple(arms) for one, arms in returned.items() if all(arms)} if tests else {},
            self._rows(walk, scope),
            entries_of(walk.returns[0][0], self.names, scope) if len(walk.returns) == 1 else (),
            self._loaders(walk, scope),
        )

    def _rows(self, walk: Extractor, scope: Scope) -> tuple[Names, ...]:
        """As `Body.rows`."""
        whole: list[str] = []
        rows: list[list[str]] = []
        for part, _ in (one for _, parts in walk.returns for one in parts):
            row, where = _row(part, scope)
            if row is None:
                whole += self.names.resolve(part, scope)
                continue
            rows += ([] for _ in range(len(rows), len(row)))
            for names, one in zip(rows, row, strict=False):
                names += self.names.resolve(one, where)
        return tuple(tuple(dict.fromkeys(names))[:NAMES] for names in (whole, *rows)) if rows else ()

    def _loaders(self, walk: Extractor, scope: Scope) -> dict[str, Event]:
        """As `Body.loaders`: of what the function returns in one place of its text alone."""
        if not self.names.makes_loaders:
            return {}
        arguments = Arguments(self.names, scope)
        found: dict[str, list[Event | None]] = {}
        for part, _ in (one for _, parts in walk.returns for one in parts):
            row, _ = _row(part, scope)
            placed = [("", part)] if row is None else [(f"{AT}{at}", one) for at, one in enumerate(row)]
            for place, one in placed:
                found.setdefault(place, []).append(arguments.loader(one))
        return {place: made[0] for place, made in found.items() if len(made) == 1 and made[0] is not None}

    def _finds_by(self, event: Event) -> Iterator[str]:
        """The parameters that a call is given, or entries of them, which gives what a text names."""
        given = event.positional[0].names if event.kind == "call" and event.positional else ()
        if given and any(self.words.finds_by_text.search(name.rpartition(".")[2]) for name in event.names):
            yield from (name[1:].partition(".")[0] for name in given if name[0] == "$" and "(" not in name)

    def _arms(self, scope: Scope, walk: Extractor) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The arms in which the functions that a function defines are defined, by their qualified names."""
        for bounds in scope.bindings.values():
            for bound in bounds:
                inner = self.scopes.by_name[bound.target].node if bound.kind == "def" else None
                arms = walk.defined.get((inner.lineno, inner.col_offset)) if inner is not None else None
                if arms is not None:
                    yield bound.target, arms

    def _defaults(self, scope: Scope, asked: set[str] | None) -> dict[str, Any]:
        """The constants that parameters are by default: those `asked` for, or all; lists where their length is
        asked for."""
        found = {}
        for name, default in defaults_of(scope.node.args) if asked is None or asked else ():
            counted = asked is not None and f"{name}{LENGTH}" in asked
            known = constant(default, self.scopes.module) if asked is None or name in asked or counted else None
            if known is not None and (isinstance(known[0], PLAIN) or (counted and isinstance(known[0], list))):
                found[name] = known[0]
        return found


def _names_in(events: Iterable[Event]) -> Iterator[str]:
    """The names of what `events` call, and of what they pass."""
    for event in events:
        yield from event.names
        for argument in (*event.positional, *event.keywords.values()):
            yield from argument.names


def _row(part: ast.expr, scope: Scope) -> tuple[list[ast.expr] | None, Scope]:
    """What stands at the places of the tuple `part` that is written out, at once or under a name, and where; None for
    all else."""
    row, where = part, scope
    if isinstance(part, ast.Name) and isinstance((held := followed(part, scope))[0], ast.Tuple):
        row, where = held
    if not isinstance(row, (ast.Tuple, ast.List)) or any(isinstance(one, ast.Starred) for one in row.elts):
        return None, scope
    return row.elts, where


def _gone_through(events: Iterable[Event], others: Container[str]) -> Iterator[str]:
    """The parameters that `events` go through, and those that they hand on to what is of no package in `others`."""
    for event in events:
        if event.kind == "iterate":
            yield from (name.removeprefix(LOADED) for name in event.names if name.startswith(LOADED))
        elif event.kind == "call" and event.names[0].partition(".")[0] not in others:
            for argument in (*event.positional, *event.keywords.values()):
                name = argument.names[0] if len(argument.names) == 1 else ""
                if name[:1] == "$" and name[1:].isidentifier():
                    yield name[1:]


def _meant(name: str, known: Iterable[str]) -> Iterator[str]:
    """The attributes of those `known` that `name` may mean. One that ends with a star begins so, and goes on as only
    the run knows; one of which nothing is known may mean none that has a plain name."""
    start = name.removesuffix("*")
    for key in known:
        if name == CHILDREN:
            yield key
            continue
        head = key.removesuffix("*")
        if name == start:
            meant = key == name or (key != head != "" and name.startswith(head))
        else:
            meant = (start != "" and head.startswith(start)) or (key != head and start.startswith(head))
        if meant:
            yield key
