"""An expression and the scope it stands in -> the names that it may stand for."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.program.events import LOADER
from torchdet_lint.program.syntax.scopes import DEPTH, NAMES, constant, followed
from torchdet_lint.program.syntax.shapes import (
    FUNCTIONS,
    LITERALS,
    PASSED_ON,
    added_to,
    beginning,
    is_item,
    is_property,
    parameters_of,
    pattern_of,
    starts_empty,
    statements_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.program.events import Names
    from torchdet_lint.program.syntax.scopes import Bound, Scope, Scopes
    from torchdet_lint.program.syntax.vocabulary import Vocabulary


_LONGEST = 200


class Resolver:
    """What the names of one file stand for."""

    def __init__(self, scopes: Scopes, vocabulary: Vocabulary) -> None:
        self.scopes = scopes
        self.words, self.devices, self.wrappers, self.no_grad, self.canonical = vocabulary
        self._moves = tuple(f".{word}" for word in self.words.moves)
        self._resolved: dict[tuple[object, ...], Names] = {}
        self._shallow: dict[tuple[tuple[object, ...], int], Names] = {}
        self._cut = 0
        self._elements: dict[tuple[object, Scope], Names] = {}
        self._registries: dict[str, Names] = {}
        self._properties: dict[str, frozenset[str]] = {}
        self._self_values: dict[str, dict[str, list[tuple[ast.expr, Scope]]]] = {}

    def resolve(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names that `node` may stand for."""
        if depth <= 0:
            self._cut += 1
            return ()
        key: tuple[object, ...] = (node, scope)
        if isinstance(node, ast.Name):
            # All reads of a name in one scope stand for the same.
            home = scope.home(node.id)
            key = (node.id, home, home is scope)
        known = self._resolved.get(key)
        if known is None and (known := self._shallow.get((key, depth))) is not None:
            self._cut += 1
        if known is None:
            before = self._cut
            found = self._resolve(node, scope, depth)
            known = tuple(dict.fromkeys(name for name in found if len(name) < _LONGEST))[:NAMES]
            if self._cut == before:
                self._resolved[key] = known
            else:
                # Who asks here first has more to see than who came by on the way from somewhere else.
                self._shallow[key, depth] = known
        return known

    def _resolve(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        if isinstance(node, ast.Name):
            return self.resolve_name(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            owners = self.resolve(node.value, scope, depth - 1)
            if node.attr == "__dict__":
                return [f"{name}.*" for name in owners]
            data = self._data_of(node.value, scope, depth) if node.attr == "dataset" else ()
            return data or [self._joined(name, node.attr) for name in owners]
        if isinstance(node, ast.Call):
            return self._resolve_call(node, scope, depth)
        if isinstance(node, ast.IfExp):
            return (*self.resolve(node.body, scope, depth - 1), *self.resolve(node.orelse, scope, depth - 1))
        if isinstance(node, ast.BoolOp):
            return [name for value in node.values for name in self.resolve(value, scope, depth - 1)]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.resolve(node.value, scope, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._resolve_subscript(node, scope, depth)
        if isinstance(node, (ast.Dict, ast.Tuple, ast.List)):
            elements = node.values if isinstance(node, ast.Dict) else node.elts
            return (
                [name for value in elements if value is not None for name in self.resolve(value, scope, depth - 1)]
                if len(elements) <= 4 * NAMES
                else ()
            )
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.resolve(node.elt, scope, depth - 1)
        if isinstance(node, ast.Starred):
            return self.elements(node.value, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = (node.left, node.right)
            if any(isinstance(side, LITERALS) for side in sides):
                return [name for side in sides for name in self.resolve(side, scope, depth - 1)]
        return ()

    def _data_of(self, loader: ast.expr, scope: Scope, depth: int) -> list[str]:
        """The names of the data set that `loader` was given, where it is one that the function or its class makes."""
        made = [followed(loader, scope)]
        method = scope.method
        if isinstance(loader, ast.Attribute) and method is not None and method.outer is not None:
            made = self.values_of(method.outer).get(loader.attr, [])
        found: list[str] = []
        for call, where in made:
            if isinstance(call, ast.Call) and LOADER in self.resolve(call.func, where, depth - 1):
                named = [word.value for word in call.keywords if word.arg == "dataset"]
                for data in (*call.args[:1], *named):
                    found.extend(self.resolve(data, where, depth - 1))
        return found

    def elements(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names of what is in the container `node`, as far as it is filled in sight."""
        home = scope.home(node.id) if isinstance(node, ast.Name) else None
        key: tuple[object, Scope] = (node, scope)
        if home is not None and isinstance(node, ast.Name):
            key = (node.id, home)
        known = self._elements.get(key)
        if known is None and depth > 0:
            self._elements[key] = ()
            known = self._elements[key] = tuple(dict.fromkeys(self._find_elements(node, scope, depth)))[:NAMES]
        return known or ()

    def _find_elements(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        if isinstance(node, LITERALS):
            return self.resolve(node, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [name for side in (node.left, node.right) for name in self.elements(side, scope, depth - 1)]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in PASSED_ON and node.args:
                return self.elements(node.args[0], scope, depth - 1)
            if not self.words.containers.isdisjoint(self.resolve(node.func, scope, depth - 1)):
                return [name for arg in node.args for name in self.resolve(arg, scope, depth - 1)]
        values: Iterable[tuple[ast.expr, Scope]] = ()
        if isinstance(node, ast.Name):
            home = scope.home(node.id)
            bounds = home.bindings[node.id] if home is not None else []
            values = [
                (bound.value, home)
                for bound in bounds
                if home is not None and bound.value is not None and bound.kind in ("value", "part")
            ]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            method = scope.method
            if (
                method is not None
                and method.outer is not None
                and "$self" in self.resolve(node.value, scope, depth - 1)
            ):
                values = self.values_of(method.outer).get(node.attr, ())
        return [name for value, where in values for name in self.elements(value, where, depth - 1)]

    def _joined(self, name: str, attribute: str) -> str:
        if name.endswith("."):
            return name + attribute
        full = f"{name}.{attribute}"
        return full if name.startswith(("@", ".", "$")) else self.canonical(full)

    def resolve_name(self, name: str, scope: Scope, depth: int = DEPTH) -> list[str]:
        """The names that `name` may stand for in `scope`."""
        home = scope.home(name)
        if home is None:
            if name in BUILTINS:
                return [f"builtins.{name}"]
            return [f"*.{name}"] if self.scopes.stars else []
        found: list[str] = []
        for bound in home.bindings[name]:
            if bound.kind == "import":
                found.append(bound.target if bound.target.startswith(".") else self.canonical(bound.target))
            elif bound.kind in ("def", "class"):
                found.append(f"@.{bound.target}")
            elif bound.kind == "parameter":
                found.extend(self._resolve_parameter(name, bound, home, scope, depth))
            elif bound.kind == "element" and bound.value is not None:
                found.extend(self.elements(bound.value, home, depth - 1))
            elif bound.value is not None and bound.kind in ("value", "default", "part"):
                outer = home if bound.kind != "default" else home.outer or home
                found.extend(self.resolve(bound.value, outer, depth - 1))
        return found

    def _resolve_parameter(self, name: str, bound: Bound, home: Scope, scope: Scope, depth: int) -> list[str]:
        first = home.first
        if first and parameters_of(home.node.args)[0].arg == name:
            return ["$self" if first == "self" else "$cls"]
        found = [f"${name}"] if home is scope else []
        annotation = bound.value
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except (SyntaxError, ValueError):
                return found
        if isinstance(annotation, (ast.Name, ast.Attribute)) and home.outer is not None:
            found.extend(
                f"{kind}()"
                for kind in self.resolve(annotation, home.outer, depth - 1)
                if not kind.startswith("builtins.")
            )
        return found

    def _resolve_call(self, node: ast.Call, scope: Scope, depth: int) -> list[str]:
        found: list[str] = []
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "get":
                found.extend(self.registered(node.func.value, scope))
                found.extend(f"{name}.[]" for name in self.dictionary(node.func.value, scope) if name[0] == "$")
            found.extend(f"{name}()" for name in self.dictionary(node.func, scope) if name[0] == "@")
        for function in self.resolve(node.func, scope, depth - 1):
            if function == "builtins.super":
                found.append("$super")
            elif function == "builtins.getattr" and len(node.args) >= 2:
                attribute = constant(node.args[1], scope)
                last = str(attribute[0]) if attribute else f"{beginning(node.args[1])}*"
                found.extend(self._joined(name, last) for name in self.resolve(node.args[0], scope, depth - 1))
            elif function in ("importlib.import_module", "builtins.__import__"):
                module = constant(node.args[0], scope) if node.args else None
                if module is not None and isinstance(module[0], str):
                    found.append(self.canonical(module[0]))
            elif function in self.words.instantiates:
                paths = self.path(node.args[0], scope) if node.args else ()
                found.extend(f"%{path.partition('.')[2].replace('.', '/')}()" for path in paths)
            elif function in self.wrappers:
                found.extend(self._wrapped(node, scope, depth))
            elif function.endswith(self._moves) and ")" in function and function[0] not in "@.$*":
                found.append(function[: function.rindex(".")])
            elif function not in ("builtins.globals", "builtins.vars") and function.count("()") < 4:
                found.append(f"{function}()")
                if function in self.words.containers:
                    found.extend(name for arg in node.args for name in self.resolve(arg, scope, depth - 1))
        return found

    def path(self, node: ast.expr, scope: Scope) -> Names:
        """`$cfg.model.net` of `cfg.model["net"]`, where `cfg` is a parameter."""
        parts: list[str] = []
        while True:
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                parts.append(str(node.slice.value))
            else:
                break
            node = node.value
        names = self.resolve(node, scope)
        return tuple(".".join([name, *reversed(parts)]) for name in names if name[0] == "$" and "." not in name)

    def _wrapped(self, node: ast.Call, scope: Scope, depth: int) -> Iterator[str]:
        """The names of what a wrapper is given."""
        given = node.args[:1] or [word.value for word in node.keywords if word.arg in ("module", "model")]
        for value in given:
            yield from self.resolve(value, scope, depth - 1)

    def defined(self, pattern: str) -> Names:
        """The names that the module gives to functions, classes and what it imports, those that match `pattern`."""
        wanted = re.compile(pattern)
        return tuple(
            name
            for name, bounds in self.scopes.module.bindings.items()
            if any(bound.kind in ("def", "class", "import") for bound in bounds) and wanted.match(name)
        )

    def _resolve_subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> list[str]:
        if isinstance(node.value, ast.Call) and "builtins.globals" in self.resolve(node.value.func, scope, depth - 1):
            known = constant(node.slice, scope)
            pattern = pattern_of(node.slice) if known is None else f"{re.escape(str(known[0]))}$"
            names = [name for name in self.defined(pattern) if name != scope.name]
            return [one for name in names for one in self.resolve_name(name, self.scopes.module, depth - 1)]
        value = followed(node.value, scope)
        if isinstance(value[0], (ast.Dict, ast.List, ast.Tuple)) and not starts_empty(value[0]):
            elements = value[0].values if isinstance(value[0], ast.Dict) else value[0].elts
            if isinstance(value[0], ast.Dict) and isinstance(node.slice, ast.Constant):
                picked = [
                    v
                    for k, v in zip(value[0].keys, value[0].values, strict=True)
                    if isinstance(k, ast.Constant) and k.value == node.slice.value
                ]
                elements = picked or elements
            return [
                name
                for element in elements[: 4 * NAMES]
                if element is not None
                for name in self.resolve(element, value[1], depth - 1)
            ]
        found = self.resolve(node.value, scope, depth - 1)
        return [
            *(f"{name}.[]" for name in self.dictionary(node.value, scope)),
            *self.registered(node.value, scope),
            *self.elements(node.value, scope, depth - 1),
            *(
                name
                for name in found
                if name.endswith(".*") or (name.rpartition(".")[2][:1].isupper() and not name.endswith(")"))
            ),
        ]

    def dictionary(self, node: ast.expr, scope: Scope) -> Iterator[str]:
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
        for bound in home.bindings[node.id]:
            if bound.kind == "import":
                yield ".".join([bound.target.removesuffix("."), *parts])
            elif home is self.scopes.module and (bound.kind in ("def", "class") or self._may_be_filled(bound.value)):
                yield ".".join([f"@.{node.id}", *parts])
            elif bound.kind == "parameter" and len(parts) == 1 and self._starts_empty(parts[0], node.id, home):
                yield f"${'cls' if home.first == 'class' else 'self'}.{parts[0]}"

    def _may_be_filled(self, value: ast.expr | None) -> bool:
        """Whether `value` is an empty dictionary, or an object of a class of the project or of a registry."""
        if starts_empty(value):
            return True
        return isinstance(value, ast.Call) and any(
            name[0] in "@." or "egistr" in name.rpartition(".")[2]
            for name in self.resolve(value.func, self.scopes.module)
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

    def fills(self, name: str) -> bool:
        """Whether `name` is a dictionary of the module that starts empty."""
        return any(starts_empty(bound.value) for bound in self.scopes.module.bindings[name])

    def decorators_of(self, registry: str) -> Names:
        """The functions of the module that put what they decorate into its dictionary `registry`."""
        if not any(f"{registry}[" in line for line in self.scopes.hollow.lines):
            return ()
        self.scopes.fill()
        return tuple(
            name
            for name in self.scopes.functions()
            if self._puts_what_it_is_given(self.scopes.by_name[name].node, registry)
        )

    def _puts_what_it_is_given(self, node: ast.AST, registry: str) -> bool:
        functions = [inner for inner in ast.walk(node) if isinstance(inner, FUNCTIONS)]
        given = {one.arg for inner in functions for one in parameters_of(inner.args)}
        return any(
            isinstance(inner, ast.Assign)
            and any(is_item(target, registry) for target in inner.targets)
            and isinstance(inner.value, ast.Name)
            and inner.value.id in given
            for inner in ast.walk(node)
        )

    def registered(self, node: ast.expr, scope: Scope) -> Names:
        """The names of what functions of this file put into the dictionary `node` of the module, which starts empty."""
        if not isinstance(node, ast.Name) or scope.home(node.id) is not self.scopes.module:
            return ()
        bounds = self.scopes.module.bindings[node.id]
        if not any(starts_empty(bound.value) for bound in bounds):
            return ()
        known = self._registries.get(node.id)
        if known is None:
            self._registries[node.id] = ()
            known = self._registries[node.id] = tuple(dict.fromkeys(self._find_registered(node.id)))[: 2 * NAMES]
        return known

    def _find_registered(self, registry: str) -> Iterator[str]:
        if not any(f"{registry}[" in line for line in self.scopes.hollow.lines):
            return
        self.scopes.fill()
        for name in self.scopes.functions():
            node = self.scopes.by_name[name].node
            given = {
                one.arg for inner in ast.walk(node) if isinstance(inner, FUNCTIONS) for one in parameters_of(inner.args)
            }
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign) and any(is_item(target, registry) for target in inner.targets):
                    if isinstance(inner.value, ast.Name) and inner.value.id in given:
                        yield from self._decorated_with(f"@.{name}")
                    else:
                        yield from self.resolve(inner.value, self.scopes.module)
        for statement in self.scopes.tree.body:
            if isinstance(statement, ast.Assign) and any(is_item(target, registry) for target in statement.targets):
                yield from self.resolve(statement.value, self.scopes.module)

    def _decorated_with(self, decorator: str) -> Iterator[str]:
        for bounds in list(self.scopes.module.bindings.values()):
            for bound in bounds:
                if bound.kind in ("def", "class"):
                    for one in self.scopes.by_name[bound.target].node.decorator_list:
                        if not {decorator, f"{decorator}()"}.isdisjoint(self.resolve(one, self.scopes.module)):
                            yield f"@.{bound.target}"

    def properties(self, scope: Scope | None) -> frozenset[str]:
        """The properties of the class `scope`."""
        if scope is None:
            return frozenset()
        known = self._properties.get(scope.name)
        if known is None:
            known = self._properties[scope.name] = frozenset(
                name
                for name, bounds in scope.bindings.items()
                for bound in bounds
                if bound.kind == "def" and is_property(self.scopes.by_name[bound.target].node)
            )
        return known

    def values_of(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Attribute -> the values that the class `scope` gives to it in its methods."""
        if scope.name not in self._self_values:
            self._self_values[scope.name] = self._assigned(scope)
        return self._self_values[scope.name]

    def _assigned(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Attribute -> the values that the methods of a class give to it through their first parameter."""
        found: dict[str, list[tuple[ast.expr, Scope]]] = {}
        for bounds in list(scope.bindings.values()):
            for bound in bounds:
                if bound.kind != "def":
                    continue
                method = self.scopes.function(bound.target)
                if method is None or method.first != "self":
                    continue
                me = parameters_of(method.node.args)[0].arg
                for statement in statements_in(method.node.body):
                    if isinstance(statement, ast.Assign):
                        targets, value = statement.targets, statement.value
                    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                        targets, value = [statement.target], statement.value
                    elif isinstance(statement, (ast.AugAssign, ast.Expr)):
                        owner, part = added_to(statement)
                        if owner is None or part is None:
                            continue
                        targets, value = [owner], part
                    else:
                        continue
                    for target in targets:
                        if (
                            isinstance(target, ast.Attribute)
                            and isinstance(target.value, ast.Name)
                            and target.value.id == me
                        ):
                            found.setdefault(target.attr, []).append((value, method))
        return found
