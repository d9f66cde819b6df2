"""The catalogue -> what `torchdet-lint rule` and the rule pages say: text, JSON or Markdown."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.catalogue.ops import release as parsed
from torchdet_lint.catalogue.ops import reported_as, status_at, status_in
from torchdet_lint.catalogue.rules import Example
from torchdet_lint.catalogue.verdicts import key
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.measured import Measurement, Result, Row
    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.catalogue.rules import Rule

_MARK = lazy(r"\s*# (expect|todo): ([A-Z]{2,}\d{3}(?:,\s*[A-Z]{2,}\d{3})*)")

_SCOPES = {"run": "the run itself", "file": "each file", "project": "the whole project"}
_STATUS = {
    "errors": "raises in deterministic mode",
    "switchable": "deterministic in deterministic mode",
    "silent": "nondeterministic in every mode, without a warning",
    "deterministic": "deterministic",
    "absent": "not there yet",
}


def as_object(rule: Rule, ops: Iterable[Op] = (), release: tuple[int, int] | None = None) -> dict[str, Any]:
    """The rule as plain data; with `release`, each op as it stands in that release."""
    data = {name: msgspec.to_builtins(getattr(rule, name)) for name in rule.__struct_fields__}
    data["url"] = rule.page or None
    data["ops"] = [_op(op, release) for op in (*rule.ops, *ops)]
    return dict(sorted(data.items()))


def as_json(rules: Iterable[dict[str, Any]], *, single: bool) -> str:
    """The rules of `as_object` as JSON: an object for one rule that was asked for by code, else an array."""
    objects = list(rules)
    return json.dumps(objects[0] if single else objects, indent=2, ensure_ascii=False)


def _op(op: Op, release: tuple[int, int] | None) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(op)
    if release is not None:
        data["status_in_target"] = status_at(op, release)
    return data


def as_text(
    rule: Rule, ops: Iterable[Op] = (), release: tuple[int, int] | None = None, width: int = 100
) -> Iterator[str]:
    """The rule for a terminal of `width` columns; its examples are as wide as they are."""
    yield f"{rule.code} {rule.name} ({rule.severity}, looks at {_SCOPES[rule.scope]})"
    yield ""
    yield from _paragraphs(rule.summary, width=width)
    yield ""
    yield from _paragraphs(rule.why, width=width)
    yield ""
    yield "What to do instead:"
    yield from _paragraphs(rule.instead, "  ", width=width)
    if rule.fix is not None:
        yield ""
        yield from _paragraphs(f"Fix: {rule.fix}{f' ({rule.fix_title})' if rule.fix_title else ''}", width=width)
        if rule.fix_safety:
            yield ""
            yield "Fix safety:"
            yield from _paragraphs(rule.fix_safety, "  ", width=width)
    if rule.runtime_fix:
        command = f"torchdet-lint run --fix={rule.code}"
        note = f": {rule.runtime_note}" if rule.runtime_note else ""
        yield from _paragraphs(f"At run time: {command} ({rule.runtime_fix}){note}", width=width)
    elif rule.runtime_note:
        yield from _paragraphs(f"At run time: no fix: {rule.runtime_note}", width=width)
    table = [*rule.ops, *ops]
    if table:
        yield ""
        yield f"Operations{f' in torch {release[0]}.{release[1]}' if release else ''}:"
        for told in _lines(table, lambda op: _in_words(op, release)):
            yield from textwrap.wrap(told, width, initial_indent="  ", subsequent_indent="      ")
    yield from _examples(rule)
    if rule.references:
        yield ""
        yield from (f"See {reference}" for reference in rule.references)
    if rule.page:
        yield f"Page: {rule.page}"


def _in_words(op: Op, release: tuple[int, int] | None) -> str:
    condition = f", {op.condition}" if op.condition else ""
    return f"{op.op} ({op.direction}{condition}): {_status(op, release)}"


def _lines(ops: Iterable[Op], line: Callable[[Op], str]) -> Iterable[str]:
    """The line of each op in order. Rows that differ only in how the op is called are one line."""
    return dict.fromkeys(map(line, sorted(ops, key=lambda op: (op.op.lower(), op.direction, op.devices, op.condition))))


def _status(op: Op, release: tuple[int, int] | None) -> str:
    if release is not None:
        return _STATUS[status_at(op, release)]
    return "; ".join(f"since {row.since} {_STATUS[row.status]}" for row in op.status)


def _examples(rule: Rule) -> Iterator[str]:
    for title, examples in (("Reported", rule.bad[:1]), ("Not reported", rule.good[:1])):
        for example in examples:
            yield ""
            yield f"{title}:"
            yield from textwrap.indent(_code(example.code), "    ").splitlines()


def _code(text: str) -> str:
    """The source of an example as a reader wants it: a mark names the rule alone."""
    return _MARK.sub(
        lambda mark: f"  # {mark[2]}" + (" (not found yet)" if mark[1] == "todo" else ""), text.strip("\n")
    )


def _condition(example: Example) -> str:
    """What has to hold for an example to be true."""
    parts = []
    if example.torch_version:
        parts.append(f"torch {example.torch_version}")
    if example.devices:
        parts.append(f"`devices = {json.dumps(list(example.devices))}`")
    if example.filename != Example(code="").filename:
        parts.append(f"in a file named `{example.filename}`")
    if example.program:
        parts.append("as a program")
    return f"With {', '.join(parts)}:" if parts else ""


def _example(example: Example) -> Iterator[str]:
    """One example as Markdown: its title, its condition, its files, and what the fix makes of it."""
    for line in (example.title, _condition(example)):
        if line:
            yield from ("", line)
    yield from ("", "```python", _code(example.code), "```")
    for name, text in sorted(example.files.items()):
        language = "python" if name.endswith(".py") else ""
        yield from ("", f"`{name}`:", "", f"```{language}", _code(text), "```")
    if example.fixed and _code(example.fixed) != _code(example.code):
        yield from ("", "After the fix:", "", "```python", _MARK.sub("", example.fixed.strip("\n")), "```")


def _sections(rule: Rule) -> Iterator[str]:
    """An example that is reported and one that is not; all others folded."""
    for title, examples in (("Reported", rule.bad), ("Not reported", rule.good)):
        if not examples:
            continue
        yield from ("", f"## {title}")
        yield from _example(examples[0])
        if len(examples) > 1:
            yield from ("", '<details markdown="1">', f"<summary>More examples: {len(examples) - 1}</summary>")
            for example in examples[1:]:
                yield from _example(example)
            yield from ("", "</details>")


def _paragraphs(text: str, indent: str = "", width: int = 100) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ""
        yield from textwrap.wrap(" ".join(paragraph.split()), width, initial_indent=indent, subsequent_indent=indent)


def brief(rule: Rule) -> str:
    """The rule in Markdown, for a hover or a page of code scanning: what it is, why, and what to do instead."""
    head = f"**[{rule.code}]({rule.page})**" if rule.page else f"**{rule.code}**"
    return f"{head} {rule.name}: {rule.summary}\n\n{rule.why.strip()}\n\n**Instead:** {rule.instead.strip()}"


def page(rule: Rule, ops: Iterable[Op] = ()) -> str:
    """The rule's page in Markdown."""
    lines = [
        f"# {rule.code} {rule.name}",
        "",
        "<!-- generated from the catalogue by `make docs`; edit rules/ -->",
        "",
        rule.summary.strip(),
        "",
        f"Severity: **{rule.severity}** · looks at {_SCOPES[rule.scope]} · fix: **{rule.fix or 'none'}**"
        + (f" ({rule.fix_title})" if rule.fix_title else ""),
        "",
        "## Why",
        "",
        rule.why.strip(),
        "",
        "## Instead",
        "",
        rule.instead.strip(),
    ]
    if rule.fix_safety:
        lines += ["", "## Fix safety", "", rule.fix_safety.strip()]
    if rule.runtime_fix:
        note = f": {rule.runtime_note}" if rule.runtime_note else ""
        command = f"`torchdet-lint run --fix={rule.code} script.py`"
        lines += ["", "## At run time", "", f"{command} applies the fix `{rule.runtime_fix}` without an edit{note}."]
    elif rule.runtime_note:
        lines += ["", "## At run time", "", f"There is no fix at run time: {rule.runtime_note}."]
    table = [*rule.ops, *ops]
    if table:
        lines += [
            "",
            "## Operations",
            "",
            "| operation | direction | condition | status by release |",
            "|---|---|---|---|",
        ]
        lines += _lines(
            table, lambda op: f"| `{op.op}` | {op.direction} | {_cell(op.condition)} | {_cell(_status(op, None))} |"
        )
    lines += _sections(rule)
    if rule.references:
        lines += ["", "## References", "", *(f"- <{reference}>" for reference in rule.references)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_MEASURED = """\
Runs of `torchdet-lint probe` on the machines named whose bits were others than those of most runs with the same inputs,
of all runs, and the same in deterministic mode. None of so many is no proof: see [Measure your own GPU](probe.md).
"""
_MATRIX = """# The nondeterministic operations, release by release

<!-- generated from the catalogue by `make docs`; edit rules/facts/ops.toml -->

What each operation does on the devices named, from torch 1.7 to {newest}. **raises**: it is nondeterministic, and
`torch.use_deterministic_algorithms(True)` makes it raise. **switch**: it is nondeterministic, and that call makes it
deterministic. **silent**: it is nondeterministic, and PyTorch gives no warning. A dot: deterministic, not there yet,
or not examined. *not reported* says why no check reports it, *with the mode* that it is told once with a program's
missing deterministic mode.

The evidence is in `rules/facts/ops.toml`: torch's documentation, its sources, and the alerts and atomic instructions
that were read out of the compiled kernels of each release. Where the documentation and the kernels disagree, the
table follows the kernels.
"""
_SHORT = {"errors": "raises", "switchable": "switch", "silent": "silent"}


def matrix(
    ops: Iterable[Op], newest: tuple[int, int] = (2, 15), measurements: Sequence[tuple[str, Measurement]] = ()
) -> str:
    """The page of all ops in Markdown: torch's with a column for each release that changes one, then the others'; and
    what was measured, with a column for each machine.
    """
    every = list(ops)
    torch = [op for op in every if op.package == "torch"]
    releases = sorted({parsed(row.since) for op in torch for row in op.status} | {newest})
    columns = [f"{major}.{minor}" for major, minor in releases]
    lines = [_MATRIX.format(newest=columns[-1]), "## torch", ""]
    lines.append(f"| operation | direction | devices | {' | '.join(columns)} | reported |")
    lines.append("|---|---|---|" + "---|" * (len(columns) + 1))

    def of_torch(op: Op) -> str:
        cells = " | ".join(_SHORT.get(status_in(op.status, target), "·") for target in releases)
        return f"| {_named(op)} | {op.direction} | {', '.join(op.devices)} | {cells} | {_reported(op, newest)} |"

    def of_others(op: Op) -> str:
        history = "; ".join(f"{row.since}: {_SHORT.get(row.status, row.status)}" for row in op.status)
        return f"| {_named(op)} | {op.direction} | {op.package} | {history} | {_reported(op, newest)} |"

    lines += _lines(torch, of_torch)
    lines += [
        "",
        "## Other packages",
        "",
        "| operation | direction | package | history | reported |",
        "|---|---|---|---|---|",
    ]
    lines += _lines((op for op in every if op.package != "torch"), of_others)
    if measurements:
        lines += _measured(every, measurements)
    return "\n".join(lines) + "\n"


def _measured(ops: Sequence[Op], measurements: Sequence[tuple[str, Measurement]]) -> Iterator[str]:
    """What every machine showed of each op where the condition is met, and in deterministic mode."""
    yield from ["", "## Measured", "", _MEASURED]
    names = [f"[{about.machine.title}](../rules/facts/measured/{name})" for name, about in measurements]
    yield f"| operation | direction | {' | '.join(names)} |"
    yield "|---|---|" + "---|" * len(names)
    rows = [{row.key: row for row in about.rows} for _, about in measurements]

    def of_machines(op: Op) -> str:
        return f"| {_named(op)} | {op.direction} | {' | '.join(_counts(known.get(key(op))) for known in rows)} |"

    yield from _lines((op for op in ops if any(key(op) in known for known in rows)), of_machines)


def _counts(row: Row | None) -> str:
    if row is None:
        return ""
    strict = row.found("deterministic")
    cure = f"; deterministic mode: {_count(strict)}" if strict is not None else ""
    return _count(row.found()) + cure


def _count(result: Result | None) -> str:
    if result is None:
        return "·"
    if not result.runs:
        return result.outcome
    shown = f"{result.differing} of {result.runs}"
    return f"**{shown}**" if result.differing else shown


def _named(op: Op) -> str:
    return f"`{op.op}`" + (f"<br>{_cell(op.condition)}" if op.condition else "")


def _reported(op: Op, newest: tuple[int, int]) -> str:
    if op.silent_because:
        return f"not reported: {_cell(op.silent_because)}"
    if op.aggregate:
        return "with the mode"
    codes = {reported_as(op, row.status) for row in op.status if row.status in _SHORT}
    now = status_at(op, newest)
    return reported_as(op, now) if now in _SHORT else ", ".join(sorted(codes)) + " in older releases"


def table(rules: Iterable[Rule], link: str = "docs/rules/{stem}.md") -> str:
    """The table of all rules in Markdown, as README and the site's first page show it."""
    lines = ["| code | name | reports | fix |", "|---|---|---|---|"]
    for rule in rules:
        where = link.format(stem=rule.stem)
        lines.append(f"| [{rule.code}]({where}) | {rule.name} | {_cell(rule.summary)} | {rule.fix or ''} |")
    return "\n".join(lines) + "\n"
