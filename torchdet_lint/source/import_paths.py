"""The text of a file -> the folders that it adds to `sys.path`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDS_PATH = lazy(r"\bsys\.path\.(?:append|insert|extend)\((?P<given>[^\n]*)")
_NAMED_PATH = lazy(r"\s*(?:\d+\s*,\s*)?([A-Za-z_]\w*)\s*\)")
_PATH_NAMES = 20
_TEXT = lazy(r"""(?<!\w)[rf]?(?P<quote>["'])(?P<text>[^"'\n]*)(?P=quote)""")


def added_paths(text: str) -> Iterator[str]:
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
