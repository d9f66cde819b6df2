"""A call that reads a file of YAML, JSON or TOML -> the dictionary that it gives, as an expression.

Only what all files agree on that may be meant is known of it; a path that is not in sight settles nothing."""

from __future__ import annotations

import functools
import math
import os
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.module.names import live
from torchdet_lint.source.data_files import names as data_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.module.names import Scope
    from torchdet_lint.module.values import Value, Values

_DEPTH = 8
_ANY = "*"
# Nobody writes so many options.
_MANY = 4_000
_OPENS = frozenset({"builtins.open", "io.open", "builtins.str", "pathlib.Path", "os.path.abspath", "os.path.realpath"})
_READS = frozenset({"open", "read", "read_text", "read_bytes", "resolve", "absolute", "as_posix"})
_UNKNOWN = object()


class DataFiles:
    """What one file reads from files of data."""

    def __init__(self, values: Values, path: str) -> None:
        """`path` is where the file lies."""
        self.values = values
        self.programs = values.resolver.library.facts.programs
        # What the files of data hold that a path may mean, where somebody knows the project.
        self.held: Callable[[str], Sequence[Any]] | None = None
        self._here = os.path.abspath(path)

    def read(self, call: cst.Call, function: str, scope: Scope, order: int | None) -> cst.Dict | None:
        """The dictionary that `call`, of `function`, gives; None where that is not in sight."""
        if self.held is None or function not in self.programs.parses or not call.args or call.args[0].star:
            return None
        path = self._path(call.args[0].value, scope, order, _DEPTH)
        if not data_names([path]) or _ANY in os.path.dirname(path):
            return None
        found = self.held(path)
        written = _Written().expression(found) if found else None
        return written if isinstance(written, cst.Dict) else None

    @functools.cached_property
    def makes_fields(self) -> bool:
        """Whether the file names something that makes such objects as `has_fields` tells."""
        return any(word in self.values.text for word in self.programs.makers)

    def has_fields(self, value: Value) -> bool:
        """Whether a call makes an object that has the entries of a dictionary for attributes."""
        node = value.node
        return isinstance(node, cst.Call) and not self.programs.fields.isdisjoint(
            self.values.resolver.resolve(node.func, value.scope, value.order)
        )

    def _path(self, node: cst.BaseExpression, scope: Scope, order: int | None, depth: int) -> str:
        """The path that `node` is, or of the file that it is or is the text of; `*` for each part that only the run
        knows."""
        known = self.values.constant(node, scope, order)
        if known is not None:
            return known[0] if isinstance(known[0], str) else _ANY
        if depth <= 0:
            return _ANY
        if isinstance(node, cst.Name):
            return self._named(node.value, scope, order, depth)
        if isinstance(node, cst.FormattedString):
            return "".join(
                part.value
                if isinstance(part, cst.FormattedStringText)
                else self._path(part.expression, scope, order, depth - 1)
                if isinstance(part, cst.FormattedStringExpression)
                else _ANY
                for part in node.parts
            )
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Divide)):
            left = self._path(node.left, scope, order, depth - 1)
            right = self._path(node.right, scope, order, depth - 1)
            return left + right if isinstance(node.operator, cst.Add) else os.path.join(left, right)
        if isinstance(node, cst.Attribute) and node.attr.value == "parent":
            return os.path.dirname(self._path(node.value, scope, order, depth - 1)) or _ANY
        return self._called(node, scope, order, depth) if isinstance(node, cst.Call) else _ANY

    def _named(self, name: str, scope: Scope, order: int | None, depth: int) -> str:
        home = scope.home(name)
        if home is None:
            return self._here if name == "__file__" else _ANY
        bindings = live(home.bindings[name], order if home.function is scope.function else None)
        first = bindings[0] if len(bindings) == 1 else None
        if first is None or first.value is None or first.path or first.kind not in ("assign", "with"):
            return _ANY
        return self._path(first.value, home, first.order, depth - 1)

    def _called(self, call: cst.Call, scope: Scope, order: int | None, depth: int) -> str:
        given = [arg.value for arg in call.args if not arg.star]
        function = self.values.resolver.resolve(call.func, scope, order)
        name = function[0] if len(function) == 1 and len(given) == len(call.args) else ""
        if name in ("os.path.join", "pathlib.Path") and given:
            return os.path.join(*(self._path(one, scope, order, depth - 1) for one in given))
        if name in _OPENS and given:
            return self._path(given[0], scope, order, depth - 1)
        if name == "os.path.dirname" and given:
            return os.path.dirname(self._path(given[0], scope, order, depth - 1)) or _ANY
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _READS:
            return self._path(call.func.value, scope, order, depth - 1)
        return _ANY


class _Written:
    """Writes data as an expression. Aliases may make few lines a large tree: of that only so much is written."""

    def __init__(self) -> None:
        self.left = _MANY

    def expression(self, several: Sequence[Any]) -> cst.BaseExpression:
        """What all of `several` values are; of mappings the keys of all, with `...` for what is not the same in each,
        and for what is no constant."""
        self.left -= 1
        first = several[0]
        if self.left < 0:
            return cst.Ellipsis()
        if all(isinstance(one, dict) for one in several):
            keys = dict.fromkeys(key for one in several for key in one if isinstance(key, str))
            parts = [(key, self.expression([one.get(key, _UNKNOWN) for one in several])) for key in keys]
            return cst.Dict([cst.DictElement(cst.SimpleString(repr(key)), value) for key, value in parts])
        if any(type(one) is not type(first) or one != first for one in several):
            return cst.Ellipsis()
        if isinstance(first, list):
            return cst.List([cst.Element(self.expression([one])) for one in first])
        return _constant(first)


def _constant(value: Any) -> cst.BaseExpression:
    if value is None or isinstance(value, bool):
        return cst.Name(repr(value))
    if isinstance(value, str):
        return cst.SimpleString(repr(value))
    if isinstance(value, (int, float)) and math.isfinite(value):
        number = cst.Integer(repr(abs(value))) if isinstance(value, int) else cst.Float(repr(abs(value)))
        return cst.UnaryOperation(cst.Minus(), number) if value < 0 else number
    return cst.Ellipsis()
