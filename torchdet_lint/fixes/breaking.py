"""A call on one line that new arguments would make too wide -> its edits, broken as the file breaks its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.finding import Edit
    from torchdet_lint.fixes.draft import Draft

_PRAGMA = lazy(r"#\s*(?:noqa|type:|fmt:|pylint:|pragma|pyright:|mypy:|nosec|ruff:)")


def broken(draft: Draft, node: cst.Call, new: Sequence[str], at: int) -> list[Edit] | None:
    """Add the arguments `new` before the one with the index `at`, on lines of their own; None where there is room for
    them in the line, or where the call has several lines already."""
    layout = draft.layout
    start, stop = layout.span(node)
    where = layout.location(start)
    line = layout.lines[where.row - 1].rstrip()
    begin = layout.starts[where.row - 1]
    if stop > begin + len(line) or len(line.expandtabs(4)) + len(", ".join(new)) + 2 <= layout.width:
        return None
    spans = [layout.span(arg) for arg in node.args]
    rest = line[stop - begin :]
    remark = rest.strip() if rest.strip().startswith("#") else ""
    if ("#" in rest and not remark) or any(isinstance(up, cst.FormattedString) for up in draft.module.ancestors(node)):
        return None
    call = _Line(draft, layout.module.text, spans, stop - 1, line[: len(line) - len(line.lstrip(" \t"))])
    if layout.closes_alone:
        return None if _PRAGMA.match(remark) else call.formatted(new, at)
    first = line[: spans[0][0] - begin]
    tail = 0 if remark else len(rest)
    if "\t" not in first and len(first) + max(map(len, new)) + 1 + tail <= layout.width:
        return call.below(new, at, " " * len(first), remark)
    edge = call.indent + layout.indent * (2 if line.endswith(":") else 1)
    return [call.opened(edge), *call.below(new, at, edge, remark, moved=True)]


class _Line:
    """A call on one line of `text`: where its arguments and its last parenthesis stand, and how the line is
    indented."""

    def __init__(self, draft: Draft, text: str, spans: Sequence[tuple[int, int]], close: int, indent: str) -> None:
        self.draft = draft
        self.spans = spans
        self.close = close
        self.indent = indent
        self.newline = draft.layout.newline
        self.texts = [text[start:end] for start, end in spans]
        self.opening = text.rindex("(", 0, spans[0][0]) + 1

    def opened(self, edge: str) -> Edit:
        """Put the first argument on the next line."""
        return self.draft.editor.edit(self.opening, self.spans[0][0], self.newline + edge)

    def below(self, new: Sequence[str], at: int, edge: str, remark: str, *, moved: bool = False) -> list[Edit]:
        """Put the new arguments on lines of their own, or with the others where these are `moved` and there is room."""
        edit, after = self.draft.editor.edit, ", ".join(self.texts[at:])
        start = self.spans[at - 1][1]
        room = self.draft.layout.width - len(edge.expandtabs(4)) - 1
        parting = f",{self.newline}{edge}"
        lines = [*new[:-1], f"{new[-1]}, {after}" if after else new[-1]]
        if after and len(lines[-1]) > room:
            lines = [*new, after]
        if remark:
            # What the comment is about stays in its line.
            stop = self.draft.editor.line_stop(self.close)
            return [edit(start, stop, f",  {remark}{self.newline}{edge}{parting.join(lines)})")]
        text = ", ".join(["", *new, *self.texts[at:]])
        if moved and len(", ".join(self.texts[:at]) + text) <= room:
            return [edit(start, self.close, text)]
        return [edit(start, self.close, parting + parting.join(lines))]

    def formatted(self, new: Sequence[str], at: int) -> list[Edit]:
        """Put all arguments on one line, or each on its own, and the last parenthesis below."""
        edge = self.indent + self.draft.layout.indent
        texts = [*self.texts[:at], *new, *self.texts[at:]]
        together = len(edge.expandtabs(4)) + len(", ".join(texts)) <= self.draft.layout.width
        parting = ", " if together else f",{self.newline}{edge}"
        edits = [self.opened(edge)]
        for place in range(1, len(self.spans)):
            more = parting.join(["", *new, ""]) if place == at else parting
            edits.append(self.draft.editor.edit(self.spans[place - 1][1], self.spans[place][0], more))
        more = parting.join(["", *new]) if at == len(self.spans) else ""
        end = f"{more}{'' if together else ','}{self.newline}{self.indent}"
        return [*edits, self.draft.editor.edit(self.spans[-1][1], self.close, end)]
