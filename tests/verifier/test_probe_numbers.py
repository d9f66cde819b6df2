"""What a probe makes of its numbers, without running an op: statistics, plans, programs, tallies, reports."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from torchdet_lint.catalogue import loading, measured, verdicts
from torchdet_lint.catalogue.explain import matrix
from torchdet_lint.catalogue.measured import Machine, Measurement, Result, Row
from torchdet_lint.catalogue.ops import status_at

pytest.importorskip("torch")

import tomli
import torch

from torchdet_lint.verifier.probe import plan, programs, statistics
from torchdet_lint.verifier.probe.batches import Batch, Difference, Task
from torchdet_lint.verifier.probe.measuring import difference, measure
from torchdet_lint.verifier.probe.measuring.inputs import Inputs
from torchdet_lint.verifier.probe.output import changes, contribution, report, wording
from torchdet_lint.verifier.probe.tally import Tally

CATALOGUE = loading.load(probes=True)
OPS = CATALOGUE.facts.ops
HERE = Machine(device="cuda", name="NVIDIA H100", torch="2.13.0+cu128", threads=8, platform="Linux", python="3.11")


def result(outcome="equal", runs=459, differing=0, **more):
    low, high = statistics.interval(differing, runs)
    return Result(
        outcome=outcome, runs=runs, differing=differing, low=low, high=high, finds=statistics.findable(runs), **more
    )


def measurement(*results, op="torch.median(dim=...)", machine=HERE, **more):
    row = next(row for row in OPS if row.op == op and "cuda" in row.devices)
    about = Row(
        op=row.op,
        direction=row.direction,
        spelling=row.spellings[0].name,
        condition=row.condition,
        devices=row.devices,
        results=results,
    )
    return Measurement(machine=machine, date="2026-01-01", runs=459, seconds=1.0, complete=True, rows=(about,), **more)


# ----------------------------------------------------------------------------------------------------------- statistics


def test_so_many_runs_find_one_percent_with_99_percent_and_one_less_does_not():
    runs = statistics.runs_needed()
    assert 1 - 0.99**runs >= 0.99 > 1 - 0.99 ** (runs - 1)
    assert statistics.findable(runs) <= 0.01 < statistics.findable(runs - 1)


@pytest.mark.parametrize(
    ("differing", "runs", "low", "high"),
    [
        (0, 10, 0.0, 0.30850),
        (10, 10, 0.69150, 1.0),
        (34, 200, 0.12076, 0.22939),
        (1, 459, 0.0000552, 0.01208),
        (5, 20, 0.08657, 0.49105),
    ],
)
def test_the_interval_is_the_exact_one(differing, runs, low, high):
    """The figures are those of Clopper and Pearson, from the quantiles of the beta distribution."""
    assert statistics.interval(differing, runs) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(("count", "runs"), [(1, 1), (1, 459), (3, 20), (20, 20), (100, 300)])
def test_the_tail_is_the_sum_of_its_terms(count, runs, rate):
    terms = (math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(count, runs + 1))
    assert statistics._at_least(count, runs, rate) == pytest.approx(math.fsum(terms), rel=1e-9, abs=1e-12)


def test_a_million_runs_are_no_work():
    low, high = statistics.interval(10_000, 1_000_000)
    assert low < 0.01 < high < low + 0.0005


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.37, 0.5, 0.93])
def test_the_interval_holds_the_rate_in_at_least_95_of_100_measurements(rate):
    runs = 60
    held = 0.0
    for differing in range(runs + 1):
        low, high = statistics.interval(differing, runs)
        if low <= rate <= high:
            held += math.comb(runs, differing) * rate**differing * (1 - rate) ** (runs - differing)
    assert held >= 0.95


def test_an_op_that_differs_needs_no_more_runs_once_its_rate_is_known():
    assert not statistics.settled(0, 10_000)
    assert not statistics.settled(1, 30)
    assert not statistics.settled(20, 40)
    assert statistics.settled(60, 120)


# ----------------------------------------------------------------------------------------------- the rows' programs


@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op.op} {op.direction} {','.join(op.devices)} {op.condition}")
def test_every_row_says_how_it_is_run_or_why_it_is_not(op):
    assert op.probe is not None
    if not op.probe.call:
        assert op.probe.reason
        assert not op.probe.inputs
        return
    assert op.probe.controls, "nothing that does not meet the condition"
    planned = plan.plan([op], "cuda")[0]
    met = [cell for cell in planned.cells if not cell.control]
    others = [cell for cell in planned.cells if cell.control]
    assert met
    assert {cell.control for cell in others} == {control.what for control in op.probe.controls}
    for cell in others:
        assert (cell.program, cell.mode) not in [(cell.program, cell.mode) for cell in met]
    for cell in planned.cells:
        compile(cell.program.text, op.op, "exec")
    used = {name for cell in planned.cells for name, _ in cell.program.inputs}
    given = {*op.probe.inputs, *(name for control in op.probe.controls for name in control.inputs)}
    assert used == given, "an input that no call uses"
    assert set(op.probe.constant) <= given


def test_the_rows_are_told_apart():
    keys = [verdicts.key(op) for op in OPS]
    assert len(keys) == len(set(keys))


def test_a_lint_run_does_not_read_the_probes():
    assert all(op.probe is None for op in loading.load().facts.ops)
    assert loading.load().fingerprint == CATALOGUE.fingerprint


def test_what_computes_the_same_is_run_once():
    twice = [op for op in OPS if op.op == "torch.kthvalue"]
    planned = plan.plan(twice, "cpu")
    assert len(planned) == 2
    keys = [{cell.key for cell in row.cells} for row in planned]
    assert keys[0] == keys[1]


def test_modes_and_types_are_those_that_the_device_has_and_the_user_wants():
    op = next(op for op in OPS if op.op == "torch.nn.Conv2d" and op.direction == "backward")
    assert {cell.mode for cell in plan.plan([op], "cuda")[0].cells} == set(plan.MODES)
    assert {cell.mode for cell in plan.plan([op], "cpu")[0].cells} == set(plan.MODES[:3])
    asked = plan.plan([op], "cuda", dtypes=("float16", "float64"), modes=("default",))[0].cells
    assert {(cell.mode, cell.program.dtype) for cell in asked} == {("default", "float16"), ("default", "float64")}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("take_along", {"torch.take_along_dim"}),
        ("torch.cumsum", {"torch.cumsum", "torch.cumsum(any shape)", "torch.cumsum under torch.compile"}),
        ("*.TAKE", {"torch.take"}),
        ("nothing_like_it", set()),
    ],
)
def test_ops_are_chosen_by_a_part_of_their_name_or_a_pattern(pattern, names):
    assert {op.op for op in plan.chosen(OPS, [pattern])} == names


def test_inputs_are_the_same_bits_each_time():
    for name, arguments in {"normal": (3, 4), "repeated": (9, 50), "distinct": (20,), "uniform": (0, 1, 7)}.items():
        first, second = (getattr(Inputs("cpu", torch.float32, 5), name)(*arguments) for _ in range(2))
        assert torch.equal(first, second)
    made = Inputs("cpu", torch.float32, 5)
    assert sorted(made.distinct(50).tolist()) == list(range(50))
    assert len(set(made.repeated(9, 50).tolist())) < 50
    assert not torch.equal(made.normal(5), made.normal(5))
    assert torch.equal(made.generator().get_state(), made.generator().get_state())
    last = Inputs("cpu", torch.float64, 5, "channels_last").normal(2, 3, 4, 5)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert last.dtype is torch.float64


def test_a_program_reads_as_python():
    op = next(op for op in OPS if op.op == "torch.take" and "cpu" in op.devices)
    assert programs.of_row(op).text == (
        "x = normal(100)\nindex = repeated(100, many)\n\n\ndef call():\n    return x.take(index)\n"
    )


# -------------------------------------------------------------------------------------------------------- differences


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_ulps_count_the_numbers_between(dtype):
    one = torch.tensor([1.0, -1.0, 0.0, 3.0], dtype=dtype)
    other = one.clone()
    other[0] = torch.nextafter(torch.nextafter(one[0], one[0] * 2), one[0] * 2)
    found = difference.between([one], [other])
    assert (found.ulp, found.elements, found.of) == (2, 1, 4)
    across = difference.between([-torch.nextafter(one[2], one[0])[None]], [torch.nextafter(one[2], one[0])[None]])
    assert across.ulp == 2


def test_bits_count_and_not_values():
    zero, minus = torch.tensor([0.0]), torch.tensor([-0.0])
    assert difference.between([zero], [minus]).elements == 1
    nan = torch.tensor([float("nan")])
    assert difference.between([nan], [nan.clone()]).elements == 0
    broken = difference.between([torch.ones(1)], [nan])
    assert (broken.elements, broken.ulp) == (1, None)
    assert difference.between([torch.tensor([3])], [torch.tensor([5])]) == Difference(absolute=2.0, elements=1, of=1)


# -------------------------------------------------------------------------------------------------------------- tallies


def cell():
    return plan.plan([OPS[0]], "cpu")[0].cells[0]


def ran(digests, inputs="i", **more):
    counted = tuple((provocation, digest, count) for provocation, digest, count in digests)
    return Batch(ending="ran", digests=counted, inputs=inputs, **more)


def test_a_rate_is_that_of_runs_unlike_most_runs():
    tally = Tally()
    tally.add(ran([("plain", "a", 3), ("busy threads", "b", 1)]))
    tally.add(ran([("plain", "b", 6)], difference=Difference(ulp=3, elements=2, of=9)))
    found = tally.result(cell())
    assert (found.outcome, found.runs, found.differing) == ("differs", 10, 3)
    assert (found.processes, found.processes_differing) == (2, 1)
    assert found.provoked == {"plain": (9, 3), "busy threads": (1, 0)}
    assert found.ulp == 3
    assert found.low < 0.3 < found.high


def test_many_different_results_take_little_memory():
    tally = Tally()
    for process in range(50):
        tally.add(ran([("plain", f"{process}-{number}", 1) for number in range(100)]))
    assert len(msgspec.json.encode(tally)) < 20_000
    assert (tally.runs, tally.differing) == (5000, 4999)


@pytest.mark.parametrize("fatal", ["crashes", "hangs", "out of memory"])
def test_what_ends_its_process_is_a_result_and_tried_once_more(fatal):
    tally = Tally()
    tally.add(Batch(ending=fatal, note="was ended by SIGSEGV"))
    assert not tally.finished(459)
    tally.add(Batch(ending=fatal, note="was ended by SIGSEGV"))
    assert tally.finished(459)
    found = tally.result(cell())
    assert (found.outcome, found.note) == (fatal, "was ended by SIGSEGV (2 of 2 processes)")


def test_inputs_that_are_not_the_same_show_nothing():
    tally = Tally()
    tally.add(ran([("plain", "a", 5)], inputs="one"))
    tally.add(ran([("plain", "b", 5)], inputs="two"))
    assert tally.result(cell()).outcome == "unavailable"


# ---------------------------------------------------------------------------------------------------- what is said


def test_no_word_says_that_an_op_is_deterministic():
    said = wording.outcome(result(runs=459))
    assert said == "no difference seen in 459 runs (99 % sure to find a rate of 1.0 %)"
    whole = report.text(measurement(result()), lambda _row: "")
    assert "is deterministic" not in whole
    assert "No difference seen is no proof" in whole


def test_how_many_results_are_short_of_runs_is_said():
    few, settled = result(runs=30), result("differs", 200, 34, processes=3)
    raised, missing = result("raises", 0, note="no"), Result(outcome="not run", control="few")
    alone = Result(outcome="unavailable", note="flash_attn is not installed", mode="benchmark")
    given = measurement(result(), few, settled, raised, missing, alone)
    given = msgspec.structs.replace(given, complete=False)
    told = report.text(given, lambda _row: "")
    assert "\n2 of 5 results, in 1 row, have fewer than their 459 runs: a larger --budget" in told
    assert "fewer than" not in report.text(msgspec.structs.replace(given, complete=True), lambda _row: "")


def test_every_row_has_a_program_or_a_reason():
    """Those with a reason have no kernel for the CPU; the others run there once their packages are installed."""
    planned = plan.plan(OPS, "cpu")
    assert len(planned) == len(OPS)
    for row in planned:
        assert bool(row.cells) is not bool(row.reason), row.op.op
        assert row.op.probe is not None
    reasons = {row.op.op for row in planned if row.reason}
    assert reasons == {
        "torch.nn.Conv2d with cudnn.benchmark",
        "torch.distributed.all_reduce",
        "torch.nn.attention.flex_attention.flex_attention",
        "flash_attn.flash_attn_func",
        "xformers.ops.memory_efficient_attention",
        "triton.language.atomic_add",
        "numba.cuda.atomic.add",
        "cupyx.scatter_add",
        "warp.atomic_add",
    }
    packages = {
        row.op.package: row.cells[0].program.needs for row in planned if row.cells and row.op.package != "torch"
    }
    assert packages == {
        "torch-scatter": ("torch_scatter",),
        "dgl": ("dgl",),
        "torchvision": ("torchvision.ops",),
    }


def test_a_package_that_is_missing_is_the_reason_of_its_row():
    row = next(row for row in plan.plan(OPS, "cpu") if row.op.op == "torchvision.ops.roi_align")
    program = msgspec.structs.replace(row.cells[0].program, needs=("no_such_package.ops",))
    batch = measure.measure(Task(program=program, device="cpu", mode="default", runs=2, seconds=1.0))
    assert (batch.ending, batch.note) == ("unavailable", "no_such_package is not installed")


def test_a_difference_is_said_with_its_rate_its_interval_and_its_size():
    found = result("differs", 200, 34, ulp=3, elements=5, of=100)
    assert wording.outcome(found) == (
        "differed in 34 of 200 runs (17 %, 95 % interval 12 % to 23 %), by up to 3 ulp in 5 of 100 elements"
    )


def test_a_table_for_a_wiki_has_a_line_for_each_row():
    strict = result("raises", 0, mode="deterministic", note="RuntimeError: no")
    text = report.markdown(measurement(result("differs", 200, 34), strict, result(control="without dim")))
    line = text.splitlines()[-1]
    assert line.startswith("| torch.median(dim=...) | with dim")
    assert line.endswith("| **34 of 200** | raises |  | without dim: 0 of 459 |")


def test_what_changed_between_two_machines():
    other = msgspec.structs.replace(HERE, name="NVIDIA A100")
    before = measurement(result("differs", 200, 34), result(control="without dim"))
    for after, changed in (
        (measurement(result(), result(control="without dim"), machine=other), 1),
        (measurement(result("differs", 200, 40), machine=other), 0),
        (measurement(result("differs", 200, 190), machine=other), 1),
        (measurement(result("raises", 0, note="no"), machine=other), 1),
        (measurement(Result(outcome="unavailable"), machine=other), 0),
    ):
        assert len(changes.changes(before, after)[0]) == changed
    text = changes.text(before, measurement(result("raises", 0, note="no"), machine=other))
    assert "a: differed in 34 of 200 runs" in text
    assert "b: raises: no" in text


def test_a_contribution_is_a_file_of_the_catalogue():
    given = measurement(result("differs", 200, 34, seconds=0.5, note='a "quoted" \\ note'), version="1.2")
    text = contribution.contribution(given)
    read = msgspec.convert(tomli.loads(text), Measurement)
    assert read.machine == given.machine
    assert read.rows[0].key == given.rows[0].key
    assert (read.rows[0].results[0].differing, read.rows[0].results[0].note) == (34, 'a "quoted" \\ note')
    assert contribution.file_name(given) == "nvidia-h100-torch-2.13.toml"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(tomli.loads(f"strange = 1\n{text}"), Measurement)


def test_the_page_of_ops_has_a_column_for_each_machine():
    cured = result(mode="deterministic")
    page = matrix(
        OPS,
        measurements=[
            ("h100.toml", measurement(result("differs", 200, 34), cured)),
            ("a100.toml", measurement(result(), machine=msgspec.structs.replace(HERE, name="NVIDIA A100"))),
        ],
    )
    head = next(line for line in page.splitlines() if "NVIDIA H100" in line)
    assert head == (
        "| operation | direction | [NVIDIA H100, torch 2.13](../rules/facts/measured/h100.toml) "
        "| [NVIDIA A100, torch 2.13](../rules/facts/measured/a100.toml) |"
    )
    row = next(line for line in page.partition("## Measured")[2].splitlines() if "median" in line)
    assert row.endswith("| **34 of 200**; deterministic mode: 0 of 459 | 0 of 459 |")


@pytest.mark.parametrize("name_and_table", measured.shipped(), ids=lambda pair: pair[0])
def test_what_is_shipped_was_measured_of_rows_that_are_there(name_and_table):
    name, table = name_and_table
    assert name == contribution.file_name(table)
    known = {verdicts.key(op) for op in OPS}
    assert {row.key for row in table.rows} <= known


def test_a_file_that_is_no_measurement_is_refused(tmp_path):
    for data in (b"", b"{}", b'{"schema": "other"}', b"[1]", b"\xff\xfe"):
        (tmp_path / "p.json").write_bytes(data)
        with pytest.raises(measured.MeasuredError, match=r"p\.json: not a file of"):
            measured.read(str(tmp_path / "p.json"))
    with pytest.raises(measured.MeasuredError, match="cannot be read"):
        measured.read(str(tmp_path / "none.json"))


def test_a_measurement_reads_as_it_was_written(tmp_path):
    given = measurement(result("differs", 200, 34))
    (tmp_path / "p.json").write_bytes(measured.encode(given))
    assert measured.read(str(tmp_path / "p.json")) == given
    assert Path(tmp_path / "p.json").read_text().startswith('{\n "schema": "torchdet-lint/probe/1"')


# ------------------------------------------------------------------------------------------- the table and the machine


def applied(given, devices=("cpu", "cuda")):
    key = given.rows[0].key
    return [op for op in verdicts.apply(OPS, given, devices) if verdicts.key(op)[:3] == key[:3]]


def test_a_row_that_differed_says_so():
    (op,) = applied(measurement(result("differs", 200, 34)))
    assert op.measured == "differed in 34 of 200 runs on NVIDIA H100, torch 2.13"
    assert not op.softened


def test_a_row_of_which_nothing_was_seen_is_softened_where_that_is_the_device_that_counts():
    assert applied(measurement(result()))[0].softened
    assert not applied(measurement(result(runs=100)))[0].softened
    both = "torch.nn.MaxUnpool2d"
    assert not applied(measurement(result(), op=both))[0].softened
    assert applied(measurement(result(), op=both), ("cuda",))[0].softened
    on_cpu = msgspec.structs.replace(HERE, device="cpu")
    assert not applied(measurement(result(), machine=on_cpu))[0].softened


@pytest.mark.parametrize(
    ("strict", "status"),
    [
        (result(mode="deterministic"), "switchable"),
        (result("raises", 0, mode="deterministic"), "errors"),
        (result("differs", 99, 9, mode="deterministic"), "silent"),
    ],
)
def test_a_row_that_the_table_has_deterministic_varies_where_it_was_seen_to(strict, status):
    given = measurement(result("differs", 200, 34), strict, op="torch.cumsum(any shape)")
    (op,) = applied(given)
    assert status_at(op, (2, 13)) == status
    row = next(row for row in OPS if row.op == "torch.cumsum(any shape)")
    assert verdicts.contradiction(row, given.rows[0], HERE) == "deterministic in torch 2.13"


def test_a_device_that_the_table_does_not_name_gets_a_row_of_its_own():
    on_cpu = msgspec.structs.replace(HERE, device="cpu", name="Xeon")
    given = measurement(result("differs", 200, 34), result(mode="deterministic"), machine=on_cpu)
    fresh, old = applied(given)
    assert (fresh.devices, status_at(fresh, (2, 13))) == (("cpu",), "switchable")
    assert (old.devices, old.measured) == (("cuda",), "")
    assert verdicts.contradiction(old, given.rows[0], on_cpu) == "nondeterministic on cuda only"
