"""`check --evidence report.json`: findings, and what `verify --lint` saw of them -> findings that say so.

What was seen of a file that has changed since holds no longer, and is left out with a warning.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.cli.console import UsageError, say
from torchdet_lint.finding import Evidence

if TYPE_CHECKING:
    from torchdet_lint.finding import Finding, Result

_SCHEMA = "torchdet-lint/verify/"
_MOST_BYTES = 1 << 28


class _Row(msgspec.Struct):
    code: str
    filename: str
    line: int
    state: str
    why: str
    digest: str


class _Report(msgspec.Struct):
    schema: str
    evidence: list[_Row] = []


def with_evidence(result: Result, name: str) -> Result:
    """`result` with what the report `name` tells of its findings. Raises `UsageError` for a file that is none."""
    told = _read(name)
    rows = {(Path(row.filename).resolve(), row.code, row.line): row for row in told.evidence}
    digests = {path: row.digest for (path, _, _), row in reversed(rows.items())}
    current: dict[Path, str] = {}
    stale: set[str] = set()

    def judged(finding: Finding) -> Finding:
        path = Path(finding.filename).resolve()
        row = rows.get((path, finding.code, finding.location.row)) if finding.cell is None else None
        if path not in digests:
            return finding
        if path not in current:
            current[path] = _digest(path)
        if current[path] != (row.digest if row is not None else digests[path]):
            stale.add(finding.filename)
            return finding
        return msgspec.structs.replace(finding, evidence=Evidence(row.state, row.why)) if row else finding

    findings = tuple(judged(finding) for finding in result.findings)
    for changed in sorted(stale):
        say(
            f"torchdet-lint: warning: {changed} has changed since {name} was made: its evidence is not used", sys.stderr
        )
    return result._replace(findings=findings)


def _read(name: str) -> _Report:
    path = Path(name)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"--evidence: {name}: too large for a report of `verify`")
        told = msgspec.json.decode(path.read_bytes(), type=_Report)
    except OSError as error:
        raise UsageError(f"--evidence: {name}: {(error.strerror or str(error)).lower()}") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"--evidence: {name}: not what `verify --output-format json` writes") from error
    if not told.schema.startswith(_SCHEMA):
        raise UsageError(f"--evidence: {name}: not what `verify --output-format json` writes")
    if not told.evidence:
        raise UsageError(f"--evidence: {name}: made without `verify --lint`: it says nothing of findings")
    return told


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
