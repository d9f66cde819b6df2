"""Where an expression of the project stands, and what is known of an object there: plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast
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
    where that is known; then also those attributes, `self.mode`, that are evidently one constant."""

    classes: tuple[tuple[ast.ClassDef, File], ...]
    attributes: dict[str, list[tuple[ast.expr, Scope]]]
    added: dict[str, list[tuple[ast.expr, Scope]]]
    foreign: tuple[str, ...]
    made: ast.Call | None
    constants: dict[str, object]
