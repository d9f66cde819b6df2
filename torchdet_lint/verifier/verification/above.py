"""The source of a program -> the first path above its working folder that it names, and that exists; whether it makes
Python look for modules elsewhere.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_FILES = 100
_MOST_BYTES = 1 << 18
_LOOKS = (b"sys.path", b"addsitedir", b"import_module", b"runpy")
_JOINS = frozenset({"join", "Path", "PurePath", "joinpath"})


def changes_path(folder: Path, files: Iterable[str]) -> bool:
    """Whether one of `files`, which are relative to `folder`, may tell Python where to look for modules."""
    for name in [name for name in files if name.endswith(".py")][:_MOST_FILES]:
        try:
            with (folder / name).open("rb") as opened:
                text = opened.read(_MOST_BYTES)
        except OSError:
            return True
        if any(word in text for word in _LOOKS):
            return True
    return False


def named_above(folder: Path, files: Iterable[str]) -> tuple[str, str] | None:
    """A place in one of `files`, which are relative to `folder`, and the path that it names; None where there is none.
    A bare `..` is none: it is where modules are looked for.
    """
    python = [name for name in files if name.endswith(".py")]
    for name in python[:_MOST_FILES]:
        try:
            if (folder / name).stat().st_size > _MOST_BYTES:
                continue
            tree = ast.parse((folder / name).read_bytes())
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        for line, text in sorted(_paths(tree)):
            if set(Path(text).parts) != {".."} and _leads_out(folder, text):
                return f"{name}:{line}", text
    return None


def _leads_out(folder: Path, text: str) -> bool:
    path = os.path.normpath(folder / text)
    return not Path(path).is_relative_to(folder) and os.path.exists(path)  # noqa: PTH110 - no error for a long word


def _paths(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The relative paths with `..` among the texts of a file, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                parts = [text]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in _JOINS:
                parts = _texts(args)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                parts = _texts([*(left.args if isinstance(left, ast.Call) else [left]), right])
            case _:
                continue
        path = "/".join(parts)
        if "\0" not in path and ".." in Path(path).parts and not Path(path).is_absolute():
            yield node.lineno, path


def _texts(nodes: Iterable[ast.expr]) -> list[str]:
    """The texts from the first that begins with `..` to the next part that is no text."""
    found: list[str] = []
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if found and not text:
            break
        if found or text.startswith(".."):
            found.append(text)
    return found
