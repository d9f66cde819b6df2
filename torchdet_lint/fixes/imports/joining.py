"""A name that a fix imports -> the edit that puts it among those of a `from module import …` that the file has."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.module.names import dotted
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.finding import Edit
    from torchdet_lint.fixes.edits import Editor
    from torchdet_lint.fixes.layout import Top

_HEAD = lazy(r"from[\s\\.\w]*?\bimport\b")
_NAME = lazy(r"#[^\r\n]*|(\w+)(?:[\s\\]+as[\s\\]+\w+)?")
# Nobody who sorts imports by machine takes a longer line than this for one that has to be broken, and one that is
# broken with a comma at its end stays so where lines may be longer.
_WIDEST = 88
_Key = tuple[int, list[tuple[int, str]], str]


class _Name(NamedTuple):
    """One of the names that are imported, as it stands in the text."""

    name: str
    start: int
    end: int
    row: int


def joined(editor: Editor, statement: str, limit: int | None) -> Edit | None:
    """The edit that adds the name of `from module import name` to an import of the same module above row `limit`, or
    None: there is none, it imports under other names only, or the file has one line for each name."""
    match = re.fullmatch(r"from (\S+) import (\w+)", statement)
    if match is None:
        return None
    tops = [top for run in editor.layout.runs for top in run if limit is None or top.last < limit]
    found = [(module, node) for top in tops for module, node in _imports_from(top)]
    if _one_a_line(found):
        return None
    for module, node in found:
        if module == match[1] and any(alias.asname is None for alias in _aliases(node)):
            return _Joining(editor, node).edit(match[2])
    return None


def _imports_from(top: Top) -> Sequence[tuple[str, cst.ImportFrom]]:
    """The module and the import that stands in `top` by itself."""
    line = top.node
    if top.kind != "import" or not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
        return ()
    node = line.body[0]
    if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
        return ()
    return [("." * len(node.relative) + (dotted(node.module) if node.module is not None else ""), node)]


def _aliases(node: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    assert not isinstance(node.names, cst.ImportStar)
    return node.names


def _one_a_line(found: Sequence[tuple[str, cst.ImportFrom]]) -> bool:
    """Whether a module is imported from in several lines, and none imports two names."""
    times = Counter(module for module, node in found if any(alias.asname is None for alias in _aliases(node)))
    return any(count > 1 for count in times.values()) and all(len(_aliases(node)) == 1 for _, node in found)


class _Joining:
    """A `from module import …`, and where another name goes in it."""

    def __init__(self, editor: Editor, node: cst.ImportFrom) -> None:
        self.editor = editor
        self.layout = layout = editor.layout
        self.text = editor.module.text
        self.node = node
        self.start, self.end = layout.span(node)
        self.names = list(self._written())
        self.first_row, self.last_row = (layout.location(offset).row for offset in (self.start, self.end))
        self.width = min(layout.width, _WIDEST)

    def _written(self) -> Iterator[_Name]:
        """The names as they stand in the text."""
        head = _HEAD.match(self.text, self.start)
        assert head is not None
        for match in _NAME.finditer(self.text, head.end(), self.end):
            if match[1]:
                yield _Name(match[1], match.start(), match.end(), self.layout.location(match.start()).row)

    def edit(self, name: str) -> Edit:
        """The edit that adds `name`."""
        at = _place([one.name for one in self.names], name)
        rows = {one.row for one in self.names}
        if self.first_row == self.last_row:
            return self._on_one_row(name, at)
        if self.node.lpar is None or len(rows) < len(self.names) or (len(rows) == 1 and self.first_row in rows):
            return self._beside(name, at)
        return self._on_its_own_row(name, at)

    def _on_one_row(self, name: str, at: int) -> Edit:
        stop = self.editor.line_stop(self.end)
        if len(self._row(self.first_row)) + len(f", {name}") <= self.width:
            return self._beside(name, at)
        # The comment stays with the statement's first row.
        newline = self.layout.newline
        comment = self.text[self.end : stop].rstrip()
        written = [self.text[one.start : one.end] for one in self.names]
        lines = "".join(f"{newline}{self.layout.indent}{one}," for one in [*written[:at], name, *written[at:]])
        opening = self.names[0].start
        if self.node.lpar is not None:
            opening = self.text.rindex("(", self.start, opening)
        return self.editor.edit(opening, stop, f"({comment}{lines}{newline})")

    def _beside(self, name: str, at: int) -> Edit:
        """Put the name before the one that comes next, or after the last one."""
        if at < len(self.names):
            start = self.names[at].start
            return self.editor.edit(start, start, f"{name}, ")
        last = self.names[-1]
        fits = self.node.lpar is None or len(self._row(last.row)) + len(f", {name}") <= self.width
        apart = " " if fits else f"{self.layout.newline}{self._indent(last)}"
        return self.editor.edit(last.end, last.end, f",{apart}{name}")

    def _on_its_own_row(self, name: str, at: int) -> Edit:
        newline = self.layout.newline
        if at == 0:
            first = self.names[0]
            if first.row > self.first_row:
                return self.editor.lines_after(self.first_row, f"{self._indent(first)}{name},\n")
            return self.editor.edit(first.start, first.start, f"{name},{newline}{self._indent(first)}")
        before = self.names[at - 1]
        stop = self.editor.line_stop(before.end)
        rest = self.text[before.end : stop]
        indent = self._indent(before)
        if re.fullmatch(r"[ \t]*,[ \t]*(?:#.*)?", rest):
            return self.editor.lines_after(before.row, f"{indent}{name},\n")
        if at < len(self.names):
            return self._beside(name, at)
        if re.fullmatch(r"[ \t]*(?:#.*)?", rest):
            return self.editor.edit(before.end, stop, f",{rest}{newline}{indent}{name}")
        return self.editor.edit(before.end, before.end, f",{newline}{indent}{name}")

    def _row(self, row: int) -> str:
        return self.layout.lines[row - 1].rstrip().expandtabs(4)

    def _indent(self, one: _Name) -> str:
        """What stands before the names that begin a row: in the first row of the statement, as much room."""
        line = self.layout.lines[one.row - 1]
        if one.row > self.first_row:
            return line[: len(line) - len(line.lstrip(" \t"))]
        return " " * (one.start - self.layout.starts[one.row - 1])


def _place(names: Sequence[str], name: str) -> int:
    """Where `name` goes among `names`: in its place where they are sorted, else last."""
    for key in (_by_kind, _by_letters, _by_codes):
        keys = [key(one) for one in names]
        if keys == sorted(keys):
            return bisect.bisect_right(keys, key(name))
    return len(names)


def _by_kind(name: str) -> _Key:
    """Constants, then classes, then the others, and numbers in names as numbers: the order of isort and ruff."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    parts = re.findall(r"\d+|\D+", name.lower())
    return kind, [(int(part), "") if part.isdigit() else (-1, part) for part in parts], name


def _by_letters(name: str) -> _Key:
    return 0, [], name.lower()


def _by_codes(name: str) -> _Key:
    return 0, [], name
