"""A name or an attribute of `self` -> the expressions that it may stand for, and where these stand."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.workers.annotated import objects_of
from torchdet_lint.dataflow.workers.block_order import BlockOrder
from torchdet_lint.dataflow.workers.project_file import (
    Element,
    File,
    Part,
    added,
    bindings,
    bound_elements,
    branches,
    contents_of,
    evaluated_from,
    left_of,
    members_of,
    method,
    once,
    passed,
    picked_from,
    puts_argument,
    text_imported,
)
from torchdet_lint.dataflow.workers.scopes import Scope
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import beginning, defaults_of, statements, tells_all, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.dataflow.workers.classes import Classes
    from torchdet_lint.dataflow.workers.project_file import Function
    from torchdet_lint.module.calls import Call
    from torchdet_lint.module.module import Module

_DEEP = 12
_MANY = 30
_PROPERTIES = frozenset({"cached_property", "property"})
# So many classes are looked at of which a text picks one.
_CLASSES = 80
# So many names lie between what a loop gives one and what is returned.
_NAMES = 3
# So many expressions are looked behind for what makes one object.
_STEPS = 200
Bound = tuple[ast.expr, Scope]
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Bindings:
    """What the names are bound to in the file of `chains`, and in those of which it imports values."""

    def __init__(self, chains: CallChain, classes: Classes) -> None:
        self.chains = chains
        self.classes = classes
        self._bound: dict[ast.AST, dict[str, list[ast.expr]]] = {}
        self._comprehended: dict[ast.AST, dict[str, list[ast.expr]]] = {}
        self._added: dict[ast.AST, dict[str, list[ast.expr]]] = {}
        # The keys at which something is put into a dictionary, by what is put there.
        self._keys: dict[int, ast.expr] = {}
        self._rebound: dict[ast.AST, frozenset[str]] = {}
        self._named: dict[ast.AST, frozenset[str]] = {}
        self._nested: dict[ast.AST, dict[str, _Definition]] = {}
        self._files: dict[str, File] = {}
        self._idle: dict[tuple[ast.AST, ...], frozenset[int]] = {}
        self._orders: dict[ast.AST, BlockOrder] = {}
        self._entered: set[int] = set()

    def around(self, node: ast.AST) -> tuple[Function | None, ast.ClassDef | None]:
        """The function and the class in which a node of the file stands."""
        return _around(node, self.chains)

    def one_by_one(self, node: ast.AST) -> dict[str, ast.expr]:
        """What the comprehensions around a node of the file give names, one element after the other."""
        found: dict[str, ast.expr] = {}
        around = self.chains.parents.get(node)
        while isinstance(around, ast.expr | ast.keyword):
            for generator in around.generators if isinstance(around, _COMPREHENSIONS) else ():
                for name, value in bound_elements(generator):
                    found.setdefault(name, value)
            around = self.chains.parents.get(around)
        return found

    def behind(self, node: ast.expr, scope: Scope) -> Iterator[Bound]:
        """What a name or an attribute of `self` may be bound to, and what an element may be."""
        if isinstance(node, Element):
            yield from self._elements(node, scope)
            return
        if isinstance(node, ast.Attribute):
            if scope.instance is not None and isinstance(node.value, ast.Name) and node.value.id == "self":
                yield from scope.instance.attributes.get(node.attr, ()) or _given_by_property(node.attr, scope)
            else:
                found = list(self._of_module(node, scope.file))
                yield from found or self._of_object(node, scope)
            return
        assert isinstance(node, ast.Name)
        if scope.given is not None and node.id in scope.given:
            yield scope.given[node.id]
            return
        local = False
        if scope.function is not None and not isinstance(scope.function, ast.Lambda):
            idle = self.idle(scope.dead)
            bound = self._bound_in(scope.function).get(node.id, [])
            for value in self._order_of(scope.function).left(node, bound):
                if value is not node and id(value) not in idle:
                    local = True
                    yield left_of(value, idle), scope
            for value in self._gone_through_in(scope.function).get(node.id, ()):
                yield value, scope
            own = node.id in self._parameters(scope.function)
            rebound = node.id in self._rebound_in(scope.function) and not _is_bound_above(node, scope.function)
            if own and (not local or rebound):
                yield from list(self._passed(node.id, scope)) or self._annotated(node.id, scope)
                return
        if not local and scope.outer is not None:
            yield from self.behind(node, scope.outer)
        elif not local and scope.function is None and node.id in scope.file.values:
            for value in self._order_of(scope.file.tree).left(node, scope.file.values[node.id]):
                yield value, Scope(scope.file)
        elif not local:
            yield from self._global(node.id, scope.file)

    def _order_of(self, root: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> BlockOrder:
        if root not in self._orders:
            self._orders[root] = BlockOrder(root.body)
        return self._orders[root]

    def _elements(self, node: Element, scope: Scope) -> Iterator[Bound]:
        """What the elements of a display may be that `node` goes through, by itself, by a name, through `enumerate`,
        `zip`, or the entries of a dictionary; the whole where that is no display. One that is `picked` may be an entry
        of a dictionary too."""
        over, places = node.over, node.places
        function = over.func if isinstance(over, ast.Call) else None
        if isinstance(over, ast.Call) and isinstance(function, ast.Name) and places:
            place = places[0] - (function.id == "enumerate")
            if function.id in ("enumerate", "zip") and 0 <= place < len(over.args):
                over, places = over.args[place], places[1:]
        method = function.attr if isinstance(function, ast.Attribute) else ""
        if isinstance(function, ast.Attribute) and (method, places) in (("values", ()), ("items", (1,))):
            over, places = function.value, ()
        for value, inner in self._displays(over, scope) if not places else ():
            entries = getattr(value, "elts", [value])
            if isinstance(value, ast.Dict) and (method or node.picked):
                entries = value.values
            elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
                entries, inner = [value.elt], going_through(value, inner)
            yield from ((entry, inner) for entry in entries)

    def _displays(self, node: ast.expr, scope: Scope) -> list[Bound]:
        """What `node` may be, and what is put into the list that goes by this name, each in a display."""
        found: list[Bound] = []
        queue, seen = [(node, scope)], set[int]()
        while queue and len(seen) < _MANY:
            one, where = queue.pop()
            made = list(self.behind(one, where)) if isinstance(one, (ast.Name, ast.Attribute)) else []
            if id(one) in seen or not made:
                found += [(one, where)] if id(one) not in seen else []
                seen.add(id(one))
                continue
            seen.add(id(one))
            queue += made
            if isinstance(one, (ast.Name, ast.Attribute)):
                found += [(ast.List([value]), inner) for value, inner in self.put_into(one, where)]
        return found

    def put_into(self, name: ast.Name | ast.Attribute, scope: Scope) -> Iterator[Bound]:
        """What is added to the list that goes by `name`: in the function around, at the top of the file, or where it is
        an attribute of `self`, in the methods of its class."""
        if isinstance(name, ast.Attribute):
            own = scope.instance is not None and isinstance(name.value, ast.Name) and name.value.id == "self"
            yield from scope.instance.added.get(name.attr, ()) if own and scope.instance is not None else ()
            return
        local = scope.function if not isinstance(scope.function, ast.Lambda) else None
        root: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef = scope.file.tree
        if local is not None and name.id in self._bound_in(local):
            root = local
        if root not in self._added:
            lines = list(statements(root.body))
            for line in lines:
                target = line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
                if isinstance(line, ast.Assign) and isinstance(target, ast.Subscript):
                    self._keys[id(line.value)] = target.slice
            pairs = (pair for statement in lines for pair in added(statement))
            self._added[root] = _grouped((to.id, value) for to, value in pairs if isinstance(to, ast.Name))
        for value in self.living(self._added[root].get(name.id, ()), scope):
            yield value, scope

    def _parameters(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
        """The names of the parameters of a function."""
        if function not in self._named:
            self._named[function] = frozenset(one.arg for one in walk(function.args) if isinstance(one, ast.arg))
        return self._named[function]

    def _global(self, name: str, file: File) -> Iterator[Bound]:
        """What the name is bound to at the top of the file, or of the file that it is imported from."""
        if name not in file.values and name in file.imports:
            told = self.classes.home(file.imports[name], file)
            if told is None:
                return
            file, name = told
        for value in file.values.get(name, ()):
            yield value, Scope(file)

    def _of_module(self, node: ast.Attribute, file: File) -> Iterator[Bound]:
        """What `module.name` is bound to at the top of a file of the project that `file` imports."""
        root = dotted_name(node).partition(".")[0]
        told = self.classes.home(self.classes.dotted(node, file), file) if root in file.imports else None
        if told is not None:
            home, name = told
            for value in home.values.get(name, ()):
                yield value, Scope(home)

    def _of_object(self, node: ast.Attribute, scope: Scope) -> list[Bound]:
        """What an attribute of an object of the project is bound to: `self.transform.noise`."""
        found: list[Bound] = []
        if id(node) in self._entered:
            return found
        self._entered.add(id(node))
        for call, inner in self.objects(node.value, scope)[0]:
            made = self.classes.made_by(call, inner.file)
            if made is not None:
                found += self.classes.instance(*made, call, inner).attributes.get(node.attr, ())
        self._entered.discard(id(node))
        return found

    def idle(self, dead: tuple[ast.AST, ...]) -> frozenset[int]:
        """The ids of all nodes of what is `dead`."""
        if dead not in self._idle:
            self._idle[dead] = frozenset(id(one) for part in dead for one in walk(part))
        return self._idle[dead]

    def living(self, values: Iterable[ast.expr], scope: Scope) -> Iterator[ast.expr]:
        """Those of `values` that stand in nothing that does not run."""
        idle = self.idle(scope.dead)
        return (value for value in values if id(value) not in idle)

    def nested(self, name: str, scope: Scope) -> _Definition | None:
        """The function or class of that name which the function around defines."""
        function = scope.function
        if function is None or isinstance(function, ast.Lambda):
            return None
        if function not in self._nested:
            self._nested[function] = {
                one.name: one
                for one in statements(function.body)
                if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            }
        return self._nested[function].get(name)

    def _bound_in(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr]]:
        """What the names of a function are bound to; of one that is bound very often, the first."""
        if function not in self._bound:
            self._bound[function] = _grouped(
                pair for statement in statements(function.body) for pair in bindings(statement)
            )
        return self._bound[function]

    def _rebound_in(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
        """The names of a function that it binds to what it makes of them: `data = Wrapped(data)`."""
        if function not in self._rebound:
            self._rebound[function] = frozenset(
                name
                for name, values in self._bound_in(function).items()
                if any(isinstance(one, ast.Name) and one.id == name for value in values for one in walk(value))
            )
        return self._rebound[function]

    def _gone_through_in(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr]]:
        """What the comprehensions of a function give their names."""
        if function not in self._comprehended:
            generators = (node for node in walk(function) if isinstance(node, ast.comprehension))
            self._comprehended[function] = _grouped(pair for one in generators for pair in bound_elements(one))
        return self._comprehended[function]

    def always_passed(self, scope: Scope) -> Iterator[tuple[str, Bound]]:
        """The parameters of the function around for which all calls in sight pass the same constant, and that."""
        function = scope.function
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        for name in sorted(self._parameters(function) - self._bound_in(function).keys()):
            values = [value for value, _ in self._passed(name, scope)]
            constant = all(isinstance(one, ast.Constant) for one in values)
            if constant and len({ast.dump(one) for one in values}) == 1:
                yield name, (values[0], scope)

    def _passed(self, name: str, scope: Scope) -> Iterator[Bound]:
        """What the calls in sight pass for a parameter of a function or constructor of this file."""
        function = scope.function
        for call, standing, bound in self._calls_around(scope):
            assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            value = passed(function, call, bound=bound).get(name)
            if value is not None:
                yield value, standing
            elif tells_all(call):
                yield from ((value, Scope(scope.file)) for word, value in defaults_of(function.args) if word == name)
            else:
                # A starred expression, of which nobody can tell what it holds.
                yield ast.copy_location(ast.Starred(ast.Name(name)), call), standing

    def _calls_around(self, scope: Scope) -> Iterator[tuple[ast.Call, Scope, bool]]:
        """The calls in sight of the function or constructor of this file around, as they stand, and whether it has the
        first of its parameters already."""
        function = scope.function
        if scope.file.path or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        owner = self.chains.parents.get(function)
        if not isinstance(owner, ast.ClassDef):
            calls = self._calls_of(function.name, function, scope.file)
        elif function.name == "__init__":
            calls = self._calls_of(owner.name, owner, scope.file)
        else:
            calls = self._calls_of_method(function.name, owner, scope.file)
        yield from ((call, standing, isinstance(owner, ast.ClassDef)) for call, standing in calls)

    def passed_by_place(self, node: ast.Subscript, scope: Scope) -> list[Bound]:
        """What the calls in sight pass at the place `node` of the `*args` of the function around: `args[0]`; nothing
        where one does not show it."""
        function, place = scope.function, node.slice.value if isinstance(node.slice, ast.Constant) else None
        rest = function.args.vararg if function is not None else None
        own = rest is not None and isinstance(node.value, ast.Name) and node.value.id == rest.arg
        if function is None or not own or not isinstance(place, int) or place < 0:
            return []
        before = len(function.args.posonlyargs) + len(function.args.args)
        found: list[Bound] = []
        for call, standing, bound in self._calls_around(scope):
            at = before - bound + place
            if at >= len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[: at + 1]):
                return []
            found.append((call.args[at], standing))
        return found

    def _annotated(self, name: str, scope: Scope) -> Iterator[Bound]:
        """What a parameter is given that no call in sight gives anything, by its annotation."""
        for one in walk(scope.function.args) if scope.function is not None else ():
            if isinstance(one, ast.arg) and one.arg == name:
                for made in objects_of(one, scope.file, self.classes):
                    yield made, Scope(scope.file)

    def _calls_of(self, called: str, definition: ast.AST, file: File) -> Iterator[tuple[ast.Call, Scope]]:
        """The calls of `called` in this `file` and, where its `definition` stands at top level, in those around it."""
        yield from self._calls_here(called, file)
        callers = self.classes.module.callers
        if callers is not None and isinstance(self.chains.parents.get(definition), ast.Module):
            yield from self._calls_there(callers(called))

    def _calls_of_method(self, called: str, owner: ast.ClassDef, file: File) -> Iterator[tuple[ast.Call, Scope]]:
        """The calls of a method of the class `owner`: here of whatever object, so that one of a common name has many;
        in files around this one of objects that are evidently of the class, which stands at top level."""
        yield from self._calls_here(f".{called}", file)
        elsewhere = self.classes.module.methods_of
        if elsewhere is not None and isinstance(self.chains.parents.get(owner), ast.Module):
            yield from self._calls_there(elsewhere(owner.name, called))

    def _calls_here(self, called: str, file: File) -> Iterator[tuple[ast.Call, Scope]]:
        for use in self.chains.uses.get(called, ()):
            call = self.chains.parents[use]
            if isinstance(call, ast.Call) and call.func is use:
                yield call, self._standing(call, self.chains, file)

    def _calls_there(self, calls: Iterable[tuple[Module, Call]]) -> Iterator[tuple[ast.Call, Scope]]:
        """The `calls` of other files as these stand there."""
        for there, fact in calls:
            chains = there.shared(CallChain)
            made = chains.call_at(fact.node)
            if made is not None and chains.tree is not None:
                path = there.source.path
                if path not in self._files:
                    self._files[path] = File(path, chains.tree)
                yield made, self._standing(made, chains, self._files[path])

    def _standing(self, call: ast.Call, chains: CallChain, file: File) -> Scope:
        """Where the call stands in `file`."""
        function, owner = _around(call, chains)
        return Scope(file, function, self.classes.instance(owner, file) if owner is not None else None)

    def rows_of(self, node: ast.expr, scope: Scope) -> list[tuple[ast.Call | Part, Scope]]:
        """The calls that make the object that `node` is, and those of which it is one of several results."""
        parts: list[tuple[Part, Scope]] = []
        return [*self.objects(node, scope, held=False, parts=parts)[0], *parts]

    def objects(
        self, node: ast.expr, scope: Scope, *, held: bool = True, parts: list[tuple[Part, Scope]] | None = None
    ) -> tuple[list[tuple[ast.Call, Scope]], bool]:
        """The calls that make the object that `node` is, by itself, through names, as an element (also as one that is
        `held` by a display that `node` is) or as one of a choice, and whether these are all. What is one of several
        results of a call is added to `parts`."""
        made: list[tuple[ast.Call, Scope]] = []
        queue, seen, whole = [(node, scope)], set[int](), True
        while queue and len(made) < _MANY and len(seen) < _STEPS:
            one, where = queue.pop()
            part = _part(one) if parts is not None else None
            if isinstance(one, ast.Call):
                made.append((one, where))
            elif parts is not None and part is not None:
                parts.append((part, where))
            elif id(one) not in seen and not isinstance(one, ast.Constant):
                seen.add(id(one))
                display = isinstance(one, (ast.List, ast.Tuple))
                behind = list(self._behind_object(one, where)) if held or not display else []
                queue += reversed(behind)
                empty = isinstance(one, (ast.List, ast.Tuple)) and not one.elts
                whole &= (bool(behind) or empty) and not (isinstance(one, ast.Name) and one.id in where.left_open)
        return made, whole and not queue

    def _behind_object(self, node: ast.expr, scope: Scope) -> Iterator[Bound]:
        if isinstance(node, (ast.Name, ast.Attribute, Element)):
            yield from self.behind(node, scope)
        elif isinstance(node, ast.Subscript):
            yield once(node, functools.partial(Element, node.value, picked=True)), scope
        elif isinstance(node, (ast.List, ast.Tuple)):
            yield from ((element, scope) for element in node.elts)
        elif isinstance(node, (ast.IfExp, ast.BoolOp)):
            yield from ((branch, scope) for branch in branches(node))

    def entries(self, node: ast.Subscript, scope: Scope) -> list[Bound]:
        """What `node` may be of a dictionary that is written down, or filled one by one: the entry of its key, where
        all keys are written down."""
        table = node.value
        if not isinstance(table, (ast.Name, ast.Attribute)):
            return []
        behind = list(self.behind(table, scope))
        tables = [(one, inner) for one, inner in behind if isinstance(one, ast.Dict)]
        found: list[tuple[ast.expr | None, Bound]] = [
            (key, (value, inner)) for one, inner in tables for key, value in zip(one.keys, one.values, strict=True)
        ]
        put = [(self._keys.get(id(value)), (value, inner)) for value, inner in self.put_into(table, scope)]
        written = all(isinstance(key, ast.Constant) for key, _ in (*found, *put))
        if isinstance(node.slice, ast.Constant) and written and (len(behind) if put else len(tables)) == 1:
            return [one for key, one in (*found, *put) if ast.dump(key or node) == ast.dump(node.slice)]
        return [one for _, one in found] if not put else []

    def picked(self, node: ast.expr, scope: Scope, depth: int = 0) -> Iterator[Bound]:
        """The names of the classes and functions of which one is picked, `{"a": A, "b": B}[kind]`,
        `getattr(module, kind)`, `vars(module)[kind]` or by a loop over what a module holds, where `node` is called."""
        if depth > _DEEP:
            return
        if (name := evaluated_from(node)) is not None:
            yield from self._evaluated(name, scope)
        elif (module := self._held_in(node)) is not None:
            yield from self._of_package(module, scope)
        elif isinstance(node, ast.Subscript):
            named = isinstance(node.value, (ast.Name, ast.Attribute))
            for table, inner in self.behind(node.value, scope) if named else [(node.value, scope)]:
                for value in table.values if isinstance(table, ast.Dict) else ():
                    yield from ((one, inner) for one in branches(value))
                if isinstance(node.value, ast.Name):
                    yield from self._registered(node.value, inner)
        elif isinstance(node, ast.Call):
            yield from self._given_by(node, scope, depth)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            for value, inner in self.behind(node, scope):
                if isinstance(value, (ast.Subscript, ast.Call, Element)):
                    yield from self.picked(value, inner, depth + 1)
                elif isinstance(value, (ast.Name, ast.Attribute)) and value is not node:
                    yield from list(self._handed_down(value, inner)) or [(value, inner)]

    def _registered(self, table: ast.Name, scope: Scope) -> Iterator[Bound]:
        """The classes that a decorator of the file puts into `table`, where no other file uses that."""
        file, elsewhere = scope.file, self.chains.module.registers
        functions = () if scope.function is not None or file.path or elsewhere is None else file.definitions.values()
        for function in functions:
            if not (isinstance(function, ast.FunctionDef) and puts_argument(function, table.id)):
                continue
            for class_ in () if elsewhere is None or elsewhere(function.name) else file.definitions.values():
                for one in class_.decorator_list:
                    called = one.func if isinstance(one, ast.Call) else one
                    if isinstance(called, ast.Name) and called.id == function.name:
                        yield once(one, functools.partial(ast.Name, class_.name, ast.Load())), scope

    @staticmethod
    def _held_in(node: ast.expr) -> ast.expr | None:
        """The module that holds what `node` picks by a name, or is when a loop goes through all of it."""
        if isinstance(node, Element):
            return members_of(node.over)
        return contents_of(node.value) if isinstance(node, ast.Subscript) else picked_from(node)

    def functions(self, node: ast.expr, scope: Scope) -> list[Bound]:
        """The name of what `node` is where it is called, or of each that it may be by another name: `get =
        package.get`."""
        defined = self.classes.definition(self.classes.dotted(node, scope.file), scope.file) is not None
        named = [] if defined else list(self.picked(node, scope))
        return named or [(node, scope)]

    def _handed_down(self, node: ast.Name | ast.Attribute, scope: Scope, depth: int = 0) -> Iterator[Bound]:
        """What callers pass for a parameter that stands for a class or a function: each of them, or what it is."""
        for value, inner in self.behind(node, scope) if depth < _DEEP else ():
            found: list[Bound] = []
            if isinstance(value, (ast.Subscript, ast.Call)):
                found = list(self.picked(value, inner))
            elif isinstance(value, (ast.Name, ast.Attribute)) and value is not node:
                found = list(self._handed_down(value, inner, depth + 1))
            if not isinstance(value, ast.Constant):
                yield from found or [(value, inner)]
        if isinstance(node, ast.Name) and self._may_be_handed_more(node.id, scope):
            yield ast.Starred(node), scope

    def _may_be_handed_more(self, name: str, scope: Scope) -> bool:
        """Whether a class derives from the one whose constructor has a parameter of that name, and may pass it."""
        function = scope.function
        owner = self.chains.parents.get(function) if function is not None and not scope.file.path else None
        if not isinstance(owner, ast.ClassDef) or isinstance(function, ast.Lambda) or function is None:
            return False
        heirs = self.classes.module.heirs
        bases = {
            dotted_name(base)
            for one in scope.file.definitions.values()
            if isinstance(one, ast.ClassDef)
            for base in one.bases
        }
        return name in self._parameters(function) and (
            owner.name in bases or bool(heirs is not None and heirs(owner.name))
        )

    def _of_package(self, module: ast.expr, scope: Scope) -> Iterator[Bound]:
        """The names of the data sets that `module` of the project has, of which one is picked; `module.*` for another
        module, and for the others of very many."""
        told = [one for name in self._modules(module, scope) for one in self.classes.data_sets(name, scope.file)]
        yield from ((ast.copy_location(ast.Name(name), module), Scope(file)) for name, file in told[:_CLASSES])
        if not 0 < len(told) <= _CLASSES:
            yield ast.copy_location(ast.Attribute(module, "*"), module), scope

    def _modules(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        """The modules that `node` may be, as its file calls them: each of those of which `import_module` takes one."""
        behind: list[Bound] = [(node, scope)]
        if isinstance(node, (ast.Name, ast.Attribute)):
            behind = [(value, inner) for value, inner in self.behind(node, scope) if isinstance(value, ast.Call)]
        for value, inner in behind:
            yield from self._imported_by(value, inner)
        if not behind:
            yield self.classes.dotted(node, scope.file)

    def _imported_by(self, call: ast.expr, scope: Scope) -> Iterator[str]:
        """The modules of which `import_module("data." + name)` takes one."""
        if name := self.classes.dotted(call, scope.file):
            yield name
            return
        find = self.classes.module.modules_beginning_with
        if find is None or (text := text_imported(call)) is None:
            return
        told = self.behind(text, scope) if isinstance(text, ast.Name) else [(text, scope)]
        for begins in dict.fromkeys(beginning(one) for one, _ in told):
            anchor = text_imported(call, 1) if begins.startswith(".") else None
            package = anchor.value if isinstance(anchor, ast.Constant) and isinstance(anchor.value, str) else ""
            yield from find(f"{package}{begins}", scope.file.path) if begins else ()

    def _evaluated(self, module: str, scope: Scope) -> Iterator[Bound]:
        """The names of the data sets of a module of the project, or of the file itself, of which a text picks one."""
        named = self.classes.dotted(ast.parse(module, mode="eval").body, scope.file) if module else ""
        told = self.classes.data_sets(named, scope.file) if module else self.classes.own_data_sets(scope.file)
        yield from ((ast.Name(name), Scope(file)) for name, file in told)

    def _given_by(self, call: ast.Call, scope: Scope, depth: int) -> Iterator[Bound]:
        """The names of the classes and functions of which a function of the project returns one."""
        name = self.classes.dotted(call.func, scope.file)
        where, file = self.classes.definition(name, scope.file) or (None, None)
        if where is None and (member := self.classes.of_class(name, scope.file)) is not None:
            where, file = member.function, member.home
        if file is None or not isinstance(where, ast.FunctionDef):
            return
        inner = Scope(file, where)
        named: list[Bound] = []
        for statement in statements(where.body):
            value = statement.value if isinstance(statement, ast.Return) else None
            if isinstance(value, (ast.Subscript, ast.Call)):
                yield from self.picked(value, inner, depth + 1)
            elif isinstance(value, (ast.Name, ast.Attribute)):
                found = list(self._held_by_module(value, inner)) if isinstance(value, ast.Name) else []
                yield from found
                named += [(value, inner)] if not found else []
        if any(self._is_class(value, inner) for value, _ in named):
            yield from named

    def _held_by_module(self, name: ast.Name, scope: Scope, depth: int = 0) -> Iterator[Bound]:
        """The classes of which a loop over what a module holds gives `name` one: `for key, kind in vars(m).items()`."""
        for value, inner in self.behind(name, scope) if depth < _NAMES else ():
            if isinstance(value, Element):
                yield from self.picked(value, inner)
            elif isinstance(value, ast.Name) and value is not name:
                yield from self._held_by_module(value, inner, depth + 1)

    def _is_class(self, node: ast.expr, scope: Scope) -> bool:
        """Whether `node` names a class or a function, of the project or of a library that is known."""
        name = self.classes.dotted(node, scope.file)
        return (
            self.classes.definition(name, scope.file) is not None
            or self.classes.known(name)
            or isinstance(self.nested(name, scope), ast.ClassDef)
        )


def _is_bound_above(name: ast.Name, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a statement of the function itself, above the one around `name`, has bound it anew."""
    row = getattr(name, "lineno", 0)
    return any(
        isinstance(target, ast.Name) and target.id == name.id and (statement.end_lineno or row) < row
        for statement in function.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def going_through(node: ast.ListComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Scope:
    """Where what a comprehension puts together stands: there its names are given one element after the other."""
    own: dict[str, Bound] = {name: (over, scope) for one in node.generators for name, over in bound_elements(one)}
    return scope._replace(given={**(scope.given or {}), **own})


def _given_by_property(name: str, scope: Scope) -> Iterator[Bound]:
    """What the property `name` of the object in `scope` gives: that of the first class, in Python's order, that has
    one."""
    for class_, home in scope.instance.classes if scope.instance is not None else ():
        own = method(class_, name)
        if own is None:
            continue
        if any(dotted_name(one).rpartition(".")[2] in _PROPERTIES for one in own.decorator_list):
            for statement in statements(own.body):
                if isinstance(statement, ast.Return) and statement.value is not None:
                    yield statement.value, Scope(home, own, scope.instance)
        return


def _part(node: ast.expr) -> Part | None:
    """`node` as one of several results of a call, `a` of `a, b = f()` and `f()[0]`; None for another expression."""
    if isinstance(node, Part):
        return node
    place = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    if not isinstance(place, int) or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Call):
        return None
    known: dict[str, Part] = vars(node)
    return known.setdefault("part", Part(node.value, place))


def _grouped(pairs: Iterable[tuple[str, ast.expr]]) -> dict[str, list[ast.expr]]:
    """The values of each name; of one that has very many, the first."""
    found: dict[str, list[ast.expr]] = {}
    for name, value in pairs:
        values = found.setdefault(name, [])
        if len(values) < _MANY:
            values.append(value)
    return found


def _around(node: ast.AST, chains: CallChain) -> tuple[Function | None, ast.ClassDef | None]:
    """The function and the class in which a node of the file of `chains` stands."""
    function: Function | None = None
    while isinstance(node, (Element, Part)):
        node = node.over
    around = chains.parents.get(node)
    while around is not None:
        if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and function is None:
            function = around
        if isinstance(around, ast.ClassDef):
            return function, around
        around = chains.parents.get(around)
    return function, None
