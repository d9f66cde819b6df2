"""What the skeleton and the walks over a file's units say of it, as plain data: units, scopes, classes, calls,
assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.module.names import Binding, Scope, made

if TYPE_CHECKING:
    from torchdet_lint.module import tree
    from torchdet_lint.module.places.spans import Spans
    from torchdet_lint.prefilter.skeleton import Piece, Skeleton

# The places of two units in the source are so far apart.
UNIT = 10_000_000


class Unit:
    """A piece of the file, and its libcst tree once it is parsed: a member of a class `inside` a block."""

    __slots__ = ("index", "inside", "lines", "offset", "piece", "positions", "root", "scope", "spans")

    def __init__(self, index: int, piece: Piece) -> None:
        self.index = index
        self.piece = piece
        self.inside = piece.owner >= 0 and piece.kind != "header"
        self.offset = piece.first - (2 if self.inside else 1)
        self.root: cst.Module | None = None
        self.scope: Scope | None = None
        self.positions: tree.Positions | None = None
        self.spans: Spans | None = None
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


class Expression(NamedTuple):
    """An expression, and where its names are looked up: the scope, and the place in it (None: any)."""

    node: cst.BaseExpression
    scope: Scope
    order: int | None


CallSite = tuple[cst.Call, Scope, Unit, int]
"""A call, its scope, its unit, and its order."""

Assigned = tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression, Scope, int]
"""Statement, target, value, scope and order of an assignment."""


class Facts:
    """The facts of one file. Those of a unit come when it is parsed; what its skeleton says is there from the start."""

    def __init__(self, text: str, skeleton: Skeleton) -> None:
        self.text = text
        self.skeleton = skeleton
        self.units = [Unit(index, piece) for index, piece in enumerate(skeleton.pieces)]
        self.scope = Scope("module", None)
        # By the identity of a node: its parent, the scope that it opens, its order, the unit whose root it is.
        self.parents: dict[int, cst.CSTNode] = {}
        self.scopes: dict[int, Scope] = {}
        self.orders: dict[int, int] = {}
        self.roots: dict[int, Unit] = {}
        self.calls: list[CallSite] = []
        self.set_displays: list[cst.Set | cst.SetComp] = []
        self.assignments: list[Assigned] = []
        # Those to an entry, by what `names.member` calls it.
        self.entered: dict[str, list[Assigned]] = {}
        # Those to an attribute, by its name; the statements that annotate one, or a name in the body of a class.
        self.assigned: dict[str, list[Assigned]] = {}
        self.declared: dict[str, list[tuple[cst.AnnAssign, Scope]]] = {}
        # The functions in a unit that is one definition, by the index of the unit.
        self.functions: dict[int, list[cst.FunctionDef]] = {}
        self.classes: dict[Scope, Class] = {}
        self.top_classes = [Class(piece.name, self.scope, index) for index, piece in enumerate(skeleton.classes)]
        self.class_by_name = {class_.name: class_ for class_ in self.top_classes}
        self.tables: dict[str, list[Unit]] = {}
        self._prepare()

    def _prepare(self) -> None:
        """Give classes and top level the names that the skeleton knows."""
        for class_ in self.top_classes:
            known = self.skeleton.classes[class_.index]
            class_.methods.update(known.methods)
            class_.bases = tuple(map(made, known.bases or ()))
            self.classes[class_.scope] = class_
        for unit in self.units:
            piece = unit.piece
            order = unit.index * UNIT
            if piece.owner >= 0:
                class_ = self.top_classes[piece.owner]
                class_.units.append(unit)
                unit.scope = class_.scope if unit.inside else None
                if piece.kind == "header":
                    class_.order = order
                    self.scope.bind(piece.name, Binding("class", order))
                elif piece.kind == "function":
                    class_.scope.bind(piece.name, Binding("def", order))
            elif piece.kind == "function":
                self.scope.bind(piece.name, Binding("def", order))
            elif piece.kind == "imports":
                for place, (name, target) in enumerate(piece.binds):
                    if name == "*":
                        self.scope.stars.append(target)
                    else:
                        self.scope.bind(name, Binding("import", order + place, target=target))
            elif piece.kind == "table":
                self.tables.setdefault(piece.name, []).append(unit)
                self.scope.bind(piece.name, Binding("assign", order))
