"""A program -> the files that it imports, or may import by names that only the run knows."""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from torchdet_lint.program.effects import STARTED
from torchdet_lint.program.events import MODULE
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.catalogue.tables.programs import Programs
    from torchdet_lint.program.effects import Node
    from torchdet_lint.program.events import Event
    from torchdet_lint.program.files import ProjectFiles

# What stands in the parentheses of a call: a text, which may go on after a gap, or the name of the module itself.
_ARGUMENT = lazy(r"[\w.\s]*\(\s*(?:name\s*=\s*)?(.*)", re.DOTALL)
_TEXT = lazy(r"f?([\"'])([\w.]*)(\1\s*(?=[,)]))?")
_ITSELF = lazy(r"(?:f[\"']\{)?(?:__name__|__package__)\b")
_ANCHOR = lazy(r"[^()]*,\s*(?:package\s*=\s*)?(?:[\"']([\w.]+)[\"']|(__name__|__package__))\s*\)")
# A file that goes through the folder in which it lies, and one that goes through another package.
_LISTS = lazy(r"\b(?:pkgutil|listdir|glob|iterdir|scandir|walk)\b")
_OWN_FOLDER = lazy(r"\b(?:__file__|(?<!\.)__path__)\b")
_OTHER_FOLDER = lazy(r"\w\.__path__\b")
_PUBLIC = lazy(r"\b__all__\s*\+?=\s*(?:[\[(]([\s\w\"',#]*)[\])]\s*$)?", re.MULTILINE)
_WORD = lazy(r"[\"'](\w+)[\"']")
_DOTTED = lazy(r"[\"']([A-Za-z_]\w*(?:\.\w+)*)[\"']")
# The modules that a configuration names, and those in which a registry looks for more.
_LISTED = lazy(r"\bcustom_imports\b[^\[]{0,80}\[([^\]]*)\]")
_LOCATIONS = lazy(r"\blocations\s*=\s*\[([^\]]*)\]")
_LOADS_LAZILY = lazy(r"(?m)^def __getattr__\b")
_LONGEST = 300


class Imports:
    """What the files of a project import; worked out once a file, for all programs."""

    def __init__(self, files: ProjectFiles, words: Programs) -> None:
        self.files = files
        self.words = words
        self._static: dict[str, frozenset[str]] = {}
        self._by_name: dict[tuple[str, str], frozenset[str] | None] = {}
        self._configured: frozenset[str] | None = None

    def of(self, start: str, reached: Iterable[Node]) -> frozenset[str] | None:
        """The files that the program `start` imports, whose functions are the `reached` nodes, and those that it may
        import by names that are put together; None where nobody can tell which these are."""
        functions: dict[str, set[str]] = {}
        for node in reached:
            functions.setdefault(node.file, set()).add(MODULE if node.name == STARTED else node.name)
        found = {start, *self.files.modules.packages(start)}
        queue = sorted(found)
        while queue:
            file = queue.pop()
            following = set(self._imported(file))
            for name in sorted(functions.get(file, {MODULE}) | {MODULE, "__getattr__"}):
                named = self._named(file, name)
                if named is None:
                    return None
                following |= named
            queue += sorted(following - found)
            found |= following
        return frozenset(found)

    def _imported(self, file: str) -> frozenset[str]:
        """What the import statements of `file`, wherever they stand, may run."""
        if file not in self._static:
            text = self.files.text(file)
            found = self.files.imported(file)
            if file.endswith("__init__.py") and "__all__" in text:
                found |= self._public(file, text)
            for listed in _LOCATIONS.findall(text) if "locations" in text else ():
                found |= self._modules(_DOTTED.findall(listed), file)
            self._static[file] = frozenset(found)
        return self._static[file]

    def _public(self, file: str, text: str) -> set[str]:
        """The modules of a package that `from package import *` imports: those in its `__all__`."""
        found: set[str] = set()
        for match in _PUBLIC.finditer(text):
            if match[1] is None:
                return self._below(_folder_of(file))
            found |= self._modules([f".{name}" for name in _WORD.findall(match[1])], file)
        return found

    def _modules(self, names: Iterable[str], file: str) -> set[str]:
        return {path for name in names for path in self.files.files_of(name, file)}

    def _below(self, folder: str) -> set[str]:
        """The listed files below `folder`."""
        return {path for path in self.files.listed if path.startswith(folder + os.sep)}

    def _named(self, file: str, name: str) -> frozenset[str] | None:
        """What the function `name` of `file` imports by a text; None where that is not known."""
        key = file, name
        if key not in self._by_name:
            named = [self._by_call(file, event) for event in self._loading(file, name)]
            known = [one for one in named if one is not None]
            self._by_name[key] = frozenset[str]().union(*known) if len(known) == len(named) else None
        return self._by_name[key]

    def _loading(self, file: str, name: str) -> Iterator[Event]:
        """The calls in a function that import something by a text."""
        text = self.files.text(file)
        if self.words.may_import.search(text) is None:
            return
        if name == "__getattr__" and _LOADS_LAZILY.search(text) is None:
            return
        body = self.files.summary(file).body(name)
        for event in body.events if body is not None else ():
            if event.kind == "call" and any(name in self.words.loads_code for name in event.names):
                yield event

    def _by_call(self, file: str, event: Event) -> set[str] | None:
        """What a call imports by the text that it is given."""
        if not self.words.reads_imports.isdisjoint(event.names):
            return self._by_configuration()
        if self.words.imports.isdisjoint(event.names):
            return None
        lines = self.files.text(file).splitlines(keepends=True)[event.row - 1 : event.row + 4]
        call = _ARGUMENT.match("".join(lines).encode()[event.column :].decode(errors="replace")[:_LONGEST])
        given = call[1] if call is not None else ""
        if _ITSELF.match(given):
            return self._below(_folder_of(file))
        text = _TEXT.match(given)
        if text is None:
            return self._by_listing(file)
        if text[2].startswith("."):
            return self._in_package(_ANCHOR.match(given), file)
        if text[3]:
            return self._modules([text[2]], file)
        package, dot, _ = text[2].rpartition(".")
        return self._of_package(package, file) if dot else None

    def _in_package(self, anchor: re.Match[str] | None, file: str) -> set[str] | None:
        """What of the package that `anchor` names, the second argument of a call, may be imported."""
        if anchor is None:
            return None
        return self._of_package(anchor[1], file) if anchor[1] else self._below(_folder_of(file))

    def _of_package(self, package: str, file: str) -> set[str] | None:
        place = self.files.locate(package, file)
        if place is None or place.rest:
            return None
        folder = _folder_of(place.path) if place.path.endswith(".py") else place.path
        return {*self.files.files_of(package, file), *self._below(folder)}

    def _by_listing(self, file: str) -> set[str] | None:
        """What a file imports that goes through a folder: all that lies in its own."""
        text = self.files.text(file)
        if _LISTS.search(text) and _OWN_FOLDER.search(text) and not _OTHER_FOLDER.search(text):
            return self._below(_folder_of(file))
        return None

    def _by_configuration(self) -> set[str]:
        """What the configurations of the project that are files of Python name for import, and what registries import
        when something is looked up there."""
        if self._configured is None:
            found: set[str] = set()
            for path in sorted(self.files.listed):
                text = self.files.text(path)
                listed = [*_LISTED.findall(text)] if "custom_imports" in text else []
                listed += _LOCATIONS.findall(text) if "locations" in text else []
                found |= self._modules((name for one in listed for name in _DOTTED.findall(one)), path)
            self._configured = frozenset(found)
        return set(self._configured)


def _folder_of(file: str) -> str:
    return str(PurePath(file).parent)
