"""What one walk over a file yields: units, classes, calls, assignments, and values that look in the module further."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.module.names import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.module import tree
    from torchdet_lint.module.module import Module
    from torchdet_lint.prefilter.skeleton import Piece

# The places of two units in the source are so far apart.
UNIT = 10_000_000


class Unit:
    """A piece of the file, and its libcst tree once it is parsed: a member of a class `inside` a block."""

    __slots__ = ("index", "inside", "lines", "offset", "piece", "positions", "root", "rows", "scope")

    def __init__(self, index: int, piece: Piece) -> None:
        self.index = index
        self.piece = piece
        self.inside = piece.owner >= 0 and piece.kind != "header"
        self.offset = piece.first - (2 if self.inside else 1)
        self.root: cst.Module | None = None
        self.scope: Scope | None = None
        self.positions: tree.Positions | None = None
        self.rows: dict[int, int] | None = None
        self.lines: dict[int, tree.Positions] = {}


class Class:
    """A class of the file: the scope of its body and, if it stands at top level, the units of its methods."""

    __slots__ = ("bases", "index", "methods", "name", "node", "order", "outer", "scope", "units")

    def __init__(self, name: str, outer: Scope, index: int = -1) -> None:
        self.name = name
        self.index = index
        self.outer = outer
        self.scope = Scope("class", outer, name=name)
        self.node: cst.ClassDef | None = None
        self.bases: tuple[cst.BaseExpression, ...] = ()
        self.order = 0
        self.methods: set[str] = set()
        self.units: list[Unit] = []


class Value:
    """An argument or an assigned value: its expression, and what is known of it without running anything."""

    __slots__ = ("_constant", "module", "node", "order", "scope")

    def __init__(self, module: Module, node: cst.BaseExpression, scope: Scope, order: int | None) -> None:
        self.module = module
        self.node = node
        self.scope = scope
        self.order = order
        self._constant: tuple[object] | bool | None = False

    @property
    def _found(self) -> tuple[object] | None:
        if isinstance(self._constant, bool):
            self._constant = self.module.constant(self.node, self.scope, self.order)
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
        return self.module.resolve(self.node, self.scope, self.order)

    @property
    def source(self) -> str:
        """The expression as it is written."""
        return self.module.code(self.node)


Assigned = tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression, Scope, int]
"""Statement, target, value, scope and order of an assignment."""


class Assignment(NamedTuple):
    """`target = value`: one target of an assignment statement, or the `setattr` call that does the same."""

    node: cst.CSTNode
    target: cst.BaseExpression | None
    value: Value
    scope: Scope
    order: int
    names: tuple[str, ...]


class Call:
    """One call, with the qualified names of what is called (base classes of a class included) and its arguments."""

    __slots__ = ("_arguments", "attribute", "module", "names", "node", "order", "own", "partial", "scope", "unit")

    def __init__(self, module: Module, node: cst.Call, scope: Scope, unit: Unit, order: int) -> None:
        self.module = module
        self.node = node
        self.scope = scope
        self.unit = unit
        self.order = order
        function = node.func
        self.attribute = function.attr.value if isinstance(function, cst.Attribute) else ""
        self.own: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        self.partial: Call | None = None
        self._arguments: _Arguments | None = None

    @property
    def receiver(self) -> cst.BaseExpression | None:
        """`x` of `x.name(…)`."""
        function = self.node.func
        return function.value if isinstance(function, cst.Attribute) else None

    @property
    def arguments(self) -> _Arguments:
        """The arguments as they are bound, dictionaries in sight unpacked."""
        if self._arguments is None:
            self._arguments = _bind(self)
        return self._arguments

    @property
    def opaque(self) -> bool:
        """Whether `*args` or `**kwargs` that are not in sight may pass further arguments."""
        return self.arguments.opaque

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """The parameters of the callee in order, or None where the catalogue does not know them."""
        signatures = self.module.library.signatures
        inherits = bool(self.own) and self.own[0].startswith("@.")
        for name in (*self.own, *(self.names if inherits else ())):
            found = signatures.get(name.removesuffix(".__init__"))
            if found is not None:
                return found
        return None

    def argument(self, name: str, parameters: Sequence[str] | None = None) -> Value | None:
        """The value passed for `name`, by keyword or by its place in the callee's real signature; None: not passed."""
        arguments = self.arguments
        found = arguments.keywords.get(name)
        if found is not None:
            return found
        parameters = parameters or self.parameters
        if parameters is None or name not in parameters:
            return None
        position = parameters.index(name)
        if "*" in parameters[:position]:
            return None
        return arguments.positional[position] if position < len(arguments.positional) else None

    def keyword_node(self, name: str) -> cst.Arg | None:
        """The `name=value` of this very call, if it is written there."""
        for arg in self.node.args:
            if arg.keyword is not None and arg.keyword.value == name:
                return arg
        return None


class _Arguments(NamedTuple):
    positional: tuple[Value, ...]
    keywords: dict[str, Value]
    opaque: bool


def _bind(call: Call) -> _Arguments:
    """Positional and keyword arguments of `call`; those that a `partial` has bound come first."""
    module, positional, keywords, opaque = call.module, list[Value](), dict[str, Value](), False
    args = call.node.args
    if call.partial is not None:
        bound = call.partial.arguments
        positional = list(bound.positional[1:])
        keywords = dict(bound.keywords)
        opaque = bound.opaque
        if "functools.partial" in call.own:
            positional.insert(0, Value(module, args[0].value, call.scope, call.order))
            args = args[1:]
    if len(call.own) and call.own[0].endswith(".__init__") and not _is_super(call.receiver):
        args = args[1:]
    starred = False
    for arg in args:
        if arg.star == "*":
            elements = module.elements(arg.value, call.scope, call.order)
            if elements is None:
                opaque = starred = True
            elif not starred:
                positional.extend(Value(module, element, call.scope, call.order) for element in elements)
        elif arg.star == "**":
            entries = module.dictionary(arg.value, call.scope, call.order)
            if entries is None:
                opaque = True
            else:
                keywords.update(entries)
        elif arg.keyword is not None:
            keywords[arg.keyword.value] = Value(module, arg.value, call.scope, call.order)
        elif not starred:
            positional.append(Value(module, arg.value, call.scope, call.order))
    return _Arguments(tuple(positional), keywords, opaque)


def _is_super(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"
