"""The statements of a function -> its events, in the order in which they run."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdet_lint.program.events import DEVICE_QUERIES, GUARD, PLAIN, Argument, Event, Names, Test
from torchdet_lint.program.syntax.names import INSTANTIATE
from torchdet_lint.program.syntax.scopes import Bound, constant, followed
from torchdet_lint.program.syntax.shapes import (
    FUNCTIONS,
    LITERALS,
    PASSED_ON,
    TRY,
    asks_for_training,
    defaults_of,
    is_guard,
    is_off,
    is_type_checking,
    last_word,
    leaves_early,
    tail_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope


_LONG = 20
_OTHER = Bound("value")
# Of a chain of `elif`, so many arms are told apart.
_ARMS = 64
_CUDA_TEXT = re.compile(r"(?:cuda|gpu)(?::(?:\d*|%[dis]|\{[^{}]*\}))?|nccl")
_CUDA_OPTION = re.compile(r"-{1,2}(?:no[-_])?(?:use[-_])?(?:cuda|gpus?|device|gpu[-_]ids?|n[-_]?gpus?|accelerator)\b")
_IDLE = re.compile(
    r"seed|\b(?:\w+_)?port\b|dist_url|(?:run|exp|experiment|job)_(?:name|id)\b|\bu?uid\b|\bsleep\(",
    re.IGNORECASE,
)
_PICKS = re.compile(r"(?:choose|gen|get|make|new|pick|random|sample|shared)\w*_seed$")


class Extractor:
    """The events of one body in the order in which they run."""

    def __init__(self, names: Resolver, scope: Scope) -> None:
        self.names = names
        self.scope = scope
        self.events: list[Event] = []
        self.returns: list[ast.expr] = []
        self.arms = 0
        self.statement = 1
        self.locks = 0
        self.idle = False
        self.muted = False
        self.trained = 0
        self.bare: ast.expr | None = None
        self.lazy = isinstance(scope.node, ast.AsyncFunctionDef)
        self.tests: list[Test] = []
        self.picks = _PICKS.search(scope.name.rpartition(".")[2]) is not None

    # Statements nest at most a hundred deep, which is the parser's own limit; expressions are walked with a stack.

    def block(self, body: list[ast.stmt], branch: tuple[int, ...]) -> None:
        """Record statements in their order; those after an arm that leaves are in the other arm."""
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
        elif isinstance(node, TRY):
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
        if isinstance(node, FUNCTIONS):
            self.muted = True
            for decorator in node.decorator_list:
                self.expression(decorator, branch)
            self.muted = False
            for _, default in defaults_of(node.args):
                self.expression(default, branch)
        elif isinstance(node, ast.ClassDef):
            for expression in (*node.decorator_list, *node.bases):
                self.expression(expression, branch)
            self.block([statement for statement in node.body if not isinstance(statement, FUNCTIONS)], branch)
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
        """Record an `if`; the arm in which the rest of the block stands, or 0."""
        first = 0
        number = -1
        while True:
            number += 1
            guards = self.scope.kind == "module" and is_guard(node.test)
            arm, checking = GUARD, is_type_checking(node.test)
            if not checking:
                trained = asks_for_training(node.test)
                self.trained += trained
                self.expression(node.test, branch)
                if not guards:
                    self.arms += 1
                    arm = self.arms
                    if self.scope.kind == "function":
                        self.tests.extend(self.tested(node.test, -arm, arm))
                self.block(node.body, (*branch, arm))
                self.trained -= 0 if guards else trained
                if number < _ARMS:
                    branch = (*branch, -arm)
            if number == 0 and not checking and not guards:
                if leaves_early(node.body):
                    first = -arm
                elif node.orelse and leaves_early(node.orelse):
                    first = arm
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                self.block(node.orelse, branch)
                return first
            node = node.orelse[0]
            self.statement = node.lineno

    def context(self, node: ast.With | ast.AsyncWith, branch: tuple[int, ...]) -> None:
        """Record a `with`, whose body may hold a lock."""
        locked = any("lock" in ast.unparse(item.context_expr).lower() for item in node.items)
        for item in node.items:
            self.expression(item.context_expr, branch)
            names = self.names.resolve(item.context_expr, self.scope)
            mine = tuple(f"{name}.__enter__" for name in names if name.startswith(("@", "$", ".")))
            if mine:
                self.add("call", item.context_expr, branch, mine)
        self.locks += locked
        self.block(node.body, branch)
        self.locks -= locked

    def iteration(self, over: ast.expr, branch: tuple[int, ...]) -> None:
        """Record what iterating `over` calls."""
        if isinstance(over, LITERALS):
            return
        self.loader(over, branch)
        # A container stands for what is in it, and that is not iterated.
        inside = self.names.elements(over, self.scope)
        mine = tuple(
            f"{name}.{method}"
            for name in self.names.resolve(over, self.scope)
            if name.startswith(("@", "$", ".")) and name not in inside
            for method in ("__iter__", "__next__", "__getitem__")
        )
        if mine:
            self.add("call", over, branch, mine)

    def simple(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        """Record a simple statement."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        last = min(node.end_lineno or node.lineno, node.lineno + _LONG)
        self.idle = self.picks or bool(_IDLE.search("".join(self.names.scopes.hollow.lines[node.lineno - 1 : last])))
        self.effects(node, branch)
        self.idle = False

    def effects(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        """Record what a simple statement calls, returns and assigns."""
        value = getattr(node, "value", None)
        self.bare = value if isinstance(node, ast.Expr) and isinstance(value, ast.Call) else None
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
            if last_word(node.target) in ("grad", "data") or (
                isinstance(node.target, ast.Attribute) and node.target.attr == "grad"
            ):
                self.add("update", node, branch, ("grad",))
            elif any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(node.value)):
                self.add("update", node, branch, ("step",))
        elif isinstance(node, (ast.Assert, ast.Raise, ast.Delete)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, branch)

    def assignment(self, target: ast.expr, value: ast.expr, branch: tuple[int, ...]) -> None:
        """Record that an attribute, an environment variable or a gradient is assigned."""
        if isinstance(target, ast.Attribute):
            names = tuple(name for name in self.names.resolve(target, self.scope) if not name.startswith("$"))
            if names:
                self.add("set", target, branch, names, (self.argument(value),))
        elif isinstance(target, ast.Subscript):
            self.expression(target.value, branch)
            if "os.environ" in self.names.resolve(target.value, self.scope):
                key = constant(target.slice, self.scope)
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
                parts = [] if self.asks_for_devices(node.func) or is_off(node) else parts
            elif isinstance(node, ast.Lambda):
                deferred = True
                parts = [node.body]
            elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                parts = [part for generator in node.generators for part in (generator.iter, *generator.ifs)]
                parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            elif isinstance(node, ast.Name) or self.asks_for_devices(node):
                continue
            elif isinstance(node, ast.Compare):
                # Whether a device is of CUDA is asked here, and not chosen.
                parts = [part for part in (node.left, *node.comparators) if not isinstance(part, ast.Constant)]
            elif isinstance(node, ast.Attribute):
                if node.attr == "cuda" and "torch.cuda" in self.names.resolve(node, self.scope):
                    self.add("cuda", node, branch, ("evident",))
                parts = [node.value]
            elif isinstance(node, ast.Subscript):
                names = self.names.resolve(node.value, self.scope)
                mine = tuple(
                    f"{name}.__getitem__" for name in names if name.startswith(("@", "$")) and name.endswith(")")
                )
                if mine:
                    self.add("call", node, branch, mine, deferred=deferred)
                parts = [node.value, node.slice]
            else:
                self.lazy = self.lazy or isinstance(node, (ast.Yield, ast.YieldFrom))
                parts = list(ast.iter_child_nodes(node))
            stack.extend((part, False, deferred) for part in reversed(parts))

    def asks_for_devices(self, node: ast.AST) -> bool:
        """Whether `node` is a function of `torch.cuda` that runs nothing there: `is_available`, `device_count`."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr.startswith(DEVICE_QUERIES)
            and not {"torch.cuda", "torch.accelerator"}.isdisjoint(self.names.resolve(node.value, self.scope))
        )

    def text(self, node: ast.Constant, branch: tuple[int, ...]) -> None:
        """Record that a text speaks of CUDA."""
        value = node.value
        if not isinstance(value, str) or len(value) > 40 or self.muted:
            return
        if _CUDA_TEXT.fullmatch(value):
            self.add("cuda", node, branch, ("evident",))
        elif _CUDA_OPTION.match(value):
            self.add("cuda", node, branch, ("possible",))

    def argument(self, node: ast.expr) -> Argument:
        """An argument as a caller needs to know it."""
        known = constant(node, self.scope)
        if known is not None:
            return Argument((), True, known[0])
        if isinstance(node, (ast.BoolOp, ast.IfExp)) and asks_for_training(
            node.test if isinstance(node, ast.IfExp) else node
        ):
            return Argument(("?.training",))
        names = self.names.resolve(node, self.scope)
        tail = tail_of(node) if not names else ""
        return Argument(names or ((f"?.{tail}",) if tail else ()))

    def call(self, node: ast.Call, branch: tuple[int, ...], deferred: bool) -> None:
        """Record a call."""
        function = node.func
        names = self.names.resolve(function, self.scope)
        if not names:
            tail = tail_of(function)
            if not tail:
                return
            names = (f"?.{tail}",)
        if names[0] in ("os.environ.setdefault", "os.putenv", "os.environ.update") and self.environment(
            names[0], node, branch
        ):
            return
        positional, keywords, opaque = self.arguments(node)
        if names[0] in INSTANTIATE and node.args:
            positional = (Argument(self.names.path(node.args[0], self.scope)),)
        self.add("call", node, branch, names, positional, keywords, opaque, deferred)

    def arguments(self, node: ast.Call) -> tuple[tuple[Argument, ...], dict[str, Argument], bool]:
        """What a call is given by place and by name, and whether there may be more."""
        opaque = any(isinstance(arg, ast.Starred) for arg in node.args)
        positional = tuple(self.argument(arg) for arg in node.args if not isinstance(arg, ast.Starred))
        keywords = {word.arg: self.argument(word.value) for word in node.keywords if word.arg is not None}
        for word in node.keywords:
            if word.arg is None:
                unpacked, whole = self.unpacked(word.value)
                keywords = unpacked | keywords
                opaque = opaque or not whole
                if not whole and (paths := self.names.path(word.value, self.scope)):
                    keywords["**"] = Argument(paths)
        return positional, keywords, opaque

    def loader(self, over: ast.expr, branch: tuple[int, ...]) -> None:
        """Record that a loader in sight is iterated."""
        made, where = followed(over, self.scope)
        while isinstance(made, ast.Call) and made.args and last_word(made.func) in PASSED_ON:
            made, where = followed(made.args[0], where)
        if isinstance(made, ast.Call) and last_word(made.func).endswith("Loader"):
            names = self.names.resolve(made.func, where)
            if names:
                self.add("iterate", over, branch, names, *self.arguments(made))

    def tested(self, test: ast.expr, dead: int, dead_otherwise: int) -> Iterator[Test]:
        """What `test` asks of parameters that keep their values: `dead` is the arm that does not run where it holds."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from self.tested(test.operand, dead_otherwise, dead)
        elif isinstance(test, ast.BoolOp):
            both = isinstance(test.op, ast.And)
            for value in test.values:
                yield from self.tested(value, 0 if both else dead, dead_otherwise if both else 0)
        elif isinstance(test, ast.Name):
            if self.is_constant(test.id) and (dead or dead_otherwise):
                yield Test(test.id, "true", None, dead, dead_otherwise)
        elif isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1:
            value = test.comparators[0]
            if (
                not isinstance(value, ast.Constant)
                or not isinstance(value.value, PLAIN)
                or not self.is_constant(test.left.id)
            ):
                return
            if isinstance(test.ops[0], (ast.Is, ast.Eq)):
                yield Test(test.left.id, "equal", value.value, dead, dead_otherwise)
            elif isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
                yield Test(test.left.id, "equal", value.value, dead_otherwise, dead)

    def is_constant(self, name: str) -> bool:
        """Whether `name` is a parameter here that is given no other value."""
        return all(bound.kind in ("parameter", "default") for bound in self.scope.bindings.get(name, (_OTHER,)))

    def unpacked(self, node: ast.expr) -> tuple[dict[str, Argument], bool]:
        """What `**node` passes, and whether that is all."""
        literal, where = followed(node, self.scope)
        pairs = self.pairs(literal, where)
        if pairs is None:
            return self.joined(node), False
        found: dict[str, Argument] = {}
        for key, value in pairs:
            if isinstance(key, ast.Constant):
                known = constant(value, where)
                names = () if known else self.names.resolve(value, where)
                found[str(key.value)] = Argument(names, True, known[0]) if known else Argument(names)
        changed = isinstance(node, ast.Name) and any(
            f"{node.id}{change}" in line
            for line in self.names.scopes.hollow.lines
            for change in ("[", ".update", ".setdefault")
        )
        return found, not changed and all(isinstance(key, ast.Constant) for key, _ in pairs) and not (
            isinstance(literal, ast.Call) and literal.args
        )

    def pairs(self, literal: ast.expr, where: Scope) -> list[tuple[ast.expr | None, ast.expr]] | None:
        """Keys and values of a dictionary that is written out; None: it is none."""
        if isinstance(literal, ast.Dict):
            return list(zip(literal.keys, literal.values, strict=True))
        if isinstance(literal, ast.Call) and self.names.resolve(literal.func, where) == ("builtins.dict",):
            return [(ast.Constant(word.arg) if word.arg else None, word.value) for word in literal.keywords]
        return None

    def joined(self, node: ast.expr) -> dict[str, Argument]:
        """What the dictionaries hold that `node` may be: `if options is None: options = dict(…)`, `options or {…}`."""
        home = self.scope.home(node.id) if isinstance(node, ast.Name) else None
        bounds = home.bindings[node.id] if home is not None and isinstance(node, ast.Name) else []
        values = [bound.value for bound in bounds if bound.kind == "value" and bound.value is not None]
        found: dict[str, Argument] = {}
        for value in values or [node]:
            for one in value.values if isinstance(value, ast.BoolOp) else [value]:
                for key, item in self.pairs(one, home or self.scope) or ():
                    if isinstance(key, ast.Constant):
                        found.setdefault(str(key.value), self.argument(item))
        return found

    def environment(self, name: str, node: ast.Call, branch: tuple[int, ...]) -> bool:
        """Record that a call sets environment variables, if it does."""
        keys: list[ast.expr | None] = list(node.args[:1])
        if name == "os.environ.update":
            keys = list(node.args[0].keys) if node.args and isinstance(node.args[0], ast.Dict) else []
            for word in node.keywords:
                if word.arg:
                    self.add("env", node, branch, (word.arg,))
        for key in keys:
            known = constant(key, self.scope) if key is not None else None
            if known is not None and isinstance(known[0], str):
                self.add("env", node, branch, (known[0],))
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
                node is self.bare,
            )
        )  # fmt: skip


# A draw that makes a seed is TDL105's business; one that picks a port, a name or a pause changes no result.
