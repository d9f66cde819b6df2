"""A dotted name, as seen from a file of the project -> the file of it that the name means."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import os
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.regex import lazy
from torchdet_lint.source import data_files
from torchdet_lint.source.cache import content_hash
from torchdet_lint.source.import_paths import added_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# A file of the project may have the name of a package that everybody means otherwise: `utils/torch.py`.
_LIBRARIES = frozenset({"torch", "numpy", "torchvision", "transformers", "scipy", "sklearn", "pandas"})
STANDARD = frozenset(sys.stdlib_module_names)
# What every interpreter has built in, or has imported before the first line of a script: no file stands before it.
_FIRST = frozenset(
    "abc builtins codecs errno gc io itertools marshal ntpath os posix posixpath site stat sys time".split()
)
# So many files of a folder are looked through for what has to do with one of them.
_FILES = 40
# So many files may be meant by a name that only the run knows whole.
_CHOICES = 12
# So many bytes of files that are looked at from others are kept.
_KEPT_BYTES = 1 << 25
# A file that is imported for the folders that it adds to `sys.path`; of so many it is asked.
_IMPORTED_PATHS = lazy(rb"^[ \t]*(?:import|from)[ \t]+(\w*path\w*)\b", re.MULTILINE)
_PATH_FILES = 3
# Where packages lie by other names: `package_dir={"facenet_pytorch": "."}`.
_PACKAGE_DIR = lazy(r"(?m)^[^#\n]*\bpackage_dir\s*=\s*\{([^{}]*)\}")
_MAPPED = lazy(r"[\"']([\w.]*)[\"']\s*:\s*[\"']([\w./-]*)[\"']")
_RELATIVE = lazy(rb"^[ \t]*from[ \t]+\.", re.MULTILINE)
TEST_FILE = lazy(r"(?:test_.*|.*_test|conftest)\.py")
"""The name of a file of tests."""
_INSTALLS = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
# A part of a dotted name holds no dot.
_NAMES = lazy(r"[^.]*(?:\.py|/)|.*\.ya?ml", re.DOTALL)


class Place(NamedTuple):
    """A module, and what of the dotted name is left: attributes of it. `path` is a file, or a folder without an
    `__init__.py`."""

    path: str
    rest: tuple[str, ...] = ()


class Relied(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A look at another file: the file that named it, the dotted name, where that led ("": nowhere), and the hash of
    what was found there ("": no file, or one that cannot be read). Or, without file and name, a look at the folder
    `path`, and the hash of what its files are, or at the files of data that `path` may mean, as `ModuleMap.meant`."""

    file: str
    name: str
    path: str = ""
    content: str = ""


def may_be_shadowed(name: str) -> bool:
    """Whether a file beside a script may stand before the module `name` of the standard library."""
    return name in STANDARD and name not in _FIRST


def namesake(dotted: str, path: str) -> tuple[str, ...]:
    """What a name such as `Net.Net` may mean in the module `Net/Net.py`, its definition of that name: what is called so
    in a script beside the module, though `Net` is a package too."""
    folder, base = os.path.split(path)
    name = base.removesuffix(".py")
    return (name,) if dotted.endswith(f"{name}.{name}") and os.path.basename(folder) == name else ()


class ModuleMap:
    """Finds modules on disk below `root`, one listing a folder. Paths are absolute."""

    def __init__(self, root: str, given: Iterable[str] = (), read: Callable[[str], bytes | None] | None = None) -> None:
        """`given` are files that are not on disk, but may be imported as if they were. `read` gives the bytes of a
        file, which may add places to import from to `sys.path`."""
        self.root = root
        self._read = read
        self._added: dict[str, tuple[str, ...]] = {}
        self._given: dict[str, set[str]] = {}
        for path in given:
            name = os.path.basename(path)
            while len(path) > len(root):
                folder = os.path.dirname(path)
                self._given.setdefault(folder, set()).add(name)
                path, name = folder, f"{os.path.basename(folder)}/"
        self._listings: dict[str, frozenset[str]] = {}
        self._found: dict[tuple[str, str], Place | None] = {}
        self._python_files: dict[str, tuple[str, ...]] = {}
        self._folders: dict[str, str] = {}
        self._packages: dict[str, tuple[str, ...]] = {}

    def listing(self, folder: str) -> frozenset[str]:
        """The names in `folder`, folders with a slash at the end."""
        known = self._listings.get(folder)
        if known is None:
            try:
                with os.scandir(folder) as entries:
                    known = frozenset(entry.name + "/" if entry.is_dir() else entry.name for entry in entries)
            except (OSError, ValueError):
                known = frozenset()
            known = (known - {"__pycache__/"}) | self._given.get(folder, frozenset())
            self._listings[folder] = known
        return known

    def python_files(self, folder: str) -> tuple[str, ...]:
        """The names in `folder` that end in `.py`, in order: as many as are looked through."""
        known = self._python_files.get(folder)
        if known is None:
            known = tuple(sorted(name for name in self.listing(folder) if name.endswith(".py"))[:_FILES])
            self._python_files[folder] = known
        return known

    def meant(self, path: str) -> tuple[str, ...]:
        """The files of data that `path` may mean, absolute but for a `*` in the name, which stands for any text; none
        where there are too many."""
        folder, name = os.path.split(path)
        if not (folder + os.sep).startswith(self.root.rstrip(os.sep) + os.sep):
            return ()
        listed = self.listing(folder)
        found = fnmatch.filter(data_files.names(listed), name) if "*" in name else [name] * (name in listed)
        return tuple(os.path.join(folder, one) for one in found) if len(found) <= _CHOICES else ()

    @property
    def folders(self) -> list[str]:
        """The folders that were listed so far, in order."""
        return sorted(self._listings)

    def state(self, folder: str) -> str:
        """A hash of the names in `folder` on which the meaning of a dotted name, or a look for YAML, may hang."""
        names = sorted(filter(_NAMES.fullmatch, self.listing(folder)))
        return content_hash("\0".join(names).encode(errors="surrogatepass"))

    def locate(self, dotted: str, file: str) -> Place | None:
        """The module that `dotted` (absolute, or with leading dots) means in `file`, which may add to `sys.path`; None:
        not of this project."""
        found = self.beside(dotted, file)
        folders = self._adds(file) if found is None and not dotted.startswith(".") else ()
        first = dotted.partition(".")[0]
        if not folders or first in STANDARD or first in _LIBRARIES:
            return found
        key = (file, dotted)
        if self._found.get(key) is None:
            self._found[key] = self.added(folders, dotted, file)
        return self._found[key]

    def folders_of(self, package: str, file: str, place: Place | None) -> Iterator[str]:
        """The folders that may be the package which `file` calls `package`: where an import of it leads, `place`, or
        one of that name in a folder around the file."""
        if place is not None and not place.rest:
            yield place.path.removesuffix(f"{os.sep}__init__.py")
        base = os.path.dirname(file) if package.strip(".") == package else ""
        while base.startswith(self.root):
            yield os.path.join(base, *package.split("."))
            base = os.path.dirname(base) if base != self.root else ""

    def beside(self, dotted: str, file: str) -> Place | None:
        """The module that `dotted` means in `file`, by where that lies alone."""
        folder = self._folders.get(file)
        if folder is None:
            folder = self._folders[file] = os.path.dirname(file)
        relative = dotted.startswith(".")
        if not relative and self._is_found_beside(dotted.partition(".")[0], folder, file):
            place = self._descend(folder, tuple(dotted.split(".")), top=True)
            if place is not None and place.path != file:
                return place
        key = (folder, dotted)
        if key not in self._found:
            self._found[key] = self._relative(dotted, folder) if relative else self._absolute(dotted, folder)
        found = self._found[key]
        if found is None or found.path != file or dotted.startswith("."):
            return found
        # No module imports itself: another of that name is meant, unless it is started and defines what is asked for.
        key = (file, dotted)
        if key not in self._found:
            other = self._absolute(dotted, folder, own=file)
            self._found[key] = found if other is None and self._defines(file, found.rest) else other
        return self._found[key]

    def _defines(self, file: str, names: tuple[str, ...]) -> bool:
        """Whether `file` says what it does when it is started, and defines the first of `names`."""
        defined = rf"(?m)^(?:class|def) {re.escape(names[0])}\b".encode() if names else b""
        return bool(defined) and self._is_script(file) and re.search(defined, self._bytes(file)) is not None

    def shadowed(self, dotted: str, file: str) -> bool:
        """Whether a module of the project stands before the one of the standard library that `dotted` names: it lies
        beside `file`, and programs are started there."""
        first = dotted.partition(".")[0]
        folder = os.path.dirname(file)
        if not may_be_shadowed(first) or os.path.basename(file) == f"{first}.py" or not self._holds(folder, first):
            return False
        return "__init__.py" not in self.listing(folder) and (folder == self.root or self._is_script(file))

    def _is_found_beside(self, first: str, folder: str, file: str) -> bool:
        """Whether `first` is what lies beside `file`, a script in the folder of a package: it imports nothing relative
        to itself, so it is started there."""
        if "__init__.py" not in self.listing(folder) or first in STANDARD or first in _LIBRARIES:
            return False
        if not self._holds(folder, first) or not self._is_script(file):
            return False
        return _RELATIVE.search(self._bytes(file)) is None

    def _is_script(self, file: str) -> bool:
        """Whether `file` says what it does when it is started."""
        return b"__main__" in self._bytes(file)

    def _bytes(self, file: str) -> bytes:
        return (self._read(file) or b"") if self._read is not None else b""

    def _holds(self, folder: str, name: str) -> bool:
        """Whether `folder` holds the module or the package `name`."""
        listed = self.listing(folder)
        return f"{name}.py" in listed or (
            f"{name}/" in listed and "__init__.py" in self.listing(os.path.join(folder, name))
        )

    def added(self, folders: Iterable[str], dotted: str, file: str) -> Place | None:
        """The module that `dotted` means in `file`, which adds `folders` of the project to `sys.path`: relative to
        where it lies, or to where the program is started."""
        for added in folders:
            for base in (os.path.dirname(file), self.root):
                folder = os.path.normpath(os.path.join(base, added))
                if (folder + os.sep).startswith(self.root + os.sep):
                    place = self._descend(folder, tuple(dotted.split(".")), top=True)
                    if place is not None and place.path != file:
                        return place
        return None

    def below(self, folder: str, dotted: str) -> Place | None:
        """The module that an absolute name means where `folder` is on the path."""
        return self._descend(folder, tuple(dotted.split(".")), top=True)

    def _adds(self, file: str) -> tuple[str, ...]:
        """The folders that `file` adds to `sys.path`, as it writes them."""
        known = self._added.get(file)
        if known is None:
            data = self._read(file) if self._read is not None and file.endswith(".py") else None
            told = [data or b"", *self._beside_that_add(file, data or b"")]
            texts = [one.decode(errors="replace") for one in told if b"sys.path." in one]
            known = self._added[file] = tuple(folder for text in texts for folder in added_paths(text))
        return known

    def _beside_that_add(self, file: str, data: bytes) -> Iterator[bytes]:
        """What is in the files beside `file` that it imports to find others: `import _init_paths`."""
        folder = os.path.dirname(file)
        names = (match[1].decode(errors="replace") for match in _IMPORTED_PATHS.finditer(data))
        for name in itertools.islice(dict.fromkeys(names), _PATH_FILES):
            path = os.path.join(folder, f"{name}.py")
            if f"{name}.py" in self.listing(folder) and path != file and self._read is not None:
                yield self._read(path) or b""

    def own(self, path: str, file: str) -> bool:
        """Whether the module or package `path` is what sorters of imports take for the project's, where they meet it
        in `file`: it holds the file, or it lies in `root` or in a `src` there."""
        module = os.path.dirname(path) if path.endswith("__init__.py") else path
        places = (self.root, os.path.join(self.root, "src"))
        return file.startswith(module + os.sep) or os.path.dirname(module) in places

    def packages(self, path: str) -> tuple[str, ...]:
        """The `__init__.py` of the packages that the module `path` is in, outermost first."""
        known = self._packages.get(path)
        if known is None:
            found = []
            folder = os.path.dirname(os.path.dirname(path) if path.endswith("__init__.py") else path)
            while len(folder) > len(self.root) and "__init__.py" in self.listing(folder):
                found.append(os.path.join(folder, "__init__.py"))
                folder = os.path.dirname(folder)
            known = self._packages[path] = tuple(reversed(found))
        return known

    def name_of(self, path: str, file: str, imports: Iterable[str]) -> str:
        """A dotted name of the module `path` that is sure to work in `file`, whose imports are `imports`: one that
        starts where `file` itself lies as a script, or where its imports evidently start. Empty: there is none."""
        folder = os.path.dirname(file)
        starts = [] if "__init__.py" in self.listing(folder) else [("", folder)]
        for dotted in imports:
            place = self.beside(dotted, file)
            if dotted.startswith("."):
                starts.append((".", folder))
            elif place is not None:
                base = os.path.dirname(place.path) if place.path.endswith("__init__.py") else place.path
                for _ in range(dotted.count(".") + 1 - len(place.rest)):
                    base = os.path.dirname(base)
                starts.append(("", base))
        for dot, base in dict.fromkeys(starts):
            parts = os.path.relpath(path.removesuffix(".py"), base).split(os.sep)
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if parts and all(part.isidentifier() for part in parts):
                name = dot + ".".join(parts)
                place = self.beside(name, file)
                if place is not None and place == Place(path):
                    return name
        return ""

    def _relative(self, dotted: str, folder: str) -> Place | None:
        name = dotted.lstrip(".")
        for _ in range(len(dotted) - len(name) - 1):
            folder = os.path.dirname(folder)
        return self._descend(folder, tuple(name.split(".")) if name else (), top=False)

    def _absolute(self, dotted: str, folder: str, own: str = "") -> Place | None:
        """What an absolute name means in a file of `folder`; never the file `own`."""
        parts = tuple(dotted.split("."))
        script = "__init__.py" not in self.listing(folder)
        if parts[0] in STANDARD:
            beside = script and not own and self._holds(folder, parts[0])
            return self._descend(folder, parts, top=True) if beside else None
        best: Place | None = None
        for base in self._roots(folder, script):
            found = self._descend(base, parts, top=True)
            if found is None or found.path == own:
                continue
            if parts[0] in _LIBRARIES and found.path == os.path.join(base, f"{parts[0]}.py"):
                continue
            # `utils.utils.box` in `utils/data.py` is no `utils.box` of `utils/utils.py`, which lies beside it.
            if best is None or len(found.rest) < len(best.rest):
                best = found
            if len(best.rest) < 2:
                break
        return best or self._mapped(parts) or self._by_own_name(parts) or self._installed_beside(parts)

    def _installed_beside(self, parts: tuple[str, ...]) -> Place | None:
        """What a name means by a package that is installed from a folder of its own name: `kit` of `kit/kit`, beside
        whose inner folder a `setup.py` stands."""
        folder = os.path.join(self.root, parts[0])
        if parts[0] in _LIBRARIES or f"{parts[0]}/" not in self.listing(self.root):
            return None
        return None if _INSTALLS.isdisjoint(self.listing(folder)) else self._descend(folder, parts, top=True)

    def _by_own_name(self, parts: tuple[str, ...]) -> Place | None:
        """What a name means that begins with that of the root, in a project that is used from the folder above it."""
        if len(parts) < 2 or parts[0] != os.path.basename(self.root) or parts[0] in _LIBRARIES:
            return None
        return self._descend(self.root, parts[1:], top=True)

    def _mapped(self, parts: tuple[str, ...]) -> Place | None:
        """What an absolute name means by the folders that `setup.py` gives packages: `""` is where all of them lie."""
        for name, told in self._package_folders:
            folder = os.path.normpath(os.path.join(self.root, told))
            if name in ("", parts[0]) and (folder + os.sep).startswith(self.root + os.sep):
                place = self._descend(folder, parts[1:] if name else parts, top=not name)
                if place is not None:
                    return place
        return None

    @functools.cached_property
    def _package_folders(self) -> list[tuple[str, str]]:
        if self._read is None or "setup.py" not in self.listing(self.root):
            return []
        text = self._bytes(os.path.join(self.root, "setup.py")).decode(errors="replace")
        return [pair for told in _PACKAGE_DIR.findall(text) for pair in _MAPPED.findall(told)]

    def _roots(self, folder: str, script: bool) -> Iterator[str]:
        """Where absolute imports start, as far as a file in `folder` can tell: beside a script, above every package,
        in a `src` folder, and last beside a file of a package that may be started as a script."""
        if script:
            yield folder
        current = folder
        while current != self.root and len(current) > len(self.root):
            current = os.path.dirname(current)
            yield current
            if "src/" in self.listing(current):
                yield os.path.join(current, "src")
        if folder == self.root and "src/" in self.listing(folder):
            yield os.path.join(folder, "src")
        if not script:
            yield folder

    def _descend(self, folder: str, parts: tuple[str, ...], *, top: bool) -> Place | None:
        here = folder
        for index, part in enumerate(parts):
            names = self.listing(here)
            if f"{part}/" in names:
                inside = os.path.join(here, part)
                if "__init__.py" in self.listing(inside):
                    here, top = inside, False
                    continue
                if f"{part}.py" not in names:
                    if top and not self._namespace(inside, parts[index + 1 :]):
                        return None
                    here = inside
                    continue
            if f"{part}.py" in names:
                return Place(os.path.join(here, f"{part}.py"), parts[index + 1 :])
            if top:
                return None
            return Place(self._initial(here), parts[index:])
        return Place(self._initial(here))

    def _namespace(self, folder: str, rest: tuple[str, ...]) -> bool:
        """A folder without `__init__.py` is a package only where it holds the next part of the name."""
        return bool(rest) and not self.listing(folder).isdisjoint({f"{rest[0]}.py", f"{rest[0]}/"})

    def _initial(self, folder: str) -> str:
        return os.path.join(folder, "__init__.py") if "__init__.py" in self.listing(folder) else folder


class Still:
    """Whether what was found in other files is still there."""

    def __init__(self, modules: ModuleMap, read: Callable[[str], bytes | None]) -> None:
        self.modules = modules
        self._read = read
        self._contents: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def holds(self, relied: Relied) -> bool:
        """Whether the same look finds the same."""
        if not relied.name and data_files.names([relied.path]):
            return data_files.state(self.modules.meant(relied.path), self._data) == relied.content
        if not relied.name:
            folder = relied.path
            if folder not in self._folders:
                self._folders[folder] = folder_state(self.modules, folder, self._content)
            return self._folders[folder] == relied.content
        place = self.modules.locate(relied.name, relied.file)
        path = place.path if place is not None else ""
        return path == relied.path and self._content(path) == relied.content

    def _content(self, path: str) -> str:
        """The hash of a file of Python; "" where it cannot be read."""
        return self._data(path) if path.endswith(".py") else ""

    def _data(self, path: str) -> str:
        if path not in self._contents:
            data = self._read(path)
            self._contents[path] = content_hash(data) if data is not None else ""
        return self._contents[path]


class Contents:
    """The bytes of the files that are looked at from others, and their hashes, each read once. The bytes are kept up to
    a bound, which few projects reach."""

    def __init__(self, modules: ModuleMap, read: Callable[[str], bytes | None]) -> None:
        """`read` gives the bytes of a file, or None."""
        self._modules = modules
        self._read = read
        self._known: dict[str, tuple[bytes | None, str]] = {}
        self._folders: dict[str, str] = {}
        self._size = 0

    def of(self, path: str) -> tuple[bytes | None, str]:
        """The bytes of a file and their hash; None and "" where it cannot be read."""
        known = self._known.get(path)
        if known is None:
            data = self._read(path)
            self._size += len(data or b"")
            if self._size > _KEPT_BYTES:
                self._known.clear()
                self._folders.clear()
                self._size = len(data or b"")
            known = self._known[path] = data, content_hash(data) if data is not None else ""
        return known

    def folder(self, folder: str) -> str:
        """The state of a folder, as `folder_state` has it."""
        if folder not in self._folders:
            state = folder_state(self._modules, folder, lambda path: self.of(path)[1])
            self._folders[folder] = state
        return self._folders[folder]


def folder_state(modules: ModuleMap, folder: str, content: Callable[[str], str]) -> str:
    """A hash of the names of the Python files of `folder` and of their hashes, which `content` tells by path."""
    told = (f"{name}\0{content(f'{folder}{os.sep}{name}')}" for name in modules.python_files(folder))
    return content_hash("\0".join(told).encode(errors="surrogatepass"))
