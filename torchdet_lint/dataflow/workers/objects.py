"""What a DataLoader hands its workers -> the generator that is copied to all of them, and what they draw there.

An abstract interpretation of one small question: expressions are followed to the classes and functions that the workers
run, through names, parameters, attributes, wrappers and files.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from torchdet_lint.dataflow.workers.bindings import going_through
from torchdet_lint.dataflow.workers.bodies import PARTIAL, Owned, WorkerBodies
from torchdet_lint.dataflow.workers.constants import is_left_to_chance
from torchdet_lint.dataflow.workers.generators import DEEP, HOLDING
from torchdet_lint.dataflow.workers.owning import draws_nothing, draws_own, package_of
from torchdet_lint.dataflow.workers.project_file import (
    Element,
    File,
    Part,
    below,
    branches,
    method,
    once,
    passed,
)
from torchdet_lint.dataflow.workers.scopes import Scope, given_class, own_class
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.syntax import statements, tells_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from torchdet_lint.catalogue.tables.conventions import Owning
    from torchdet_lint.dataflow.workers.bindings import Bound
    from torchdet_lint.dataflow.workers.project_file import Function
    from torchdet_lint.dataflow.workers.scopes import Instance
    from torchdet_lint.module.module import Module

_COLLATES = "collate_fn"
# Decorators under which a method is one that is called.
_PLAIN = ("staticmethod", "classmethod")
_RUN_BY_WORKERS = ("dataset", _COLLATES)
_RUN_ON_SAMPLES = ("transform", "transform_sampler_output")
# An object, a function or a list of them.
_MADE_THERE = (ast.Call, ast.Lambda, ast.List, ast.Tuple)
# Functions that pick an element of what they are given first, and whose generator they draw from.
_CHOOSES = {"random.choice": "python", "numpy.random.choice": "numpy"}
# What is made of other values where it stands.
_MADE_UP = (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.BinOp, ast.Compare, ast.JoinedStr, ast.Dict)


class Handed(NamedTuple):
    """All that is known of what a loader hands its workers: whether everything is in sight, the generators that are
    copied, the libraries whose global generators the workers draw from, and whether each seeds a generator itself."""

    in_sight: bool
    owned: tuple[Owned, ...]
    draws: frozenset[str]
    seeds: bool = False


class WorkerObjects(WorkerBodies):
    """Looks at what the loaders of one file hand their workers."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        tree = self.chains.tree
        self.file = File("", tree) if tree is not None else None
        rows = (draw for draw in module.library.facts.draws if draw.at == "iteration" and draw.when)
        self.chances = {name: draw for draw in rows for name in draw.names}
        self._made: list[ast.Call] = []
        self._within: set[int] = set()

    def handed(self, call: ast.Call) -> Handed:
        """What the loader `call` hands its workers: its data set and its collate function."""
        arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in _RUN_BY_WORKERS}
        if call.args and not isinstance(call.args[0], ast.Starred):
            arguments.setdefault("dataset", call.args[0])
        if "dataset" not in arguments:
            return Handed(False, (), frozenset())
        return self._all_of(call, arguments)

    def collated(self, call: ast.Call) -> Handed:
        """What a loader hands its workers to collate rows with."""
        return self._all_of(call, {one.arg: one.value for one in call.keywords if one.arg == _COLLATES})

    def sampled(self, call: ast.Call) -> Handed:
        """What a loader hands its workers that is given a graph, of which they take samples: its transforms."""
        return self._all_of(call, {one.arg: one.value for one in call.keywords if one.arg in _RUN_ON_SAMPLES})

    def _all_of(self, call: ast.Call, arguments: Mapping[str, ast.expr]) -> Handed:
        self._owned, self._drawn, self._out, self._seeded = {}, set(), False, False
        self._seen, self._entered, self._bodies, self._rows = set(), set(), set(), set()
        self._holding, self._run, self._reseeds = {}, set(), False
        if self.file is None:
            return Handed(False, (), frozenset())
        function, owner = self.bindings.around(call)
        scope = Scope(self.file, function, self.classes.instance(owner, self.file) if owner is not None else None)
        given: dict[str, Bound] = dict(self.bindings.always_passed(scope))
        given |= {name: (value, scope) for name, value in self.bindings.one_by_one(call).items()}
        for name, value in arguments.items():
            self._value(
                value, scope._replace(way=None, given=given or None), "dataset" if name == "dataset" else None, 0
            )
        held = () if self._reseeds else self._holding
        return Handed(not self._out, (*self._owned, *held), frozenset(self._drawn), self._seeded)

    # -------------------------------------------------------------------------------------------------- expressions

    def _value(self, node: ast.expr, scope: Scope, way: str | None, depth: int) -> None:
        """Look at what `node` may be, which the data set reaches by `way` (None: not at all)."""
        if isinstance(node, ast.Constant):
            return
        if depth > DEEP or isinstance(node, ast.Starred):
            self._out = True
            return
        made = scope.instance.made if scope.instance is not None else None
        if (id(node), scope.dead, id(made), way) in self._seen:
            return
        self._seen.add((id(node), scope.dead, id(made), way))
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for place, element in enumerate(node.elts):
                if isinstance(element, ast.Starred):
                    self._value(element.value, scope, None, depth + 1)
                else:
                    self._value(element, scope, f"{way}[{place}]" if way else None, depth + 1)
        elif isinstance(node, ast.Lambda):
            self._body(node, scope._replace(function=node), depth + 1)
        elif isinstance(node, (ast.IfExp, ast.BoolOp)):
            for branch in self.bindings.living(branches(node), scope):
                self._value(branch, scope, way, depth)
        elif isinstance(node, (ast.Subscript, Part)):
            self._part(node, scope, way, depth)
        elif isinstance(node, _MADE_UP):
            self._display(node, scope, depth)
        elif isinstance(node, ast.Call):
            self._call(node, scope, way, depth)
        elif isinstance(node, (ast.Name, ast.Attribute, Element)):
            self._name(node, scope, way, depth)
        else:
            self._out = True

    def _display(self, node: ast.expr, scope: Scope, depth: int) -> None:
        """Look at what runs to make `node`, at the objects that a dictionary holds, and at lists that are added up."""
        parts = _operands(node) if isinstance(node, ast.BinOp) else []
        if any(isinstance(one, ast.List) for part in parts for one in self._meant(part, scope)):
            for part in parts:
                self._value(part, scope, None, depth)
            return
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add):
            # Numbers, worked out before a worker starts.
            return
        self._body(node, scope, depth + 1)
        if isinstance(node, ast.DictComp):
            scope = going_through(node, scope)
        values = node.values if isinstance(node, ast.Dict) else [node.value] if isinstance(node, ast.DictComp) else []
        for value in values:
            if isinstance(value, ast.Call):
                self._value(value, scope, None, depth + 1)

    def _meant(self, node: ast.expr, scope: Scope) -> Iterator[ast.expr]:
        """What `node` stands for, where it is a name, else itself."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield from (value for value, _ in self.bindings.behind(node, scope))
        else:
            yield node

    def _name(self, node: ast.Name | ast.Attribute | Element, scope: Scope, way: str | None, depth: int) -> None:
        found = list(self.bindings.behind(node, scope))
        nested = self.bindings.nested(node.id, scope) if isinstance(node, ast.Name) and not found else None
        if isinstance(nested, ast.ClassDef):
            self._instance(nested, scope.file, None, scope, way, depth)
        elif nested is not None:
            self._body(nested, scope._replace(function=nested, given=None, outer=scope), depth + 1)
        elif not found and not self._method_of(node, scope, depth):
            definition = self.classes.definition(self.classes.dotted(node, scope.file), scope.file)
            if definition is not None:
                where, file = definition
                if isinstance(where, ast.ClassDef):
                    self._instance(where, file, None, scope, way, depth)
                else:
                    self._body(where, Scope(file, where), depth + 1)
            elif not (self._quiet(node, scope) or self._own_method(node, scope, depth)):
                self._out = True
                if isinstance(node, ast.Attribute):
                    self._method_held(node, scope, depth)
        if id(node) in self._within:
            return
        self._within.add(id(node))
        for value, inner in found:
            self._value(value, inner, way, depth + 1)
        for value, inner in self.bindings.put_into(node, scope) if not isinstance(node, Element) and found else ():
            self._value(value, inner, None, depth + 1)
        self._within.discard(id(node))

    def _quiet(self, node: ast.Name | ast.Attribute | Element, scope: Scope) -> bool:
        """Whether `node` names what draws nothing, or from torch alone: of a package that is imported."""
        name = self.classes.dotted(node, scope.file)
        imported = name.partition(".")[0] in {origin.partition(".")[0] for origin in scope.file.imports.values()}
        # Nothing in sight binds a name that is asked for here.
        builtin = isinstance(node, ast.Name) and name in BUILTINS
        return self.classes.known(name) or ((imported or builtin) and below(name, self.facts.quiet))

    def _own_method(self, node: ast.expr, scope: Scope, depth: int) -> bool:
        """Look at the method that `node` is of classes of the project: `Rows.collate`, `self.collate`, or of what a
        parameter holds."""
        if not isinstance(node, ast.Attribute):
            return False
        if isinstance(node.value, ast.Name) and node.value.id == "self" and scope.instance is not None:
            for class_, _ in scope.instance.classes:
                own = method(class_, node.attr)
                # A property gives something else than itself.
                if own is not None and all(ast.unparse(one) in _PLAIN for one in own.decorator_list):
                    for function, there, owner in self.classes.run_in_worker(scope.instance, node.attr):
                        self._body(function, Scope(there, function, scope.instance), depth + 1, owner=owner)
                    return True
        classes = [(one, inner.file) for one, inner in self.bindings.picked(node.value, scope)]
        for one, file in classes or [(node.value, scope.file)]:
            member = self.classes.of_class(f"{self.classes.dotted(one, file)}.{node.attr}", file)
            if member is None:
                return False
            self._body(member.function, Scope(member.home, member.function), depth + 1)
        return True

    def _method_of(self, node: ast.Name | ast.Attribute | Element, scope: Scope, depth: int) -> bool:
        """Look at the method that `node` is of an object that a class of the project makes, or at the attribute of a
        class that is taken from a module by name; whether it is one."""
        if not isinstance(node, ast.Attribute):
            return False
        owners, whole = self.bindings.objects(node.value, scope)
        found = kept = False
        for owner, inner in owners:
            given = list(self.classes.given_by_module(owner, node.attr, inner.file))
            for value, home in given:
                self._value(value, Scope(home), None, depth + 1)
            name = self.classes.dotted(owner.func, inner.file)
            made = self.classes.definition(name, inner.file)
            if made is None and self.classes.known(name):
                # An object of a library has what it was given under the same name.
                self._kept_by(owner, node.attr, inner, depth)
                kept = True
                continue
            if made is None and (some := self._method_picked(owner, node.attr, inner, depth)) is not None:
                found, whole = True, whole and some
                continue
            kind, home = made if made is not None else (None, inner.file)
            if isinstance(kind, ast.ClassDef):
                if self.classes.lacks(kind, home, node.attr):
                    # What is taken from the object, not the object.
                    continue
                self._instance(kind, home, owner, inner, None, depth + 1, node.attr)
            quiet = self.classes.known(name) or below(name, self.facts.quiet)
            found |= bool(given) or isinstance(kind, ast.ClassDef)
            whole &= bool(given) or isinstance(kind, ast.ClassDef) or quiet
        self._out |= found and not whole
        return found or (kept and whole)

    def _kept_by(self, made: ast.Call, name: str, scope: Scope, depth: int) -> None:
        """Look at what the object of a library that `made` makes was given as `name`."""
        given = [keyword.value for keyword in made.keywords if keyword.arg == name]
        called = self.classes.dotted(made.func, scope.file)
        given += [one for one in made.args[1:] if self._holds(name) and self._may_hold(one, scope, called)]
        for value in given:
            self._value(value, scope, None, depth + 1)

    def _method_picked(self, owner: ast.Call, name: str, scope: Scope, depth: int) -> bool | None:
        """Look at the method `name` of what `owner` makes of each class of which one is picked; whether all of them are
        in sight, None where there are none."""
        whole: bool | None = None
        for one, inner in self.bindings.picked(owner.func, scope):
            made = ast.copy_location(ast.Call(one, owner.args, owner.keywords), owner)
            self._made.append(made)
            found = self.classes.made_by(made, inner.file)
            if found is not None:
                self._instance(*found, made, scope, None, depth + 1, name)
            elif self._is_function(one, inner.file):
                # Nobody asks what methods its result has.
                continue
            whole = found is not None and whole is not False
        return whole

    def _is_function(self, node: ast.expr, file: File) -> bool:
        """Whether `node` is a function of the project, what a package has that draws nothing, or an object of a library
        that is called."""
        if isinstance(node, ast.Call):
            return self.classes.known(self.classes.dotted(node.func, file))
        name = self.classes.dotted(node, file)
        return self.classes.definition(name, file) is not None or below(name, self.facts.quiet)

    def _call(self, node: ast.Call, scope: Scope, way: str | None, depth: int) -> None:
        name = self.classes.dotted(node.func, scope.file)
        found = own_class(node.func, scope) or self.classes.definition(name, scope.file)
        if found is not None:
            self._made_by(*found, node, scope, way, depth)
            return
        nested = self.bindings.nested(name, scope)
        if isinstance(nested, ast.ClassDef):
            self._instance(nested, scope.file, node, scope, way, depth)
            return
        if below(name, self.facts.reading):
            return
        wraps = below(name, self.facts.wrappers)
        if self.classes.known(name) or wraps:
            if self._draws(name, node):
                self._drawn.add("torch")
            for place, argument in enumerate(node.args):
                inner_way = self._inside(name, way, place)
                if isinstance(argument, ast.Starred) or not (place == 0 or self._may_hold(argument, scope, name)):
                    continue
                if place == 0 and not (wraps or self._composes(name)):
                    continue
                self._value(argument, scope, inner_way, depth + 1)
                self._comprehended(name, argument, scope, depth)
            for keyword in node.keywords:
                if name == PARTIAL and (made := self.generators.maker(keyword.value, scope)) is not None:
                    maker, maker_node = made
                    self._owned[Owned(str(keyword.arg), "", scope.file.path, maker_node.lineno, "", maker)] = None
                draws = wraps and keyword.arg == "generator"
                listed = wraps and keyword.arg == "data"
                if keyword.arg is not None and (listed or self._holds(keyword.arg)) and not draws:
                    self._value(keyword.value, scope, f"{way}.{keyword.arg}" if way else None, depth + 1)
            return
        if not self._from_library(name, node, scope, depth):
            self._from_project(name, node, scope, way, depth)

    def _from_library(self, name: str, node: ast.Call, scope: Scope, depth: int) -> bool:
        """Look at what a package whose draws are known makes or gives; whether `node` is a call of one."""
        if self._random(name, node, scope, depth):
            return True
        if name in _CHOOSES and node.args:
            self._drawn.add(_CHOOSES[name])
            self._value(once(node, functools.partial(Element, node.args[0])), scope, None, depth + 1)
            return True
        preset = isinstance(node.func, ast.Attribute) and node.func.attr in self.facts.presets
        return preset or self._is_data(node, scope)

    def _from_project(self, name: str, node: ast.Call, scope: Scope, way: str | None, depth: int) -> None:
        """Look at what `node` makes or gives, where that is in sight."""
        whole = scope.file is not self.file or not self.module.source.cells
        if whole and isinstance(node.func, ast.Name) and scope.file.lacks(node.func.id):
            # The arm raises. What a notebook runs may bind the name.
            return
        nested = self.bindings.nested(node.func.id, scope) if isinstance(node.func, ast.Name) else None
        if nested is not None:
            self._made_by(nested, scope.file, node, scope, way, depth)
        elif not (self._handed(node, scope, depth) or self._call_picked(node, scope, way, depth)):
            told = below(name, self.facts.quiet) or self._from_class(node, name, scope, way, depth)
            if not (told or self._given_by_method(node, scope, way, depth)):
                self._out = True

    def _is_data(self, node: ast.Call, scope: Scope) -> bool:
        """Whether `node` is a method of a text, or of what draws nothing: `torch.arange(9).float()`."""
        one: ast.expr = node.func.value if isinstance(node.func, ast.Attribute) else ast.Constant(None)
        while isinstance(one, (ast.Attribute, ast.Call, ast.Subscript)):
            if isinstance(one, ast.Call) and below(self.classes.dotted(one.func, scope.file), self.facts.quiet):
                return True
            one = one.func if isinstance(one, ast.Call) else one.value
        return isinstance(one, ast.Constant) and isinstance(one.value, str)

    def _draws(self, name: str, node: ast.Call) -> bool:
        """Whether what a package calls `name` draws from torch as `node` makes it; of transforms one may that is picked
        by name."""
        module, _, last = name.rpartition(".")
        if name in self.chances and not is_left_to_chance(self.chances[name], node):
            return False
        return any(word in last for word in self.facts.random) or (last == "*" and "transforms" in module.split("."))

    def _composes(self, name: str) -> bool:
        """Whether a transform of a library applies what it is given first."""
        return name.rpartition(".")[2] in self.facts.composing

    def _comprehended(self, composes: str, node: ast.expr, scope: Scope, depth: int) -> None:
        """Look at the transforms that a comprehension makes one by one for what `composes` them."""
        named = isinstance(node, (ast.Name, ast.Attribute))
        if not self._composes(composes):
            return
        for value, inner in self.bindings.behind(node, scope) if named else [(node, scope)]:
            if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
                self._value(value.elt, going_through(value, inner), None, depth + 1)

    def _given_by_method(self, node: ast.Call, scope: Scope, way: str | None, depth: int) -> bool:
        """Look at what a method of an object of the project returns; whether all that `node` may call are in sight."""
        function = node.func
        if not isinstance(function, ast.Attribute) or depth > DEEP:
            return False
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            objects, whole = [scope.instance], True
        else:
            made, whole = self._made_behind(function.value, scope)
            objects = [self._made_object(owner, inner) for owner, inner in made]
        for one in objects:
            members = ((method(class_, function.attr), home) for class_, home in one.classes) if one is not None else ()
            where, file = next(((found, home) for found, home in members if found is not None), (None, scope.file))
            if one is None or where is None:
                return False
            inner, returned = self._returned(where, file, node, scope, bound=True)
            for value in returned:
                self._value(value, inner._replace(instance=one), way, depth + 1)
            whole &= bool(returned)
        return whole and bool(objects)

    def _made_behind(self, node: ast.expr, scope: Scope) -> tuple[list[tuple[ast.Call, Scope]], bool]:
        """The calls that make the object that `node` is, also in the functions of the project that give it, and whether
        these are all."""
        found: list[tuple[ast.Call, Scope]] = []
        queue, seen, whole = [(node, scope)], set[int](), True
        while queue:
            made, known = self.bindings.objects(*queue.pop())
            whole &= known and bool(made)
            for call, inner in made:
                name = self.classes.dotted(call.func, inner.file)
                where, file = self.classes.definition(name, inner.file) or (None, inner.file)
                if not isinstance(where, ast.FunctionDef):
                    found.append((call, inner))
                elif id(call) not in seen:
                    seen.add(id(call))
                    there, returned = self._returned(where, file, call, inner)
                    queue += ((value, there) for value in returned)
        return found, whole

    def _made_object(self, call: ast.Call, scope: Scope) -> Instance | None:
        """The object of a class of the project that `call` makes."""
        found = self.classes.made_by(call, scope.file)
        return self.classes.instance(*found, call, scope) if found is not None else None

    def _from_class(self, node: ast.Call, name: str, scope: Scope, way: str | None, depth: int) -> bool:
        """Look at what a method called through its class returns, `Vocabulary.load(path)`; whether `node` calls one."""
        member = self.classes.of_class(name, scope.file)
        if member is None or depth > DEEP:
            return False
        bound = bool(given_class(member.function))
        inner, returned = self._returned(member.function, member.home, node, scope, bound=bound)
        if bound:
            inner = inner._replace(instance=self.classes.instance(member.class_, member.file))
        for value in returned:
            self._value(value, inner, way, depth + 1)
        return bool(returned)

    def _random(self, name: str, node: ast.Call, scope: Scope, depth: int) -> bool:
        """Look at a transform of a package whose random transforms are known; whether `node` makes one."""
        if below(name, self.facts.global_only):
            self._drawn |= {"numpy", "python", "torch"}
        elif below(name, self.facts.augmenting):
            self._augmented(name, node, scope, depth)
        elif (package := package_of(name, self.facts.owning)) is not None:
            self._owning(name, package, node, scope, depth)
        else:
            return False
        return True

    def _augmented(self, name: str, node: ast.Call, scope: Scope, depth: int) -> None:
        """Look at a transform of a package of which the release decides what it draws from."""
        self._out = True
        if any(word in name.rpartition(".")[2] for word in self.facts.random):
            self._drawn.add("torch")
        for argument in node.args:
            if isinstance(argument, _MADE_THERE):
                self._value(argument, scope, None, depth + 1)

    def _owning(self, name: str, package: Owning, node: ast.Call, scope: Scope, depth: int) -> None:
        """Look at a transform of a package whose random transforms hold a generator of their own, and at those in it;
        what a worker makes itself is not copied."""
        self._out |= not draws_nothing(name, package)
        if draws_own(name, node, package) and scope.function not in self._run:
            self._holding.setdefault(Owned(ast.unparse(node.func), "", scope.file.path, node.lineno, "", name))
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(argument, (*_MADE_THERE, ast.Name, ast.Attribute)):
                self._value(argument, scope, None, depth + 1)

    def _handed(self, node: ast.Call, scope: Scope, depth: int) -> bool:
        """Look at the data set of which `node` is a method that gives another one of its rows; whether it is one."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in self.facts.handing:
            return False
        self._value(node.func.value, scope, None, depth + 1)
        for argument in node.args if node.func.attr == "with_transform" else ():
            self._value(argument, scope, None, depth + 1)
        return True

    def _made_by(
        self, where: ast.ClassDef | Function, file: File, call: ast.Call, scope: Scope, way: str | None, depth: int
    ) -> None:
        """Look at what `call` of a class or a function of the project makes or returns."""
        if isinstance(where, ast.ClassDef):
            self._instance(where, file, call, scope, way, depth)
            return
        inner, returned = self._returned(where, file, call, scope)
        for value in returned:
            self._value(value, inner, None if isinstance(value, ast.Tuple) else way, depth + 1)
        if not returned:
            self._out = True

    def _returned(
        self, where: Function, file: File, call: ast.Call, scope: Scope, *, bound: bool = False
    ) -> tuple[Scope, list[ast.expr]]:
        """What `call` of a function of the project, or of a `bound` method, may return, and where that stands."""
        given = {key: (value, scope) for key, value in passed(where, call, bound=bound).items()}
        dead = self.classes.constants.dead_in_call(where, given) if tells_all(call) else ()
        inner = Scope(file, where, None, given, dead=dead)
        idle = self.bindings.idle(dead)
        returned = [
            one.value
            for one in (() if isinstance(where, ast.Lambda) else statements(where.body))
            if isinstance(one, ast.Return) and one.value is not None and id(one.value) not in idle
        ]
        return inner, returned

    def _part(self, node: ast.Subscript | Part, scope: Scope, way: str | None, depth: int) -> None:
        """Look at an element, where it is one of a tuple that a function of the project returns, else at the whole."""
        if isinstance(node, Part):
            if not self._entry(node.over, node.place, scope, depth):
                self._value(node.over, scope, way, depth)
        else:
            place = node.slice.value if isinstance(node.slice, ast.Constant) else None
            entries = self.bindings.entries(node, scope) if isinstance(place, str) else ()
            if entries or (entries := self.bindings.passed_by_place(node, scope)):
                for value, inner in entries:
                    self._value(value, inner, None, depth + 1)
            elif not self._entry(node.value, place, scope, depth):
                self._value(node.value, scope, None, depth + 1)

    def _entry(self, call: ast.expr, place: object, scope: Scope, depth: int) -> bool:
        """Look at what a function of the project returns at `place` of a tuple, where `call` is one of it."""
        if not isinstance(call, ast.Call) or not isinstance(place, int):
            return False
        found: list[Bound] = []
        for called, home in self.bindings.functions(call.func, scope):
            name = self.classes.dotted(called, home.file)
            where, file = self.classes.definition(name, home.file) or (None, home.file)
            if where is None or isinstance(where, ast.ClassDef):
                return False
            inner, returned = self._returned(where, file, call, scope)
            parts = [one.elts[place] for one in returned if isinstance(one, ast.Tuple) and place < len(one.elts)]
            if not parts or len(parts) < len(returned):
                return False
            found += [(part, inner) for part in parts]
        for part, inner in found:
            self._value(part, inner, None, depth + 1)
        return bool(found)

    def _call_picked(self, node: ast.Call, scope: Scope, way: str | None, depth: int) -> bool:
        """Look at what each class or function of which one is picked makes or returns; whether there are any."""
        picked = list(self.bindings.picked(node.func, scope))
        for one, inner in picked:
            if isinstance(one, ast.Lambda):
                self._value(one.body, inner, way, depth + 1)
                continue
            made = ast.copy_location(ast.Call(one, node.args, node.keywords), node)
            self._made.append(made)
            place = self.classes.definition(self.classes.dotted(one, inner.file), inner.file)
            nested = self.bindings.nested(one.id, inner) if isinstance(one, ast.Name) else None
            if isinstance(nested, ast.ClassDef):
                self._instance(nested, inner.file, made, scope, way, depth)
            elif place is not None:
                self._made_by(*place, made, scope, way, depth)
            elif self.classes.known(self.classes.dotted(one, inner.file)) and inner.file is scope.file:
                self._value(made, scope, way, depth + 1)
            elif not below(self.classes.dotted(one, inner.file), self.facts.quiet):
                self._out = True
        return bool(picked)

    @staticmethod
    def _inside(name: str, way: str | None, place: int) -> str | None:
        if way is None or place:
            return None
        last = name.rpartition(".")[2]
        return {"Subset": f"{way}.dataset", "Compose": f"{way}.transforms", "ConcatDataset": f"{way}.datasets"}.get(
            last
        )

    def _may_hold(self, node: ast.expr, scope: Scope, called: str) -> bool:
        """Whether an argument that is passed by place to what is `called` so may be what a worker runs: made there,
        named so, or a name of something that is written out or made by a class in sight."""
        if isinstance(node, _MADE_THERE) or below(called, self.facts.transforming):
            return True
        while isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Call):
            return self.classes.definition(self.classes.dotted(node.func, scope.file), scope.file) is not None
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        return self._holds(node.attr if isinstance(node, ast.Attribute) else node.id) or any(
            isinstance(value, (ast.Lambda, *HOLDING))
            or (isinstance(value, ast.Call) and self.classes.makes(value, inner.file))
            for value, inner in self.bindings.behind(node, scope)
        )

    # ------------------------------------------------------------------------------------------------------ classes

    def _instance(
        self, class_: ast.ClassDef, file: File, call: ast.Call | None, scope: Scope, way: str | None, depth: int,
        called: str = "",
    ) -> None:  # fmt: skip
        """Look at an object of a class of the project, made by `call` in `scope`, of which the method `called` runs."""
        if depth > DEEP:
            self._out = True
            return
        instance = self.classes.instance(class_, file, call, scope)
        if call is not None:
            instance.constants.update(self._kept(instance, file.set_outside | scope.file.set_outside))
        self._out = self._out or not self.classes.in_sight(instance)
        used = self.classes.run_in_worker(instance, called)
        methods = tuple(function for function, *_ in used)
        for function, owner_file, owner in used:
            dead = self.classes.constants.dead(function, instance.constants)
            inner = Scope(owner_file, function, instance, None, way, dead=dead, methods=methods)
            self._body(function, inner, depth + 1, owner=owner, dead=dead)
        if called in ("", "__getitem__"):
            self._applied(instance, way, depth)

    def _applied(self, instance: Instance, way: str | None, depth: int) -> None:
        """Look at the transforms of an object that a base class of a library applies to its rows."""
        applied = self.classes.applied_by_base(instance)
        found = [(name, *bound) for name in applied for bound in instance.attributes.get(name, ())]
        for name, value, inner in found:
            self._value(value, inner, f"{way}.{name}" if way else None, depth + 1)
        left_open = any(isinstance(value, ast.Name) and value.id in inner.left_open for _, value, inner in found)
        if instance.made is not None and (left_open or (applied and not found and not instance.whole)):
            self._out = True

    def _kept(self, instance: Instance, changed: AbstractSet[str]) -> Iterator[tuple[str, bool]]:
        """The attributes of an object that say whether the data sets of a library are for training which it was given:
        `self.train = data.train`. What is `changed` from outside says nothing."""
        for name, bounds in instance.attributes.items():
            asked = [(value.value, inner) for value, inner in bounds if _asks_whether_it_trains(value)]
            told = {self._trains(*one) for one in asked} if len(asked) == len(bounds) and name not in changed else set()
            if len(told) == 1 and (trains := told.pop()) is not None:
                yield f"self.{name}", trains

    def _trains(self, node: ast.expr, scope: Scope) -> bool | None:
        """Whether the data set of a library that `node` is was made for training."""
        made, whole = self.bindings.objects(node, scope, held=False)
        told: set[object] = set()
        for call, inner in made if whole else ():
            second = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "train")]
            known = self.classes.dotted(call.func, inner.file) in self.facts.trains and tells_all(call)
            given = second[0] if second else ast.Constant(True)
            told.add(given.value if known and isinstance(given, ast.Constant) else None)
        found = told.pop() if len(told) == 1 else None
        return found if isinstance(found, bool) else None


def _asks_whether_it_trains(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "train"


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """What a sum adds up, `a + b + c`."""
    parts: list[ast.expr] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
        parts.append(left.right)
        left = left.left
    return [left, *reversed(parts)]
