"""A report and paths -> the report with what the runs say of each finding of the linter's there.

A finding is *confirmed* where the runs differ at it, *not reached* where one more run executes none of its lines, and
*not reproduced* where it was reached and nothing shows that it made the runs differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from torchdet_lint.verifier.comparison.explain import run_linter
from torchdet_lint.verifier.launch import launch
from torchdet_lint.verifier.patching.inheritance import LINES, with_bootstrap
from torchdet_lint.verifier.verification.outcome import Judged, VerifyError
from torchdet_lint.verifier.verification.text import UNDER
from torchdet_lint.verifier.verification.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.verification.outcome import Cause
    from torchdet_lint.verifier.verification.report import Report


def with_evidence(
    report: Report,
    program: Program,
    paths: Sequence[str],
    *,
    timeout: float | None = None,
    in_place: bool = False,
    workdir: Path | None = None,
) -> Report:
    """`report` on `program` with its `evidence`: lint `paths`, run the program once more, unrecorded, to see which of
    the findings' lines it reaches, and hold both together. Raises `VerifyError` where there is nothing to lint.
    """
    if report.verdict not in ("identical", "diverged"):
        return report
    rows = _linted(paths)
    reached = _reached(program, rows, timeout, in_place=in_place, workdir=workdir)
    judged = tuple(_judged(row, rows, reached, report) for row in rows)
    return msgspec.structs.replace(report, evidence=judged)


def _linted(paths: Sequence[str]) -> list[dict[str, Any]]:
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise VerifyError(f"--lint: {missing[0]}: no such file or folder")
    answer = run_linter(["--output-format", "json", "--min-severity", "note", "--exit-zero", *paths], Path.cwd())
    try:
        rows = json.loads(answer)
    except ValueError as error:
        raise VerifyError(f"--lint: {', '.join(paths)}: the linter gave no answer") from error
    return [row for row in rows if isinstance(row, dict) and row.get("code") and row.get("cell") is None]


def _lines_of(row: dict[str, Any]) -> range:
    return range(row["location"]["row"], row["end_location"]["row"] + 1)


def _reached(
    program: Program, rows: list[dict[str, Any]], timeout: float | None, *, in_place: bool, workdir: Path | None
) -> set[tuple[str, int]]:
    """The lines of the findings that a run executes, as (file, line)."""
    asked: dict[str, set[int]] = {}
    for row in rows:
        asked.setdefault(str(Path(row["filename"]).resolve()), set()).update(_lines_of(row))
    with contextlib.ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torchdet-", dir=workdir)))
        start = Path(program.directory or Path.cwd())
        workspace = Workspace(start, room, in_place=in_place, bounded=workdir is None)
        workspace.begin()
        turned = workspace.turned
        out = room / "reached"
        out.touch()
        order = {"lines": {turned(file): sorted(lines) for file, lines in asked.items()}, "out": str(out.resolve())}
        there = dataclasses.replace(
            program,
            directory=str(workspace.folder),
            target=turned(program.target),
            arguments=tuple(turned(word) for word in program.arguments),
        )
        nothing = subprocess.DEVNULL
        result = launch.run_child(
            there,
            environment=with_bootstrap({LINES: json.dumps(order, separators=(",", ":"))}),
            timeout=timeout,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
        )
        if result.status == "interrupted":
            raise KeyboardInterrupt
        told = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        return {(workspace.turned_back(file), line) for file, line in told}


def _judged(row: dict[str, Any], rows: list[dict[str, Any]], reached: set[tuple[str, int]], report: Report) -> Judged:
    path = Path(row["filename"]).resolve()
    state, why = _state(row, path, rows, reached, report)
    return Judged(
        row["code"],
        row["filename"],
        row["location"]["row"],
        row["message"],
        state,
        why,
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def _state(
    row: dict[str, Any], path: Path, rows: list[dict[str, Any]], reached: set[tuple[str, int]], report: Report
) -> tuple[Literal["confirmed", "not reached", "not reproduced"], str]:
    code, lines = row["code"], _lines_of(row)
    cause = next((cause for cause in report.causes if _is_of(cause, code, path, lines)), None)
    if cause is not None:
        when = f" in step {cause.step}" if cause.step else ""
        return "confirmed", f"{cause.op} differed{when}" + (", and is equal with the fix" if cause.proven else "")
    hit = any((str(path), line) in reached for line in lines)
    if not hit:
        return "not reached", "no run executed the line"
    if report.fix is not None and report.fix.cured and code in report.fix.fixes:
        alike = [other for other in rows if other["code"] == code and _hit(other, reached)]
        if len(alike) == 1:
            return "confirmed", f"the runs are equal with the fix of {code}, and differ without it"
        return (
            "not reproduced",
            f"the fix of {code} is needed; for which of {len(alike)} findings is not established",
        )
    if report.verdict == "identical" and report.fix is None:
        return "not reproduced", f"{len(report.runs)} runs{UNDER[report.mode]} were equal"
    return "not reproduced", "the runs differ, and not by what is known of this line"


def _hit(row: dict[str, Any], reached: set[tuple[str, int]]) -> bool:
    path = str(Path(row["filename"]).resolve())
    return any((path, line) in reached for line in _lines_of(row))


def _is_of(cause: Cause, code: str, path: Path, lines: range) -> bool:
    """Whether a cause is told with this finding, or stands on its lines under its rule."""
    found = cause.finding
    if found is not None and found.code == code and found.line in lines and Path(found.filename).resolve() == path:
        return code in (cause.rule, *cause.also)
    places = [(cause.file, cause.line), (cause.forward_file, cause.forward_line), *_split(cause.reader)]
    if code not in (cause.rule, *([] if cause.proven else cause.also)):
        return False
    return any(file and line in lines and Path(file).resolve() == path for file, line in places)


def _split(place: str) -> Iterable[tuple[str, int]]:
    file, _, line = place.rpartition(":")
    return [(file, int(line))] if file else []
