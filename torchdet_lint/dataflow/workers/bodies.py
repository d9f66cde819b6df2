"""What a worker runs -> the generators that it uses, the libraries that it draws from, the objects that run there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.workers.bindings import Bindings
from torchdet_lint.dataflow.workers.classes import Classes, keeps_attributes, outside_name
from torchdet_lint.dataflow.workers.generators import DEEP, HOLDING, Generators
from torchdet_lint.dataflow.workers.owning import holds_at, package_of
from torchdet_lint.dataflow.workers.project_file import Part, below, method, passed, picked_from, way_to
from torchdet_lint.dataflow.workers.reseeding import reseeded
from torchdet_lint.dataflow.workers.scopes import Scope, given_class
from torchdet_lint.prefilter.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.dataflow.workers.project_file import Element, File, Function
    from torchdet_lint.dataflow.workers.scopes import Instance
    from torchdet_lint.module.module import Module

PARTIAL = "functools.partial"
_TENSOR = "torch.Tensor."
_Part = ast.Call | ast.Name | ast.Attribute | ast.Subscript


class Owned(NamedTuple):
    """A generator that every worker gets a copy of: how its owner names it, the class (empty: the file itself), the
    place, the way to it from the data set (empty: there is none), and the call that makes it."""

    name: str
    owner: str
    path: str
    row: int
    way: str
    maker: str


class WorkerBodies:
    """Looks at the functions and methods that workers run; `WorkerObjects` follows what they use."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.workers
        self.draws = {name: draw for draw in module.library.facts.draws if draw.at == "call" for name in draw.names}
        # Methods of tensors that no other objects have: `uniform_`, `bernoulli`.
        others = {name.rpartition(".")[2] for name, draw in self.draws.items() if draw.library != "torch"}
        self._fills = {
            name.removeprefix(_TENSOR): draw
            for name, draw in self.draws.items()
            if name.startswith(_TENSOR) and name.removeprefix(_TENSOR) not in others
        }
        self._seeds = {name: row for row in module.library.facts.seeds for name in row.names}
        self.chains = module.shared(CallChain)
        self.classes = Classes(module)
        self.bindings = Bindings(self.chains, self.classes)
        self.generators = Generators(self.classes, self.bindings, self.facts)
        self._owned: dict[Owned, None] = {}
        # Transforms of packages that hold a generator, the functions that a worker runs, and whether one of them gives
        # such generators another seed.
        self._holding: dict[Owned, None] = {}
        self._run: set[ast.AST] = set()
        self._reseeds = False
        self._drawn: set[str] = set()
        self._out = False
        self._seeded = False
        self._parts: dict[tuple[ast.AST, tuple[ast.AST, ...]], tuple[list[_Part], list[_Part]]] = {}
        self._bodies: set[tuple[int, tuple[ast.AST, ...], str | None]] = set()
        # Of values, and of bodies: of a lambda both are looked at.
        self._seen: set[tuple[int, tuple[ast.AST, ...], int, str | None]] = set()
        self._entered: set[tuple[int, tuple[ast.AST, ...], int, str | None]] = set()
        self._rows: set[tuple[int, str | None]] = set()
        self._called_in: dict[ast.FunctionDef, frozenset[str]] = {}

    def _value(self, node: ast.expr, scope: Scope, way: str | None, depth: int) -> None:
        """Look at what `node` may be, which the data set reaches by `way` (None: not at all)."""
        raise NotImplementedError

    def _instance(
        self, class_: ast.ClassDef, file: File, call: ast.Call | None, scope: Scope, way: str | None, depth: int,
        called: str = "",
    ) -> None:  # fmt: skip
        """Look at an object of a class of the project, made by `call` in `scope`, of which the method `called` runs."""
        raise NotImplementedError

    def _returned(
        self, where: Function, file: File, call: ast.Call, scope: Scope, *, bound: bool = False
    ) -> tuple[Scope, list[ast.expr]]:
        """What `call` of a function of the project, or of a `bound` method, may return, and where that stands."""
        raise NotImplementedError

    def _method_of(self, node: ast.Name | ast.Attribute | Element, scope: Scope, depth: int) -> bool:
        """Look at the method that `node` is of an object that a class of the project makes; whether it is one."""
        raise NotImplementedError

    def _body(self, node: ast.AST, scope: Scope, depth: int, owner: str = "", dead: tuple[ast.AST, ...] = ()) -> None:
        """Look at what runs, all of `node` but the `dead`: the draws in it, the generators and the objects that it
        uses."""
        made = scope.instance.made if scope.instance is not None else None
        if depth > DEEP or (id(node), dead, id(made), scope.way) in self._entered:
            return
        self._entered.add((id(node), dead, id(made), scope.way))
        self._run.add(node)
        parts = self._parts.get((node, dead))
        if parts is None:
            looked_at = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
            idle = {id(one) for statement in dead for one in walk(statement)}
            every = [one for one in walk(node) if isinstance(one, looked_at) and id(one) not in idle]
            parts = self._parts[node, dead] = every, [one for one in every if _is_of_self(one)]
        # For another object of its class only what hangs on the object can be different.
        again = (id(node), dead, scope.way) in self._bodies
        self._bodies.add((id(node), dead, scope.way))
        for inner in parts[again]:
            if isinstance(inner, ast.Call):
                self._called(inner, scope, depth)
            elif isinstance(inner, ast.Subscript):
                self._indexed(inner, scope, depth)
            elif isinstance(inner.ctx, ast.Load):
                self._generator_used(inner, scope, owner)

    def _indexed(self, node: ast.Subscript, scope: Scope, depth: int) -> None:
        """Look at the data set of the project of which `node` takes a row."""
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
            return
        own = isinstance(node.value, ast.Attribute) and _is_of_self(node.value)
        way = f"{scope.way}.{node.value.attr}" if scope.way and own and isinstance(node.value, ast.Attribute) else None
        around = scope.instance.made if scope.instance is not None else None
        for made, home in self.bindings.rows_of(node.value, scope):
            # `data = Wrapped(data)`: what it wraps is what the name was before.
            if made is not around:
                self._row_of(made, home, way, depth)

    def _row_of(self, made: ast.Call | Part, scope: Scope, way: str | None, depth: int) -> None:
        """Look at the data set of which a worker takes a row: one of the project or of a library, also as what a
        function of the project returns; what is picked by name is out of sight."""
        if depth > DEEP or (id(made), way) in self._rows:
            return
        self._rows.add((id(made), way))
        call = made.over if isinstance(made, Part) else made
        name = self.classes.dotted(call.func, scope.file)
        where, file = self.classes.definition(name, scope.file) or (None, scope.file)
        if isinstance(made, ast.Call) and (found := self.classes.made_by(made, scope.file)) is not None:
            self._instance(*found, made, scope, way, depth + 1, "__getitem__")
        elif below(name, self.facts.holding) or (call is made and self.classes.known(name)):
            self._value(call, scope, way, depth + 1)
        elif isinstance(where, ast.FunctionDef):
            inner, returned = self._returned(where, file, call, scope)
            for value in returned:
                one = _at(value, made.place) if isinstance(made, Part) else value
                for behind, home in self.bindings.rows_of(one, inner) if one is not None else ():
                    self._row_of(behind, home, way, depth + 1)
        elif not all(self._is_in_sight(one, home) for one, home in self.bindings.picked(call.func, scope)):
            self._out = True

    def _is_in_sight(self, picked: ast.expr, scope: Scope, depth: int = 0) -> bool:
        """Whether what is called, by another name, is an object, a function or a part of what a call returns: no class
        that is picked."""
        if isinstance(picked, Part):
            return self._is_part_in_sight(picked, scope)
        if made := self.bindings.objects(picked, scope)[0]:
            return all(picked_from(call) is None for call, _ in made)
        if not isinstance(picked, (ast.Name, ast.Attribute)):
            return False
        behind = [(one, home) for one, home in self.bindings.behind(picked, scope) if isinstance(one, ast.Name)]
        behind = behind or [(picked, scope)] if isinstance(picked, ast.Name) else behind
        return bool(behind) and all(self._is_no_class(one, home, depth + 1) for one, home in behind)

    def _is_no_class(self, name: ast.Name, scope: Scope, depth: int) -> bool:
        found = self.classes.definition(self.classes.dotted(name, scope.file), scope.file)
        if found is not None:
            return isinstance(found[0], ast.FunctionDef)
        parts = list(self.bindings.behind(name, scope))
        if parts and all(self._is_part_in_sight(one, home) for one, home in parts):
            return True
        return depth < DEEP and self._is_in_sight(name, scope, depth)

    def _is_part_in_sight(self, part: ast.expr, scope: Scope) -> bool:
        """Whether `part` is one of several values that a call returns, and no class that is picked there."""
        if not isinstance(part, Part):
            return False
        name = self.classes.dotted(part.over.func, scope.file)
        where, file = self.classes.definition(name, scope.file) or (None, scope.file)
        if not isinstance(where, ast.FunctionDef):
            return True
        inner, returned = self._returned(where, file, part.over, scope)
        values = (_at(value, part.place) for value in returned)
        return not any(True for one in values if one is not None for _ in self.bindings.picked(one, inner))

    def _generator_used(self, node: ast.Name | ast.Attribute, scope: Scope, owner: str) -> None:
        own = isinstance(node, ast.Attribute)
        if isinstance(node, ast.Attribute) and _is_of_self(node) and scope.instance is not None:
            self._inherited(node, scope, scope.instance)
        if isinstance(node, ast.Name) and scope.outer is None and node.id not in scope.file.values:
            return
        for value, inner in self.bindings.behind(node, scope):
            made = self.generators.maker(value, inner)
            if made is None or not (own or inner.function is None or inner is scope.outer):
                continue
            if isinstance(node, ast.Attribute) and _is_of_self(node) and node.attr in self._seeded_by(scope.methods):
                self._seeded = True
                continue
            maker, place = made
            name = ast.unparse(node)
            if maker in self.facts.spawning and not _spawns(name, scope):
                continue
            way = ""
            settable = scope.instance is None or not any(keeps_attributes(one) for one, _ in scope.instance.classes)
            settable &= _is_of_self(node)
            if scope.way and settable and isinstance(node, ast.Attribute) and not isinstance(value, HOLDING):
                way = f"{scope.way}.{outside_name(node.attr, owner)}"
            self._owned[Owned(name, owner, inner.file.path, place.lineno, way, maker)] = None

    def _inherited(self, node: ast.Attribute, scope: Scope, instance: Instance) -> None:
        """Look at the generator that an object has from a class of a package whose transforms hold one: `self.R`."""
        for base in instance.foreign:
            package = package_of(base, self.facts.owning)
            if package is not None and holds_at(node.attr, base, package):
                name = instance.classes[0][0].name
                self._holding[Owned(name, "", scope.file.path, node.lineno, "", base)] = None

    def _seeded_by(self, methods: tuple[ast.FunctionDef, ...]) -> frozenset[str]:
        """The attributes of `self` to which `methods`, run by a worker, give a generator or a seed of its own."""
        return reseeded(methods, self.facts.telling_apart, self.facts.methods)

    def _called(self, node: ast.Call, scope: Scope, depth: int) -> None:
        """A call that a worker makes."""
        function = node.func
        name = self.classes.dotted(function, scope.file)
        self._reseeds |= name in self.facts.reseeding or name.rpartition(".")[2] in self.facts.reseeding
        if isinstance(function, ast.Attribute) and scope.instance is not None:
            root = function if name == f"self.{function.attr}" else function.value
            if isinstance(root, ast.Attribute) and isinstance(root.value, ast.Name) and root.value.id == "self":
                if root is function:
                    self._lent(node, function.attr, scope, depth)
                self._used(root, scope, depth, function.attr if root is not function else "")
                return
        if (held := _advanced(node)) is not None and scope.instance is not None:
            for value, inner in scope.instance.attributes.get(held.attr) or ():
                self._run_on(value, inner, f"{scope.way}.{held.attr}" if scope.way else None, depth, "__next__")
            return
        draw = self.draws.get(name)
        if draw is None and isinstance(function, ast.Attribute):
            draw = self._fills.get(function.attr)
        if draw is not None:
            generator = any(keyword.arg in ("generator", "random_state") for keyword in node.keywords)
            if not generator and not self._is_seeded_above(node, draw.library, scope):
                self._drawn.add(draw.library)
            return
        found = self.classes.definition(name, scope.file)
        if found is None:
            self._called_otherwise(node, name, scope, depth)
            return
        where, file = found
        if isinstance(where, ast.ClassDef):
            self._instance(where, file, node, scope, None, depth + 1)
        else:
            given = {key: (value, scope) for key, value in passed(where, node, bound=False).items()}
            dead = self.classes.constants.dead_in_call(where, given)
            self._body(where, Scope(file, where, None, given, dead=dead), depth + 1, dead=dead)

    def _called_otherwise(self, node: ast.Call, name: str, scope: Scope, depth: int) -> None:
        """A call of what is neither a function nor a class of the project by this name: a method, or of a library."""
        function = node.func
        if isinstance(function, ast.Attribute) and self._called_by_class(node, name, scope, depth):
            return
        quiet = below(name, self.facts.quiet) or self.classes.known(name)
        if isinstance(function, ast.Name) and not quiet:
            self._unknown(function, scope, depth)
        elif "." in name and name.partition(".")[0] in scope.file.imports.values() and not quiet:
            self._out = True
        elif isinstance(function, ast.Attribute) and not self._method_of(function, scope, depth):
            self._method_held(function, scope, depth)

    def _called_by_class(self, node: ast.Call, name: str, scope: Scope, depth: int) -> bool:
        """Look at the method of a class of the project that is called by the name of that, `Batch.of(rows)`, also for
        the object itself, `Rows.__getitem__(self, index)`; whether `node` calls one."""
        member = self.classes.of_class(name, scope.file)
        if member is None:
            return False
        first = node.args[0] if node.args else None
        own = isinstance(first, ast.Name) and first.id == "self"
        bound = bool(given_class(member.function))
        given = {key: (value, scope) for key, value in passed(member.function, node, bound=bound).items()}
        dead = self.classes.constants.dead_in_call(member.function, given)
        inner = Scope(member.home, member.function, scope.instance if own else None, given, dead=dead)
        self._body(member.function, inner, depth + 1, dead=dead)
        return True

    def _is_seeded_above(self, draw: ast.Call, library: str, scope: Scope) -> bool:
        """Whether the function that draws gives `library` a seed, whatever runs of it, above the `draw`."""
        for statement in _above(draw, scope.function) if isinstance(scope.function, ast.FunctionDef) else ():
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and (call.args or call.keywords):
                row = self._seeds.get(self.classes.dotted(call.func, scope.file))
                if row is not None and library in row.seeds and not row.entropy:
                    return True
        return False

    def _method_held(self, function: ast.Attribute, scope: Scope, depth: int) -> None:
        """Look at the transform of a package that holds a generator, where a worker calls a method of one."""
        for made, home in self.bindings.objects(function.value, scope)[0] if self.facts.owning else ():
            if package_of(self.classes.dotted(made.func, home.file), self.facts.owning) is not None:
                self._value(made, home, None, depth + 1)

    def _unknown(self, function: ast.Name, scope: Scope, depth: int) -> None:
        """A call of a name that no import binds: a builtin, a function nearby, or what a parameter holds."""
        found = self._named(function, scope, depth)
        if not found and function.id not in scope.file.definitions and function.id in scope.file.imports:
            self._out = True

    def _named(self, name: ast.Name, scope: Scope, depth: int) -> bool:
        """Look at what `name` may be where it is called; whether that is in sight."""
        found = list(self.bindings.behind(name, scope)) or list(self._gone_through(name, scope))
        for value, inner in found:
            self._value(value, inner, None, depth + 1)
        return bool(found)

    def _gone_through(self, name: ast.Name, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """What a loop of the function goes through that gives `name` one by one: `for transform in self.transforms`."""
        for node in walk(scope.function) if scope.function is not None else ():
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name.id:
                over = node.iter
                yield from self.bindings.behind(over, scope) if isinstance(over, (ast.Name, ast.Attribute)) else ()

    def _lent(self, node: ast.Call, name: str, scope: Scope, depth: int) -> None:
        """Look at what the call `self.name(…)` gives a method of the object that calls it: `self.applied(self.cut)`."""
        assert scope.instance is not None
        where = next((found for one, _ in scope.instance.classes if (found := method(one, name)) is not None), None)
        called = self._names_called(where) if where is not None and (node.args or node.keywords) else frozenset()
        for parameter, value in passed(where, node, bound=True).items() if where is not None and called else ():
            if parameter not in called:
                continue
            if isinstance(value, ast.Attribute) and _is_of_self(value):
                self._used(value, scope, depth, "")
            elif isinstance(value, ast.Name):
                self._named(value, scope, depth)

    def _names_called(self, function: ast.FunctionDef) -> frozenset[str]:
        if function not in self._called_in:
            calls = (one.func for one in walk(function) if isinstance(one, ast.Call))
            self._called_in[function] = frozenset(one.id for one in calls if isinstance(one, ast.Name))
        return self._called_in[function]

    def _used(self, attribute: ast.Attribute, scope: Scope, depth: int, called: str) -> None:
        """An object that an attribute of `self` holds, where a worker calls it or the method `called` of it."""
        assert scope.instance is not None
        if any(method(class_, attribute.attr) is not None for class_, _ in scope.instance.classes):
            return
        values = scope.instance.attributes.get(attribute.attr)
        if values is None:
            if any(_gives(class_, attribute.attr) for class_, _ in scope.instance.classes):
                return  # where this object never comes
            # A base class of a library has it: data, unless its name says that it runs and it may have been given.
            kept = any(self.classes.known(name) for name in scope.instance.foreign)
            self._out = self._out or not kept or (self._holds(attribute.attr) and not scope.instance.whole)
            return
        way = f"{scope.way}.{attribute.attr}" if scope.way else None
        for value, inner in values:
            if self.generators.maker(value, inner) is not None or not self._may_run(value, inner):
                continue
            self._value(value, inner, way, depth + 1)
            if called:
                self._run_on(value, inner, way, depth, called)

    def _run_on(self, value: ast.expr, scope: Scope, way: str | None, depth: int, called: str) -> None:
        """Look at the method `called` of the objects of the project that `value` may be."""
        for made, home in self.bindings.objects(value, scope)[0]:
            if (found := self.classes.made_by(made, home.file)) is not None:
                self._instance(*found, made, home, way, depth + 1, called)

    def _may_run(self, value: ast.expr, scope: Scope) -> bool:
        """Whether `value` may be an object with code of its own: data are not."""
        if isinstance(value, ast.Subscript):
            return any(
                isinstance(one, ast.Lambda) or (isinstance(one, ast.Call) and self.classes.makes(one, inner.file))
                for one, inner in self.bindings.entries(value, scope)
            )
        if isinstance(value, (ast.Constant, ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.BinOp)):
            return False
        if isinstance(value, ast.Call):
            if self.classes.dotted(value.func, scope.file) == PARTIAL:
                return True
            return not below(self.classes.dotted(value.func, scope.file), self.facts.quiet - {"torch"}) and not (
                isinstance(value.func, ast.Attribute) and not self.classes.dotted(value.func, scope.file)
            )
        return True

    def _holds(self, parameter: str) -> bool:
        return any(word in parameter.lower() for word in self.facts.arguments)


def _gives(class_: ast.ClassDef, name: str) -> bool:
    """Whether a method of `class_` gives its object the attribute `name`."""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and one.attr == name and _is_of_self(one)
        for one in walk(class_)
    )


def _above(node: ast.expr, function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of `function` that have run wherever `node` runs: those above it in its block and in those around
    it."""
    for block, around in way_to(node, function):
        yield from block[: block.index(around)]


def _at(node: ast.expr, place: int) -> ast.expr | None:
    """What stands at `place` in the tuple `node`; None where that is not in sight."""
    return node.elts[place] if isinstance(node, ast.Tuple) and 0 <= place < len(node.elts) else None


def _is_of_self(node: _Part) -> bool:
    """Whether `node` is an attribute of `self`, calls one or a method of one, or takes something from one."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, (ast.Attribute, ast.Subscript)) and _is_of_self(node.value)
    if isinstance(node, ast.Call):
        function = node.func
        on_self = isinstance(function, ast.Attribute) and (_is_of_self(function) or _on_attribute(function))
        return on_self or _advanced(node) is not None
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _spawns(name: str, scope: Scope) -> bool:
    """Whether the function of `scope` takes new ones from the sequence of seeds `name`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "spawn"
        and ast.unparse(node.func.value) == name
        for node in (walk(scope.function) if scope.function is not None else ())
    )


def _advanced(node: ast.Call) -> ast.Attribute | None:
    """The attribute of `self` of which a call takes the next element: `next(self.cycler)`."""
    match node:
        case ast.Call(func=ast.Name(id="next"), args=[ast.Attribute(value=ast.Name(id="self")) as held, *_]):
            return held
    return None


def _on_attribute(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Attribute) and _is_of_self(function.value)
