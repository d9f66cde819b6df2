"""Seeds that an author has commented out, where a program begins -> the edits that bring them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.finding import Edit, Location
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.fixes.draft import Draft

_CALL = lazy(r"([ \t]*)(#[ \t]?)([\w.]+)\((\d+)\)[ \t]*(?:#.*)?$")
# NumPy takes no seed from here on.
_SEEDS_END = 2**32
_CODE = lazy(r"[=()\[\]]|\bimport\b")


class Commented(NamedTuple):
    """A seed in a comment: its row, where the comment begins and where its text does, and the number."""

    row: int
    start: int
    text: int
    seed: str

    def edit(self, draft: Draft) -> Edit:
        """What makes it code again."""
        cell, row = draft.module.source.place(self.row)
        start, end = draft.layout.location(self.start), draft.layout.location(self.text)
        return Edit("", Location(row, start.column), Location(row, end.column), cell)


def commented_seeds(
    draft: Draft, calls: Mapping[str, tuple[str, str]], before: cst.CSTNode | None
) -> dict[str, Commented]:
    """For each library the first comment that is nothing but a seed of it and stands where the program begins: at top
    level above `before`, which uses random numbers, or in the main guard above the finding. `calls` are the module and
    the function that seed a library."""
    found: dict[str, Commented] = {}
    for row, line in _comments(draft, before):
        match = _CALL.match(line)
        if match is None or any(_CODE.search(one) and not _CALL.match(one) for one in _around(draft, row)):
            continue
        for library, (module, function) in calls.items():
            name = draft.bound(module, draft.node, row)
            said = name is not None and function.replace(f"{{{module}}}", name) == match[3]
            if said and library not in found and int(match[4]) < _SEEDS_END and not _is_taken(draft, library, match[4]):
                start = draft.layout.starts[row - 1]
                found[library] = Commented(row, start + match.start(2), start + match.start(3), match[4])
    return found


def _comments(draft: Draft, before: cst.CSTNode | None) -> Iterator[tuple[int, str]]:
    """The rows that may hold such a comment: between the statements among which the seeds of the program go."""
    guard = draft.layout.guard
    if before is not None:
        limit = draft.module.span(before)[0].row
        first, indent, held = 1, "", [(top.first, top.last) for top in draft.layout.top if top.first < limit]
    elif guard is not None and isinstance(guard.node, cst.If) and guard.first <= draft.row:
        first, limit = guard.first + 1, draft.row
        spans = [draft.module.span(one) for one in guard.node.body.body]
        held = [(start.row, end.row) for start, end in spans if start.row < limit]
        row = spans[0][0].row
        indent = draft.layout.lines[row - 1][: spans[0][0].column - 1]
    else:
        return
    for begin, end in zip(
        [first, *(last + 1 for _, last in held)], [*(start for start, _ in held), limit], strict=True
    ):
        for row in range(begin, end):
            line = draft.layout.lines[row - 1].rstrip("\r\n")
            legible = draft.module.source.legible_row(row) == row
            if "seed(" in line and line.startswith(f"{indent}#") and legible:
                yield row, line


def _around(draft: Draft, row: int) -> Iterator[str]:
    """The comments right above and below `row`: of code that is commented out as a whole, a seed is only a part."""
    lines = draft.layout.lines
    for step in (-1, 1):
        at = row + step
        while 0 < at <= len(lines) and lines[at - 1].lstrip(" \t").startswith("#"):
            yield lines[at - 1].rstrip("\r\n")
            at += step


def _is_taken(draft: Draft, library: str, number: str) -> bool:
    """Whether the file gives a generator of its own that number, which draws the same as that of `library` then."""
    given = draft.module.library.facts.conventions.gives_its_own(library)
    text = draft.module.text
    return any(text.startswith(number, match.end()) for match in given.finditer(text))
