"""A program -> the loaders that it makes and never goes through: such a loader takes no row of its data set.

A loader is followed from the call that makes it through names, tuples and dictionaries, parameters, what functions
return, and the attributes of objects, which are followed in turn; so is a transform, to the loader of the data set that
applies it. Whatever else becomes of it may go through it.
"""

from __future__ import annotations

import ast
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.effects import STARTED, Node, Referent
from torchdet_lint.program.events import MODULE
from torchdet_lint.program.objects.arms import passed_by
from torchdet_lint.program.objects.trees import Tree
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import last_word, parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.program.effects import Made, Step
    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.lookup import Lookup

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# So many expressions are looked at for one loader.
_LOOKS = 300
# So many functions hand an object to the constructor of a base class, or to a method, before an attribute of it is set.
_DEPTH = 4
# So much text is held as trees.
_TREES = 1_000_000
# Functions that ask something of a loader, or of what holds one, and take nothing of it.
_ASKS = frozenset({"callable", "hasattr", "id", "isinstance", "len", "print", "repr", "str", "type"})
# What reads names that nobody sees.
_READS_ALL = frozenset({"eval", "exec", "globals", "locals", "vars"})
# Attributes of a loader that say how it was made, and those of a library's data set that are no rows.
_SETTINGS = frozenset({"batch_size", "class_to_idx", "classes", "drop_last", "num_workers", "pin_memory", "targets"})
# Decorators of functions that give back what the function does.
_PLAIN = frozenset({"classmethod", "inference_mode", "no_grad", "staticmethod"})
_CALLED = ("__call__", "forward")
# Classes of Python that call no method of what derives from them.
_BASES = frozenset({"abc.ABC", "builtins.object"})
# The class of which a loader takes the rows.
_ROWS = frozenset({"torch.utils.data.Dataset"})


class Part(NamedTuple):
    """How one thing is held by another: under a constant key, under `ANY` key, or in the attribute `name` of an object
    of the class `owner`."""

    key: object = None
    name: str = ""
    owner: tuple[str, str] = ("", "")


ANY = Part()
_Path = tuple[Part, ...]


_Site = tuple[Node, tuple[int, int]]
"""A call: where it stands, and its place there."""


class _Value(NamedTuple):
    """What `expression` gives where it stands in a function that runs as `node`, or one of which nothing is known: the
    loader itself, or what holds it under that path. It came into the function by the call at `site`, if that is one."""

    tree: Tree
    node: Node | None
    expression: ast.expr
    path: _Path
    site: _Site | None = None


_Next = list[_Value] | None
"""What a value becomes; None where someone may go through the loader."""


class Trees:
    """The trees of files, the last ones that were asked for."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self._found: OrderedDict[str, Tree] = OrderedDict()
        self._held = 0

    def of(self, path: str) -> Tree:
        """The tree of a file."""
        known = self._found.get(path)
        if known is None:
            text = self._files.text(path)
            known = self._found[path] = Tree(path, parsed_body(text))
            self._held += len(text)
            while self._held > _TREES and len(self._found) > 1:
                self._held -= len(self._files.text(self._found.popitem(last=False)[0]))
        self._found.move_to_end(path)
        return known


class UnusedLoaders:
    """Follows the loaders of one program."""

    def __init__(
        self, lookup: Lookup, trees: Trees, reached: Sequence[Node], steps: Callable[[Node], Sequence[Step]]
    ) -> None:
        """The program runs the `reached` nodes, which have these `steps`."""
        self._lookup = lookup
        self._trees = trees
        self._reached = reached
        self._steps = steps
        words = lookup.facts.words
        self._plain = (words.modules - words.fitted) | _BASES | _ROWS
        # By node and place: the names of what is called there, and the functions of the project.
        self._names: dict[Node, dict[tuple[int, int], list[str]]] = {}
        self._calls: dict[Node, dict[tuple[int, int], list[Node]]] = {}

    def is_unused(self, node: Node, loader: Made) -> bool:
        """Whether nothing goes through a loader that `node` makes, or a function that it calls."""
        start = loader.within or node
        site = (node, loader.call) if loader.within is not None else None
        tree = self._trees.of(start.file)
        calls = [call for call in tree.calls.get(loader.row, ()) if call.col_offset == loader.column]
        made = calls[0] if len(calls) == 1 else tree.call_at(loader.row, loader.column, loader.word)
        queue = [_Value(tree, start, made, (), site)] if made is not None else []
        seen = set(queue)
        while queue:
            following = self._following(queue.pop())
            if following is None or len(seen) > _LOOKS:
                return False
            queue += [one for one in dict.fromkeys(following) if one not in seen]
            seen.update(following)
        return made is not None

    def _calls_of(self, node: Node, site: _Site | None) -> list[tuple[Node, Step]]:
        """What calls a node: the call at `site`, or any."""
        found = self._sites.get(node, [])
        return found if site is None else [one for one in found if (one[0], one[1].ref[1:3]) == site]

    @cached_property
    def _sites(self) -> dict[Node, list[tuple[Node, Step]]]:
        """What calls each node."""
        found: dict[Node, list[tuple[Node, Step]]] = {}
        for node in self._reached:
            for step in self._steps(node):
                if step.node is not None:
                    found.setdefault(step.node, []).append((node, step))
        return found

    @cached_property
    def _nodes(self) -> dict[tuple[str, str], list[Node]]:
        """The reached nodes by file and name."""
        found: dict[tuple[str, str], list[Node]] = {}
        for node in self._reached:
            found.setdefault((node.file, node.name), []).append(node)
        return found

    def _following(self, value: _Value) -> _Next:
        """What the value of an expression becomes, by what the expression is a part of."""
        if value.node is not None and passed_by(value.tree, value.expression, dict(value.node.given)):
            return []
        match value.tree.parents.get(value.expression):
            case ast.Expr() | ast.Assert() | ast.If() | ast.While() | ast.FormattedValue() | ast.UnaryOp(op=ast.Not()):
                return []
            case ast.Compare(ops=operators) as asked:
                looked_into = value.expression is not asked.left and not _has_keys(value.path)
                return None if looked_into and any(isinstance(one, (ast.In, ast.NotIn)) for one in operators) else []
            case ast.IfExp(test=test) as choice:
                return [] if test is value.expression else [value._replace(expression=choice)]
            case ast.BoolOp() as choice:
                return [value._replace(expression=choice)]
            case ast.Return() as statement:
                return self._returned(value, statement)
            case ast.Call() as call:
                return self._in_call(value, call)
            case ast.keyword(arg=str() as name) as word:
                given = value.tree.parents[word]
                return self._passed(value, given, name) if isinstance(given, ast.Call) else None
            case ast.Attribute() as attribute:
                return self._attribute(value, attribute)
            case ast.Subscript(value=holder) as item if holder is value.expression:
                return self._item(value, item)
            case ast.Assign(targets=targets):
                found = [self._bound(value, target, value.path) for target in targets]
                return _joined(found)
            case ast.AnnAssign(target=target):
                return self._bound(value, target, value.path)
            case ast.For(iter=over, target=target) if over is value.expression and value.path:
                return self._gone_through(value, target)
            case parent:
                return self._held(value, parent)

    def _held(self, value: _Value, parent: ast.AST | None) -> _Next:
        """What a tuple, a list or a dictionary becomes that holds the value."""
        part: Part | None = None
        match parent:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                starred = any(isinstance(one, ast.Starred) for one in elements)
                part = ANY if starred else Part(elements.index(value.expression))
            case ast.Dict(keys=keys, values=values) if value.expression in values:
                key = keys[values.index(value.expression)]
                if key is None:
                    return [value._replace(expression=parent)] if _has_keys(value.path) else None
                part = Part(key.value) if isinstance(key, ast.Constant) else ANY
            case ast.DictComp(value=made) | ast.ListComp(elt=made) if made is value.expression:
                part = ANY
        if part is None or not isinstance(parent, ast.expr):
            return None
        return [value._replace(expression=parent, path=(part, *value.path))]

    # ------------------------------------------------------------------ names

    def _bound(self, value: _Value, target: ast.expr, path: _Path) -> _Next:
        """The reads of what is bound to the value."""
        match target:
            case ast.Name(id=name):
                return self._named(value, name, path)
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if _has_keys(path):
                if any(isinstance(one, ast.Starred) for one in elements):
                    return None
                at = path[0].key
                meant = [one for place, one in enumerate(elements) if path[0] == ANY or place == at]
                return _joined([self._bound(value, one, path[1:]) for one in meant])
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if (method := self._method(value)) is not None:
                node, function = method
                owner = node.owner
                if name != _first(function) or self._lookup.property_called(
                    Referent("instance", *owner), attribute, assigned=True
                ):
                    return None
                return self._of_self(value._replace(path=(Part(None, attribute, owner), *path)), node, function)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                begun = self._is_begun_here(value, name)
                return self._named(value, name, (Part(key), *path)) if begun else None
        return None

    def _named(self, value: _Value, name: str, path: _Path) -> _Next:
        """The reads of a name that is bound in the function around, or at the top level of the program itself."""
        tree, node = value.tree, value.node
        around = tree.around(value.expression)
        if around:
            if not tree.qualified(value.expression) or not tree.keeps(around[-1], name):
                return None
            return self._reads(value._replace(path=path), around[-1], name, tree.bound_anew(value.expression, name))
        if node is None or node.name != STARTED or not tree.is_at_top(value.expression):
            return None
        here = value._replace(path=path)
        return [one for read in tree.reads_at_top(name) for one in self._read(here, read)]

    def _reads(self, value: _Value, function: _Function, name: str, until: int = 0) -> _Next:
        """The reads of a name, which stands for the value, in a function: `until` a row where it is bound anew."""
        names = value.tree.names(function)
        if not _READS_ALL.isdisjoint(names):
            return None
        reads = (
            read
            for read in names.get(name, ())
            if not until or read.lineno <= until or value.tree.around(read)[0] is not function
        )
        return [one for read in reads for one in self._read(value, read)]

    def _read(self, value: _Value, read: ast.expr) -> Iterator[_Value]:
        """The value where it is read, in each node as which the function around that runs."""
        name = value.tree.qualified(read) or STARTED
        if value.node is not None and value.node.name == name:
            yield value._replace(expression=read)
            return
        nodes: Sequence[Node | None] = self._nodes.get((value.tree.path, name), [None])
        yield from (_Value(value.tree, one, read, value.path) for one in nodes)

    def _is_begun_here(self, value: _Value, name: str) -> bool:
        """Whether a name is bound to new dictionaries alone in the function around, or at top level."""
        around = value.tree.around(value.expression)
        bound = value.tree.bound(around[-1] if around else None, name)
        return bool(bound) and all(
            isinstance(one, ast.Dict) or (isinstance(one, ast.Call) and last_word(one.func) in ("dict", "OrderedDict"))
            for one in bound
        )

    def _gone_through(self, value: _Value, target: ast.expr) -> _Next:
        """What a loop binds that goes through what holds the value: of a dictionary, the keys."""
        if not _has_keys(value.path):
            return None
        if isinstance(value.path[0].key, str):
            return []
        return self._bound(value, target, value.path[1:])

    # ------------------------------------------------------------------ attributes and items

    def _item(self, value: _Value, item: ast.Subscript) -> _Next:
        """What an item of what holds the value is."""
        if not _has_keys(value.path):
            return None
        if not isinstance(item.ctx, ast.Load):
            return []
        told = isinstance(item.slice, ast.Constant) and value.path[0] != ANY
        if told and item.slice.value != value.path[0].key:  # type: ignore[attr-defined]
            return []
        return [value._replace(expression=item, path=value.path[1:])]

    def _attribute(self, value: _Value, attribute: ast.Attribute) -> _Next:
        """What an attribute of a loader, of a dictionary or of an object is."""
        name, path = attribute.attr, value.path
        above = value.tree.parents.get(attribute)
        call = above if isinstance(above, ast.Call) and above.func is attribute else None
        if not path:
            sized = isinstance(above, ast.Call) and last_word(above.func) == "len" and call is None
            asked = isinstance(above, ast.Attribute) and not _is_called(value.tree, above)
            return [] if name in _SETTINGS or (name == "dataset" and (sized or asked)) else None
        if _has_keys(path):
            if call is not None and name == "get" and call.args:
                told = isinstance(call.args[0], ast.Constant) and path[0] != ANY
                other = told and call.args[0].value != path[0].key  # type: ignore[attr-defined]
                return [] if other else [value._replace(expression=call, path=path[1:])]
            return [] if call is not None and name == "keys" else None
        if not isinstance(attribute.ctx, ast.Load):
            return []
        if name == path[0].name:
            return [value._replace(expression=attribute, path=path[1:])]
        if call is not None:
            return self._within(value, call, (name,))
        if name.startswith("__"):
            return None
        # What runs where it is read, or is handed on, is a property or a method.
        found = self._lookup.class_attribute(Referent("instance", *path[0].owner), name)
        return None if any(one.kind == "function" for one in found) else []

    def _within(self, value: _Value, call: ast.Call, methods: Sequence[str]) -> _Next:
        """What becomes of an object in its own `methods`, which a call runs."""
        found: list[_Next] = []
        for callee in self._called(value.node, call):
            tree = self._trees.of(callee.file)
            function = tree.functions.get(callee.name)
            if callee.owner[1] and callee.name.rpartition(".")[2] in methods:
                here = _entered(value, call, tree, callee)
                found.append(self._in_method(here, callee, function) if function is not None else None)
        return _joined(found) if found else None

    def _in_method(self, value: _Value, node: Node, function: _Function) -> _Next:
        """What becomes of an object of which a method runs as `node`, in that and in those of the classes above."""
        found = [self._reads(value, function, _first(function))]
        tree = value.tree
        for read in tree.names(function).get("super", ()):
            method = tree.parents.get(tree.parents[read])
            call = tree.parents.get(method) if isinstance(method, ast.Attribute) else None
            if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call):
                return None
            above = [one for one in self._called(node, call) if one.name.endswith(f".{method.attr}") and one != node]
            if above:
                found.append(self._within(value, call, (method.attr,)) if len(above) == 1 else None)
            elif method.attr != "__init__" or not self._is_in_sight(node.owner):
                return None
        return _joined(found)

    def _method(self, value: _Value) -> tuple[Node, _Function] | None:
        """The method around a value, where that is the node itself."""
        node, around = value.node, value.tree.around(value.expression)
        if node is None or not around or not node.owner[1] or value.tree.functions.get(node.name) is not around[0]:
            return None
        return node, around[0]

    def _of_self(self, value: _Value, node: Node, function: _Function, depth: int = _DEPTH) -> _Next:
        """What becomes of the object of which the method that runs as `node` sets an attribute: in the method, and
        where its constructor is called."""
        if not depth or _is_decorated(function):
            return None
        found = [self._in_method(value, node, function)]
        sites = self._calls_of(node, value.site)
        for caller, step in sites:
            call = self._site(caller, step, function.name, node.owner[1])
            found.append(self._made_there(caller, call, node, value.path, depth) if call is not None else None)
        return _joined(found) if sites else None

    def _made_there(self, caller: Node, call: ast.Call, node: Node, path: _Path, depth: int) -> _Next:
        """What becomes of an object where a call makes it, or runs the method `node` of it in another method."""
        here = _Value(self._trees.of(caller.file), caller, call, path)
        if last_word(call.func) == node.owner[1]:
            return [here] if node.name.endswith(".__init__") and self._is_in_sight(node.owner) else None
        around = here.tree.functions.get(caller.name)
        own = around is not None and caller.owner == node.owner and isinstance(call.func, ast.Attribute)
        if not own or around is None or around is not here.tree.around(call)[0]:
            return None
        receiver = call.func.value  # type: ignore[attr-defined]
        of_self = isinstance(receiver, ast.Name) and receiver.id == _first(around)
        above = isinstance(receiver, ast.Call) and last_word(receiver.func) == "super"
        return self._of_self(here, caller, around, depth - 1) if of_self or above else None

    def _is_in_sight(self, class_: tuple[str, str]) -> bool:
        """Whether all is in sight that a class derives from, but for plain modules."""
        for kind in self._lookup.family(class_):
            if kind.kind == "external":
                if kind.name not in self._plain:
                    return False
                continue
            own = self._lookup.files.summary(kind.file).class_summary(kind.name)
            if own is None or not all(self._lookup.evaluate(base, kind.file) for base in own.bases):
                return False
        return True

    # ------------------------------------------------------------------ calls

    def _called(self, node: Node | None, call: ast.Call) -> list[Node]:
        """The functions of the project that a call runs in `node`, by its own name."""
        if node is None or isinstance(call.func, ast.Call):
            return []
        if node not in self._calls:
            calls = self._calls[node] = {}
            for step in self._steps(node):
                if step.node is not None and step.kind == "call":
                    calls.setdefault((step.ref.row, step.ref.column), []).append(step.node)
        word, found = last_word(call.func), list[Node]()
        for one in self._calls[node].get((call.lineno, call.col_offset), ()):
            last = one.name.rpartition(".")[2]
            if last == word or last in _CALLED or (last == "__init__" and one.owner[1] == word):
                found.append(one)
        return found

    def _site(self, caller: Node, step: Step, *words: str) -> ast.Call | None:
        """The call that is a step of `caller`, where that calls something by one of `words`."""
        if step.kind != "call" or step.ref.file != caller.file:
            return None
        tree = self._trees.of(caller.file)
        calls = (tree.call_at(step.ref.row, step.ref.column, word) for word in words)
        return next((call for call in calls if call is not None), None)

    def _in_call(self, value: _Value, call: ast.Call) -> _Next:
        """What a call makes of the value, which it calls or passes by place."""
        if call.func is value.expression:
            own = bool(value.path) and not _has_keys(value.path)
            return self._within(value, call, _CALLED) if own else None
        before = call.args[: call.args.index(value.expression)]
        return None if any(isinstance(one, ast.Starred) for one in before) else self._passed(value, call, len(before))

    def _passed(self, value: _Value, call: ast.Call, given: int | str) -> _Next:
        """What becomes of the value in the functions that get it, by place or by name."""
        called = self._called(value.node, call)
        if not called and self._keeps_rows(value.node, call):
            return [value._replace(expression=call, path=())]
        if not called and isinstance(call.func, ast.Name):
            if call.func.id in _ASKS:
                plain = not value.path or _has_keys(value.path)
                return (
                    [] if plain or call.func.id != "len" or self._lookup.derives(value.path[0].owner, _ROWS) else None
                )
            if call.func.id == "dict" and isinstance(given, str):
                return [value._replace(expression=call, path=(Part(given), *value.path))]
        found = [self._parameter(value, call, given, callee) for callee in called]
        return _joined(found) if found else None

    def _keeps_rows(self, node: Node | None, call: ast.Call) -> bool:
        """Whether a call of a library's class keeps what it is given for the rows that somebody may take."""
        if node is None:
            return False
        if node not in self._names:
            found = self._names[node] = {}
            body = self._lookup.files.summary(node.file).body(MODULE if node.name == STARTED else node.name)
            for event in body.events if body is not None else ():
                if event.kind == "call":
                    found.setdefault((event.row, event.column), []).append(event.names[0])
        names = self._names[node].get((call.lineno, call.col_offset), [])
        meant = names if len(names) == 1 else [name for name in names if name.endswith(f".{last_word(call.func)}")]
        return bool(meant) and all(map(self._lookup.facts.words.keeps.search, meant))

    def _parameter(self, value: _Value, call: ast.Call, given: int | str, callee: Node) -> _Next:
        """The reads of the parameter of `callee` that gets the value."""
        tree = self._trees.of(callee.file)
        function = tree.functions.get(callee.name)
        if function is None or _is_decorated(function):
            return None
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        if "." in callee.name and not any(last_word(one) == "staticmethod" for one in function.decorator_list):
            of_class = isinstance(call.func, ast.Attribute) and last_word(call.func.value)[:1].isupper()
            if of_class and callee.name.rpartition(".")[2] == last_word(call.func):
                return None
            names = names[1:]
        if isinstance(given, int):
            name = names[given] if given < len(names) else ""
        else:
            name = given if given in (*names, *(one.arg for one in function.args.kwonlyargs)) else ""
        return self._reads(_entered(value, call, tree, callee), function, name) if name else None

    def _returned(self, value: _Value, given: ast.Return) -> _Next:
        """What becomes of the value where the function that returns it is called."""
        node, around = value.node, value.tree.around(given)
        if node is None or not around or value.tree.functions.get(node.name) is not around[0]:
            return None
        function = around[0]
        if _is_decorated(function) or any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in walk(function)):
            return None
        found: list[_Next] = []
        for caller, step in self._calls_of(node, value.site):
            call = self._site(caller, step, function.name)
            found.append([_Value(self._trees.of(caller.file), caller, call, value.path)] if call is not None else None)
        return _joined(found) if found else None


def _entered(value: _Value, call: ast.Call, tree: Tree, callee: Node) -> _Value:
    """The value in a function that gets it by a call."""
    site = (value.node, (call.lineno, call.col_offset)) if value.node is not None else None
    return _Value(tree, callee, value.expression, value.path, site)


def _joined(found: Sequence[_Next]) -> _Next:
    """All that values become; None where one of them may be gone through."""
    if any(one is None for one in found):
        return None
    return [value for one in found for value in one or ()]


def _has_keys(path: _Path) -> bool:
    """Whether what holds a loader so is a tuple, a list or a dictionary."""
    return bool(path) and not path[0].name


def _is_called(tree: Tree, node: ast.expr) -> bool:
    above = tree.parents.get(node)
    return isinstance(above, ast.Call) and above.func is node


def _first(function: _Function) -> str:
    """The first parameter of a function."""
    parameters = parameters_of(function.args)
    return parameters[0].arg if parameters else ""


def _is_decorated(function: _Function) -> bool:
    """Whether a function is a coroutine, or one that a decorator may make something else of."""
    return not isinstance(function, ast.FunctionDef) or any(
        last_word(one) not in _PLAIN for one in function.decorator_list
    )
