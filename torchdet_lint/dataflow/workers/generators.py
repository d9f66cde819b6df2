"""An expression -> the call that makes a random number generator, where that is what it stands for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.workers.project_file import branches, every_statement
from torchdet_lint.dataflow.workers.scopes import Scope

if TYPE_CHECKING:
    from torchdet_lint.catalogue.tables.conventions import Workers
    from torchdet_lint.dataflow.workers.bindings import Bindings
    from torchdet_lint.dataflow.workers.classes import Classes

DEEP = 20
# Displays, and a comprehension that makes one.
HOLDING = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)


class Generators:
    """The generators that the code of one file makes."""

    def __init__(self, classes: Classes, bindings: Bindings, facts: Workers) -> None:
        self.classes = classes
        self.bindings = bindings
        self.facts = facts
        # What the generators are made by that functions return, if they return some.
        self._makers: dict[ast.FunctionDef, str] = {}

    def maker(self, node: ast.expr, scope: Scope, depth: int = 0) -> tuple[str, ast.expr] | None:
        """The name of what makes a generator, if `node` is one, and where."""
        if depth > DEEP:
            return None
        if isinstance(node, ast.Call):
            name = self.classes.dotted(node.func, scope.file)
            if name in self.facts.generators:
                return name, node
            if name == "dataclasses.field":
                return self._factory(node, scope)
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
                return self.maker(node.func.value, scope, depth + 1) if node.func.attr == "manual_seed" else None
            return self._returned(name, node, scope, depth)
        if isinstance(node, (ast.BoolOp, ast.IfExp, *HOLDING)):
            parts = _held(node) if isinstance(node, HOLDING) else branches(node)
            return next((made for part in parts if (made := self.maker(part, scope, depth + 1))), None)
        if isinstance(node, (ast.Name, ast.Attribute)):
            for value, inner in self.bindings.behind(node, scope):
                made = self.maker(value, inner, depth + 1) if value is not node else None
                if made is not None:
                    return made
        return None

    def _returned(self, name: str, call: ast.Call, scope: Scope, depth: int) -> tuple[str, ast.expr] | None:
        """The same of what a function of the project returns, in whichever file: it is made where that is called."""
        function, file = self.classes.definition(name, scope.file) or (None, scope.file)
        if not isinstance(function, ast.FunctionDef):
            return None
        if function not in self._makers:
            self._makers[function] = ""
            values = [node.value for node in every_statement(function) if isinstance(node, ast.Return) and node.value]
            made = [self.maker(value, Scope(file, function), depth + 1) for value in values]
            self._makers[function] = next((one[0] for one in made if one is not None), "")
        maker = self._makers[function]
        return (maker, call) if maker else None

    def _factory(self, field: ast.Call, scope: Scope) -> tuple[str, ast.expr] | None:
        """The same of what a field of a data class is made by: `field(default_factory=…)`."""
        for keyword in field.keywords:
            if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
                return self.maker(keyword.value.body, scope)
            name = self.classes.dotted(keyword.value, scope.file) if keyword.arg == "default_factory" else ""
            if name in self.facts.generators:
                return name, keyword.value
        return None


def _held(node: ast.expr) -> list[ast.expr]:
    """The first elements of a display, or what a comprehension puts there: all of them are alike."""
    if isinstance(node, (ast.ListComp, ast.DictComp)):
        return [node.elt if isinstance(node, ast.ListComp) else node.value]
    elements: list[ast.expr] = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return elements[:DEEP]
