"""`torchdet-lint config`: a key -> what it means and the value that holds here; no key -> all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from torchdet_lint.cli.console import CLEAN, FAILED, UsageError, emit, fail, say
from torchdet_lint.cli.options import Parser, asked_for

if TYPE_CHECKING:
    import argparse


def config_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = Parser(
        prog="torchdet-lint config", description="Say what the configuration's keys mean.", allow_abbrev=False
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="keys of [tool.torchdet-lint] (default: list them)")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the table")
    parser.add_argument("--output-format", choices=("text", "json"), default="text", help="(default: text)")
    parser.add_argument("--config", metavar="FILE", help="this pyproject.toml or torchdet-lint.toml and no other")
    parser.add_argument("--isolated", action="store_true", help="read no configuration")
    return parser


def show(given: argparse.Namespace) -> int:
    """Print what is known about the keys that were named; the exit status."""
    import msgspec

    from torchdet_lint import config
    from torchdet_lint.config import keys

    if given.schema:
        emit([msgspec.json.format(msgspec.json.encode(keys.schema()), indent=2).decode() + "\n"])
        return CLEAN
    for key in given.keys:
        if key not in keys.KEYS:
            raise UsageError(f"config: unknown key {key!r}{config.nearest(key, keys.KEYS)}")
    found = asked_for(given, [os.curdir])
    for complaint in found.errors:
        fail(complaint)
    set_here = {key: value for key, value in msgspec.to_builtins(found.options).items() if value is not None}
    types = keys.types()
    wanted = given.keys or list(keys.KEYS)
    if given.output_format == "json":
        rows = {key: _row(key, types, set_here) for key in wanted}
        emit([msgspec.json.format(msgspec.json.encode(rows), indent=1).decode() + "\n"])
    elif not given.keys:
        width = max(map(len, wanted))
        for key in wanted:
            say(f"{key:<{width}}  {keys.KEYS[key].meaning}")
    else:
        for number, key in enumerate(wanted):
            emit(["\n"] if number else [])
            say(f"{key}: {keys.KEYS[key].meaning}")
            say(f"  type: {keys.told(types[key])}")
            say(f"  default: {keys.KEYS[key].default}")
            if key in set_here:
                value = msgspec.json.encode(set_here[key]).decode()
                say(f"  here: {value} ({os.path.relpath(found.file)})")
    return FAILED if found.errors else CLEAN


def _row(key: str, types: dict[str, Any], set_here: dict[str, Any]) -> dict[str, Any]:
    from torchdet_lint.config import keys

    row = {"meaning": keys.KEYS[key].meaning, "default": keys.KEYS[key].default, "type": types[key]}
    return {**row, "here": set_here[key]} if key in set_here else row
