"""A comparison of runs -> the report on them: causes with their rules, what was not covered, the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.comparison import explain
from torchdet_lint.verifier.comparison.deciding import told
from torchdet_lint.verifier.comparison.picture import Picture
from torchdet_lint.verifier.trace import BATCH
from torchdet_lint.verifier.verification.leftovers.leftovers import Leftovers
from torchdet_lint.verifier.verification.origins import with_origin
from torchdet_lint.verifier.verification.outcome import Cause, Diverged, Left, Outcome, RunSummary, Spread
from torchdet_lint.verifier.verification.text import ASIDE, text

if TYPE_CHECKING:
    import os
    from collections.abc import Collection

    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.verifier.comparison.outcome import Comparison, Divergence, Parting
    from torchdet_lint.verifier.probe.validity import Valid

_VARIED = frozenset({"$PYTHONHASHSEED", "$MALLOC_PERTURB_"})
"""What a stress pair itself sets."""
_RACE = "TDL307"
_OF_GENERATORS = frozenset({"TDL101", "TDL102", "TDL103", "TDL104"})
_NEARLY_ALWAYS = 0.95
_ELSEWHERE = "it read equal values and wrote different ones, in another environment: no rule speaks of that"


class Report(Outcome, frozen=True):
    """What a verification returns: its outcome, what a page shows besides (`picture`), and what to do with it."""

    picture: Picture = Picture()

    def raise_if_diverged(self) -> None:
        """Raise `Diverged`, with the report as its text, unless the runs were equal."""
        if not self.ok:
            raise Diverged(text(self))

    def to_json(self) -> bytes:
        """The report as JSON, by the schema of docs/verifier-json.md."""
        fields = msgspec.structs.asdict(self)
        del fields["picture"]
        return msgspec.json.format(msgspec.json.encode(fields), indent=2)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one page that needs nothing else: no network, no other file."""
        from torchdet_lint.verifier.verification.page.page import html

        Path(path).write_text(html(self, self.picture), encoding="utf-8")


def report_on(
    mode: str,
    program: tuple[str, ...],
    runs: list[RunSummary],
    outcome: Comparison,
    fixes: tuple[str, ...],
    root: Path,
    *,
    lint: bool,
    harmless: bool = False,
    left: Leftovers | None = None,
    valid: Valid | None = None,
    unseeded: Collection[str] = (),
) -> Report:
    """The report on `runs` of `program` that compared as `outcome` says; lines are relative to `root`. The ops are
    judged by the measurement `valid` too. `unseeded` are the places at which NumPy made a generator without a seed.
    """
    causes = outcome.causes
    doubtful = _of_doubtful_origin(outcome)
    measured = str(valid.path) if valid is not None else ""
    table = valid.table(outcome.devices) if valid is not None else ()
    findings: tuple[explain.Finding, ...] = ()
    if lint and causes and not harmless:
        named = (
            root / name.partition("#cell-")[0]
            for item in (*causes, *doubtful.values())
            for name in (item.site.file, item.site.forward_file, item.evidence.arrival.rpartition(":")[0])
            if name
        )
        findings = explain.lint((*named, *_entry(program, root)), measured=measured)
    known = _Known(findings, root, table, unseeded, compared=mode == "compare")
    shown = _causes(outcome, doubtful, known)
    consequences = len(outcome.divergences) - sum(1 + len(cause.places) for cause in shown)
    remains = left or Leftovers()
    if outcome.identical and remains.certain:
        equal = "every op of torch is equal" if outcome.compared else "no op of torch ran"
        shown = [_of_what_is_left(remains.certain, equal, program, root, lint=lint, measured=measured)]
    shown = [_from_here(cause, root) for cause in shown]
    return Report(
        verdict="identical" if (outcome.identical and not remains.certain) or harmless else "diverged",
        left=remains.differing,
        compared_files=remains.files,
        compared_lines=remains.lines,
        masked_files=remains.masked_files,
        masked_lines=remains.masked_lines,
        mode=mode,
        program=program,
        runs=tuple(runs),
        causes=() if harmless else tuple(shown),
        without_effect=tuple(shown) if harmless else (),
        spread=Spread(
            outcome.compared,
            outcome.differing,
            outcome.persistence,
            consequences,
            tuple(_parting_from_here(parting, root) for parting in outcome.partings[:20]),
        ),
        not_covered=_not_covered(mode, len(runs), outcome, runs),
        environment={n: pair for n, pair in outcome.environment.items() if mode != "stress" or n not in _VARIED},
        fixes=fixes,
        command=_command(mode, program),
        measured_on=valid.measurement.machine if valid is not None else None,
        losses=outcome.losses,
        lockstep=outcome.lockstep,
        picture=_picture_from_here(outcome.picture, root),
    )


def _of_doubtful_origin(outcome: Comparison) -> dict[int, Divergence]:
    """What came from Python after something else differed, and may follow from that: one a line, by position."""
    found = {
        (item.site.file, item.site.line): (number, item)
        for number, item in reversed([*enumerate(outcome.divergences)])
        if item.kind == "consequence" and item.source in ("outside", "number") and item.site.file
        if item.site.op != BATCH and not item.evidence.loaded and not item.evidence.received
    }
    return dict(found.values())


def _causes(
    outcome: Comparison,
    doubtful: dict[int, Divergence],
    known: _Known,
) -> list[Cause]:
    """The causes in order; of what is of doubtful origin that on which an error of the linter's of its own stands."""
    causes = {
        number: _cause(item, outcome, known)
        for number, item in enumerate(outcome.divergences)
        if item.kind != "consequence"
    }
    for number, item in doubtful.items():
        finding = explain.behind(item, known.findings, known.root)
        if finding is not None and finding not in [cause.finding for cause in causes.values()]:
            alone = msgspec.structs.replace(item, kind="cause")
            causes[number] = _cause(alone, outcome, known._replace(findings=(finding,)))
    return _as_one([(outcome.divergences[number], causes[number]) for number in sorted(causes)], known.root)


def _as_one(told: list[tuple[Divergence, Cause]], root: Path) -> list[Cause]:
    """Causes that are one by `_shared_by` are told once, where it is met first, with the other places."""
    same: dict[object, list[tuple[Divergence, Cause]]] = {}
    for number, (item, cause) in enumerate(told):
        same.setdefault(_shared_by(item, cause) or number, []).append((item, cause))
    return [_with_places(met, root) for met in same.values()]


def _shared_by(item: Divergence, cause: Cause) -> tuple[str, object] | None:
    """What several causes may have in common that makes them one: processes that share a model race for each of its
    tensors, several ops read memory of one line that nothing has written, data of several lines come from what one
    finding of the linter speaks of, or from one generator.
    """
    if _of_memory(item, cause):
        return "memory", item.evidence.arrival if item.source == "unwritten" else cause.finding
    if cause.finding is not None:
        return ("finding", cause.finding) if cause.finding.code == cause.rule else None
    return ("generator", cause.rule) if cause.rule in _OF_GENERATORS else None


def _of_memory(item: Divergence, cause: Cause) -> bool:
    shared = item.evidence.shared and cause.rule == _RACE
    return shared or (item.source == "unwritten" and bool(item.evidence.arrival))


def _with_places(met: list[tuple[Divergence, Cause]], root: Path) -> Cause:
    """The first of causes that are one, with the places of the others."""
    first = met[0][1]
    if len(met) > 1 and _of_memory(*met[0]):
        more = f"; so it was at {len(met) - 1} more of its reads"
        return msgspec.structs.replace(first, message=first.message + more)
    _, *others = dict.fromkeys(_place_and_stream(cause, root) for _, cause in met)
    return msgspec.structs.replace(first, places=tuple(others))


def _place_and_stream(cause: Cause, root: Path) -> str:
    file, line = (cause.forward_file, cause.forward_line) if cause.forward_file else (cause.file, cause.line)
    place = f"{seen_from_here(file, root)}:{line}" if file else cause.op
    where = ASIDE.get(cause.stream, cause.stream.removeprefix("process "))
    return place if cause.stream == "main" else f"{place} in {where}"


def cause_alone(item: Divergence, outcome: Comparison, root: Path) -> Cause:
    """What is told of a divergence of `outcome` that has proved to be a cause of its own."""
    alone = msgspec.structs.replace(item, kind="cause")
    return _from_here(_cause(alone, outcome, _Known((), root)), root)


def seen_from_here(name: str, root: Path) -> str:
    """A file that is relative to `root` (`sub/train.py`, `a.ipynb#cell-3`), relative to the working folder if it lies
    there.
    """
    base, mark, cell = name.partition("#cell-")
    if not name or not (root / base).exists():
        return name
    here, path = Path.cwd().resolve(), (root / base).resolve()
    return path.relative_to(here).as_posix() + mark + cell if path.is_relative_to(here) else name


def _from_here(cause: Cause, root: Path) -> Cause:
    found = cause.finding
    return msgspec.structs.replace(
        cause,
        file=seen_from_here(cause.file, root),
        forward_file=seen_from_here(cause.forward_file, root),
        other=_place_from_here(cause.other, root),
        reader=_place_from_here(cause.reader, root),
        decided=_place_from_here(cause.decided, root),
        finding=found and msgspec.structs.replace(found, filename=seen_from_here(found.filename, root)),
    )


def _place_from_here(place: str, root: Path) -> str:
    file, colon, line = place.rpartition(":")
    return f"{seen_from_here(file, root)}{colon}{line}" if colon else place


def _picture_from_here(picture: Picture, root: Path) -> Picture:
    rows = [
        msgspec.structs.replace(row, site=row.site._replace(file=seen_from_here(row.site.file, root)))
        for row in picture.heat
    ]
    return msgspec.structs.replace(picture, heat=tuple(rows))


def _parting_from_here(parting: Parting, root: Path) -> Parting:
    sites = {
        name: site and site._replace(file=seen_from_here(site.file, root))
        for name, site in (("after", parting.after), ("a", parting.a), ("b", parting.b))
    }
    return msgspec.structs.replace(parting, **sites)


def _command(mode: str, program: tuple[str, ...]) -> str:
    import shlex

    if not program or mode == "compare":
        return ""
    return f"torchdet-lint verify{f' --mode {mode}' if mode != 'pair' else ''} {shlex.join(program)}"


class _Known(NamedTuple):
    """What is known beside the comparison: the linter's `findings`, the folder that lines are relative to, the
    `table` of ops, where NumPy made generators without a seed, and whether the traces were `compared` alone.
    """

    findings: tuple[explain.Finding, ...]
    root: Path
    table: tuple[Op, ...] = ()
    unseeded: Collection[str] = ()
    compared: bool = False


def _cause(item: Divergence, outcome: Comparison, known: _Known) -> Cause:
    root = known.root
    why = explain.explain(item, outcome.devices, known.table)
    if known.compared and item.source == "op" and set(outcome.environment) - _VARIED:
        why = explain.Explanation(_ELSEWHERE)
    others = [other for other in outcome.causes if other is not item]
    if item.site.op == BATCH:
        # It was made in the functions that the workers ran.
        others = [other for other in others if other.stream != "process"]
    way = explain.on_the_way(item, outcome.partings, root)
    finding = explain.standing_on(item, why, known.findings, root, others, way)
    if finding is None:
        why = with_origin(why, item, root, known.unseeded, lambda place: _place_from_here(place, root))
    named = (why.rule, *why.also)
    code = why.rule
    if finding is not None and finding.code in named and (item.source != "path" or way is not None):
        code = finding.code
    rule = loading.load().rules.get(code)
    file, line = item.site.file, item.site.line
    allocation, _, number = item.evidence.arrival.rpartition(":")
    allocated = item.source == "unwritten" and bool(allocation)
    return Cause(
        rule=code,
        name=rule.name if rule is not None else "",
        also=tuple(other for other in named if other and other != code),
        message=explain.PARTED + told(way, seen_from_here(way.file, root), found=bool(finding))
        if way
        else why.sentence,
        kind=item.kind,
        source=item.source,
        op=item.site.op,
        phase=item.site.phase,
        file=allocation if allocated else file,
        line=int(number) if allocated else line,
        function=item.site.function,
        forward_op=item.site.forward_op,
        forward_file=item.site.forward_file,
        forward_line=item.site.forward_line,
        op_index=item.index,
        differing=item.differing,
        compared=item.compared,
        inputs_equal=item.evidence.inputs_equal,
        generators=item.evidence.generators,
        stream=item.stream,
        other=item.other.place if item.other is not None else "",
        finding=finding,
        instead=rule.instead if rule is not None else "",
        runtime_fix=rule.runtime_fix if rule is not None else "",
        runtime_note=rule.runtime_note if rule is not None else "",
        step=item.step,
        epoch=item.epoch,
        reader=item.site.place if allocated else "",
        task=item.task,
        decided=f"{way.file}:{way.conditions[0]}" if way is not None and len(way.conditions) == 1 else "",
    )


def _of_what_is_left(
    left: tuple[Left, ...], equal: str, program: tuple[str, ...], root: Path, *, lint: bool, measured: str
) -> Cause:
    """The cause where no op differs, as `equal` says: what the linter says of the program's file is all that is known
    of it.
    """
    names = ", ".join(one.name for one in left[:3])
    findings = explain.lint(_entry(program, root), measured=measured) if lint else ()
    told = [finding for code in explain.OUTSIDE_TORCH for finding in findings if finding.code == code]
    return Cause(
        rule="",
        name="",
        also=tuple(dict.fromkeys(finding.code for finding in told)),
        message=f"{equal}; what Python, NumPy or a file made of it differs: {names}",
        kind="left",
        source="left",
        op=left[0].name,
        phase="left behind",
        file="",
        line=0,
        function="",
        forward_op="",
        forward_file="",
        forward_line=0,
        op_index=0,
        differing=len(left),
        compared=len(left),
        inputs_equal=True,
        generators={},
        stream="main",
        finding=told[0] if told else None,
    )


def _entry(program: tuple[str, ...], root: Path) -> list[Path]:
    """The file that a program starts with, if there is one."""
    match program:
        case ("-m", name, *_):
            path = root.joinpath(*name.split("."))
            return [one for one in (path.with_suffix(".py"), path / "__main__.py") if one.is_file()]
        case (name, *_) if name.endswith(".py"):
            return [root / Path(name).name]
    return []


def _rare(runs: int) -> str:
    """How rare a fault may be that so many equal runs would nearly always have shown: in some runs, and not in all."""

    def share(k: int) -> float:
        return 1 - (1 - 1 / k) ** runs - (1 / k) ** runs

    k = next((k for k in range(runs, 2, -1) if share(k) >= _NEARLY_ALWAYS), 2)
    return (
        f"rare faults: {runs} runs would have shown one that occurs in 1 of {k} runs with a probability of "
        f"{100 * share(k):.0f} %, rarer ones with less (--runs)"
    )


def _not_covered(mode: str, count: int, outcome: Comparison, runs: list[RunSummary]) -> tuple[str, ...]:
    notes = []
    if outcome.identical and mode in ("pair", "lockstep"):
        notes.append(
            f"{count} runs under the same conditions: the order of files, the number of threads and unwritten memory "
            "were not varied (--mode stress varies files, completion, threads of the program's own, hash seed, "
            "addresses and memory)"
        )
    elif outcome.identical and mode == "stress":
        notes.append(
            "one stress pair varies the order of files, completion and threads, hash seed, addresses and memory; not "
            "how many threads there are, or time"
        )
    if outcome.identical and mode != "compare":
        notes.append(_rare(count))
    notes += outcome.notes
    notes += [f"run {run.name}: {run.recording}" for run in runs if run.recording]
    strays = sum(run.strays for run in runs)
    if strays:
        notes.append(f"processes that the program left behind were ended: {strays}")
    return tuple(dict.fromkeys(notes))
