"""`torchdet-lint forecast`: one run on the CPU -> what of it would differ from run to run on another device.

The ops that ran, backward included and with the line of their forward op, are looked up in the catalogue's table. It
rests on documentation, shipped binaries and measurements (see the rows' evidence), not on a run on the device.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.catalogue import loading, measured, ops, verdicts
from torchdet_lint.verifier.patching.frames import shown
from torchdet_lint.verifier.probe import validity
from torchdet_lint.verifier.verification.options import new_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.measured import Machine, Measurement
    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.verifier.launch.launch import Program

SCHEMA = "torchdet-lint/forecast/1"
NEWEST = "2.13"
_WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
_VARIABLE = "deterministic mode does not help, and nothing warns; a variable of the environment does"
_MEANS = {
    "errors": "no deterministic kernel: deterministic mode raises",
    "switchable": "deterministic mode cures it",
    "silent": "no switch cures it, and nothing warns",
}


@dataclasses.dataclass(frozen=True)
class Place:
    """An op that would differ: the rule, the catalogue's op, the line that calls it, and how often it ran there.

    `aten` is the op that ran; for one of the backward pass `file` and `line` are those of the forward op. `measured` is
    what a measurement of the device showed of it.
    """

    rule: str
    op: str
    direction: str
    status: str
    file: str
    line: int
    aten: str
    count: int
    aggregate: bool
    condition: str
    instead: str
    measured: str = ""


def forecast(
    program: Program,
    *,
    device: str = "cuda",
    torch_version: str = NEWEST,
    timeout: float | None = None,
    measurement: Measurement | None = None,
) -> tuple[Place, ...]:
    """Run `program` once on the CPU and list what would differ on `device` with torch `torch_version`, by place.

    With a `measurement` of that device the ops are judged by it. The program's streams are this process's. Raises
    `ForecastError` if it fails, in one line.
    """
    from torchdet_lint.verifier import trace
    from torchdet_lint.verifier.launch import launch
    from torchdet_lint.verifier.patching.inheritance import WITNESS, with_bootstrap

    with tempfile.TemporaryDirectory(prefix="torchdet-") as name:
        recorded, witnessed = Path(name) / "run.tdtrace", Path(name) / "witness.json"
        result = launch.run_child(
            program,
            environment=with_bootstrap({WITNESS: str(witnessed), **_WITHOUT_GPU}),
            trace=recorded,
            timeout=timeout,
        )
        if not result.ok:
            raise ForecastError(f"the program {result.sentence(timeout)}")
        if not recorded.exists():
            raise ForecastError(result.recording or "nothing was recorded")
        notes = json.loads(witnessed.read_text()) if witnessed.exists() else {"names": [""], "ops": {}, "calls": []}
        folder = Path(program.target).resolve().parent if Path(program.target).exists() else Path.cwd()
        seen = _executions(trace.Trace(recorded), notes, (folder, Path.cwd()))
        table = loading.load().facts.ops
        if measurement is not None:
            table = verdicts.apply(table, measurement, (device,))
        return tuple(_places(seen, table, device, ops.release(torch_version)))


class ForecastError(Exception):
    """A forecast that cannot be made; the text is one line."""


def _executions(
    recorded: Any, notes: dict[str, Any], roots: tuple[Path, ...]
) -> collections.Counter[tuple[str, str, str, int, str]]:
    """(op of the catalogue, direction, file, line, aten op) -> how often it ran."""
    seen: collections.Counter[tuple[str, str, str, int, str]] = collections.Counter()
    occurrences: collections.Counter[str] = collections.Counter()
    for stream in recorded.streams:
        sites = recorded.sites(stream)
        for record in recorded.records(stream):
            site = sites[record.site]
            verdicts = notes["ops"].get(site.op, ()) if stream.number == recorded.main.number else ()
            at = occurrences[site.op]
            occurrences[site.op] += stream.number == recorded.main.number
            known = notes["names"][verdicts[at]] if at < len(verdicts) else ""
            for op, direction in validity.named(site, known):
                backward = site.phase == "backward" and site.forward_file
                file, line = (site.forward_file, site.forward_line) if backward else (site.file, site.line)
                seen[op, direction, file, line, site.op] += 1
    for op, file, line, count in notes["calls"]:
        seen[op, "backward", shown(file, roots), line, ""] += count
    return seen


def _places(
    seen: collections.Counter[tuple[str, str, str, int, str]],
    table: Sequence[Op],
    device: str,
    release: tuple[int, int],
) -> Iterator[Place]:
    for (op, direction, file, line, ran), count in sorted(seen.items(), key=lambda item: (item[0][2:4], item[0])):
        row = _row(table, op, direction, device)
        status = ops.status_in(row.status, release) if row is not None else "absent"
        if row is None or status not in _MEANS:
            continue
        plain = "TDL402" if status == "switchable" else "TDL401"
        rule = row.rule or ("TDL403" if direction == "backward" else plain)
        instead = ops.instead_at(row, release)
        yield Place(
            rule, op, direction, status, file, line, ran, count, row.aggregate, row.condition, instead, row.measured
        )


def _row(table: Iterable[Op], op: str, direction: str, device: str) -> Op | None:
    rows = (row for row in table if row.op == op and row.direction == direction and device in row.devices)
    return next(rows, None)


def text(places: tuple[Place, ...], device: str, torch_version: str, machine: Machine | None = None) -> str:
    """The forecast for a screen; `machine` is the one that was measured, where a measurement was used."""
    own = [place for place in places if not place.aggregate]
    everywhere = sorted({place.op for place in places if place.aggregate})
    count = f"{len(own)} place{'s' * (len(own) != 1)}"
    lines = [f"{count} would differ on {device} with torch {torch_version}; the run here was on the CPU"]
    if machine is not None:
        lines.append(f"judged by a measurement, which is valid for {machine.whole}")
    rules = loading.load().rules
    for place in own:
        name = f" {rules[place.rule].name}" if place.rule in rules else ""
        where = f"{place.file}:{place.line}" if place.file else "(no line)"
        what = f"the gradient of {place.op}" if place.direction == "backward" else place.op
        means = _VARIABLE if place.status == "silent" and "os.environ" in place.instead else _MEANS[place.status]
        lines.append(f"{where}: {place.rule}{name}: {what}, {_times(place.count)}; {means}")
        if place.measured:
            lines.append(f"    measured: {place.measured}")
        if place.instead:
            lines.append(f"    instead: {place.instead}")
    if everywhere:
        lines.append(f"besides, as everywhere, without deterministic mode: {', '.join(everywhere)}")
    lines.append(
        "not covered: compiled regions, threads and workers, kernels of other packages, what the run did not reach"
    )
    return "\n".join(lines) + "\n"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(
        prog="torchdet-lint forecast",
        usage="torchdet-lint forecast [options] script.py [args…] | -m module [args…]",
        description="Run a program once on the CPU and list what would differ from run to run on another device.",
    )
    found.add_argument("--device", default="cuda", choices=("cuda", "mps"), help="where it would run (default: cuda)")
    found.add_argument(
        "--torch-version", default="", metavar="RELEASE", help="the release (default: the installed one)"
    )
    found.add_argument("--measured", metavar="FILE", help="what `torchdet-lint probe` wrote there")
    found.add_argument("--no-measured", action="store_const", dest="measured", const="", help="by the table alone")
    found.add_argument("--timeout", type=float, default=None, metavar="SECONDS", help="for the run")
    found.add_argument("--output-format", default="text", choices=("text", "json"), help="(default: text)")
    found.add_argument("-o", "--output-file", type=new_file, default=None, metavar="FILE", help="write the list there")
    found.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return found


def main(arguments: list[str], configured: str = "") -> int:
    """The command; exit status 0 nothing would differ, 1 something would, 2 usage, 3 the program failed. `configured`
    is the file of measurements that the project's configuration names.
    """
    from torchdet_lint.verifier.launch import launch

    options = parser().parse_args(arguments)
    try:
        measurement = _measurement(options, configured)
        ops.release(options.torch_version)
        program = launch.Program.parse(options.program)
    except (ValueError, launch.LaunchError, measured.MeasuredError, validity.ChildError) as error:
        sys.stderr.write(f"torchdet-lint: error: forecast: {error}\n")
        return 2
    try:
        places = forecast(
            program,
            device=options.device,
            torch_version=options.torch_version,
            timeout=options.timeout,
            measurement=measurement,
        )
    except ForecastError as error:
        sys.stderr.write(f"torchdet-lint: error: forecast: {error}\n")
        return 3
    if options.output_format == "json":
        table = {
            "schema": SCHEMA,
            "device": options.device,
            "torch": options.torch_version,
            "measured_on": msgspec.to_builtins(measurement.machine) if measurement is not None else None,
            "program": program.words,
            "places": [dataclasses.asdict(place) for place in places],
        }
        output = json.dumps(table, indent=2) + "\n"
    else:
        machine = measurement.machine if measurement is not None else None
        output = text(places, options.device, options.torch_version, machine)
    if options.output_file is None:
        sys.stdout.write(output)
    else:
        options.output_file.write_text(output, encoding="utf-8")
    return int(any(not place.aggregate for place in places))


def _measurement(options: argparse.Namespace, configured: str) -> Measurement | None:
    """The measurement that is asked for, or that the project names; it settles the release where none is asked for.

    One of another device or release is an error where the command line asks for both, else a line says that it is not
    used. Where torch sees such a device here, it must be the one that was measured; where it sees none, the forecast is
    for the machine that was measured.
    """
    path = Path(configured if options.measured is None else options.measured or "")
    if not path.name:
        options.torch_version = options.torch_version or NEWEST
        return None
    found = measured.read(str(path))
    machine = found.machine
    release = options.torch_version or machine.release
    why = ""
    if machine.device != options.device:
        why = f"measured on {machine.device}, not on {options.device}"
    elif ops.release(release) != ops.release(machine.torch) or not machine.fits(release):
        why = f"measured with torch {machine.torch}, not with {release}"
    if why and options.measured:
        raise measured.MeasuredError(f"{path}: {why}")
    there = validity.this_machine(options.device) if not why else None
    if there is not None and (other := machine.unlike(there.identity)):
        why = f"measured with {other}"
    if why:
        sys.stderr.write(f"torchdet-lint: warning: {path.name}: {why}: not used\n")
        options.torch_version = options.torch_version or NEWEST
        return None
    options.torch_version = release
    return found
