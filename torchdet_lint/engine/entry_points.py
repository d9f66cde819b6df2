"""The records of the linted files -> those that a person starts, and what files import."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING

from torchdet_lint.config import starts_project
from torchdet_lint.patterns import compiled
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import TEST_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from torchdet_lint.config import Settings
    from torchdet_lint.engine.record import Record
    from torchdet_lint.program.entry import Entry
    from torchdet_lint.program.files import ProjectFiles

_TESTS = lazy(r"^[ \t]*(?:async[ \t]+)?(?:def[ \t]+test_|class[ \t]+Test)", re.MULTILINE)
_CLASS = lazy(r"^class[ \t]", re.MULTILINE)
_PICKED_MODULE = lazy(r"\(\s*[A-Za-z_f]")
_PICKERS = ("import_module", "__import__", "instantiate", "resolve_name")
_CHECK = lazy(r"check_.*\.py")
_INSTALLED = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
# What stands at the top of a project, be it a checkout or an archive that has been unpacked.
_AT_THE_TOP = lazy(r"(?:readme|licen[cs]e)(?:\.\w+)?|requirements\.txt|environment\.ya?ml", re.IGNORECASE)
_FOLDERS = frozenset({"test", "tests", "unit_test", "unit_tests", "unittest", "unittests"})


class EntryPoints:
    """The entry points among the linted files."""

    def __init__(self, records: Mapping[str, Record], settings: Settings, files: ProjectFiles) -> None:
        self.records = records
        self.settings = settings
        self.files = files
        self._imported: dict[str, set[str]] = {}
        self._tried: dict[str, bool] = {}

    def paths(self) -> list[str]:
        """The linted files that a person starts, in order."""
        named = self.named
        found, perhaps = [], []
        for path in sorted(self.records):
            outline = self.records[path].outline
            name = os.path.basename(path)
            if path in named:
                found.append(path)
            elif (TEST_FILE.fullmatch(name) and not self._is_program(path)) or name in ("__init__.py", "setup.py"):
                continue
            elif outline.guard or name.endswith(".ipynb"):
                found.append(path)
            elif outline.works and name.endswith((".py", ".pyw")):
                perhaps.append(path)
        if perhaps:
            found += [path for path in perhaps if path not in self.all_imported and not self.files.is_part(path)]
        return sorted(found)

    def _is_program(self, path: str) -> bool:
        """Whether a file that is named like a test has a main guard and defines no test."""
        outline = self.records[path].outline
        if not outline.guard or os.path.basename(path) == "conftest.py":
            return False
        return not any(
            dotted.partition(".")[0] in ("pytest", "unittest") for dotted in outline.imports
        ) and not _TESTS.search(self.files.text(path))

    def imports(self, path: str) -> set[str]:
        """The files that `path` imports, by its outline."""
        known = self._imported.get(path)
        if known is not None:
            return known
        found = self._imported[path] = set()
        for dotted in self.files.outline(path).imports:
            place = self.files.locate(dotted, path)
            if place is not None and place.path != path:
                found.add(place.path)
        return found

    @functools.cached_property
    def named(self) -> set[str]:
        """Those that the configuration names."""
        patterns = self.settings.entry_points
        if not patterns:
            return set()
        spec = compiled(patterns)
        root = os.path.abspath(self.settings.root)
        return {path for path in self.records if spec.match_file(os.path.relpath(path, root).replace(os.sep, "/"))}

    def tries_out(self, entry: Entry) -> bool:
        """Whether an entry point only shows something, or is but the self-test of a module: the main guard of a file
        that others import, or may import by a name that they work out, that has classes for a package, or that lies
        among the tests, which writes nothing, reads no arguments and, but for a test, does not train. A notebook keeps
        what it shows."""
        known = self._tried.get(entry.file)
        if known is None:
            kept = entry.file.endswith(".ipynb") or entry.file in self.named
            known = self._tried[entry.file] = not kept and (entry.only_shows or self._is_self_test(entry))
        return known

    def _is_self_test(self, entry: Entry) -> bool:
        if not self.records[entry.file].outline.guard or entry.takes_or_writes:
            return False
        return self._is_among_tests(entry.file) or (
            not entry.trains
            and (entry.file in self.all_imported or self._picked(entry.file) or self._is_of_a_package(entry.file))
        )

    def _is_among_tests(self, path: str) -> bool:
        """Whether a file is named like a test, and lies somewhere in a folder of tests."""
        folder, name = os.path.split(path)
        inside = os.path.relpath(folder, os.path.abspath(self.settings.root)).split(os.sep)
        return not _FOLDERS.isdisjoint(inside) and (TEST_FILE.fullmatch(name) or _CHECK.fullmatch(name)) is not None

    def is_named(self, name: str) -> bool:
        """Whether a linted file imports something called `name`."""
        return name in self._names

    @functools.cached_property
    def all_imported(self) -> set[str]:
        """The files that a linted file imports."""
        return set().union(*(self.imports(path) for path in sorted(self.records)))

    @functools.cached_property
    def is_package(self) -> bool:
        """Whether others may import what the project holds: it can be installed, or it is not known where it starts."""
        root = self.settings.root
        names = self.files.modules.listing(root)
        starts = starts_project(root) or any(map(_AT_THE_TOP.fullmatch, names))
        return not starts or not _INSTALLED.isdisjoint(names)

    def _is_of_a_package(self, path: str) -> bool:
        """Whether a file has classes, and lies in a package, whose users import it."""
        beside = os.path.join(os.path.dirname(path), "__init__.py")
        return beside in self.records and _CLASS.search(self.files.text(path)) is not None

    def _picked(self, path: str) -> bool:
        """Whether a file has classes, and may be imported by a name that another works out."""
        return _CLASS.search(self.files.text(path)) is not None and self.imports_by_name

    @functools.cached_property
    def imports_by_name(self) -> bool:
        """Whether a linted file imports a module, or makes an object, by a name that it works out: any may be meant."""
        return any(
            _picks_modules(self.files.text(path))
            for path in sorted(self.records)
            if not TEST_FILE.fullmatch(os.path.basename(path))
        )

    @functools.cached_property
    def _names(self) -> set[str]:
        return {dotted.rpartition(".")[2] for record in self.records.values() for dotted in record.outline.imports}

    def reached(self, files: Iterable[str]) -> set[str]:
        """The files that `files` import, directly or not, and themselves."""
        return _led_to(files, lambda path: (file for file in sorted(self.imports(path)) if file.endswith(".py")))

    def started(self, programs: Iterable[str]) -> set[str]:
        """Those of `programs` that are there to be started, and that no file imports."""
        guarded = (path for path in programs if self.records[path].outline.guard or path.endswith(".ipynb"))
        return {*guarded} - self.all_imported

    def users(self, path: str) -> set[str]:
        """The files that import `path`, directly or not, and itself."""
        return _led_to([path], lambda file: self._importers.get(file, ()))

    @functools.cached_property
    def _importers(self) -> dict[str, list[str]]:
        """By file the linted files that import it."""
        found: dict[str, list[str]] = {}
        for importer in sorted(self.records):
            for file in sorted(self.imports(importer)):
                found.setdefault(file, []).append(importer)
        return found

    def reaching(self, goals: Collection[str], files: Iterable[str]) -> set[str]:
        """Those of `files` that reach one of `goals`, and what reaches one on their way."""
        importers: dict[str, list[str]] = {}
        passed = self.reached(files)
        for importer in passed:
            for file in self.imports(importer):
                if file.endswith(".py"):
                    importers.setdefault(file, []).append(importer)
        return _led_to((goal for goal in goals if goal in passed), lambda file: importers.get(file, ()))


def _led_to(start: Iterable[str], leads: Callable[[str], Iterable[str]]) -> set[str]:
    """`start`, and all to which `leads` goes from there."""
    queue = list(start)
    seen = set(queue)
    while queue:
        for file in leads(queue.pop()):
            if file not in seen:
                seen.add(file)
                queue.append(file)
    return seen


def _picks_modules(text: str) -> bool:
    """Whether a file imports a module, or makes an object, by a name that it works out."""
    words = (*_PICKERS, "locate") if "pydoc" in text else _PICKERS
    return any(_PICKED_MODULE.match(text, at + len(word)) for word in words for at in places(word, text))
