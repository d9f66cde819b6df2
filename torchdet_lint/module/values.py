"""What expressions evidently are, without running anything: constants, elements, the entries of dictionaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.catalogue.conditions import condition_holds, matches
from torchdet_lint.module import names
from torchdet_lint.module.facts import Value
from torchdet_lint.module.names import live

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.module.facts import Assigned, Call
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Scope

_DEPTH = 14
_CHANGED = (
    r"(?<![\w.]){0}\s*(?:\[[^\]\n]*\]\s*[-+|*/]?=[^=]|\.(?:update|setdefault|pop|clear|popitem)\s*\(|\s\|=)"
    r"|\bdel\s+{0}\s*\["
)
# `x.name = …`, and a class whose attributes are set by another way.
_GIVEN = r"\.{0}\s*(?::[^=\n]*)?[-+|*/]?=(?!=)|\bsetattr\s*\(\s*{1}\b"
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})
_PLAIN_STRING = re.compile(r"""(["'])([^"'\\\n]*)\1""")


class _Change(NamedTuple):
    """A statement that puts `entries` into a dictionary (None: not in sight), always or only perhaps."""

    order: int
    perhaps: bool
    entries: dict[str, Value] | None


class Values:
    """The values of one file. `calls` and `assignments` are those of the units that are parsed so far."""

    def __init__(self, module: Module, calls: Sequence[Call], assignments: Sequence[Assigned]) -> None:
        self.module = module
        self._calls = calls
        self._assignments = assignments

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
                literal = node.evaluated_value
            except (ValueError, SyntaxError, AttributeError):
                return None
            return None if literal is None else (literal,)
        if isinstance(node, cst.Name):
            return self._constant_name(node.value, scope, order, depth)
        if isinstance(node, cst.UnaryOperation):
            return _unary(node.operator, self.constant(node.expression, scope, order, depth - 1))
        if isinstance(node, (cst.Tuple, cst.List)):
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
            values = self.module.self_attribute(node, scope) or self._class_attribute(node, scope, order)
            return self._agreed(values, depth)
        if isinstance(node, cst.NamedExpr):
            return self.constant(node.value, scope, order, depth - 1)
        return None

    def _class_attribute(self, node: cst.Attribute, scope: Scope, order: int | None) -> list[Value]:
        """The value of `Config.workers` where the body of a class at top level alone gives it."""
        if not isinstance(node.value, cst.Name):
            return []
        name = node.attr.value
        found = self.module.resolve(node.value, scope, order)
        class_ = self.module.local_class(found[0]) if len(found) == 1 else None
        if class_ is None or class_.index < 0 or re.search(_GIVEN.format(name, node.value.value), self.module.text):
            return []
        return self.module.attribute_values(class_, name)

    def _agreed(self, values: list[Value], depth: int) -> tuple[object] | None:
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
        if (
            home.outer is None
            and "global " in self.module.text
            and re.search(rf"\bglobal [^\n]*\b{name}\b", self.module.text)
        ):
            return None
        values = []
        for binding in bindings:
            if binding.kind != "assign" or binding.value is None or binding.path:
                return None
            values.append(Value(self.module, binding.value, home, binding.order))
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
            if isinstance(node, cst.Attribute) and (values := self.module.self_attribute(node, scope)):
                if len(values) != 1:
                    return None
                node, scope, order = values[0].node, values[0].scope, values[0].order
                continue
            if not isinstance(node, cst.Name):
                return Value(self.module, node, scope, order)
            home = scope.home(node.value)
            if home is None:
                return Value(self.module, node, scope, order)
            bindings = live(home.bindings[node.value], order if home.function is scope.function else None)
            if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].path or bindings[0].value is None:
                return None
            node, scope, order = bindings[0].value, home, bindings[0].order
        return None

    def dictionary(
        self, node: cst.BaseExpression, scope: Scope, order: int | None, depth: int = _DEPTH
    ) -> dict[str, Value] | None:
        """The entries that a dictionary in sight may hold; None where something out of sight has a part in it.

        An entry that only one branch gives, or that an `update` adds, counts; of two values the one that is not
        evidently false.
        """
        if depth <= 0:
            return None
        if isinstance(node, cst.IfExp):
            return _either([self.dictionary(part, scope, order, depth - 1) for part in (node.body, node.orelse)])
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            left = self.dictionary(node.left, scope, order, depth - 1)
            right = self.dictionary(node.right, scope, order, depth - 1) if left is not None else None
            return left | right if left is not None and right is not None else None
        if isinstance(node, cst.Name):
            return self._named_dictionary(node.value, scope, order, depth)
        changed = isinstance(node, cst.Attribute) and re.search(
            _CHANGED.format(re.escape(names.dotted(node))), self.module.text
        )
        value = None if changed else self.followed(node, scope, order)
        if value is None:
            return None
        node, scope, order = value.node, value.scope, value.order
        if isinstance(node, cst.Dict):
            return self._literal_dictionary(node, scope, order, depth)
        if isinstance(node, cst.BinaryOperation):
            return self.dictionary(node, scope, order, depth - 1)
        if isinstance(node, cst.Call):
            return self._made_dictionary(node, scope, order, depth)
        return None

    def _made_dictionary(self, call: cst.Call, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        """The entries of `dict(…)` and of a copy."""
        if not call.args and isinstance(call.func, cst.Attribute) and call.func.attr.value == "copy":
            return self.dictionary(call.func.value, scope, order, depth - 1)
        function = self.module.resolve(call.func, scope, order)
        if function == ("builtins.dict",):
            return self._keywords(call, scope, order, depth)
        if len(function) == 1 and function[0] in _COPIES and len(call.args) == 1 and not call.args[0].star:
            return self.dictionary(call.args[0].value, scope, order, depth - 1)
        return None

    def _literal_dictionary(
        self, node: cst.Dict, scope: Scope, order: int | None, depth: int
    ) -> dict[str, Value] | None:
        found: dict[str, Value] = {}
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                inner = self.dictionary(element.value, scope, order, depth - 1)
                if inner is None:
                    return None
                found.update(inner)
                continue
            assert isinstance(element, cst.DictElement)
            key = self.constant(element.key, scope, order)
            if key is None or not isinstance(key[0], str):
                return None
            found[key[0]] = Value(self.module, element.value, scope, order)
        return found

    def _keywords(self, call: cst.Call, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        """The entries that `dict(…)` or `.update(…)` makes of its arguments."""
        found: dict[str, Value] = {}
        for arg in call.args:
            if arg.keyword is not None:
                found[arg.keyword.value] = Value(self.module, arg.value, scope, order)
            elif arg.star != "*" and (inner := self.dictionary(arg.value, scope, order, depth - 1)) is not None:
                found.update(inner)
            else:
                return None
        return found

    def _named_dictionary(self, name: str, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        home = scope.home(name)
        if home is None:
            return None
        here = order if home.function is scope.function else None
        bindings = live(home.bindings[name], here)
        if any(binding.kind != "assign" or binding.value is None or binding.path for binding in bindings):
            return None
        made = [
            self.dictionary(binding.value, home, binding.order, depth - 1)
            for binding in bindings
            if binding.value is not None
        ]
        found = _either(made)
        if found is None:
            return None
        first = bindings[0].node
        local = first if home.outer is not None else None
        text = self.module.text if local is None else self.module.skeleton.text(self.module.unit_of(local).piece)
        unknown = len(re.findall(_CHANGED.format(re.escape(name)), text))
        for change in self._changes(name, home, depth) if unknown else ():
            unknown -= 1
            if change.entries is None:
                return None
            if here is None or change.order < here:
                found = _either([found, change.entries]) if change.perhaps else found | change.entries
                assert found is not None
        return None if unknown else found

    def _changes(self, name: str, home: Scope, depth: int) -> list[_Change]:
        """How the statements in sight change the dictionary `name` after it was made, in their order."""
        found: list[_Change] = []
        for call in self._calls:
            receiver = call.receiver
            if call.attribute != "update" or not isinstance(receiver, cst.Name) or receiver.value != name:
                continue
            if call.scope.home(name) is home:
                here = call.scope.function is home
                entries = self._keywords(call.node, call.scope, call.order, depth - 4) if here else None
                found.append(_Change(call.order, self._is_conditional(call.node), entries))
        for statement, target, value, scope, order in self._assignments:
            if not isinstance(target, cst.Subscript) or not isinstance(target.value, cst.Name):
                continue
            if target.value.value == name and scope.home(name) is home:
                index = target.slice[0].slice if len(target.slice) == 1 else None
                key = self.constant(index.value, scope, order) if isinstance(index, cst.Index) else None
                known = scope.function is home and key is not None and isinstance(key[0], str)
                entry = {str(key[0]): Value(self.module, value, scope, order)} if known and key is not None else None
                found.append(_Change(order, self._is_conditional(statement), entry))
        return sorted(found, key=lambda change: change.order)

    def _is_conditional(self, node: cst.CSTNode) -> bool:
        for ancestor in self.module.ancestors(node):
            if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                return False
            if isinstance(ancestor, (cst.If, cst.Try, cst.For, cst.While, cst.Match, cst.IfExp)):
                return True
        return False

    def holds(self, call: Call, condition: Condition, parameters: Sequence[str] = ()) -> bool:
        """Whether an argument of `call` meets `condition`."""
        value = call.argument(condition.argument, parameters or None)
        if value is None:
            return condition_holds(condition, passed=False, opaque=call.opaque, known=False, value=None)
        values = [value.constant] if value.known else self._looped(value.node, value.scope, value.order)
        if values:
            return any(condition_holds(condition, passed=True, opaque=False, known=True, value=one) for one in values)
        return condition_holds(condition, passed=True, opaque=False, known=False, value=None)

    def _looped(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> list[object]:
        """The constants that `node` is one after the other: the variable of a loop over them, or a tuple of it."""
        if isinstance(node, (cst.Tuple, cst.List)):
            parts = [element.value for element in node.elements]
            if not parts or not all(isinstance(part, cst.Name) and part.deep_equals(parts[0]) for part in parts):
                return []
            return [(one,) * len(parts) for one in self._looped(parts[0], scope, order)]
        home = scope.home(node.value) if isinstance(node, cst.Name) else None
        if home is None or not isinstance(node, cst.Name):
            return []
        bindings = live(home.bindings[node.value], order if home.function is scope.function else None)
        if len(bindings) != 1 or bindings[0].kind != "loop" or bindings[0].value is None:
            return []
        iterated, path = bindings[0].value, bindings[0].path
        if isinstance(iterated, cst.Call) and len(path) == 1 and len(iterated.args) > path[0] - 1:
            called = self.module.resolve(iterated.func, home, bindings[0].order)
            if called == ("builtins.enumerate",) and path == (1,):
                iterated, path = iterated.args[0].value, ()
            elif called == ("builtins.zip",) and path[0] < len(iterated.args):
                iterated, path = iterated.args[path[0]].value, ()
        elements = self.elements(iterated, home, bindings[0].order) if not path else None
        found = [self.constant(element, home, bindings[0].order) for element in elements or ()]
        return [one[0] for one in found if one is not None] if None not in found else []


def _either(dictionaries: Sequence[dict[str, Value] | None]) -> dict[str, Value] | None:
    """All entries of dictionaries of which one is meant; of two values the one that is not evidently false."""
    found: dict[str, Value] = {}
    for dictionary in dictionaries:
        if dictionary is None:
            return None
        for key, value in dictionary.items():
            if key not in found or not (value.known and not value.constant):
                found[key] = value
    return found


def _unary(operator: cst.BaseUnaryOp, value: tuple[object] | None) -> tuple[object] | None:
    if value is None:
        return None
    if isinstance(operator, cst.Not):
        return (not value[0],)
    if isinstance(operator, cst.Minus) and isinstance(value[0], (int, float)):
        return (-value[0],)
    return value if isinstance(operator, cst.Plus) else None
