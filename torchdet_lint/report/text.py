"""Findings -> the formats for people: `full`, `concise`, `grouped`. Only a terminal gets to see the style marks."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from torchdet_lint.finding import WITHHELD
from torchdet_lint.regex import lazy
from torchdet_lint.report.edits import changed
from torchdet_lint.report.visible import inert, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.finding import Finding, Severity
    from torchdet_lint.report import Report

_MARK = lazy("\x01([a-z ]*)([^\x01\x02]*)\x02")
_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold blue"}
_CONTEXT = 1
_TALLEST = 7
_WIDEST = 1000
_SHOWN = 6
_EDITED = 4
_MARKS = {"-": "red", "+": "green"}


def styled(text: str, style: str, link: str = "") -> str:
    """`text` between marks that `spans` and `plain` understand, with the address that it leads to."""
    return f"\x01{style}{f'<{link}>' if link else ''}\x02{text}\x01\x02"


def plain(text: str) -> str:
    """`text` without its marks."""
    return _MARK.sub("", text) if "\x01" in text else text


def spans(text: str) -> Iterator[tuple[str, str, str]]:
    """The pieces of `text`, each with its style and the address that it leads to ("" for none)."""
    style, link, at = "", "", 0
    for match in _MARK.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], style, link
        style, link, at = match[1], match[2].strip("<>"), match.end()
    if at < len(text):
        yield text[at:], style, link


def place(finding: Finding) -> str:
    """`path:row:column`, with the cell of a notebook."""
    cell = f"cell {finding.cell}:" if finding.cell is not None else ""
    return inert(f"{visible(finding.filename)}:{cell}{finding.location.row}:{finding.location.column}")


def full(report: Report) -> Iterator[str]:
    """Each finding with its source, what to do, and what else belongs to it."""
    for finding in report.result.findings:
        yield f"{styled(place(finding), 'bold')}: {_headline(finding)}"
        yield from _excerpt(finding, report)
        for related in finding.related[:_SHOWN]:
            cell = f"cell {related.cell}:" if related.cell is not None else ""
            where = f"{visible(related.filename)}:{cell}{related.location.row}:{related.location.column}"
            yield f"  = see: {where}: {visible(related.message)}"
        if len(finding.related) > _SHOWN:
            yield f"  = see: {len(finding.related) - _SHOWN} more places, which --output-format json lists"
        if finding.evidence is not None:
            seen = f"{finding.evidence.state}: {finding.evidence.why}"
            yield f"  {styled('= run:', 'cyan')} {visible(seen)}"
        yield f"  {styled('= help:', 'cyan')} {visible(finding.help)}"
        yield from _edit(finding, report)
        yield ""
    yield from _summary(report)


def concise(report: Report) -> Iterator[str]:
    """One line a finding: `path:row:column: CODE message`."""
    for finding in report.result.findings:
        yield f"{styled(place(finding), 'bold')}: {_headline(finding, name=False)}"
    yield from _summary(report)


def grouped(report: Report) -> Iterator[str]:
    """The findings of one file under its name."""
    before = ""
    for finding in report.result.findings:
        if finding.filename != before:
            if before:
                yield ""
            before = finding.filename
            yield styled(inert(f"{visible(before)}:"), "bold")
        cell = f"cell {finding.cell}:" if finding.cell is not None else ""
        yield f"  {cell}{finding.location.row}:{finding.location.column} {_headline(finding, name=False)}"
    if before:
        yield ""
    yield from _summary(report)


def statistics(report: Report) -> Iterator[str]:
    """How many findings each rule has, most first."""
    counts = Counter((finding.code, finding.name) for finding in report.result.findings)
    fixable = Counter(finding.code for finding in report.result.findings if finding.fix is not None)
    width = len(str(max(counts.values(), default=0)))
    for (code, name), number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        mark = "*" if fixable[code] == number else "-" if fixable[code] else " "
        yield f"{number:>{width}}  {styled(code, 'bold')}  [{mark}] {name}"
    if fixable:
        yield "[*] fixable with --fix or --unsafe-fixes, [-] some of them"


def _headline(finding: Finding, *, name: bool = True) -> str:
    page = visible(finding.page)
    code = styled(finding.code, _STYLES[finding.severity], page)
    label = f" [{finding.name}]" if name else ""
    fix = {"safe": " [*]", "unsafe": " [unsafe fix]"}[finding.fix.applicability] if finding.fix else ""
    return f"{code}{label}{fix} {visible(finding.message)}"


def _excerpt(finding: Finding, report: Report) -> Iterator[str]:
    start, end = finding.location, finding.end_location
    first = max(start.row - _CONTEXT, 1)
    last = min(end.row, start.row + _TALLEST - 1)
    lines = report.snippets.lines(finding, first, last)
    if len(lines) <= start.row - first:
        return
    width = len(str(first + len(lines) - 1))
    yield f"{'':>{width}} {styled('|', 'blue')}"
    room = max((report.width or _WIDEST) - width - 3, 20)
    cut = max(start.column - 1 - room, 0)
    lines = [line[cut : cut + 3 * room] for line in lines]
    begins = _columns(_shown(lines[start.row - first][: start.column - 1 - cut]))
    skipped = 0 if begins < room * 2 // 3 else begins - room // 3
    for row, line in enumerate(lines, start=first):
        yield f"{row:>{width}} {styled('|', 'blue')} {_clipped(_shown(line), skipped, room)}".rstrip()
        if row == start.row or (start.row < row <= last and row == end.row):
            begin = start.column - 1 - cut if row == start.row else len(line) - len(line.lstrip())
            stop = max(end.column - 1 - cut, 0) if row == end.row else len(line)
            offset = max(_columns(_shown(line[:begin])) - skipped, 0)
            length = max(min(_columns(_shown(line[:stop])) - skipped, room) - offset, 1)
            yield f"{'':>{width}} {styled('|', 'blue')} {'':>{offset}}{styled('^' * length, _STYLES[finding.severity])}"
    if end.row > last:
        yield f"{'':>{width}} {styled('|', 'blue')} …"


def _edit(finding: Finding, report: Report) -> Iterator[str]:
    """The lines that the fix changes, the first few of them."""
    lines = changed(finding, report.snippets)
    if not lines:
        return
    yield f"  {styled('= fix:', 'cyan')}"
    places = [f"{f'cell {line.cell}:' if line.cell != finding.cell else ''}{line.row}" for line in lines]
    width = max(map(len, places[:_EDITED]))
    for place, line in zip(places[:_EDITED], lines, strict=False):
        text = _around(line.text, finding.location.column)
        yield f"    {place:>{width}} {styled(f'{line.mark} {_shown(text)}', _MARKS[line.mark])}"
    if len(lines) > _EDITED:
        yield f"    {'':>{width}} … {len(lines) - _EDITED} more, which --diff shows"


def _around(line: str, column: int) -> str:
    """`line`, or of a very long one what stands around `column`, with an ellipsis on either side."""
    if len(line) <= _WIDEST:
        return line
    start = max(min(column, len(line)) - _WIDEST // 2, 0)
    return f"{'…' * (start > 0)}{line[start : start + _WIDEST]}{'…' * (start + _WIDEST < len(line))}"


@functools.lru_cache(maxsize=4)
def _shown(line: str) -> str:
    return visible(line, "\t").expandtabs(4)


def _clipped(text: str, skipped: int, room: int) -> str:
    """`text` without its first `skipped` characters and what goes beyond `room`, with an ellipsis for either."""
    if not skipped and len(text) <= room:
        return text
    left = f"…{text[skipped + 1 :]}" if skipped and text[skipped:].strip() else text[skipped:]
    return left if len(left) <= room else f"{left[: room - 1]}…"


def _columns(text: str) -> int:
    """How wide a terminal shows `text`."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text) if not text.isascii() else 0
    marks = sum(unicodedata.combining(character) != 0 for character in text) if not text.isascii() else 0
    return len(text.expandtabs(4)) + wide - marks


def _summary(report: Report) -> Iterator[str]:
    if report.quiet:
        return
    findings = report.result.findings
    if report.fixed:
        number = sum(report.fixed.values())
        yield f"Fixed {number} finding{'s' * (number != 1)}:"
        width = len(str(max(report.fixed.values())))
        for (code, name), count in report.fixed.items():
            yield f"  {count:>{width}} × {code} {name}"
    known = f" ({report.result.known} more in the baseline)" if report.result.known else ""
    if not findings:
        yield f"No nondeterminism found in {_files(report.result.files)}{known}."
        return
    counts = Counter(finding.severity for finding in findings)
    kinds = ", ".join(f"{counts[kind]} {kind}{'s' * (counts[kind] != 1)}" for kind in _STYLES if counts[kind])
    touched = len({finding.filename for finding in findings})
    yield f"Found {kinds} in {touched} of {_files(report.result.files)}{known}."
    safe = sum(finding.fix is not None and finding.fix.applicability == "safe" for finding in findings)
    unsafe = sum(finding.fix is not None and finding.fix.applicability == "unsafe" for finding in findings)
    if report.fixed is not None:
        yield from _left(findings, safe, unsafe)
    elif safe or unsafe:
        more = f" ({unsafe} more with --unsafe-fixes)" if unsafe else ""
        yield f"[*] {safe} fixable with --fix{more}." if safe else f"{unsafe} fixable with --fix --unsafe-fixes."


def _left(findings: Sequence[Finding], safe: int, unsafe: int) -> Iterator[str]:
    """Why `--fix` left what it left."""
    refused = sum(finding.fix is None and WITHHELD in finding.help for finding in findings)
    none = len(findings) - safe - unsafe - refused
    reasons = (
        (unsafe, "with an unsafe fix (--unsafe-fixes)"),
        (safe, "with a fix that was not written"),
        (refused, "whose fix was not made (each says why)"),
        (none, "for which there is no automatic fix"),
    )
    yield f"Left: {', '.join(f'{number} {reason}' for number, reason in reasons if number)}."


def _files(number: int) -> str:
    return f"{number} file{'s' * (number != 1)}"
