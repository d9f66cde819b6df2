"""The keys of the configuration -> what each means and its default, and the JSON schema of the table."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from torchdet_lint.config.options import Options


class Key(NamedTuple):
    """What a key of `[tool.torchdet-lint]` means, and its default in words."""

    meaning: str
    default: str


KEYS = {
    "select": Key("the rules to run, by code, prefix or name; the longest prefix wins", '["TDL"]'),
    "ignore": Key("the rules to leave out, by code, prefix or name", "none"),
    "extend-select": Key("rules to run in addition to the selected ones", "none"),
    "per-file-ignores": Key("rules to leave out in files, by patterns as in .gitignore", "none"),
    "exclude": Key("what to leave out in place of the usual folders, patterns as in .gitignore", "the usual folders"),
    "extend-exclude": Key("what to leave out in addition, patterns as in .gitignore", "none"),
    "respect-gitignore": Key("whether to leave out what git ignores", "true"),
    "output-format": Key("the format of the report", '"full"'),
    "fix": Key("whether to write the safe fixes", "false"),
    "unsafe-fixes": Key("whether fixing includes the unsafe fixes", "false"),
    "seed": Key("the seed that fixes write", "0"),
    "torch-version": Key(
        "the release of torch that the code is judged for", "the newest that the nearest requirement on torch allows"
    ),
    "devices": Key("the devices that the code runs on: cpu, cuda, mps, xpu", '["cpu", "cuda"]'),
    "entry-points": Key("files that people start, patterns as in .gitignore", "what looks like one"),
    "seed-functions": Key("your own functions that seed all generators, by their dotted names", "none"),
    "rule-files": Key("files with rules of your own, patterns below the project", "none"),
    "deterministic-algorithms": Key("whether the program is run in deterministic mode by other means", "false"),
    "baseline": Key("the file of known findings, which are not reported", "none"),
    "measured": Key("what `torchdet-lint probe` wrote: operations are judged by it", "none"),
    "machine": Key("the machine that the code runs on, as far as a measurement has to agree with it", "none"),
    "cache-dir": Key("the folder of the cache, inside the project", '".torchdet_cache"'),
    "jobs": Key("worker processes; 0 is one for each processor", "0"),
    "min-severity": Key("report findings of this severity and worse", '"warning"'),
    "fail-on": Key("exit with 1 for findings of this severity and worse", '"warning"'),
    "force-exclude": Key("whether excluded files are left out where they are named too", "false"),
}


def types() -> dict[str, dict[str, Any]]:
    """The JSON schema of each key."""
    (_,), components = msgspec.json.schema_components([Options], ref_template="#/$defs/{name}")
    found = {}
    for key, schema in components["Options"]["properties"].items():
        kinds = [kind for kind in schema.get("anyOf", [schema]) if kind != {"type": "null"}]
        found[key] = {"description": KEYS[key].meaning, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}
        found[key].pop("default", None)
    return found


def schema() -> dict[str, Any]:
    """The JSON schema of `[tool.torchdet-lint]`, and of a torchdet-lint.toml."""
    _, components = msgspec.json.schema_components([Options], ref_template="#/$defs/{name}")
    whole: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "torchdet-lint",
        "type": "object",
        "properties": types(),
        "additionalProperties": False,
    }
    others = {name: part for name, part in components.items() if name != "Options"}
    return {**whole, "$defs": others} if others else whole


def told(schema: dict[str, Any]) -> str:
    """What a value of the type `schema` looks like, in words."""
    if "enum" in schema:
        return " | ".join(f'"{choice}"' for choice in sorted(schema["enum"]))
    kind = {"boolean": "true | false", "string": "text", "integer": "a whole number"}.get(schema.get("type", ""), "")
    if schema.get("type") == "array":
        return f"a list of {told(schema['items'])}" if isinstance(schema.get("items"), dict) else "a list"
    return kind or "a table"
