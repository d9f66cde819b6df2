"""Run B goes on with run A's values where its own differ: every cause shows, and nothing follows from it."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from concurrent import futures

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from torchdet_lint.verifier import cli  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.launch.launch import Program  # noqa: E402
from torchdet_lint.verifier.recording.lockstep import rows  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.verification.text import text  # noqa: E402
from torchdet_lint.verifier.verification.verify import verify_program  # noqa: E402

CAUSES = """
import random
import numpy as np
import torch

names = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}
weight = torch.nn.Parameter(torch.randn(6, 6))
data = torch.from_numpy(np.random.rand(16, 6).astype("float32"))
scale = {name: torch.full((), number / 7) for number, name in enumerate(sorted(names))}
total = torch.zeros(())
for name in names:
    total = total * 1.1 + scale[name]
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(3):
    row = data[step] * random.random()
    loss = (row @ weight * total).pow(2).mean() + (row**2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), weight.sum().item(), torch.empty(500).sum().item())
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    (folder / "program.py").write_text(CAUSES)
    program = Program("script", str(folder / "program.py"))
    return verify_program(program, mode="lockstep", keep=folder / "kept"), folder / "kept"


def test_every_cause_is_told_once_and_none_is_invented(several):
    report, _ = several
    assert report.verdict == "diverged"
    assert [(cause.rule, cause.line, cause.source) for cause in report.causes] == [
        ("TDL101", 7, "random"),
        ("TDL102", 8, "outside"),
        ("", 12, "order"),
        ("TDL103", 15, "number"),
        ("TDL501", 20, "unwritten"),
    ]
    assert report.causes[2].also[0] == "TDL305"
    assert not any(cause.places for cause in report.causes)


def test_what_follows_is_equal(several):
    report, kept = several
    assert report.losses.differing == 0
    assert report.left == ()
    assert (kept / "A.out").read_bytes() == (kept / "B.out").read_bytes()
    assert report.lockstep.ended_at == -1
    assert not (kept / "run.values").exists()
    told = text(report)
    assert told.startswith("✗ 2 runs in lockstep diverged · 5 root causes")
    assert f"run B went on with run A's value after each of {report.lockstep.replaced} ops that gave another" in told
    assert "try the fixes: torchdet-lint verify --fix " in told


def both(tmp_path, body):
    """What `body` gives on sides 0 and 1 in lockstep, and the comparison."""
    given = []
    for side, name in enumerate("ab"):
        with Recorder(tmp_path / f"{name}.tdtrace", lockstep=str(tmp_path / "values")):
            given.append(body(side))
    return given, compare(tmp_path / "a.tdtrace", tmp_path / "b.tdtrace")


def judged(outcome):
    return [(item.site.op, item.source) for item in outcome.causes]


def test_equal_runs_are_equal(tmp_path):
    def body(_):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(), torch.nn.BatchNorm1d(4))
        optimizer = torch.optim.Adam(net.parameters())
        net(torch.from_numpy(numpy.ones((3, 4), "float32"))).sum().backward()
        optimizer.step()

    _, outcome = both(tmp_path, body)
    assert outcome.identical
    assert (outcome.lockstep.replaced, outcome.lockstep.ended_at) == (0, -1)


def test_views_gradients_and_numpy_see_the_values_of_run_a(tmp_path):
    def body(side):
        torch.manual_seed(side)
        base = torch.zeros(4, 3)
        part = base[1]
        part.normal_()
        array = base.numpy()
        array[2] = side + 1
        weight = torch.nn.Parameter(torch.ones(3))
        out = torch.nn.functional.dropout((base * weight).exp(), 0.5)
        out.sum().backward()
        with torch.no_grad():
            weight -= weight.grad * 0.1
        return array.copy(), weight.grad.clone(), weight.detach().clone()

    (a, b), outcome = both(tmp_path, body)
    assert judged(outcome) == [("aten.normal_", "random"), ("aten.mul.Tensor", "outside")]
    assert (a[0] == b[0]).all()
    assert torch.equal(a[1], b[1])
    assert torch.equal(a[2], b[2])


def test_what_a_number_picks_is_picked_again_in_the_backward_pass(tmp_path):
    def body(side):
        data = torch.arange(12.0).reshape(4, 3).requires_grad_()
        row = data[side]
        (row * row).sum().backward()
        return row.detach().clone(), data.grad.clone()

    (a, b), outcome = both(tmp_path, body)
    assert judged(outcome) == [("aten.select.int", "number")]
    assert torch.equal(a[0], b[0])
    assert torch.equal(a[1], b[1])


def test_work_in_another_order_stays_with_its_tensors_and_what_joins_it_goes_on_with_run_a(tmp_path):
    def body(side):
        source = {name: torch.full((2,), float(at)) for at, name in enumerate("xyz", 1)}
        made, total = {}, torch.zeros(2)
        for name in "zyx" if side else "xyz":
            made[name] = source[name].exp()
            total = total * 0.3 + made[name]
        return {name: made[name].clone() for name in "xyz"}, total + torch.rand(2, generator=seeded(side))

    (a, b), outcome = both(tmp_path, body)
    assert judged(outcome) == [("aten.exp", "order"), ("aten.rand.generator", "random")]
    assert all(torch.equal(a[0][name], b[0][name]) for name in "xyz")
    assert torch.equal(a[1], b[1])


def seeded(number):
    return torch.Generator().manual_seed(number)


def test_memory_that_nothing_wrote_is_a_cause_once_for_each_line_that_allocates_it(tmp_path):
    def body(side):
        memory = torch.empty(3)
        ctypes.memset(memory.data_ptr(), 64 + side, 12)
        return (memory + 1).sum().item()

    (a, b), outcome = both(tmp_path, body)
    assert judged(outcome) == [("aten.add.Tensor", "unwritten")]
    assert a == b


class Rows(torch.utils.data.Dataset):
    side = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((2,), float(self.side)) + index, "text"


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked")
def test_batches_of_workers_are_those_of_run_a(tmp_path):
    def body(side):
        Rows.side = side
        loader = torch.utils.data.DataLoader(Rows(), 2, num_workers=1, generator=seeded(side))
        return torch.stack([rows.sum() for rows, _ in loader])

    (a, b), outcome = both(tmp_path, body)
    assert ("loader.batch", "outside") in judged(outcome)
    assert torch.equal(a, b)


def in_threads(*works):
    threads = [threading.Thread(target=work, name=f"worker {number}") for number, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_other_threads_go_on_with_their_values_of_run_a_and_each_has_its_own_causes(tmp_path):
    def body(side):
        made = {}

        def noise():
            made["noise"] = torch.rand(3, generator=seeded(side)).exp()

        def data():
            made["data"] = torch.from_numpy(numpy.full(3, side, "float32")).sin()

        in_threads(noise, data)
        total = made["noise"] + made["data"]
        return total, total * torch.rand(3, generator=seeded(side + 2))

    (a, b), outcome = both(tmp_path, body)
    assert torch.equal(a[0], b[0])
    assert torch.equal(a[1], b[1])
    assert {(item.stream, item.site.op, item.source) for item in outcome.causes} == {
        ("main", "aten.rand.generator", "random"),
        ("thread worker 0 (noise)", "aten.rand.generator", "random"),
        ("thread worker 1 (data)", "aten.lift_fresh", "outside"),
    }
    assert not [item for item in outcome.divergences if item.kind != "cause"]
    assert (outcome.lockstep.replaced, outcome.lockstep.ended_at, outcome.lockstep.threads) == (3, -1, ())
    assert not any("lockstep" in note for note in outcome.notes)


def test_threads_that_share_tasks_keep_their_values_where_they_share_them_otherwise(tmp_path):
    def body(side):
        given = [torch.full((3,), float(number)) for number in range(4)]
        made = {}

        def shares(mine):
            for number in mine:
                made[number] = (given[number].exp() * 2).sum()

        in_threads(functools.partial(shares, (1, 0) if side else (0, 1)), functools.partial(shares, (2, 3)))
        in_threads(*(functools.partial(shares, pair) for pair in ([(2, 3), (0, 1)] if side else [(0, 1), (2, 3)])))
        return [made[number].item() for number in range(4)]

    (a, b), outcome = both(tmp_path, body)
    assert a == b
    assert outcome.identical
    assert outcome.lockstep.replaced == 0


def test_a_race_is_a_cause_beside_others(tmp_path):
    def body(side):
        weight = torch.zeros(3)
        turn = [threading.Event(), threading.Event()]
        turn[side].set()

        def halves():
            turn[0].wait()
            weight.mul_(0.5)
            turn[1].set()

        def adds():
            turn[1].wait()
            weight.add_(1)
            turn[0].set()

        in_threads(halves, adds, lambda: torch.rand(3, generator=seeded(side)))

    _, outcome = both(tmp_path, body)
    assert {(item.site.op, item.source) for item in outcome.causes} == {
        ("aten.rand.generator", "random"),
        ("aten.mul_.Tensor", "race"),
    }
    assert {one.why for one in outcome.lockstep.threads} == {
        "the op wrote to a tensor that held something else in run A"
    }


def test_what_a_thread_took_from_outside_is_a_cause_though_it_made_the_same_of_it(tmp_path):
    def body(side):
        array = numpy.zeros(3, "float32")
        shared = torch.from_numpy(array)

        def work():
            array[:] = side + 1
            return (shared > 0).any()

        in_threads(work)
        return shared.clone()

    (a, b), outcome = both(tmp_path, body)
    assert torch.equal(a, b)
    assert judged(outcome) == [("aten.gt.Scalar", "outside")]


def test_a_thread_that_goes_another_way_ends_its_own_lockstep_with_a_line(tmp_path):
    def body(side):
        in_threads(lambda: way(side))
        return torch.rand(3, generator=seeded(side))

    (a, b), outcome = both(tmp_path, body)
    assert torch.equal(a, b)
    (ended,) = outcome.lockstep.threads
    assert (ended.stream, ended.ended_at) == ("thread worker 0 (<lambda>)", 1)
    assert ended.why.startswith("run A goes another way: to test_lockstep.py:")
    assert outcome.lockstep.ended_at == -1


def test_a_thread_that_only_run_b_has_is_told(tmp_path):
    def body(side):
        if side:
            in_threads(lambda: torch.ones(3) * 2)
        return torch.rand(3, generator=seeded(side))

    _, outcome = both(tmp_path, body)
    assert [one.why for one in outcome.lockstep.threads] == ["run A kept nothing that this thread made"]


def test_threads_of_a_pool_go_on_by_themselves_and_the_report_says_so(tmp_path):
    def body(side):
        with futures.ThreadPoolExecutor(1) as pool:
            pool.submit(torch.full, (2,), float(side)).result()
        return torch.full((2,), float(side))

    (a, b), outcome = both(tmp_path, body)
    assert torch.equal(a, b)
    assert "lockstep in threads of pools and in other processes (1): each went on with its own values" in outcome.notes


def test_rows_of_numpy_memory_that_are_picked_in_another_order_are_not_written_over(tmp_path):
    def body(side):
        data = torch.from_numpy(numpy.arange(12.0).reshape(4, 3))
        total = torch.zeros(3)
        for at in (2, 1, 3) if side else (1, 2, 3):
            row = data[at]
            total = total * 0.5 + row.exp()
        return data.clone(), total

    (a, b), outcome = both(tmp_path, body)
    assert judged(outcome) == [("aten.select.int", "number")]
    assert torch.equal(a[0], b[0])
    assert torch.equal(a[1], b[1])


def test_files_in_another_order_keep_their_content(tmp_path):
    def body(side):
        made = {at: torch.from_numpy(numpy.full(3, at, "float32")) for at in ((2, 1) if side else (1, 2))}
        return made[1].clone(), torch.stack([*made.values()])

    (a, b), outcome = both(tmp_path, body)
    assert judged(outcome) == [("aten.lift_fresh", "outside")]
    assert torch.equal(a[0], b[0])
    assert torch.equal(a[1], b[1])


def shape(side):
    return torch.ones(3 + side) * 2


def way(side):
    x = torch.rand(2, generator=seeded(side))
    return x.exp() if side else x.sin()


def other_tensor(side):
    pair = torch.zeros(2), torch.ones(2)
    pair[side].add_(torch.full((2,), 5.0 + side))


def frozen(side, folder):
    path = folder / f"{side}.bin"
    path.write_bytes(bytes([side] * 8))
    return torch.from_numpy(numpy.memmap(path, dtype="uint8", mode="r")).sum().item()


def long(_):
    for _ in range(20):
        torch.ones(100)


@pytest.mark.parametrize(
    ("body", "at", "why"),
    [
        (shape, 0, "its tensor has another form: float32[3] | float32[4]"),
        (way, 1, "run A goes another way: to test_lockstep.py:"),
        (other_tensor, 3, "the op wrote to a tensor that held something else in run A"),
    ],
)
def test_where_nothing_can_be_replaced_lockstep_ends_with_a_line(tmp_path, body, at, why):
    _, outcome = both(tmp_path, body)
    assert outcome.lockstep.ended_at == at
    assert outcome.lockstep.why.startswith(why)
    assert not outcome.identical


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what can be written")
def test_memory_that_cannot_be_written_is_left(tmp_path):
    given, outcome = both(tmp_path, functools.partial(frozen, folder=tmp_path))
    assert given == [0, 8]
    assert outcome.lockstep.why == "it came in memory that cannot be written"
    assert [item.source for item in outcome.causes] == ["outside"]


def test_what_run_a_keeps_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MOST_BYTES", 4000)
    _, outcome = both(tmp_path, long)
    assert (tmp_path / "values").stat().st_size <= 4000
    assert 0 < outcome.lockstep.ended_at < 19
    assert "kept no further" in outcome.lockstep.why
    assert outcome.identical


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-m", "torch.distributed.run", "x.py"], "follows one process, and torch.distributed.run starts several"),
        (["--fix", __file__], "without --diagnose and --fix"),
    ],
)
def test_what_lockstep_has_no_answer_for_is_refused_in_one_line(words, why, capsys):
    assert cli.main(["verify", "--mode", "lockstep", *words]) == 2
    assert why in capsys.readouterr().err
