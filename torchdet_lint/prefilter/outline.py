"""The text of a file -> what the whole run knows of it, without parsing, at a thousandth of the cost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.prefilter.main_guard import has_main_guard
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.tables.conventions import Conventions

_IMPORTS = lazy(
    r"[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(?P<plain>[^\n#]*))"
)
_WORK = lazy(
    r"^\f?(?![ \t\f]|def\b|class\b|from\b|import\b|async def\b|@|#|\"|'|(?:if|try)\b[^\n]*:\n[ \t]+(?:from|import)\b"
    r"|\w+[ \t]*=[ \t]*lambda\b)"
    r"(?:(?:for|while|with|async|if|try)\b|[^\n#]*\w\()",
    re.MULTILINE,
)


_ADDS_PATH = lazy(r"\bsys\.path\.(?:append|insert|extend)\((?P<given>[^\n]*)")
_NAMED_PATH = lazy(r"\s*(?:\d+\s*,\s*)?([A-Za-z_]\w*)\s*\)")
_PATH_NAMES = 20
_TEXT = lazy(r"""(?<!\w)[rf]?(?P<quote>["'])(?P<text>[^"'\n]*)(?P=quote)""")


class Outline(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What the whole run knows of every file without summarising it: the modules it imports (absolute or with leading
    dots, one entry for every name it takes from one), whether it has a main guard, whether it does work at top level,
    its functions whose names speak of seeds, the rows of its functions' bodies (as `Skeleton` has them; empty where
    it was not parsed), and the folders that it adds to `sys.path`, as it writes them."""

    imports: tuple[str, ...] = ()
    guard: bool = False
    works: bool = False
    seeders: tuple[str, ...] = ()
    bodies: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()


def imports(text: str) -> tuple[str, ...]:
    """The modules that a file imports, read off its text: see `Outline`."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    found: set[str] = set()
    at = -1
    while (at := text.find("import", at + 1)) >= 0:
        match = _IMPORTS.match(text, text.rfind("\n", 0, at) + 1)
        if match is None:
            continue
        at = max(at, match.end() - 1)
        if match["plain"]:
            found.update(part.split(" as ")[0].strip() for part in match["plain"].split(","))
            continue
        module = match["module"]
        joint = "" if module.endswith(".") else "."
        for part in re.split(r"[,\n]", match["names"].strip("()")):
            name = part.partition("#")[0].strip().partition(" ")[0]
            if name:
                found.add(module if name == "*" else f"{module}{joint}{name}")
    return tuple(sorted(found))


def outline(text: str, conventions: Conventions, bodies: tuple[int, ...] = ()) -> Outline:
    """The outline of a file, read off its text. `works` is true where anything at top level may be a call."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    speaks = any(word in text for word in conventions.seeders)
    seeders = tuple(conventions.defines_seeder.findall(text)) if speaks else ()
    return Outline(imports(text), has_main_guard(text), _works(text), seeders, bodies, tuple(_added_paths(text)))


def _added_paths(text: str) -> Iterator[str]:
    """The relative folders that are added to `sys.path`: the texts of each call in sight, or of what the name in it is
    bound to, joined."""
    names: set[str] = set()
    for match in _ADDS_PATH.finditer(text) if "sys.path." in text else ():
        name = _NAMED_PATH.match(match["given"])
        if name is None:
            yield from _folder(match["given"])
        elif name[1] not in names and len(names) < _PATH_NAMES:
            names.add(name[1])
            for value in _bound_to(name[1], text):
                yield from _folder(value)


def _bound_to(name: str, text: str) -> Iterator[str]:
    """What `name` is assigned in a file, and what the function of which it is the first parameter is given there."""
    yield from re.findall(rf"^[ \t]*{name}[ \t]*=[ \t]*([^=\n][^\n]*)", text, re.MULTILINE)
    function = re.search(rf"^def[ \t]+(\w+)\([ \t]*{name}\b", text, re.MULTILINE)
    if function is None:
        return
    for given in re.findall(rf"^[ \t]*{function[1]}\(([^\n]*)\)", text, re.MULTILINE)[:_PATH_NAMES]:
        if given.isidentifier():
            yield from re.findall(rf"^[ \t]*{given}[ \t]*=[ \t]*([^=\n][^\n]*)", text, re.MULTILINE)
        else:
            yield given


def _folder(given: str) -> Iterator[str]:
    """The folder that an expression puts together, where that is a relative one."""
    parts = [part["text"] for part in _TEXT.finditer(given) if part["text"] != "__file__"]
    if given.lstrip("0123456789, [")[:1] not in "\"'":
        # Behind the folder of the file, `+ "/.."` is relative.
        parts = [part.lstrip("/") if "+" in given else part for part in parts]
    if any(parts) and not any(part.startswith(("/", "~")) or "{" in part for part in parts):
        yield "/".join(parts)


def _works(text: str) -> bool:
    return _WORK.search(text) is not None
