"""The tree of a file -> its scopes, and what binds each name in them."""

from __future__ import annotations

import ast
import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.syntax import defaults_of, walk
from torchdet_lint.prefilter.triggers import IDENTIFIER, places
from torchdet_lint.program.events import MODULE
from torchdet_lint.program.syntax.shapes import (
    FUNCTIONS,
    PASSED_ON,
    added_to,
    as_table,
    class_asserted,
    defined_by,
    device_in,
    entered,
    factories,
    factory_lambdas,
    goes_through_table,
    handed_lambdas,
    is_error,
    looped_over,
    object_of,
    overwritten,
    parameters_of,
    statements_in,
)
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from torchdet_lint.program.events import Rebinding
    from torchdet_lint.program.syntax.hollow import Hollow


_GLOBAL = lazy(r"\bglobal[ \t]+([\w, \t]+)")
_INNER_IMPORT = lazy(r"(?m)^[ \t]+((?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(?:\([^)]*\)|[^\n#;]+))")
DEPTH = 14
NAMES = 24
_NAMELESS = "lambda"
# Of a longer list not all is read, and so nothing is known.
_ITEMS = 200
# So much of the text behind a name is looked at, for what is assigned to it: alone, among others, or annotated.
_LINE = 80
_GIVEN = lazy(r"[ \t]*(?:=(?!=)|,[^\n]*[^=!<>]=(?!=)|:[ \t]*\w[\w\[\], |.]*=(?!=))")


class Bound(NamedTuple):
    """One thing that binds a name: an import's target, a definition, or the expression of a value; `told` is what the
    value is said to be, by an annotation or an assertion: a class, or a call of one. Of what is unpacked it is the part
    at a `place`."""

    kind: str
    target: str = ""
    value: ast.expr | None = None
    told: ast.expr | None = None
    place: int = -1


class Scope:
    """A module, class or function with the names that its statements bind."""

    __slots__ = (
        "_assigned",
        "_lent",
        "_loops",
        "_passing",
        "bindings",
        "filled",
        "given",
        "kind",
        "name",
        "node",
        "outer",
        "rebound",
        "refilled",
    )

    def __init__(self, kind: str, outer: Scope | None, node: Any, name: str) -> None:
        self.kind = kind
        self.outer = outer
        self.node = node
        self.name = name
        self.bindings: dict[str, list[Bound]] = {}
        # Of these the imports and parameters, which are few however often a name is bound again.
        self.given: dict[str, list[Bound]] = {}
        # What the statements of a function make of its parameters, by what they assign; None before somebody asks.
        self.rebound: dict[str, list[tuple[tuple[ast.expr, ...], Rebinding]]] | None = None
        # The names of lists that get other elements, and in how many places.
        self.refilled: Counter[str] | None = None
        # The lists to which a loop of a function adds one element each time, with what the loop goes through.
        self.filled: dict[str, ast.expr] | None = None
        self._assigned: frozenset[int] | None = None
        self._lent: frozenset[str] | None = None
        self._loops: tuple[tuple[int, int], ...] | None = None
        self._passing: frozenset[str] | None = None

    def bind(self, name: str, bound: Bound) -> None:
        """Record that `bound` binds `name` here."""
        self.bindings.setdefault(name, []).append(bound)
        if bound.kind in ("import", "parameter"):
            self.given.setdefault(name, []).append(bound)

    def home(self, name: str) -> Scope | None:
        """The scope in which `name` is bound, seen from here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings and (scope.kind != "class" or scope is self):
                return scope
            scope = scope.outer
        return None

    def is_of_others(self, name: str) -> bool:
        """Whether `name` is Python's own, or imported, wherever it is bound."""
        home = self.home(name)
        return name in BUILTINS if home is None else all(bound.kind == "import" for bound in home.bindings[name])

    @property
    def assigned(self) -> frozenset[int]:
        """The identities of the values that the statements of its own block, in no branch or loop, give to names."""
        if self._assigned is None:
            plain = (one.value for one in self.node.body if isinstance(one, (ast.Assign, ast.AnnAssign)))
            self._assigned = frozenset(id(value) for value in plain if value is not None)
        return self._assigned

    @property
    def lent(self) -> frozenset[str]:
        """The names that functions in this one may bind, by a `nonlocal`."""
        if self._lent is None:
            inner = (node.names for node in walk(self.node) if isinstance(node, ast.Nonlocal))
            self._lent = frozenset(itertools.chain.from_iterable(inner))
        return self._lent

    @property
    def passing(self) -> frozenset[str]:
        """The names that comprehensions bind for themselves, and handlers for what they caught."""
        if self._passing is None:
            inside = list(walk(self.node))
            targets = (part for node in inside if isinstance(node, ast.comprehension) for part in walk(node.target))
            caught = {node.name for node in inside if isinstance(node, ast.ExceptHandler) and node.name}
            self._passing = frozenset(caught.union(part.id for part in targets if isinstance(part, ast.Name)))
        return self._passing

    @property
    def loops(self) -> tuple[tuple[int, int], ...]:
        """The rows of the loops in this one."""
        if self._loops is None:
            found = [node for node in walk(self.node) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
            self._loops = tuple((node.lineno, node.end_lineno or node.lineno) for node in found)
        return self._loops

    @property
    def method(self) -> Scope | None:
        """The method that this function is, or stands in."""
        scope: Scope | None = self
        while scope is not None and not (
            scope.kind == "function" and scope.outer is not None and scope.outer.kind == "class"
        ):
            scope = scope.outer
        return scope

    @property
    def first(self) -> str:
        """What the first parameter of a function is: `self`, `class`, or nothing special."""
        if (
            self.kind != "function"
            or self.outer is None
            or self.outer.kind != "class"
            or not parameters_of(self.node.args)
        ):
            return ""
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id == "staticmethod":
                return ""
            if isinstance(decorator, ast.Name) and decorator.id == "classmethod":
                return "class"
        return "class" if self.node.name in ("__new__", "__init_subclass__") else "self"


class Scopes:
    """The scopes of one file, opened when something in them is asked for."""

    def __init__(self, hollow: Hollow) -> None:
        self.hollow = hollow
        self.tree, self.size = hollow.tree()
        self.stars: list[str] = []
        self.module = Scope("module", None, self.tree, MODULE)
        self.by_name: dict[str, Scope] = {MODULE: self.module}
        # The names of the functions that lambdas are which are returned, kept in an attribute or a table, or handed on.
        self.lambdas: dict[ast.Lambda, str] = {}
        # Of these, those that are handed to a loader or a data set, which do not run where they stand.
        self.handed: set[ast.Lambda] = set()
        # How often a name is given again.
        self._again: dict[str, int] = {}
        self._has_lambdas = "lambda" in hollow.text
        self._bind_all(self.module, self.tree.body)
        self._bind_late_imports()

    def release(self) -> None:
        """Let go of the scopes, and of the trees that they hold."""
        for scope in self.by_name.values():
            scope.bindings, scope.given, scope.outer, scope.node, scope.rebound = {}, {}, None, None, None
        vars(self).clear()

    def _bind_late_imports(self) -> None:
        """The names of the file that a function imports for all, by a `global`."""
        shared = self._declared_global
        for match in _INNER_IMPORT.finditer(self.hollow.text) if shared else ():
            if shared.isdisjoint(IDENTIFIER.findall(match[1])):
                continue
            try:
                node = ast.parse(match[1]).body[0]
            except SyntaxError:
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for name, origin in skeleton.imported(node):
                    if name in shared:
                        self.module.bind(name, Bound("import", origin))

    def functions(self) -> list[str]:
        """The names of the functions at top level."""
        return [bound.target for bounds in self.module.bindings.values() for bound in bounds if bound.kind == "def"]

    def function(self, name: str) -> Scope | None:
        """The scope of a function or class, its own names bound. Functions inside functions are found on the way."""
        if name not in self.by_name:
            outer = name.rpartition(".")[0]
            if outer:
                self.function(outer)
        scope = self.by_name.get(name)
        if scope is None:
            return None
        if scope.kind == "function" and not scope.bindings:
            self._open(scope)
        return scope

    def _open(self, scope: Scope) -> None:
        node = scope.node
        self.size += self.hollow.fill(node)
        for parameter in parameters_of(node.args):
            scope.bind(parameter.arg, Bound("parameter", parameter.arg, parameter.annotation))
        scope.bind(" opened", Bound("value"))
        defaults = defaults_of(node.args)
        for parameter_name, default in defaults:
            scope.bind(parameter_name, Bound("default", value=default))
        self._bind_all(scope, node.body)

    def fill(self) -> None:
        """Parse the bodies of all functions that are known so far."""
        for scope in list(self.by_name.values()):
            if scope.kind == "function":
                self.size += self.hollow.fill(scope.node)

    def settled(self, name: str, scope: Scope) -> tuple[object] | None:
        """The constant that a name of the file is, seen from `scope`, in a 1-tuple, or None: one that is bound once,
        and that no function and no text that is run assigns."""
        bounds = self.module.bindings.get(name, ())
        if scope.home(name) is not self.module or len(bounds) != 1 or bounds[0].kind != "value":
            return None
        value, changed = bounds[0].value, self._assigned_inside
        if not isinstance(value, ast.Constant) or changed is None or name in changed:
            return None
        return constant(value, self.module)

    def settled_field(self, owner: ast.expr, name: str, scope: Scope) -> tuple[object] | None:
        """The constant that the attribute `name` of `owner` is, in a 1-tuple, or None: `owner` is a class of the file
        that has no base, or an object made of it, and nothing in the file assigns an attribute of that name."""
        made, home = followed(owner, scope)
        if isinstance(made, ast.Call) and not (made.args or made.keywords):
            made = made.func
        around = home.home(made.id) if isinstance(made, ast.Name) else None
        bounds = around.bindings[made.id] if around is not None and isinstance(made, ast.Name) else ()
        class_ = self.by_name.get(bounds[0].target) if len(bounds) == 1 and bounds[0].kind == "class" else None
        if class_ is None or class_.node.bases or class_.node.keywords or class_.node.decorator_list:
            return None
        values = class_.bindings.get(name, ())
        value = values[0].value if len(values) == 1 and values[0].kind == "value" else None
        if not isinstance(value, ast.Constant) or self._assigns_field(name):
            return None
        return constant(value, class_)

    def _assigns_field(self, name: str) -> bool:
        """Whether the text of the file may assign an attribute `name` of some object."""
        text = "".join(self.hollow.lines)
        rest = (
            text[start + len(name) : start + len(name) + _LINE]
            for start in places(name, text)
            if text[start - 1] == "."
        )
        return any(map(_GIVEN.match, rest)) or any(
            True for word in ("setattr", "vars", "exec", "__dict__") for _ in places(word, text)
        )

    @functools.cached_property
    def _declared_global(self) -> frozenset[str]:
        """The names that functions of the file say are the file's."""
        lines = (line for line in self.hollow.lines if "global" in line)
        return frozenset(
            name for line in lines for names in _GLOBAL.findall(line) for name in IDENTIFIER.findall(names)
        )

    @functools.cached_property
    def _assigned_inside(self) -> frozenset[str] | None:
        """The names of the file that its functions may assign; None where it runs text, which may assign any."""
        text = "".join(self.hollow.lines)
        if any(True for word in ("exec", "globals") for _ in places(word, text)):
            return None
        return self._declared_global

    def _bind_all(self, scope: Scope, body: list[ast.stmt]) -> None:
        without = overwritten(body, scope.is_of_others)
        for statement in statements_in(body):
            if statement in without:
                continue
            if isinstance(statement, ast.Return):
                self._bind_lambda(scope, statement.value)
            else:
                self._bind(scope, statement)
            if self._has_lambdas:
                for node in handed_lambdas(statement):
                    self._bind_lambda(scope, node)
                    self.handed.add(node)

    def _bind(self, scope: Scope, node: ast.stmt) -> None:
        if isinstance(node, FUNCTIONS):
            scope.bind(node.name, Bound("def", self._enter("function", scope, node)))
        elif isinstance(node, ast.ClassDef):
            name = self._enter("class", scope, node)
            scope.bind(node.name, Bound("class", name))
            self._bind_all(self.by_name[name], node.body)
            self.handed.update(factory_lambdas(node))
            if (made := factories(node)) is not None:
                self._bind(self.by_name[name], made)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for imported, origin in skeleton.imported(node):
                if imported == "*":
                    self.stars.append(origin)
                else:
                    scope.bind(imported, Bound("import", origin))
        elif isinstance(node, ast.Assign):
            self._bind_assigned(scope, node)
        elif isinstance(node, (ast.AnnAssign, ast.Assert, ast.If)):
            self._bind_told(scope, node)
        elif isinstance(node, (ast.AugAssign, ast.Expr)):
            self._bind_part(scope, node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind_loop(scope, node.target, node.iter)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._bind_target(scope, item.optional_vars, item.context_expr)

    def _bind_told(self, scope: Scope, node: ast.AnnAssign | ast.Assert | ast.If) -> None:
        """A value with an annotation, and what an assertion, or an error otherwise, says of one that a call made."""
        target: ast.expr
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind_target(scope, node.target, node.value)
            target, told = node.target, object_of(node.annotation)
        elif isinstance(node, ast.Assert):
            target, told = class_asserted(node.test)
        elif isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not) and is_error(node.body):
            target, told = class_asserted(node.test.operand)
        else:
            return
        bounds = scope.bindings.get(target.id) if isinstance(target, ast.Name) and told is not None else None
        if bounds and bounds[-1].kind == "value" and isinstance(bounds[-1].value, ast.Call):
            bounds[-1] = bounds[-1]._replace(told=told)

    def _bind_assigned(self, scope: Scope, node: ast.Assign) -> None:
        """A lambda that is given a name is a function of that name."""
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Lambda):
                function = defined_by(node.value, target.id)
                scope.bind(target.id, Bound("def", self._enter("function", scope, function)))
            else:
                for value in node.value.values if isinstance(node.value, ast.Dict) else [node.value]:
                    self._bind_lambda(scope, value)
                self._bind_target(scope, target, node.value)
        for owner, part in entered(node):
            if isinstance(owner, ast.Name) and owner.id in scope.bindings:
                scope.bind(owner.id, Bound("part", value=part))

    def _bind_lambda(self, scope: Scope, node: ast.expr | None) -> None:
        """A lambda without a name is a function too, which no name of the file can mean."""
        if isinstance(node, ast.Lambda) and node not in self.lambdas:
            self.lambdas[node] = self._enter("function", scope, defined_by(node, _NAMELESS))
            scope.bind(_NAMELESS, Bound("def", self.lambdas[node]))

    def _bind_part(self, scope: Scope, node: ast.AugAssign | ast.Expr) -> None:
        """`blocks += [Block()]` and `blocks.append(Block())`."""
        owner, part = added_to(node)
        if part is not None:
            if isinstance(owner, ast.Name) and owner.id in scope.bindings:
                scope.bind(owner.id, Bound("part", value=part))
        elif isinstance(node, ast.AugAssign):
            self._bind_target(scope, node.target, None)

    def _enter(self, kind: str, outer: Scope, node: Any) -> str:
        name = f"{outer.name}.{node.name}" if outer.name else node.name
        if name in self.by_name:
            again = self._again[name] = self._again.get(name, 0) + 1
            name = f"{name}'{again}" if again > 1 else f"{name}'"
        self.by_name[name] = Scope(kind, outer, node, name)
        return name

    def _bind_target(self, scope: Scope, target: ast.expr, value: ast.expr | None, place: int = -1) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, Bound("value", value=as_table(value) if value is not None else None, place=place))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values: Sequence[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                values = value.elts
            elif isinstance(value, (ast.Call, ast.Subscript)):
                # What a call stands for are all the things that it returns, those of a tuple too; an entry of a table
                # stands for all that is in it.
                values = [value] * len(target.elts)
            shifted = any(isinstance(element, ast.Starred) for element in target.elts)
            for at, (element, part) in enumerate(zip(target.elts, values, strict=True)):
                is_part = isinstance(part, ast.Call) and part is value and place < 0 and not shifted
                self._bind_target(scope, element, part, at if is_part else place)
        elif isinstance(target, ast.Starred):
            self._bind_target(scope, target.value, None)

    def _bind_loop(self, scope: Scope, target: ast.expr, over: ast.expr) -> None:
        """A loop over a tuple in sight binds each of its elements; over a name, what is in it; else nothing known."""
        if isinstance(target, ast.Name) and isinstance(over, (ast.Tuple, ast.List)):
            for element in over.elts:
                scope.bind(target.id, Bound("value", value=element))
        elif isinstance(target, ast.Name) and isinstance(over, (ast.Name, ast.Attribute)):
            scope.bind(target.id, Bound("element", value=over))
        elif goes_through_table(over):
            held = dict(looped_over(target, over))
            for element in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(element, ast.Name) and element.id in held:
                    scope.bind(element.id, Bound("element", value=held[element.id]))
                else:
                    self._bind_target(scope, element, None)
        elif isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.args:
            targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            if over.func.id == "enumerate" and len(targets) == 2:
                self._bind_target(scope, targets[0], None)
                self._bind_loop(scope, targets[1], over.args[0])
            elif over.func.id == "zip" and len(targets) == len(over.args):
                for element, part in zip(targets, over.args, strict=True):
                    self._bind_loop(scope, element, part)
            elif over.func.id in PASSED_ON:
                self._bind_loop(scope, target, over.args[0])
            else:
                self._bind_target(scope, target, None)
        else:
            self._bind_target(scope, target, None)


def asks_for_method(test: ast.expr, scope: Scope) -> bool:
    """Whether a test asks of an element that a loop goes through, or of what `getattr` takes of one, only if that is
    there: `hasattr(hook, name)`, `callable(method)`, `method is not None`."""
    match test:
        case ast.Call(func=ast.Name(id="hasattr" | "callable"), args=[asked, *_]):
            subject = asked
        case ast.Compare(left=asked, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            subject = asked
        case ast.Name():
            subject = test
        case _:
            return False
    subject = followed(subject, scope)[0]
    taken = isinstance(subject, ast.Call) and isinstance(subject.func, ast.Name) and subject.func.id == "getattr"
    if isinstance(subject, ast.Call) and taken and subject.args:
        subject = subject.args[0]
    elif not isinstance(test, ast.Call):
        return False  # an element itself may be None in one run and not in another
    bounds = scope.bindings.get(subject.id, ()) if isinstance(subject, ast.Name) and scope.kind == "function" else ()
    return bool(bounds) and all(bound.kind == "element" for bound in bounds)


def followed(node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
    """The one expression that a name stands for, and where; the name itself where there are several."""
    for _ in range(DEPTH):
        if not isinstance(node, ast.Name):
            break
        home = scope.home(node.id)
        bindings = home.bindings[node.id] if home is not None else []
        if home is None or len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].value is None:
            break
        node, scope = bindings[0].value, home
    return node, scope


def is_one_of_texts(node: ast.expr, scope: Scope) -> bool:
    """Whether `node` is a name, and each value that it may have a text that is written where it is bound."""
    home = scope.home(node.id) if isinstance(node, ast.Name) else None
    if home is None or not isinstance(node, ast.Name):
        return False
    left = [bound.value if bound.kind == "value" else None for bound in home.bindings[node.id]]
    while left and len(left) < NAMES:
        value = left.pop()
        if isinstance(value, ast.IfExp):
            left += [value.body, value.orelse]
        elif not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            return False
    return not left


def bound_above(node: ast.Name, bounds: Sequence[Bound], scope: Scope) -> list[Bound] | None:
    """Those of `bounds`, of a name of `scope`, that stand above where `node` reads it, and those of which nobody knows
    where; None where a loop around `node` comes back to it with one from below."""
    here = node.lineno, node.col_offset
    placed = [(one, _place_of(one)) for one in bounds]
    above = [one for one, place in placed if place is None or _end_of(place) <= here]
    below = [place.lineno for _, place in placed if place is not None and _end_of(place) > here]
    around = [loop for loop in scope.loops if loop[0] <= node.lineno <= loop[1]] if below else []
    return None if any(first <= row <= last for row in below for first, last in around) else above


def _place_of(bound: Bound) -> ast.expr | None:
    """The expression that tells where a name is given a value, or a container a part; None where nobody knows."""
    value = bound.value if bound.kind in ("value", "part") else None
    while value is not None and not hasattr(value, "lineno"):
        # `items.append(item)` adds a list that is not written down.
        match value:
            case ast.List(elts=[inner]) | ast.Starred(value=inner):
                value = inner
            case _:
                value = None
    return value


def _end_of(node: ast.expr) -> tuple[int, int]:
    """Where an expression ends: its row and column."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _bound_at(node: ast.Name, home: Scope) -> list[Bound]:
    """What binds a name of `home` where `node` reads it: at the top level of a file the last plain statement above."""
    bounds = home.bindings[node.id]
    if home.kind != "module" or len(bounds) == 1 or node.id in home.lent or not hasattr(node, "lineno"):
        return bounds
    if any(bound.value is None or id(bound.value) not in home.assigned for bound in bounds):
        return bounds
    above = [bound for bound in bounds if bound.value is not None and bound.value.lineno < node.lineno]
    return above[-1:] or bounds


def constant(node: ast.expr, scope: Scope, depth: int = DEPTH) -> tuple[Any] | None:
    """The constant that `node` evidently is, in a 1-tuple, or None."""
    if depth <= 0:
        return None
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, (str, int, float, bool, type(None))) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        value = constant(node.operand, scope, depth - 1)
        if value is None:
            return None
        if isinstance(node.op, ast.Not):
            return (not value[0],)
        return (-value[0],) if isinstance(value[0], (int, float)) else None
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [constant(element, scope, depth - 1) for element in node.elts[: _ITEMS + 1]]
        known = all(items) and len(items) <= _ITEMS
        return ([item[0] for item in items if item is not None],) if known else None
    if isinstance(node, ast.Name):
        home = scope.home(node.id)
        if home is None:
            return None
        found: tuple[Any] | None = None
        for bound in _bound_at(node, home) if home is scope else home.bindings[node.id]:
            value = (
                constant(bound.value, home, depth - 1) if bound.kind == "value" and bound.value is not None else None
            )
            if value is None or (found is not None and (found[0] != value[0] or type(found[0]) is not type(value[0]))):
                return None
            found = value
        return found
    device = device_in(node)
    value = constant(device, scope, depth - 1) if device is not None else None
    return value if value is not None and isinstance(value[0], str) else None
