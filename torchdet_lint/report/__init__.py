"""Findings -> text, in one of the output formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchdet_lint.finding import Result
    from torchdet_lint.source.snippets import Snippets


class Report(NamedTuple):
    """What a format needs: the run's result, the lines of source, the rule files of each configuration, what was fixed,
    by code and name (None: it was not a run to fix anything), and how wide the terminal is (0: lines may have any
    length)."""

    result: Result
    snippets: Snippets
    quiet: bool = False
    rule_files: tuple[tuple[str, ...], ...] = ()
    fixed: Mapping[tuple[str, str], int] | None = None
    width: int = 0


Format = Callable[["Report"], Iterator[str]]


_ROOMS: Mapping[str, tuple[str, str]] = {
    "concise": ("text", "concise"),
    "full": ("text", "full"),
    "github": ("machine", "github"),
    "gitlab": ("machine", "gitlab"),
    "grouped": ("text", "grouped"),
    "json": ("machine", "json_array"),
    "json-lines": ("machine", "json_lines"),
    "json-statistics": ("machine", "json_statistics"),
    "junit": ("machine", "junit"),
    "sarif": ("sarif", "sarif"),
    "statistics": ("text", "statistics"),
}


def writer(name: str) -> Format:
    """The format `name`; a run imports the one that it prints."""
    module, function = _ROOMS[name]
    found: Format = getattr(import_module(f"torchdet_lint.report.{module}"), function)
    return found
