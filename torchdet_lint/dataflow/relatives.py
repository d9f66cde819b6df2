"""A function or a class of a file -> its calls there, and the classes that derive from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import bare

if TYPE_CHECKING:
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module


class Relatives:
    """An index of the calls and of the classes of one file. It grows as more of the file is parsed."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._looked_for: set[str] = set()
        self._calls = 0
        self._callers: dict[str, list[cst.Call]] = {}
        self._classes = 0
        self._children: dict[int, list[Class]] = {}

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a top-level function, or of a method through `self`."""
        return self.calls_of(function.name.value)

    def calls_of(self, name: str) -> list[cst.Call]:
        """The calls of the function or class `name` of the top level, or of the method `name` through `self`."""
        if name not in self._looked_for:
            self._looked_for.add(name)
            self.module.load_where(lambda text: name in text and re.search(rf"\b{name}\s*\(", text) is not None, name)
            if self.module.local_class(f"@.{name}") is not None:
                self.module.load_where(lambda text: "cls(" in text, "cls")
        calls = self.module.calls
        while self._calls < len(calls):
            call = calls[self._calls]
            self._calls += 1
            own = isinstance(call.receiver, cst.Name) and (
                call.receiver.value in ("self", "cls")
                or annotated_class(self.module, call.receiver, here=True) is not None
            )
            called = {one.rpartition(".")[2] for one in call.own if one.startswith("@.")}
            for word in sorted(called | ({call.attribute} if own else set())):
                self._callers.setdefault(word, []).append(call.node)
        return self._callers.get(name, [])

    def derived(self, class_: Class) -> list[Class]:
        """The classes at top level that derive from `class_`."""
        self._index_classes()
        queue, found = [class_], {id(class_)}
        while queue:
            for child in self._children.get(id(queue.pop()), ()):
                if id(child) not in found:
                    found.add(id(child))
                    queue.append(child)
        found.discard(id(class_))
        return [one for one in self.module.classes.values() if id(one) in found] if found else []

    def _index_classes(self) -> None:
        module = self.module
        if self._classes != len(module.classes):
            self._classes, self._children = len(module.classes), {}
            for one in list(module.classes.values()):
                for name in module.base_names(one) if one.outer is module.scope else ():
                    base = module.local_class(name)
                    if base is not None:
                        self._children.setdefault(id(base), []).append(one)


def annotated_class(module: Module, node: cst.Name, *, here: bool = False) -> tuple[Module, Class] | None:
    """The class that the annotation of the parameter `node` names, and its file; one of the file `here` alone."""
    home = module.scope_of(node).home(node.value)
    bindings = home.bindings[node.value] if home is not None else ()
    parameter = bindings[0].node if len(bindings) == 1 else None
    if not isinstance(parameter, cst.Param) or parameter.annotation is None:
        return None
    root, *rest = bare(parameter.annotation.annotation).strip("\"'").split(".")
    for full in module.resolve(cst.Name(root), module.scope, None) if root.isidentifier() else ():
        local = module.local_class(full) if not rest else None
        if local is not None:
            return module, local
        place = module.neighbour(".".join([full, *rest])) if module.neighbour is not None and not here else None
        class_ = place[0].local_class(f"@.{place[1]}") if place is not None else None
        if place is not None and class_ is not None:
            return place[0], class_
    return None
