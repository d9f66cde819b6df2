"""A dotted name in one file -> the module of the other file that defines it, and what is left of the name."""

from __future__ import annotations

import functools
import itertools
import os
import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.module.module import Module, SyntaxFault
from torchdet_lint.prefilter.option_values import given_in_code, given_in_data
from torchdet_lint.regex import lazy
from torchdet_lint.source import data_files
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.modules import Relied, namesake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Target
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.source.modules import Contents, ModuleMap

_HOPS = 5
_FILES = 64
# So many reads of one name in a file are told.
_READS = 40
# So many folders are looked through for callers and readers, that of a file and those above it, and so often.
_ABOVE = 3
_LOOKS = 16
# Of more folders that lie in one folder none is looked through.
_BESIDE = 12
# So many folders are looked through for files of data that may give an option.
_FOLDERS = 200
_IMPORTS = lazy(rb"\bimport\b\s*(?:\([^)]*\)|(?:[^\r\n\\]|\\\r?\n)*)")
_WORDS = lazy(rb"\w+")
# What stands before a dot: the name, and the one before that; of so many bytes.
_OWNER = lazy(rb"(?:(\w+)\.)?(\w+)\Z")
_OWNED = 120
# What changes a dictionary, behind its name.
_CHANGES = rb"\s*(?:(?:\[[^\]\n]*\])+\s*[-+|*/]?=[^=]|\.(?:update|setdefault|pop|clear|popitem)\s*\(|\s\|=)"


class Neighbours:
    """The files that the values of one file go to. Paths are absolute; `relied` are the looks at them so far."""

    def __init__(
        self,
        library: Library,
        target: Target,
        modules: ModuleMap,
        contents: Contents,
        foreign: Callable[[str, str], Any] | None = None,
        defined: Callable[[str, str], tuple[str, str, str] | None] | None = None,
    ) -> None:
        """`foreign` tells what a function of the project returns, by what a file calls it, and `defined` where the
        project defines that: path, text, and the name there."""
        self.library = library
        self._foreign = foreign
        self._defined = defined
        self.target = target
        self.modules = modules
        self.relied: set[Relied] = set()
        self._contents = contents
        self._known: dict[str, tuple[str, Module | None]] = {}
        self._around: dict[str, Surroundings] = {}
        self._folders: dict[str, Relied] = {}
        self._data: dict[str, Any] = {}
        self._options: dict[tuple[str, str], frozenset[str] | None] = {}

    def find(self, name: str, file: str, hops: int = _HOPS) -> tuple[Module, str] | None:
        """The module that defines what `file` calls `name`, followed through imports of other files, and what it is
        called there: `Class.method`. None where that is neither defined nor assigned in the project."""
        place = self.modules.locate(name, file)
        path = place.path if place is not None else ""
        content, module = self._module(path) if path.endswith(".py") else ("", None)
        self.relied.add(Relied(file, name, path, content))
        if module is None or place is None or hops <= 0:
            return None
        parts = place.rest or namesake(name, path)
        if not parts:
            return None
        head, *rest = parts
        bindings = module.scope.bindings.get(head.removesuffix("()"), ())
        if bindings and bindings[-1].kind in ("def", "class"):
            return module, ".".join(parts)
        if bindings and bindings[-1].kind == "import":
            tail = "()" if head.endswith("()") else ""
            return self.find(".".join([bindings[-1].target + tail, *rest]), path, hops - 1)
        if len(parts) == 1 and re.search(rf"(?:\A|[\r\n]){re.escape(head)}\b[^\r\n=]*=", module.text):
            return module, head
        for star in module.scope.stars:
            found = self.find(f"{star}{'.' if star.strip('.') else ''}{'.'.join(parts)}", path, hops - 1)
            if found is not None:
                return found
        return None

    def heirs(self, class_: str, file: str) -> list[tuple[Module, Class]]:
        """The classes of the other files around `file` that derive from its `class_`, and their files."""
        derives = re.compile(rb"^class \w+[ \t]*\([^)\n]*\b" + class_.encode() + rb"\b", re.MULTILINE)
        return [
            (module, one)
            for folder in self.around(file).folders
            for module in self.in_folder(folder, file, class_.encode(), derives.search)
            for one in module.classes.values()
            if self._is_heir(module, one, class_, file)
        ]

    def around(self, file: str) -> Surroundings:
        """The files around `file`."""
        if file not in self._around:
            self._around[file] = Surroundings(self, file)
        return self._around[file]

    def beginning_with(self, name: str, file: str) -> list[str]:
        """The modules of the project whose names, as `file` has them, begin with `name`: `data.` or `.set_`."""
        begins = name.rpartition(".")[2]
        package = name.removesuffix(begins)
        package = package.removesuffix(".") if package.strip(".") else package
        if not package:
            return []
        for folder in self.modules.folders_of(package, file, self.modules.locate(package, file)):
            self.relied.add(self._looked_at(folder))
            found = [one.removesuffix(".py") for one in self.modules.python_files(folder) if one.startswith(begins)]
            if found:
                return [f"{name.removesuffix(begins)}{one}" for one in found if one != "__init__"]
        return []

    def in_folder(self, folder: str, file: str, word: bytes, wanted: Callable[[bytes], object]) -> Iterator[Module]:
        """The files of `folder` other than `file` with `word` in them of whose text `wanted` is true."""
        self.relied.add(self._looked_at(folder))
        for name in self.modules.python_files(folder):
            path = f"{folder}{os.sep}{name}"
            if path == file:
                continue
            data, _ = self._contents.of(path)
            found = data is not None and word in data and wanted(data)
            module = self._module(path)[1] if found else None
            if module is not None:
                yield module

    def _looked_at(self, folder: str) -> Relied:
        """A look at all files of a folder."""
        if folder not in self._folders:
            self._folders[folder] = Relied("", "", folder, self._contents.folder(folder))
        return self._folders[folder]

    def having(self, folders: Iterable[str], *words: bytes) -> Iterator[str]:
        """The files of `folders` that have the bytes of all `words`."""
        for folder in folders:
            self.relied.add(self._looked_at(folder))
            for name in self.modules.python_files(folder):
                path = f"{folder}{os.sep}{name}"
                data = self._contents.of(path)[0] or b""
                if all(word in data for word in words):
                    yield path

    def changed(self, name: str, file: str, but: str) -> bool:
        """Whether a file around `file` changes the dictionary that it binds to `name`, neither itself nor `but`."""
        word = name.encode()
        changes = re.compile(rb"(?<!\w)" + re.escape(word) + _CHANGES)
        for folder in self.around(file).folders:
            self.relied.add(self._looked_at(folder))
            for one in self.modules.python_files(folder):
                path = f"{folder}{os.sep}{one}"
                data = self._contents.of(path)[0] if path not in (file, but) else None
                if data is not None and word in data and changes.search(data):
                    return True
        return False

    def registers(self, name: str, file: str) -> bool:
        """Whether a file around `file`, not itself, calls its function `name`, or decorates something with it."""
        calls = re.compile(rb"(?:@[\w.]*(?<!\w)%b\b|(?<!\w)%b[ \t]*\()" % (name.encode(), name.encode()))
        for path in self.having(self.around(file).folders, name.encode()):
            if path != file and calls.search(self._contents.of(path)[0] or b""):
                return True
        return False

    def option(self, word: str, file: str) -> frozenset[str] | None:
        """The sources of the values that the files around `file`, it and those of data among them, give to options
        called `word`: an empty one where nobody can tell; None where there are too many files, or the command line
        gives the fields of a class."""
        if (word, file) not in self._options:
            self._options[word, file] = self._given(word, file)
        return self._options[word, file]

    def _given(self, word: str, file: str) -> frozenset[str] | None:
        command_line, found = self.library.facts.workers.fields, set[str]()
        for folder in self.around(file).folders:
            self.relied.add(self._looked_at(folder))
            for name in self.modules.python_files(folder):
                data = self._contents.of(f"{folder}{os.sep}{name}")[0] or b""
                if any(one.encode() in data for one in command_line):
                    return None
                if word.encode() in data or word.replace("_", "-").encode() in data:
                    found.update(given_in_code(word, data.decode(errors="replace")))
        # Files of data decide only where the code leaves a constant.
        folders = self._below(self.around(file).folders) if len(found) == 1 else ()
        for folder in folders or ():
            pattern = os.path.join(folder, "*")
            meant = self.modules.meant(pattern)
            self.relied.add(Relied("", "", pattern, data_files.state(meant, lambda path: self._contents.of(path)[1])))
            if len(meant) < len(data_files.names(self.modules.listing(folder))):
                return None
            for path in meant:
                data = self._contents.of(path)[0] or b""
                found.update(given_in_data(word, data.decode(errors="replace")) if word.encode() in data else ())
        return frozenset(found) if folders is not None else None

    def _below(self, folders: Iterable[str]) -> list[str] | None:
        """`folders` and those in them; None where there are too many."""
        queue = list(folders)
        found = dict.fromkeys(queue)
        while queue and len(found) <= _FOLDERS:
            folder = queue.pop()
            below = [os.path.join(folder, name[:-1]) for name in self.modules.listing(folder) if name[-1:] == "/"]
            new = [one for one in sorted(below) if one not in found and not os.path.basename(one).startswith(".")]
            found.update(dict.fromkeys(new))
            queue += new
        return list(found) if not queue else None

    def _is_heir(self, module: Module, one: Class, class_: str, file: str) -> bool:
        """Whether the class `one` of `module` names `class_` of `file` as its base."""
        bases = [self.find(full, module.source.path) for full in module.base_names(one)]
        return any(place is not None and (place[0].source.path, place[1]) == (file, class_) for place in bases)

    def own(self, package: str, file: str) -> bool:
        """Whether `package` is the project's own, as those see it who sort the imports of `file`."""
        path = self._looked_up(package, file)
        return bool(path) and self.modules.own(path, file)

    def shadowed(self, name: str, file: str) -> bool:
        """Whether `name`, of the standard library, is the project's own module where `file` imports it."""
        first = name.partition(".")[0]
        return bool(self._looked_up(first, file)) and self.modules.shadowed(first, file)

    def _looked_up(self, name: str, file: str) -> str:
        """The path of the module of the project that `name` means in `file`, empty for none; the look is relied on."""
        place = self.modules.locate(name, file)
        path = place.path if place is not None else ""
        content = self._contents.of(path)[1] if path.endswith(".py") else ""
        self.relied.add(Relied(file, name, path, content))
        return path

    def data(self, path: str, file: str) -> list[Any]:
        """What the files of YAML, JSON and TOML hold that `file` may read by `path`, from where it lies or from the
        root of the project: absolute or not, and with a `*` in the name for any text."""
        places = dict.fromkeys((os.path.dirname(file), self.modules.root))
        found = []
        for one in dict.fromkeys(os.path.normpath(os.path.join(place, path)) for place in places):
            meant = self.modules.meant(one)
            self.relied.add(Relied("", "", one, data_files.state(meant, lambda path: self._contents.of(path)[1])))
            found += [self._parsed(path) for path in meant]
        return found

    def _parsed(self, path: str) -> Any:
        if path not in self._data:
            text = (self._contents.of(path)[0] or b"").decode(errors="replace")
            self._data[path] = data_files.parsed(text, os.path.splitext(path)[1])
        return self._data[path]

    def _module(self, path: str) -> tuple[str, Module | None]:
        """The hash of a file ("": it cannot be read), and the file where it is Python."""
        if path not in self._known:
            if len(self._known) >= _FILES:
                return "", None
            data, content = self._contents.of(path)
            module: Module | None = None
            if data is not None:
                try:
                    module = Module(decode(path, data), self.library, self.target, frozenset())
                except (SourceFault, SyntaxFault):
                    module = None
            if module is not None:
                module.neighbour = lambda name: self.find(name, path)
                module.changed = lambda name, file: self.changed(name, file, path)
                module.heirs = lambda name: self.heirs(name, path)
                module.callers = lambda name: self.around(path).callers(name)
                module.registers = lambda name: self.registers(name, path)
                if (foreign := self._foreign) is not None:
                    module.foreign = lambda name: foreign(name, path)
                if (defined := self._defined) is not None:
                    module.defined = lambda name, file: defined(name, file or path)
            self._known[path] = content, module
        return self._known[path]

    def release(self) -> None:
        """Let go of all files."""
        for _, module in self._known.values():
            if module is not None:
                module.release()
        self._known.clear()
        self._around.clear()
        self._folders.clear()
        self._data.clear()
        self._options.clear()


class Surroundings:
    """The files around one file, which may import it: those of its folder, of the folders above it, and of the folders
    in these."""

    def __init__(self, neighbours: Neighbours, file: str) -> None:
        self.neighbours = neighbours
        self.file = file
        self._left = _LOOKS
        self._callers: dict[str, list[tuple[Module, Call]]] = {}
        self._methods: dict[str, list[Call]] = {}
        self._of_class: dict[tuple[str, str], list[tuple[Module, Call]]] = {}
        self._named: dict[str, list[Module]] = {}

    def callers(self, name: str) -> list[tuple[Module, Call]]:
        """The calls of the function or class `name` of the file, and their files."""
        if name not in self._callers:
            self._callers[name] = [
                (module, call)
                for module in self._naming(name, functools.partial(_may_call, name.encode()))
                for call in module.calls
                if any(self._means(own, name, module) for own in self._called(call, name, module))
            ]
        return self._callers[name]

    def methods(self, name: str) -> list[Call]:
        """The calls of a method `name` of whatever object."""
        if name not in self._methods:
            called = re.compile(rb"\." + name.encode() + rb"\b")
            files = self._named[name] if name in self._named else self._naming(name, called.search)
            self._methods[name] = [call for module in files for call in module.calls if call.attribute == name]
        return self._methods[name]

    def methods_of(self, class_: str, name: str) -> list[tuple[Module, Call]]:
        """The calls of the method `name` of objects that are evidently made of the `class_` of the file, and their
        files."""
        if (class_, name) not in self._of_class:
            called = f".{class_}().{name}"
            found = self._of_class[class_, name] = []
            for module in self._naming(class_, functools.partial(_may_call, class_.encode())):
                module.load_where(word=name)
                for call in module.calls:
                    makers = [own[: -len(f"().{name}")] for own in call.own if own.endswith(called)]
                    if call.attribute == name and any(self._means(maker, class_, module) for maker in makers):
                        found.append((module, call))
        return self._of_class[class_, name]

    def _called(self, call: Call, name: str, module: Module) -> list[str]:
        """The dotted names ending in `name` that `call` may mean: of modules taken whole if nothing binds it."""
        if call.own or not (isinstance(call.node.func, cst.Name) and call.node.func.value == name):
            names = call.own or (_in_table(call, module) if isinstance(call.node.func, cst.Subscript) else ())
            return [own for own in names if own.endswith(f".{name}")]
        return taken_whole(call.node.func, module)

    def readers(self, name: str) -> list[tuple[Module, cst.Name | cst.Attribute]]:
        """Where other files read what the file binds to `name` at top level, and these files."""
        found: list[tuple[Module, cst.Name | cst.Attribute]] = []
        for module in self._files_naming(name):
            reads: list[cst.Name | cst.Attribute] = []
            for word in _called(name, module):
                module.load_where(word=word)
                reads += module.shared(Reads).of(None, word)
            for unit in module.holding(name):
                reads += module.attributes_under(unit.root, name) if unit.root is not None else ()
            found += [
                (module, read)
                for read in reads[:_READS]
                if any(self._means(own, name, module) for own in module.resolve(read))
            ]
        return found

    def naming(self, name: str, most: int) -> list[Module] | None:
        """The files in which `name` stands; None where these are more than `most`, or nobody looks any more."""
        known = name in self._named or self._left > 0
        having = self.neighbours.having(self.folders, name.encode()) if known else ()
        if not known or sum(1 for _ in itertools.islice(having, most + 1)) > most:
            return None
        return self._files_naming(name)

    def speaking(self, *words: str) -> bool:
        """Whether one of the files has all `words`."""
        return any(self.neighbours.having(self.folders, *(word.encode() for word in words)))

    def _files_naming(self, name: str) -> list[Module]:
        """The files in which `name` stands as a word."""
        if name not in self._named:
            self._named[name] = list(self._naming(name, re.compile(rb"\b" + name.encode() + rb"\b").search))
        return self._named[name]

    def _naming(self, name: str, wanted: Callable[[bytes], object]) -> Iterator[Module]:
        """The files in which `name` stands, of which `wanted` says so, so far as it is parsed there."""
        self._left -= 1
        for folder in self.folders if self._left >= 0 else ():
            for module in self.neighbours.in_folder(folder, self.file, name.encode(), wanted):
                module.load_where(word=name)
                yield module

    @functools.cached_property
    def folders(self) -> tuple[str, ...]:
        """The folder of the file, those above it, and the few that lie beside it or one of those."""
        modules = self.neighbours.modules
        folder, found, below = os.path.split(self.file)[0], list[str](), list[str]()
        while len(found) < _ABOVE and len(folder) >= len(modules.root):
            found.append(folder)
            inner = (os.path.join(folder, name[:-1]) for name in sorted(modules.listing(folder)) if name[-1:] == "/")
            beside = [one for one in inner if one not in found and modules.python_files(one)]
            below += beside if len(beside) <= _BESIDE else ()
            folder = os.path.split(folder)[0]
        return tuple(dict.fromkeys((*found, *below)))

    def _means(self, own: str, name: str, module: Module) -> bool:
        """Whether what `module` calls `own` is what the file defines as `name`."""
        place = self.neighbours.find(own, module.source.path) if not own.startswith("@.") else None
        return place is not None and (place[0].source.path, place[1]) == (self.file, name)


def _in_table(call: Call, module: Module) -> list[str]:
    """What a call may mean that takes what it calls from a dictionary in sight: `trainers[kind](model)`."""
    assert isinstance(call.node.func, cst.Subscript)
    entries = module.dictionary(call.node.func.value, call.scope, call.order) or {}
    return [name for value in entries.values() for name in module.resolve(value.node)]


def _may_call(name: bytes, text: bytes) -> bool:
    """Whether the file of `text` may call what another file defines as `name`: it imports that, takes all of a module,
    or asks a name that it imports for it."""
    spoken = b" ".join(_IMPORTS.findall(text))
    imported = {*_WORDS.findall(spoken)}
    if name in imported or b"*" in spoken:
        return True
    asked = re.finditer(rb"\." + name + rb"\b", text)
    owners = (_OWNER.search(text, max(one.start() - _OWNED, 0), one.start()) for one in asked)
    return any(owner is not None and not imported.isdisjoint(owner.groups()) for owner in owners)


def taken_whole(node: cst.BaseExpression, module: Module) -> list[str]:
    """The dotted names that a name which nothing in `module` binds may mean: of the modules that it takes whole."""
    name = node.value if isinstance(node, cst.Name) else ""
    return [f"{star}{'.' if star.strip('.') else ''}{name}" for star in module.scope.stars] if name else []


def _called(name: str, module: Module) -> list[str]:
    """What `module` may call what another file binds to `name`: that, or what it imports it as."""
    bound = module.scope.bindings.items() if f"{name} as " in module.text else ()
    others = [
        word
        for word, bindings in bound
        if word != name and any(one.kind == "import" and one.target.rpartition(".")[2] == name for one in bindings)
    ]
    return [name, *sorted(others)]
