"""Records of files -> the findings that the user asked to see: suppressions, TDL002, per-file ignores, severity."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint import config
from torchdet_lint.engine.linter import first_sentence
from torchdet_lint.finding import Cause, Edit, Finding, Fix, Location, Related
from torchdet_lint.patterns import compiled
from torchdet_lint.source import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torchdet_lint.config import Settings
    from torchdet_lint.engine.linter import Linter
    from torchdet_lint.engine.record import Record

UNUSED = "TDL002"


def reported(linter: Linter, records: Mapping[str, Record]) -> list[Finding]:
    """The findings of the whole run: those of the files and of the project, less what the user asked not to see."""
    settings = linter.settings
    ignored = _PerFile(settings)
    findings: list[Finding] = []
    for path, record in records.items():
        triples = [pair for pair in zip(record.findings, record.rows, strict=True) if pair[0].code in linter.codes]
        entries = () if settings.ignore_noqa else record.suppressions
        kept, used = suppress.split([(finding.code, rows) for finding, rows in triples], entries)
        mine = [_named(finding, path) for (finding, _), stays in zip(triples, kept, strict=True) if stays]
        if UNUSED in linter.codes and not settings.ignore_noqa:
            left = [rows for (_, rows), stays in zip(triples, kept, strict=True) if stays]
            mine += _unused(linter, path, record, used, left)
        findings += [
            finding
            for finding in mine
            if settings.reported(finding.severity) and not ignored.match(path, finding.code, finding.name)
        ]
    return findings


def grouped(findings: Iterable[Finding]) -> list[tuple[Cause, list[Finding]]]:
    """The findings that given files bring about in others, by their cause and the rule."""
    groups: dict[tuple[Cause, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda one: one.sort_key):
        if finding.cause is not None:
            groups.setdefault((finding.cause, finding.code), []).append(finding)
    return [(cause, group) for (cause, _), group in sorted(groups.items())]


def blamed(linter: Linter, record: Record, findings: Sequence[Finding], cause: Cause) -> Record:
    """`record` with what `findings` of one rule, in files that were not given, say of the `cause` in this one."""
    finding = findings[0]
    rule = linter.catalogue.rules[finding.code]
    start, end = cause.location, cause.end_location
    message = rule.messages["elsewhere"].format_map(
        {
            "cause": f"`{cause.function}`" if cause.function else "The top level of this file",
            "program": f"{finding.filename}:{finding.location.row}",
            "runs": "calls" if cause.function else "imports",
        }
    )
    there = tuple(Related(one.filename, one.location, one.message, one.cell) for one in findings)
    mine = Finding(
        cause.filename, start, end, finding.code, finding.name, finding.severity, message, finding.help, start.row,
        related=there,
    )  # fmt: skip
    pairs = [*zip(record.findings, record.rows, strict=True), (mine, suppress.Rows(start.row, start.row, start.row))]
    pairs.sort(key=lambda pair: pair[0].sort_key)
    return msgspec.structs.replace(
        record, findings=tuple(one for one, _ in pairs), rows=tuple(rows for _, rows in pairs)
    )


def _named(finding: Finding, path: str) -> Finding:
    related = tuple(
        msgspec.structs.replace(other, filename=path) if not other.filename else other for other in finding.related
    )
    return msgspec.structs.replace(finding, filename=path, related=related)


def _unused(
    linter: Linter, path: str, record: Record, used: Sequence[frozenset[str]], left: Sequence[suppress.Rows]
) -> Iterator[Finding]:
    """TDL002: a suppression of our codes that silences nothing. Another linter's codes, and ours that are not
    switched on, are left alone. A form that means nothing is reported where it is evidently meant for this linter, or
    stands beside a finding that is `left`."""
    beside = {row for rows in left for row in (rows.first, rows.noqa)}
    for entry, hits in zip(record.suppressions, used, strict=True):
        if entry.fault:
            if entry.fault == "ours" or entry.row in beside:
                yield _malformed(linter, path, record, entry)
            continue
        dead = [code for code in entry.codes if code not in hits and _judged(code, linter)]
        if not dead:
            continue
        rule = linter.catalogue.rules[UNUSED]
        cell, row = _place(record.cells, entry.row)
        content = entry.without(dead)
        start = Location(row, entry.begin if content else entry.column)
        edit = Edit(content, start, Location(row, entry.end), cell)
        yield Finding(
            path,
            Location(row, entry.begin),
            Location(row, entry.end),
            UNUSED,
            rule.name,
            rule.severity,
            rule.message.format_map({"codes": ", ".join(dead)}),
            first_sentence(rule.instead),
            row,
            cell,
            Fix("safe", rule.fix_title or "Remove the suppression", (edit,)),
        )


def _malformed(linter: Linter, path: str, record: Record, entry: suppress.Suppression) -> Finding:
    rule = linter.catalogue.rules[UNUSED]
    cell, row = _place(record.cells, entry.row)
    start, end = Location(row, entry.begin), Location(row, entry.end)
    message, advice = rule.messages["malformed"], rule.helps["malformed"]
    return Finding(path, start, end, UNUSED, rule.name, rule.severity, message, advice, row, cell)


def _judged(code: str, linter: Linter) -> bool:
    """Whether this run can tell that a suppression of `code` is dead: every rule it may mean was run."""
    meant = [known for known in linter.names if known.startswith(code)]
    if not meant:
        return code.startswith("TDL")
    return UNUSED not in meant and all(known in linter.codes and not linter.silent(known) for known in meant)


def _place(cells: Sequence[tuple[int, int]], row: int) -> tuple[int | None, int]:
    found: tuple[int, int] | None = None
    for cell in cells:
        if cell[1] > row:
            break
        found = cell
    return (None, row) if found is None else (found[0], row - found[1] + 1)


class _PerFile:
    """`per-file-ignores`: patterns in gitignore's language, relative to the project."""

    def __init__(self, settings: Settings) -> None:
        self.root = settings.root
        self.table: list[tuple[Any, tuple[str, ...]]] = []
        for pattern, codes in sorted(settings.per_file_ignores.items()):
            self.table.append((compiled([pattern]), codes))

    def match(self, path: str, code: str, name: str) -> bool:
        """Whether the rule is not wanted in the file `path`."""
        if not self.table:
            return False
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return any(
            config.fits(selector, code, name)
            for spec, codes in self.table
            if spec.match_file(relative)
            for selector in codes
        )
