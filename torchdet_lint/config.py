"""`[tool.torchdet-lint]` and the flags, resolved into one frozen `Settings`; every error names the file and the key."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from torchdet_lint.finding import SEVERITIES, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Format = Literal["full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit"]
FORMATS: tuple[str, ...] = get_args(Format)
NEWEST_TORCH = (2, 15)
TABLE = "torchdet-lint"

_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?(?:\+\w+)?")
_REQUIREMENT = re.compile(r"^\s*[\"']?torch\s*(?:\[[^\]]*\])?\s*\(?(?P<specifier>[<>=!~][^;#\"')]*)", re.MULTILINE)
_CLAUSE = re.compile(r"(?P<operator>===?|~=|!=|<=?|>=?)\s*(?P<release>\d+(?:\.\d+)*)")
_DEVICES = ("cpu", "cuda", "mps", "xpu")
_CHOICES = {"output-format": FORMATS, "min-severity": SEVERITIES}


class ConfigError(Exception):
    """A configuration or an option that cannot be used; the text names the file and the key."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The keys of `[tool.torchdet-lint]`; `None` is a key that is not given. The flags fill the same struct."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    per_file_ignores: dict[str, tuple[str, ...]] | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] | None = None
    respect_gitignore: bool | None = None
    output_format: Format | None = None
    fix: bool | None = None
    unsafe_fixes: bool | None = None
    seed: int | None = None
    torch_version: str | None = None
    devices: tuple[str, ...] | None = None
    entry_points: tuple[str, ...] | None = None
    seed_functions: tuple[str, ...] | None = None
    rule_files: tuple[str, ...] | None = None
    deterministic_algorithms: bool | None = None
    baseline: str | None = None
    cache_dir: str | None = None
    jobs: int | None = None
    min_severity: Severity | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a run does, every default resolved. Paths are absolute; `root` is the project's folder."""

    root: str
    file: str = ""
    select: tuple[str, ...] = ("TDL",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    exclude: tuple[str, ...] = ()
    default_excludes: bool = True
    respect_gitignore: bool = True
    output_format: Format = "full"
    fix: bool = False
    unsafe_fixes: bool = False
    seed: int = 0
    torch: tuple[int, int] = NEWEST_TORCH
    devices: tuple[str, ...] = ("cpu", "cuda")
    entry_points: tuple[str, ...] = ()
    seed_functions: tuple[str, ...] = ()
    rule_files: tuple[str, ...] = ()
    deterministic_algorithms: bool = False
    baseline: str = ""
    cache_dir: str = ""
    jobs: int = 0
    min_severity: Severity = "warning"

    def reported(self, severity: Severity) -> bool:
        """Whether `min-severity` lets `severity` through."""
        return SEVERITIES.index(severity) <= SEVERITIES.index(self.min_severity)


class Found(msgspec.Struct, frozen=True):
    """A configuration as it was found: the project's folder, the file (empty: none), its options, and complaints
    about a file that could not be read and was passed over."""

    root: str
    file: str = ""
    options: Options = Options()
    errors: tuple[str, ...] = ()
    torch: tuple[int, int] | None = None


def find(paths: Sequence[str]) -> Found:
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
                return Found(str(folder), errors=tuple(complaints))
            tool = table.get("tool")
            if isinstance(tool, dict) and TABLE in tool:
                return _found(folder, pyproject, _options(tool[TABLE], pyproject, f"[tool.{TABLE}] "), complaints)
            project = project or str(folder)
        if not project and _starts_project(folder):
            project = str(folder)
        if (folder / ".git").exists():
            break
    root = Path(project) if project else start
    return Found(str(root), errors=tuple(complaints), torch=required_torch(root))


def _found(folder: Path, file: Path, options: Options, complaints: Iterable[str]) -> Found:
    torch = None if options.torch_version else required_torch(folder)
    return Found(str(folder), str(file), options, tuple(complaints), torch)


def load(path: Path) -> Options:
    """The options of the file `path`: a pyproject.toml, or a file that holds the table's keys at its top."""
    table = _toml(path)
    if path.name == "pyproject.toml":
        tool = table.get("tool")
        return _options(tool.get(TABLE, {}) if isinstance(tool, dict) else {}, path, f"[tool.{TABLE}] ")
    return _options(table, path, "")


def explicit(path: str) -> Found:
    """The configuration file that `--config` names."""
    file = Path(path).resolve()
    options = load(file)
    return Found(
        str(file.parent), str(file), options, (), None if options.torch_version else required_torch(file.parent)
    )


def isolated(paths: Sequence[str]) -> Found:
    """No configuration at all (`--isolated`), but the folder in which the project evidently starts."""
    start = _common(paths)
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or _starts_project(folder):
            return Found(str(folder))
    return Found(str(start))


def _starts_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in (".git", ".hg", "setup.cfg", "setup.py"))


def merge(found: Found, flags: Options) -> Settings:
    """The flags over the configuration over the defaults. Raises `ConfigError` for a value that makes no sense.

    `--select` on the command line replaces the configuration's whole choice of rules, as in ruff.
    """
    file, root = found.options, Path(found.root)
    where = f"{found.file}: " if found.file else ""
    _check(file, where)
    _check(flags, "")
    chosen = flags.select is not None
    given: dict[str, Any] = {}
    for name in (
        "output_format", "fix", "unsafe_fixes", "seed", "devices", "entry_points", "seed_functions",
        "respect_gitignore", "deterministic_algorithms", "jobs", "min_severity", "per_file_ignores",
    ):  # fmt: skip
        value = getattr(flags, name)
        value = getattr(file, name) if value is None else value
        if value is not None:
            given[name] = value
    given["ignore"] = (*(() if chosen else file.ignore or ()), *(flags.ignore or ()))
    given["extend_select"] = (*(() if chosen else file.extend_select or ()), *(flags.extend_select or ()))
    select = flags.select if chosen else file.select
    if select is not None:
        given["select"] = select
    exclude = flags.exclude if flags.exclude is not None else file.exclude
    given["default_excludes"] = exclude is None
    given["exclude"] = (*(exclude or ()), *(file.extend_exclude or ()), *(flags.extend_exclude or ()))
    release = flags.torch_version or file.torch_version
    given["torch"] = _release(release) if release else found.torch or NEWEST_TORCH
    given["rule_files"] = tuple(_expanded(file.rule_files or (), root, where))
    for name in ("baseline", "cache_dir"):
        if (flag := getattr(flags, name)) is not None:
            given[name] = str(Path(flag).absolute())
        elif (value := getattr(file, name)) is not None:
            given[name] = str(root / value)
            if name == "cache_dir" and not _inside(given[name], found.root):
                raise ConfigError(f"{where}cache-dir: {value!r} is outside of the project; only --cache-dir may say so")
    given.setdefault("cache_dir", str(root / ".torchdet_cache"))
    return Settings(root=found.root, file=found.file, **given)


def _inside(path: str, root: str) -> bool:
    """Whether `path` is below `root` once links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _check(options: Options, where: str) -> None:
    if options.torch_version is not None and not _RELEASE.fullmatch(options.torch_version):
        raise ConfigError(f"{where}torch-version: {options.torch_version!r} is not a release such as '2.13'")
    if options.devices == ():
        raise ConfigError(f"{where}devices: none is named; they are {', '.join(_DEVICES)}")
    for device in options.devices or ():
        if device not in _DEVICES:
            raise ConfigError(f"{where}devices: {device!r} is none of {', '.join(_DEVICES)}")
    if options.jobs is not None and options.jobs < 0:
        raise ConfigError(f"{where}jobs: {options.jobs} is negative; 0 means one for each processor")
    if options.seed is not None and not 0 <= options.seed < 2**32:
        raise ConfigError(f"{where}seed: {options.seed} is not between 0 and 2**32 - 1 (NumPy takes no other)")


def _expanded(patterns: Iterable[str], root: Path, where: str) -> Iterable[str]:
    for pattern in patterns:
        try:
            files = sorted(str(path) for path in root.glob(pattern))
        except (ValueError, NotImplementedError, IndexError):
            files = []
        if not files:
            raise ConfigError(f"{where}rule-files: nothing matches {pattern!r} under {root}")
        yield from files


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor.partition("+")[0])


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
        return tomli.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such configuration file") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except (tomli.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def _options(table: Any, path: Path, prefix: str) -> Options:
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {prefix.strip()} must be a table")
    known = [field.encode_name for field in msgspec.structs.fields(Options)]
    for key in table:
        if key not in known:
            raise ConfigError(f"{path}: {prefix}unknown key {key!r}{nearest(key, known)}")
    for key, value in table.items():
        try:
            msgspec.convert({key: value}, Options)
        except msgspec.ValidationError as error:
            reason = _plain(str(error), key)
            if key in _CHOICES and isinstance(value, str):
                reason = f"{value!r} is none of {', '.join(_CHOICES[key])}"
            raise ConfigError(f"{path}: {prefix}{key}: {reason}") from error
    return msgspec.convert(table, Options)


def _plain(message: str, key: str) -> str:
    """msgspec's complaint without its path where that is only the key."""
    text, _, place = message.partition(" - at ")
    place = place.strip("`").removeprefix(f"$.{key}")
    text = text.replace(" | null", "").replace("`", "'")
    return f"{text[:1].lower()}{text[1:]}{f' (at {place})' if place else ''}"


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'select'?`, or the whole choice where nothing is near."""
    import difflib

    names = sorted(known)
    match = difflib.get_close_matches(word.replace("_", "-"), names, 1, 0.5)
    if not match:
        match = [name for name in names if name.startswith(word[:3].lower())][:1]
    return f"; did you mean {match[0]!r}?" if match else f"; known are {', '.join(names)}"


# ------------------------------------------------------------------------------------------------- the target release


def required_torch(root: Path) -> tuple[int, int] | None:
    """The newest release that the project's own requirement on torch allows, read as text; `None`: no requirement."""
    texts = [root / name for name in ("pyproject.toml", "setup.cfg", "setup.py")]
    for path in (*texts, *sorted(root.glob("requirements*.txt"))):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "torch" not in text:
            continue
        for match in _REQUIREMENT.finditer(_one_a_line(text, path)):
            found = newest_allowed(match["specifier"])
            if found is not None:
                return found
    return None


def _one_a_line(text: str, path: Path) -> str:
    """Every quoted string of TOML or Python on a line of its own."""
    if path.suffix not in (".toml", ".py"):
        return text
    lines = re.findall(r"""["']([^"'\n]*)["']""", text)
    if path.suffix == ".toml":
        lines += [
            f"torch{_poetry(match[1])}"
            for match in re.finditer(r"""^\s*torch\s*=\s*["']([^"'\n]+)["']""", text, re.MULTILINE)
        ]
    return "\n".join(lines)


def _poetry(specifier: str) -> str:
    return re.sub(r"\^\s*(\d+)((?:\.\d+)*)", lambda match: f">={match[1]}{match[2]},<{int(match[1]) + 1}", specifier)


def newest_allowed(specifier: str, newest: tuple[int, int] = NEWEST_TORCH) -> tuple[int, int] | None:
    """`">=2.0,<2.4"` -> `(2, 3)`; `None` where no release that the catalogue knows fits."""
    clauses: list[tuple[str, tuple[int, ...]]] = [
        (match["operator"], tuple(int(part) for part in match["release"].split(".")))
        for match in _CLAUSE.finditer(specifier)
    ]
    candidates = [(2, minor) for minor in range(newest[1], -1, -1)] + [(1, minor) for minor in range(13, 3, -1)]
    for candidate in candidates:
        if all(_allows(operator, release, candidate) for operator, release in clauses):
            return candidate
    return None


def _allows(operator: str, release: tuple[int, ...], candidate: tuple[int, int]) -> bool:
    """Whether some patch release of `candidate` satisfies the clause."""
    wanted = (*release, 0)[:2]
    if operator in ("==", "==="):
        return candidate[: len(release)] == release[:2]
    if operator == "~=":
        return candidate >= wanted and (candidate[0] == wanted[0] if len(release) < 3 else candidate == wanted)
    if operator == "!=":
        return len(release) > 2 or candidate[: len(release)] != release
    if operator == "<":
        return candidate < wanted or (candidate == wanted and len(release) > 2 and any(release[2:]))
    return candidate <= wanted if operator == "<=" else candidate >= wanted


def selection(settings: Settings, codes: Mapping[str, str]) -> frozenset[str]:
    """The codes that are switched on, of `codes` (code -> name). The longest prefix wins; at a draw, `ignore` does.

    Raises `ConfigError` for a selector that fits no rule.
    """
    selected = [*settings.select, *settings.extend_select]
    where = f"{settings.file}: " if settings.file else ""
    _must_fit((*selected, *settings.ignore), codes, where)
    for pattern, ignored in sorted(settings.per_file_ignores.items()):
        _must_fit(ignored, codes, f"{where}per-file-ignores: {pattern}: ")

    def weight(selectors: Iterable[str], code: str) -> int:
        return max((fits(selector, code, codes[code]) for selector in selectors), default=0)

    return frozenset(code for code in codes if weight(selected, code) > weight(settings.ignore, code))


def chosen(selectors: Sequence[str], codes: Mapping[str, str]) -> frozenset[str]:
    """The codes that any of `selectors` names. Raises `ConfigError` for one that fits no rule."""
    _must_fit(selectors, codes, "")
    return frozenset(code for code in codes if any(fits(selector, code, codes[code]) for selector in selectors))


def _must_fit(selectors: Iterable[str], codes: Mapping[str, str], where: str) -> None:
    for selector in selectors:
        if selector != "ALL" and not any(fits(selector, code, name) for code, name in codes.items()):
            raise ConfigError(f"{where}no rule has the code or prefix {selector!r}{nearest(selector, codes)}")


def fits(selector: str, code: str, name: str) -> int:
    """How closely `selector` names the rule: 0 not at all, else the length of the prefix."""
    if selector == name:
        return len(code)
    if selector == "ALL":
        return 1
    return len(selector) if selector and code.startswith(selector.upper()) else 0
