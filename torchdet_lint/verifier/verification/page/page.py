"""A report and its picture -> the page, of bounded size whatever the length of the runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.verifier.verification.page import drawing, sections
from torchdet_lint.verifier.verification.page.sections import escaped, section
from torchdet_lint.verifier.verification.text import but_for_timings, differing_of, equal_in, in_lockstep, without_ops

if TYPE_CHECKING:
    from torchdet_lint.verifier.comparison.picture import Picture
    from torchdet_lint.verifier.verification.outcome import Outcome

_HERE = Path(__file__).parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_KEYS = (
    '<figcaption><span class="key whole"></span>equal<span class="key healed"></span>differs and heals'
    '<span class="key lasting"></span>differs and lasts<span class="key parted"></span>run B goes another way'
    '<span class="keys"> · point at a stretch for its ops; in the picture: wheel or + and - to zoom, arrows to move, '
    "n for the next difference, 0 for the whole</span></figcaption>"
)
_HEAT = "How many executions of an op differ, of those from the first that differs on."
_LOSS_KEYS = '<figcaption><span class="key line-a"></span>run A<span class="key line-b"></span>run B</figcaption>'


def html(report: Outcome, picture: Picture) -> str:
    """The page: it loads nothing, and shows texts of the program as texts."""
    kind = "equal-runs" if report.verdict == "identical" else "unlike-runs"
    words = {
        "identical": "✓ the runs are equal, bit for bit",
        "diverged": "✗ the runs differ",
        "failed": "✗ the program failed",
        "nothing": "✗ nothing was compared",
    }[report.verdict]
    if report.verdict == "identical" and report.fix is not None:
        words = f"✓ with the fixes of {', '.join(report.fix.fixes)} the runs are equal; without them they differ"
    name = " ".join(report.program) or "two recordings"
    equal = report.verdict == "identical" and not report.spread.differing
    spread = f"equal in {equal_in(report)}" if equal else differing_of(report)
    facts = [
        f"{len(report.runs)} runs",
        report.mode,
        spread,
        without_ops(report),
        but_for_timings(report),
        *in_lockstep(report),
        report.failure,
    ]
    tolerance = report.tolerance
    if tolerance is not None:
        facts.append(
            f"{'within' if tolerance.met else 'not within'} the tolerance {tolerance.relative:g}: {tolerance.why}"
        )
    lanes = f"<figure>{drawing.lanes(picture.lanes)}{_KEYS}</figure>" if picture.lanes else ""
    told = report.losses
    chart = f"<figure>{drawing.losses(told)}{_LOSS_KEYS}</figure>" if told is not None and told.compared else ""
    heat = sections.source(picture.heat)
    begin = f'<h1 class="{kind}">{escaped(words)}</h1><p><code>{escaped(name)}</code></p>'
    parts = [
        f"<header>{begin}<p class=dim>{escaped(' · '.join(filter(None, facts)))}</p></header>",
        section("Root causes", sections.causes(report)),
        section("The run", lanes),
        section("Loss by step", chart),
        section("Causes and fixes", sections.fixes(report)),
        section("Source by heat", heat and f"<p class=dim>{_HEAT}</p>{heat}"),
        section("Left behind", sections.left(report)),
        section("The linter's findings", sections.evidence(report)),
        section("Environments", sections.environments(picture.environments)),
        section("Runs, and how to do them again", sections.runs(report)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(f'{words}: {name}')}</title><style>{_text('page.css')}</style></head><body>"
        f"<main>{''.join(parts)}</main><footer class=dim>torchdet-lint {escaped(report.version)}</footer>"
        f"<script>{_text('page.js')}</script></body></html>\n"
    )


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
