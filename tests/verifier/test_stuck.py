"""A run that does not end: each process says where it stands, and the rank that hangs is told from those that wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from torchdet_lint.verifier.launch.launch import CHILD, Program, run_child
from torchdet_lint.verifier.launch.processes import descendants
from torchdet_lint.verifier.launch.stuck import Standing, ask, clear, sentence, standing
from torchdet_lint.verifier.recording.watching.stacks import SIGNAL

if not SIGNAL or not Path("/proc/self").exists():
    pytest.skip("needs signals of its own and /proc", allow_module_level=True)

RANKS = """
import os
import sys
import time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    open(f"{folder}/ready{rank}", "w").close()
    if rank:
        time.sleep(600)
    dist.all_reduce(torch.ones(2))


if __name__ == "__main__":
    mp.start_processes(work, (sys.argv[1],), 2, start_method="fork")
"""


def test_the_rank_that_hangs_is_named_and_what_the_others_wait_for(tmp_path):
    script, trace = tmp_path / "train.py", tmp_path / "a.tdtrace"
    script.write_text(RANKS)
    control = {"kind": "script", "target": str(script), "arguments": [str(tmp_path)], "trace": str(trace)}
    control |= {"about": {}, "steps": 0, "roots": [], "limited": True}
    process = subprocess.Popen([sys.executable, str(CHILD), json.dumps(control)], stderr=subprocess.DEVNULL)
    below: list[int] = []
    try:
        end = time.monotonic() + 120
        while len([*tmp_path.glob("ready*")]) < 2 and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        below = descendants(process.pid)[1:]
        wanted = f"rank 1 hangs at {script}:14, rank 0 waits in all_reduce at {script}:15"
        while (told := ask(trace, process.pid, below)) != wanted and time.monotonic() < end:
            time.sleep(0.1)
        assert told == wanted
    finally:
        for pid in (*below, process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert [*tmp_path.glob("*.stacks")]
    clear(trace)
    assert not [*tmp_path.glob("*.stacks")]


def test_a_program_of_one_process_is_told_by_its_line_and_leaves_nothing(tmp_path):
    script = tmp_path / "loop.py"
    script.write_text("import json\nimport time\n\n\ndef wait():\n    time.sleep(600)\n\n\nwait()\n")
    # A busy machine may need longer to come to the line that waits.
    for seconds in (2, 20, 100):
        result = run_child(Program("script", str(script)), trace=tmp_path / "a.tdtrace", timeout=seconds)
        if f"{script}:6" in result.sentence(seconds):
            break
    assert result.sentence(seconds) == f"did not end within {seconds} s: it stands at {script}:6"
    assert [path.name for path in tmp_path.iterdir()] == ["loop.py"]
    assert run_child(Program("script", str(script)), timeout=1).sentence(1) == "did not end within 1 s"


ANSWER = """{"main": 255}
{"rank": 1, "world": 4}
Thread 0x0000000000000010 (most recent call first):
  File "/home/me/train.py", line 3 in worker

Current thread 0x00000000000000ff (most recent call first):
  File "/x/site-packages/torch/distributed/distributed_c10d.py", line 2806 in all_reduce
  File "/x/site-packages/torch/distributed/c10d_logger.py", line 81 in wrapper
  File "/home/me/train.py", line 9 in step
  File "<string>", line 1 in <module>
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ANSWER, Standing("/home/me/train.py:9", "all_reduce", 1, 4)),
        (ANSWER.replace("torch/distributed/distributed_c10d", "torch/autograd/graph"), ("9", "backward")),
        (ANSWER.replace("torch/distributed/distributed_c10d", "numpy/core"), ("9", "")),
        (ANSWER.partition("Current")[0], None),
        (ANSWER.replace("line 9", "line 8") + ANSWER[ANSWER.index("Thread") :], ("9", "all_reduce")),
        ('{"main": 255}\n{"rank"', None),
        ("", None),
    ],
)
def test_what_a_process_wrote_is_understood(text, found):
    told = standing(text, False)
    if told is not None and not isinstance(found, Standing):
        told = (told.place.rpartition(":")[2], told.waits)
    assert told == found


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([], ""),
        ([Standing("", main=True)], ""),
        ([Standing("b.py:1"), Standing("a.py:3", main=True)], "it stands at a.py:3"),
        (
            [Standing("a.py:3", main=True), *(Standing("a.py:9", "barrier", rank, 3) for rank in range(2))],
            "rank 2 ended before, ranks 0, 1 wait in barrier at a.py:9",
        ),
        (
            [Standing("a.py:9", "all_reduce", 1, 2), Standing("a.py:7", "broadcast", 0, 2)],
            "rank 0 waits in broadcast at a.py:7, rank 1 waits in all_reduce at a.py:9",
        ),
        ([Standing("", "", rank, 20) for rank in range(20)], "ranks 0, 1, 2, 3, 4, 5, 6, 7, … hang"),
    ],
)
def test_ranks_are_told_by_where_they_stand(found, told):
    assert sentence(found) == told
