"""What a project requires of torch, read as text -> the release that its code is judged for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdet_lint.config.options import NEWEST_TORCH

if TYPE_CHECKING:
    from pathlib import Path

_REQUIREMENT = re.compile(r"^\s*[\"']?torch\s*(?:\[[^\]]*\])?\s*\(?(?P<specifier>[<>=!~][^;#\"')]*)", re.MULTILINE)
_CLAUSE = re.compile(r"(?P<operator>===?|~=|!=|<=?|>=?)\s*(?P<release>\d+(?:\.\d+)*)")


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
