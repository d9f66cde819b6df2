"""Lines of a file -> the attributes that their statements assign, by name; nothing is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

_ASSIGNS = lazy(r"(?<![=!<>])=(?!=)")
_PLAIN = lazy(r"\s*(?:self\.\w+\s*(?::[^+\-*/,]*)?|\(?\s*self\.\w+(?:\s*,\s*self\.\w+)+\s*,?\s*\)?\s*)")
_CALL = lazy(r"\w[ \t]*\(")
# An attribute of which no part is assigned and nothing is called.
_ATTRIBUTE = lazy(r"\.([^\W\d]\w*)\b(?!\s*[.\[(])")
_NAMED = lazy(r"\b(?:setattr|__setattr__)[ \t]*\(\s*[^,()\n]{1,80},\s*[\"'](\w+)[\"']")
# What gives an object attributes by names of the run.
_AT_RUN_TIME = lazy(r"\bsetattr[ \t]*\(\s*self\b|\bself\.__dict__|\bvars[ \t]*\(\s*self\b|__setattr__|__setstate__")
# A name for what the command line says, and an attribute of one.
_OPTIONS = lazy(r"\s*(\w+)(?:\s*,\s*\w+)?\s*=.*\.parse_(?:known_)?args[ \t]*\(")
_OPTION = lazy(r"\s*(\w+)\.\w+\s*")
ANY = "*"
# Before the name of an option of the command line.
OPTION = "--"


def assigned(lines: Sequence[str]) -> dict[str, int]:
    """How often statements assign to attributes of each name, whatever they are of; `ANY` where names of the run do.
    `self.name = …` does not count; options of the command line, `args.name = …`, count under `OPTION` and the name."""
    found: dict[str, int] = {}
    options = {match[1] for line in lines if ".parse_" in line and (match := _OPTIONS.match(line)) is not None}
    for line in lines:
        if "=" in line and "." in line and not _evidently_none(line):
            call = _CALL.search(line)
            *targets, _ = _ASSIGNS.split(line[: call.start() + 1] if call is not None else line)
            for target in targets:
                if _PLAIN.fullmatch(target) is not None:
                    continue
                option = _OPTION.fullmatch(target) if options else None
                prefix = OPTION if option is not None and option[1] in options else ""
                for name in _ATTRIBUTE.findall(target):
                    found[prefix + name] = found.get(prefix + name, 0) + 1
        if "setattr" in line or "__" in line or "vars(" in line:
            for name in _NAMED.findall(line):
                found[name] = found.get(name, 0) + 1
            if _AT_RUN_TIME.search(_NAMED.sub("", line)) is not None:
                found[ANY] = found.get(ANY, 0) + 1
    return found


def _evidently_none(line: str) -> bool:
    """Whether no attribute stands before a sign of equality in `line`, as in most: `x = a.b(c=1)`."""
    sign = line.find("=")
    if line.find(".", 0, sign) >= 0:
        return False
    call = line.find("(", sign)
    if call < 0:
        return line.find("=", sign + 1) < 0
    return line[call - 1].isalnum() and line.find("=", sign + 1, call) < 0
