"""The outcome of a verification -> at most 30 lines for a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.verifier.comparison.screen import BOLD, DIM, GREEN, RED, YELLOW, paint, wrapped
from torchdet_lint.verifier.verification.closer.wording import amounts

if TYPE_CHECKING:
    from torchdet_lint.verifier.verification.outcome import Cause, Outcome

LINES = 30
ASIDE = {"thread": "another thread", "process": "a worker"}
"""What runs beside the main thread where it is the scheduler's choice who does what."""
UNDER = {"pair": " under the same conditions", "stress": " under stress", "lockstep": " in lockstep"}
_NO_OP = "no op of torch ran"
_MEASURABLE = 1.1
"""Ratios of CPU time up to this differ from run to run."""
_BEFORE_STEPS = frozenset({"init", "load", "split"})
"""Phases that belong to no step, though what comes before the end of the first counts as the first."""


def text(report: Outcome, *, colour: bool = False) -> str:
    """The report for a screen, within `LINES` lines: verdict, causes in order of execution, spread, fix, what was not
    covered.
    """
    told = filter(None, [without_ops(report), but_for_timings(report)])
    head = [_verdict(report, colour), *told, *_tolerance(report, colour)]
    head += _environment(report) if report.mode == "compare" else []
    tail = [
        *_left(report),
        *(line for told in amounts(report) for line in wrapped(told)),
        *_spread(report),
        *_fix(report, colour),
        *_held(report),
        *_evidence(report),
        *_measured_on(report),
        *(_environment(report) if report.mode != "compare" else []),
        *_not_covered(report, colour),
    ]
    if report.causes and report.command and not report.fixes and report.fix is None:
        command = report.command.replace(" --mode lockstep", "", 1).replace("verify", "verify --fix", 1)
        tail.append(f"try the fixes: {command}")
    tail = [*(line for cause in report.without_effect[:3] for line in _without_effect(cause)), *tail]
    room = LINES - len(head) - len(tail)
    body: list[str] = []
    shown = 0
    for cause in report.causes:
        lines = _cause(shown + 1, cause, colour)
        left = len(report.causes) - shown - 1
        if len(body) + len(lines) + (left > 0) > room:
            break
        body += lines
        shown += 1
    if shown < len(report.causes):
        body.append(f"… and {len(report.causes) - shown} more (--output-format json lists all)")
    return "\n".join((head + body + tail)[:LINES]) + "\n"


def _verdict(report: Outcome, colour: bool) -> str:
    count = len(report.runs)
    under = UNDER.get(report.mode, "")
    fixes = f" with {len(report.fixes)} fixes applied" if report.fixes else ""
    if report.verdict == "failed":
        return paint(f"✗ the program failed: {report.failure}", RED, colour)
    if report.verdict == "nothing":
        return paint(f"✗ nothing was compared: {report.failure}", RED, colour)
    if report.verdict == "identical" and report.fix is not None:
        plain = f"without them {len(report.causes)} root cause{'s' if len(report.causes) != 1 else ''}"
        return paint(f"✓ with the fixes of {','.join(report.fix.fixes)} the runs are equal; {plain}", GREEN, colour)
    if report.verdict == "identical":
        return paint(f"✓ {count} runs{under}{fixes} are equal, bit for bit, in {equal_in(report)}", GREEN, colour)
    causes = len(report.causes)
    what = f"{causes} root cause{'s' if causes != 1 else ''}"
    ops = differing_of(report)
    if report.left and not report.spread.differing and not report.spread.partings:
        count_equal = report.spread.compared
        ops = f"{_counted(count_equal, 'op')} {'is' if count_equal == 1 else 'are'} equal" if count_equal else _NO_OP
        what = f"{', '.join(left.name for left in report.left if left.certain)} not equal"
    return paint(f"✗ {count} runs{under}{fixes} diverged · {what} · {ops}", RED, colour)


def _tolerance(report: Outcome, colour: bool) -> list[str]:
    told = report.tolerance
    if told is None:
        return []
    mark, words, shade = ("✓", "within", GREEN) if told.met else ("✗", "not within", RED)
    return [paint(f"{mark} {words} the tolerance {told.relative:g}: {told.why}", shade, colour)]


def equal_in(report: Outcome) -> str:
    """In what runs are equal, in numbers."""
    counts = (report.spread.compared, "op"), (report.compared_files, "file"), (report.compared_lines, "line")
    told = [_counted(count, what) for count, what in counts if count] or ["0 ops"]
    if report.compared_lines:
        told[-1] += " of output"
    *most, last = told
    return f"{', '.join(most)} and {last}" if most else last


def without_ops(report: Outcome) -> str:
    """That nothing of torch was compared, where runs that are equal ran nothing of it."""
    if report.verdict != "identical" or report.spread.compared:
        return ""
    others = ": compared is what the program printed and wrote, and its exit status" * (report.mode != "compare")
    return f"{_NO_OP}{others}"


def but_for_timings(report: Outcome) -> str:
    """What of runs that are equal is so only without timings, in numbers; empty where there is nothing."""
    counts = (report.masked_lines, "line"), (report.masked_files, "file")
    told = [_counted(count, what) for count, what in counts if count and report.verdict == "identical"]
    return f"equal but for timings, dates and the like: {' and '.join(told)}" if told else ""


def differing_of(report: Outcome) -> str:
    """How many ops differ, of how many."""
    differing = report.spread.differing
    verb = "differs" if differing == 1 else "differ"
    return f"{differing:,} of ".replace(",", " ") + f"{_counted(report.spread.compared, 'op')} {verb}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}".replace(",", " ")


def _left(report: Outcome) -> list[str]:
    """What differs in what the runs left behind, and how a run ended that failed alone."""
    lines = []
    for left in [left for left in report.left if left.certain][:4]:
        lines += wrapped(f"left behind: {left.name}: {left.difference}")
        if left.hint and not report.spread.differing:
            lines += wrapped(f"  {left.hint}", 2)
        if left.last:
            lines += wrapped(f"  the last of it: {left.last}")
    if report.crash and report.verdict == "diverged":
        first, *rest = report.crash.splitlines()
        lines += [first, *(f"  {line}" for line in rest)]
    return lines


def _cause(number: int, cause: Cause, colour: bool) -> list[str]:
    rule = f"{cause.rule} {cause.name}".strip() or "no rule"
    place = f"{cause.file}:{cause.line}" if cause.file else "(no line of yours)"
    if cause.kind == "left":
        return _of_what_is_left(number, cause, colour)
    place = _place(cause, place)
    lines = [f"{paint(f'{number} {rule}', BOLD, colour)}   {paint(place, YELLOW, colour)}   {cause.op}, {cause.phase}"]
    lines += wrapped(cause.message)
    facts = [*_when(cause), f"op #{cause.op_index}", f"{cause.differing} of {cause.compared} executions differ"]
    if cause.kind != "path" and cause.source == "op":
        facts.append("inputs identical")
    if cause.stream != "main":
        ranked = cause.stream.removeprefix("process ") if cause.stream.startswith("process rank ") else cause.stream
        facts.append(f"in {ASIDE.get(cause.stream, ranked)}")
    if cause.task:
        facts.append(f"in {cause.task}")
    if cause.other:
        facts.append(f"run B goes on at {cause.other}")
    states = ", ".join(
        f"{name} {state}" for name, state in sorted(cause.generators.items()) if state in ("differs", "equal")
    )
    if states:
        facts.append(f"generators: {states}")
    lines.append(f"  {' · '.join(facts)}")
    if cause.places:
        more = f" and {len(cause.places) - 3} more places" if len(cause.places) > 3 else ""
        lines += wrapped(f"also at {', '.join(cause.places[:3])}{more}", 1)
    if cause.proven:
        lines.append(f"  proven: it differs without the fix of {cause.rule}, and is equal with it")
    if cause.gone_with or cause.left_with:
        gone, left = map(_factors, (cause.gone_with, cause.left_with))
        lines += wrapped(f"one fix at a time: gone with {gone}; it still differs with {left}")
    if cause.also:
        lines.append(f"  may also be: {', '.join(cause.also)}")
    if cause.finding is not None:
        found = cause.finding
        lines += wrapped(f"the linter: {found.filename}:{found.line} {found.code} {found.message}", 1)
    elif cause.instead:
        lines += wrapped(f"instead: {cause.instead}", 1)
    return lines


def _factors(held: tuple[str, ...]) -> str:
    """What was held fixed: the fixes of rules, and the addresses of objects, which are none."""
    rules = [code for code in held if code.startswith("TDL")]
    told = [f"that of {', '.join(rules)}"] * bool(rules) + ["fixed addresses of objects"] * (len(held) > len(rules))
    return " and with ".join(told) or "none"


def _place(cause: Cause, place: str) -> str:
    """Where a cause is, and what else was where."""
    if cause.forward_file and (cause.forward_file, cause.forward_line) != (cause.file, cause.line):
        return f"{cause.forward_file}:{cause.forward_line} (backward, from {place})"
    if cause.reader and cause.reader != place:
        return f"{place} (allocated there, read at {cause.reader})"
    if cause.decided and cause.decided != place:
        return f"{cause.decided} (run A goes on at {place})"
    return place


def _when(cause: Cause) -> list[str]:
    epoch = f", pass {cause.epoch} over the data" if cause.epoch else ""
    return [f"first in step {cause.step}{epoch}"] if cause.step and cause.phase not in _BEFORE_STEPS else []


def _of_what_is_left(number: int, cause: Cause, colour: bool) -> list[str]:
    lines = [paint(f"{number} {cause.op}", BOLD, colour), *wrapped(cause.message)]
    if cause.finding is not None:
        found = cause.finding
        lines += wrapped(f"the linter: {found.filename}:{found.line} {found.code} {found.message}", 1)
    return lines


def _without_effect(cause: Cause) -> list[str]:
    place = f"{cause.file}:{cause.line}" if cause.file else cause.op
    return wrapped(f"differs without effect: {place} {cause.op}, {cause.differing} of {cause.compared} executions", 1)


def _spread(report: Outcome) -> list[str]:
    spread = report.spread
    lines = [line.strip() for told in in_lockstep(report) for line in wrapped(told)]
    if not lines and report.verdict == "diverged" and spread.differing:
        end = "lasts, and the run was ended" if report.runs[-1].status == "early" else "lasts to the end"
        lasts = {"transient": "heals: later ops come out equal again", "persistent": end}
        count = spread.consequences
        follow = "1 more place follows" if count == 1 else f"{count if count > 0 else 'no'} more places follow"
        lines.append(f"spread: {follow} from this; it {lasts.get(spread.persistence, 'lasts')}")
    for parting in spread.partings[:2]:
        a = parting.a.place or parting.a.op if parting.a else "its end"
        b = parting.b.place or parting.b.op if parting.b else "its end"
        after = f" after {parting.after.place or parting.after.op}" if parting.after else ""
        again = "they meet again" if parting.rejoined else "they do not meet again"
        a_ops, b_ops = _counted(parting.a_ops, "op"), _counted(parting.b_ops, "op")
        ways = f"A goes to {a} ({a_ops}), B to {b} ({b_ops})"
        if a == b:
            ways = f"{'there' if after == f' after {a}' else f'at {a}'} A runs {a_ops}, B {b_ops}"
        lines.append(f"paths part{after}: {ways}; {again}")
    return lines


def in_lockstep(report: Outcome) -> list[str]:
    """How often run B went on with run A's values, and where that ended; nothing for runs that are equal."""
    told = report.lockstep
    if told is None or report.verdict != "diverged":
        return []
    times = f"each of {told.replaced} ops" if told.replaced > 1 else "the one op"
    lines = [f"lockstep: run B went on with run A's value after {times} that gave another"] * (told.replaced > 0)
    if told.ended_at >= 0:
        lines.append(
            f"lockstep ended at op #{told.ended_at}: {told.why}; what differs after it may follow from what differs "
            "there"
        )
    lines += [f"lockstep ended in {one.stream} at op #{one.ended_at}: {one.why}" for one in told.threads]
    return lines


def _fix(report: Outcome, colour: bool) -> list[str]:
    fix = report.fix
    if fix is None:
        return []
    if fix.cured:
        chosen = ",".join(fix.fixes)
        price = f": {fix.ratio:.2f} times the CPU time of a plain run" if fix.ratio > _MEASURABLE else ""
        lines = [paint(f"fix {chosen}{price}", GREEN, colour)]
    else:
        tried = f"{len(fix.fixes)} fixes" if len(fix.fixes) > 6 else f"the fixes of {', '.join(fix.fixes)}"
        edited = "; they are equal once the source is edited" if fix.command else ""
        lines = [paint(f"fix: the runs still differ with {tried}{edited}", RED, colour)]
    if fix.command:
        lines.append(f"  write it into the source: {fix.command}")
        if fix.edited_runs:
            lines.append(f"  the edited source: equal in {fix.edited_runs} of {fix.edited_runs} runs")
    elif fix.cured:
        lines.append("  no edit of the linter's makes the runs equal")
    return [*lines, *(line for note in fix.notes[:3] for line in wrapped(note))]


def _held(report: Outcome) -> list[str]:
    """What the program did against the fixes."""
    lines = []
    for held in report.held[:3]:
        place = f"{held.file}:{held.line} " if held.file else ""
        lines += wrapped(f"held: {place}{held.rule} {held.message}", 1)
    if len(report.held) > 3:
        lines.append(f"  … and {len(report.held) - 3} more")
    return lines


def _evidence(report: Outcome) -> list[str]:
    """What the runs say of the linter's findings: how many of each state, and the first of them."""
    if not report.evidence:
        return []
    states = [judged.state for judged in report.evidence]
    counts = [f"{states.count(state)} {state}" for state in ("confirmed", "not reached", "not reproduced")]
    lines = [f"the linter's findings: {', '.join(counts)}"]
    order = sorted(report.evidence, key=lambda judged: judged.state != "confirmed")
    for judged in order[:5]:
        lines += wrapped(f"{judged.state}: {judged.filename}:{judged.line} {judged.code}: {judged.why}", 1)
    if len(order) > 5:
        lines.append(f"  … and {len(order) - 5} more (--output-format json lists all)")
    return lines


def _measured_on(report: Outcome) -> list[str]:
    if report.measured_on is None:
        return []
    return wrapped(f"judged by a measurement, which is valid for {report.measured_on.whole}")


def _environment(report: Outcome) -> list[str]:
    if not report.environment:
        return []
    pairs = [f"{name}: {a or 'unset'} | {b or 'unset'}" for name, (a, b) in sorted(report.environment.items())]
    return ["environments differ: " + "; ".join(pairs[:4])]


def _not_covered(report: Outcome, colour: bool) -> list[str]:
    notes = [line for note in report.not_covered[:4] for line in wrapped(f"not covered: {note}")]
    return [paint(line.strip(), DIM, colour) for line in notes]
