"""`[tool.torchdet-lint]` and the flags -> one frozen `Settings`."""

from torchdet_lint.config.merge import judged_alone, judged_for, merge
from torchdet_lint.config.options import FORMATS, NEWEST_TORCH, ConfigError, Options, Settings
from torchdet_lint.config.project import (
    Configuration,
    explicit,
    find,
    isolated,
    load,
    nested,
    options_of,
    starts_project,
    top_of,
)
from torchdet_lint.config.releases import Required, known, newest_allowed, required_torch
from torchdet_lint.config.selectors import chosen, fits, must_fit, near, nearest, selection

__all__ = [
    "FORMATS",
    "NEWEST_TORCH",
    "ConfigError",
    "Configuration",
    "Options",
    "Required",
    "Settings",
    "chosen",
    "explicit",
    "find",
    "fits",
    "isolated",
    "judged_alone",
    "judged_for",
    "known",
    "load",
    "merge",
    "must_fit",
    "near",
    "nearest",
    "nested",
    "newest_allowed",
    "options_of",
    "required_torch",
    "selection",
    "starts_project",
    "top_of",
]
