"""An expression -> its events: the calls in it in the order in which they run, and what it says of CUDA."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children
from torchdet_lint.program.events import LOADED, Argument, Event, Names, is_result
from torchdet_lint.program.syntax.arguments import Arguments
from torchdet_lint.program.syntax.conditions import always
from torchdet_lint.program.syntax.named_texts import OF_PARAMETER
from torchdet_lint.program.syntax.scopes import constant, followed
from torchdet_lint.program.syntax.shapes import (
    ASKS_OF_TEXT,
    LITERALS,
    PASSED_ON,
    as_text,
    configuration_of,
    is_computed,
    is_off,
    last_word,
    looped_over,
    parameters_of,
    tail_of,
    trained_arms,
    without_constants,
)
from torchdet_lint.program.syntax.unkept.times import Kind
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope
    from torchdet_lint.program.syntax.unkept.naming import Naming
    from torchdet_lint.program.syntax.unkept.times import Times


# Callables that go through what they are given right away, and those that do so as something goes through them.
_CONSUMES = frozenset({"all", "any", "frozenset", "iter", "list", "max", "min", "set", "sorted", "sum", "tuple"})
_PAIRS = frozenset({"chain", "cycle", "enumerate", "islice", "iter", "reversed", "tqdm", "track", "zip"})
_GOES_THROUGH = _PAIRS | PASSED_ON

# How to print, not what.
_PRINTING = frozenset({"file", "flush"})

# How an attribute is called that keeps a class: `args.data_class`.
_CALLED_CLASS = ("class", "cls")
# An attribute of the object itself, and no more.
_KEPT = lazy(r"\$self\.\w+")
_STARTS_WORKER = "worker_init_fn"
_SETS_VARIABLES = frozenset({
    "os.environ.setdefault", "os.environ.update", "os.environ.pop", "os.putenv", "os.unsetenv",
})  # fmt: skip
# The words in the names of the methods that operators call.
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip


def _is_of_a_class(made: str) -> bool:
    """Whether a name of what a call gives may stand for an object of a class of the project."""
    class_ = made.removesuffix("()").rpartition(".")[2]
    called_so = class_[:1].isupper() or class_.endswith(_CALLED_CLASS)
    return made.startswith(("@", "$")) or (called_so and not made.startswith(("torch.", "numpy.", "pandas.")))


def _is_no_object(name: str) -> bool:
    """Whether `name` stands for a class, or for what a module holds, `module.*`: no object that is gone through."""
    last = name.rpartition(".")[2]
    return last == "*" or last.startswith(OF_PARAMETER) or (last[:1].isupper() and not last.endswith(")"))


class Expressions:
    """Records the events of the expressions of one body, at the statement that is being looked at."""

    def __init__(self, names: Resolver, scope: Scope, times: Times, naming: Naming) -> None:
        self.names = names
        self.times = times
        self.naming = naming
        self.words = names.words
        self.devices = names.devices
        self.scope = scope
        self._device_modules = frozenset(self.devices.modules)
        self.arguments = Arguments(names, scope)
        self.events: list[Event] = []
        self.statement = 1
        self.locks = 0
        self.loops = 0
        # Whether the nearest `with` around that decides it switches gradients on.
        self.graded: bool | None = None
        self.weightless = 0
        self.idle = False
        self.sized = False
        self.without_gradient = False
        self.unapplied = False
        self.downloads = False
        self.passing = False
        self.kept = ""
        self.reloaded: Names = ()
        self.evaluated = False
        self.muted = False
        # The calls that load data, and no weights.
        self.data: frozenset[ast.AST] = frozenset()
        self.partly = False
        # Below a `case` or an `except`, which stand on no branch.
        self.sometimes = 0
        self.trained = 0
        self.bare: ast.expr | None = None
        # What comprehensions of the expression go through, by the name that stands for one of it.
        self._over: dict[str, ast.expr] = {}
        self.lazy = isinstance(scope.node, ast.AsyncFunctionDef)
        method = scope.method
        own = method is not None and method is scope and method.first == "self"
        self._me = parameters_of(scope.node.args)[0].arg if own else ""
        self._properties = names.properties(method.outer) if own and method is not None else frozenset()

    def expression(self, root: ast.expr, branch: tuple[int, ...]) -> None:
        """Record the calls of an expression, arguments before the call that takes them."""
        around = self.trained
        stack: list[tuple[ast.AST, bool, bool, tuple[int, ...], bool, int]] = [
            (root, False, False, branch, False, around)
        ]
        self._over.clear()
        while stack:
            node, seen, deferred, branch, self.partly, self.trained = stack.pop()
            if seen:
                assert isinstance(node, ast.Call)
                self.call(node, branch, deferred)
                continue
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str):
                    self.text(node, branch)
                continue
            if isinstance(node, ast.Call):
                stack.append((node, True, deferred, branch, self.partly, self.trained))
            elif isinstance(node, ast.Name) or self.asks_for_devices(node):
                continue
            deferred = deferred or isinstance(node, ast.Lambda)
            partly = self.partly or isinstance(node, (ast.IfExp, ast.BoolOp, ast.Compare))
            parts: list[tuple[ast.AST, tuple[int, ...]]]
            if isinstance(node, (ast.IfExp, ast.BinOp, ast.BoolOp, ast.Compare)) and (chosen := self.chosen(node)):
                parts = [(part, branch + arms) for part, arms in chosen]
            else:
                parts = [(part, branch) for part in self.parts(node, branch, deferred)]
            trained = trained_arms(node) if isinstance(node, ast.IfExp) else ()
            stack.extend(
                (part, False, deferred, at, partly, self.trained + (part in trained)) for part, at in reversed(parts)
            )
        self.trained = around

    def chosen(self, node: ast.IfExp | ast.BinOp | ast.BoolOp | ast.Compare) -> list[tuple[ast.expr, tuple[int, ...]]]:
        """The parts of an expression of which not all count for every parameter of the function, and the arms in which
        they stand."""
        return []

    def parts(self, node: ast.AST, branch: tuple[int, ...], deferred: bool) -> list[ast.AST]:
        """The parts of an expression in the order in which they run. A name of CUDA that is only asked for is none."""
        if isinstance(node, ast.Call):
            return self.parts_of_call(node)
        if isinstance(node, ast.Lambda):
            return [node.body] if node not in self.names.scopes.handed else []
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            for generator in node.generators:
                self._over.update(looped_over(generator.target, generator.iter))
                self.iteration(generator.iter, branch, deferred=deferred)
            parts = [part for generator in node.generators for part in (generator.iter, *generator.ifs)]
            return [*parts, *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])]
        if asked := _asked(node):
            return without_constants(asked)
        if isinstance(node, ast.BinOp):
            self.operator(node, branch, deferred=deferred)
        if isinstance(node, ast.Dict):
            return [*without_constants(key for key in node.keys if key is not None), *node.values]
        if isinstance(node, ast.Attribute):
            if node.attr == "cuda" and "torch.cuda" in self.names.resolve(node, self.scope):
                self.add("cuda", node, branch, ("evident",))
            elif isinstance(node.value, (ast.Name, ast.Call)) and (names := self.read(node.value, node.attr)):
                self.add("read", node, branch, names, deferred=deferred)
            return [node.value]
        if isinstance(node, ast.Subscript):
            names = self.names.resolve(node.value, self.scope)
            mine = tuple(f"{name}.__getitem__" for name in names if self._may_give_rows(name))
            if mine and not any(map(self.names.gives_several, names)):
                self.add("call", node, branch, mine, deferred=deferred)
            return [node.value, *without_constants((node.slice,))]
        self.lazy = self.lazy or isinstance(node, (ast.Yield, ast.YieldFrom))
        if isinstance(node, ast.YieldFrom):
            self.iteration(node.value, branch)
        return children(node)

    def _may_give_rows(self, name: str) -> bool:
        """Whether `name` may stand for an object of the project of which rows are taken: one that is made here, or what
        a data set keeps and goes through row by row."""
        if name.endswith(")"):
            return _is_of_a_class(name)
        return self.scope.name.endswith(".__getitem__") and _KEPT.fullmatch(name) is not None

    def read(self, owner: ast.Name | ast.Call, attribute: str) -> Names:
        """The names of an attribute that may be a property of the project: of `self`, where its class has it, and of an
        object that is made here or that a name was given."""
        if isinstance(owner, ast.Name) and owner.id == self._me:
            return (f"$self.{attribute}",) if attribute in self._properties else ()
        made, _ = followed(owner, self.scope)
        if not isinstance(made, ast.Call) or not last_word(made.func)[:1].isupper():
            return ()
        names = self.names.resolve(owner, self.scope)
        return tuple(f"{name}.{attribute}" for name in names if name.endswith("()") and not name.startswith("torch."))

    def operator(self, node: ast.BinOp, branch: tuple[int, ...], *, deferred: bool) -> None:
        """Record the method of an object of the project's own that an operator calls: `noisy + 1`."""
        for side, prefix in ((node.left, "__"), (node.right, "__r")):
            if isinstance(side, ast.Name) and (names := self.read(side, f"{prefix}{_OPERATORS[type(node.op)]}__")):
                self.add("call", node, branch, names, deferred=deferred)

    def parts_of_call(self, node: ast.Call) -> list[ast.AST]:
        """What is called and what it is given, but for what the workers of a loader alone run."""
        if self.asks_for_devices(node.func) or is_off(node) or always(node) is not None:
            return []
        words = (word for word in node.keywords if word.arg != _STARTS_WORKER or not isinstance(word.value, ast.Lambda))
        given = [*node.args, *(word.value for word in words)]
        function = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        return [function, *(without_constants(given) if last_word(node.func) in ASKS_OF_TEXT else given)]

    def asks_for_devices(self, node: ast.AST) -> bool:
        """Whether `node` is a function of `torch.cuda` that runs nothing there: `is_available`, `device_count`."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr.startswith(self.devices.queries)
            and not self._device_modules.isdisjoint(self.names.resolve(node.value, self.scope))
        )

    def text(self, node: ast.Constant, branch: tuple[int, ...]) -> None:
        """Record that a text speaks of CUDA."""
        value = node.value
        if not isinstance(value, str) or len(value) > 40 or self.muted:
            return
        if self.devices.names_cuda.fullmatch(value):
            self.add("cuda", node, branch, ("evident",))
        elif self.devices.chooses_cuda.match(value):
            self.add("cuda", node, branch, ("possible",))

    def called(self, function: ast.expr) -> Names:
        """The names of what is called."""
        return self.names.resolve(function, self.scope)

    def call(self, node: ast.Call, branch: tuple[int, ...], deferred: bool) -> None:
        """Record a call."""
        function = node.func
        names = self._of_one(function) or self.called(function) or self._element(function)
        if not names:
            tail = tail_of(function)
            if not tail:
                return
            names = (f"?.{tail}",)
        if names[0] in _SETS_VARIABLES:
            self.environment(names[0], node, branch)
            return
        positional, keywords, opaque = self.arguments.of(node)
        if names[0] in self.words.instantiates and (part := configuration_of(node)) is not None:
            positional = (Argument(self.names.path(part, self.scope)),)
            keywords.pop("config", None)
        self.add("call", node, branch, names, positional, keywords, opaque, deferred)
        made = tuple(one for name in names for one in self.names.from_registry(node, name, self.scope))
        if made:
            self.add("call", node, branch, made, opaque=True, deferred=deferred)
        if built := tuple(self.names.built_here(function, self.scope)):
            self.add("call", node, branch, built, positional, keywords, opaque, deferred)
        if names[0] == "builtins.eval" and (spelled := self.names.spelled_calls(node, self.scope)):
            self.add("call", node, branch, spelled, opaque=True, deferred=deferred)
        if isinstance(function, ast.Name) and function.id in _CONSUMES and node.args:
            self.iteration(node.args[0], branch, deferred=deferred)
        if names[0].rpartition(".")[2] in self.words.tells and any(map(is_computed, node.args)):
            self._told(node, branch)
        elif self.loops and not self.words.waits.isdisjoint(names):
            self.add("tell", node, branch, ("serves",))

    def _told(self, node: ast.Call, branch: tuple[int, ...]) -> None:
        """Record that a value is printed, unless it is the same in every run."""
        words = (one.value for one in node.keywords if one.arg not in _PRINTING)
        kind = self.times.shown((*node.args, *words), self.scope)
        if kind is not Kind.CONSTANT:
            self.add("tell", node, branch, ("times" if kind is Kind.TIME else "tells",))

    def _of_one(self, function: ast.expr) -> Names:
        """The names of what a comprehension goes through, where it calls one of it, or a method of one, as in
        `[layer(x) for layer in self.layers]`."""
        owner = function.value if isinstance(function, ast.Attribute) else function
        if not isinstance(owner, ast.Name) or owner.id not in self._over or self.scope.home(owner.id) is not None:
            return ()
        names = self.names.held(self._over[owner.id], self.scope)
        return tuple(f"{name}.{function.attr}" for name in names) if isinstance(function, ast.Attribute) else names

    def _element(self, function: ast.expr) -> Names:
        """The name of an element of a parameter, where that is called: `$blocks.0` of `blocks[0](64)`."""
        match function:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(place))) if place >= 0:
                return (f"${name}.{place}",) if f"${name}" in self.names.resolve(function.value, self.scope) else ()
        return ()

    def environment(self, name: str, node: ast.Call, branch: tuple[int, ...]) -> None:
        """Record that a call sets environment variables, if it does."""
        if name == "os.environ.update":
            pairs = self.arguments.pairs(*followed(node.args[0], self.scope)) if node.args else None
            named = [(ast.Constant(word.arg), word.value) for word in node.keywords if word.arg]
            for key, value in (*(pairs or ()), *named):
                if key is not None:
                    self.variable(key, value, node, branch)
        elif node.args:
            default = name.endswith(".setdefault")
            self.variable(node.args[0], node.args[1] if len(node.args) > 1 else None, node, branch, default=default)

    def variable(
        self, key: ast.expr, value: ast.expr | None, node: ast.AST, branch: tuple[int, ...], *, default: bool = False
    ) -> None:
        """Record that an environment variable is set, to nothing known where `value` is None: as a `default`, where it
        is not set yet."""
        known = constant(key, self.scope)
        if known is None or not isinstance(known[0], str):
            return
        if known[0] != self.devices.visible:
            if value is not None:
                self.add("env", node, branch, (known[0],))
            return
        given = Argument() if value is None or self.sometimes else self.arguments.argument(as_text(value))
        self.add("env", node, branch, (known[0], "default") if default else (known[0],), (given,))

    def iteration(self, over: ast.expr, branch: tuple[int, ...], *, deferred: bool = False) -> None:
        """Record what iterating `over` calls."""
        if not isinstance(over, LITERALS):
            self.loader(over, branch, deferred=deferred)
            self.call_iterators(over, branch, deferred=deferred)

    def call_iterators(self, over: ast.expr, branch: tuple[int, ...], *, deferred: bool) -> None:
        """Record the methods of objects of the project that going through `over` calls, through `enumerate` and its
        kin too."""
        if isinstance(over, LITERALS):
            return
        if isinstance(over, ast.Call) and last_word(over.func) in _GOES_THROUGH:
            for one in over.args:
                self.call_iterators(one, branch, deferred=deferred)
        # A container stands for what is in it, and that is not iterated.
        inside = self.names.elements(over, self.scope) if not isinstance(over, ast.Attribute) else ()
        mine = tuple(
            f"{name}.{method}"
            for name in self.names.resolve(over, self.scope)
            if name.partition(".")[0] not in self.names.roots and name not in inside and not _is_no_object(name)
            for method in ("__iter__", "__next__", "__getitem__")
        )
        if mine:
            self.add("call", over, branch, mine, deferred=deferred)

    def loader(self, over: ast.expr, branch: tuple[int, ...], *, deferred: bool = False) -> None:
        """Record that a loader in sight is iterated, or a parameter, which may be one."""
        loops = [over]
        while loops:
            one = loops.pop()
            if (made := self.arguments.loader(one)) is not None:
                self.add("iterate", over, branch, made.names, made.positional, made.keywords, made.opaque, deferred)
            elif isinstance(one, ast.Call) and last_word(one.func) in _GOES_THROUGH:
                loops += one.args[::-1]
            elif isinstance(one, ast.Name) and self.names.resolve(one, self.scope) == (f"${one.id}",):
                self.add("iterate", over, branch, (f"{LOADED}{one.id}",), deferred=deferred)
            elif results := tuple(filter(self._may_give_loader, self.names.resolve(one, self.scope))):
                self.add("iterate", over, branch, results, deferred=deferred)

    def _may_give_loader(self, name: str) -> bool:
        """Whether `name` stands for what a call of something of the project gives."""
        return is_result(name) and name[0] not in "$?" and name.partition(".")[0] not in self.names.roots

    def add(
        self, kind: str, node: ast.AST, branch: tuple[int, ...], names: Names, positional: tuple[Argument, ...] = (),
        keywords: dict[str, Argument] | None = None, opaque: bool = False, deferred: bool = False,
    ) -> None:  # fmt: skip
        """Record an event at `node`."""
        composed = opaque and isinstance(node, ast.Call) and self.arguments.composed(node)
        idle = self.idle or (isinstance(node, ast.Call) and self.naming.draws_a_name(node))
        self.events.append(
            Event(
                kind, getattr(node, "lineno", 1), getattr(node, "col_offset", 0), self.statement, names, positional,
                keywords or {}, opaque, branch, deferred, self.locks > 0, idle, self.trained > 0,
                node is self.bare, self.graded is False, self.sized, self.without_gradient, self.partly,
                self.unapplied, self.kept, composed, self.graded is True, node in self.data, self.passing,
                self.downloads, self.reloaded, self.evaluated,
            )
        )  # fmt: skip


def _asked(node: ast.AST) -> tuple[ast.expr, ...]:
    """The parts of an expression that asks for a device: a comparison, and `"cuda" if x.is_cuda else "cpu"`, which says
    where a tensor is."""
    if isinstance(node, ast.Compare):
        return node.left, *node.comparators
    if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Attribute) and node.test.attr == "is_cuda":
        return node.test, node.body, node.orelse
    return ()
