"""What the functions of one file do, in order, as plain data: the whole-program half reads nothing else of a file.

A summary is made from `ast`, one function at a time and only when that function is reached: a program of a thousand
files costs what the functions it runs cost, a tenth of what libcst would ask. Names follow `names.py` (`torch.rand`,
`@.helper`, `.data.load`, `torch.Generator().seed`); what only the caller knows starts with `$`: `$self.step`,
`$super.fit`, `$model()` for the parameter `model` called. `%model/net()` is what Hydra makes of its configuration's
`model.net`.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from torchdet_lint.names import BUILTINS
from torchdet_lint.skeleton import split_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MODULE = ""
GUARD = 1_000_000

_DEPTH = 14
_NAMES = 8
_LONGEST = 200
_LONG = 20
_CAPACITY = 1_000_000
_CUDA_TEXT = re.compile(r"(?:cuda|gpu)(?::\d*)?|nccl")
_CUDA_OPTION = re.compile(r"-{1,2}(?:no[-_])?(?:use[-_])?(?:cuda|gpus?|device|gpu[-_]ids?|n[-_]?gpus?|accelerator)\b")
DEVICE_QUERIES = ("is_", "get_", "device_count", "manual_seed", "seed", "initial_seed", "empty_cache", "set_rng_state")
_DECORATED = re.compile(r"^[ \t]*@[\w.]+\.(?:command|callback|result_callback|group)\b", re.MULTILINE)
_REGISTERED = re.compile(r"\.(?:set_defaults|add_command)\b")
_FIRST_ARGUMENT = frozenset({"functools.partial", "copy.deepcopy", "copy.copy", "functools.lru_cache()"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LITERALS = (ast.List, ast.ListComp, ast.Tuple, ast.Set, ast.SetComp, ast.GeneratorExp)
_CONTAINERS = frozenset(
    {"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict", "collections.OrderedDict"}
)
_MOVES = (".to", ".cuda", ".cpu", ".half", ".float", ".eval")
_PASSED_ON = frozenset({"enumerate", "iter", "list", "reversed", "sorted", "tqdm", "tuple"})
_INSTANTIATE = frozenset({"hydra.utils.instantiate", "hydra.utils.call"})
_HYDRA = ("config_path", "config_name")
Names = tuple[str, ...]


class Argument(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """An argument: the names it stands for, and its value where that is a constant (`known`)."""

    names: Names = ()
    known: bool = False
    value: Any = None


class Event(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One thing that a body does.

    `kind`: `call` (of `names`), `import`, `set` (an attribute `names` is given `positional[0]`), `env` (the variable
    `names[0]` is set), `cuda` (a text speaks of the device: `names[0]` is `evident` or `possible`), `update`
    (`p.grad += …`). Rows count from 1, columns from 0 in bytes, as `ast` has them; `statement` is the row of the
    statement. `branch` holds the arms of `if`s around it: `n` and `-n` exclude each other. `deferred` events run
    later or in another order (a lambda), `locked` ones stand in a `with …lock…:`, `idle` ones in a statement whose draw
    changes no result, `trained` ones run only `if self.training`.
    """

    kind: str
    row: int
    column: int
    statement: int
    names: Names = ()
    positional: tuple[Argument, ...] = ()
    keywords: dict[str, Argument] = {}
    opaque: bool = False
    branch: tuple[int, ...] = ()
    deferred: bool = False
    locked: bool = False
    idle: bool = False
    trained: bool = False


class Body(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a function does. `uses` are the parameters that it calls or calls methods of; `first` is what its first
    parameter is: `self`, `class` or nothing. `inner` are the functions defined in it, by qualified name."""

    row: int
    events: tuple[Event, ...] = ()
    returns: Names = ()
    parameters: Names = ()
    uses: Names = ()
    first: str = ""
    decorators: tuple[Names, ...] = ()
    inner: Names = ()


class Kind(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A class: the names of its bases, its methods by name, which of them are properties, and its inner functions."""

    bases: Names = ()
    methods: dict[str, str] = {}
    properties: Names = ()


class Memo(msgspec.Struct, array_like=True):
    """All that was asked of one file so far: it is what the cache keeps of it."""

    bodies: dict[str, Body | None] = {}
    kinds: dict[str, Kind | None] = {}
    globals: dict[str, Names] = {}
    attributes: dict[str, Names] = {}
    stars: Names | None = None
    dispatch: dict[str, Names] | None = None
    configs: tuple[tuple[str, str], ...] | None = None


class Hollow:
    """The text of a file, without the bodies of its functions until one is asked for: what runs a file seldom runs a
    tenth of it, and a body that is not parsed costs nothing."""

    def __init__(self, text: str, bodies: Sequence[int] = ()) -> None:
        """`bodies` are first and last rows, as `skeleton.bodies` gives them."""
        self.lines = split_lines(text)
        self._bodies = dict(zip(bodies[::2], bodies[1::2], strict=True))

    def tree(self) -> tuple[ast.Module, int]:
        """The file with `pass` for the bodies, and how many characters were parsed; empty where that is not Python."""
        lines = list(self.lines)
        for first, last in self._bodies.items():
            row = lines[first - 1]
            lines[first - 1 : last] = [f"{row[: len(row) - len(row.lstrip())]}pass\n", *["\n"] * (last - first)]
        text = "".join(lines)
        tree = _parsed(text)
        if tree is None and self._bodies:
            self._bodies = {}
            text = "".join(self.lines)
            tree = _parsed(text)
        return tree or ast.Module([], []), len(text)

    def fill(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        """Put into `node` the body that was left out, and say how many characters that took."""
        first = node.body[0].lineno
        last = self._bodies.pop(first, 0)
        if not last:
            return 0
        text = "".join(self.lines[first - 1 : last])
        # An `async def` may hold all that a function may, and the rows stay those of the file.
        filled = _parsed("\n" * (first - 2) + f"async def _():\n{text}")
        if filled is not None:
            node.body = filled.body[0].body  # type: ignore[attr-defined]
        return len(text)


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class Shelf:
    """The syntax trees that are held: the ones used last, of files of so much text (a tree is forty times its text)."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        """`capacity` is in characters."""
        self._capacity = capacity
        self._held: dict[Summary, int] = {}
        self._total = 0

    def hold(self, summary: Summary, size: int) -> None:
        """`summary` is used, `size` characters of its file are parsed; what was used first is let go to make room."""
        self._total += size - self._held.pop(summary, 0)
        self._held[summary] = size
        while self._total > self._capacity and len(self._held) > 1:
            oldest = next(iter(self._held))
            self._total -= self._held.pop(oldest)
            oldest.close()


class Summary:
    """One file, summarised on demand. The text is parsed when something is asked that `memo` does not know."""

    def __init__(
        self,
        text: Callable[[], Hollow],
        wrappers: frozenset[str],
        canonical: Callable[[str], str],
        memo: Memo | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        """`wrappers` are the callables that return what they are given; `canonical` is `Library.canonical`."""
        self.memo = memo or Memo({}, {}, {}, {})
        self.grown = False
        self._text = text
        self._wrappers = wrappers
        self._canonical = canonical
        self._shelf = shelf or Shelf()
        self._opened: _File | None = None

    @property
    def _file(self) -> _File:
        self.grown = True
        opened = self._opened
        if opened is None:
            opened = self._opened = _File(self._text(), self._wrappers, self._canonical)
        self._shelf.hold(self, opened.size)
        return opened

    def close(self) -> None:
        """Let the syntax tree go; what was asked so far stays."""
        self._opened = None

    def body(self, name: str) -> Body | None:
        """The function with the qualified name `name` (`MODULE`: the file itself), or None."""
        known = self.memo.bodies
        if name not in known:
            known[name] = self._file.body(name)
        return known[name]

    def kind(self, name: str) -> Kind | None:
        """The class with the qualified name `name`, or None."""
        known = self.memo.kinds
        if name not in known:
            known[name] = self._file.kind(name)
        return known[name]

    def stands_for(self, name: str) -> Names:
        """The names that the global `name` stands for: `@.name` for a definition; none where it has none in sight."""
        known = self.memo.globals
        if name not in known:
            known[name] = self._file.stands_for(name)
        return known[name]

    def attribute(self, kind: str, name: str) -> Names:
        """The names of what is assigned to the attribute `name` in the body and methods of the class `kind`."""
        key = f"{kind}.{name}"
        known = self.memo.attributes
        if key not in known:
            known[key] = self._file.attribute(kind, name)
        return known[key]

    @property
    def stars(self) -> Names:
        """The modules of `from … import *`."""
        if self.memo.stars is None:
            self.memo.stars = tuple(self._file.stars)
        return self.memo.stars

    @property
    def dispatch(self) -> dict[str, Names]:
        """Functions that the name of a call decides: `@app.command()` by the names of `app`, `set_defaults(func=run)`
        by `.func`."""
        if self.memo.dispatch is None:
            self.memo.dispatch = self._file.dispatch()
        return self.memo.dispatch

    @property
    def configs(self) -> tuple[tuple[str, str], ...]:
        """Folder and name of the configurations that `hydra.main` is told."""
        if self.memo.configs is None:
            self.memo.configs = tuple(self._file.configs())
        return self.memo.configs


class _Bound(NamedTuple):
    """One thing that binds a name: an import's target, a definition, or the expression of a value."""

    kind: str
    target: str = ""
    value: ast.expr | None = None


class _Scope:
    """A module, class or function with the names that its statements bind."""

    __slots__ = ("bindings", "kind", "name", "node", "outer")

    def __init__(self, kind: str, outer: _Scope | None, node: Any, name: str) -> None:
        self.kind = kind
        self.outer = outer
        self.node = node
        self.name = name
        self.bindings: dict[str, list[_Bound]] = {}

    def bind(self, name: str, bound: _Bound) -> None:
        self.bindings.setdefault(name, []).append(bound)

    def home(self, name: str) -> _Scope | None:
        """The scope in which `name` is bound, seen from here."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.bindings and (scope.kind != "class" or scope is self):
                return scope
            scope = scope.outer
        return None

    @property
    def method(self) -> _Scope | None:
        """The method that this function is, or stands in."""
        scope: _Scope | None = self
        while scope is not None and not (
            scope.kind == "function" and scope.outer is not None and scope.outer.kind == "class"
        ):
            scope = scope.outer
        return scope


class _File:
    """The parsed file and the look-ups in it."""

    def __init__(self, hollow: Hollow, wrappers: frozenset[str], canonical: Callable[[str], str]) -> None:
        self.wrappers = wrappers
        self.canonical = canonical
        self.stars: list[str] = []
        self.scopes: dict[str, _Scope] = {}
        self._resolved: dict[tuple[ast.expr, _Scope], Names] = {}
        self._elements: dict[tuple[ast.expr, _Scope], Names] = {}
        self._registries: dict[str, Names] = {}
        self._self_values: dict[str, dict[str, list[tuple[ast.expr, _Scope]]]] = {}
        self.hollow = hollow
        self.tree, self.size = hollow.tree()
        self.scope = _Scope("module", None, self.tree, MODULE)
        self.scopes[MODULE] = self.scope
        self._bind_all(self.scope, self.tree.body)

    # ------------------------------------------------------------------ binding

    def _bind_all(self, scope: _Scope, body: list[ast.stmt]) -> None:
        for statement in _statements(body):
            self._bind(scope, statement)

    def _bind(self, scope: _Scope, node: ast.stmt) -> None:
        if isinstance(node, _FUNCTIONS):
            scope.bind(node.name, _Bound("def", self._enter("function", scope, node)))
        elif isinstance(node, ast.ClassDef):
            name = self._enter("class", scope, node)
            scope.bind(node.name, _Bound("class", name))
            self._bind_all(self.scopes[name], node.body)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                scope.bind(alias.asname or root, _Bound("import", alias.name if alias.asname else root))
        elif isinstance(node, ast.ImportFrom):
            self._bind_from(scope, node)
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

    def _bind_part(self, scope: _Scope, node: ast.AugAssign | ast.Expr) -> None:
        """`blocks += [Block()]` and `blocks.append(Block())`."""
        owner, part = _added(node)
        if part is not None:
            if isinstance(owner, ast.Name) and owner.id in scope.bindings:
                scope.bind(owner.id, _Bound("part", value=part))
        elif isinstance(node, ast.AugAssign):
            self._bind_target(scope, node.target, None)

    def _enter(self, kind: str, outer: _Scope, node: Any) -> str:
        name = f"{outer.name}.{node.name}" if outer.name else node.name
        while name in self.scopes:
            name += "'"
        self.scopes[name] = _Scope(kind, outer, node, name)
        return name

    def _bind_from(self, scope: _Scope, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        joint = "" if module.endswith(".") or not module else "."
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                scope.bind(alias.asname or alias.name, _Bound("import", f"{module}{joint}{alias.name}"))

    def _bind_target(self, scope: _Scope, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, _Bound("value", value=value))
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

    def _bind_loop(self, scope: _Scope, target: ast.expr, over: ast.expr) -> None:
        """A loop over a tuple in sight binds each of its elements; over a name, what is in it; else nothing known."""
        if isinstance(target, ast.Name) and isinstance(over, (ast.Tuple, ast.List)):
            for element in over.elts:
                scope.bind(target.id, _Bound("value", value=element))
        elif isinstance(target, ast.Name) and isinstance(over, (ast.Name, ast.Attribute)):
            scope.bind(target.id, _Bound("element", value=over))
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

    def function(self, name: str) -> _Scope | None:
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

    def _open(self, scope: _Scope) -> None:
        node = scope.node
        self.size += self.hollow.fill(node)
        for parameter in _parameters(node.args):
            scope.bind(parameter.arg, _Bound("parameter", parameter.arg, parameter.annotation))
        scope.bind(" opened", _Bound("value"))
        defaults = _defaults(node.args)
        for parameter_name, default in defaults:
            scope.bind(parameter_name, _Bound("default", value=default))
        self._bind_all(scope, node.body)

    # ------------------------------------------------------------------ names

    def resolve(self, node: ast.expr, scope: _Scope, depth: int = _DEPTH) -> Names:
        """The names that `node` may stand for."""
        if depth <= 0:
            return ()
        key = (node, scope)
        known = self._resolved.get(key)
        if known is None:
            self._resolved[key] = ()
            found = self._resolve(node, scope, depth)
            known = tuple(dict.fromkeys(name for name in found if len(name) < _LONGEST))[:_NAMES]
            self._resolved[key] = known
        return known

    def _resolve(self, node: ast.expr, scope: _Scope, depth: int) -> Iterable[str]:
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
                if len(elements) <= 4 * _NAMES
                else ()
            )
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.resolve(node.elt, scope, depth - 1)
        if isinstance(node, ast.Starred):
            return self.elements(node.value, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = (node.left, node.right)
            if any(isinstance(side, _LITERALS) for side in sides):
                return [name for side in sides for name in self.resolve(side, scope, depth - 1)]
        return ()

    def elements(self, node: ast.expr, scope: _Scope, depth: int = _DEPTH) -> Names:
        """The names of what is in the container `node`, as far as it is filled in sight."""
        key = (node, scope)
        known = self._elements.get(key)
        if known is None and depth > 0:
            self._elements[key] = ()
            known = self._elements[key] = tuple(dict.fromkeys(self._find_elements(node, scope, depth)))[:_NAMES]
        return known or ()

    def _find_elements(self, node: ast.expr, scope: _Scope, depth: int) -> Iterable[str]:
        if isinstance(node, _LITERALS):
            return self.resolve(node, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [name for side in (node.left, node.right) for name in self.elements(side, scope, depth - 1)]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in _PASSED_ON and node.args:
                return self.elements(node.args[0], scope, depth - 1)
            if not _CONTAINERS.isdisjoint(self.resolve(node.func, scope, depth - 1)):
                return [name for arg in node.args for name in self.resolve(arg, scope, depth - 1)]
        values: Iterable[tuple[ast.expr, _Scope]] = ()
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

    def _resolve_name(self, name: str, scope: _Scope, depth: int) -> list[str]:
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

    def _resolve_parameter(self, name: str, bound: _Bound, home: _Scope, scope: _Scope, depth: int) -> list[str]:
        first = self.first(home)
        if first and _parameters(home.node.args)[0].arg == name:
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

    def first(self, scope: _Scope) -> str:
        """What the first parameter of a function is: `self`, `class`, or nothing special."""
        if (
            scope.kind != "function"
            or scope.outer is None
            or scope.outer.kind != "class"
            or not _parameters(scope.node.args)
        ):
            return ""
        for decorator in scope.node.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id == "staticmethod":
                return ""
            if isinstance(decorator, ast.Name) and decorator.id == "classmethod":
                return "class"
        return "class" if scope.node.name in ("__new__", "__init_subclass__") else "self"

    def _resolve_call(self, node: ast.Call, scope: _Scope, depth: int) -> list[str]:
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

    def path(self, node: ast.expr, scope: _Scope) -> Names:
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

    def _wrapped(self, node: ast.Call, scope: _Scope, depth: int) -> Iterator[str]:
        """The names of what a wrapper is given."""
        given = node.args[:1] or [word.value for word in node.keywords if word.arg in ("module", "model")]
        for value in given:
            yield from self.resolve(value, scope, depth - 1)

    def _resolve_subscript(self, node: ast.Subscript, scope: _Scope, depth: int) -> list[str]:
        value = self.followed(node.value, scope)
        if isinstance(value[0], (ast.Dict, ast.List, ast.Tuple)) and not _starts_empty(value[0]):
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
                for element in elements[: 4 * _NAMES]
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

    def registered(self, node: ast.expr, scope: _Scope) -> Names:
        """The names of what functions of this file put into the dictionary `node` of the module, which starts empty."""
        if not isinstance(node, ast.Name) or scope.home(node.id) is not self.scope:
            return ()
        bounds = self.scope.bindings[node.id]
        if not any(_starts_empty(bound.value) for bound in bounds):
            return ()
        known = self._registries.get(node.id)
        if known is None:
            self._registries[node.id] = ()
            known = self._registries[node.id] = tuple(dict.fromkeys(self._find_registered(node.id)))[: 2 * _NAMES]
        return known

    def _find_registered(self, registry: str) -> Iterator[str]:
        if not any(f"{registry}[" in line for line in self.hollow.lines):
            return
        self._fill_all()
        for name in self.functions():
            node = self.scopes[name].node
            given = {
                one.arg for inner in ast.walk(node) if isinstance(inner, _FUNCTIONS) for one in _parameters(inner.args)
            }
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign) and any(_is_item(target, registry) for target in inner.targets):
                    if isinstance(inner.value, ast.Name) and inner.value.id in given:
                        yield from self._decorated_with(f"@.{name}")
                    else:
                        yield from self.resolve(inner.value, self.scope)
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign) and any(_is_item(target, registry) for target in statement.targets):
                yield from self.resolve(statement.value, self.scope)

    def _decorated_with(self, decorator: str) -> Iterator[str]:
        for bounds in list(self.scope.bindings.values()):
            for bound in bounds:
                if bound.kind in ("def", "class"):
                    for one in self.scopes[bound.target].node.decorator_list:
                        if not {decorator, f"{decorator}()"}.isdisjoint(self.resolve(one, self.scope)):
                            yield f"@.{bound.target}"

    def followed(self, node: ast.expr, scope: _Scope) -> tuple[ast.expr, _Scope]:
        """The one expression that a name stands for, and where; the name itself where there are several."""
        for _ in range(_DEPTH):
            if not isinstance(node, ast.Name):
                break
            home = scope.home(node.id)
            bindings = home.bindings[node.id] if home is not None else []
            if home is None or len(bindings) != 1 or bindings[0].kind != "value" or bindings[0].value is None:
                break
            node, scope = bindings[0].value, home
        return node, scope

    def constant(self, node: ast.expr, scope: _Scope, depth: int = _DEPTH) -> tuple[Any] | None:
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
            items = [self.constant(element, scope, depth - 1) for element in node.elts[:_NAMES]]
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
        if name not in self.scope.bindings:
            return ()
        return tuple(dict.fromkeys(self._resolve_name(name, self.scope, _DEPTH)))[:_NAMES]

    def kind(self, name: str) -> Kind | None:
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
                    if any(_last(decorator) in ("property", "cached_property") for decorator in decorators):
                        properties.append(key)
        bases = [name for base in scope.node.bases for name in self.resolve(base, scope.outer or self.scope)]
        return Kind(tuple(bases), methods, tuple(properties))

    def attribute(self, kind: str, name: str) -> Names:
        scope = self.function(kind)
        if scope is None or scope.kind != "class":
            return ()
        found = [full for value, where in self._values_of(scope).get(name, ()) for full in self.resolve(value, where)]
        for bound in scope.bindings.get(name, ()):
            if bound.kind == "value" and bound.value is not None:
                found.extend(self.resolve(bound.value, scope))
            elif bound.kind == "class":
                found.append(f"@.{bound.target}")
        return tuple(dict.fromkeys(found))[:_NAMES]

    def _values_of(self, scope: _Scope) -> dict[str, list[tuple[ast.expr, _Scope]]]:
        if scope.name not in self._self_values:
            self._self_values[scope.name] = self._assigned(scope)
        return self._self_values[scope.name]

    def _assigned(self, scope: _Scope) -> dict[str, list[tuple[ast.expr, _Scope]]]:
        """Attribute -> the values that the methods of a class give to it through their first parameter."""
        found: dict[str, list[tuple[ast.expr, _Scope]]] = {}
        for bounds in list(scope.bindings.values()):
            for bound in bounds:
                if bound.kind != "def":
                    continue
                method = self.function(bound.target)
                if method is None or self.first(method) != "self":
                    continue
                me = _parameters(method.node.args)[0].arg
                for statement in _statements(method.node.body):
                    if isinstance(statement, ast.Assign):
                        targets, value = statement.targets, statement.value
                    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                        targets, value = [statement.target], statement.value
                    elif isinstance(statement, (ast.AugAssign, ast.Expr)):
                        owner, part = _added(statement)
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
        found: dict[str, list[str]] = {}
        text = "".join(self.hollow.lines)
        registered = _REGISTERED.search(text) is not None
        if not registered and _DECORATED.search(text) is None:
            return {}
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
        scope = self.function(name)
        if scope is None:
            return None
        if scope.kind == "class":
            return None
        node = scope.node
        walk = _Events(self, scope)
        walk.block(node.body, ())
        if scope.kind == "module":
            return Body(1, tuple(walk.events), inner=tuple(self.functions()))
        parameters = _parameters(node.args)
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
            tuple(dict.fromkeys(returns))[:_NAMES],
            tuple(parameter.arg for parameter in parameters),
            tuple(sorted(uses - {"self", "cls", "super"})),
            self.first(scope),
            tuple(self.resolve(decorator, scope.outer or self.scope) for decorator in node.decorator_list),
            tuple(bound.target for bounds in scope.bindings.values() for bound in bounds if bound.kind == "def"),
        )


class _Events:
    """The events of one body in the order in which they run."""

    def __init__(self, file: _File, scope: _Scope) -> None:
        self.file = file
        self.scope = scope
        self.events: list[Event] = []
        self.returns: list[ast.expr] = []
        self.arms = 0
        self.statement = 1
        self.locks = 0
        self.idle = False
        self.muted = False
        self.trained = 0
        self.picks = _PICKS.search(scope.name.rpartition(".")[2]) is not None

    # Statements nest at most a hundred deep, which is the parser's own limit; expressions are walked with a stack.

    def block(self, body: list[ast.stmt], branch: tuple[int, ...]) -> None:
        for node in body:
            self.statement = node.lineno
            after = self.one(node, branch)
            if after:
                branch = (*branch, after)

    def one(self, node: ast.stmt, branch: tuple[int, ...]) -> int:
        """Record one statement; the arm in which the rest of the block stands, or 0."""
        if isinstance(node, ast.If):
            return self.conditional(node, branch)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.expression(node.iter, branch)
            self.iteration(node.iter, branch)
            self.block(node.body, branch)
            self.block(node.orelse, branch)
        elif isinstance(node, ast.While):
            self.expression(node.test, branch)
            self.block(node.body, branch)
            self.block(node.orelse, branch)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self.context(node, branch)
        elif isinstance(node, ast.Match):
            self.expression(node.subject, branch)
            for case in node.cases:
                self.block(case.body, branch)
        elif isinstance(node, _TRY):
            self.block(node.body, branch)
            for handler in node.handlers:
                self.block(handler.body, branch)
            self.block(node.orelse, branch)
            self.block(node.finalbody, branch)
        else:
            self.flat(node, branch)
        return 0

    def flat(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        """Record a definition, an import or a simple statement."""
        if isinstance(node, _FUNCTIONS):
            self.muted = True
            for decorator in node.decorator_list:
                self.expression(decorator, branch)
            self.muted = False
            for _, default in _defaults(node.args):
                self.expression(default, branch)
        elif isinstance(node, ast.ClassDef):
            for expression in (*node.decorator_list, *node.bases):
                self.expression(expression, branch)
            self.block([statement for statement in node.body if not isinstance(statement, _FUNCTIONS)], branch)
        elif isinstance(node, ast.Import):
            self.add("import", node, branch, tuple(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            joint = "" if module.endswith(".") else "."
            names = [f"{module}{joint}{alias.name}" for alias in node.names if alias.name != "*"]
            self.add("import", node, branch, (module, *names))
        else:
            self.simple(node, branch)

    def conditional(self, node: ast.If, branch: tuple[int, ...]) -> int:
        if _is_type_checking(node.test):
            self.block(node.orelse, branch)
            return 0
        trained = _asks_for_training(node.test)
        self.trained += trained
        self.expression(node.test, branch)
        if self.scope.kind == "module" and is_guard(node.test):
            self.block(node.body, (*branch, GUARD))
            self.block(node.orelse, (*branch, -GUARD))
            return 0
        self.arms += 1
        arm = self.arms
        self.block(node.body, (*branch, arm))
        self.trained -= trained
        self.block(node.orelse, (*branch, -arm))
        if _leaves(node.body):
            return -arm
        return arm if node.orelse and _leaves(node.orelse) else 0

    def context(self, node: ast.With | ast.AsyncWith, branch: tuple[int, ...]) -> None:
        locked = any("lock" in ast.unparse(item.context_expr).lower() for item in node.items)
        for item in node.items:
            self.expression(item.context_expr, branch)
            names = self.file.resolve(item.context_expr, self.scope)
            mine = tuple(f"{name}.__enter__" for name in names if name.startswith(("@", "$", ".")))
            if mine:
                self.add("call", item.context_expr, branch, mine)
        self.locks += locked
        self.block(node.body, branch)
        self.locks -= locked

    def iteration(self, over: ast.expr, branch: tuple[int, ...]) -> None:
        if isinstance(over, _LITERALS):
            return
        # A container stands for what is in it, and that is not iterated.
        inside = self.file.elements(over, self.scope)
        mine = tuple(
            f"{name}.{method}"
            for name in self.file.resolve(over, self.scope)
            if name.startswith(("@", "$", ".")) and name not in inside
            for method in ("__iter__", "__next__", "__getitem__")
        )
        if mine:
            self.add("call", over, branch, mine)

    def simple(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        last = min(node.end_lineno or node.lineno, node.lineno + _LONG)
        self.idle = self.picks or bool(_IDLE.search("".join(self.file.hollow.lines[node.lineno - 1 : last])))
        self.effects(node, branch)
        self.idle = False

    def effects(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        value = getattr(node, "value", None)
        # A lambda that is returned does not run here.
        if isinstance(value, ast.expr) and not (isinstance(node, ast.Return) and isinstance(value, ast.Lambda)):
            self.expression(value, branch)
        if isinstance(node, ast.Return) and node.value is not None:
            self.returns.append(node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.assignment(target, node.value, branch)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assignment(node.target, node.value, branch)
        elif isinstance(node, ast.AugAssign):
            if _last(node.target) in ("grad", "data") or (
                isinstance(node.target, ast.Attribute) and node.target.attr == "grad"
            ):
                self.add("update", node, branch, ("grad",))
        elif isinstance(node, (ast.Assert, ast.Raise, ast.Delete)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, branch)

    def assignment(self, target: ast.expr, value: ast.expr, branch: tuple[int, ...]) -> None:
        if isinstance(target, ast.Attribute):
            names = tuple(name for name in self.file.resolve(target, self.scope) if not name.startswith("$"))
            if names:
                self.add("set", target, branch, names, (self.argument(value),))
        elif isinstance(target, ast.Subscript):
            self.expression(target.value, branch)
            if "os.environ" in self.file.resolve(target.value, self.scope):
                key = self.file.constant(target.slice, self.scope)
                if key is not None and isinstance(key[0], str):
                    self.add("env", target, branch, (key[0],))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self.assignment(element, element, branch)

    def expression(self, root: ast.expr, branch: tuple[int, ...]) -> None:
        """Record the calls of an expression, arguments before the call that takes them."""
        stack: list[tuple[ast.AST, bool, bool]] = [(root, False, False)]
        while stack:
            node, seen, deferred = stack.pop()
            if seen:
                assert isinstance(node, ast.Call)
                self.call(node, branch, deferred)
                continue
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str):
                    self.text(node, branch)
                continue
            if isinstance(node, ast.Call):
                stack.append((node, True, deferred))
                parts: list[ast.AST] = [node.func, *node.args, *(word.value for word in node.keywords)]
                parts = [] if self.asks_for_devices(node.func) else parts
            elif isinstance(node, ast.Lambda):
                deferred = True
                parts = [node.body]
            elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                parts = [part for generator in node.generators for part in (generator.iter, *generator.ifs)]
                parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            elif isinstance(node, ast.Name) or self.asks_for_devices(node):
                continue
            elif isinstance(node, ast.Attribute):
                if node.attr == "cuda" and "torch.cuda" in self.file.resolve(node, self.scope):
                    self.add("cuda", node, branch, ("evident",))
                parts = [node.value]
            elif isinstance(node, ast.Subscript):
                names = self.file.resolve(node.value, self.scope)
                mine = tuple(
                    f"{name}.__getitem__" for name in names if name.startswith(("@", "$")) and name.endswith(")")
                )
                if mine:
                    self.add("call", node, branch, mine, deferred=deferred)
                parts = [node.value, node.slice]
            else:
                parts = list(ast.iter_child_nodes(node))
            stack.extend((part, False, deferred) for part in reversed(parts))

    def asks_for_devices(self, node: ast.AST) -> bool:
        """Whether `node` is a function of `torch.cuda` that runs nothing there: `is_available`, `device_count`."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr.startswith(DEVICE_QUERIES)
            and not {"torch.cuda", "torch.accelerator"}.isdisjoint(self.file.resolve(node.value, self.scope))
        )

    def text(self, node: ast.Constant, branch: tuple[int, ...]) -> None:
        value = node.value
        if not isinstance(value, str) or len(value) > 40 or self.muted:
            return
        if _CUDA_TEXT.fullmatch(value):
            self.add("cuda", node, branch, ("evident",))
        elif _CUDA_OPTION.match(value):
            self.add("cuda", node, branch, ("possible",))

    def argument(self, node: ast.expr) -> Argument:
        constant = self.file.constant(node, self.scope)
        if constant is not None:
            return Argument((), True, constant[0])
        if isinstance(node, (ast.BoolOp, ast.IfExp)) and _asks_for_training(
            node.test if isinstance(node, ast.IfExp) else node
        ):
            return Argument(("?.training",))
        names = self.file.resolve(node, self.scope)
        last = _last(node) if not names else ""
        return Argument(names or ((f"?.{last}",) if last else ()))

    def call(self, node: ast.Call, branch: tuple[int, ...], deferred: bool) -> None:
        function = node.func
        names = self.file.resolve(function, self.scope)
        if not names:
            tail = _tail(function)
            if not tail:
                return
            names = (f"?.{tail}",)
        opaque = any(isinstance(arg, ast.Starred) for arg in node.args)
        if names[0] in ("os.environ.setdefault", "os.putenv", "os.environ.update") and self.environment(
            names[0], node, branch
        ):
            return
        positional = tuple(self.argument(arg) for arg in node.args if not isinstance(arg, ast.Starred))
        if names[0] in _INSTANTIATE and node.args:
            positional = (Argument(self.file.path(node.args[0], self.scope)),)
        keywords = {word.arg: self.argument(word.value) for word in node.keywords if word.arg is not None}
        for word in node.keywords:
            if word.arg is None:
                unpacked, whole = self.unpacked(word.value)
                keywords = unpacked | keywords
                opaque = opaque or not whole
                if not whole and (paths := self.file.path(word.value, self.scope)):
                    keywords["**"] = Argument(paths)
        self.add("call", node, branch, names, positional, keywords, opaque, deferred)

    def unpacked(self, node: ast.expr) -> tuple[dict[str, Argument], bool]:
        """What `**node` passes, and whether that is all."""
        literal, where = self.file.followed(node, self.scope)
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(literal, ast.Dict):
            pairs = list(zip(literal.keys, literal.values, strict=True))
        elif isinstance(literal, ast.Call) and self.file.resolve(literal.func, where) == ("builtins.dict",):
            pairs = [(ast.Constant(word.arg) if word.arg else None, word.value) for word in literal.keywords]
        else:
            return {}, False
        found: dict[str, Argument] = {}
        for key, value in pairs:
            if isinstance(key, ast.Constant):
                constant = self.file.constant(value, where)
                names = () if constant else self.file.resolve(value, where)
                found[str(key.value)] = Argument(names, True, constant[0]) if constant else Argument(names)
        changed = isinstance(node, ast.Name) and any(
            f"{node.id}{change}" in line
            for line in self.file.hollow.lines
            for change in ("[", ".update", ".setdefault")
        )
        return found, not changed and all(isinstance(key, ast.Constant) for key, _ in pairs) and not (
            isinstance(literal, ast.Call) and literal.args
        )

    def environment(self, name: str, node: ast.Call, branch: tuple[int, ...]) -> bool:
        keys: list[ast.expr | None] = list(node.args[:1])
        if name == "os.environ.update":
            keys = list(node.args[0].keys) if node.args and isinstance(node.args[0], ast.Dict) else []
            for word in node.keywords:
                if word.arg:
                    self.add("env", node, branch, (word.arg,))
        for key in keys:
            constant = self.file.constant(key, self.scope) if key is not None else None
            if constant is not None and isinstance(constant[0], str):
                self.add("env", node, branch, (constant[0],))
        return True

    def add(
        self, kind: str, node: ast.AST, branch: tuple[int, ...], names: Names, positional: tuple[Argument, ...] = (),
        keywords: dict[str, Argument] | None = None, opaque: bool = False, deferred: bool = False,
    ) -> None:  # fmt: skip
        """Record an event at `node`."""
        self.events.append(
            Event(
                kind, getattr(node, "lineno", 1), getattr(node, "col_offset", 0), self.statement, names, positional,
                keywords or {}, opaque, branch, deferred, self.locks > 0, self.idle, self.trained > 0,
            )
        )  # fmt: skip


# A draw that makes a seed is TDL105's business; one that picks a port, a name or a pause changes no result.
_IDLE = re.compile(
    r"seed|\b(?:\w+_)?port\b|dist_url|(?:run|exp|experiment|job)_(?:name|id)\b|\bu?uid\b|\bsleep\(",
    re.IGNORECASE,
)
_PICKS = re.compile(r"(?:choose|gen|get|make|new|pick|random|sample|shared)\w*_seed$")
_TRY: Any = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else ast.Try


def is_guard(test: ast.expr) -> bool:
    """Whether `test` is `__name__ == "__main__"`."""
    if isinstance(test, ast.BoolOp):
        return any(is_guard(value) for value in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def _is_type_checking(test: ast.expr) -> bool:
    return _last(test) == "TYPE_CHECKING"


def _last(node: ast.AST) -> str:
    """`c` of `a.b.c`, of `c` and of a call of either."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _tail(node: ast.expr) -> str:
    """`b.c` of `a.b.c`: the last two words of what is called."""
    last = _last(node)
    before = _last(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{last}" if before and last else last


def _asks_for_training(test: ast.expr) -> bool:
    """Whether `test` holds in training only: `self.training`, `self.training and p > 0`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks_for_training(value) for value in test.values)
    return isinstance(test, ast.Attribute) and test.attr == "training"


def _starts_empty(node: ast.expr | None) -> bool:
    """Whether `node` is `{}`, `dict()` or an empty dictionary of another class."""
    if isinstance(node, ast.Call):
        return not (node.args or node.keywords) and _last(node) in ("dict", "OrderedDict")
    return isinstance(node, ast.Dict) and not node.keys


def _is_item(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name


def _added(node: ast.AugAssign | ast.Expr) -> tuple[ast.expr | None, ast.expr | None]:
    """The container that a statement adds to, and what it adds as a list."""
    if isinstance(node, ast.AugAssign):
        return (node.target, node.value) if isinstance(node.value, _LITERALS) else (None, None)
    call = node.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
        return None, None
    if call.func.attr in ("append", "insert"):
        return call.func.value, ast.List([call.args[-1]], ast.Load())
    if call.func.attr == "extend" and isinstance(call.args[0], _LITERALS):
        return call.func.value, call.args[0]
    return None, None


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a block never runs on into what follows it."""
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and _last(last.value) in ("exit", "_exit", "quit")
    )


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope in order, those of its blocks included, those of inner scopes not."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        inner: list[ast.stmt] = []
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            for child in getattr(node, name, ()):
                if isinstance(child, ast.stmt):
                    inner.append(child)
                else:
                    inner.extend(getattr(child, "body", ()))
        stack.extend(reversed(inner))


def _parameters(args: ast.arguments) -> list[ast.arg]:
    stars = [star for star in (args.vararg, args.kwarg) if star is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *stars]


def _defaults(args: ast.arguments) -> list[tuple[str, ast.expr]]:
    positional = [*args.posonlyargs, *args.args]
    count = len(args.defaults)
    found = (
        [
            (parameter.arg, default)
            for parameter, default in zip(positional[len(positional) - count :], args.defaults, strict=True)
        ]
        if count
        else []
    )
    found += [
        (parameter.arg, default)
        for parameter, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    ]
    return found
