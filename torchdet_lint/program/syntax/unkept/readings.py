"""The text of a file -> its whole tree: what holds a node, and where names, attributes and functions are read."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children
from torchdet_lint.program.syntax.hollow import parsed
from torchdet_lint.program.syntax.shapes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

_SCOPES = (*FUNCTIONS, ast.Lambda)

Place = tuple[int, int, int | None, int | None]
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Readings:
    """The tree of one file, parsed when somebody asks."""

    def __init__(self, text: Callable[[], str]) -> None:
        self.text = text

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What holds each node."""
        tree = parsed(self.text())
        found: dict[ast.AST, ast.AST] = {}
        stack: list[ast.AST] = [tree] if tree is not None else []
        while stack:
            node = stack.pop()
            for child in children(node):
                found[child] = node
                stack.append(child)
        return found

    @functools.cached_property
    def places(self) -> dict[Place, ast.Call]:
        """The calls by where they begin and end."""
        return {
            (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): node
            for node in self.parents
            if isinstance(node, ast.Call)
        }

    @functools.cached_property
    def loads(self) -> dict[str, list[ast.Name]]:
        """By name where it is read."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.parents:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @functools.cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """By name of an attribute where it is read."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.parents:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.attr, []).append(node)
        return found

    @functools.cached_property
    def _bound(self) -> dict[ast.AST, set[str]]:
        """The names that a function binds, by the function."""
        found: dict[ast.AST, set[str]] = {}
        for node in self.parents:
            name = ""
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                continue
            if name and (function := self.function(node)) is not None:
                found.setdefault(function, set()).add(name)
        for node in self.parents:
            if isinstance(node, (ast.Global, ast.Nonlocal)) and (function := self.function(node)) is not None:
                found.get(function, set()).difference_update(node.names)
        return found

    @functools.cached_property
    def defined(self) -> dict[str, list[Defined]]:
        """The functions and classes by name."""
        found: dict[str, list[Defined]] = {}
        for node in self.parents:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                found.setdefault(node.name, []).append(node)
        return found

    def function(self, node: ast.AST) -> ast.AST | None:
        """The function around `node`, None at the top level of the file."""
        around = self.parents.get(node)
        while around is not None and not isinstance(around, _SCOPES):
            around = self.parents.get(around)
        return around

    def home(self, node: ast.AST, name: str) -> ast.AST | None:
        """The function that binds `name` where `node` stands, None: the file does."""
        around = self.function(node)
        while around is not None and name not in self._bound.get(around, ()):
            around = self.function(around)
        return around
