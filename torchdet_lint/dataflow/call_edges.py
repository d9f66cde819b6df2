"""A function or a call of the file → who calls it, what it calls, and which parameter an argument binds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module


class CallEdges:
    """The calls inside one file."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def function(self, name: str) -> cst.FunctionDef | None:
        """The top-level function of the qualified `name`, `@.name`."""
        if name.count(".") != 1:
            return None
        for binding in self.module.scope.bindings.get(name[2:], ()):
            if binding.kind == "def":
                return self.definition(name[2:])
        return None

    def definition(self, word: str) -> cst.FunctionDef | None:
        """The function `word` at top level."""
        self.module.load_where(lambda text: f"def {word}(" in text, word)
        for unit in self.module.units:
            if unit.piece.name == word and unit.piece.owner < 0 and unit.root is not None:
                for statement in unit.root.body:
                    if isinstance(statement, cst.FunctionDef):
                        return statement
        return None

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a top-level function, or of a method through `self`, in the file."""
        name = function.name.value
        self.module.load_where(lambda text: re.search(rf"\b{name}\s*\(", text) is not None, name)
        found = []
        for call in self.module.calls:
            own = isinstance(call.receiver, cst.Name) and call.receiver.value in ("self", "cls")
            local = any(one.startswith("@.") and one.endswith(f".{name}") for one in call.own)
            if local or (call.attribute == name and own):
                found.append(call.node)
        return found
