"""Two files of `preflight` -> what differs between the machines that wrote them, and whether results depend on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

import torchdet_lint
from torchdet_lint.verifier.comparison.screen import DIM, GREEN, RED, inert, paint, wrapped
from torchdet_lint.verifier.comparison.verdict import Verdicts
from torchdet_lint.verifier.trace.environments import differing
from torchdet_lint.verifier.verification.outcome import VerifyError
from torchdet_lint.verifier.verification.preflight.gather import PARTS, SCHEMA, Preflight

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_MOST_BYTES = 256 << 20
_SHOWN = 4
_ASKED_FOR = ("weights", "data", "generators")
"""Parts that a file has only where they were asked for."""
_MEANING = {
    "machine": "Floating-point results may differ between machines of another kind, release or number of threads.",
    "packages": "Other releases of these may compute, draw or load in another way. Install the same ones.",
    "flags": "Set these in the program, and before it does anything else with torch.",
    "variables": "Set these alike before the program starts.",
    "weights": "The runs begin with other weights.",
    "data": "The runs read other data.",
    "generators": "The global generators do not stand at the same state: the program seeds them in another way, or "
    "used them differently before.",
    "draws": "The same seed gives other random numbers: no run that uses them can be repeated on the other machine.",
    "ops": "The same op on the same input gives other bits: no run that uses it can be repeated bit for bit on the "
    "other machine.",
}


class PartReport(msgspec.Struct, frozen=True):
    """One part: how many entries were compared, and those that differ, with the values of both."""

    name: str
    entries: int
    differing: dict[str, tuple[str, str]]
    meaning: str


class PreflightReport(Verdicts, frozen=True):
    """What differs between two machines, part by part; `aside` is what results do not depend on, as far as is known,
    and `not_compared` are the parts that the files do not both tell of."""

    verdict: Literal["identical", "diverged"]
    a: str
    b: str
    parts: tuple[PartReport, ...]
    aside: dict[str, tuple[str, str]]
    not_compared: tuple[str, ...]
    schema: str = "torchdet-lint/preflight-report/1"
    version: str = torchdet_lint.__version__


def compare_preflight(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> PreflightReport:
    """Compare two files. Raises `VerifyError`, in one line, for one that is none."""
    one, two = read(a), read(b)
    parts, missing = [], []
    for name in PARTS:
        left, right = getattr(one, name), getattr(two, name)
        if name == "data" and one.contents != two.contents:
            left, right = _sizes(left), _sizes(right)
            missing.append("contents of the data")
        if name in _ASKED_FOR and not (left and right):
            missing.append(f"{name} ({Path(a if left else b).name} has them)" if left or right else name)
            continue
        found = differing(left, right)
        parts.append(PartReport(name, len({**left, **right}), found, _MEANING[name] if found else ""))
    verdict: Literal["identical", "diverged"] = "diverged" if any(part.differing for part in parts) else "identical"
    return PreflightReport(verdict, str(a), str(b), tuple(parts), differing(one.aside, two.aside), tuple(missing))


def _sizes(table: Mapping[str, str]) -> dict[str, str]:
    """Files and sizes, without digests."""
    return {
        name: ", ".join(word for word in told.split(", ") if word.endswith((" bytes", " files")))
        for name, told in table.items()
    }


def read(path: str | os.PathLike[str]) -> Preflight:
    """A file of `preflight`. Raises `VerifyError`, in one line."""
    try:
        if not Path(path).is_file():
            raise VerifyError(f"{path}: no such file")
        if Path(path).stat().st_size > _MOST_BYTES:
            raise VerifyError(f"{path}: too large for a file of `torchdet-lint preflight`")
        found = msgspec.json.decode(Path(path).read_bytes(), type=Preflight)
    except OSError as error:
        raise VerifyError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise VerifyError(f"{path}: no file of `torchdet-lint preflight`") from error
    if found.schema != SCHEMA:
        raise VerifyError(f"{path}: {found.schema}; this torchdet-lint reads {SCHEMA}")
    return found


def text(report: PreflightReport, *, colour: bool = False) -> str:
    """The report for a screen: verdict, then each part that differs, with both values side by side."""
    different = [part for part in report.parts if part.differing]
    equal = ", ".join(f"{part.name} ({part.entries})" for part in report.parts if not part.differing)
    if report.ok:
        lines = [paint(f"✓ nothing differs on which results depend, in {len(report.parts)} parts", GREEN, colour)]
    else:
        names = ", ".join(part.name for part in different)
        lines = [paint(f"✗ the machines differ in {len(different)} of {len(report.parts)} parts: {names}", RED, colour)]
    for part in different:
        lines.append(f"{part.name}: {len(part.differing)} of {part.entries} differ")
        lines += [line for name, pair in [*part.differing.items()][:_SHOWN] for line in _row(name, *pair)]
        if len(part.differing) > _SHOWN:
            lines.append(f"  … and {len(part.differing) - _SHOWN} more (--output-format json lists all)")
        lines += wrapped(part.meaning)
    if equal:
        lines += [line.strip() for line in wrapped(f"equal: {equal}")]
    if report.aside:
        pairs = [f"{name}: {a or 'none'} | {b or 'none'}" for name, (a, b) in report.aside.items()]
        more = f"; and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
        lines += [paint(line.strip(), DIM, colour) for line in wrapped(f"aside: {'; '.join(pairs[:_SHOWN])}{more}")]
    if report.not_compared:
        names = ", ".join(report.not_compared)
        lines.append(paint(f"not compared, since the files do not both have them: {names}", DIM, colour))
    return "\n".join(lines) + "\n"


def _row(name: str, a: str, b: str) -> list[str]:
    return [inert(f"  {name}: {a or 'none'} | {b or 'none'}")[:118]]
