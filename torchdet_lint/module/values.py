"""An expression -> what it evidently is, without running anything: a constant, elements, the one value of a name."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.catalogue.conditions import matches
from torchdet_lint.module.facts import Expression
from torchdet_lint.module.names import live
from torchdet_lint.module.resolution import Resolver
from torchdet_lint.module.tree import code
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.loading import Loading
    from torchdet_lint.module.names import Binding, Scope
    from torchdet_lint.module.relations import Relations

_DEPTH = 14
# What rules compare with has a few elements.
_MANY = 200
# `x.name = …` where `x` is not torch's own, and a class whose attributes are set by another way.
_GIVEN = lazy(r"(?<!cudnn)\.(\w+)(?=\s*(?::[^=\n]*)?[-+|*/]?=(?!=))")
_SET = lazy(r"\bsetattr\s*\(\s*(\w+)")
_GLOBAL = lazy(r"\bglobal ([^\n]*)")
_WORD = lazy(r"\w+")
_PLAIN_STRING = lazy(r"""(["'])([^"'\\\n]*)\1""")


class Value:
    """An argument or an assigned value: its expression, and what is known of it without running anything."""

    __slots__ = ("_constant", "evaluator", "node", "order", "scope")

    def __init__(self, evaluator: Values, node: cst.BaseExpression, scope: Scope, order: int | None) -> None:
        self.evaluator = evaluator
        self.node = node
        self.scope = scope
        self.order = order
        self._constant: tuple[object] | bool | None = False

    @property
    def _found(self) -> tuple[object] | None:
        if isinstance(self._constant, bool):
            self._constant = self.evaluator.constant(self.node, self.scope, self.order)
        return self._constant

    @property
    def known(self) -> bool:
        """Whether the value is a constant, followed through simple assignments."""
        return self._found is not None

    @property
    def constant(self) -> object:
        """That constant (None too where the value is not known: see `known`)."""
        return self._found[0] if self._found is not None else None

    @property
    def is_none(self) -> bool:
        """Whether it is evidently `None`."""
        return self._found is not None and self._found[0] is None

    @property
    def names(self) -> tuple[str, ...]:
        """The qualified names that the expression stands for."""
        return self.evaluator.resolver.resolve(self.node, self.scope, self.order)

    @property
    def source(self) -> str:
        """The expression as it is written."""
        return code(self.node)


class Values:
    """The values of the expressions of one file."""

    def __init__(self, loading: Loading, relations: Relations) -> None:
        self.resolver = Resolver(loading, relations, self.constant)
        self._facts = loading.facts
        self.text = loading.facts.text
        # The entry of a dictionary in sight that a subscript, an attribute or `get` picks, where somebody knows them.
        self.entry: Callable[[cst.BaseExpression, Scope, int | None], Value | None] | None = None
        # The constant that another file binds to a dotted name, where somebody knows the other files.
        self.elsewhere: Callable[[str], tuple[object] | None] | None = None
        # The entries of a dictionary in sight, likewise.
        self.dictionary: Callable[..., dict[str, Value] | None] | None = None

    def entries(self, value: Value) -> dict[str, Value] | None:
        """The entries of the dictionary that `value`, of this file, is; None where it is none in sight."""
        return self.dictionary(value.node, value.scope, value.order) if self.dictionary is not None else None

    def constant(
        self, node: cst.BaseExpression, scope: Scope, order: int | None, depth: int = _DEPTH
    ) -> tuple[object] | None:
        """The constant that `node` evidently is, in a 1-tuple, or None."""
        if depth <= 0:
            return None
        if isinstance(node, cst.SimpleString) and (plain := _PLAIN_STRING.fullmatch(node.value)):
            return (plain[2],)
        if isinstance(node, (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString)):
            try:
                literal = int(node.value, 0) if isinstance(node, cst.Integer) else node.evaluated_value
            except (ValueError, SyntaxError, AttributeError):
                return None
            return None if literal is None else (literal,)
        if isinstance(node, cst.Name):
            return self._constant_name(node.value, scope, order, depth)
        if isinstance(node, cst.UnaryOperation):
            return _unary(node.operator, self.constant(node.expression, scope, order, depth - 1))
        if isinstance(node, (cst.Tuple, cst.List)):
            if len(node.elements) > _MANY:
                return None
            found = []
            for element in node.elements:
                item = (
                    self.constant(element.value, scope, order, depth - 1) if isinstance(element, cst.Element) else None
                )
                if item is None:
                    return None
                found.append(item[0])
            return (found if isinstance(node, cst.List) else tuple(found),)
        if isinstance(node, cst.IfExp):
            left = self.constant(node.body, scope, order, depth - 1)
            right = self.constant(node.orelse, scope, order, depth - 1)
            return left if left is not None and right is not None and matches(left[0], right[0]) else None
        if isinstance(node, cst.Attribute):
            values = self.resolver.self_attribute(node, scope) or self.class_attribute(node, scope, order)
            known = self._agreed(values, depth) or self._imported(node, scope, order)
            picks = known is None and not values and node.attr.value not in self._given
            return self._constant_entry(node, scope, order, depth) if picks else known
        if isinstance(node, cst.NamedExpr):
            return self.constant(node.value, scope, order, depth - 1)
        picks = isinstance(node, (cst.Subscript, cst.Call))
        return self._constant_entry(node, scope, order, depth) if picks else None

    def _constant_entry(
        self, node: cst.BaseExpression, scope: Scope, order: int | None, depth: int
    ) -> tuple[object] | None:
        entry = self.entry(node, scope, order) if self.entry is not None else None
        if entry is None:
            return None
        return entry.evaluator.constant(entry.node, entry.scope, entry.order, depth - 1)

    def class_attribute(self, node: cst.Attribute, scope: Scope, order: int | None) -> list[Expression]:
        """The value of `Config.workers` where the body of a class at top level alone gives it."""
        if not isinstance(node.value, cst.Name):
            return []
        name = node.attr.value
        found = self.resolver.resolve(node.value, scope, order)
        class_ = self.resolver.local_class(found[0]) if len(found) == 1 else None
        if class_ is None or class_.index < 0 or name in self._given or node.value.value in self._set:
            return []
        return self.resolver.attribute_values(class_, name)

    def constant_of(self, owner: str, name: str) -> tuple[object] | None:
        """The constant that the class or module `owner`, in full, gives to an attribute, and no statement changes."""
        if "(" in owner or self.changes(owner.rpartition(".")[2], name):
            return None
        class_ = self.resolver.local_class(owner)
        if class_ is None:
            known = self.elsewhere is not None and not owner.startswith("@.")
            return self.elsewhere(f"{owner}.{name}") if known and self.elsewhere is not None else None
        return self._agreed(self.resolver.attribute_values(class_, name), _DEPTH) if class_.index >= 0 else None

    def changes(self, owner: str, name: str) -> bool:
        """Whether the file may give the attribute `name` of what it calls `owner` another value."""
        return name in self._given or owner in self._set

    def _imported(self, node: cst.Attribute, scope: Scope, order: int | None) -> tuple[object] | None:
        """The constant that `settings.WORKERS` is where another file alone gives it."""
        base = node.value
        if self.elsewhere is None or not isinstance(base, cst.Name) or base.value in self._set:
            return None
        home = scope.home(base.value)
        bindings = home.bindings[base.value] if home is not None else ()
        if len(bindings) != 1 or bindings[0].kind != "import" or node.attr.value in self._given:
            return None
        return self.elsewhere(f"{bindings[0].target}.{node.attr.value}")

    @functools.cached_property
    def _given(self) -> frozenset[str]:
        """The attributes that some statement gives a value."""
        return frozenset(_GIVEN.findall(self._facts.text))

    @functools.cached_property
    def _set(self) -> frozenset[str]:
        """The names whose attributes `setattr` sets."""
        return frozenset(_SET.findall(self._facts.text)) if "setattr" in self._facts.text else frozenset()

    @functools.cached_property
    def _globals(self) -> frozenset[str]:
        """The words that follow `global` in a line."""
        found = _GLOBAL.findall(self._facts.text) if "global " in self._facts.text else ()
        return frozenset(word for line in found for word in _WORD.findall(line))

    def _agreed(self, values: Sequence[Expression], depth: int) -> tuple[object] | None:
        found: tuple[object] | None = None
        for value in values:
            constant = self.constant(value.node, value.scope, value.order, depth - 1)
            if constant is None or (found is not None and not matches(found[0], constant[0])):
                return None
            found = constant
        return found

    def _constant_name(self, name: str, scope: Scope, order: int | None, depth: int) -> tuple[object] | None:
        home = scope.home(name)
        if home is None:
            return {"True": (True,), "False": (False,), "None": (None,)}.get(name)
        bindings = live(home.bindings[name], order if home.function is scope.function else None)
        if home.outer is None and name in self._globals:
            return None
        if len(bindings) == 1 and bindings[0].kind == "import":
            return self.elsewhere(bindings[0].target) if self.elsewhere is not None else None
        values = []
        for binding in bindings:
            if binding.kind != "assign" or binding.value is None or binding.path:
                return None
            values.append(Expression(binding.value, home, binding.order))
        return self._agreed(values, depth)

    def elements(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> list[cst.BaseExpression] | None:
        """The elements of a list or tuple in sight."""
        value = self.followed(node, scope, order)
        if value is None or not isinstance(value.node, (cst.List, cst.Tuple)):
            return None
        if any(isinstance(element, cst.StarredElement) for element in value.node.elements):
            return None
        return [element.value for element in value.node.elements]

    def followed(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> Value | None:
        """`node`, or the one expression that the name stands for; None where there are several or none in sight."""
        for _ in range(_DEPTH):
            if isinstance(node, cst.Attribute) and (values := self.resolver.self_attribute(node, scope)):
                if len(values) != 1:
                    return None
                node, scope, order = values[0].node, values[0].scope, values[0].order
                continue
            if not isinstance(node, cst.Name):
                return Value(self, node, scope, order)
            home = scope.home(node.value)
            if home is None:
                return Value(self, node, scope, order)
            bindings = live(home.bindings[node.value], order if home.function is scope.function else None)
            if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].path or bindings[0].value is None:
                return None
            node, scope, order = bindings[0].value, home, bindings[0].order
        return None

    def looped(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> list[object]:
        """The constants that `node` is one after the other: the variable of a loop over them, or a tuple of it."""
        if isinstance(node, (cst.Tuple, cst.List)):
            parts = [element.value for element in node.elements]
            if not parts or not all(isinstance(part, cst.Name) and part.deep_equals(parts[0]) for part in parts):
                return []
            return [(one,) * len(parts) for one in self.looped(parts[0], scope, order)]
        home = scope.home(node.value) if isinstance(node, cst.Name) else None
        if home is None or not isinstance(node, cst.Name):
            return []
        bindings = live(home.bindings[node.value], order if home.function is scope.function else None)
        if len(bindings) != 1 or bindings[0].kind != "loop" or bindings[0].value is None:
            return []
        iterated, path = bindings[0].value, bindings[0].path
        if isinstance(iterated, cst.Call) and len(path) == 1 and len(iterated.args) > path[0] - 1:
            called = self.resolver.resolve(iterated.func, home, bindings[0].order)
            if called == ("builtins.enumerate",) and path == (1,):
                iterated, path = iterated.args[0].value, ()
            elif called == ("builtins.zip",) and path[0] < len(iterated.args):
                iterated, path = iterated.args[path[0]].value, ()
        elements = self._given_elements(iterated, home, bindings[0].order) if not path else None
        found = [self.constant(element, home, bindings[0].order) for element in elements or ()]
        return [one[0] for one in found if one is not None] if None not in found else []

    def looped_with(
        self, name: cst.BaseExpression, value: cst.BaseExpression, scope: Scope, order: int | None
    ) -> Iterator[tuple[object, Value]]:
        """The constants that `name`, the variable of a loop, is one after the other, each with what `value` is by then:
        another variable of that loop, or always the same."""
        loop, other = self._loop_of(name, scope, order), self._loop_of(value, scope, order)
        if loop is None or loop[1].value is None:
            return
        home, binding = loop
        for row in self._rows(loop[1].value, home, binding.order):
            word = _part(row, binding.path)
            given = _part(row, other[1].path) if other is not None and other[1].value is binding.value else value
            found = self.constant(word, home, binding.order) if word is not None else None
            if found is not None and given is not None:
                yield found[0], Value(self, given, scope if given is value else home, order)

    def _loop_of(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> tuple[Scope, Binding] | None:
        """What alone binds the name `node`, a loop, and the scope where it does."""
        home = scope.home(node.value) if isinstance(node, cst.Name) else None
        if home is None or not isinstance(node, cst.Name):
            return None
        bindings = live(home.bindings[node.value], order if home.function is scope.function else None)
        return (home, bindings[0]) if len(bindings) == 1 and bindings[0].kind == "loop" else None

    def _rows(self, node: cst.BaseExpression, scope: Scope, order: int) -> Sequence[cst.BaseExpression]:
        """What a loop over `node` goes through: the elements of a display, or the pairs of a dictionary in sight."""
        function = node.func if isinstance(node, cst.Call) else None
        if isinstance(function, cst.Attribute) and function.attr.value == "items":
            entries = self.entries(Value(self, function.value, scope, order)) or {}
            pairs = [(cst.SimpleString(repr(key)), value.node) for key, value in entries.items()]
            return [cst.Tuple([cst.Element(key), cst.Element(value)]) for key, value in pairs]
        return self._given_elements(node, scope, order) or ()

    def _given_elements(
        self, node: cst.BaseExpression, scope: Scope, order: int | None
    ) -> list[cst.BaseExpression] | None:
        """The elements of a list or tuple in sight, or of the default of a parameter."""
        home = scope.home(node.value) if isinstance(node, cst.Name) else None
        if home is not None and isinstance(node, cst.Name):
            bindings = live(home.bindings[node.value], order if home.function is scope.function else None)
            param = bindings[0].node if len(bindings) == 1 else None
            if isinstance(param, cst.Param):
                return self.elements(param.default, home, order) if param.default is not None else None
        return self.elements(node, scope, order)


def _part(row: cst.BaseExpression, path: Sequence[int]) -> cst.BaseExpression | None:
    """What the path of a loop's variable picks of one of the elements."""
    if not path:
        return row
    if len(path) > 1 or not isinstance(row, (cst.Tuple, cst.List)) or path[0] >= len(row.elements):
        return None
    return row.elements[path[0]].value


def _unary(operator: cst.BaseUnaryOp, value: tuple[object] | None) -> tuple[object] | None:
    if value is None:
        return None
    if isinstance(operator, cst.Not):
        return (not value[0],)
    if isinstance(operator, cst.Minus) and isinstance(value[0], (int, float)):
        return (-value[0],)
    return value if isinstance(operator, cst.Plus) else None
