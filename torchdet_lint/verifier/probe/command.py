"""`torchdet-lint probe`: the options -> what is measured and where it goes, and what is printed."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from torchdet_lint import __version__
from torchdet_lint.catalogue import loading, measured, verdicts
from torchdet_lint.verifier.probe import journal, plan, statistics
from torchdet_lint.verifier.probe.assemble import assemble
from torchdet_lint.verifier.probe.child import Child, ChildError
from torchdet_lint.verifier.probe.output import changes, contribution, report
from torchdet_lint.verifier.probe.run import Limits, Sitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.catalogue.measured import Machine, Measurement, Row
    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.verifier.probe.plan import Planned

DEVICES = ("cuda", "cpu", "mps", "xpu")
DTYPES = ("float32", "float64", "float16", "bfloat16")
INTERRUPTED = 130

_KEEP_EVERY = 5.0
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SPANS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([MG])i?B?")


class ProbeError(Exception):
    """A measurement that cannot be made or shown; the text is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ProbeError(message)


def main(arguments: list[str]) -> int:
    """The command. Exit status 0 done, 1 `--compare` found a change, 130 interrupted. Raises `ProbeError`."""
    options = parser().parse_args(arguments)
    try:
        return _main(options)
    except (measured.MeasuredError, ChildError) as error:
        raise ProbeError(str(error)) from error


def _main(options: argparse.Namespace) -> int:
    if options.compare:
        a, b = (measured.read(path) for path in options.compare)
        sys.stdout.write(changes.text(a, b))
        return int(bool(changes.changes(a, b)[0]))
    catalogue = loading.load(probes=True, extra=[Path(path) for path in options.rules])
    rows = (*catalogue.facts.ops, *(op for rule in catalogue.rules.values() for op in rule.ops))
    if options.file:
        _show(measured.read(options.file), rows, options)
        return 0
    ops = plan.chosen(rows, options.ops)
    if not ops:
        raise ProbeError(f"no op of the table fits {', '.join(options.ops)}")
    if options.programs:
        sys.stdout.write(_programs(plan.plan(ops, options.device or "cuda", dtypes=options.dtype, modes=options.modes)))
        return 0
    return _measure(ops, rows, catalogue.fingerprint, options)


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = _Parser(
        prog="torchdet-lint probe",
        usage="torchdet-lint probe [options] [FILE]",
        description="Measure which ops are nondeterministic on this machine: run each of them again and again with the "
        "same inputs, and compare the bits.",
        allow_abbrev=False,
    )
    found.add_argument("file", nargs="?", metavar="FILE", help="show this measurement and measure nothing")
    what = found.add_argument_group("what is measured")
    what.add_argument("--device", choices=DEVICES, default="", help="default: the GPU, where torch sees one")
    what.add_argument("--ops", action="append", default=[], metavar="PATTERN", help="only ops of such a name")
    what.add_argument("--dtype", type=_dtypes, default=(), metavar="TYPES", help=f"types: {', '.join(DTYPES)}")
    what.add_argument("--modes", type=_modes, default=plan.MODES, metavar="MODES", help=f"of {', '.join(plan.MODES)}")
    what.add_argument("--rules", action="append", default=[], metavar="FILE", help="a rule file with ops of your own")
    what.add_argument("--programs", action="store_true", help="print the programs and run nothing")
    how = found.add_argument_group("how much")
    how.add_argument("--budget", type=_span, default=300.0, metavar="TIME", help="90s, 5m, 1h (default: 5m)")
    needed = statistics.runs_needed()
    how.add_argument(
        "--runs",
        type=_runs,
        default=needed,
        metavar="N",
        help=f"per result (default: {needed})",
    )
    how.add_argument(
        "--processes", type=_runs, default=6, metavar="N", help="fresh processes that share them (default: 6)"
    )
    how.add_argument("--threads", type=_runs, default=0, metavar="N", help="threads of the CPU (default: torch's)")
    how.add_argument("--memory", type=_size, default=4 * 2**30, metavar="SIZE", help="of a process (default: 4G)")
    how.add_argument(
        "--timeout", type=_span, default=30.0, metavar="TIME",
        help="how long an op may take before it counts as hanging (default: 30s)",
    )  # fmt: skip
    where = found.add_argument_group("what comes of it")
    where.add_argument(
        "-o", "--output", metavar="FILE", help="write the measurement there; what it holds of other ops stays"
    )
    where.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    shape = where.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="print a table for a wiki")
    shape.add_argument("--contribute", action="store_true", help="print a file for rules/facts/measured/")
    where.add_argument("--compare", nargs=2, metavar=("A", "B"), help="say what two measurements do not share")
    return found


def _span(text: str) -> float:
    match = _SPAN.fullmatch(text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 90s, 5m or 1h")
    return float(match[1]) * _SPANS[match[2]]


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 4G or 500M")
    return int(float(match[1]) * 2 ** (30 if match[2] == "G" else 20))


def _runs(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _dtypes(text: str) -> tuple[str, ...]:
    return _among(text, DTYPES)


def _modes(text: str) -> tuple[str, ...]:
    return _among(text, plan.MODES)


def _among(text: str, known: Sequence[str]) -> tuple[str, ...]:
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    if strange := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(strange)}: not among {', '.join(known)}")
    return names


# ------------------------------------------------------------------------------------------------------------ measuring


def _measure(ops: Sequence[Op], rows: Sequence[Op], fingerprint: str, options: argparse.Namespace) -> int:
    output = Path(options.output) if options.output else None
    before = _existing(output) if output is not None and not options.fresh else None
    limits = Limits(
        runs=options.runs,
        budget=options.budget,
        timeout=options.timeout,
        memory=options.memory,
        processes=options.processes,
        threads=options.threads,
    )
    interrupted = False
    with Child(options.device, threads=options.threads, memory=options.memory, spins=False) as first:
        machine = first.machine
        if before is not None and before.machine != machine:
            raise ProbeError(f"{output}: measured on {before.machine.title}, not on this machine; --fresh replaces it")
        planned = plan.plan(ops, machine.device, dtypes=options.dtype, modes=options.modes)
        keeper = _Keeper(output, machine, fresh=options.fresh)
        cells = {cell.key: cell for row in planned for cell in row.cells}
        with _Progress() as progress:
            try:
                Sitting(machine.device, cells, keeper.tallies, limits, progress, keeper.keep, first).measure()
            except KeyboardInterrupt:
                interrupted = True
    measurement = assemble(
        planned,
        keeper.tallies,
        machine,
        runs=options.runs,
        seconds=keeper.seconds,
        date=datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        catalogue=fingerprint,
        version=__version__,
    )
    if output is not None:
        whole = _merged(before, measurement, rows)
        journal.write(output, measured.encode(whole))
        keeper.finish(complete=measurement.complete)
    _show(measurement, rows, options)
    if interrupted:
        again = "; the same command goes on from here" if output is not None else ""
        sys.stderr.write(f"torchdet-lint probe: interrupted{again}\n")
        return INTERRUPTED
    return 0


def _existing(output: Path) -> Measurement | None:
    """The measurement that the file holds; a file that holds something else is not touched."""
    if not output.absolute().parent.is_dir():
        raise ProbeError(f"{output.absolute().parent}: no such folder")
    return measured.read(str(output)) if output.exists() else None


def _merged(before: Measurement | None, now: Measurement, rows: Sequence[Op]) -> Measurement:
    """What was measured now, and of other ops what was measured before."""
    if before is None:
        return now
    together = {row.key: row for row in (*before.rows, *now.rows)}
    order = {verdicts.key(op): number for number, op in enumerate(rows)}
    ordered = sorted(together.values(), key=lambda row: order.get(row.key, len(order)))
    return msgspec.structs.replace(
        now,
        rows=tuple(ordered),
        complete=now.complete and (before.complete or len(together) == len(now.rows)),
        seconds=round(now.seconds + before.seconds, 1),
    )


class _Keeper:
    """The tallies, taken up from the journal beside the output where it is of this machine, and kept there."""

    def __init__(self, output: Path | None, machine: Machine, *, fresh: bool) -> None:
        self._path = journal.beside(output) if output is not None else None
        self._begin = self._last = time.monotonic()
        self._journal = journal.Journal(machine=machine, version=__version__)
        earlier = journal.load(self._path) if self._path is not None and not fresh else None
        if earlier is not None and (earlier.machine, earlier.version) == (machine, __version__):
            self._journal = earlier
        self._earlier = self._journal.seconds
        self.tallies = self._journal.tallies

    @property
    def seconds(self) -> float:
        """How long was measured, all sittings together."""
        return self._earlier + time.monotonic() - self._begin

    def keep(self, now: bool) -> None:
        """Save the journal: now, or where it was not for a while."""
        if self._path is None or not (now or time.monotonic() - self._last > _KEEP_EVERY):
            return
        self._last = time.monotonic()
        self._journal.seconds = self.seconds
        journal.save(self._path, self._journal)

    def finish(self, *, complete: bool) -> None:
        """Drop the journal where nothing is left to add."""
        if self._path is not None and complete:
            self._path.unlink(missing_ok=True)


class _Progress:
    """A bar on a terminal; nothing in a pipe."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._last = 0.0

    def __enter__(self) -> Callable[[float, str], None]:
        return self._step

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def _step(self, part: float, what: str) -> None:
        now = time.monotonic()
        if not self._shown or now - self._last < 0.1:
            return
        self._last = now
        sys.stderr.write(f"\r\x1b[K[{'=' * int(24 * part):24}] {part:4.0%} {what[:50]}")
        sys.stderr.flush()


# -------------------------------------------------------------------------------------------------------------- showing


def _show(measurement: Measurement, rows: Sequence[Op], options: argparse.Namespace) -> None:
    if options.contribute:
        sys.stdout.write(contribution.contribution(measurement))
    elif options.markdown:
        sys.stdout.write(report.markdown(measurement))
    else:
        known = {verdicts.key(op): op for op in rows}

        def said(row: Row) -> str:
            op = known.get(row.key)
            return verdicts.contradiction(op, row, measurement.machine) if op is not None else ""

        device = measurement.machine.device
        shown = [row for row in measurement.rows if not verdicts.elsewhere(row, measurement.rows, device)]
        sys.stdout.write(report.text(msgspec.structs.replace(measurement, rows=tuple(shown)), said))


def _programs(planned: Sequence[Planned]) -> str:
    parts = []
    for row in planned:
        if not row.cells:
            parts.append(f"# {row.op.op}, {row.op.direction}: {row.reason}\n")
        for program, control in dict.fromkeys((cell.program, cell.control) for cell in row.cells):
            what = control or row.op.condition or "as it stands"
            parts.append(f"# {row.op.op}, {program.direction}, {program.dtype}: {what}\n{program.text}")
    return "\n\n".join(parts)
