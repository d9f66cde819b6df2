"""Scopes, and what binds a name in them, plain data; an expression -> its dotted name.

The only room that knows scopes and aliases. A *qualified name* is a dotted string: `torch.nn.LSTM` (canonical, see
`Library.canonical`), `builtins.hash`, `@.helper` for a definition of the same file, `.data.load` for a relative
import, and `torch.Generator().seed` for an attribute of what a call returned.
"""

from __future__ import annotations

import bisect
import functools
import operator
from typing import TYPE_CHECKING, Literal, NamedTuple

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Callable

# The bindings of one name that are looked at for one place.
_MANY = 32
_order = operator.attrgetter("order")
BindingKind = Literal["import", "assign", "unpack", "augment", "parameter", "loop", "with", "def", "class", "other"]
ScopeKind = Literal["module", "class", "function", "comprehension"]


class Binding(NamedTuple):
    """One thing that gives a name its value in a scope.

    `value` is the expression bound (for `unpack` and `loop` the one that is unpacked or iterated), `target` the
    qualified name of an import, `order` its place in the source (comparable inside a file), `looped` the place of the
    outermost loop around it in its function, 0 where there is none.
    """

    kind: BindingKind
    order: int
    node: cst.CSTNode | None = None
    value: cst.BaseExpression | None = None
    target: str = ""
    conditional: bool = False
    looped: int = 0
    path: tuple[int, ...] = ()


class Bindings(list[Binding]):
    """What binds one name in a scope, as it is found."""

    __slots__ = ("_known", "_looped", "_sorted", "_steady")

    def live(self, order: int | None) -> list[Binding]:
        """As `live`, for a name with very many bindings: of those that may be meant, the last before the place."""
        self._index()
        end = len(self._sorted) if order is None else bisect.bisect_left(self._sorted, order, key=_order)
        last = bisect.bisect_left(self._steady, end) - 1
        start = max(self._steady[last] if last >= 0 else 0, end - _MANY)
        found = self._sorted[start:end]
        if order is not None:
            again = bisect.bisect_left(self._looped, order, key=_order)
            found += [one for one in self._looped[again : again + _MANY] if one.looped <= order]
        return found or self._sorted[:_MANY]

    def _index(self) -> None:
        known = (len(self), id(self[-1]))
        if getattr(self, "_known", None) != known:
            self._known = known
            self._sorted = sorted(self, key=_order)
            self._steady = [index for index, one in enumerate(self._sorted) if not one.conditional]
            self._looped = [one for one in self._sorted if one.looped]


class Scope:
    """A lexical scope; comprehensions and lambdas have their own."""

    __slots__ = ("bindings", "kind", "load", "name", "node", "outer", "outside", "stars")

    def __init__(self, kind: ScopeKind, outer: Scope | None, node: cst.CSTNode | None = None, name: str = "") -> None:
        self.kind = kind
        self.outer = outer
        self.node = node
        self.name = name
        self.bindings: dict[str, Bindings] = {}
        self.outside: dict[str, str] = {}
        self.stars: list[str] = []
        self.load: Callable[[str], None] | None = None

    def qualified(self, name: str) -> str:
        """The qualified name of the function or class `name` that is defined here: `@.Net.__init__.helper`."""
        parts = [name]
        scope: Scope | None = self
        while scope is not None:
            if scope.name:
                parts.append(scope.name)
            scope = scope.outer
        return "@." + ".".join(reversed(parts))

    def bind(self, name: str, binding: Binding) -> None:
        """Record that `binding` binds `name` here, or where `global` and `nonlocal` say."""
        scope = self
        where = self.outside.get(name)
        if where == "global":
            while scope.outer is not None:
                scope = scope.outer
            binding = binding._replace(conditional=True, looped=1)
        elif where == "nonlocal" and self.outer is not None:
            scope = self.outer.home(name) or self.outer
            binding = binding._replace(conditional=True, looped=1)
        known = scope.bindings.get(name)
        if known is None:
            known = scope.bindings[name] = Bindings()
        known.append(binding)

    def home(self, name: str) -> Scope | None:
        """The scope whose binding of `name` is seen from here, or None."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if scope.load is not None:
                scope.load(name)
            if name in scope.bindings and (first or scope.kind != "class") and name not in scope.outside:
                return scope
            first = first and scope.kind == "comprehension"
            scope = scope.outer
        return None

    @property
    def function(self) -> Scope:
        """The innermost function, class or module scope: where a statement's names live."""
        scope = self
        while scope.kind == "comprehension" and scope.outer is not None:
            scope = scope.outer
        return scope

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope


def live(bindings: list[Binding], order: int | None) -> list[Binding]:
    """The bindings that may be the one seen at `order` (None: seen later, from another scope).

    What runs on every path hides what stood before it; what stands in a loop around the place may come round again.
    """
    if len(bindings) > _MANY and isinstance(bindings, Bindings):
        return bindings.live(order)
    if order is not None:
        earlier = [one for one in bindings if one.order < order or 0 < one.looped <= order]
        bindings = earlier or bindings
    first = 0
    for index, binding in enumerate(bindings):
        if not binding.conditional and (order is None or binding.order < order):
            first = index
    return bindings[first:]


def is_class_method(function: Scope) -> bool:
    """Whether `function` is a method that is given the class, and not an object, as its first parameter."""
    node = function.node
    if not isinstance(node, cst.FunctionDef) or function.outer is None or function.outer.kind != "class":
        return False
    marks = [one.decorator for one in node.decorators]
    return node.name.value == "__new__" or any(
        isinstance(one, cst.Name) and one.value == "classmethod" for one in marks
    )


@functools.lru_cache(maxsize=1024)
def made(name: str) -> cst.BaseExpression:
    """The expression that a dotted name is."""
    root, *attributes = name.split(".")
    node: cst.BaseExpression = cst.Name(root)
    for attribute in attributes:
        node = cst.Attribute(node, cst.Name(attribute))
    return node


def member(node: cst.BaseExpression) -> str:
    """`a.b` for an attribute, also where it is written `a.__dict__["b"]` or `vars(a)["b"]`, and `a[b]` for an entry
    with a literal key; else the empty string."""
    if not isinstance(node, cst.Subscript):
        return dotted(node)
    index = node.slice[0].slice
    literal = index.value if isinstance(index, cst.Index) else None
    key = literal.evaluated_value if isinstance(literal, cst.SimpleString) else ""
    owner = namespace(node.value)
    if not isinstance(key, str) or not key:
        return ""
    if owner is not None:
        return f"{owner}.{key}" if owner else ""
    owner = dotted(node.value)
    return f"{owner}[{key}]" if owner else ""


def namespace(node: cst.BaseExpression) -> str | None:
    """`a` for `vars(a)` and `a.__dict__`, empty where that is no dotted name; None for another expression."""
    if isinstance(node, cst.Attribute):
        return dotted(node.value) if node.attr.value == "__dict__" else None
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "vars":
        return dotted(node.args[0].value) if len(node.args) == 1 else ""
    return None


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` for a chain of names, else the empty string."""
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name:
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def first_parameter(function: Scope) -> str:
    """The name of the first parameter of a `def`, by place; the empty string where there is none."""
    node = function.node
    if not isinstance(node, cst.FunctionDef):
        return ""
    parameters = (*node.params.posonly_params, *node.params.params)
    return parameters[0].name.value if parameters else ""
