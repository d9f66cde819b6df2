"""Where an expression of the project stands, and what is known of an object there: plain data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.dataflow.workers.project_file import File, Function


class Scope(NamedTuple):
    """Where an expression stands: its file, the function around it, the class of `self`, what its parameters are given,
    the way to `self` from the data set, for a function in a function where that stands, the parameters that `*args` or
    `**options` of the call may hold, where they do not keep their defaults, what of the function does not run with what
    it is given, and the methods of the object that a worker runs."""

    file: File
    function: Function | None = None
    instance: Instance | None = None
    given: Mapping[str, tuple[ast.expr, Scope]] | None = None
    way: str | None = None
    outer: Scope | None = None
    left_open: frozenset[str] = frozenset()
    dead: tuple[ast.AST, ...] = ()
    methods: tuple[ast.FunctionDef, ...] = ()


class Instance(NamedTuple):
    """An object: its class and the base classes of the project, what its attributes may be and what is added to those
    that are lists or dictionaries, the names of its base classes that are not the project's, and the call that made it,
    where that is known; then also those attributes, `self.mode`, that are evidently one constant, and whether all that
    such a base class is given is among the attributes."""

    classes: tuple[tuple[ast.ClassDef, File], ...]
    attributes: dict[str, list[tuple[ast.expr, Scope]]]
    added: dict[str, list[tuple[ast.expr, Scope]]]
    foreign: tuple[str, ...]
    made: ast.Call | None
    constants: dict[str, object]
    whole: bool = False


def given_class(function: Function) -> str:
    """The parameter that holds the class, of a class method or `__new__`; empty for another function."""
    if isinstance(function, ast.Lambda):
        return ""
    marks = {one.id for one in function.decorator_list if isinstance(one, ast.Name)} | {function.name}
    parameters = [*function.args.posonlyargs, *function.args.args]
    return parameters[0].arg if parameters and not marks.isdisjoint(("classmethod", "__new__")) else ""


def own_class(node: ast.expr, scope: Scope) -> tuple[ast.ClassDef, File] | None:
    """The class of the method around, where `node` names it so: `cls`, `type(self)`, `self.__class__`."""
    if scope.instance is None or scope.function is None:
        return None
    if isinstance(node, ast.Name):
        is_own = node.id == given_class(scope.function)
    elif isinstance(node, ast.Attribute):
        is_own = node.attr == "__class__" and _is_self(node.value)
    else:
        is_own = isinstance(node, ast.Call) and _is_type_of_self(node)
    return scope.instance.classes[0] if is_own else None


def _is_type_of_self(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "type" and len(call.args) == 1 and _is_self(call.args[0])


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
