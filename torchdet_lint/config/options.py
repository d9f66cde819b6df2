"""The configuration, plain data: as a file or the flags give it (`Options`), and as a run needs it (`Settings`)."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from torchdet_lint.finding import SEVERITIES, Severity

Format = Literal["full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit"]
FORMATS: tuple[str, ...] = get_args(Format)
OLDEST_TORCH, NEWEST_TORCH = (1, 7), (2, 15)


class ConfigError(Exception):
    """A configuration or an option that cannot be used; the text names the file and the key."""


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of the machine that the code runs on; empty, or 0, is not known. `name` is the device's."""

    name: str = ""
    driver: str = ""
    cuda: str = ""
    cudnn: str = ""
    threads: int = 0


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
    measured: str | None = None
    machine: Target | None = None
    cache_dir: str | None = None
    jobs: int | None = None
    min_severity: Severity | None = None
    fail_on: Severity | None = None
    force_exclude: bool | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a run does, every default resolved. Paths are absolute; `root` is the project's folder.

    `older` is the release of torch that the project requires where it is older than all that the tables know, `oldest`
    the oldest that it allows, where it names one; `pinned` says that an option names the release, whatever the project
    requires. `notes` are lines for the user: what was asked for and is not done.
    """

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
    older: tuple[int, int] | None = None
    oldest: tuple[int, int] | None = None
    pinned: bool = False
    devices: tuple[str, ...] = ("cpu", "cuda")
    entry_points: tuple[str, ...] = ()
    seed_functions: tuple[str, ...] = ()
    rule_files: tuple[str, ...] = ()
    deterministic_algorithms: bool = False
    baseline: str = ""
    measured: str = ""
    machine: Target = Target()
    notes: tuple[str, ...] = ()
    cache_dir: str = ""
    jobs: int = 0
    min_severity: Severity = "warning"
    fail_on: Severity = "warning"
    force_exclude: bool = False
    ignore_noqa: bool = False

    def reported(self, severity: Severity) -> bool:
        """Whether `min-severity` lets `severity` through."""
        return SEVERITIES.index(severity) <= SEVERITIES.index(self.min_severity)

    def fails(self, severity: Severity) -> bool:
        """Whether a finding of `severity` makes the run fail."""
        return SEVERITIES.index(severity) <= SEVERITIES.index(self.fail_on)
