"""A dotted name in one file -> the module of the other file that defines it, and what is left of the name."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from torchdet_lint.module.module import Module, SyntaxFault
from torchdet_lint.source.cache import content_hash
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.modules import Relied

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Target
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.source.modules import ModuleMap

_HOPS = 5
_FILES = 64
# So many files of a folder are looked through for classes that derive from one.
_BESIDE = 40


class Neighbours:
    """The files that the values of one file go to. Paths are absolute; `relied` are the looks at them so far."""

    def __init__(
        self, library: Library, target: Target, modules: ModuleMap, read: Callable[[str], bytes | None]
    ) -> None:
        self.library = library
        self.target = target
        self.modules = modules
        self.relied: set[Relied] = set()
        self._read = read
        self._known: dict[str, tuple[str, Module | None]] = {}

    def find(self, name: str, file: str, hops: int = _HOPS) -> tuple[Module, str] | None:
        """The module that defines what `file` calls `name`, followed through imports of other files, and what it is
        called there: `Class.method`. None where that is neither defined nor assigned in the project."""
        place = self.modules.locate(name, file)
        path = place.path if place is not None else ""
        content, module = self._module(path) if path.endswith(".py") else ("", None)
        self.relied.add(Relied(file, name, path, content))
        if module is None or place is None or not place.rest or hops <= 0:
            return None
        head, *rest = place.rest
        bindings = module.scope.bindings.get(head.removesuffix("()"), ())
        if bindings and bindings[-1].kind in ("def", "class"):
            return module, ".".join(place.rest)
        if bindings and bindings[-1].kind == "import":
            tail = "()" if head.endswith("()") else ""
            return self.find(".".join([bindings[-1].target + tail, *rest]), path, hops - 1)
        if len(place.rest) == 1 and re.search(rf"^{re.escape(head)}\b[^\n=]*=", module.text, re.MULTILINE):
            return module, head
        for star in module.scope.stars:
            found = self.find(f"{star}{'.' if star.strip('.') else ''}{'.'.join(place.rest)}", path, hops - 1)
            if found is not None:
                return found
        return None

    def heirs(self, class_: str, file: str) -> list[tuple[Module, Class]]:
        """The classes of the other files in the folder of `file` that derive from its `class_`, and their files."""
        found: list[tuple[Module, Class]] = []
        folder, base = os.path.split(file)
        names = sorted(name for name in self.modules.listing(folder) if name.endswith(".py") and name != base)
        derives = re.compile(rb"^class \w+\([^)\n]*\b" + class_.encode() + rb"\b", re.MULTILINE)
        for name in names[:_BESIDE]:
            path = f"{folder}{os.sep}{name}"
            data = self._read(path)
            self.relied.add(Relied(file, name[:-3], path, content_hash(data) if data is not None else ""))
            module = self._module(path)[1] if data is not None and derives.search(data) else None
            if module is not None:
                found += [(module, one) for one in module.classes.values() if self._is_heir(module, one, class_, file)]
        return found

    def _is_heir(self, module: Module, one: Class, class_: str, file: str) -> bool:
        """Whether the class `one` of `module` names `class_` of `file` as its base."""
        bases = [self.find(full, module.source.path) for full in module.base_names(one)]
        return any(place is not None and (place[0].source.path, place[1]) == (file, class_) for place in bases)

    def own(self, package: str, file: str) -> bool:
        """Whether `package` is the project's own, as those see it who sort the imports of `file`."""
        place = self.modules.locate(package, file)
        path = place.path if place is not None else ""
        data = self._read(path) if path.endswith(".py") else None
        self.relied.add(Relied(file, package, path, content_hash(data) if data is not None else ""))
        return bool(path) and self.modules.own(path, file)

    def _module(self, path: str) -> tuple[str, Module | None]:
        """The hash of a file ("": it cannot be read), and the file where it is Python."""
        if path not in self._known:
            if len(self._known) >= _FILES:
                return "", None
            data = self._read(path)
            module: Module | None = None
            if data is not None:
                try:
                    module = Module(decode(path, data), self.library, self.target, frozenset())
                except (SourceFault, SyntaxFault):
                    module = None
            if module is not None:
                module.neighbour = lambda name: self.find(name, path)
            self._known[path] = content_hash(data) if data is not None else "", module
        return self._known[path]

    def release(self) -> None:
        """Let go of all files."""
        for _, module in self._known.values():
            if module is not None:
                module.release()
        self._known.clear()
