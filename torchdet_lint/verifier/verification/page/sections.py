"""What a report says -> the parts of its page: causes, fixes, source by heat, environments, the rest."""

from __future__ import annotations

import html
import itertools
import linecache
import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.verification.closer.wording import amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torchdet_lint.verifier.comparison.picture import Heat
    from torchdet_lint.verifier.verification.outcome import Cause, Outcome

_AROUND = 2
_MOST_FILES, _MOST_LINES, _MOST_CAUSES, _MOST_ROWS = 12, 60, 50, 200


def escaped(value: Any) -> str:
    """A text for the page."""
    return html.escape(str(value))


def _worded(text: str) -> str:
    """A text of a rule: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(text))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], unlike: Iterable[bool] = ()) -> str:
    """A table; rows of which `unlike` says so are marked."""
    top = "".join(f"<th scope=col>{escaped(name)}</th>" for name in head)
    body = [
        f"<tr{' class=unlike' if mark else ''}>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>"
        for row, mark in zip(rows, itertools.chain(unlike, itertools.repeat(False)), strict=False)
    ]
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def section(title: str, body: str) -> str:
    """A part of the page; nothing where it has no body."""
    return f"<section><h2>{escaped(title)}</h2>{body}</section>" if body else ""


def causes(report: Outcome) -> str:
    """The root causes in order of execution, and how much differs."""
    shown = [_cause(number, cause) for number, cause in enumerate(report.causes[:_MOST_CAUSES], 1)]
    more = len(report.causes) - len(shown)
    shown += [f"<p class=dim>… and {more} more.</p>"] if more > 0 else []
    shown += [f"<p>{escaped(line)}</p>" for line in amounts(report)]
    return "".join(shown)


def _cause(number: int, cause: Cause) -> str:
    rule = f"{cause.rule} {cause.name}".strip() or "no rule"
    place = f"{cause.file}:{cause.line}" if cause.file else "no line of the program"
    if cause.forward_file:
        place = f"{cause.forward_file}:{cause.forward_line} (backward, from {place})"
    facts = [f"op #{cause.op_index}", f"{cause.differing} of {cause.compared} executions differ"]
    facts += [f"first in step {cause.step}"] if cause.step else []
    facts += [f"pass {cause.epoch} over the data"] if cause.epoch else []
    facts += [f"read at {cause.reader}"] if cause.reader else []
    facts += [f"in {cause.stream}"] if cause.stream != "main" else []
    facts += [f"in {cause.task}"] if cause.task else []
    facts += ["proven: it differs without the fix of its rule, and is equal with it"] if cause.proven else []
    head = f"<strong>{number} {escaped(rule)}</strong> <span class=place>{escaped(place)}</span>"
    lines = [
        f"<p>{head} <code>{escaped(cause.op)}</code>, {escaped(cause.phase)}</p>",
        f"<p>{escaped(cause.message)}</p>",
        f"<p class=dim>{escaped(' · '.join(facts))}</p>",
    ]
    if cause.places:
        lines.append(f"<p>Also at {escaped(', '.join(cause.places))}</p>")
    if cause.finding is not None:
        found = cause.finding
        lines.append(f"<p>The linter: {escaped(f'{found.filename}:{found.line} {found.code} {found.message}')}</p>")
    if cause.instead:
        lines.append(f"<p>Instead: {_worded(cause.instead)}</p>")
    return f"<article>{''.join(lines)}</article>"


def fixes(report: Outcome) -> str:
    """Cause by fix: which set of fixes was tried, and which places still differed under it."""
    fix = report.fix
    if fix is None:
        return ""
    places = list(dict.fromkeys(f"{cause.file}:{cause.line}" for cause in report.causes if cause.file))[:8]
    rows = []
    for attempt in fix.attempts[:_MOST_ROWS]:
        cells = ["differs" if place in attempt.left else "equal" for place in places]
        name = ", ".join(attempt.fixes) if len(attempt.fixes) <= 6 else f"{len(attempt.fixes)} fixes"
        rows.append(
            (name or "none", {"identical": "equal", "diverged": "differ"}.get(attempt.verdict, "failed"), *cells)
        )
    said = f"The smallest set: {', '.join(fix.fixes)}." if fix.cured else "No set that was tried makes the runs equal."
    command = f"<pre>{escaped(fix.command)}</pre>" if fix.command else ""
    edited = (
        f"<p>The edited source: equal in {fix.edited_runs} of {fix.edited_runs} runs.</p>" if fix.edited_runs else ""
    )
    notes = "".join(f"<p>{escaped(note)}</p>" for note in fix.notes)
    tried = table(("fixes", "the runs", *places), rows, [row[1] == "equal" for row in rows]) if rows else ""
    return f"<p>{escaped(said)}</p>{command}{edited}{notes}{tried}"


def source(rows: Sequence[Heat]) -> str:
    """The lines of the program by how much of what they ran differs, file by file, the hottest file first."""
    files: dict[str, dict[int, list[Heat]]] = {}
    for row in rows:
        if row.site.file and row.site.line:
            files.setdefault(row.site.file, {}).setdefault(row.site.line, []).append(row)
    order = sorted(files, key=lambda name: (-sum(one.differing for ones in files[name].values() for one in ones), name))
    return "".join(_file(name, files[name]) for name in order[:_MOST_FILES])


def _file(name: str, lines: Mapping[int, Sequence[Heat]]) -> str:
    most = max(one.differing for ones in lines.values() for one in ones)
    chosen = sorted(lines, key=lambda line: -max(one.differing for one in lines[line]))[:_MOST_LINES]
    shown = sorted({near for line in chosen for near in range(max(1, line - _AROUND), line + _AROUND + 1)})
    told = {line: next((one.site.text for one in ones if one.site.text), "") for line, ones in lines.items()}
    whole = ["", *linecache.getlines(name)]
    here = {line: whole[line].rstrip() if line < len(whole) else "" for line in {*shown, *lines}}
    # The file as it is now says nothing of a recording that was made of another text.
    same = all(here[line].strip()[:200] == text for line, text in told.items() if text and line in chosen)
    body, before = [], 0
    for line in shown:
        hot = lines.get(line, ())
        text = here[line] if same else told.get(line, "")
        if not hot and not text:
            continue
        if before and line > before + 1:
            body.append("<tr><td class=number>⋯</td></tr>")
        before = line
        count = ", ".join(f"{one.differing} of {one.compared} {one.site.op}" for one in hot[:3])
        heat = round(12 + 55 * max(one.differing for one in hot) / most) if hot else 0
        mark = f' class=hot style="--heat: {heat}%"' if hot else ""
        cause = " ← cause" if any(one.kind != "consequence" for one in hot) else ""
        body.append(
            f"<tr{mark}><td class=number>{line}</td><td class=text>{escaped(text)}</td>"
            f"<td class=count>{escaped(count)}{cause}</td></tr>"
        )
    return f"<h3 class=place>{escaped(name)}</h3><table class=source><tbody>{''.join(body)}</tbody></table>"


def environments(sides: tuple[Mapping[str, str], Mapping[str, str]]) -> str:
    """Both environments, complete, what differs marked."""
    names = sorted({*sides[0], *sides[1]})
    rows = [(name, sides[0].get(name, "unset"), sides[1].get(name, "unset")) for name in names]
    return table(("", "run A", "run B"), rows, [row[1] != row[2] for row in rows]) if rows else ""


def left(report: Outcome) -> str:
    """What the runs left behind and what differs of it."""
    rows = [(one.name, one.difference, "" if one.certain else "does not count") for one in report.left]
    crash = f"<pre>{escaped(report.crash)}</pre>" if report.crash else ""
    return (table(("name", "what differs first", ""), rows) if rows else "") + crash


def evidence(report: Outcome) -> str:
    """The linter's findings, held against the runs."""
    rows = [(one.state, f"{one.filename}:{one.line}", one.code, one.why) for one in report.evidence[:_MOST_ROWS]]
    return table(("state", "where", "rule", "why"), rows, [row[0] == "confirmed" for row in rows]) if rows else ""


def runs(report: Outcome) -> str:
    """The runs, how to do them again, and what the verdict does not speak of."""
    rows = [(run.name, run.stress, run.status, run.returncode, f"{run.records:,}") for run in report.runs]
    again = f"<pre>{escaped(report.command)}</pre>" if report.command else ""
    notes = "".join(f"<li>{escaped(note)}</li>" for note in report.not_covered)
    notes = f"<p>Not covered:</p><ul>{notes}</ul>" if notes else ""
    return table(("run", "side", "ended", "exit status", "ops"), rows) + again + notes
