"""The flags over the configuration over the defaults -> `Settings`; every error names the file and the key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.config.options import NEWEST_TORCH, OLDEST_TORCH, ConfigError, Options, Settings
from torchdet_lint.config.releases import known, required_torch
from torchdet_lint.patterns import from_top, is_one
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdet_lint.config.project import Configuration
    from torchdet_lint.config.releases import Required

_RELEASE = lazy(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:\+\w+)?")
_DEVICES = ("cpu", "cuda", "mps", "xpu")


def merge(found: Configuration, flags: Options) -> Settings:
    """The flags over the configuration over the defaults. Raises `ConfigError` for a value that makes no sense.

    `--select` on the command line replaces the configuration's whole choice of rules, as in ruff.
    """
    root, where = Path(found.root), f"{found.file}: " if found.file else ""
    _check(found.options, where)
    _check(flags, "")
    file = _with_patterns_from_top(found.options, where, found.root, found.root)
    flags = _with_patterns_from_top(flags, "", found.root, os.getcwd())
    chosen = flags.select is not None
    given: dict[str, Any] = {}
    for name in (
        "output_format", "fix", "unsafe_fixes", "seed", "devices", "entry_points", "seed_functions",
        "respect_gitignore", "deterministic_algorithms", "jobs", "min_severity",
        "fail_on", "force_exclude",
    ):  # fmt: skip
        value = getattr(flags, name)
        value = getattr(file, name) if value is None else value
        if value is not None:
            given[name] = value
    if file.per_file_ignores or flags.per_file_ignores:
        given["per_file_ignores"] = {**(file.per_file_ignores or {}), **(flags.per_file_ignores or {})}
    given["ignore"] = (*(() if chosen else file.ignore or ()), *(flags.ignore or ()))
    given["extend_select"] = (*(() if chosen else file.extend_select or ()), *(flags.extend_select or ()))
    select = flags.select if chosen else file.select
    if select is not None:
        given["select"] = select
    exclude = flags.exclude if flags.exclude is not None else file.exclude
    given["default_excludes"] = exclude is None
    given["exclude"] = (*(exclude or ()), *(file.extend_exclude or ()), *(flags.extend_exclude or ()))
    release = flags.torch_version or file.torch_version
    newest = found.torch.newest if found.torch else None
    if release:
        given["torch"], given["pinned"] = _release(release), True
    else:
        given["torch"], given["older"] = known(newest or NEWEST_TORCH)
        given["oldest"] = found.torch.oldest if found.torch else None
    given["rule_files"] = tuple(
        _expanded(file.rule_files or (), root, where) if flags.rule_files is None else _named(flags.rule_files)
    )
    if file.machine is not None:
        given["machine"] = file.machine
    for name in ("baseline", "cache_dir", "measured"):
        if (flag := getattr(flags, name)) is not None:
            given[name] = str(Path(flag).absolute()) if flag else ""
        elif (value := getattr(file, name)) is not None:
            given[name] = str(root / value)
            if name == "cache_dir" and not inside(given[name], found.root):
                raise ConfigError(f"{where}cache-dir: {value!r} is outside of the project; only --cache-dir may say so")
    given.setdefault("cache_dir", str(root / ".torchdet_cache"))
    settings = Settings(root=found.root, file=found.file, notes=_notes(release, where), **given)
    return _with_measurement(settings, pinned=release or "", newest=newest) if settings.measured else settings


def judged_for(settings: Settings, folder: str, seen: dict[str, Required | None]) -> Settings:
    """The settings for the files of `folder`: what it, or a folder between it and the project's, requires of torch.

    One project may hold several experiments, each with an environment of its own. `seen` keeps what folders require.
    """
    if settings.pinned or settings.measured:
        return settings
    required = _required_above(folder, settings.root, seen)
    release = known(required.newest) if required is not None else (settings.torch, settings.older)
    if required is None or release == (settings.torch, settings.older):
        return settings
    return msgspec.structs.replace(settings, torch=release[0], older=release[1], oldest=required.oldest)


def judged_alone(settings: Settings, path: str) -> Settings:
    """The same for one file, which need not be there."""
    return judged_for(settings, os.path.dirname(os.path.abspath(path)), {})


def _required_above(folder: str, root: str, seen: dict[str, Required | None]) -> Required | None:
    """What `folder` requires, or else the next one above it that lies below `root`."""
    if not folder.startswith(os.path.join(root, "")):
        return None
    if folder not in seen:
        seen[folder] = required_torch(Path(folder)) or _required_above(os.path.dirname(folder), root, seen)
    return seen[folder]


def _notes(release: str | None, where: str) -> tuple[str, ...]:
    """One line where the tables know nothing of the release of torch that was asked for."""
    if not release or OLDEST_TORCH <= _release(release) <= NEWEST_TORCH:
        return ()
    oldest, newest = (".".join(map(str, one)) for one in (OLDEST_TORCH, NEWEST_TORCH))
    return (f"{where}torch-version: the tables of operations know torch {oldest} to {newest}, not {release}",)


def _with_measurement(settings: Settings, *, pinned: str, newest: tuple[int, int] | None) -> Settings:
    """The settings for the machine that was measured, if it is one that the code runs on; else a note, and without it.

    Where no release of torch is `pinned`, the measured one is judged for, if the project allows it: `newest` is the
    newest that it does (`None`: it does not say). What the configuration says of the machine must be
    as it was measured.
    """
    from torchdet_lint.catalogue import measured

    try:
        machine = measured.read(settings.measured).machine
    except measured.MeasuredError as error:
        raise ConfigError(f"measured: {error}") from error
    release = _release(machine.release)
    if not pinned and (newest is None or release <= newest):
        settings = msgspec.structs.replace(settings, torch=release)
    name = Path(settings.measured).name
    other = machine.unlike(msgspec.to_builtins(settings.machine))
    note = ""
    if release != settings.torch:
        wanted = ".".join(map(str, settings.torch))
        note = f"{name}: measured with torch {machine.release}, and the code is judged for {wanted}: not used"
    elif machine.device not in settings.devices:
        note = f"{name}: measured on {machine.device}, and the code runs on {', '.join(settings.devices)}: not used"
    elif pinned and not machine.fits(pinned):
        note = f"{name}: measured with torch {machine.torch}, and the code is judged for {pinned}: not used"
    elif other:
        note = f"{name}: measured with {other} (`machine`): not used"
    return msgspec.structs.replace(settings, measured="", notes=(*settings.notes, note)) if note else settings


def inside(path: str, root: str) -> bool:
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
    for name in options.seed_functions or ():
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigError(f"{where}seed-functions: {name!r} is not the name of a function such as 'mylib.seed_all'")
    if options.jobs is not None and options.jobs < 0:
        raise ConfigError(f"{where}jobs: {options.jobs} is negative; 0 means one for each processor")
    if options.seed is not None and not 0 <= options.seed < 2**32:
        raise ConfigError(f"{where}seed: {options.seed} is not between 0 and 2**32 - 1 (NumPy takes no other)")


def _with_patterns_from_top(options: Options, where: str, root: str, base: str) -> Options:
    """`options` with patterns as the top of the project has them; a `./` of theirs is the folder `base`."""
    changed: dict[str, Any] = {}
    for key in ("exclude", "extend_exclude", "entry_points"):
        if (patterns := getattr(options, key)) is not None:
            told = f"{where}{key.replace('_', '-')}"
            changed[key] = tuple(_pattern(pattern, told, root, base) for pattern in patterns)
    if options.per_file_ignores:
        told = f"{where}per-file-ignores"
        changed["per_file_ignores"] = {
            _pattern(pattern, told, root, base): codes for pattern, codes in options.per_file_ignores.items()
        }
    return msgspec.structs.replace(options, **changed)


def _pattern(pattern: str, told: str, root: str, base: str) -> str:
    if not is_one(pattern):
        raise ConfigError(f"{told}: {pattern!r} is not a pattern such as '*.py' or '/scripts'")
    try:
        return from_top(pattern, root, base)
    except ValueError as error:
        raise ConfigError(f"{told}: {pattern!r} leads out of the project {root}") from error


def _expanded(patterns: Iterable[str], root: Path, where: str) -> Iterable[str]:
    for pattern in patterns:
        if os.path.isabs(pattern) or os.pardir in pattern.replace("\\", "/").split("/"):
            raise ConfigError(f"{where}rule-files: {pattern!r} leads out of the project")
        try:
            files = sorted(str(path) for path in root.glob(pattern))
        except (OSError, ValueError, NotImplementedError, IndexError, RecursionError):
            files = []
        if not files:
            raise ConfigError(f"{where}rule-files: nothing matches {pattern!r} under {root}")
        yield from files


def _named(patterns: Iterable[str]) -> Iterable[str]:
    """The files that the user names, wherever they are."""
    for pattern in patterns:
        import glob

        files = sorted(glob.glob(pattern, recursive=True))
        if not files:
            raise ConfigError(f"--rule-files: nothing matches {pattern!r}")
        yield from map(os.path.abspath, files)


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor.partition("+")[0])
