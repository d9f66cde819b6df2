"""One file as `ast` sees it, its scopes, and what its names stand for."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.skeleton import SyntaxFault
from torchdet_lint.program.events import MODULE, Body, Kind, Names
from torchdet_lint.program.extract import Telling
from torchdet_lint.program.shapes import (
    FUNCTIONS,
    LITERALS,
    added_to,
    defaults_of,
    is_item,
    last_word,
    parameters_of,
    starts_empty,
    statements_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


DEPTH = 14
NAMES = 8
_LONGEST = 200
_DECORATED = re.compile(r"^[ \t]*@[\w.]+\.(?:command|callback|result_callback|group)\b", re.MULTILINE)
_REGISTERED = re.compile(r"\.(?:set_defaults|add_command)\b")
_FIRST_ARGUMENT = frozenset({"functools.partial", "copy.deepcopy", "copy.copy", "functools.lru_cache()"})
_CONTAINERS = frozenset(
    {"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict", "collections.OrderedDict"}
)
_MOVES = (".to", ".cuda", ".cpu", ".half", ".float", ".eval")
_PASSED_ON = frozenset({"enumerate", "iter", "list", "reversed", "sorted", "tqdm", "tuple"})
_INSTANTIATE = frozenset({"hydra.utils.instantiate", "hydra.utils.call"})
_HYDRA = ("config_path", "config_name")


class Hollow:
    """The text of a file, without the bodies of its functions until one is asked for: what runs a file seldom runs a
    tenth of it, and a body that is not parsed costs nothing."""

    def __init__(self, lines: Sequence[str], bodies: Sequence[int] = (), tree: ast.Module | None = None) -> None:
        """`bodies` are first and last rows, as `Skeleton` has them; `tree` is what is left without them, where
        that is known."""
        self.lines = lines
        self._bodies = dict(zip(bodies[::2], bodies[1::2], strict=True))
        self._tree = tree

    @functools.cached_property
    def registers(self) -> bool:
        """Whether a method that registers functions is called somewhere."""
        return _REGISTERED.search("".join(self.lines)) is not None

    @property
    def dispatches(self) -> bool:
        """Whether the name of a call may decide on a function somewhere."""
        return self.registers or _DECORATED.search("".join(self.lines)) is not None

    def tree(self) -> tuple[ast.Module, int]:
        """The file with `pass` for the bodies, and how many characters were parsed; empty where that is not Python."""
        if self._tree is not None:
            return self._tree, 0
        lines = list(self.lines)
        for first, last in self._bodies.items():
            row = lines[first - 1]
            lines[first - 1 : last] = [f"{row[: len(row) - len(row.lstrip())]}pass\n", *["\n"] * (last - first)]
        text = "".join(lines)
        tree = parsed(text)
        if tree is None and self._bodies:
            self._bodies = {}
            text = "".join(self.lines)
            tree = parsed(text)
        return tree or ast.Module([], []), len(text)

    def fill(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        """Put into `node` the body that was left out, and say how many characters that took."""
        first = node.body[0].lineno
        last = self._bodies.pop(first, 0)
        if not last:
            return 0
        text = "".join(self.lines[first - 1 : last])
        # An `async def` may hold all that a function may, and the rows stay those of the file.
        filled = parsed("\n" * (first - 2) + f"async def _():\n{text}")
        if filled is not None:
            node.body = filled.body[0].body  # type: ignore[attr-defined]
        return len(text)


def parsed(text: str) -> ast.Module | None:
    """The tree of `text`, or None where it is not Python to the running interpreter."""
    try:
        return skeleton.parsed(text)
    except SyntaxFault:
        return None


class Bound(NamedTuple):
    """One thing that binds a name: an import's target, a definition, or the expression of a value."""

    kind: str
    target: str = ""
    value: ast.expr | None = None


class Scope:
    """A module, class or function with the names that its statements bind."""

    __slots__ = ("bindings", "kind", "name", "node", "outer")

    def __init__(self, kind: str, outer: Scope | None, node: Any, name: str) -> None:
        self.kind = kind
        self.outer = outer
        self.node = node
        self.name = name
        self.bindings: dict[str, list[Bound]] = {}

    def bind(self, name: str, bound: Bound) -> None:
        """Record that `bound` binds `name` here."""
        self.bindings.setdefault(name, []).append(bound)

    def home(self, name: str) -> Scope | None:
        """The scope in which `name` is bound, seen from here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings and (scope.kind != "class" or scope is self):
                return scope
            scope = scope.outer
        return None

    @property
    def method(self) -> Scope | None:
        """The method that this function is, or stands in."""
        scope: Scope | None = self
        while scope is not None and not (
            scope.kind == "function" and scope.outer is not None and scope.outer.kind == "class"
        ):
            scope = scope.outer
        return scope


class File:
    """The parsed file and the look-ups in it."""

    def __init__(self, hollow: Hollow, wrappers: frozenset[str], canonical: Callable[[str], str]) -> None:
        self.wrappers = wrappers
        self.canonical = canonical
        self.stars: list[str] = []
        self.scopes: dict[str, Scope] = {}
        self._resolved: dict[tuple[ast.expr, Scope], Names] = {}
        self._elements: dict[tuple[ast.expr, Scope], Names] = {}
        self._registries: dict[str, Names] = {}
        self._self_values: dict[str, dict[str, list[tuple[ast.expr, Scope]]]] = {}
        self.hollow = hollow
        self.tree, self.size = hollow.tree()
        self.scope = Scope("module", None, self.tree, MODULE)
        self.scopes[MODULE] = self.scope
        self._bind_all(self.scope, self.tree.body)

    # ------------------------------------------------------------------ binding

    def _bind_all(self, scope: Scope, body: list[ast.stmt]) -> None:
        for statement in statements_in(body):
            self._bind(scope, statement)

    def _bind(self, scope: Scope, node: ast.stmt) -> None:
        if isinstance(node, FUNCTIONS):
            scope.bind(node.name, Bound("def", self._enter("function", scope, node)))
        elif isinstance(node, ast.ClassDef):
            name = self._enter("class", scope, node)
            scope.bind(node.name, Bound("class", name))
            self._bind_all(self.scopes[name], node.body)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for imported, origin in skeleton.imported(node):
                if imported == "*":
                    self.stars.append(origin)
                else:
                    scope.bind(imported, Bound("import", origin))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_target(scope, target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind_target(scope, node.target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.Expr)):
            self._bind_part(scope, node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind_loop(scope, node.target, node.iter)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._bind_target(scope, item.optional_vars, item.context_expr)

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
        while name in self.scopes:
            name += "'"
        self.scopes[name] = Scope(kind, outer, node, name)
        return name

    def _bind_target(self, scope: Scope, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, Bound("value", value=value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values: Sequence[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                values = value.elts
            elif isinstance(value, ast.Call):
                # What a call stands for are all the things that it returns, those of a tuple too.
                values = [value] * len(target.elts)
            for element, part in zip(target.elts, values, strict=True):
                self._bind_target(scope, element, part)
        elif isinstance(target, ast.Starred):
            self._bind_target(scope, target.value, None)

    def _bind_loop(self, scope: Scope, target: ast.expr, over: ast.expr) -> None:
        """A loop over a tuple in sight binds each of its elements; over a name, what is in it; else nothing known."""
        if isinstance(target, ast.Name) and isinstance(over, (ast.Tuple, ast.List)):
            for element in over.elts:
                scope.bind(target.id, Bound("value", value=element))
        elif isinstance(target, ast.Name) and isinstance(over, (ast.Name, ast.Attribute)):
            scope.bind(target.id, Bound("element", value=over))
        elif isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.args:
            targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            if over.func.id == "enumerate" and len(targets) == 2:
                self._bind_target(scope, targets[0], None)
                self._bind_loop(scope, targets[1], over.args[0])
            elif over.func.id == "zip" and len(targets) == len(over.args):
                for element, part in zip(targets, over.args, strict=True):
                    self._bind_loop(scope, element, part)
            elif over.func.id in _PASSED_ON:
                self._bind_loop(scope, target, over.args[0])
            else:
                self._bind_target(scope, target, None)
        else:
            self._bind_target(scope, target, None)

    def functions(self) -> list[str]:
        """The names of the functions at top level."""
        return [bound.target for bounds in self.scope.bindings.values() for bound in bounds if bound.kind == "def"]

    def function(self, name: str) -> Scope | None:
        """The scope of a function or class, its own names bound. Functions inside functions are found on the way."""
        if name not in self.scopes:
            outer = name.rpartition(".")[0]
            if outer:
                self.function(outer)
        scope = self.scopes.get(name)
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

    # ------------------------------------------------------------------ names

    def resolve(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names that `node` may stand for."""
        if depth <= 0:
            return ()
        key = (node, scope)
        known = self._resolved.get(key)
        if known is None:
            self._resolved[key] = ()
            found = self._resolve(node, scope, depth)
            known = tuple(dict.fromkeys(name for name in found if len(name) < _LONGEST))[:NAMES]
            self._resolved[key] = known
        return known

    def _resolve(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        if isinstance(node, ast.Name):
            return self._resolve_name(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            if node.attr == "__dict__":
                return [f"{name}.*" for name in self.resolve(node.value, scope, depth - 1)]
            return [self._joined(name, node.attr) for name in self.resolve(node.value, scope, depth - 1)]
        if isinstance(node, ast.Call):
            return self._resolve_call(node, scope, depth)
        if isinstance(node, ast.IfExp):
            return (*self.resolve(node.body, scope, depth - 1), *self.resolve(node.orelse, scope, depth - 1))
        if isinstance(node, ast.BoolOp):
            return [name for value in node.values for name in self.resolve(value, scope, depth - 1)]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.resolve(node.value, scope, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._resolve_subscript(node, scope, depth)
        if isinstance(node, (ast.Dict, ast.Tuple, ast.List)):
            elements = node.values if isinstance(node, ast.Dict) else node.elts
            return (
                [name for value in elements if value is not None for name in self.resolve(value, scope, depth - 1)]
                if len(elements) <= 4 * NAMES
                else ()
            )
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.resolve(node.elt, scope, depth - 1)
        if isinstance(node, ast.Starred):
            return self.elements(node.value, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = (node.left, node.right)
            if any(isinstance(side, LITERALS) for side in sides):
                return [name for side in sides for name in self.resolve(side, scope, depth - 1)]
        return ()

    def elements(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names of what is in the container `node`, as far as it is filled in sight."""
        key = (node, scope)
        known = self._elements.get(key)
        if known is None and depth > 0:
            self._elements[key] = ()
            known = self._elements[key] = tuple(dict.fromkeys(self._find_elements(node, scope, depth)))[:NAMES]
        return known or ()

    def _find_elements(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        if isinstance(node, LITERALS):
            return self.resolve(node, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [name for side in (node.left, node.right) for name in self.elements(side, scope, depth - 1)]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in _PASSED_ON and node.args:
                return self.elements(node.args[0], scope, depth - 1)
            if not _CONTAINERS.isdisjoint(self.resolve(node.func, scope, depth - 1)):
                return [name for arg in node.args for name in self.resolve(arg, scope, depth - 1)]
        values: Iterable[tuple[ast.expr, Scope]] = ()
        if isinstance(node, ast.Name):
            home = scope.home(node.id)
            bounds = home.bindings[node.id] if home is not None else []
            values = [
                (bound.value, home)
                for bound in bounds
                if home is not None and bound.value is not None and bound.kind in ("value", "part")
            ]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            method = scope.method
            if (
                method is not None
                and method.outer is not None
                and "$self" in self.resolve(node.value, scope, depth - 1)
            ):
                values = self._values_of(method.outer).get(node.attr, ())
        return [name for value, where in values for name in self.elements(value, where, depth - 1)]

    def _joined(self, name: str, attribute: str) -> str:
        if name.endswith("."):
            return name + attribute
        full = f"{name}.{attribute}"
        return full if name.startswith(("@", ".", "$")) else self.canonical(full)

    def _resolve_name(self, name: str, scope: Scope, depth: int) -> list[str]:
        home = scope.home(name)
        if home is None:
            if name in BUILTINS:
                return [f"builtins.{name}"]
            return [f"*.{name}"] if self.stars else []
        found: list[str] = []
        for bound in home.bindings[name]:
            if bound.kind == "import":
                found.append(bound.target if bound.target.startswith(".") else self.canonical(bound.target))
            elif bound.kind in ("def", "class"):
                found.append(f"@.{bound.target}")
            elif bound.kind == "parameter":
                found.extend(self._resolve_parameter(name, bound, home, scope, depth))
            elif bound.kind == "element" and bound.value is not None:
                found.extend(self.elements(bound.value, home, depth - 1))
            elif bound.value is not None and bound.kind in ("value", "default", "part"):
                outer = home if bound.kind != "default" else home.outer or home
                found.extend(self.resolve(bound.value, outer, depth - 1))
        return found

    def _resolve_parameter(self, name: str, bound: Bound, home: Scope, scope: Scope, depth: int) -> list[str]:
        first = self.first(home)
        if first and parameters_of(home.node.args)[0].arg == name:
            return ["$self" if first == "self" else "$cls"]
        found = [f"${name}"] if home is scope else []
        annotation = bound.value
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except (SyntaxError, ValueError):
                return found
        if isinstance(annotation, (ast.Name, ast.Attribute)) and home.outer is not None:
            found.extend(
                f"{kind}()"
                for kind in self.resolve(annotation, home.outer, depth - 1)
                if not kind.startswith("builtins.")
            )
        return found

    def first(self, scope: Scope) -> str:
        """What the first parameter of a function is: `self`, `class`, or nothing special."""
        if (
            scope.kind != "function"
            or scope.outer is None
            or scope.outer.kind != "class"
            or not parameters_of(scope.node.args)
        ):
            return ""
        for decorator in scope.node.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id == "staticmethod":
                return ""
            if isinstance(decorator, ast.Name) and decorator.id == "classmethod":
                return "class"
        return "class" if scope.node.name in ("__new__", "__init_subclass__") else "self"

    def _resolve_call(self, node: ast.Call, scope: Scope, depth: int) -> list[str]:
        found: list[str] = []
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            found.extend(self.registered(node.func.value, scope))
        for function in self.resolve(node.func, scope, depth - 1):
            if function == "builtins.super":
                found.append("$super")
            elif function == "builtins.getattr" and len(node.args) >= 2:
                attribute = self.constant(node.args[1], scope)
                last = str(attribute[0]) if attribute else "*"
                found.extend(self._joined(name, last) for name in self.resolve(node.args[0], scope, depth - 1))
            elif function in ("importlib.import_module", "builtins.__import__"):
                module = self.constant(node.args[0], scope) if node.args else None
                if module is not None and isinstance(module[0], str):
                    found.append(self.canonical(module[0]))
            elif function in _INSTANTIATE:
                paths = self.path(node.args[0], scope) if node.args else ()
                found.extend(f"%{path.partition('.')[2].replace('.', '/')}()" for path in paths)
            elif function in _FIRST_ARGUMENT or function in self.wrappers:
                found.extend(self._wrapped(node, scope, depth))
            elif function.endswith(_MOVES) and ")" in function and function[0] not in "@.$*":
                found.append(function[: function.rindex(".")])
            elif function not in ("builtins.globals", "builtins.vars") and function.count("()") < 4:
                found.append(f"{function}()")
                if function in _CONTAINERS:
                    found.extend(name for arg in node.args for name in self.resolve(arg, scope, depth - 1))
        return found

    def path(self, node: ast.expr, scope: Scope) -> Names:
        """`$cfg.model.net` of `cfg.model["net"]`, where `cfg` is a parameter."""
        parts: list[str] = []
        while True:
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                parts.append(str(node.slice.value))
            else:
                break
            node = node.value
        names = self.resolve(node, scope)
        return tuple(".".join([name, *reversed(parts)]) for name in names if name[0] == "$" and "." not in name)

    def _wrapped(self, node: ast.Call, scope: Scope, depth: int) -> Iterator[str]:
        """The names of what a wrapper is given."""
        given = node.args[:1] or [word.value for word in node.keywords if word.arg in ("module", "model")]
        for value in given:
            yield from self.resolve(value, scope, depth - 1)

    def _resolve_subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> list[str]:
        value = self.followed(node.value, scope)
        if isinstance(value[0], (ast.Dict, ast.List, ast.Tuple)) and not starts_empty(value[0]):
            elements = value[0].values if isinstance(value[0], ast.Dict) else value[0].elts
            if isinstance(value[0], ast.Dict) and isinstance(node.slice, ast.Constant):
                picked = [
                    v
                    for k, v in zip(value[0].keys, value[0].values, strict=True)
                    if isinstance(k, ast.Constant) and k.value == node.slice.value
                ]
                elements = picked or elements
            return [
                name
                for element in elements[: 4 * NAMES]
                if element is not None
                for name in self.resolve(element, value[1], depth - 1)
            ]
        found = self.resolve(node.value, scope, depth - 1)
        return [
            *self.registered(node.value, scope),
            *self.elements(node.value, scope, depth - 1),
            *(
                name
                for name in found
                if name.endswith(".*") or (name.rpartition(".")[2][:1].isupper() and not name.endswith(")"))
            ),
        ]

    def registered(self, node: ast.expr, scope: Scope) -> Names:
        """The names of what functions of this file put into the dictionary `node` of the module, which starts empty."""
        if not isinstance(node, ast.Name) or scope.home(node.id) is not self.scope:
            return ()
        bounds = self.scope.bindings[node.id]
        if not any(starts_empty(bound.value) for bound in bounds):
            return ()
        known = self._registries.get(node.id)
        if known is None:
            self._registries[node.id] = ()
            known = self._registries[node.id] = tuple(dict.fromkeys(self._find_registered(node.id)))[: 2 * NAMES]
        return known

    def _find_registered(self, registry: str) -> Iterator[str]:
        if not any(f"{registry}[" in line for line in self.hollow.lines):
            return
        self._fill_all()
        for name in self.functions():
            node = self.scopes[name].node
            given = {
                one.arg for inner in ast.walk(node) if isinstance(inner, FUNCTIONS) for one in parameters_of(inner.args)
            }
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign) and any(is_item(target, registry) for target in inner.targets):
                    if isinstance(inner.value, ast.Name) and inner.value.id in given:
                        yield from self._decorated_with(f"@.{name}")
                    else:
                        yield from self.resolve(inner.value, self.scope)
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign) and any(is_item(target, registry) for target in statement.targets):
                yield from self.resolve(statement.value, self.scope)

    def _decorated_with(self, decorator: str) -> Iterator[str]:
        for bounds in list(self.scope.bindings.values()):
            for bound in bounds:
                if bound.kind in ("def", "class"):
                    for one in self.scopes[bound.target].node.decorator_list:
                        if not {decorator, f"{decorator}()"}.isdisjoint(self.resolve(one, self.scope)):
                            yield f"@.{bound.target}"

    def followed(self, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
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

    def constant(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> tuple[Any] | None:
        """The constant that `node` evidently is, in a 1-tuple, or None."""
        if depth <= 0:
            return None
        if isinstance(node, ast.Constant):
            return (node.value,) if isinstance(node.value, (str, int, float, bool, type(None))) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            value = self.constant(node.operand, scope, depth - 1)
            if value is None:
                return None
            if isinstance(node.op, ast.Not):
                return (not value[0],)
            return (-value[0],) if isinstance(value[0], (int, float)) else None
        if isinstance(node, (ast.Tuple, ast.List)):
            items = [self.constant(element, scope, depth - 1) for element in node.elts[:NAMES]]
            return ([item[0] for item in items if item is not None],) if all(items) else None
        if isinstance(node, ast.Name):
            home = scope.home(node.id)
            if home is None:
                return None
            found: tuple[Any] | None = None
            for bound in home.bindings[node.id]:
                value = (
                    self.constant(bound.value, home, depth - 1)
                    if bound.kind == "value" and bound.value is not None
                    else None
                )
                if value is None or (
                    found is not None and (found[0] != value[0] or type(found[0]) is not type(value[0]))
                ):
                    return None
                found = value
            return found
        return None

    # ------------------------------------------------------------------ what is asked

    def stands_for(self, name: str) -> Names:
        """As `Summary.stands_for`."""
        if name not in self.scope.bindings:
            return ()
        return tuple(dict.fromkeys(self._resolve_name(name, self.scope, DEPTH)))[:NAMES]

    def kind(self, name: str) -> Kind | None:
        """As `Summary.kind`."""
        scope = self.function(name)
        if scope is None or scope.kind != "class":
            return None
        methods: dict[str, str] = {}
        properties: list[str] = []
        for key, bounds in scope.bindings.items():
            for bound in bounds:
                if bound.kind == "def":
                    methods[key] = bound.target
                    decorators = self.scopes[bound.target].node.decorator_list
                    if any(last_word(decorator) in ("property", "cached_property") for decorator in decorators):
                        properties.append(key)
        bases = [name for base in scope.node.bases for name in self.resolve(base, scope.outer or self.scope)]
        return Kind(tuple(bases), methods, tuple(properties))

    def attribute(self, kind: str, name: str) -> Names:
        """As `Summary.attribute`."""
        scope = self.function(kind)
        if scope is None or scope.kind != "class":
            return ()
        found = [full for value, where in self._values_of(scope).get(name, ()) for full in self.resolve(value, where)]
        for bound in scope.bindings.get(name, ()):
            if bound.kind == "value" and bound.value is not None:
                found.extend(self.resolve(bound.value, scope))
            elif bound.kind == "class":
                found.append(f"@.{bound.target}")
        return tuple(dict.fromkeys(found))[:NAMES]

    def _values_of(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        if scope.name not in self._self_values:
            self._self_values[scope.name] = self._assigned(scope)
        return self._self_values[scope.name]

    def _assigned(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Attribute -> the values that the methods of a class give to it through their first parameter."""
        found: dict[str, list[tuple[ast.expr, Scope]]] = {}
        for bounds in list(scope.bindings.values()):
            for bound in bounds:
                if bound.kind != "def":
                    continue
                method = self.function(bound.target)
                if method is None or self.first(method) != "self":
                    continue
                me = parameters_of(method.node.args)[0].arg
                for statement in statements_in(method.node.body):
                    if isinstance(statement, ast.Assign):
                        targets, value = statement.targets, statement.value
                    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                        targets, value = [statement.target], statement.value
                    elif isinstance(statement, (ast.AugAssign, ast.Expr)):
                        owner, part = added_to(statement)
                        if owner is None or part is None:
                            continue
                        targets, value = [owner], part
                    else:
                        continue
                    for target in targets:
                        if (
                            isinstance(target, ast.Attribute)
                            and isinstance(target.value, ast.Name)
                            and target.value.id == me
                        ):
                            found.setdefault(target.attr, []).append((value, method))
        return found

    def dispatch(self) -> dict[str, Names]:
        """As `Summary.dispatch`."""
        found: dict[str, list[str]] = {}
        registered = self.hollow.registers
        if registered:
            self._fill_all()
        for name in list(self.scopes):
            scope = self.scopes[name]
            if scope.kind != "function":
                continue
            for decorator in scope.node.decorator_list:
                call = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(call, ast.Attribute) and call.attr in ("command", "callback", "result_callback", "group"):
                    for key in self.resolve(call.value, scope.outer or self.scope):
                        found.setdefault(key, []).append(f"@.{name}")
        for node in ast.walk(self.tree) if registered else ():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("set_defaults", "add_command")
            ):
                for word in node.keywords:
                    if word.arg and isinstance(word.value, (ast.Name, ast.Attribute)):
                        found.setdefault(f".{word.arg}", []).extend(self.resolve(word.value, self.scope))
                if node.func.attr == "add_command" and node.args:
                    for key in self.resolve(node.func.value, self.scope):
                        found.setdefault(key, []).extend(self.resolve(node.args[0], self.scope))
        return {key: tuple(dict.fromkeys(value)) for key, value in sorted(found.items())}

    def configs(self) -> Iterator[tuple[str, str]]:
        """As `Summary.configs`."""
        for scope in list(self.scopes.values()):
            for decorator in getattr(scope.node, "decorator_list", ()):
                if not isinstance(decorator, ast.Call):
                    continue
                if "hydra.main" not in self.resolve(decorator.func, scope.outer or self.scope):
                    continue
                given = dict(zip(("config_path", "config_name"), decorator.args, strict=False))
                given |= {word.arg: word.value for word in decorator.keywords if word.arg}
                told = [self.constant(given[key], self.scope) if key in given else (".",) for key in _HYDRA]
                if "config_name" in given and all(one is not None and isinstance(one[0], str) for one in told):
                    yield str(told[0][0]), str(told[1][0])  # type: ignore[index]

    def _fill_all(self) -> None:
        for scope in list(self.scopes.values()):
            if scope.kind == "function":
                self.size += self.hollow.fill(scope.node)

    def body(self, name: str) -> Body | None:
        """As `Summary.body`."""
        scope = self.function(name)
        if scope is None:
            return None
        if scope.kind == "class":
            return None
        node = scope.node
        walk = Telling(self, scope)
        walk.block(node.body, ())
        if scope.kind == "module":
            return Body(1, tuple(walk.events), inner=tuple(self.functions()))
        parameters = parameters_of(node.args)
        uses = {
            event_name[1:].partition(".")[0].partition("(")[0]
            for event in walk.events
            for event_name in (
                *event.names,
                *(one for argument in (*event.positional, *event.keywords.values()) for one in argument.names),
            )
            if event_name.startswith("$")
        }
        returns: list[str] = []
        for value in walk.returns:
            returns.extend(self.resolve(value, scope))
        return Body(
            node.lineno,
            tuple(walk.events),
            tuple(dict.fromkeys(returns))[:NAMES],
            tuple(parameter.arg for parameter in parameters),
            tuple(sorted(uses - {"self", "cls", "super"})),
            self.first(scope),
            tuple(self.resolve(decorator, scope.outer or self.scope) for decorator in node.decorator_list),
            tuple(bound.target for bounds in scope.bindings.values() for bound in bounds if bound.kind == "def"),
        )
