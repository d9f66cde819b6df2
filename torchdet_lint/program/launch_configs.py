"""The YAML that a program is started with -> what Hydra composes of it, and what Lightning's command line is given.

Only files that the program names, or that lie where such programs keep them, are read, as data.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.regex import lazy
from torchdet_lint.source.data_files import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

UNKNOWN = object()
"""A value that only the run knows."""

HIDDEN = "?"
"""A key of what may hold more than is in sight."""

_MISSING = object()
_LARGEST = 2_000
_HEAVIEST = 50_000
_MOST_FILES = 100
_NESTED = 8
_FOLDERS = ("", "configs", "config", "conf")
_TARGETS = ("target", "cls", "class")
_COMMAND_LINE = frozenset({"seed_everything", "trainer", "model", "data"})
_PACKAGE = lazy(r"^#\s*@package\s+(\S+)", re.MULTILINE)
# A line with a key, behind dashes too, and what stands there where that is a dotted name; and such a name.
_DOTTED = lazy(r":[ \t]+[\"']?[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+[\"']?[ \t]*(?:$|#|\r|\n)")
_LINE = lazy(
    r"(?m)^(?P<indent> *(?:- +)*)[\"']?(?P<key>[\w-]+)[\"']? *:"
    r"(?:[ \t]+[\"']?(?P<text>[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+)[\"']?[ \t]*(?=$|#|\r|\n)|[ \t\r\n]|$)"
)
# Folders that hold configurations, by their names.
_OF_CONFIGS = lazy(r"(?i)(?:^|[/\\_-])(?:conf|cfg|option|exp|param|recipe|setting|yaml)")
_MOST_TEXTS = 400
_REFERENCE = lazy(r"\$\{([\w.]+)\}")


class Configs:
    """The configurations of the programs below `root`, read when a program that uses them is."""

    def __init__(self, root: str, listing: Callable[[str], frozenset[str]], read: Callable[[str], str]) -> None:
        """`listing` gives the names in a folder, those of folders with a slash; `read` the text of a file."""
        self._root = root
        self._listing = listing
        self._text = read
        self._composed: dict[tuple[str, str], dict[str, Any]] = {}
        self._lines: dict[str, list[dict[str, Any]]] = {}

    def _read(self, path: str) -> str:
        folder, name = os.path.split(path)
        return self._text(path) if name in self._listing(folder) else ""

    def at(self, file: str, declared: Iterable[tuple[str, str]], path: list[str]) -> list[dict[str, Any]]:
        """The mappings at `path` of the configurations that `hydra.main` in `file` is told: folder and name, or as
        before Hydra 1.0 the file alone."""
        found = []
        for folder, name in declared:
            key = (os.path.normpath(os.path.join(os.path.dirname(file), folder)), name)
            if key not in self._composed:
                self._composed[key] = self._whole(*key)
            value = _at(self._composed[key], path)
            if isinstance(value, dict):
                found.append(value)
        return found

    def texts(self, folders: Iterable[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """The dotted texts in the YAML of `folders` and of the folders of configurations in them, each with the name of
        its folder, which may be that of a group, and the keys that lead to it."""
        for path in itertools.islice(self._files_in(folders), _MOST_TEXTS):
            group = os.path.basename(os.path.dirname(path))
            yield from (((group, *at), text) for at, text in dotted_texts(self._text(path)))

    def given(self, keys: Sequence[str]) -> Iterator[Any]:
        """What the YAML at the root, and in the folders of configurations there, gives what these keys lead to;
        `UNKNOWN` for what cannot be read."""
        paths = list(itertools.islice(self._files_in(()), _MOST_TEXTS + 1))
        if len(paths) > _MOST_TEXTS:
            yield UNKNOWN
        for text in map(self._text, paths):
            if keys[-1] in text:
                data: Any = parsed(text)
                if data is None:
                    yield UNKNOWN
                for key in keys:
                    data = data.get(key, _MISSING) if isinstance(data, dict) else _MISSING
                if data is not _MISSING:
                    yield data

    def _files_in(self, folders: Iterable[str]) -> Iterator[str]:
        """The YAML in `folders` and in the folders of configurations in them, in order."""
        left = sorted({self._root, *folders}, reverse=True)
        seen = set(left)
        most = len(left) + _MOST_TEXTS
        while left and most > 0:
            most -= 1
            folder = left.pop()
            names = self._listing(folder)
            yield from (os.path.join(folder, name) for name in yaml_names(names))
            inside = _OF_CONFIGS.search(os.path.relpath(folder, self._root)) is not None
            inner = [name[:-1] for name in sorted(names) if name[-1] == "/" and (inside or _OF_CONFIGS.search(name))]
            wanted = [path for name in inner if (path := os.path.join(folder, name)) not in seen]
            seen.update(wanted)
            left += reversed(wanted)

    def _whole(self, path: str, name: str) -> dict[str, Any]:
        if name:
            return _Composer(path, self._read).whole(name)
        folder, name = os.path.split(path)
        return _Composer(folder, self._read, package="_global_").whole(name)

    def command_lines(self, file: str) -> list[dict[str, Any]]:
        """The configurations for Lightning's command line that lie beside `file` or in the folder above, or in a
        `configs` there."""
        here = os.path.dirname(file)
        if here not in self._lines:
            found = self._lines[here] = []
            for place in dict.fromkeys((here, here if here == self._root else os.path.dirname(here))):
                for folder in _FOLDERS:
                    if folder and f"{folder}/" not in self._listing(place):
                        continue
                    path = os.path.join(place, folder) if folder else place
                    for name in yaml_names(self._listing(path)):
                        data = parsed(self._read(os.path.join(path, name)))
                        if isinstance(data, dict) and _is_command_line(data):
                            found.append(data)
        return self._lines[here]


def dotted_texts(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The dotted names in the `text` of a YAML file, `target: net.st_gcn.Model`, each with the keys that lead to it, as
    far as these stand on lines of their own."""
    if _DOTTED.search(text) is None:
        return
    around: list[tuple[int, str]] = []
    for line in _LINE.finditer(text):
        depth = len(line["indent"])
        while around and around[-1][0] >= depth:
            around.pop()
        around.append((depth, line["key"]))
        if line["text"]:
            yield tuple(key for _, key in around), line["text"]


def yaml_names(names: Iterable[str]) -> tuple[str, ...]:
    """Those that are of YAML files, in order."""
    return tuple(sorted(name for name in names if name.endswith((".yaml", ".yml"))))


class _Composer:
    """Composes what Hydra does of the files in `root`."""

    def __init__(self, root: str, read: Callable[[str], str], package: str = "_group_") -> None:
        """`package` is where an option of a group goes that does not say so itself."""
        self.root = root
        self.read = read
        self.package = package
        self.left = _MOST_FILES
        self.open: set[str] = set()

    def whole(self, name: str) -> dict[str, Any]:
        """The primary configuration `name` with its defaults, references followed."""
        found = self.composed(self.root, name, 0) or {}
        return {key: _References(found).followed(value) for key, value in found.items()}

    def composed(self, folder: str, name: str, depth: int) -> dict[str, Any] | None:
        """The file `name` with its defaults, each at its place; None where it is not in sight, names itself, or comes
        after too many others."""
        path = _path(folder, name)
        if path in self.open or depth >= _NESTED or self.left <= 0:
            return None
        self.left -= 1
        own = parsed(self.read(path))
        if not isinstance(own, dict):
            return None
        self.open.add(path)
        found = self._with_defaults(folder, own, depth)
        self.open.discard(path)
        return found

    def _with_defaults(self, folder: str, own: dict[str, Any], depth: int) -> dict[str, Any]:
        defaults = own.pop("defaults", None)
        parts = defaults if isinstance(defaults, list) else []
        found: dict[str, Any] = {}
        for part in parts if "_self_" in parts else ["_self_", *parts]:
            if part == "_self_":
                _merge(found, own)
            else:
                for group, option in _choices(part):
                    self.take(found, folder, group, _with_choices(option, parts), depth)
        return found

    def take(self, found: dict[str, Any], folder: str, group: str, option: str, depth: int) -> None:
        """Merge one option of a group, under the group's name or the package that it or its file asks for."""
        folder = self.root if group.startswith("/") else folder
        group, _, package = group.lstrip("/").partition("@")
        if group.startswith("hydra"):
            return
        folder = os.path.join(folder, group)
        inside = self.composed(folder, option, depth + 1)
        if inside is None:
            inside = {HIDDEN: True}
        told = _PACKAGE.search(self.read(_path(folder, option)))
        package = package or (told[1] if told is not None else self.package)
        package = package.replace("_group_", group.replace("/", "."))
        if package not in ("_global_", ""):
            for name in reversed(package.split(".")):
                inside = {name: inside}
        _merge(found, inside)


def _path(folder: str, name: str) -> str:
    return os.path.normpath(os.path.join(folder, name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"))


def _choices(part: Any) -> Iterator[tuple[str, str]]:
    """The groups that an entry of a defaults list names, and the option of each."""
    if isinstance(part, str):
        yield "", part
    elif isinstance(part, dict):
        for group, option in part.items():
            for one in option if isinstance(option, list) else [option]:
                if isinstance(one, str) and one != "null" and isinstance(group, str):
                    yield group.removeprefix("override ").removeprefix("optional ").strip(), one


def _with_choices(option: str, parts: list[Any]) -> str:
    """The name of an option with what the list of defaults, `parts`, chooses for the groups that it names: by their
    places before Hydra 1.1, `${defaults.0.task}`, and by name since then, `${task}`."""
    if "${" not in option:
        return option
    chosen = {}
    for place, part in enumerate(parts):
        for group, choice in _choices(part):
            chosen[f"defaults.{place}.{group}"] = chosen[group] = choice
    return _REFERENCE.sub(lambda reference: chosen.get(reference[1], reference[0]), option)


def _merge(whole: dict[str, Any], other: Mapping[Any, Any], left: list[int] | None = None) -> None:
    """Add what `other` says to `whole`, mapping into mapping; of aliases that unfold, only so many."""
    left = left or [_HEAVIEST]
    for key, value in other.items():
        held = whole.get(key)
        left[0] -= 1
        if isinstance(held, dict) and isinstance(value, dict) and left[0] > 0:
            whole[key] = dict(held)  # an alias may stand for it elsewhere
            _merge(whole[key], value, left)
        else:
            whole[key] = value


class _References:
    """Follows references to other keys of a configuration. Aliases may make few lines a large tree: of that only so
    much is looked at, under each key."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self.whole = whole
        self.left = _LARGEST

    def followed(self, value: Any, depth: int = 0) -> Any:
        """`value` with references followed; what only the run knows is `UNKNOWN`."""
        self.left -= 1
        if self.left < 0 or depth > 4 * _NESTED:
            return UNKNOWN
        if isinstance(value, dict):
            return {key: self.followed(part, depth + 1) for key, part in value.items()}
        if isinstance(value, list):
            return [self.followed(part, depth + 1) for part in value]
        if not isinstance(value, str) or ("${" not in value and value != "???"):
            return value
        reference = _REFERENCE.fullmatch(value)
        found = _at(self.whole, reference[1].split(".")) if reference is not None else None
        return UNKNOWN if found is None or isinstance(found, (dict, list)) else self.followed(found, depth + 4)


def part_at(whole: Mapping[str, Any], path: list[str]) -> Any:
    """What stands at `path`, references followed."""
    return _References(whole).followed(_at(whole, path))


def _at(whole: Any, path: list[str]) -> Any:
    """What stands at `path`; None: nothing."""
    for name in path:
        whole = whole.get(name) if isinstance(whole, dict) else None
    return whole


def _is_command_line(data: Mapping[Any, Any]) -> bool:
    """Whether `data` has the shape of what `LightningCLI` takes, at the top or under a subcommand."""
    inner = data.get("fit")
    keys = {*data, *(inner if isinstance(inner, dict) else ())}
    trainer = data.get("trainer", inner.get("trainer") if isinstance(inner, dict) else None)
    return len(keys & _COMMAND_LINE) > 1 and isinstance(trainer, dict) and "_target_" not in trainer


def called(mapping: Mapping[Any, Any]) -> tuple[str, Mapping[Any, Any]]:
    """The name of what Hydra's `instantiate` calls for a mapping, and what it passes: `_target_` and the rest, or
    `class` and `params` as before Hydra 1.1; no name where there is none."""
    if isinstance(mapping.get("_target_"), str):
        return mapping["_target_"], mapping
    for key in _TARGETS:
        if isinstance(mapping.get(key), str):
            passed = mapping.get("params", {})
            return mapping[key], passed if isinstance(passed, dict) else {HIDDEN: True}
    return "", {}


def setting(data: Mapping[Any, Any], *path: str) -> Any:
    """What a configuration of the command line sets at `path`, under `fit` too; `UNKNOWN` where it does not."""
    for top in (data, data.get("fit")):
        inner: Any = top
        for name in path:
            inner = inner.get(name, UNKNOWN) if isinstance(inner, dict) else UNKNOWN
        if inner is not UNKNOWN:
            return inner
    return UNKNOWN
