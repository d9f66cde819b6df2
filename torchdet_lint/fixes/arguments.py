"""Arguments to set or to drop -> the edits of a call, in the manner in which the call is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.fixes.breaking import broken
from torchdet_lint.fixes.edits import Refusal, short
from torchdet_lint.fixes.layout import line_end
from torchdet_lint.source.lines import comments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.finding import DropArgument, Edit, SetArgument
    from torchdet_lint.fixes.draft import Draft
    from torchdet_lint.module.module import Call

_CHANGING = r"^[ \t]*{}(?:\s*:[^=\n]*)?\s*(?:=(?!=)|\[[^\]]*\]\s*=(?!=)|\.update\()"


def set_arguments(draft: Draft, changes: Sequence[SetArgument]) -> list[Edit]:
    """Set keyword arguments of one call."""
    node = changes[0].call
    call = draft.module.call_at(node)
    edits: list[Edit] = []
    new: list[str] = []
    for change in changes:
        value = change.value if change.value not in draft.helpers else f"{{{change.value}}}"
        held = _held(draft, node, call, change.name)
        if held is not None:
            edits.append(draft.editor.edit(*draft.layout.span(held), draft.filled(value, held)))
        else:
            new.append(f"{change.name}{_equals(node)}{draft.filled(value, node)}")
    if new:
        edits += _appended(draft, node, new)
    return edits


def _equals(node: cst.Call) -> str:
    """How the call writes what stands between a keyword and its value: as most of its arguments have it."""
    written = [arg.equal for arg in node.args if isinstance(arg.equal, cst.AssignEqual)]
    spaced = [one for one in written if one.whitespace_before.empty is False and one.whitespace_after.empty is False]
    return " = " if 2 * len(spaced) > len(written) else "="


def move_to_holder(draft: Draft, change: SetArgument) -> None:
    """What is needed is needed already where the dictionary is made that holds the argument."""
    held = _held(draft, change.call, draft.module.call_at(change.call), change.name)
    if held is not None and draft.module.span(held)[0].row < draft.row:
        draft.node, draft.row = held, draft.module.span(held)[0].row


def _held(draft: Draft, node: cst.Call, call: Call | None, name: str) -> cst.BaseExpression | None:
    """The value that the call is given for `name`: by keyword, by position, or in a dictionary."""
    for arg in node.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    if call is None:
        return None
    value = call.argument(name, _parameters(draft, call))
    if value is not None:
        if not any(arg.value is value.node and not arg.star for arg in node.args) and not _unpacked(
            draft, call, value.node
        ):
            raise Refusal(f"`{name}` comes from somewhere else than the call")
        return value.node
    if any(arg.star == "**" for arg in node.args) and call.opaque:
        raise Refusal(f"`**` may pass `{name}` already")
    return None


def _unpacked(draft: Draft, call: Call, value: cst.CSTNode) -> bool:
    """Whether `value` stands in a dictionary that only such calls unpack: `f(**{…})`, or a name of this scope."""
    around = list(draft.module.ancestors(value))
    if any(arg.star == "**" and arg.value in around for arg in call.node.args):
        return True
    name = _changed_by(draft.module.statement(value))
    home = call.scope.home(name)
    if not _unpacks(call, name) or home is None or draft.module.scope_of(value).home(name) is not home:
        return False
    unpacking = [other for other in draft.module.calls if _unpacks(other, name)]
    uses = len(re.findall(rf"\b{re.escape(name)}\b", draft.module.text))
    changes = len(re.findall(_CHANGING.format(re.escape(name)), draft.module.text, re.MULTILINE))
    return uses == changes + len(unpacking) and all(_alike(draft, other, call) for other in unpacking)


def _alike(draft: Draft, one: Call, other: Call) -> bool:
    """Whether two calls are of the same thing."""
    code = draft.module.code
    return not set(one.names).isdisjoint(other.names) or code(one.node.func) == code(other.node.func)


def _changed_by(statement: cst.CSTNode) -> str:
    """The name of the dictionary that a statement makes or changes."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    target: cst.CSTNode | None = None
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
    elif isinstance(small, cst.AnnAssign):
        target = small.target
    elif (
        isinstance(small, cst.Expr)
        and isinstance(small.value, cst.Call)
        and isinstance(small.value.func, cst.Attribute)
    ):
        target = small.value.func.value
    while isinstance(target, cst.Subscript):
        target = target.value
    return target.value if isinstance(target, cst.Name) else ""


def _parameters(draft: Draft, call: Call) -> Sequence[str] | None:
    """The parameters of the callee: what the catalogue says of it anywhere, or what the rule says."""
    if call.parameters is not None:
        return call.parameters
    known = [(row.names, row.parameters) for row in draft.rule.calls]
    known += [(row.names, row.parameters) for row in draft.module.library.facts.seeds]
    return next((rest for names, rest in known if rest and not set(names).isdisjoint(call.names)), None)


def _appended(draft: Draft, node: cst.Call, new: Sequence[str]) -> list[Edit]:
    """Add arguments at the end of a call, in the manner in which it is written."""
    text, layout = draft.module.text, draft.layout
    if not node.args:
        close = layout.span(node)[1] - 1
        opening = text.rindex("(", layout.span(node.func)[1] - 1, close)
        for _, comment in comments(text[opening:close]):
            raise Refusal(f"the comment `{short(comment)}` stands where the argument would go")
        return [draft.editor.edit(opening, close, f"({', '.join(new)}")]
    if isinstance(node.args[0].value, cst.GeneratorExp) and not node.args[0].value.lpar:
        raise Refusal("the call takes a generator expression without parentheses of its own")
    stars = [arg for arg in node.args if arg.star == "**"]
    between = bool(stars) and stars[-1] is node.args[-1] and len(node.args) > len(stars)
    place = node.args.index(stars[0]) if between else len(node.args)
    if (lines := broken(draft, node, new, place)) is not None:
        return lines
    if between:
        return [_before_stars(draft, node, layout.span(stars[0])[0], new)]
    end = layout.span(node.args[-1])[1]
    comma = _comma_after(text, end)
    return _after_last(draft, node, end, comma, new)


def _before_stars(draft: Draft, node: cst.Call, start: int, new: Sequence[str]) -> Edit:
    """Put arguments before `**options`, which starts at `start`: on lines of their own where that has one, or where
    a call that is broken already would grow too wide."""
    where = draft.layout.location(start)
    line = draft.layout.lines[where.row - 1]
    lead = line[: where.column - 1]
    newline = line_end(line) or draft.layout.newline
    broken = where.row > draft.layout.location(draft.layout.span(node)[0]).row
    if lead.strip() and broken and len(line.rstrip()) + len(", ".join(new)) + 2 > draft.layout.width:
        indent = newline + line[: len(line) - len(line.lstrip(" \t"))]
        gap = len(lead) - len(lead.rstrip(" \t"))
        return draft.editor.edit(start - gap, start, "".join(f"{indent}{part}," for part in new) + indent)
    separator = " " if lead.strip() else newline + lead
    return draft.editor.edit(start, start, "".join(f"{part},{separator}" for part in new))


def _after_last(draft: Draft, node: cst.Call, end: int, comma: int, new: Sequence[str]) -> list[Edit]:
    text, layout = draft.module.text, draft.layout
    where = layout.location(layout.span(node.args[-1])[0])
    line = layout.lines[where.row - 1]
    lead = line[: where.column - 1]
    close = layout.span(node)[1] - 1
    own_line = not lead.strip()
    after = comma + 1 if comma >= 0 else end
    closes_below = "\n" in text[after:close] or "\r" in text[after:close]
    opens = layout.location(layout.span(node)[0]).row
    wide = not own_line and len(line.rstrip()) + len(", ".join(new)) + 2 > layout.width
    broken = wide and (where.row > opens or closes_below)
    if broken:
        lead = line[: len(line) - len(line.lstrip(" \t"))]
        if where.row == opens:
            column = layout.location(layout.span(node.args[0])[0]).column - 1
            fits = "\t" not in line[:column] and column + max(map(len, new)) < layout.width
            lead = " " * column if fits else lead + layout.indent * 2
    remark = text[close : draft.editor.line_stop(close)]
    if "#" in remark and not closes_below and (own_line or broken):
        # A comment after the closing parenthesis may be about the last argument: that stays the last one.
        if own_line and node.args[-1].keyword is not None:
            start = layout.span(node.args[-1])[0]
            return [draft.editor.edit(start, start, "".join(f"{part},{line_end(line)}{lead}" for part in new))]
        own_line = broken = False
    if not (own_line or broken):
        joined = ", ".join(new)
        if comma >= 0:
            return [draft.editor.edit(after, after, f" {joined},")]
        return [draft.editor.edit(end, end, f", {joined}")]
    newline = line_end(line) or layout.newline
    rest = text[after : draft.editor.line_stop(after)]
    if closes_below and rest.strip():
        # A comment after the last argument stays with it.
        stop = draft.editor.line_stop(after)
        edits = [] if comma >= 0 else [draft.editor.edit(end, end, ",")]
        return [*edits, draft.editor.edit(stop, stop, "".join(f"{newline}{lead}{part}," for part in new))]
    if comma >= 0:
        return [draft.editor.edit(after, after, "".join(f"{newline}{lead}{part}," for part in new))]
    return [draft.editor.edit(end, end, "".join(f",{newline}{lead}{part}" for part in new))]


def dropped(draft: Draft, change: DropArgument) -> Edit:
    """Take an argument out of its call, with the comma that parted it from the others."""
    args = list(change.call.args)
    index = next(place for place, arg in enumerate(args) if arg is change.argument)
    start, end = draft.layout.span(change.argument)
    if index + 1 < len(args):
        if index == 0:
            return draft.editor.edit(start, draft.layout.span(args[1])[0], "")
        before = draft.layout.span(args[index - 1])[1]
        return draft.editor.edit(
            _comma_after(draft.module.text, before) + 1, _comma_after(draft.module.text, end) + 1, ""
        )
    if index:
        return draft.editor.edit(draft.layout.span(args[index - 1])[1], end, "")
    comma = _comma_after(draft.module.text, end)
    return draft.editor.edit(start, comma + 1 if comma >= 0 else end, "")


def _unpacks(call: Call, name: str) -> bool:
    """Whether `**name` is among the arguments."""
    return any(
        arg.star == "**" and isinstance(arg.value, cst.Name) and arg.value.value == name for arg in call.node.args
    )


def _comma_after(text: str, at: int) -> int:
    """The place of the comma that follows an argument ending at `at`, comments skipped; -1 where there is none."""
    while at < len(text):
        character = text[at]
        if character == ",":
            return at
        if character == "#":
            while at < len(text) and text[at] not in "\r\n":
                at += 1
        elif character.isspace() or character == "\\":
            at += 1
        else:
            return -1
    return -1
