"""The outcome of a verification -> GitHub annotations, JUnit, SARIF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.verification.text import text

if TYPE_CHECKING:
    from torchdet_lint.verifier.verification.outcome import Cause, Outcome


def github(report: Outcome) -> str:
    """Workflow commands, one a cause, that GitHub shows beside the line."""
    if report.verdict == "failed":
        return f"::error title=torchdet-lint verify::{_escaped(report.failure)}\n"
    lines = []
    for cause in report.causes:
        file, line = _place(cause)
        title = f"{cause.rule} {cause.name}".strip() or "runs diverge"
        place = f"file={file},line={line}," if file else ""
        lines.append(f"::error {place}title={title}::{_escaped(f'{cause.op} ({cause.phase}): {cause.message}')}")
    return "\n".join(lines) + ("\n" if lines else "")


def _place(cause: Cause) -> tuple[str, int]:
    """The line that is to be looked at first."""
    if cause.decided:
        file, _, line = cause.decided.rpartition(":")
        return file, int(line)
    return (cause.forward_file, cause.forward_line) if cause.forward_file else (cause.file, cause.line)


def _escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def junit(report: Outcome) -> str:
    """One JUnit test case, which fails with the report as its text."""
    from xml.sax.saxutils import escape, quoteattr

    name = quoteattr(" ".join(report.program) or "compare")
    seconds = sum(run.seconds for run in report.runs)
    bad = report.verdict != "identical"
    body = f"<failure message={quoteattr(report.verdict)}>{escape(text(report))}</failure>" if bad else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuite name="torchdet-lint verify" tests="1" failures="{int(bad)}">'
        f'<testcase classname="verify" name={name} time="{seconds:.3f}">{body}</testcase></testsuite>\n'
    )


def sarif(report: Outcome) -> str:
    """SARIF 2.1.0, one result a cause."""
    import json

    results = []
    for cause in report.causes:
        file, line = _place(cause)
        result: dict[str, object] = {
            "ruleId": cause.rule or "diverged",
            "level": "error",
            "message": {"text": f"{cause.op} ({cause.phase}): {cause.message}"},
        }
        if file:
            place = {"artifactLocation": {"uri": file}, "region": {"startLine": max(line, 1)}}
            result["locations"] = [{"physicalLocation": place}]
        results.append(result)
    driver = {
        "name": "torchdet-lint verify",
        "version": report.version,
        "rules": [{"id": code} for code in sorted({cause.rule or "diverged" for cause in report.causes})],
    }
    run = {"tool": {"driver": driver}, "results": results}
    return (
        json.dumps(
            {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run]}, indent=2
        )
        + "\n"
    )
