"""The modules below a root -> their texts, outlines and summaries, read when something in them is reached."""

from __future__ import annotations

import functools
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.outline import Outline, outline
from torchdet_lint.program.events import KEY, MODULE, WRITTEN, Memo
from torchdet_lint.program.launch_configs import Configs, part_at
from torchdet_lint.program.objects.placings import placings
from torchdet_lint.program.summary import Shelf, Summary
from torchdet_lint.program.switches import Switches
from torchdet_lint.program.syntax.hollow import Hollow
from torchdet_lint.program.syntax.registries import key_given, key_told
from torchdet_lint.program.syntax.training.untrained import applies
from torchdet_lint.program.syntax.unbound import is_part
from torchdet_lint.program.syntax.vocabulary import Vocabulary
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.program.events import Body, Event, Names
    from torchdet_lint.source.modules import ModuleMap, Place


_SOURCES = (".py", ".pyw", ".ipynb")
# So many characters of texts are kept: a look at every file of a project reads each once.
_TEXTS = 32_000_000
# How much a dictionary of several may hold: whoever asks for one of a hundred models does not run the others.
_SHELF = 12
# A hook is given what changed: where no more files than these are linted, what they import registers too.
_FEW = 64
_IMPORTED_THROUGH = 8
# Of more modules of one name in other folders nobody can tell which is meant.
_ELSEWHERE = 4
# A dotted text in quotes, and what stands before one that an option of a command line has by default, or that a field
# or an entry of that name is.
_QUOTED = lazy(r"[\"']([A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+)[\"']")
_NAMES_TEXT = lazy(
    r"(?:--([\w-]+)[\"'][^()]{0,200}\bdefault[ \t]*="
    r"|(?<![\w.-])([A-Za-z_]\w*)[\"']?(?:[ \t]*:[ \t]*[\w\[\]|.]{1,40})?[ \t]*[:=])[ \t]*\Z"
)
_BEFORE = 250
_OPTIMIZER = lazy(r"torch\.optim\.(?:\w+\.)?[A-Z]\w*$")


class ProjectFiles:
    """The files of a project. Paths are absolute."""

    def __init__(
        self,
        library: Library,
        root: str,
        read: Callable[[str], str | None],
        outlines: Mapping[str, Outline],
        bodies: Mapping[str, Body],
        modules: ModuleMap,
    ) -> None:
        """`read` gives the text of a file, or None; `outlines`, and `bodies` of what files do at top level, are those
        known already."""
        self.library = library
        self.modules = modules
        self.configs = Configs(root, modules.listing, self.text)
        self.memos: dict[str, Memo] = {}
        self.summaries: dict[str, Summary] = {}
        self._read = read
        self._vocabulary = Vocabulary.of(library)
        self._texts: dict[str, str] = {}
        self._held = 0
        self._shelf = Shelf()
        self._outlines = dict(outlines)
        self._bodies = bodies
        self.listed = frozenset(outlines)
        self._registered: dict[tuple[str, str, str], list[tuple[str, str, str]]] = {}
        # The files of which somebody has asked what they register, and that do register something.
        self.registering: set[str] = set()
        self._outside: dict[str, list[tuple[str, str, str, str]]] = {}
        # By the last word of what they import, the listed files; None until somebody asks.
        self._importers: dict[str, set[str]] | None = None
        self._configs: dict[str, tuple[tuple[str, str], ...]] = {}
        self._instantiates: dict[tuple[str, str], list[Event]] = {}
        self._optimised: dict[tuple[str, str], frozenset[str]] = {}
        self._adds: dict[str, tuple[str, ...]] = {}
        self._elsewhere: dict[tuple[str, str], list[Place]] = {}
        # The files of which nobody knows whether an import that leads nowhere means them.
        self.guessed: set[str] = set()
        # By the name of an attribute, how often each file that was asked assigns it.
        self._assigned: dict[str, dict[str, int]] = {}
        self._counted: set[str] = set()
        self._applies: dict[str, bool] = {}
        self.switches = Switches(self.listed, self.text, self.configs)
        # By the file that reads an attribute which other files give a class or a function, these files.
        self.placing: dict[str, set[str]] = {}

    def is_source(self, path: str) -> bool:
        """Whether `path` is a file of Python and no folder; one that was named may have any name, or only stand for
        standard input."""
        return path.endswith(_SOURCES) or path in self.listed

    def text(self, file: str) -> str:
        """The text of a file; empty where it cannot be read."""
        known = self._texts.get(file)
        if known is None:
            known = self._texts[file] = self._read(file) or ""
            self._held += len(known)
            while self._held > _TEXTS and len(self._texts) > 1:
                self._held -= len(self._texts.pop(next(iter(self._texts))))
        return known

    def outline(self, file: str) -> Outline:
        """What `file` imports, and whether it is started or does work."""
        if file not in self._outlines:
            self._outlines[file] = outline(self.text(file), self.library.facts.conventions)
        return self._outlines[file]

    def summary(self, file: str) -> Summary:
        """The functions of `file`."""
        if file not in self.summaries:
            self.summaries[file] = Summary(
                lambda: self._hollow(file),
                lambda: self.text(file),
                self._vocabulary,
                self._memo(file),
                self._shelf,
            )
        return self.summaries[file]

    def _memo(self, file: str) -> Memo | None:
        known = self.memos.get(file)
        body = self._bodies.get(file)
        return Memo({MODULE: body}, {}, {}, {}) if known is None and body is not None else known

    def _hollow(self, file: str) -> Hollow:
        known = self._outlines.get(file)
        return Hollow(split_lines(self.text(file)), known.bodies if known is not None else ())

    def is_part(self, file: str) -> bool:
        """Whether `file` needs names that nothing binds, and so cannot be started."""
        return is_part(self._hollow(file).tree()[0])

    def imported(self, file: str) -> set[str]:
        """The files of the project that `file` names in its imports, packages around them included."""
        found: set[str] = set()
        for dotted in self.outline(file).imports:
            found.update(self.files_of(dotted, file))
        return found

    def locate(self, dotted: str, file: str) -> Place | None:
        """The module that `dotted` means in `file`, which may add places to import from to `sys.path`, or import a file
        that does: relative to where that lies, or to where the program is started."""
        place = self.modules.locate(dotted, file)
        if place is not None or file not in self._outlines or dotted.startswith("."):
            return place
        for adding in self._adding(file):
            place = self.modules.added(self._outlines[adding].paths, dotted, adding)
            if place is not None and place.path != file:
                return place
        return None

    def _adding(self, file: str) -> tuple[str, ...]:
        """The files that add places to import from for `file`: itself, and what it imports from beside it."""
        if file not in self._adds:
            told = (self.modules.locate(dotted, file) for dotted in self._outlines[file].imports)
            paths = (file, *dict.fromkeys(place.path for place in told if place is not None))
            self._adds[file] = tuple(path for path in paths if path in self._outlines and self._outlines[path].paths)
        return self._adds[file]

    def elsewhere(self, dotted: str, file: str) -> list[Place]:
        """The modules of the project that an absolute name may mean in `file` which leads nowhere from there: in
        whichever folders that are no packages, where these define what is asked for; none where there are many, or
        where the file itself says from which folders it imports."""
        first, *rest = dotted.split(".")
        if not rest or not first or first in STANDARD or first in self.library.roots:
            return []
        if (dotted, file) not in self._elsewhere:
            found = [
                place
                for folder in self._starting.get(first, ())
                if (place := self.modules.below(folder, dotted)) is not None
                and self._defines(place)
                and place.path != file
            ]
            few = len(found) <= _ELSEWHERE and "sys.path" not in self.text(file)
            self._elsewhere[dotted, file] = found if few else []
            self.guessed.update(place.path for place in self._elsewhere[dotted, file])
        return self._elsewhere[dotted, file]

    @functools.cached_property
    def _starting(self) -> dict[str, list[str]]:
        """By the name of a listed module or package that is in no other package, the folders in which it lies."""
        found: dict[str, list[str]] = {}
        for path in sorted(path for path in self.listed if path.endswith(".py")):
            folder = PurePath(path).parent
            name, above = (
                (folder.name, folder.parent) if path.endswith("__init__.py") else (PurePath(path).stem, folder)
            )
            if "__init__.py" not in self.modules.listing(str(above)):
                found.setdefault(name, []).append(str(above))
        return found

    def _defines(self, place: Place) -> bool:
        """Whether the module that is meant binds the first of the names that are asked for."""
        return (
            bool(place.rest) and self.is_source(place.path) and bool(self.summary(place.path).stands_for(place.rest[0]))
        )

    def files_of(self, dotted: str, file: str) -> list[str]:
        """The files that importing `dotted` runs: the module and the packages that it is in."""
        place = self.locate(dotted, file)
        if place is None:
            return []
        own = (place.path,) if place.path.endswith(".py") else ()
        return [path for path in (*self.modules.packages(place.path), *own) if path != file]

    def optimised(self, file: str, name: str, body: Body) -> frozenset[str]:
        """Whose parameters an optimizer gets in the function `name` of `file`."""
        if (file, name) not in self._optimised:
            self._optimised[file, name] = _optimised(body)
        return self._optimised[file, name]

    def assignments(self, attribute: str, files: frozenset[str]) -> int:
        """How often `files` assign to an attribute of that name, of whatever objects, but for `self.name = …`, and for
        the options of the command line, which have `OPTION` before their names."""
        for file in files - self._counted:
            for name, count in self.summary(file).assigned.items() if self.is_source(file) else ():
                self._assigned.setdefault(name, {})[file] = count
        self._counted |= files
        return sum(count for file, count in self._assigned.get(attribute, {}).items() if file in files)

    def applies(self, attribute: str) -> bool:
        """Whether a listed file may apply a layer that objects keep under a name."""
        if attribute not in self._applies:
            self._applies[attribute] = any(applies(self.text(file), attribute) for file in sorted(self.listed))
        return self._applies[attribute]

    @functools.cached_property
    def placings(self) -> dict[str, dict[str, frozenset[str]]]:
        """By the name of an attribute, the files that give it a class or a function, and of what objects, by the last
        words for them."""
        found: dict[str, dict[str, set[str]]] = {}
        for path in sorted(self._in_reach):
            for owner, attribute in placings(self.text(path)):
                found.setdefault(attribute, {}).setdefault(path, set()).add(owner)
        return {name: {path: frozenset(owners) for path, owners in by.items()} for name, by in found.items()}

    def is_registry(self, file: str, tokens: list[str]) -> bool:
        """Whether the first of `tokens`, in the module `file`, is a dictionary of a module that starts empty."""
        home, names = self.home(file, tokens)
        return names[0] in self.summary(home).registers

    def registered(self, file: str, tokens: list[str], shelf: str = "", key: str = "") -> list[tuple[str, str]]:
        """The definitions, each a file and a name there, that any file of the project registers with the object that
        the first of `tokens` is in the module `file`: by a decorator that is a method of it, or that fills it; in its
        dictionary `shelf` (`mapping:models`), where it has several, unless too much is there to tell what is meant.
        By a `key` those that have it, or another one that nobody knows; all where there is none."""
        home, names = self.home(file, tokens)
        if shelf:
            methods = {name.split(".")[1] for name in self.summary(home).registers.get(shelf, ()) if "." in name}
            found = [one for method in sorted(methods) for one in self._registered_by((home, names[0]), method)]
            return [one[:2] for one in found] if len(found) <= _SHELF else []
        found = self._registered_by((home, names[0]))
        meant = [one for one in found if one[2] in ("", key)] if key else found
        return [one[:2] for one in meant or found]

    def registered_outside(self, package: str, what: str, *, named: bool) -> list[tuple[str, str]]:
        """The classes and functions, each a file and a name there, that files of the project register with an object
        of the library `package`, or of its family, by a decorator that says so: with that of which the name tells
        `what`, or, unless it is `named`, any; none where too much is there to tell what is meant. Of another package of
        the family it is what is registered only where its own registries hold nothing of the kind."""
        programs = self.library.facts.programs
        families = programs.family_of
        family = families(package)
        if family not in self._outside:
            self._outside[family] = [
                (decorator.partition(".")[0], decorator.rpartition(".")[0].rpartition(".")[2].lower(), path, definition)
                for path in sorted(self._in_reach)
                if any(families(dotted.partition(".")[0]) == family for dotted in self.outline(path).imports)
                for decorator, definition, _ in self.summary(path).registered
                if families(decorator.partition(".")[0]) == family and "egist" in decorator.rpartition(".")[2]
            ]
            self.registering.update(path for _, _, path, _ in self._outside[family])
        found = self._outside[family]
        meant = [one for one in found if what in one[1]] or ([] if named else found)
        meant = [one for one in meant if programs.takes_from(package, one[0])] or meant
        return [(path, definition) for _, _, path, definition in meant] if len(meant) <= _SHELF else []

    def _registered_by(self, registry: tuple[str, str], method: str = "") -> list[tuple[str, str, str]]:
        """What is registered with `registry`, by its `method` if that is named, each with its key, where that is
        known."""
        home, name = registry
        key = home, name, method
        if key not in self._registered:
            self._registered[key] = []
            told = [one.partition(KEY) for one in self.summary(home).registers.get(name, ())]
            registers = {function: how for function, _, how in told}
            words = {name, PurePath(home).stem, PurePath(home).parent.name, *registers}
            paths = self._importing(words) | {home}
            self._registered[key] = [
                (path, definition, _key(name, decorator, registers, given, definition))
                for path in sorted(paths)
                for decorator, definition, given in self.summary(path).registered
                if decorator.endswith(f".{method}" if method else "")
                and self._registers(path, decorator, registry, registers)
            ]
            self.registering.update(path for path, _, _ in self._registered[key])
        return self._registered[key]

    def _importing(self, words: set[str]) -> set[str]:
        """The files, listed or imported by a few that are, that import something of which the last word is one of
        `words`."""
        if self._importers is None:
            self._importers = {}
            for path in self._in_reach:
                for dotted in self.outline(path).imports:
                    self._importers.setdefault(dotted.rpartition(".")[2], set()).add(path)
        return set().union(*(self._importers.get(word, ()) for word in words))

    @functools.cached_property
    def _in_reach(self) -> frozenset[str]:
        """The listed files, and what they import in turn, where they are few: a program that is linted alone has what
        its imports register."""
        found = set(self.listed)
        queue = sorted(found) if len(found) <= _FEW else []
        while queue:
            following = {one for one in self.imported(queue.pop()) if self.is_source(one)} - found
            queue += sorted(following)
            found |= following
        return frozenset(found)

    def naming(self, file: str, name: str) -> list[str]:
        """The listed files that import something called `name`, and `file` itself, in order."""
        return sorted((self._importing({name}) | {file}) & self.listed)

    def _registers(self, file: str, decorator: str, registry: tuple[str, str], functions: Container[str]) -> bool:
        """Whether `decorator` registers with `registry`: it is of that object, or one of the `functions` beside it."""
        if decorator.startswith("@."):
            home, names = self.home(file, decorator[2:].split("."))
        else:
            place = self.locate(decorator, file)
            if place is None or not place.rest:
                return False
            home, names = self.home(place.path, list(place.rest))
        return home == registry[0] and (names[0] == registry[1] or (len(names) == 1 and names[0] in functions))

    def home(self, file: str, tokens: list[str]) -> tuple[str, list[str]]:
        """The module that binds the first of `tokens`, which the module `file` may only import, and its name there."""
        for _ in range(_IMPORTED_THROUGH):
            names = self.summary(file).stands_for(tokens[0]) if self.is_source(file) else ()
            if len(names) != 1 or names[0][0] in "@$*?%" or names[0].endswith(")"):
                break
            place = self.locate(names[0], file)
            following = [*place.rest, *tokens[1:]] if place is not None else []
            if place is None or not following:
                break
            file, tokens = place.path, following
        return file, tokens

    def configs_of(self, file: str) -> tuple[tuple[str, str], ...]:
        """Folder and name of the configurations that `hydra.main` in `file` is told."""
        if file not in self._configs:
            self._configs[file] = self.summary(file).configs if "hydra" in self.text(file) else ()
        return self._configs[file]

    def instantiates(self, file: str, name: str, body: Body) -> list[Event]:
        """The calls of Hydra's `instantiate` in the function `name` of `file`."""
        if (file, name) not in self._instantiates:
            words = self._vocabulary.programs.instantiates
            self._instantiates[file, name] = [
                event for event in body.events if event.kind == "call" and event.names[0] in words and event.positional
            ]
        return self._instantiates[file, name]

    def configured(self, file: str, path: str) -> list[dict[str, Any]]:
        """What the configurations of the programs in `file` have at `path`, mappings: behind the attribute in which an
        object keeps the whole, as `self.cfg.model`, where there is nothing else."""
        configs, keys = self.configs_of(file), path.split("/")
        return self.configs.at(file, configs, keys) or self.configs.at(file, configs, keys[1:] or keys)

    def named_by(self, keys: str) -> list[str]:
        """The dotted texts that YAML of the project has under `keys`, as braces of names hold them, and those that an
        option, a field or an entry of that name is. What the first key of `arg~/model` stands for may be the whole."""
        first, *rest = keys.split("/")
        path = (first.removesuffix("~"), *rest)
        known = self._named.get(path[-1], [])
        found = [text for at, text in known if at[-len(path) :] == path]
        if not found and first.endswith("~") and rest:
            found = [text for at, text in known if tuple(rest) in (at, at[1:])]
        return list(dict.fromkeys(found))

    def leads_to_names(self, keys: str) -> bool:
        """Whether what YAML of the project has under `keys` may hold a dotted text, or may be all of it."""
        first, *rest = keys.split("/")
        below = {tuple(rest), (first[:-1], *rest)} if first[-1] == "~" else {(first, *rest)}
        return () in below or not below.isdisjoint(self._paths)

    @functools.cached_property
    def _paths(self) -> frozenset[tuple[str, ...]]:
        """The keys, as many as follow on each other, that lead to a dotted text or to what holds one."""
        return frozenset(
            at[start:end]
            for known in self._named.values()
            for at, _ in known
            for start in range(len(at))
            for end in range(start + 1, len(at) + 1)
        )

    @functools.cached_property
    def _named(self) -> dict[str, list[tuple[tuple[str, ...], str]]]:
        """By the last key, the keys that lead to dotted texts, the folder of the file first, and these texts."""
        found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        folders = sorted({str(PurePath(path).parent) for path in self.listed})
        for at, text in (*self.configs.texts(folders), *self._defaults()):
            found.setdefault(at[-1], []).append((at, text.replace(":", ".")))
        return found

    def _defaults(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """The dotted texts in the listed files that options of a command line have by default, and those that fields
        and entries are."""
        for path in sorted(self.listed):
            text = self.text(path)
            for match in _QUOTED.finditer(text):
                before = _NAMES_TEXT.search(text, max(match.start() - _BEFORE, 0), match.start())
                if before is not None:
                    yield ("", (before[1] or before[2]).replace("-", "_")), match[1]

    def written(self, file: str, table: str, path: list[str]) -> list[dict[str, Any]]:
        """The mapping at `path` of a dictionary that `file` writes out at the place `table`, `=12:4`."""
        found = part_at(self.summary(file).written(table.removeprefix(WRITTEN)), path)
        return [found] if isinstance(found, dict) else []


def _optimised(body: Body) -> frozenset[str]:
    """Whose parameters a function takes that makes an optimizer: `$net`, or `models.Net()` of its `.parameters()`."""
    names = [name for event in body.events if event.kind == "call" for name in event.names]
    if not any(map(_OPTIMIZER.match, names)):
        return frozenset()
    return frozenset(name.rpartition(".")[0] for name in names if name.endswith((".parameters", ".named_parameters")))


def _key(name: str, decorator: str, registers: Mapping[str, str], given: Names, definition: str) -> str:
    """The key under which `decorator` registers a definition with the registry called `name`: what a method of that is
    given, or as the function beside the dictionary makes it."""
    owner, _, word = decorator.rpartition(".")
    if word not in registers and owner.rpartition(".")[2] == name:
        return key_told(given, definition)
    return key_given(registers.get(word, ""), given, definition)
