"""Processes that a program starts: recorded to streams of their own, and compared with their twins."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.launch import standard  # noqa: E402
from torchdet_lint.verifier.launch.launch import Program, run_child  # noqa: E402
from torchdet_lint.verifier.recording import onset  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.trace import Site, Trace, Writer  # noqa: E402
from torchdet_lint.verifier.verification.verify import compare_traces, verify_program  # noqa: E402

if TYPE_CHECKING:
    from torchdet_lint.verifier.verification.outcome import Cause

if not hasattr(os, "fork"):
    pytest.skip("needs os.fork", allow_module_level=True)

TREE = """
import multiprocessing, os, subprocess, sys
import torch

def work(number, queue):
    if number < 2:
        torch.manual_seed(number)
    queue.put((torch.rand(3) * (number + 1)).tolist())

if __name__ == "__main__":
    torch.manual_seed(0)
    for number, method in enumerate(("fork", "spawn", "forkserver")):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(number, queue))
        process.start()
        drawn = queue.get()
        if number < 2:
            print(torch.tensor(drawn).sum().item())
        process.join()
    subprocess.run([sys.executable, "-c", "import torch; torch.ones(3).mul(7)"], check=True)
    if not os.fork():
        torch.ones(3).add(9)
        sys.exit()
    os.wait()
    print(sorted(os.environ.items()))
"""


def write(folder: Path, source: str, name: str = "program.py") -> str:
    (folder / name).write_text(source)
    return str(folder / name)


def test_every_way_to_start_a_process_is_recorded_and_all_but_one_are_equal(tmp_path):
    """A draw in a process of its own, which nothing seeds there, is the only cause and has its line."""
    kept = tmp_path / "kept"
    outcome = verify_program(Program("script", write(tmp_path, TREE)), keep=kept, timeout=240)
    assert (outcome.verdict, outcome.failure) == ("diverged", "")
    (cause,) = outcome.causes
    assert (cause.rule, cause.op, cause.line, cause.differing) == ("TDL108", "aten.rand", 8, 1)
    assert cause.stream.startswith("process forkserver")
    opened = Trace(kept / "A.tdtrace")
    ops = {stream.name: [site.op for site in opened.sites(stream)] for stream in opened.streams[1:]}
    assert ops.pop("-c import torch; torch.ones(3).mul(7)") == ["aten.ones", "aten.mul.Tensor"]
    spawned = [ops.pop(name) for name in sorted(ops) if name.startswith(("spawn", "forkserver"))]
    assert [row[-1] for row in spawned] == ["aten.mul.Tensor"] * 2
    assert sorted(row[-1] for row in ops.values()) == ["aten.add.Tensor", "aten.mul.Tensor"]
    assert all(stream.complete and stream.role == "process" for stream in opened.streams[1:])
    assert not list(kept.glob("*.part"))
    # The program, which looks at its environment, sees the same in both runs.
    assert (kept / "A.out").read_bytes() == (kept / "B.out").read_bytes()


GROUP = """
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed import _functional_collectives as functional
from torch.nn.parallel import DistributedDataParallel

def work(rank, path):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(40, 40))
    if rank or "unlike" not in sys.argv:
        torch.manual_seed(rank)
    else:
        torch.seed()
    for _ in range(3):
        model(torch.randn(2, 40)).sum().backward()
    total = torch.ones(2) * rank
    dist.all_reduce(total)
    parts = [torch.empty(2) for _ in range(2)]
    dist.all_gather(parts, total)
    came = functional.all_reduce(total, "sum", dist.group.WORLD).sum().item()
    if rank == 0:
        print(parts, came)
    # Of unequal size: torch adds memory to the shorter ones, and cuts it off after receipt.
    mine = {"rank": rank, "names": ["x"] * (1 + 40 * rank), "word": "hot" if rank and "unlike" in sys.argv else "dot"}
    every, gathered, scattered, sent = [None] * 2, [None] * 2, [None], [mine, "a"] if rank == 0 else [None] * 2
    dist.all_gather_object(every, mine)
    dist.gather_object(mine, gathered if rank == 0 else None)
    dist.scatter_object_list(scattered, ["q" * 10, "q" * 500] if rank == 0 else None)
    dist.broadcast_object_list(sent)
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, args=(folder + "/store",), nprocs=2, start_method="fork")
"""


def unlike(folder: Path, program: Program, word: str) -> list[Cause]:
    """The causes where one more run, with `word` on its command line, is compared with run A in `folder`."""
    path = folder / "unlike.tdtrace"
    program = dataclasses.replace(program, arguments=(word,))
    with (folder / "unlike.out").open("wb") as out:
        assert run_child(program, trace=path, stdout=out, timeout=240).ok
    return list(compare_traces(path, folder / "A.tdtrace").causes)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed package")
@pytest.mark.usefixtures("forks")
def test_what_processes_send_each_other_is_digested_when_it_has_come(tmp_path):
    program = Program("script", write(tmp_path, GROUP))
    outcome = verify_program(program, mode="stress", timeout=240, lint=False, keep=tmp_path / "kept")
    assert (outcome.verdict, outcome.failure) == ("identical", "")
    told = [(cause.rule, cause.line, cause.stream) for cause in unlike(tmp_path / "kept", program, "unlike")]
    assert told == [("TDL105", 18, "process rank 0"), ("", 29, "process rank 0")]


LAST = """
import time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

def work(rank, path):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    if rank:
        time.sleep(0.5)
    dist.all_reduce(torch.ones(2), async_op=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, args=(folder + "/store",), nprocs=2, start_method="fork")
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed package")
@pytest.mark.usefixtures("forks")
def test_a_group_whose_reducer_goes_last_ends_while_something_is_on_its_way(tmp_path):
    """By itself torch waits here with the GIL for a thread that wants it, for ever."""
    with (tmp_path / "out").open("wb") as out:
        program = Program("script", write(tmp_path, LAST))
        ended = run_child(program, trace=tmp_path / "a.tdtrace", stdout=out, timeout=60)
    assert (ended.status, ended.standing) == ("finished", "")


def test_a_program_that_only_starts_another_one_is_verified_through_it(tmp_path):
    write(tmp_path, "import torch\nprint(torch.nn.Linear(2, 2)(torch.ones(2)))\n", "train.py")
    source = "import subprocess, sys\nsubprocess.run([sys.executable, 'train.py', '--epochs', '3'], cwd=sys.path[0])\n"
    outcome = verify_program(Program("script", write(tmp_path, source)), timeout=240, lint=False)
    (cause,) = outcome.causes
    assert (cause.rule, cause.file, cause.line) == ("TDL101", "train.py", 2)
    assert cause.stream == "process train.py --epochs 3"


@pytest.mark.usefixtures("forks")
def test_the_processes_of_a_pool_are_workers(tmp_path):
    source = """
import multiprocessing, concurrent.futures
import torch

def work(number):
    return float(torch.ones(3).mul(number).sum())

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, range(8), chunksize=1))
        pool.close(); pool.join()
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        print(list(pool.map(work, range(8))))
    list(torch.utils.data.DataLoader(torch.arange(6), num_workers=2, collate_fn=torch.stack))
"""
    path = tmp_path / "a.tdtrace"
    with (tmp_path / "out").open("wb") as out:
        assert run_child(Program("script", write(tmp_path, source)), trace=path, stdout=out, timeout=240).ok
    streams = Trace(path).streams[1:]
    assert streams
    assert {stream.role for stream in streams} == {"worker"}


def op(line, name="mul"):
    return Site(f"aten.{name}", "forward", "train.py", line, "main")


def make(path, *processes, role="process"):
    """A trace with an idle main stream and processes of (name, [(site, inputs, digest)…], ended well)."""
    writer = Writer(path)
    writer.json(b"H", 0, {"hash": "xxh3-64", "environment": {}})
    writer.json(b"F", writer.stream("main", "main"), {"records": 0})
    for name, rows, complete in processes:
        stream = writer.stream("process", name, role=role)
        sites = list(dict.fromkeys(row[0] for row in rows))
        writer.json(b"D", stream, sites)
        for site, inputs, digest in rows:
            writer.block(b"R", stream, trace.words([sites.index(site) | 1 << 32, 0, inputs, digest]))
        if complete:
            writer.json(b"F", stream, {"records": len(rows)})
    writer.close()
    return path


ROWS = [(op(line), 100 + line, 1000 + line) for line in range(1, 12)]
OTHER = [*ROWS[:5], (op(6), 106, 9), (op(7), 9, 9), *ROWS[7:]]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([("spawn 1", ROWS, True)], [("spawn 1", ROWS, True)], []),
        # the same work by the other process
        ([("1", ROWS, True), ("2", OTHER, True)], [("1", OTHER, True), ("2", ROWS, True)], []),
        ([("1", ROWS, True), ("2", ROWS, True)], [("1", ROWS, True), ("2", OTHER, True)], [("cause", 6, "process 2")]),
        # the same line in two processes is one place
        ([("1", ROWS, True), ("2", ROWS, True)], [("1", OTHER, True), ("2", OTHER, True)], [("cause", 6, "process 1")]),
        # called otherwise in each run
        ([("x /tmp/1", ROWS, True)], [("x /tmp/2", OTHER, True)], [("cause", 6, "process x /tmp/1")]),
        # one that ends earlier, of its own accord or not
        ([("1", ROWS, True)], [("1", ROWS[:6], True)], [("path", 7, "process 1")]),
        ([("1", ROWS, True)], [("1", ROWS[:6], False)], []),
        ([("1", ROWS, False)], [("1", [*ROWS[:3], (op(4), 104, 9)], False)], [("cause", 4, "process 1")]),
        # one that the other run does not have, or had to end before it wrote
        ([("1", ROWS, True)], [], [("path", 1, "process 1")]),
        ([], [("1", ROWS, False)], []),
    ],
)
def test_a_process_is_compared_with_its_twin(tmp_path, a, b, expected):
    outcome = compare(make(tmp_path / "a.tdtrace", *a), make(tmp_path / "b.tdtrace", *b))
    assert [(item.kind, item.site.line, item.stream) for item in outcome.causes] == expected


def test_threads_of_a_child_that_begin_to_write_at_once_write_one_file(tmp_path, monkeypatch):
    class Slow(Writer):
        def __init__(self, path, **more):
            time.sleep(0.05)
            super().__init__(path, **more)

    monkeypatch.setattr(trace, "Writer", Slow)
    with Recorder(tmp_path / "a.tdtrace", label="spawn") as recorder:
        run, opened = recorder._run, []
        run.starts_threads = True  # else the first of them is told of
        threads = [threading.Thread(target=lambda: opened.append(run.open())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(opened) == 4
    assert len(set(map(id, opened))) == 1


def test_a_child_that_is_forked_while_another_thread_begins_to_write_writes_too(tmp_path):
    path = tmp_path / "a.tdtrace"
    with Recorder(path) as recorder, recorder._run.opening:
        if not os.fork():
            signal.alarm(60)  # what would wait for ever
            torch.ones(3).add(9)
            os._exit(0)
        assert os.wait()[1] == 0
    assert [stream.kind for stream in Trace(path).streams] == ["main", "process"]


def test_a_forked_child_that_draws_nothing_of_pythons_has_not_used_its_generator(tmp_path):
    path = tmp_path / "a.tdtrace"
    with Recorder(path):
        for draws in (0, 1):
            if not os.fork():
                for _ in range(draws):
                    random.random()
                torch.tensor([1.0])
                os._exit(0)
            assert os.wait()[1] == 0
    opened = Trace(path)
    used = [record.flags & trace.PYTHON_USED for stream in opened.streams[1:] for record in opened.records(stream)]
    assert list(map(bool, used)) == [False, True]


def test_a_forked_child_reads_a_shared_model_as_memory_that_processes_share(tmp_path):
    path = tmp_path / "a.tdtrace"
    model = torch.nn.Linear(2, 2)
    with Recorder(path):
        model.share_memory()
        if not os.fork():
            model.weight.data[0] = 7
            os._exit(0)
        os.wait()
        if not os.fork():
            model.weight.detach().mul(2)
            os._exit(0)
        os.wait()
    opened = Trace(path)
    reader = opened.streams[2]
    (read,) = [one for one in opened.records(reader) if opened.sites(reader)[one.site].op == "aten.mul.Tensor"]
    assert read.flags & trace.SHARED


def test_workers_may_do_less(tmp_path):
    a = make(tmp_path / "a.tdtrace", ("1", ROWS, True), role="worker")
    b = make(tmp_path / "b.tdtrace", ("1", ROWS[:6], True), role="worker")
    assert compare(a, b).identical


def test_processes_that_are_called_alike_are_told_apart(tmp_path):
    path = tmp_path / "a.tdtrace"
    for pid, began in ((7, 2.0), (8, 1.0)):
        writer = Writer(trace.part_of(path, pid))
        writer.json(b"H", 0, {"hash": "xxh3-64", "environment": {}, "order": [], "began": began})
        writer.json(b"F", writer.stream("process", "train.py", role="process"), {"records": pid})
        writer.close()
    trace.gather(path)
    opened = Trace(path)
    names = [(stream.name, stream.records) for stream in opened.streams]
    assert names == [("main", 0), ("train.py", 8), ("train.py #2", 7)]
    assert json.loads(json.dumps(opened.header))["hash"] == "xxh3-64"


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (["-u", "/x/train.py", "--epochs", "3"], {"RANK": "1", "WORLD_SIZE": "2"}, "rank 1 of train.py --epochs 3"),
        (["-c", "from multiprocessing.spawn import spawn_main"], {"RANK": "0", "WORLD_SIZE": "2"}, "rank 0 spawn"),
        (["-c", "from multiprocessing.spawn import spawn_main"], {}, "spawn"),
        (["-u", "/x/train.py"], {"RANK": "1"}, "-u train.py"),
        (["t.py", "--url", "env://", "--to=tcp://a/b"], {}, "t.py --url env:// --to=tcp://a/b"),
        (["t.py", "file:///tmp/k2/store"], {}, "t.py store"),
    ],
)
def test_a_rank_is_called_by_its_rank(monkeypatch, words, environment, expected):
    """Ranks begin in any order, and their command lines are equal."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, *words])
    assert onset._label() == expected


FAILED = """{said}Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 8433)  (SIGTERM)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_15:11:14
  rank      : 1 (local_rank: 1)
  exitcode  : {status}
  error_file: <N/A>
============================================================"""


RAISED = """Traceback (most recent call last):
  File "/project/train.py", line 4, in <module>
    table["data"]
KeyError: 'data'
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (FAILED.format(said="", status="-9 (pid: 8434)  (SIGKILL)"), "rank 1 was ended by SIGKILL"),
        (
            FAILED.format(said="[rank1]: Traceback\n[rank1]:   x\n[rank1]: ValueError: no\n", status="1 (pid: 8434)"),
            "rank 1 ended with exit status 1: ValueError: no",
        ),
        (
            FAILED.format(said=RAISED + "E1123 15:11:14 failed (exitcode: 1)\n", status="1 (pid: 8434)"),
            "rank 1 ended with exit status 1: KeyError: 'data' (train.py:4)",
        ),
        ("ValueError: no", ""),
    ],
)
def test_the_rank_that_failed_first_is_named(said, expected):
    assert standard._rank_that_failed(said, Path("/project")) == expected


SPAWNED = """Traceback (most recent call last):
  File "{root}/train.py", line 9, in <module>
    mp.spawn(work, nprocs=2)
torch.multiprocessing.spawn.ProcessRaisedException: \n
-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "{root}/.venv/lib/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "{root}/models/net.py", line 5, in work
    x @ x
  File "{root}/.venv/lib/site-packages/torch/_tensor.py", line 40, in wrapped
    return f(*args)
RuntimeError: shapes do not fit
"""


def test_a_process_of_spawn_that_raises_is_told_with_its_own_line(tmp_path):
    said = SPAWNED.format(root=tmp_path)
    told = "process 1 of mp.spawn at models/net.py:5: RuntimeError: shapes do not fit"
    assert standard._spawned_that_raised(said.strip(), tmp_path) == told
    assert standard._spawned_that_raised("ValueError: no", tmp_path) == ""


def test_a_program_that_raises_is_told_by_the_first_line_of_its_error_and_its_own_line(tmp_path):
    said = f"""Traceback (most recent call last):
  File "{tmp_path}/old.py", line 1, in <module>
ValueError: caught before
Traceback (most recent call last):
  File "{tmp_path}/train.py", line 9, in <module>
    data = torch.load(name)
  File "{tmp_path}/.venv/lib/site-packages/torch/serialization.py", line 40, in load
    raise pickle.UnpicklingError(message)
_pickle.UnpicklingError: Weights only load failed.

Check the documentation of torch.load."""
    assert standard._raised(said, tmp_path) == "_pickle.UnpicklingError: Weights only load failed. (train.py:9)"
    assert standard._raised(said.replace("Weights", "W" * 999), tmp_path).endswith("W… (train.py:9)")
    assert standard._raised(said.replace("only", "\x1b[1monly\x1b[0m"), tmp_path) == standard._raised(said, tmp_path)
    assert standard._raised("epoch 1\nkilled", tmp_path) == ""
