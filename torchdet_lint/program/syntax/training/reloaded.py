"""The statements of a function -> the models that it makes and gives all their weights from elsewhere, before anything
reads those that were drawn."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import children, walk
from torchdet_lint.program.syntax.shapes import FUNCTIONS, last_word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_LOADS = "load_state_dict"
# Methods of a model that read none of its numbers, or hand them on as parameters.
_HARMLESS = frozenset(
    "bfloat16 cpu cuda double eval float half named_parameters parameters requires_grad_ to train zero_grad".split()
)
# The same of those that hand no parameters on.
_RUNS = _HARMLESS - {"named_parameters", "parameters"}
# What wraps a model has it under this name.
_WRAPPED = ".module"
_NESTED = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
_Wraps = Callable[[ast.Call], bool]


class Reloaded(NamedTuple):
    """A model that gets other weights: its name, whether it is only run after that, in evaluation, and the test of the
    `if` in which it gets them, should there be one."""

    name: str
    evaluated: bool
    test: ast.expr | None = None


def reloaded(body: Sequence[ast.stmt], wraps: _Wraps) -> dict[ast.stmt, Reloaded]:
    """The statements of a body that make a model of which a later one replaces all weights in every run, or in every
    run for which one test holds: by `load_state_dict`, which is strict, or, where no optimizer can get a parameter of
    the model, may not be. In between the model is moved, put in a mode, given to what `wraps` it, or its parameters are
    handed on."""
    return dict(_reloaded(body, body, wraps))


def _reloaded(
    body: Sequence[ast.stmt], whole: Sequence[ast.stmt], wraps: _Wraps
) -> Iterator[tuple[ast.stmt, Reloaded]]:
    for place, statement in enumerate(body):
        if isinstance(statement, _NESTED):
            continue
        for block in _blocks(statement):
            yield from _reloaded(block, whole, wraps)
        for call, before, test in _loads(statement):
            name = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            name = name.removesuffix(_WRAPPED)
            if not name or any(_names(one, name) for one in (*call.args, *call.keywords)):
                continue
            run = "." not in name and _is_only_run(whole, name)
            found = Reloaded(name, run and _is_evaluated(body[place:], whole, name), test)
            for made in _makers([*body[:place], *before], name, wraps) if run or _is_strict(call) else ():
                # What an `if` makes it gives other weights come what may.
                if test is None or made.lineno < statement.lineno:
                    yield made, found


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, but for those of a `try`, in which an error may come between."""
    if isinstance(statement, ast.Try):
        return
    for field in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(statement, field, None), list):
            yield block
    for case in getattr(statement, "cases", ()):
        yield case.body


def _loads(statement: ast.stmt) -> Iterator[tuple[ast.Call, list[ast.stmt], ast.expr | None]]:
    """The call by which a statement loads weights, also in the block of a `with` or of an `if`, what stands above it
    there, and the test of that."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == _LOADS:
        yield value, [], None
    for place, inner in enumerate(statement.body if isinstance(statement, (ast.With, ast.If)) else ()):
        for call, before, test in _loads(inner):
            above = [*statement.body[:place], *before]  # type: ignore[attr-defined]
            if not isinstance(statement, ast.If):
                yield call, above, test
            elif test is None:
                yield call, above, statement.test


def _is_strict(call: ast.Call) -> bool:
    """Whether weights are loaded so that none is left out."""
    given = [word.value for word in call.keywords if word.arg in ("strict", None)] + call.args[1:2]
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return not starred and all(isinstance(one, ast.Constant) and one.value is True for one in given)


def _names(node: ast.AST, name: str) -> bool:
    return any(_is_read(one, name) for one in walk(node))


def _is_read(node: ast.AST, name: str) -> bool:
    """Whether `node` reads what `name` stands for, which may be an attribute."""
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and dotted_name(node) == name


def _makers(above: Sequence[ast.stmt], name: str, wraps: _Wraps) -> Iterator[ast.stmt]:
    """Of the statements `above` those that bind a name to a model, from which nothing reads its weights."""
    for statement in reversed(above):
        inside = list(walk(statement))
        if isinstance(statement, _NESTED):
            if any(_is_read(one, name) for one in inside):
                return
            continue
        bound = [one for one in inside if isinstance(one, (ast.Assign, ast.AnnAssign)) and _binds(one, name)]
        if not _is_unread(statement, name, bound, wraps):
            return
        yield from (one for one in bound if not _wraps(one, name, wraps))
        if statement in bound and not _wraps(statement, name, wraps):
            return


def _binds(statement: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return len(targets) == 1 and dotted_name(targets[0]) == name


def _wraps(statement: ast.stmt, name: str, wraps: _Wraps) -> bool:
    """Whether what a statement binds a name to is what the name stands for, moved or wrapped."""
    value = getattr(statement, "value", None)
    return value is not None and _names(value, name) and _is_unread(statement, name, [], wraps)


def _is_unread(statement: ast.stmt, name: str, bound: Collection[ast.stmt], wraps: _Wraps) -> bool:
    """Whether a statement reads no weights of the model `name`: nor does a method of the object that keeps it."""
    owner = name.rpartition(".")[0]
    harmless: set[ast.AST] = set()
    stack: list[ast.AST] = [statement]
    nodes: list[ast.AST] = []
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack += children(node)
        if isinstance(node, ast.Attribute) and (node.attr in _HARMLESS or isinstance(node.ctx, ast.Store)):
            harmless.add(node.value)
        elif isinstance(node, ast.Call) and (last_word(node.func) == "print" or wraps(node)):
            harmless.update(node.args)
        elif isinstance(node, ast.Compare) and all(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops):
            harmless.update((node.left, *node.comparators))
        elif isinstance(node, ast.Attribute) and owner and dotted_name(node.value) == owner:
            # `self.model` itself, or another attribute of its owner, of which no method is called.
            harmless.add(node.value)
        elif isinstance(node, ast.Call) and owner and dotted_name(node.func).rpartition(".")[0] == owner:
            return False
    return all(node in harmless for node in nodes if _is_read(node, name) or (owner and _is_read(node, owner)))


def _is_only_run(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether a body does no more with the model `name` than to run it: no optimizer gets a parameter of it."""
    nodes = [node for statement in body for node in walk(statement)]
    harmless = {node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in {*_RUNS, _LOADS}}
    harmless |= {node.func for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Call) and last_word(node.func) == "print":
            harmless.update(node.args)
    return all(node in harmless for node in nodes if isinstance(node, ast.Name) and _is_read(node, name))


def _is_evaluated(below: Sequence[ast.stmt], whole: Sequence[ast.stmt], name: str) -> bool:
    """Whether one of the statements `below` puts the model `name` in evaluation mode, and nothing out of it again."""
    methods = [
        node
        for one in whole
        for node in walk(one)
        if isinstance(node, ast.Attribute) and dotted_name(node.value) == name
    ]
    if any(method.attr == "train" for method in methods):
        return False
    calls = (one.value for one in below if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
    return any(call.func in methods and not call.args and last_word(call.func) == "eval" for call in calls)
