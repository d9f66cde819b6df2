"""Two trace files -> where the runs part, which differences are causes, and whether they last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.comparison.align import Aligner
from torchdet_lint.verifier.comparison.cursor import Identities
from torchdet_lint.verifier.comparison.interleaving import compare_tasks
from torchdet_lint.verifier.comparison.losses import losses
from torchdet_lint.verifier.comparison.outcome import Comparison
from torchdet_lint.verifier.comparison.picture import Heat, Picture
from torchdet_lint.verifier.comparison.processes import Aside, Company, compare_aside, without_received
from torchdet_lint.verifier.trace import GRAPH, REGION, Timeline, Trace, TraceError, environments

if TYPE_CHECKING:
    import os

    from torchdet_lint.verifier.comparison.outcome import Divergence


def compare(
    path_a: str | os.PathLike[str], path_b: str | os.PathLike[str], *, moved: bool = False, early: bool = False
) -> Comparison:
    """Compare two trace files; with `moved` the lines of the source may have other numbers in one of them. With `early`
    the second run goes on, or was ended: the main threads are compared as far as it went. Raises `TraceError`, in one
    line, for a file that is none or hashes that cannot be compared.
    """
    a, b = Trace(path_a), Trace(path_b)
    b.truncated |= early
    if a.header.get("hash") != b.header.get("hash"):
        raise TraceError(
            f"{a.path} and {b.path} hash with {a.header.get('hash')} and {b.header.get('hash')}: not comparable"
        )
    identities = Identities(moved=moved)
    main = Aligner(a, b, identities)
    main.run(a.main, b.main)
    aside = compare_aside(a, b, identities) if not early else Aside([], [], (0, 0), [])
    here = main.divergences()
    tasks = compare_tasks(a, b, (main.timeline, main.timeline_b), identities) if here else None
    in_another_order = tasks == []
    company = Company(b, main.timeline_b)
    found = without_received(company.together(here if tasks is None else tasks, aside.found))
    said = [str(note[kind]) for kind in ("missed", "steps") for t in (a, b) for note in t.notes if kind in note]
    flat = (environments.flat(a.header), environments.flat(b.header))
    notes = [*main.excused(), *main.notes, *aside.notes, *dict.fromkeys(said)]
    notes += company.left_out()
    if in_another_order:
        notes.append("the order of asyncio's tasks, which was another one in each run; every task did the same")
    if any(site.op.startswith(REGION) for site in main.left.sites):
        notes.append(
            "inside of compiled code: each call of it was compared as one op, by what it read and wrote "
            "(--compile=eager runs it op by op)"
        )
    if any(site.op == GRAPH for site in main.left.sites):
        notes.append("inside of CUDA graphs: each replay was compared as one op, by what it read and wrote")
    compared = main.compared + min(aside.records)
    for one in (a, b):
        if one.truncated and not compared:
            raise TraceError(f"{one.path}: the trace is cut off before its first op; record it again")
        if one.truncated and not early:
            notes.append(f"{one.path.name} ends in the middle of a record: what the run did after that")
    return Comparison(
        identical=not found,
        compared=compared,
        a_records=main.left.passed + aside.records[0],
        b_records=main.right.passed + aside.records[1],
        differing=(0 if in_another_order else main.differing) + sum(item.differing for item in aside.found),
        divergences=tuple(found),
        partings=() if in_another_order else tuple(main.partings),
        persistence=("transient" if main.heals() else "persistent") if found else "",
        environment=environments.differing(*flat),
        harmless=main.harmless() if found and not aside.found else "",
        notes=tuple(notes),
        aside=max(aside.records),
        losses=losses(*_with_losses(a, b), early=early),
        picture=Picture((main.lane("main"), *aside.lanes), tuple(map(_heat, found)), flat),
        lockstep=company.told(),
        devices=("cpu", "cuda") if a.header.get("environment", {}).get("cuda") else ("cpu",),
    )


def _with_losses(a: Trace, b: Trace) -> tuple[Timeline, Timeline]:
    """The timelines of the streams that have the losses: the main one's, else those of the first process with any."""
    for one in a.streams:
        if one.marks:
            twin = next((two for two in b.streams if (two.kind, two.name) == (one.kind, one.name)), None)
            lines = Timeline(a.marks(one)), Timeline(b.marks(twin) if twin is not None else ())
            if lines[0].losses:
                return lines
    return Timeline(()), Timeline(())


def _heat(item: Divergence) -> Heat:
    return Heat(item.site, item.kind, item.differing, item.compared, item.index, item.step, item.stream)
