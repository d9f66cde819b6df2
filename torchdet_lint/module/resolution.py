"""An expression -> the qualified names that it may stand for, through scopes, aliases and the attributes of classes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.module.facts import Expression
from torchdet_lint.module.names import first_parameter, is_class_method, live
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import may_be_shadowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.loading import Loading
    from torchdet_lint.module.names import Scope
    from torchdet_lint.module.relations import Relations

_DEPTH = 14
_NAMES = 8
_VALUES = 32
_CHAINED = 3
_ASSIGNED = lazy(r"\s*(?::[^=\n]*)?=(?!=)")
_AND_OTHERS = lazy(r"[ \t]*,[^=\n(\[]*=(?!=)")
_OTHERS = lazy(r"[\w., \t]*")
# A module that a function imports and gives back.
_GIVES = lazy(r"\n[ \t]+import[ \t]+([\w.]+)[ \t]*(?:#[^\n]*)?\n\s*return[ \t]+\1[ \t]*(?=[#\n])")


class Resolver:
    """What the names of one file stand for; `names` says what a qualified name looks like."""

    def __init__(
        self,
        loading: Loading,
        relations: Relations,
        constant: Callable[[cst.BaseExpression, Scope, int | None], tuple[object] | None],
    ) -> None:
        """`constant` gives the constant that an expression evidently is, in a 1-tuple: `getattr` and `import_module`
        name things by it."""
        self.loading = loading
        self.relations = relations
        self.facts = loading.facts
        self.library = loading.library
        self.constant = constant
        # What a name means that the file takes from another by a star, where somebody knows the other files.
        self.starred: Callable[[str, Sequence[str]], str] | None = None
        # Whether a module of the project stands before the one of the standard library that a name means.
        self.shadowed: Callable[[str], bool] | None = None
        # While callees are named, no unit is parsed for the attributes in them.
        self.naming = False
        self._starred: dict[str, str] = {}
        self._shadows: dict[str, bool] = {}
        self._resolved: dict[tuple[str, int], tuple[str, ...]] = {}
        self._bases: dict[int, tuple[str, ...]] = {}
        self._attributes: dict[tuple[int, str], list[Expression]] = {}
        # How many assignments to an attribute were looked at, and what they give it in each class.
        self._assigned: dict[str, tuple[int, dict[Scope, list[Expression]]]] = {}

    def resolve(
        self, node: cst.BaseExpression, scope: Scope | None = None, order: int | None = None
    ) -> tuple[str, ...]:
        """The qualified names that `node` may stand for, sorted; none where that is not evident."""
        if scope is None:
            scope, order = self.relations.scope_of(node), self.relations.order_of(node)
        return tuple(sorted(set(self._resolve(node, scope, order, _DEPTH))))

    def _resolve(self, node: Any, scope: Scope, order: int | None, depth: int) -> list[str]:
        if depth <= 0:
            return []
        # An abstract class asks slowly whether a node of another class is of it.
        kind = type(node)
        if kind is cst.Name:
            return self._resolve_name(node.value, scope, order, depth)
        if kind is cst.Attribute:
            return self._resolve_attribute(node, scope, order, depth)
        if kind is cst.Call:
            return self._resolve_call(node, scope, order, depth)
        if kind is cst.IfExp:
            return [
                *self._resolve(node.body, scope, order, depth - 1),
                *self._resolve(node.orelse, scope, order, depth - 1),
            ]
        if kind is cst.BooleanOperation:
            return [
                *self._resolve(node.left, scope, order, depth - 1),
                *self._resolve(node.right, scope, order, depth - 1),
            ]
        if kind is cst.NamedExpr:
            return self._resolve(node.value, scope, order, depth - 1)
        if kind is cst.Subscript:
            found = self._resolve(node.value, scope, order, depth - 1)
            items = [self.library.canonical(f"{name}[]") for name in found]
            return [
                *(name for name in found if name.rpartition(".")[2][:1].isupper()),
                *(name for name in items if not name.endswith("[]")),
            ]
        return []

    def _resolve_name(self, name: str, scope: Scope, order: int | None, depth: int) -> list[str]:
        home = scope.home(name)
        if home is None:
            return self._unbound(name, scope)
        seen_from_here = home.function is scope.function
        found: list[str] = []
        for binding in live(home.bindings[name], order if seen_from_here else None):
            if binding.kind == "import":
                found.append(self._imported(binding.target))
            elif binding.kind in ("def", "class"):
                found.append(home.qualified(name))
            elif binding.kind in ("assign", "with") and binding.value is not None and not binding.path:
                found.extend(self._resolve_once(name, binding.value, home, binding.order, depth))
            elif binding.kind == "parameter" and is_class_method(home) and first_parameter(home) == name:
                found.append(self._name_of_class(home.outer))
            elif binding.kind == "parameter":
                found.extend(self._default_class(binding.node, home, depth))
        return found

    def _imported(self, target: str) -> str:
        first = target.partition(".")[0]
        if self.shadowed is not None and first in self.library.roots and may_be_shadowed(first):
            if first not in self._shadows:
                self._shadows[first] = self.shadowed(first)
            if self._shadows[first]:
                return f".{target}"
        return self._handed_on(target) or self.library.canonical(target)

    def _handed_on(self, target: str) -> str:
        """What `from data import DataLoader` brings where the module of the project has imported it; else empty."""
        name = target.rpartition(".")[2]
        package = target.removesuffix(name)
        root = package.partition(".")[0]
        if self.starred is None or not package or root in self.library.roots or name not in self.library.handed_on:
            return ""
        if target not in self._starred:
            module = package.removesuffix(".") if package.strip(".") else package
            self._starred[target] = self.starred(name, (module,))
        return self._starred[target]

    def _default_class(self, parameter: Any, home: Scope, depth: int) -> list[str]:
        """The class of a library that a parameter is unless a caller passes another one."""
        default = parameter.default
        if home.outer is None or not isinstance(default, (cst.Name, cst.Attribute)):
            return []
        found = self._resolve(default, home.outer, None, depth - 1)
        return [name for name in found if name[0] not in "@." and name.rpartition(".")[2][:1].isupper()]

    def _name_of_class(self, scope: Scope | None) -> str:
        """The qualified name of the class of which `scope` is the body."""
        assert scope is not None
        assert scope.outer is not None
        return scope.outer.qualified(scope.name)

    def _own_class(self, node: cst.BaseExpression, scope: Scope) -> list[str]:
        """The class of the object `node`, where that is what a method is called on."""
        method = self._method_called_on(node, scope)
        return [self._name_of_class(method.outer)] if method is not None and not is_class_method(method) else []

    def _resolve_once(
        self, name: str, value: cst.BaseExpression, scope: Scope, order: int | None, depth: int
    ) -> tuple[str, ...]:
        """What the value bound to `name` at `order` stands for; worked out once, cycles cut."""
        key = (name, order or 0)
        known = self._resolved.get(key)
        if known is None:
            self._resolved[key] = ()
            known = self._resolved[key] = tuple(sorted(set(self._resolve(value, scope, order, depth - 1))))[:_NAMES]
        return known

    def _unbound(self, name: str, scope: Scope) -> list[str]:
        stars = scope.module.stars
        if name in BUILTINS:
            return [] if name in ("None", "True", "False") else [f"builtins.{name}"]
        found = []
        for module in stars:
            if full := self.library.starred(module, name):
                found.append(full)
        if stars and not found and self.starred is not None:
            if name not in self._starred:
                self._starred[name] = self.starred(name, stars)
            found = [self._starred[name]] if self._starred[name] else []
        return found

    def _resolve_attribute(self, node: cst.Attribute, scope: Scope, order: int | None, depth: int) -> list[str]:
        attribute = node.attr.value
        values = self.self_attribute(node, scope)
        if values:
            found: list[str] = []
            for value in values:
                found.extend(self._resolve_once(f".{attribute}", value.node, value.scope, value.order, depth))
            return found
        if (
            isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Name)
            and node.value.func.value == "super"
        ):
            class_ = self.relations.enclosing_class_of_scope(scope)
            if class_ is None:
                return []
            return [f"{base}.{attribute}" for base in self.base_names(class_)]
        if attribute == "__class__":
            return self._own_class(node.value, scope)
        names_ = self._resolve(node.value, scope, order, depth - 1)
        return [self.library.canonical(f"{name}.{attribute}") for name in names_]

    def _resolve_call(self, node: cst.Call, scope: Scope, order: int | None, depth: int) -> list[str]:
        functions = self._resolve(node.func, scope, order, depth - 1)
        found: list[str] = []
        for function in functions:
            if function == "builtins.getattr" and len(node.args) >= 2:
                attribute = self.constant(node.args[1].value, scope, order)
                if attribute is not None and isinstance(attribute[0], str):
                    base = self._resolve(node.args[0].value, scope, order, depth - 1)
                    class_ = self.class_of(node.args[0].value, scope)
                    for value in self.attribute_values(class_, attribute[0]) if class_ is not None else ():
                        found.extend(
                            self._resolve_once(f".{attribute[0]}", value.node, value.scope, value.order, depth)
                        )
                    found.extend(self.library.canonical(f"{name}.{attribute[0]}") for name in base)
            elif function in ("importlib.import_module", "builtins.__import__") and node.args:
                module = self.constant(node.args[0].value, scope, order)
                if module is not None and isinstance(module[0], str):
                    found.append(self.library.canonical(module[0]))
            elif function == "functools.partial":
                if node.args:
                    found.extend(self._resolve(node.args[0].value, scope, order, depth - 1))
            elif function == "builtins.type" and len(node.args) == 1:
                found.extend(self._own_class(node.args[0].value, scope))
            elif modules := self._modules_given(function):
                found.extend(modules)
            elif function.count("()") < _CHAINED:
                found.append(self._result(function))
        return found

    def _modules_given(self, function: str) -> list[str]:
        """The modules that the function of the file imports, of which it gives one: `return torchvision.transforms`."""
        if not self._gives_modules or not function.startswith("@.") or function.count(".") > 1:
            return []
        text = self.loading.text_of(function[2:])
        given = _GIVES.findall(text)
        return [self.library.canonical(name) for name in given] if len(given) == text.count("return ") else []

    @functools.cached_property
    def _gives_modules(self) -> bool:
        return _GIVES.search(self.facts.text) is not None

    def _result(self, function: str) -> str:
        """The name of what a call of `function` gives: a method that moves a module gives the module."""
        owner, _, method = function.rpartition(".")
        moved = owner.endswith("()") and method in self.library.facts.programs.moves
        if moved and (owner.startswith("torch.nn.") or owner.partition(".")[0] not in self.library.roots):
            return owner
        return f"{function}()"

    def self_attribute(self, node: cst.Attribute, scope: Scope) -> list[Expression]:
        """The values that the methods of the class give to `self.name`; none where it is not such an attribute."""
        class_ = self.class_of(node.value, scope)
        return self.attribute_values(class_, node.attr.value) if class_ is not None else []

    def class_of(self, node: cst.BaseExpression, scope: Scope) -> Class | None:
        """The class of the file of which `node` is an object for one of its methods."""
        method = self._method_called_on(node, scope)
        return self.facts.classes.get(method.outer) if method is not None and method.outer is not None else None

    def _method_called_on(self, node: cst.BaseExpression, scope: Scope) -> Scope | None:
        """The method of which `node` is the first parameter, by its name."""
        if not isinstance(node, cst.Name):
            return None
        function: Scope | None = scope.function
        while function is not None and not (
            function.outer is not None and function.outer.kind == "class" and first_parameter(function) == node.value
        ):
            function = function.outer
        return function

    def attribute_values(self, class_: Class, name: str) -> list[Expression]:
        """What is assigned to attribute `name` in the body and methods of `class_` and of its bases in the file."""
        key = (id(class_), name)
        known = self._attributes.get(key)
        if known is None:
            known = []
            for relative in self.family(class_):
                known = self._own_attribute_values(relative, name)[:_VALUES]
                if known:
                    break
            if not self.naming:
                self._attributes[key] = known
        return known

    def _own_attribute_values(self, class_: Class, name: str) -> list[Expression]:
        if not self.naming:
            words, texts = self.loading.words, self.loading.texts
            for unit in self.loading.holding(name):
                if (
                    unit.root is None
                    and unit.piece.owner == class_.index >= 0
                    and name in words[unit.index]
                    and _assigns(name, texts[unit.index], attribute=unit.piece.kind == "function")
                ):
                    self.loading.load(unit)
        values = [
            Expression(binding.value, class_.scope, binding.order)
            for binding in class_.scope.bindings.get(name, ())
            if binding.kind == "assign" and binding.value is not None
        ]
        return [*values, *self._assigned_in(class_, name)]

    def _assigned_in(self, class_: Class, name: str) -> list[Expression]:
        """What methods of `class_` assign to `self.name`."""
        seen, by_class = self._assigned.get(name, (0, {}))
        there = self.facts.assigned.get(name, ())
        for _, target, value, scope, order in there[seen:]:
            outer = scope.function.outer
            if (
                outer is not None
                and isinstance(target, cst.Attribute)
                and isinstance(target.value, cst.Name)
                and first_parameter(scope.function) == target.value.value
            ):
                by_class.setdefault(outer, []).append(Expression(value, scope, order))
        self._assigned[name] = len(there), by_class
        return by_class.get(class_.scope, [])

    def local_class(self, name: str) -> Class | None:
        """The top-level class behind the qualified name `@.Name`."""
        return self.facts.class_by_name.get(name[2:]) if name.startswith("@.") else None

    def base_names(self, class_: Class) -> tuple[str, ...]:
        """The qualified names of the bases of `class_`, as written in its header."""
        known = self._bases.get(id(class_))
        if known is None:
            self.loading.load_class(class_)
            found: list[str] = []
            for base in class_.bases:
                found.extend(self._resolve(base, class_.outer, class_.order, _DEPTH - 2))
            known = tuple(dict.fromkeys(found))
            if self.loading.awake:
                self._bases[id(class_)] = known
        return known

    def family(self, class_: Class) -> Iterator[Class]:
        """`class_` and the classes of the file that it derives from."""
        queue, seen = [class_], set[int]()
        while queue:
            current = queue.pop(0)
            if id(current) in seen:
                continue
            seen.add(id(current))
            yield current
            for name in self.base_names(current):
                base = self.local_class(name)
                if base is not None:
                    queue.append(base)

    def ancestry(self, name: str) -> list[str]:
        """`name` and every class it derives from, in this file and in the libraries that the catalogue knows."""
        class_ = self.local_class(name)
        if class_ is None:
            return list(self.library.ancestors(name))
        found = [name]
        for relative in self.family(class_):
            for base in self.base_names(relative):
                found.extend(self.library.ancestors(base))
        return list(dict.fromkeys(found))


def _assigns(name: str, text: str, *, attribute: bool) -> bool:
    """Whether `text` assigns to an `attribute`, or in a class to a name."""
    return any(
        (text[start - 1 : start] == ".") is attribute
        and (_ASSIGNED.match(text, start + len(name)) is not None or _is_first_of_several(text, start, len(name)))
        for start in places(name, text)
    )


def _is_first_of_several(text: str, start: int, length: int) -> bool:
    """Whether the name of that `length` at `start` is one of several that are assigned together, and not the last:
    `self.a, self.b = 1, 2`."""
    if _AND_OTHERS.match(text, start + length) is None:
        return False
    return _OTHERS.fullmatch(text, text.rfind("\n", 0, start) + 1, start) is not None
