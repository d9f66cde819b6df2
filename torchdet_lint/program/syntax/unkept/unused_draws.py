"""The statements of a function -> what they draw that reaches no result: it says how long to wait, only assertions look
at it, or it is drawn again below a seed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.syntax.shapes import FUNCTIONS, SIZES, last_word, statements_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from torchdet_lint.program.syntax.scopes import Scope

_WAITS = "sleep"
_ASSERTS = "assert"
_SEEDS = "seed"
# Of a model they tell nothing of its numbers: it is moved, put in a mode, shown, or its parameters are handed on.
_HARMLESS = frozenset({"cpu", "cuda", "double", "eval", "float", "half", "parameters", "to", "train", "zero_grad"})
# So many names are made of each other.
_ROUNDS = 4
# What counts the numbers that a model has, and shows how many there are.
_COUNTS = frozenset({"float", "format", "int", "len", "nelement", "numel", "print", "prod", "round", "size", "sum"})
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_BLOCKS = (ast.For, ast.If, ast.While, ast.With)


def waited(body: Sequence[ast.stmt], tells: Collection[str]) -> frozenset[str]:
    """The names of a function that say nothing but how long it waits: `sleep` is given them, what they are made into,
    and what `tells` somebody."""
    nodes = [node for statement in body for node in walk(statement)]
    loads = {id(node): node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    slept: set[int] = set()
    told: set[int] = set()
    made: dict[int, str] = {}
    for node in nodes:
        if isinstance(node, ast.Call) and (last_word(node.func) == _WAITS or last_word(node.func) in tells):
            inside = {id(one) for argument in (*node.args, *node.keywords) for one in walk(argument)}
            (slept if last_word(node.func) == _WAITS else told).update(inside)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            made |= {id(one): node.targets[0].id for one in walk(node.value)}
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            made |= {id(one): node.target.id for one in walk(node.value)}
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    # Names that lead to a wait, from there back.
    found = {name for place, name in loads.items() if place in slept} - shared
    for _ in range(_ROUNDS):
        found |= {name for place, name in loads.items() if made.get(place) in found} - shared
    for _ in range(_ROUNDS):
        others = (item for item in loads.items() if item[0] not in slept and item[0] not in told)
        used = {name for place, name in others if made.get(place) not in found}
        if found.isdisjoint(used):
            return frozenset(found)
        found -= used
    return frozenset()


def only_asserts(node: ast.stmt) -> bool:
    """Whether a function only tries out what it asserts: it gives values to its own names, and returns none."""
    if not isinstance(node, FUNCTIONS) or node.decorator_list:
        return False
    tried = list(_tried(node.body))
    return None not in tried and any(tried)


def _tried(body: Sequence[ast.stmt]) -> Iterator[bool | None]:
    """For each statement whether it asserts something; None for one that may do more."""
    for node in body:
        match node:
            case ast.Assert():
                yield True
            case ast.Expr(value=ast.Call() as call) if last_word(call.func).startswith(_ASSERTS):
                yield True
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
                yield False
            case ast.Assign(targets=[target]) if _is_own(target):
                yield False
            case ast.With() | ast.For():
                yield from _tried(node.body)
            case _:
                yield None


def _is_own(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return all(isinstance(part, ast.Name) for part in parts)


def only_counts(node: ast.stmt, counts: Callable[[ast.Call], bool]) -> bool:
    """Whether a statement makes models only to count their numbers: `sum(p.numel() for p in Net().parameters())`, or by
    a function that `counts`."""
    nodes = list(walk(node))
    made: set[int] = set()
    for one in nodes:
        match one:
            case ast.GeneratorExp() | ast.ListComp() if len(one.generators) == 1 and _sizes_alone(one):
                made |= {id(inner) for inner in walk(one.generators[0].iter)}
            case ast.Call() if counts(one):
                made |= {id(inner) for inner in walk(one)}
    calls = [one for one in nodes if isinstance(one, ast.Call) and id(one) not in made]
    return bool(made) and all(last_word(one.func) in _COUNTS for one in calls)


def _sizes_alone(node: ast.GeneratorExp | ast.ListComp) -> bool:
    """Whether a comprehension goes through the parameters of a model that is made there, for their sizes."""
    over = node.generators[0].iter
    match over:
        case ast.Call(func=ast.Attribute(value=ast.Call(), attr=method)) if method in _PARAMETERS:
            names = {one.id for one in walk(node.generators[0].target) if isinstance(one, ast.Name)}
        case _:
            return False
    parts = [inner for part in (node.elt, *node.generators[0].ifs) for inner in walk(part)]
    sized = {id(one.value) for one in parts if isinstance(one, ast.Attribute) and one.attr in SIZES}
    return all(id(one) in sized for one in parts if isinstance(one, ast.Name) and one.id in names)


def redrawn(scope: Scope, redraws: Collection[str]) -> frozenset[str]:
    """The models that a function, or a file at top level, makes, of which the numbers are drawn, or given, anew right
    below a seed, by methods that are called so (`redraws`), before anything reads them."""
    rows: dict[str, int] = {}
    for body in _bodies(scope.node.body):
        seeded = 0
        for statement in body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and _SEEDS in last_word(call.func).lower():
                seeded = statement.lineno
            elif seeded and (name := _redraws(call, redraws)):
                rows.setdefault(name, seeded)
            else:
                seeded = 0
    return frozenset(name for name, row in rows.items() if _is_unread(name, scope, row))


def _bodies(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """A body, and those of the blocks in it."""
    yield body
    for node in statements_in(list(body)):
        if isinstance(node, _BLOCKS):
            yield node.body


def _redraws(call: ast.expr | None, redraws: Collection[str]) -> str:
    """The name of the model of which a call draws the numbers anew."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in redraws:
            return name
    return ""


def _is_unread(name: str, scope: Scope, row: int) -> bool:
    """Whether nothing above `row` reads the numbers of the model `name`, which is made there: nor does a function of
    the file, which may."""
    harmless: set[int] = set()
    loads: list[ast.Name] = []
    made = 0
    for statement in statements_in(list(scope.node.body)):
        if statement.lineno >= row or isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        binds = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name
        made = made or (statement.lineno if binds else 0)
        inside = statement.body if isinstance(statement, _BLOCKS) else []
        within = {id(one) for part in inside for one in walk(part)}
        for node in walk(statement) if made else ():
            if id(node) in within:
                continue
            if isinstance(node, ast.Attribute) and node.attr in _HARMLESS:
                harmless.add(id(node.value))
            elif isinstance(node, ast.Call):
                harmless |= {id(one) for one in node.args} if last_word(node.func) == "print" else set()
                if _is_own_function(node.func, scope):
                    return False
            elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                loads.append(node)
    return bool(made) and all(id(node) in harmless for node in loads)


def _is_own_function(function: ast.expr, scope: Scope) -> bool:
    home = scope.home(function.id) if isinstance(function, ast.Name) else None
    return home is not None and any(bound.kind == "def" for bound in home.bindings[ast.unparse(function)])
