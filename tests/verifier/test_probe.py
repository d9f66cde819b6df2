"""`torchdet-lint probe` end to end: on ops planted to vary, to raise, to crash and to hang, and on the CPU's own."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from torchdet_lint import config
from torchdet_lint.catalogue import loading, measured, verdicts
from torchdet_lint.catalogue.measured import Measurement
from torchdet_lint.cli.main import main

pytest.importorskip("torch")

from torchdet_lint.verifier.commands.verifying import valid_here
from torchdet_lint.verifier.comparison import explain
from torchdet_lint.verifier.comparison.outcome import Divergence, Evidence
from torchdet_lint.verifier.probe import child, command, validity
from torchdet_lint.verifier.probe.batches import Task
from torchdet_lint.verifier.probe.plan import Cell
from torchdet_lint.verifier.probe.programs import Program
from torchdet_lint.verifier.probe.run import Limits, Sitting
from torchdet_lint.verifier.probe.tally import Tally
from torchdet_lint.verifier.trace import Site
from torchdet_lint.verifier.verification import forecast

ROOT = Path(__file__).parents[2]
PLANTED = Path(__file__).parent / "probing"
RULES = str(PLANTED / "PLN001-planted.toml")


def started(folder, *arguments):
    path = os.pathsep.join([str(ROOT), str(PLANTED)])
    return subprocess.Popen(
        [sys.executable, "-m", "torchdet_lint", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(folder, *arguments, status=0):
    process = started(folder, *arguments)
    out, err = process.communicate(timeout=500)
    assert process.returncode == status, err
    return out, err


def probed(folder, *ops, budget="1s", more=()):
    """The measurement of planted ops."""
    patterns = [word for op in ops for word in ("--ops", f"planted_ops.{op}")]
    ran(folder, "probe", "--device", "cpu", "--rules", RULES, *patterns, "--budget", budget, "-o", "p.json", *more)
    return measured.read(str(folder / "p.json"))


def found(measurement, name, mode="default"):
    return next(row for row in measurement.rows if row.op == f"planted_ops.{name}").found(mode)


# ------------------------------------------------------------------------------------------------------ planted devices


@pytest.fixture(scope="module")
def varying(tmp_path_factory):
    """What the planted ops showed that come to an end."""
    names = ("equal", "cured", "alerting", "each_process", "raises", "gradient")
    return probed(tmp_path_factory.mktemp("varying"), *names, budget="300s", more=["--runs", "90", "--processes", "3"])


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """What the op shows that seldom differs, 1,000 runs of which miss a rate of 1 % once in 23,000 times; and another
    that always does.
    """
    more = ["--runs", "1000", "--processes", "3", "--modes", "default"]
    return probed(tmp_path_factory.mktemp("long"), "rarely", "always", budget="300s", more=more)


def test_an_op_that_never_differs_was_not_seen_to(varying):
    for mode in ("default", "deterministic", "warn-only"):
        result = found(varying, "equal", mode)
        assert (result.outcome, result.differing, result.processes_differing) == ("equal", 0, 0)
    result = found(varying, "equal")
    assert result.processes > 1
    assert result.runs >= 90


def test_an_op_that_differs_at_one_percent_is_found(long):
    result = found(long, "rarely")
    assert result.outcome == "differs"
    assert result.differing < result.runs * 0.05
    assert result.low < 0.03
    assert (result.ulp, result.elements, result.of) == (1, 1, 50)


def test_an_op_that_always_differs_is_settled_in_fewer_runs(long):
    result = found(long, "always")
    assert result.outcome == "differs"
    assert result.high > 0.99
    assert result.runs < 1000


def test_deterministic_mode_cures_raises_or_does_nothing(varying):
    assert (found(varying, "cured").outcome, found(varying, "cured", "deterministic").outcome) == ("differs", "equal")
    strict = found(varying, "alerting", "deterministic")
    assert (strict.outcome, strict.runs) == ("raises", 0)
    assert strict.note == "RuntimeError: planted_kernel does not have a deterministic implementation"
    assert found(varying, "alerting", "warn-only").outcome == "differs"


def test_a_choice_of_each_process_is_seen_between_processes(varying):
    result = found(varying, "each_process")
    assert result.outcome == "differs"
    assert result.processes_differing == result.processes - 1 > 0


def test_a_gradient_is_compared_and_its_forward_pass_is_the_control(varying):
    row = next(row for row in varying.rows if row.op == "planted_ops.gradient")
    assert row.found().outcome == "differs"
    (control,) = (result for result in row.results if not result.met)
    assert (control.control, control.outcome, control.direction) == ("another op", "equal", "forward")


def test_what_an_op_raises_is_its_result(varying):
    assert found(varying, "raises").outcome == "raises"
    assert found(varying, "raises").note == "ValueError: planted: this kernel refuses"


ENDING = {"segfault": "crashes", "leaves": "crashes", "hangs": "hangs", "grows": "out of memory", "equal": "equal"}


def test_an_op_that_ends_its_process_is_a_row_and_not_the_end(tmp_path):
    measurement = probed(tmp_path, "segfault", "equal", more=["--modes", "default", "--processes", "1"])
    assert {name: found(measurement, name).outcome for name in ("segfault", "equal")} == {
        "segfault": "crashes",
        "equal": "equal",
    }
    assert "SIGSEGV" in found(measurement, "segfault").note


def test_however_a_process_ends_its_op_is_a_row(tmp_path, monkeypatch):
    """With measuring processes that do without torch, which start ten times as fast."""
    monkeypatch.setattr(child, "WORKER", "fake_worker")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(PLANTED)]))
    monkeypatch.chdir(tmp_path)
    words = [word for name in ENDING for word in ("--ops", f"planted_ops.{name}")]
    limits = ["--modes", "default", "--processes", "1", "--budget", "1s", "--timeout", "2s", "--memory", "300M"]
    assert command.main(["--device", "cpu", "--rules", RULES, *words, *limits, "-o", "p.json"]) == 0
    measurement = measured.read("p.json")
    assert {name: found(measurement, name).outcome for name in ENDING} == ENDING
    assert "SIGSEGV" in found(measurement, "segfault").note
    assert "exit status 7" in found(measurement, "leaves").note
    assert "gave no answer in" in found(measurement, "hangs").note
    assert "more than the limit of 0.3 GiB" in found(measurement, "grows").note


@pytest.mark.slow
def test_planted_ops_are_judged_right_a_hundred_times_over(monkeypatch):
    """Each of 1,500 runs: by chance an op that differs at 1 % would be missed once in three million times."""
    monkeypatch.syspath_prepend(str(PLANTED))
    from torchdet_lint.verifier.probe.measuring import measure

    right = {"equal": "equal", "rarely": "differs", "always": "differs", "raises": "raises"}
    outcomes = {name: [] for name in right}
    for number in range(100):
        for name in right:
            cell = cell_of(name, "")
            tally = Tally()
            runs = 1500 if name == "rarely" else 50
            tally.add(
                measure.measure(
                    Task(program=cell.program, device="cpu", mode="default", runs=runs, seconds=60.0, salt=number)
                )
            )
            outcomes[name].append(tally.result(cell).outcome)
    assert outcomes == {name: [outcome] * 100 for name, outcome in right.items()}


@pytest.mark.slow
def test_processes_that_end_or_hang_are_judged_right_a_hundred_times_over(monkeypatch):
    monkeypatch.setattr(child, "WORKER", "fake_worker")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(PLANTED)]))
    right = {"equal": "equal", "segfault": "crashes", "leaves": "crashes", "hangs": "hangs"}
    cells = {name: [cell_of(name, f"[{number}] and ") for number in range(100)] for name in right}
    every = {cell.key: cell for members in cells.values() for cell in members}
    assert len(every) == 400
    tallies = {}
    Sitting("cpu", every, tallies, Limits(runs=20, budget=1.0, timeout=0.7, processes=1)).measure()
    outcomes = {name: [tallies[cell.key].result(cell).outcome for cell in members] for name, members in cells.items()}
    assert outcomes == {name: [outcome] * 100 for name, outcome in right.items()}


def cell_of(name, prefix):
    program = Program(
        inputs=(("x", "normal(50)"),),
        call=f"{prefix}planted_ops.{name}(x)",
        direction="forward",
        needs=("planted_ops",),
    )
    return Cell(program, "default", "", 1)


# ------------------------------------------------------------------------------------------------------- interruptions


def test_an_interrupted_measurement_is_kept_and_goes_on(tmp_path):
    ops = ("--ops", "planted_ops.equal", "--ops", "planted_ops.rarely")
    arguments = ("probe", "--device", "cpu", "--rules", RULES, *ops, "--modes", "default", "-o", "p.json")
    process = started(tmp_path, *arguments, "--runs", "600", "--budget", "500s", "--processes", "4")
    journal = tmp_path / "p.json.part"
    end = time.monotonic() + 120
    while time.monotonic() < end and not journal.exists():
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.splitlines()[-1].endswith("interrupted; the same command goes on from here")
    assert "measured in" in out
    before = measured.read(str(tmp_path / "p.json"))
    assert not before.complete
    assert journal.exists()
    runs = found(before, "equal").runs
    assert runs > 1
    ran(tmp_path, *arguments, "--runs", "600", "--budget", "400s", "--processes", "2")
    after = measured.read(str(tmp_path / "p.json"))
    assert found(after, "equal").runs >= 600 > runs
    assert found(after, "equal").processes > found(before, "equal").processes
    assert after.complete
    assert not journal.exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux ends a process with its parent")
def test_no_process_outlives_the_command(tmp_path):
    process = started(tmp_path, "probe", "--device", "cpu", "--rules", RULES, "--ops", "planted_ops.hangs")
    end = time.monotonic() + 120
    while not (hanging := list(tmp_path.glob("hanging-*"))):
        assert time.monotonic() < end, "nothing hangs"
        time.sleep(0.2)
    worker = hanging[0].name.removeprefix("hanging-")
    assert Path(f"/proc/{worker}").exists()
    process.kill()
    process.communicate()
    while Path(f"/proc/{worker}").exists() and ") Z " not in Path(f"/proc/{worker}/stat").read_text():
        assert time.monotonic() < end, "the measuring process is still there"
        time.sleep(0.2)


# ----------------------------------------------------------------------------------------------------------- the output


FEW = ("--runs", "5", "--modes", "default", "--processes", "1")


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The file of a short measurement of two ops."""
    folder = tmp_path_factory.mktemp("few")
    probed(folder, "equal", "raises", more=FEW)
    return folder / "p.json"


def test_what_a_file_holds_of_other_ops_stays(tmp_path, few):
    shutil.copy(few, tmp_path)
    more = probed(tmp_path, "always", more=FEW)
    assert {row.op for row in more.rows} == {"planted_ops.equal", "planted_ops.raises", "planted_ops.always"}
    alone = probed(tmp_path, "always", more=[*FEW, "--fresh"])
    assert {row.op for row in alone.rows} == {"planted_ops.always"}


def test_a_file_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "p.json").write_text('{"weights": [1, 2, 3]}')
    _, err = ran(tmp_path, "probe", "--ops", "torch.take", "-o", "p.json", status=2)
    assert err.startswith("torchdet-lint: error: probe: p.json: not a file of `torchdet-lint probe`")
    assert err.count("\n") == 1
    assert (tmp_path / "p.json").read_text() == '{"weights": [1, 2, 3]}'


def test_a_file_of_another_machine_is_left_alone(tmp_path, few):
    here = measured.read(str(few))
    machine = msgspec.structs.replace(here.machine, name="NVIDIA H100")
    (tmp_path / "p.json").write_bytes(measured.encode(msgspec.structs.replace(here, machine=machine)))
    _, err = ran(tmp_path, "probe", "--device", "cpu", "--ops", "torch.take", "-o", "p.json", status=2)
    assert "measured on NVIDIA H100, torch" in err
    assert measured.read(str(tmp_path / "p.json")).machine.name == "NVIDIA H100"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--budget", "soon"], "'soon' is no time"),
        (["--memory", "much"], "'much' is no size"),
        (["--dtype", "float7"], "float7: not among float32"),
        (["--modes", "fast"], "fast: not among default"),
        (["--runs", "0"], "'0' is no number above 0"),
        (["--ops", "no_such_op"], "no op of the table fits no_such_op"),
        (["none.json"], "none.json: cannot be read"),
        (["--device", "xpu", "--ops", "torch.take"], "torch sees no xpu device here"),
        (["-o", "no/such/folder/p.json", "--ops", "torch.take"], "no such folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path, arguments, complaint):
    _, err = ran(tmp_path, "probe", *arguments, status=2)
    assert complaint in err
    assert err.count("\n") == 1
    assert err.startswith("torchdet-lint: error: probe: ")


def test_the_programs_can_be_read(tmp_path):
    out, _ = ran(tmp_path, "probe", "--programs", "--ops", "torch.kthvalue")
    assert "return x.kthvalue(50, dim=1)" in out
    assert out.count("# torch.kthvalue, forward, float32: no equal elements") == 2


def test_a_measurement_is_shown_in_every_shape_and_compared(few):
    folder = few.parent
    assert (
        "in 5 runs or more, which find a rate of 60 % with 99 %:\n    planted_ops.equal"
        in ran(folder, "probe", "p.json")[0]
    )
    assert "| planted_ops.equal |" in ran(folder, "probe", "p.json", "--markdown")[0]
    assert 'op = "planted_ops.equal"' in ran(folder, "probe", "p.json", "--contribute")[0]
    assert "0 of 2 results that both have changed" in ran(folder, "probe", "--compare", "p.json", "p.json")[0]


# ---------------------------------------------------------------------------------------------------- the CPU's own ops


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    """A first pass over the whole table, with what a compiler takes its time for left out."""
    folder = tmp_path_factory.mktemp("cpu")
    ops = [
        op for op in loading.load(probes=True).facts.ops if op.probe is not None and "compiler" not in op.probe.needs
    ]
    patterns = [word for op in ops for word in ("--ops", op.op.replace("[", "?").replace("]", "?") + "*")]
    ran(folder, "probe", "--device", "cpu", *patterns, "--budget", "1s", "--processes", "1", "-o", "p.json")
    return measured.read(str(folder / "p.json"))


def test_every_row_runs_on_the_cpu_or_says_why_not(cpu):
    known = {verdicts.key(op): op for op in loading.load(probes=True).facts.ops}
    seen = 0
    for row in cpu.rows:
        probe = known[row.key].probe
        for result in row.results:
            if probe.reason:
                assert (result.outcome, result.note) == ("unavailable", probe.reason)
            elif result.outcome == "unavailable":
                assert result.note.endswith("is not installed"), row
                assert probe.needs
            elif result.mode == "deterministic":
                assert result.outcome in ("equal", "differs") or "deterministic implementation" in result.note, row
            else:
                assert result.outcome in ("equal", "differs"), (row.op, result)
                assert result.runs > 1
                seen += 1
    assert seen > 300
    assert len(cpu.rows) >= len(known) - 4


@pytest.mark.slow
def test_rows_that_are_compiled_run_on_the_cpu_too(tmp_path):
    needs = {op.op for op in loading.load(probes=True).facts.ops if op.probe and "compiler" in op.probe.needs}
    assert len(needs) == 4
    patterns = [word for op in sorted(needs) for word in ("--ops", op.replace("[", "?").replace("]", "?") + "*")]
    more = ["--budget", "1s", "--runs", "2", "--modes", "default", "-o", "p.json"]
    ran(tmp_path, "probe", "--device", "cpu", *patterns, *more)
    found = {row.op: row.found() for row in measured.read(str(tmp_path / "p.json")).rows}
    assert needs <= set(found)
    for op in needs:
        assert found[op].outcome in ("equal", "differs"), (op, found[op])


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="the order of one thread is always the same")
def test_what_varies_on_a_cpu_is_found_and_only_that(tmp_path):
    """Sums and last writes of several threads; one thread, few indices and other ops were never seen to vary."""
    names = ("torch.Tensor.index_put_*", "torch.Tensor.put_(accumulate=True)", "torch.take", "torch.gather*")
    patterns = [word for name in names for word in ("--ops", name)]
    ran(
        tmp_path,
        "probe",
        "--device",
        "cpu",
        *patterns,
        "--modes",
        "default,deterministic",
        "--runs",
        "200",
        "--budget",
        "60s",
        "--processes",
        "2",
        "--threads",
        "4",
        "-o",
        "p.json",
    )
    rows = {}
    for row in measured.read(str(tmp_path / "p.json")).rows:
        rows.setdefault((row.op, row.direction), []).append(row)
    for op in (
        ("torch.Tensor.index_put_(accumulate=True)", "forward"),
        ("torch.Tensor.put_(accumulate=True)", "forward"),
        ("torch.take", "backward"),
    ):
        for row in rows[op]:
            assert row.found().outcome == "differs", op
            assert row.found("deterministic").outcome == "equal"
            assert all(result.outcome == "equal" for result in row.results if not result.met)
    for row in rows["torch.gather", "backward"]:
        assert all(result.outcome == "equal" for result in row.results)


# ----------------------------------------------------------------------------------------------------------- the linter


SOURCE = """
import torch

def sums(x: torch.Tensor, y: torch.Tensor):
    return torch.cumsum(x[0][0], dim=0), torch.histc(y, 10)
"""
MACHINE = measured.Machine(
    device="cuda", name="NVIDIA H100", driver="550.54.14", torch="2.13.0+cu128", cuda="12.8", cudnn="91002", threads=8,
    platform="Linux x86_64", python="3.11.7",
)  # fmt: skip


def rows_of(op, *results):
    for row in loading.load().facts.ops:
        if row.op == op and "cuda" in row.devices:
            yield measured.Row(
                op=row.op,
                direction=row.direction,
                spelling=row.spellings[0].name,
                condition=row.condition,
                devices=row.devices,
                results=results,
            )


def measurement(*rows, machine=MACHINE):
    return measured.encode(
        Measurement(machine=machine, date="2026-01-01", runs=459, seconds=1.0, complete=True, rows=rows)
    )


EQUAL = measured.Result(outcome="equal", runs=459, finds=0.00998)
DIFFERS = measured.Result(outcome="differs", runs=200, differing=34)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.torchdet-lint]\n")
    (tmp_path / "sums.py").write_text(SOURCE)
    return tmp_path


def linted(folder, *options, status=1):
    out, err = ran(folder, "check", "sums.py", "--output-format", "json", "--no-cache", *options, status=status)
    return {finding["code"]: finding for finding in json.loads(out)}, err


def test_findings_speak_of_what_was_measured(project):
    plain, _ = linted(project)
    assert plain["TDL401"]["severity"] == "warning"
    assert "measured" not in plain["TDL401"]["message"]
    (project / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    found, _ = linted(project, "--measured", "p.json")
    message = found["TDL401"]["message"]
    assert message.endswith("; measured: differed in 34 of 200 runs on NVIDIA H100, torch 2.13)")
    assert found["TDL401"]["severity"] == "error"
    assert found["TDL401"]["help"] == (
        plain["TDL401"]["help"] + " The measurement is valid for NVIDIA H100, driver 550.54.14, torch 2.13.0+cu128, "
        "CUDA 12.8, cuDNN 91002, 8 threads."
    )


def test_an_op_of_which_no_difference_was_seen_is_a_warning(project):
    (project / "p.json").write_bytes(measurement(*rows_of("torch.histc", EQUAL)))
    found, _ = linted(project, "--measured", "p.json")
    assert found["TDL401"]["severity"] == "warning"
    assert found["TDL401"]["message"].endswith("; measured: no difference seen in 459 runs on NVIDIA H100, torch 2.13)")


def test_an_op_that_differs_although_the_table_says_otherwise_is_reported(project):
    (project / "sums.py").write_text(SOURCE.replace("torch.cumsum(x[0][0], dim=0)", "x.float().cumsum(dim=1)"))
    plain, _ = linted(project, "--torch-version", "2.13")
    assert set(plain) == {"TDL401"}
    cured = measured.Result(outcome="equal", runs=459, finds=0.00998, mode="deterministic")
    (project / "p.json").write_bytes(measurement(*rows_of("torch.cumsum(any shape)", DIFFERS, cured)))
    found, _ = linted(project, "--measured", "p.json")
    assert found["TDL402"]["message"].startswith("`torch.Tensor.cumsum` is nondeterministic on CUDA")
    assert "differed in 34 of 200 runs" in found["TDL402"]["message"]


@pytest.mark.parametrize(
    ("code", "op", "call"),
    [
        ("TDL404", "torch.nn.LSTM", "torch.nn.LSTM(4, 4)"),
        ("TDL405", "torch.nn.functional.scaled_dot_product_attention",
         "torch.nn.functional.scaled_dot_product_attention(q, k, v)"),
        ("TDL406", "torchvision.ops.roi_align", "torchvision.ops.roi_align(q, k, 5)"),
    ],
)  # fmt: skip
def test_the_rules_of_other_libraries_speak_of_it_too(project, code, op, call):
    (project / "sums.py").write_text(
        f"import torch\nimport torchvision\n\ndef f(q: torch.nn.Parameter, k, v):\n    return {call}\n"
    )
    (project / "p.json").write_bytes(measurement(*rows_of(op, DIFFERS)))
    found, _ = linted(project, "--measured", "p.json")
    assert "measured: differed in 34 of 200 runs" in found[code]["message"]
    (project / "p.json").write_bytes(measurement(*rows_of(op, EQUAL)))
    found, _ = linted(project, "--measured", "p.json")
    assert found[code]["severity"] == "warning"


def test_the_key_of_the_configuration_does_the_same_and_the_cache_minds(project):
    (project / "pyproject.toml").write_text('[tool.torchdet-lint]\nmeasured = "lab/p.json"\n')
    (project / "lab").mkdir()
    for results in ((DIFFERS,), (EQUAL,)):
        (project / "lab/p.json").write_bytes(measurement(*rows_of("torch.histc", *results)))
        out, _ = ran(project, "check", "sums.py", "--output-format", "concise", status=1)
        assert ("differed in 34" in out, "no difference seen" in out) == (results[0] is DIFFERS, results[0] is EQUAL)


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (["--torch-version", "2.12"], "p.json: measured with torch 2.13, and the code is judged for 2.12: not used"),
        (["--torch-version", "2.13.1"],
         "p.json: measured with torch 2.13.0+cu128, and the code is judged for 2.13.1: not used"),
        (["--torch-version", "2.13.0+cu121"],
         "p.json: measured with torch 2.13.0+cu128, and the code is judged for 2.13.0+cu121: not used"),
        (["--devices", "cpu"], "p.json: measured on cuda, and the code runs on cpu: not used"),
    ],
)  # fmt: skip
def test_a_measurement_of_something_else_is_not_used_and_one_line_says_so(project, options, note):
    (project / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    out, err = ran(project, "check", "sums.py", "--no-cache", "--exit-zero", "--measured", "p.json", *options)
    assert err == f"torchdet-lint: warning: {note}\n"
    assert "measured:" not in out


def test_the_release_that_was_measured_is_the_target_where_none_is_named(project):
    (project / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    (project / "requirements.txt").write_text("torch<2.4\n")
    _, err = linted(project, "--measured", "p.json")
    assert err == (
        "torchdet-lint: warning: p.json: measured with torch 2.13, and the code is judged for 2.3: not used\n"
    )
    (project / "requirements.txt").write_text("torch>=2.0\n")
    _, err = linted(project, "--measured", "p.json", "--verbose")
    assert "target: torch 2.13 on" in err


def test_a_broken_measurement_is_an_error(project):
    (project / "p.json").write_text("{}")
    _, err = ran(project, "check", "sums.py", "--measured", "p.json", status=2)
    assert "not a file of `torchdet-lint probe`" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("machine", "what"),
    [
        ('name = "NVIDIA A100"', "NVIDIA H100, not NVIDIA A100"),
        ('driver = "560.35.03"', "driver 550.54.14, not 560.35.03"),
        ('cuda = "13.0"', "CUDA 12.8, not 13.0"),
        ('cudnn = "91100"', "cuDNN 91002, not 91100"),
        ("threads = 4", "8 threads, not 4"),
        ('driver = "560.35.03", threads = 4', "driver 550.54.14, not 560.35.03; 8 threads, not 4"),
        ('name = "NVIDIA H100", driver = "550.54.14", cuda = "12.8", cudnn = "91002", threads = 8', ""),
    ],
)
def test_what_the_configuration_says_of_the_machine_must_be_as_it_was_measured(project, machine, what):
    (project / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    text = f'[tool.torchdet-lint]\nmeasured = "p.json"\nmachine = {{ {machine} }}\n'
    (project / "pyproject.toml").write_text(text)
    settings = config.merge(config.find([str(project)]), config.Options())
    assert settings.notes == ((f"p.json: measured with {what} (`machine`): not used",) if what else ())
    assert bool(settings.measured) is not bool(what)
    assert not config.merge(config.find([str(project)]), config.Options(measured="")).measured


def test_a_field_of_the_machine_that_there_is_not_is_an_error(project):
    (project / "pyproject.toml").write_text("[tool.torchdet-lint]\nmachine = { memory = 80 }\n")
    _, err = ran(project, "check", "sums.py", status=2)
    assert "machine" in err
    assert "memory" in err
    assert err.count("\n") == 1


def test_a_forecast_speaks_of_it_too(tmp_path):
    (tmp_path / "program.py").write_text("import torch\ntorch.histc(torch.rand(50), 10)\n")
    (tmp_path / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    out, _ = ran(tmp_path, "forecast", "--measured", "p.json", "program.py", status=1)
    assert "measured: differed in 34 of 200 runs on NVIDIA H100, torch 2.13" in out
    assert "with torch 2.13;" in out
    _, err = ran(tmp_path, "forecast", "--measured", "p.json", "--device", "mps", "program.py", status=2)
    assert err == "torchdet-lint: error: forecast: p.json: measured on cuda, not on mps\n"


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("name", "NVIDIA A100", "NVIDIA H100, not NVIDIA A100"),
        ("driver", "560.35.03", "driver 550.54.14, not 560.35.03"),
        ("torch", "2.13.1+cu128", "torch 2.13.0+cu128, not 2.13.1+cu128"),
        ("cudnn", "", "cuDNN 91002, not none"),
        ("threads", 1, "8 threads, not 1"),
        ("platform", "Windows AMD64", ""),
    ],
)
def test_a_measurement_holds_on_the_machine_that_was_measured(tmp_path, monkeypatch, capsys, field, value, what):
    """Where torch runs, all that a measurement is valid for is compared with the machine at hand."""
    (tmp_path / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    at_hand = msgspec.structs.replace(MACHINE, **{field: value})
    monkeypatch.setattr(validity, "this_machine", lambda _device: at_hand)
    path = tmp_path / "p.json"
    valid, why = validity.here(path)
    assert (valid is None, why) == (bool(what), f"p.json: measured with {what}: not used" if what else "")
    options = argparse.Namespace(measured=str(path), torch_version="", device="cuda")
    assert (forecast._measurement(options, "") is None) is bool(what)
    assert capsys.readouterr().err == (f"torchdet-lint: warning: {why}\n" if what else "")


def test_a_forecast_on_a_machine_without_the_device_is_for_the_one_that_was_measured(tmp_path, monkeypatch):
    (tmp_path / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    monkeypatch.setattr(validity, "this_machine", lambda _device: None)
    assert validity.here(tmp_path / "p.json") == (
        None,
        "p.json: measured on cuda, and torch sees no such device here: not used",
    )
    asked = argparse.Namespace(measured=None, torch_version="", device="cuda")
    assert forecast._measurement(asked, str(tmp_path / "p.json")).machine == MACHINE
    assert asked.torch_version == "2.13"


VARIES = """
import torch

torch.manual_seed(0)
x = torch.randn(40, requires_grad=True)
y = x.take(torch.randint(0, 40, (90,)))
y.sum().backward()
"""


@pytest.mark.usefixtures("forks")
def test_verify_judges_by_a_measurement_of_this_machine(tmp_path, monkeypatch, capsys):
    """An equal pair names the ops that were measured to differ; the project's configuration names the file."""
    (tmp_path / "program.py").write_text(VARIES)
    (tmp_path / "pyproject.toml").write_text('[tool.torchdet-lint]\nmeasured = "p.json"\n')
    row = next(op for op in loading.load().facts.ops if op.op == "torch.take" and "cpu" in op.devices)
    about = measured.Row(
        op=row.op, direction=row.direction, spelling=row.spellings[0].name, condition=row.condition,
        devices=row.devices, results=(DIFFERS,),
    )  # fmt: skip
    here = validity.this_machine("cpu")
    (tmp_path / "p.json").write_bytes(measurement(about, machine=here))
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "program.py"]) == 0
    out, err = capsys.readouterr()
    assert "equal here, and nondeterministic when measured: program.py:6 the gradient of torch.take" in out
    assert "differed in 34 of 200 runs" in " ".join(out.split())
    assert f"judged by a measurement, which is valid for {here.name}" in out
    assert not err


def test_verify_says_in_one_line_that_a_measurement_is_of_another_machine(tmp_path, monkeypatch, capsys):
    (tmp_path / "p.json").write_bytes(measurement(*rows_of("torch.histc", DIFFERS)))
    at_hand = msgspec.structs.replace(MACHINE, threads=4)
    monkeypatch.setattr(validity, "this_machine", lambda _device: at_hand)
    assert valid_here(str(tmp_path / "p.json")) is None
    assert capsys.readouterr().err == "torchdet-lint: warning: p.json: measured with 8 threads, not 4: not used\n"
    assert valid_here("") is None


def test_a_cause_speaks_of_what_was_measured_and_an_op_that_no_table_lists_is_named_by_it():
    op = next(op for op in loading.load().facts.ops if op.op == "torch.gather" and "cpu" not in op.devices)
    row = measured.Row(
        op=op.op, direction=op.direction, spelling=op.spellings[0].name, devices=op.devices, results=(DIFFERS,)
    )
    machine = msgspec.structs.replace(MACHINE, device="cpu", name="Xeon")
    given = msgspec.json.decode(measurement(row, machine=machine), type=Measurement)
    item = Divergence(
        site=Site("aten.scatter_add.default", "backward", "a.py", 3, "f", "aten.gather.default", "a.py", 2),
        index=0, kind="cause", source="op", evidence=Evidence(inputs_equal=True, numbers_equal=True),
    )  # fmt: skip
    plain = explain.explain(item, ("cpu",))
    told = explain.explain(item, ("cpu",), validity.Valid(Path("p.json"), given).table(("cpu",)))
    assert "measured" not in plain.sentence
    assert told.rule == "TDL403"
    assert told.sentence == (
        "the gradient of aten.gather.default is not deterministic "
        "(measured: differed in 34 of 200 runs on Xeon, torch 2.13)"
    )


def test_verify_shows_what_the_linter_says_of_it(tmp_path):
    """The linter's finding on the line that differs comes with what the project's measurement says."""
    (tmp_path / "pyproject.toml").write_text('[tool.torchdet-lint]\nmeasured = "p.json"\ndevices = ["cpu"]\n')
    on_cpu = msgspec.structs.replace(MACHINE, device="cpu", name="Xeon", torch="2.13.0+cpu")
    row = next(
        op for op in loading.load().facts.ops if op.op.startswith("torch.Tensor.index_put_(acc") and "cpu" in op.devices
    )
    about = measured.Row(
        op=row.op, direction="forward", spelling=row.spellings[0].name, condition=row.condition,
        devices=row.devices, results=(DIFFERS,),
    )  # fmt: skip
    (tmp_path / "p.json").write_bytes(measurement(about, machine=on_cpu))
    (tmp_path / "program.py").write_text(
        "import torch\nindex = torch.randint(0, 9, (50,))\n"
        "torch.zeros(9).index_put_((index,), torch.randn(50), accumulate=True)\n"
    )
    out, _ = ran(tmp_path, "check", "program.py", "--no-cache", "--select", "TDL402", status=1)
    assert "measured: differed in 34 of 200 runs on Xeon, torch 2.13" in out
