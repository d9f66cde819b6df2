"""Findings -> SARIF 2.1.0, with the metadata of every rule that fired and the fixes."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from torchdet_lint import __version__
from torchdet_lint.catalogue import loading
from torchdet_lint.catalogue.explain import brief
from torchdet_lint.report.machine import as_evidence, from_top
from torchdet_lint.report.visible import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as Codes

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Edit, Finding, Location
    from torchdet_lint.report import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(report: Report) -> Iterator[str]:
    """One log with one run."""
    findings = report.result.findings
    codes = sorted({finding.code for finding in findings})
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "torchdet-lint",
                        "informationUri": "https://github.com/torchdet-lint/torchdet-lint",
                        "version": __version__,
                        "rules": _rules(report, set(codes)),
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, codes, report) for finding in findings],
            }
        ],
    }
    yield json_text(log)


def _rules(report: Report, codes: Codes[str]) -> list[dict[str, Any]]:
    from pathlib import Path

    rules: dict[str, Rule] = {}
    for files in ((), *report.rule_files):
        if not codes <= rules.keys():
            rules = {**loading.load(extra=[Path(path) for path in files]).rules, **rules}
    return [
        {
            "id": code,
            "name": rules[code].name,
            "shortDescription": {"text": rules[code].summary},
            "fullDescription": {"text": rules[code].why.strip()},
            "help": {"text": rules[code].instead.strip(), "markdown": brief(rules[code])},
            **({"helpUri": rules[code].page} if rules[code].page else {}),
            "defaultConfiguration": {"level": rules[code].severity},
        }
        for code in sorted(codes)
    ]


def _result(finding: Finding, codes: list[str], report: Report) -> dict[str, Any]:
    lines = report.snippets.lines(finding, finding.location.row, finding.end_location.row)
    flagged = "\n".join(lines).encode("utf-8", "surrogatepass")
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [_location(finding.filename, finding.location, finding.end_location, finding.cell)],
        "partialFingerprints": {"flaggedLines/v1": hashlib.blake2b(flagged, digest_size=8).hexdigest()},
    }
    if finding.related:
        result["relatedLocations"] = [
            {
                "id": number,
                **_location(other.filename, other.location, other.location, other.cell),
                "message": {"text": other.message},
            }
            for number, other in enumerate(finding.related)
        ]
    if finding.fix is not None and finding.fix.edits and finding.cell is None:
        result["fixes"] = [
            {
                "description": {"text": finding.fix.message},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": _uri(finding.filename)},
                        "replacements": [_replacement(edit) for edit in finding.fix.edits],
                    }
                ],
            }
        ]
    properties: dict[str, Any] = {} if finding.cell is None else {"cell": finding.cell}
    if finding.evidence is not None:
        properties["evidence"] = as_evidence(finding.evidence)
    if properties:
        result["properties"] = properties
    return result


def _location(path: str, start: Location, end: Location, cell: int | None = None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    if cell is None:
        place["region"] = _region(start, end)
    found: dict[str, Any] = {"physicalLocation": place}
    if cell is not None:
        found["logicalLocations"] = [{"name": f"cell {cell}", "fullyQualifiedName": f"cell {cell}, line {start.row}"}]
    return found


def _region(start: Location, end: Location) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _replacement(edit: Edit) -> dict[str, Any]:
    return {
        "deletedRegion": _region(edit.location, edit.end_location),
        "insertedContent": {"text": edit.content},
    }


def _uri(path: str) -> str:
    path = from_top(path, "GITHUB_WORKSPACE")
    if os.path.isabs(path):
        from pathlib import Path

        return Path(path).as_uri()
    return quote(os.fsencode(path.replace(os.sep, "/")))
