"""Paths that are linted -> the configuration that holds for them, and the folder in which their project starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.config.options import FORMATS, ConfigError, Options
from torchdet_lint.config.releases import Required, required_torch
from torchdet_lint.config.selectors import nearest
from torchdet_lint.finding import SEVERITIES
from torchdet_lint.reading import LARGEST_CONFIGURATION, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TABLE = "torchdet-lint"
_MISSPELT = ("torchdet", "torchdetlint")
_TYPES = {
    "'array'": "a list",
    "'bool'": "true or false",
    "'int'": "a whole number",
    "'float'": "a number",
    "'object'": "a table",
    "'str'": "text",
}
_CHOICES = {"output-format": FORMATS, "min-severity": SEVERITIES, "fail-on": SEVERITIES}


class Configuration(msgspec.Struct, frozen=True):
    """A configuration: the project's folder, the file (empty: none), its options, complaints about a file that could
    not be read and was passed over, and what the project requires of torch."""

    root: str
    file: str = ""
    options: Options = Options()
    errors: tuple[str, ...] = ()
    torch: Required | None = None


def find(paths: Sequence[str]) -> Configuration:
    """The nearest configuration above what all `paths` have in common. Raises `ConfigError` for a wrong key or type.

    A pyproject.toml that is no TOML at all is passed over with a complaint: it may be broken for a reason of its own.
    """
    start = _common(paths)
    complaints: list[str] = []
    project = ""
    for folder in (start, *start.parents):
        own = folder / f"{TABLE}.toml"
        if own.is_file():
            return _found(folder, own, load(own), complaints)
        pyproject = folder / "pyproject.toml"
        if pyproject.is_file():
            try:
                table = _toml(pyproject)
            except ConfigError as error:
                complaints.append(str(error))
                return Configuration(str(folder), errors=tuple(complaints))
            tool = table.get("tool")
            if isinstance(tool, dict) and TABLE in tool:
                return _found(folder, pyproject, options_of(tool[TABLE], f"{pyproject}: [tool.{TABLE}] "), complaints)
            project = project or str(folder)
        if not project and _starts_project(folder):
            project = str(folder)
        if (folder / ".git").exists():
            break
    root = Path(project) if project else _unmarked(start)
    return Configuration(str(root), errors=tuple(complaints), torch=required_torch(root))


def nested(folder: str, top: str, known: dict[str, Configuration | None]) -> Configuration | None:
    """The configuration nearest to the files of `folder` that lies below the folder `top`; None: there is none.

    `known` keeps what was found for other folders. Raises `ConfigError`.
    """
    if folder not in known:
        parent = os.path.dirname(folder)
        outside = folder == top or not folder.startswith(os.path.join(top, ""))
        known[folder] = None if outside else _own(Path(folder)) or nested(parent, top, known)
    return known[folder]


def _own(folder: Path) -> Configuration | None:
    own, pyproject = folder / f"{TABLE}.toml", folder / "pyproject.toml"
    if own.is_file():
        return _found(folder, own, load(own), ())
    if pyproject.is_file():
        try:
            tool = _toml(pyproject).get("tool")
        except ConfigError as error:
            return Configuration(str(folder), errors=(str(error),))
        if isinstance(tool, dict) and TABLE in tool:
            return _found(folder, pyproject, options_of(tool[TABLE], f"{pyproject}: [tool.{TABLE}] "), ())
    return None


def top_of(paths: Sequence[str]) -> str:
    """The folder that all `paths` have in common."""
    return str(_common(paths))


def _found(folder: Path, file: Path, options: Options, complaints: Iterable[str]) -> Configuration:
    torch = None if options.torch_version else required_torch(folder)
    return Configuration(str(folder), str(file), options, tuple(complaints), torch)


def load(path: Path) -> Options:
    """The options of the file `path`: a pyproject.toml, or a file that holds the table's keys at its top."""
    table = _toml(path)
    if path.name == "pyproject.toml":
        tool = table.get("tool")
        return options_of(tool.get(TABLE, {}) if isinstance(tool, dict) else {}, f"{path}: [tool.{TABLE}] ")
    return options_of(table, f"{path}: ")


def explicit(path: str) -> Configuration:
    """The configuration file that `--config` names."""
    file = Path(path).resolve()
    options = load(file)
    return Configuration(
        str(file.parent), str(file), options, (), None if options.torch_version else required_torch(file.parent)
    )


def isolated(paths: Sequence[str]) -> Configuration:
    """No configuration at all (`--isolated`), but the folder in which the project evidently starts."""
    start = _common(paths)
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or _starts_project(folder):
            return Configuration(str(folder))
    return Configuration(str(_unmarked(start)))


def _unmarked(start: Path) -> Path:
    """Where a project without any mark evidently starts: in the working folder, where `start` lies in it and it is not
    the place of several projects; else above the packages that `start` is in."""
    top = start
    while (top / "__init__.py").is_file() and top != top.parent:
        top = top.parent
    here = Path(os.path.abspath(os.curdir))
    if here not in top.parents or here in (Path(here.anchor), Path(os.path.expanduser("~"))):
        return top
    try:
        inside = [Path(entry.path) for entry in os.scandir(here) if entry.is_dir()]
    except OSError:
        return top
    several = any((folder / "pyproject.toml").is_file() or _starts_project(folder) for folder in inside)
    return top if several else here


def starts_project(folder: str) -> bool:
    """Whether a project evidently starts in `folder`."""
    own = ("pyproject.toml", f"{TABLE}.toml")
    return _starts_project(Path(folder)) or any(os.path.isfile(os.path.join(folder, name)) for name in own)


def _starts_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in (".git", ".hg", "setup.cfg", "setup.py"))


def _common(paths: Sequence[str]) -> Path:
    real = [os.path.abspath(path) for path in paths] or [os.getcwd()]
    folders = [path if os.path.isdir(path) else os.path.dirname(path) for path in real]
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:
        return Path(folders[0])


def _toml(path: Path) -> dict[str, Any]:
    import tomli

    try:
        table = tomli.loads(read(str(path), LARGEST_CONFIGURATION).decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such configuration file") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a bare ValueError
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    tool = table.get("tool")
    for key in tool if isinstance(tool, dict) else ():
        if key != TABLE and key.lower().replace("_", "").replace("-", "") in _MISSPELT:
            raise ConfigError(f"{path}: unknown table [tool.{key}]; did you mean [tool.{TABLE}]?")
    return table


def options_of(table: Any, where: str) -> Options:
    """The options that `table` holds. Raises `ConfigError`, which begins with `where`."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where.rstrip(': ')} must be a table")
    known = [field.encode_name for field in msgspec.structs.fields(Options)]
    for key in table:
        if key not in known:
            own = key == "tool" and not where.endswith("] ")
            hint = "; the keys stand at the top of this file" if own else nearest(key, known)
            raise ConfigError(f"{where}unknown key {key!r}{hint}")
    for key, value in table.items():
        try:
            msgspec.convert({key: value}, Options)
        except msgspec.ValidationError as error:
            reason = _plain(str(error), key)
            if key in _CHOICES and isinstance(value, str):
                reason = f"{value!r} is none of {', '.join(_CHOICES[key])}"
            raise ConfigError(f"{where}{key}: {reason}") from error
    return msgspec.convert(table, Options)


def _plain(message: str, key: str) -> str:
    """msgspec's complaint without its path where that is only the key."""
    text, _, place = message.partition(" - at ")
    place = place.strip("`").removeprefix(f"$.{key}")
    text = text.replace(" | null", "").replace("`", "'")
    if text.startswith("Expected"):
        for theirs, ours in _TYPES.items():
            text = text.replace(theirs, ours)
    return f"{text[:1].lower()}{text[1:]}{f' (at {place})' if place else ''}"
