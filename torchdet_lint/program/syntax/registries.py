"""The names of a file -> what dictionaries and objects of modules hold that functions or other files put into them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.events import KEY
from torchdet_lint.program.syntax.scopes import DEPTH, NAMES
from torchdet_lint.program.syntax.shapes import FUNCTIONS, is_item, key_of, parameters_of, starts_empty
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.program.events import Names
    from torchdet_lint.program.syntax.scopes import Scope, Scopes

# A key that is what the registered definition is called.
_OWN = "__name__"
# What a method of a registry calls a key.
_KEYS = ("key", "name")
# What stands for the key of an assignment, `NETS["deep"] = Deep`, among what a decorator is given.
ITSELF = "[]"
# A dictionary in a dictionary that an object has is given something.
_FILLS_SHELF = lazy(r"\.\w+\[[\"']\w+[\"']\]\[.*=")


class Registries:
    """What is registered in a file, and what may be taken from a registry there."""

    def __init__(self, scopes: Scopes, roots: frozenset[str]) -> None:
        """`roots` are the packages of libraries, whose objects no file of the project fills."""
        self.scopes = scopes
        self.roots = roots
        self._registries: dict[str, tuple[Names, Names]] = {}
        self._fillable: dict[str, bool] = {}

    def resolve(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names that `node` may stand for."""
        raise NotImplementedError

    def values_of(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Attribute -> the values that the class `scope` gives to it in its methods."""
        raise NotImplementedError

    def dictionary(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Iterator[str]:
        """The name of the object of a module that `node` is, or has its attributes from, where the module fills it or
        another may: `@.MODELS` for a call or an empty dictionary; `$self.items` for an attribute that starts empty."""
        parts: list[str] = []
        while isinstance(node, (ast.Attribute, ast.Call)):
            if isinstance(node, ast.Attribute):
                parts.insert(0, node.attr)
            elif parts:
                return
            node = node.func if isinstance(node, ast.Call) else node.value
        home = scope.home(node.id) if isinstance(node, ast.Name) else None
        if home is None or not isinstance(node, ast.Name):
            return
        if home is self.scopes.module and self._may_be_filled(node.id, depth):
            yield ".".join([f"@.{node.id}", *parts])
        for bound in home.given.get(node.id, ()):
            if bound.kind == "import":
                full = ".".join([bound.target.removesuffix("."), *parts])
                if "egist" in full or full.partition(".")[0] not in self.roots:
                    yield full
            elif bound.kind == "parameter" and len(parts) == 1 and self._starts_empty(parts[0], node.id, home):
                yield f"${'cls' if home.first == 'class' else 'self'}.{parts[0]}"

    def _may_be_filled(self, name: str, depth: int) -> bool:
        """Whether the global `name` may stand for what is filled elsewhere; asked once a name, however often it is
        bound."""
        known = self._fillable.get(name)
        if known is None:
            self._fillable[name] = False
            known = self._fillable[name] = any(
                bound.kind in ("def", "class") or self._starts_as_registry(bound.value, depth)
                for bound in self.scopes.module.bindings[name]
            )
        return known

    def _starts_as_registry(self, value: ast.expr | None, depth: int) -> bool:
        """Whether `value` is an empty dictionary, or an object of a class of the project or of a registry."""
        if starts_empty(value):
            return True
        return isinstance(value, ast.Call) and any(
            name.startswith(("@", ".")) or "egistr" in name.rpartition(".")[2]
            for name in self.resolve(value.func, self.scopes.module, depth - 1)
        )

    def _starts_empty(self, attribute: str, parameter: str, home: Scope) -> bool:
        """Whether `attribute` of the object that a method has as `parameter` starts as an empty dictionary."""
        class_ = home.outer
        if not home.first or class_ is None or parameters_of(home.node.args)[0].arg != parameter:
            return False
        own = [bound.value for bound in class_.bindings.get(attribute, ())]
        return any(map(starts_empty, own)) or any(
            starts_empty(value) for value, _ in self.values_of(class_).get(attribute, ())
        )

    def shelves(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        """The names of `cls.mapping["models"]`, one of the dictionaries that a dictionary of the class holds, all empty
        at first: `$cls.mapping:models`."""
        shelf = _shelf(node)
        home = scope.home(shelf[0]) if shelf is not None else None
        class_ = home.outer if home is not None else None
        if shelf is None or home is None or class_ is None or not home.first:
            return
        owner, attribute, key = shelf
        written = (bound.value for bound in class_.bindings.get(attribute, ()))
        if parameters_of(home.node.args)[0].arg == owner and any(
            isinstance(table, ast.Dict) and _holds_empty(table, key) for table in written
        ):
            yield f"${'cls' if home.first == 'class' else 'self'}.{attribute}{KEY}{key}"

    def fillers(self) -> dict[str, Names]:
        """The methods that put something into one of the dictionaries that a dictionary of their class holds, by
        `mapping:models`."""
        if not any(_FILLS_SHELF.search(line) for line in self.scopes.hollow.lines):
            return {}
        self.scopes.fill()
        found: dict[str, list[str]] = {}
        for name, scope in self.scopes.by_name.items():
            for inner in walk(scope.node) if scope.kind == "function" else ():
                targets = inner.targets if isinstance(inner, ast.Assign) else []
                for target in targets:
                    shelf = _shelf(target.value) if isinstance(target, ast.Subscript) else None
                    if shelf is not None:
                        found.setdefault(f"{shelf[1]}{KEY}{shelf[2]}", []).append(name)
        return {shelf: tuple(names) for shelf, names in found.items()}

    def fills(self, name: str) -> bool:
        """Whether `name` is a dictionary of the module that starts empty."""
        return any(starts_empty(bound.value) for bound in self.scopes.module.bindings[name])

    def decorators_of(self, registry: str) -> Names:
        """The functions of the module that put what they decorate into its dictionary `registry`, with what is known of
        the key, as in `Summary.registers`."""
        if not any(f"{registry}[" in line for line in self.scopes.hollow.lines):
            return ()
        self.scopes.fill()
        found = []
        for name in self.scopes.functions():
            node = self.scopes.by_name[name].node
            keys = list(_keys_of_given(node, registry))
            if keys:
                known = _key_made(keys[0], node) if len(keys) == 1 else ""
                found.append(f"{name}{KEY}{known}" if known else name)
        return tuple(found)

    def registered(self, node: ast.expr, scope: Scope, *, decorated: bool = True) -> Names:
        """The names of what functions of this file put into the dictionary `node` of the module, which starts empty;
        with what they decorate, or without."""
        if not isinstance(node, ast.Name) or scope.home(node.id) is not self.scopes.module:
            return ()
        bounds = self.scopes.module.bindings[node.id]
        if not any(starts_empty(bound.value) for bound in bounds):
            return ()
        known = self._registries.get(node.id)
        if known is None:
            self._registries[node.id] = (), ()
            whole = tuple(dict.fromkeys(self._find_registered(node.id, decorated=True)))[: 2 * NAMES]
            others = tuple(dict.fromkeys(self._find_registered(node.id, decorated=False)))[: 2 * NAMES]
            known = self._registries[node.id] = whole, others
        return known[0 if decorated else 1]

    def _find_registered(self, registry: str, *, decorated: bool) -> Iterator[str]:
        if not any(f"{registry}[" in line for line in self.scopes.hollow.lines):
            return
        self.scopes.fill()
        for name in self.scopes.functions():
            node = self.scopes.by_name[name].node
            given = {
                one.arg for inner in walk(node) if isinstance(inner, FUNCTIONS) for one in parameters_of(inner.args)
            }
            for inner in walk(node):
                if isinstance(inner, ast.Assign) and any(is_item(target, registry) for target in inner.targets):
                    if isinstance(inner.value, ast.Name) and inner.value.id in given:
                        yield from self._decorated_with(f"@.{name}") if decorated else ()
                    else:
                        yield from self.resolve(inner.value, self.scopes.module)
        for statement in self.scopes.tree.body if decorated else ():
            if isinstance(statement, ast.Assign) and any(is_item(target, registry) for target in statement.targets):
                yield from self.resolve(statement.value, self.scopes.module)

    def _decorated_with(self, decorator: str) -> Iterator[str]:
        for bounds in list(self.scopes.module.bindings.values()):
            for bound in bounds:
                if bound.kind in ("def", "class"):
                    for one in self.scopes.by_name[bound.target].node.decorator_list:
                        if not {decorator, f"{decorator}()"}.isdisjoint(self.resolve(one, self.scopes.module)):
                            yield f"@.{bound.target}"


def _shelf(node: ast.expr) -> tuple[str, str, str] | None:
    """The names and the key in `cls.mapping["models"]`."""
    table = node.value if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Subscript) and isinstance(table, ast.Attribute) and isinstance(table.value, ast.Name):
        key = key_of(node.slice)
        return (table.value.id, table.attr, key) if key else None
    return None


def _holds_empty(table: ast.Dict, key: str) -> bool:
    pairs = zip(table.keys, table.values, strict=True)
    return any(isinstance(name, ast.Constant) and name.value == key and starts_empty(value) for name, value in pairs)


def _keys_of_given(function: ast.AST, registry: str) -> Iterator[ast.expr]:
    """The keys under which a function puts what it is given, or a function in it, into a dictionary."""
    functions = [inner for inner in walk(function) if isinstance(inner, FUNCTIONS)]
    given = {one.arg for inner in functions for one in parameters_of(inner.args)}
    for inner in walk(function):
        if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name) and inner.value.id in given:
            yield from (one.slice for one in inner.targets if isinstance(one, ast.Subscript) and is_item(one, registry))


def _key_made(key: ast.expr, function: ast.AST) -> str:
    """What a key is in a function that registers: `0=name`, `__name__` or `0=name|__name__`; nothing for what else is
    made of these."""
    own = parameters_of(function.args) if isinstance(function, FUNCTIONS) else []
    places = {one.arg: place for place, one in enumerate(own)}
    given = [
        (target.id, inner.value)
        for inner in walk(function)
        if isinstance(inner, ast.Assign)
        for target in inner.targets
        if isinstance(target, ast.Name)
    ]
    found: set[str] = set()
    left, seen = [key], set[str]()
    while left:
        match left.pop():
            case ast.Name(id=name):
                values = [value for target, value in given if target == name] if name not in seen else []
                if not values and name not in places:
                    return ""
                left += values
                seen.add(name)
                found.update([f"{places[name]}={name}"] if name in places else [])
            case ast.Attribute(value=ast.Name(), attr="__name__"):
                found.add(_OWN)
            case ast.BoolOp(op=ast.Or(), values=values):
                left += values
            case ast.IfExp(body=body, orelse=orelse):
                left += [body, orelse]
            case _:
                return ""
    return "|".join(sorted(found)) if len(found - {_OWN}) <= 1 else ""


def texts_given(call: ast.expr) -> Names:
    """What a call is given by place and by name: `0=train`, `name=train`; `0` for what is no constant text."""
    if not isinstance(call, ast.Call):
        return ()
    given = [(str(place), one) for place, one in enumerate(call.args)]
    given += [(one.arg or "*", one.value) for one in call.keywords]
    return tuple(
        f"{place}={value.value}" if isinstance(value, ast.Constant) and isinstance(value.value, str) else place
        for place, value in given
    )


def key_told(given: Names, definition: str) -> str:
    """The key under which a method of a registry registers `definition`, which is `given` that: the only text, by place
    or under a name that says so, else what the definition is called; nothing where nobody knows."""
    told = [one.partition("=") for one in given]
    texts = [text for place, equals, text in told if equals and (place.isdigit() or place in _KEYS)]
    unsure = any(place == "*" or (not equals and place in (*_KEYS, "0")) for place, equals, _ in told)
    if texts or unsure:
        return texts[0] if len(texts) == 1 and "*" not in given else ""
    return definition.rpartition(".")[2].partition("'")[0]


def key_given(made: str, given: Names, definition: str) -> str:
    """The key under which `definition` is registered by a function which makes it so, `0=name|__name__`, and is `given`
    that; nothing where nobody knows."""
    texts = {place: text for place, _, text in (one.partition("=") for one in given)}
    if "*" in texts or not made:
        return texts.get(ITSELF, "")
    for source in made.split("|"):
        place, _, name = source.partition("=")
        if source == _OWN:
            return definition.rpartition(".")[2].partition("'")[0]
        if source and (place in texts or name in texts):
            return texts[place] if place in texts else texts[name]
    return ""
