"""A measurement -> a file for `rules/facts/measured/`: TOML, without what only its owner needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.catalogue.measured import Measurement, Result

_HEAD = """\
# Measured by `torchdet-lint probe` {version} on {date}. Goes into rules/facts/measured/ as
# {name}
"""
_LEFT_OUT = ("seconds", "absolute", "elements", "of", "warned", "provoked")


def file_name(measurement: Measurement) -> str:
    """The name that the file should have: the device and the release of torch."""
    words = "".join(c if c.isalnum() else " " for c in measurement.machine.name.lower()).split()
    return f"{'-'.join(words)}-torch-{measurement.machine.release}.toml"


def contribution(measurement: Measurement) -> str:
    """The file: of every row that was run, what it showed where its condition is met, with and without deterministic
    mode, and what of the rest differed.
    """
    lines = [_HEAD.format(version=measurement.version, date=measurement.date, name=file_name(measurement))]
    whole: dict[str, Any] = msgspec.to_builtins(measurement)
    for name in ("date", "version", "catalogue", "runs", "seconds", "complete"):
        if name in whole:
            lines.append(f"{name} = {_value(whole[name])}")
    lines += ["", "[machine]", *(f"{name} = {_value(value)}" for name, value in whole["machine"].items())]
    for row in measurement.rows:
        results = [result for result in row.results if _told(result)]
        if not any(result.runs for result in results):
            continue
        lines += ["", "[[rows]]"]
        for name, value in msgspec.to_builtins(row).items():
            if name != "results":
                lines.append(f"{name} = {_value(value)}")
        lines += ["results = [", *(f"  {_result(result)}," for result in results), "]"]
    return "\n".join(lines) + "\n"


def _told(result: Result) -> bool:
    if result.outcome in ("unavailable", "not run"):
        return False
    return result.outcome == "differs" or (result.met and result.mode in ("default", "deterministic"))


def _result(result: Result) -> str:
    table: Mapping[str, Any] = msgspec.to_builtins(result)
    return "{ " + ", ".join(f"{name} = {_value(table[name])}" for name in table if name not in _LEFT_OUT) + " }"


def _value(value: Any) -> str:
    """A value of JSON as TOML, which writes text, numbers and lists the same way."""
    return msgspec.json.encode(value).decode()
