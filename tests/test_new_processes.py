"""What a new process seeds is seeded there alone; a spawned one seeds what the program seeds at top level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

if TYPE_CHECKING:
    from pathlib import Path

IMPORTS = """\
import multiprocessing as mp
import random
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from sklearn.svm import LinearSVC
"""
WORKER = """
def worker(rank, seed=0):
    np.random.seed(seed + rank)
    print(np.random.rand())
"""
DRAWN = "    print(np.random.rand())  # here\n"


def found(folder: Path, text: str, **files: str) -> list[tuple[str, str, bool]]:
    """Code, severity of each finding, and whether it is in the row that ends in `# here`."""
    for name, content in {"main": text, **files}.items():
        (folder / f"{name}.py").write_text(content)
    findings = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    lines = text.splitlines()
    return [(one.code, one.severity, lines[one.location.row - 1].endswith("# here")) for one in findings]


@pytest.mark.parametrize(
    "start",
    [
        "torch.multiprocessing.spawn(worker, nprocs=2)",
        "mp.Process(target=worker, args=(1,)).start()",
        "mp.get_context('spawn').Process(target=worker, args=(1,)).start()",
        "mp.Pool(2).map(worker, range(4))",
        "list(ProcessPoolExecutor().map(worker, range(4)))",
    ],
)
def test_what_a_new_process_seeds_is_seeded_there_alone(tmp_path, start):
    program = f'{IMPORTS}{WORKER}\nif __name__ == "__main__":\n    {start}\n'
    assert found(tmp_path, program) == []
    assert found(tmp_path, f"{program}{DRAWN}") == [("TDL102", "error", True)]
    # Above or below the start, and within a function that does both.
    lines = f"    {start}\n{DRAWN}"
    within = f'{IMPORTS}{WORKER}\ndef main():\n{lines}\n\nif __name__ == "__main__":\n    main()  # here\n'
    assert found(tmp_path, within.replace(DRAWN, DRAWN.replace("  # here", ""))) == [("TDL102", "error", True)]
    above = f'{IMPORTS}{WORKER}\nif __name__ == "__main__":\n{DRAWN}    {start}\n'
    assert found(tmp_path, above) == [("TDL102", "error", True)]


@pytest.mark.parametrize(
    "program",
    [
        # One process is enough: the worker runs in this one.
        """
def main(count):
    if count > 1:
        torch.multiprocessing.spawn(worker, nprocs=count)
    else:
        worker(0)
    print(np.random.rand())

if __name__ == "__main__":
    main(torch.cuda.device_count())
""",
        """
from accelerate import notebook_launcher

if __name__ == "__main__":
    notebook_launcher(worker, (0,), num_processes=1)
    print(np.random.rand())
""",
        """
def start():
    np.random.seed(0)

def task(number):
    return np.random.rand() + number

if __name__ == "__main__":
    with mp.Pool(2, start) as pool:
        print(pool.map(task, range(4)))
""",
        # What the target is given runs below its seed.
        """
def train(rank):
    print(np.random.rand())

def run(rank, function):
    np.random.seed(rank)
    function(rank)

if __name__ == "__main__":
    torch.multiprocessing.spawn(run, args=(train,), nprocs=2)
""",
        # The program has a seed of its own.
        """
if __name__ == "__main__":
    np.random.seed(0)
    torch.multiprocessing.spawn(worker, nprocs=2)
    print(np.random.rand())
""",
        # A port changes no result.
        """
if __name__ == "__main__":
    port = np.random.randint(10000, 20000)
    torch.multiprocessing.spawn(worker, args=(port,), nprocs=2)
""",
    ],
)
def test_nothing_is_unseeded_where_all_that_draws_is_seeded(tmp_path, program):
    assert found(tmp_path, f"{IMPORTS}{WORKER}{program}") == []


def test_the_worker_of_another_file_seeds_itself_alone(tmp_path):
    program = 'import torch\nfrom work import worker\n\nif __name__ == "__main__":\n'
    program += "    torch.multiprocessing.spawn(worker, nprocs=2)\n"
    drawn = "    print(torch.nn.Linear(2, 2).weight)  # here\n"
    work = "import torch\n\ndef worker(rank):\n    torch.manual_seed(rank)\n    print(torch.rand(2))\n"
    assert found(tmp_path, program, work=work) == []
    assert found(tmp_path, f"{program}{drawn}", work=work) == [("TDL101", "error", True)]


def test_an_estimator_is_seeded_by_its_own_process(tmp_path):
    fit = "LinearSVC(dual=True).fit(np.eye(2), [0, 1])"
    unseeded = f"""{IMPORTS}{WORKER}
def fit():
    print({fit})  # here

if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, nprocs=2)
    fit()
"""
    assert found(tmp_path, unseeded) == [("TDL107", "error", True)]
    seeded = f"""{IMPORTS}
def worker(rank):
    np.random.seed(rank)
    print({fit})  # here

if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, nprocs=2)
    print(np.random.rand())
"""
    assert found(tmp_path, seeded) == [("TDL107", "warning", True), ("TDL102", "error", False)]


def test_a_loader_is_seeded_by_its_own_process(tmp_path):
    program = f"""{IMPORTS}
from torch.utils.data import DataLoader

def worker(rank):
    torch.manual_seed(rank)
    for x in DataLoader(range(8), shuffle=True):  # here
        print(x)

def evaluate():
    for x in DataLoader(range(8), shuffle=True):
        print(x)

if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, nprocs=2)
    evaluate()
"""
    assert found(tmp_path, program) == [
        ("TDL302", "warning", True),
        ("TDL302", "error", False),
        ("TDL101", "error", False),
    ]


@pytest.mark.parametrize(
    ("seeds", "severity"), [("", "error"), ("np.random.seed(0)", "warning"), ("if True: np.random.seed(0)", "warning")]
)
def test_a_forked_process_copies_the_state_of_the_process_that_starts_it(tmp_path, seeds, severity):
    program = f"""{IMPORTS}
def inner():
    print(np.random.rand())

def outer(rank):
    {seeds or "pass"}
    mp.Process(target=inner).start()  # here

if __name__ == "__main__":
    torch.multiprocessing.spawn(outer, nprocs=2)
"""
    findings = [one for one in found(tmp_path, program) if one[0] == "TDL108" and one[2]]
    assert findings == [("TDL108", severity, True)]


@pytest.mark.parametrize(
    ("library", "start", "reported"),
    [
        # Python seeds `random` anew in every forked child, whatever the parent has seeded.
        ("random", "mp.Process(target=task, args=(1,)).start()", True),
        ("random", "mp.get_context('spawn').Process(target=task, args=(1,)).start()", False),
        ("random", "torch.multiprocessing.spawn(task, nprocs=2)", False),
        ("np.random", "mp.Process(target=task, args=(1,)).start()", False),
        ("np.random", "torch.multiprocessing.spawn(task, nprocs=2)", False),
        # Timing decides which process of a pool takes which task.
        ("random", "print(mp.Pool(2).map(task, range(4)))", True),
        ("random", "print(mp.get_context('spawn').Pool(2).map(task, range(4)))", True),
        ("np.random", "print(mp.get_context('spawn').Pool(2).map(task, range(4)))", True),
        ("np.random", "print(list(ProcessPoolExecutor(2).map(task, range(4))))", True),
    ],
)
def test_a_seed_at_top_level_counts_where_every_run_then_repeats(tmp_path, library, start, reported):
    program = f"""{IMPORTS}
{library}.seed(0)

def task(number):
    print({library}.random(), number)

if __name__ == "__main__":
    {start}  # here
"""
    assert found(tmp_path, program) == ([("TDL108", "error", True)] if reported else [])


@pytest.mark.parametrize(
    ("start", "above", "safe"),
    [
        ("mp.get_context('spawn').Pool(2).map(task, range(4))", "OFFSET = random.random()", False),
        ("mp.get_context('spawn').Process(target=task, args=(1,)).start()", "OFFSET = random.random()", False),
        ("mp.Process(target=task, args=(1,)).start()", "np.random.seed(0)", False),
        ("mp.Process(target=task, args=(1,)).start()", "", True),
        ("mp.Process(target=other, args=(1,)).start()", "OFFSET = random.random()", True),
        ("task(1)", "OFFSET = random.random()", True),
    ],
)
def test_a_seed_is_safe_where_no_new_process_runs_it_again(tmp_path, start, above, safe):
    program = f"""{IMPORTS}
{above}

def task(number):
    print(random.random(), number)

def other(number):
    print(number)

if __name__ == "__main__":
    print(random.random())
    {start}
"""
    (tmp_path / "main.py").write_text(program)
    findings = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1, cache_dir="")).findings
    fixes = [one.fix.applicability for one in findings if one.code == "TDL103" and one.fix is not None]
    assert fixes == ["safe" if safe else "unsafe"]
