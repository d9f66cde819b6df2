"""The ranks of one run: replicas that are not equal are named by step and rank, and what need not be equal is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not hasattr(os, "fork") or not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("needs os.fork and gloo", allow_module_level=True)

from torchdet_lint.verifier import cli  # noqa: E402
from torchdet_lint.verifier.commands.words import USAGE  # noqa: E402
from torchdet_lint.verifier.steps.format import (  # noqa: E402
    BATCH,
    PARAMETERS,
    Definition,
    Part,
    StepsError,
    StepsWriter,
)
from torchdet_lint.verifier.steps.ranks import compare_ranks  # noqa: E402
from torchdet_lint.verifier.steps.runs import compare_runs  # noqa: E402
from torchdet_lint.verifier.steps.text import text  # noqa: E402

AT = 3
"""The fault is planted in the body of the loop number `AT`, from 0: step 4."""
PROGRAM = """
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from torchdet_lint.verifier import Checkpoints

WORLD = 2


def train(path, rank, case):
    torch.manual_seed(rank if case in ("seeds", "declared", "alone") else 0)
    inner = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))
    model = inner
    if case not in ("declared", "alone"):
        model = DistributedDataParallel(inner, broadcast_buffers=case != "local", init_sync=case != "seeds")
    optimizer = torch.optim.AdamW(model.parameters())
    given = model if case == "clean" else inner
    options = {"replicated": True} if case == "declared" else {}
    with Checkpoints(path, model=given, optimizer=optimizer, every=1, **options) as checkpoints:
        torch.manual_seed(rank if case != "same" else 0)
        for number in range(5):
            here = case if number >= 3 else ""
            x = torch.randn(4, 8)
            loss = (inner if here == "around" else model)(x).square().mean()
            loss.backward()
            if number != 3 or rank == 0 or case != "skip":
                optimizer.step()
            optimizer.zero_grad()
            if here == "options" and rank:
                optimizer.param_groups[0]["lr"] = 0.5
            checkpoints.step(loss, x)
            with torch.no_grad():
                inner(x)  # an evaluation of each rank's own


def sharded(path, rank):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (WORLD,)))
    optimizer = torch.optim.AdamW(model.parameters())
    with Checkpoints(path, model=model, optimizer=optimizer, every=1) as checkpoints:
        loss = model(torch.randn(4, 8)).sum()
        loss.backward()
        optimizer.step()
        checkpoints.step(loss)


def pipeline(path, rank):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)  # the stages begin with the same values
    stage = PipelineStage(model, rank, WORLD, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 2, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Checkpoints(path, model=model, optimizer=optimizer, every=1) as checkpoints:
        for _ in range(2):
            x = torch.randn(4, 8)
            schedule.step(target=x) if rank else schedule.step(x)
            optimizer.step()
            checkpoints.step()


def replicated(path, rank):
    model = torch.nn.Module()
    whole = distribute_tensor(torch.ones(8), init_device_mesh("cpu", (WORLD,)), [Replicate()])
    model.weight = torch.nn.Parameter(whole)
    with Checkpoints(path, model=model, every=1) as checkpoints:
        checkpoints.step()
        with torch.no_grad():
            model.weight.to_local().add_(rank)
        checkpoints.step()


def main(rank, folder, cases):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=rank, world_size=WORLD)
    for case in cases:
        train(f"{folder}/{case}.tdsteps", rank, case)
    for other in (sharded, pipeline, replicated):
        other(f"{folder}/{other.__name__}.tdsteps", rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, (sys.argv[1], sys.argv[2:]), WORLD, start_method="fork")
"""
CASES = {
    "clean": ("identical", -1, ""),
    "same": ("identical", -1, "all ranks read the same batch in each of 5 steps"),
    "local": ("identical", -1, "differ from step 2 on: 1.running_mean, 1.running_var on rank 1"),
    "seeds": ("diverged", 0, "parameters (4: 0.weight, 0.bias, 2.weight, …): rank 1 differs from rank 0"),
    "declared": ("diverged", 0, "The ranks begin with different values"),
    "around": ("diverged", AT + 1, "it does not go through DistributedDataParallel"),
    "skip": ("diverged", AT + 1, "In this step no optimizer's step was made on rank 1, and one was on the others."),
    "options": ("diverged", AT + 1, "optimizer (1: lr (group 0)): rank 1 differs from rank 0"),
    "alone": ("nothing", -1, "6 parameters, which nothing is known to keep equal"),
    "sharded": ("nothing", -1, "4 parameters that are sharded: each rank has its own piece"),
    "pipeline": ("nothing", -1, "2 parameters, which nothing is known to keep equal"),
    "replicated": ("diverged", 2, "parameters (1: weight): rank 1 differs from rank 0"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with the files of two ranks for each case, all from one pair of processes."""
    folder = tmp_path_factory.mktemp("ranks")
    program = folder / "train.py"
    program.write_text(PROGRAM)
    cases = [case for case in CASES if f"def {case}(" not in PROGRAM]
    command = [sys.executable, str(program), str(folder), *cases]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONWARNINGS": "ignore"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == 0, answer.stderr[-2000:]
    return folder


@pytest.mark.parametrize("case", CASES)
def test_what_must_be_equal_on_all_ranks_and_is_not_is_named(runs, case, capsys):
    verdict, step, words = CASES[case]
    report = compare_ranks(runs / f"{case}.tdsteps")
    assert (report.verdict, report.step, report.ranks) == (verdict, step, (0, 1))
    assert cli.main(["compare", "--ranks", str(runs / f"{case}.rank1.tdsteps")]) == report.exit_status
    shown = capsys.readouterr().out
    assert words in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 118


def written(folder, rank, values, *, world=4, ended=True, replica="0"):
    """A file of a rank whose weight has one value after each step."""
    path = folder / (f"run.rank{rank}.tdsteps" if rank else "run.tdsteps")
    header = {"digest": "xxh3", "rank": rank, "world": world, "replicas": [list(range(world))]}
    writer = StepsWriter(path, header)
    for number, value in enumerate(values):
        writer.step(number, Definition(((PARAMETERS, (Part("w", replica=replica),)),), ()), [value], [], [value])
    writer.close(in_order=ended)
    return path


def test_the_rank_that_differs_from_most_is_named_and_what_is_missing_is_said(tmp_path):
    for rank, values in ((0, [1, 2, 3, 4]), (1, [1, 2, 5, 4]), (2, [1, 2, 3])):
        path = written(tmp_path, rank, values, ended=rank != 2)
    report = compare_ranks(path)
    assert (report.step, report.since, report.differing, report.compared) == (2, 1, 1, 4)
    assert (report.unequal[0].ranks, report.unequal[0].among) == ((1,), (0, 1, 2))
    assert report.notes == (
        "1 of the run's ranks has no file here",
        "rank 2 has 1 steps fewer than another rank",
        "rank 2 did not end in order, or goes on: its steps so far were compared",
    )


@pytest.mark.parametrize("replica", ["", "sharded", "7", "local 0", "-1", "strange"])
def test_a_part_of_which_no_group_is_known_is_compared_with_none(tmp_path, replica):
    for rank in range(2):
        path = written(tmp_path, rank, [rank], world=2, replica=replica)
    assert compare_ranks(path).verdict == "nothing"


def test_one_rank_alone_is_refused_and_so_is_a_second_file(tmp_path, capsys):
    path = written(tmp_path, 0, [1])
    with pytest.raises(StepsError, match="there is one rank's file alone"):
        compare_ranks(path)
    assert cli.main(["compare", "--ranks", str(path), str(path)]) == USAGE
    assert cli.main(["compare", str(path)]) == USAGE
    assert "those of the other ranks are beside it" in capsys.readouterr().err


def run(folder, batches, weights):
    """The files of a run of so many ranks, from what each read and held in each step."""
    folder.mkdir()
    parts = ((BATCH, (Part("x"),)), (PARAMETERS, (Part("w", replica="0"),)))
    for rank, (read, held) in enumerate(zip(batches, weights, strict=True)):
        path = folder / (f"run.rank{rank}.tdsteps" if rank else "run.tdsteps")
        header = {"digest": "xxh3", "rank": rank, "world": len(weights), "replicas": [list(range(len(weights)))]}
        writer = StepsWriter(path, header)
        for number, pair in enumerate(zip(read, held, strict=True)):
            writer.step(number, Definition(parts, ()), list(pair), [], list(pair))
        writer.close(in_order=True)
    return path


def test_two_runs_are_told_by_rank_and_step_in_one_report(tmp_path, capsys):
    a = run(tmp_path / "a", [[0, 1, 2, 3]] * 3, [[5, 6, 7, 8]] * 3)
    b = run(tmp_path / "b", [[0, 1, 2, 3], [0, 1, 9, 3], [0, 1, 2, 3]], [[5, 6, 9, 9]] * 2 + [[5, 6, 7, 4]])
    report = compare_runs(a, b)
    assert (report.rank, report.step, report.differences[0].group) == (1, 2, BATCH)
    assert [(one.rank, one.step, one.group) for one in report.ranks] == [
        (0, 2, PARAMETERS),
        (1, 2, BATCH),
        (2, 3, PARAMETERS),
    ]
    lines = text(report).splitlines()
    assert lines[0].startswith("✗ the runs differ first in step 2 on rank 1 · batch first")
    shown = " ".join(text(report).split())
    others = "rank 0 differs from step 2 on (parameters first); rank 2 differs from step 3 on (parameters first)"
    assert f"the other ranks: {others}" in shown
    assert "within B: the 3 ranks do not hold the same first in step 2: parameters, rank 2 differs from rank" in shown
    assert "within A" not in shown
    assert cli.main(["compare", str(a), str(b)]) == 1
    assert capsys.readouterr().out == text(report)


def test_ranks_that_are_all_equal_are_said_to_be_and_one_without_a_twin_is_named(tmp_path):
    a = run(tmp_path / "a", [[0, 1]] * 2, [[5, 6]] * 2)
    b = run(tmp_path / "b", [[0, 1]] * 2, [[5, 6]] * 2)
    assert text(compare_runs(a, b)) == (
        "✓ the runs are equal, bit for bit, in all 2 steps, 0 to 1, on each of 2 ranks\n"
    )
    (tmp_path / "b" / "run.rank1.tdsteps").unlink()
    report = compare_runs(a, tmp_path / "b" / "run.tdsteps")
    assert report.ok
    assert report.notes == ("rank 1: only one of the runs has a file of it",)


def test_two_files_of_one_run_are_compared_with_each_other(tmp_path):
    path = run(tmp_path / "a", [[0, 1], [0, 2]], [[5, 6]] * 2)
    report = compare_runs(path, path.with_name("run.tdsteps"))
    assert (report.step, report.differences[0].group, report.ranks) == (1, BATCH, ())


def test_a_run_of_one_process_is_compared_alone_whatever_lies_beside_it(tmp_path):
    a = run(tmp_path / "a", [[0, 1]], [[5, 6]])
    b = run(tmp_path / "b", [[0, 1]], [[5, 7]])
    run(tmp_path / "c", [[0, 1]] * 2, [[5, 6]] * 2)
    (tmp_path / "c" / "run.rank1.tdsteps").rename(tmp_path / "a" / "run.rank1.tdsteps")
    report = compare_runs(a, b)
    assert (report.step, report.rank, report.ranks) == (1, -1, ())
    assert "rank" not in text(report)
