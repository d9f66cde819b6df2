"""What a project requires of torch, read as text -> the release that its code is judged for."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint import reading
from torchdet_lint.config.options import NEWEST_TORCH, OLDEST_TORCH
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REQUIREMENT = lazy(r"[\"']?(?:py)?torch(?:\[[^\]]*\])?\(?(?P<specifier>[<>=!~][^;#\"')]*)")
_CLAUSE = lazy(r"(?P<operator>===?|~=|!=|<=?|>=?)(?P<release>\d+(?:\.\d+)*)")
_POETRY = lazy(r"""torch=["']([^"'\n]+)["']""")
_CARET = lazy(r"\^(\d+)((?:\.\d+)*)")
_CONDA = lazy(r"-?[\"']?(?:[\w.-]+::)?(?:py)?torch(?:=(?P<pinned>\d[\w.+]*)|(?P<specifier>[<>=!~]=.*|[<>]\d.*))")
_ENVIRONMENT = lazy(r"(?:^|[_-])(?:conda|env(?:ironment)?)(?:[_-]|$)|^environment")
_DIGITS = 9
_TEXTS = ("pyproject.toml", "setup.cfg", "setup.py")
# Where projects keep their requirements and environments, besides their own folder; and what Cog builds from.
_FOLDERS = ("requirements", "environment", "environments", "env", "envs", "conda")
_COG = "cog.yaml"
# Lists for those who work on the project, which say nothing of where its programs run.
_ASIDE = lazy(r"(?:^|[._-])(?:ci|dev|docs?|lint|readthedocs|tests?|typing)(?:[._-]|$)")


class Required(NamedTuple):
    """What a project requires of torch: the newest release that it allows, be it older than those that the catalogue
    knows, and the oldest, where it names one."""

    newest: tuple[int, int]
    oldest: tuple[int, int] | None


def required_torch(root: Path) -> Required | None:
    """What the project's own requirement on torch allows, read as text; `None`: no requirement."""
    for path in _files(root):
        try:
            text = reading.text(str(path))
        except OSError:
            continue
        if "torch" not in text:
            continue
        for line in _requirements(text, path.suffix):
            match = _REQUIREMENT.match(line)
            newest = newest_allowed(match["specifier"]) if match is not None else None
            if match is not None and newest is not None:
                return Required(newest, _oldest_allowed(match["specifier"]))
    return None


def _files(root: Path) -> list[Path]:
    """The files of `root` that may say what a project requires, those first that count most."""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    listed = [name for name in _TEXTS if name in names]
    listed += [name for name in names if name.startswith("requirements") and name.endswith(".txt")]
    found = [root / name for name in (*listed, *_environments(names), *({_COG} & {*names}))]
    for folder in _FOLDERS:
        found += _kept_in(root / folder) if folder in names else []
    return found


def _kept_in(folder: Path) -> list[Path]:
    """The lists of requirements and the environments of conda in a folder of such; none of a virtual environment."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    if "pyvenv.cfg" in names:
        return []
    texts = (name for name in names if name.endswith((".txt", ".yml", ".yaml")))
    return [folder / name for name in texts if not _ASIDE.search(name)]


def _environments(names: list[str]) -> list[str]:
    """What may be environments of conda by their names, `conda_env.yaml` too; those that are called so come first."""
    texts = (name for name in names if name.endswith((".yml", ".yaml")))
    found = (name for name in texts if _ENVIRONMENT.search(name.rpartition(".")[0]))
    return sorted(found, key=lambda name: (not name.startswith("environment"), name))


def _requirements(text: str, suffix: str) -> Iterator[str]:
    """What may be a requirement, without spaces: the lines, of TOML and Python the quoted strings, of an environment of
    conda what it says in its own spelling."""
    if suffix in (".yml", ".yaml"):
        for line in text.splitlines():
            match = _CONDA.match("".join(line.split())) if "torch" in line else None
            if match is not None:
                yield f"torch=={match['pinned']}" if match["pinned"] else f"torch{match['specifier']}"
        return
    if suffix not in (".toml", ".py"):
        for line in text.splitlines():
            if "torch" in line:
                words = "".join(line.split())
                match = _CONDA.match(words)
                yield f"torch=={match['pinned']}" if match is not None and match["pinned"] else words
        return
    yield from ("".join(part.split()) for part in re.findall(r"""["']([^"'\n]*)["']""", text) if "torch" in part)
    if suffix == ".toml":
        for line in text.splitlines():
            match = _POETRY.match("".join(line.split())) if "torch" in line else None
            if match is not None:
                yield f"torch{_CARET.sub(_caret, match[1])}"


def _caret(match: re.Match[str]) -> str:
    return f">={match[1]}{match[2]},<{int(match[1][:_DIGITS]) + 1}"


def newest_allowed(specifier: str, newest: tuple[int, int] = NEWEST_TORCH) -> tuple[int, int] | None:
    """`">=2.0,<2.4"` -> `(2, 3)`; `None` where no release that the catalogue knows fits, nor an older one."""
    clauses = _clauses(specifier)
    candidates = [(2, minor) for minor in range(newest[1], -1, -1)] + [
        (1, minor) for minor in range(13, OLDEST_TORCH[1] - 1, -1)
    ]
    for candidate in candidates:
        if all(_allows(operator, release, candidate) for operator, release in clauses):
            return candidate
    below = [
        (release[0], (*release, 0)[1] - (operator == "<"))
        for operator, release in clauses
        if operator in ("==", "===", "~=", "<", "<=") and release < OLDEST_TORCH
    ]
    return min(below, default=None)


def _oldest_allowed(specifier: str) -> tuple[int, int] | None:
    """`">=1.4,<2.4"` -> `(1, 4)`; `None` where `specifier` has no lower bound."""
    bounds = [release for operator, release in _clauses(specifier) if operator in (">=", ">", "~=", "==", "===")]
    return max(((*release, 0)[0], (*release, 0)[1]) for release in bounds) if bounds else None


def _clauses(specifier: str) -> list[tuple[str, tuple[int, ...]]]:
    """`">=2.0,<2.4"` -> `[(">=", (2, 0)), ("<", (2, 4))]`."""
    return [
        (match["operator"], tuple(int(part[:_DIGITS]) for part in match["release"].split(".")))
        for match in _CLAUSE.finditer("".join(specifier.split()))
    ]


def known(release: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """The release of the catalogue that stands for `release`, and this itself where it is older than all of them."""
    return (OLDEST_TORCH, release) if release < OLDEST_TORCH else (release, None)


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
