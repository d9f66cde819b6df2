"""Findings -> the formats for programs: `json`, `json-lines`, `github`, `gitlab`, `junit`; and counts as JSON."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from torchdet_lint.report.visible import escaped, json_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.finding import Evidence, Finding, Fix, Location
    from torchdet_lint.report import Report


def as_object(finding: Finding) -> dict[str, Any]:
    """The finding with ruff's keys, and ours besides."""
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "filename": finding.filename,
        "location": _location(finding.location),
        "end_location": _location(finding.end_location),
        "cell": finding.cell,
        "fix": _fix(finding.fix),
        "url": finding.page or None,
        "noqa_row": finding.noqa_row,
        "severity": finding.severity,
        "help": finding.help,
        "related": [
            {
                "filename": other.filename,
                "location": _location(other.location),
                "message": other.message,
                "cell": other.cell,
            }
            for other in finding.related
        ],
        **({} if finding.evidence is None else {"evidence": as_evidence(finding.evidence)}),
    }


def as_evidence(evidence: Evidence) -> dict[str, str]:
    """What runs say of a finding."""
    return {"state": evidence.state, "why": evidence.why}


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    edits = [
        {"content": edit.content, "location": _location(edit.location), "end_location": _location(edit.end_location)}
        | ({} if edit.cell is None else {"cell": edit.cell})
        for edit in fix.edits
    ]
    return {"applicability": fix.applicability, "message": fix.message, "edits": edits}


def json_array(report: Report) -> Iterator[str]:
    """One array."""
    yield json_text([as_object(finding) for finding in report.result.findings])


def json_statistics(report: Report) -> Iterator[str]:
    """How many findings each rule has, most first, as one JSON array."""
    counts = Counter((finding.code, finding.name) for finding in report.result.findings)
    fixable = Counter(finding.code for finding in report.result.findings if finding.fix is not None)
    rows = [
        {
            "code": code,
            "name": name,
            "count": number,
            "fixable": fixable[code] == number,
            "fixable_count": fixable[code],
        }
        for (code, name), number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    yield json.dumps(rows, indent=2)


def json_lines(report: Report) -> Iterator[str]:
    """One object a line."""
    for finding in report.result.findings:
        yield escaped(json.dumps(as_object(finding), ensure_ascii=False))


def github(report: Report) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the line."""
    levels = {"error": "error", "warning": "warning", "note": "notice"}
    for finding in report.result.findings:
        end = finding.end_location
        place = f"file={_property(from_top(finding.filename, 'GITHUB_WORKSPACE'))}"
        if finding.cell is None:
            place += f",line={finding.location.row},endLine={end.row}"
            if end.row == finding.location.row:
                place += f",col={finding.location.column},endColumn={end.column}"
        title = _property(f"{finding.code} ({finding.name})")
        told = f"{_where(finding)}{finding.code} {finding.message}"
        yield f"::{levels[finding.severity]} title={title},{place}::{_data(told)}"


def _where(finding: Finding) -> str:
    """The cell of a notebook, which the format has no place for: lines count inside it."""
    return f"cell {finding.cell}, line {finding.location.row}: " if finding.cell is not None else ""


def _data(text: str) -> str:
    return visible(text, "\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def gitlab(report: Report) -> Iterator[str]:
    """GitLab's code quality report."""
    levels = {"error": "major", "warning": "minor", "note": "info"}
    seen: Counter[str] = Counter()
    issues = []
    for finding in report.result.findings:
        lines = report.snippets.lines(finding, finding.location.row, finding.location.row)
        print_ = _fingerprint(finding.filename, finding.code, *lines)
        seen[print_] += 1
        if seen[print_] > 1:
            print_ = _fingerprint(finding.filename, finding.code, *lines, str(seen[print_]))
        issues.append(
            {
                "check_name": finding.code,
                "description": f"{finding.code}: {_where(finding)}{finding.message}",
                "severity": levels[finding.severity],
                "fingerprint": print_,
                "location": {
                    "path": from_top(finding.filename, "CI_PROJECT_DIR"),
                    "positions": {
                        "begin": {"line": finding.location.row, "column": finding.location.column},
                        "end": {"line": finding.end_location.row, "column": finding.end_location.column},
                    },
                },
            }
        )
    yield json_text(issues)


def _fingerprint(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def from_top(path: str, variable: str) -> str:
    """`path` from the top of the checkout, which a CI system names in `variable`; as it is where it lies elsewhere."""
    return _relative(path, os.environ.get(variable) or os.curdir, os.getcwd())


@functools.lru_cache(maxsize=1024)
def _relative(path: str, top: str, here: str) -> str:
    """`path` from `top`, both as they are seen from `here`."""
    relative = os.path.relpath(os.path.join(here, path), os.path.join(here, top))
    return (path if relative.startswith(os.pardir) else relative).replace(os.sep, "/")


def junit(report: Report) -> Iterator[str]:
    """A test suite a file, a failed test a finding."""
    findings = report.result.findings
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="torchdet-lint" tests="{max(len(findings), 1)}" failures="{len(findings)}" errors="0">'
    if not findings:
        yield '  <testsuite name="torchdet-lint" tests="1" failures="0" errors="0" skipped="0">'
        yield '    <testcase name="no findings" classname="torchdet-lint"/>'
        yield "  </testsuite>"
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.filename, []).append(finding)
    for path, mine in sorted(by_file.items()):
        yield (
            f"  <testsuite name={_attribute(path)} package={_attribute('torchdet-lint')} "
            f'tests="{len(mine)}" failures="{len(mine)}" errors="0" skipped="0">'
        )
        for finding in mine:
            cell = f"cell {finding.cell}, " if finding.cell is not None else ""
            where = f"{cell}line {finding.location.row}, column {finding.location.column}"
            yield f"    <testcase name={_attribute(finding.code)} classname={_attribute(path)}>"
            kind, message = _attribute(finding.severity), _attribute(finding.message)
            yield f"      <failure type={kind} message={message}>{_text(f'{where}: {finding.help}')}</failure>"
            yield "    </testcase>"
        yield "  </testsuite>"
    yield "</testsuites>"


def _attribute(text: str) -> str:
    escaped = _text(text, "\n").replace('"', "&quot;")
    return '"' + escaped.replace("\n", "&#10;") + '"'


def _text(text: str, keep: str = "") -> str:
    return visible(text, keep).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
