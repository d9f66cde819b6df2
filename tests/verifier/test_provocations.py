"""What a run of a probe is put under: modes, addresses, threads, streams; and what of it shows while it goes on."""

from __future__ import annotations

import contextlib
import io
import threading
import types
from typing import ClassVar

import pytest

pytest.importorskip("torch")

import torch

from torchdet_lint.verifier.probe import child, command, run
from torchdet_lint.verifier.probe.batches import Batch, Task
from torchdet_lint.verifier.probe.measuring import measure, modes
from torchdet_lint.verifier.probe.plan import MODES, Cell
from torchdet_lint.verifier.probe.programs import Program


def flags():
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
    )


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("default", (False, False, False, False)),
        ("deterministic", (True, False, False, False)),
        ("warn-only", (True, True, False, False)),
        ("cudnn-deterministic", (False, False, True, False)),
        ("benchmark", (False, False, False, True)),
    ],
)
def test_a_mode_holds_for_its_runs_and_is_put_back(name, inside):
    before = flags()
    assert name in MODES
    with pytest.raises(ZeroDivisionError), modes.mode(name):
        assert flags() == inside
        raise ZeroDivisionError
    assert flags() == before


SIZES = (500, 5_000, 50_000, 500_000)


def test_other_addresses_are_others_and_given_back():
    """The op's result lies elsewhere in some of the runs, and nothing is held after them."""
    provocations = modes.Provocations("cpu", seed=1)
    places = {name: set() for name in ("plain", "other addresses")}
    for _ in range(20):
        for name, seen in places.items():
            with provocations.around(name):
                seen.update((size, torch.empty(size).data_ptr()) for size in SIZES)
    assert len(places["other addresses"]) > len(SIZES)
    assert not provocations._held
    provocations.close()


def test_a_thread_is_busy_beside_the_runs_that_ask_for_it_and_ends_with_them(monkeypatch):
    provocations = modes.Provocations("cpu", seed=1)
    sorts = threading.Semaphore(0)
    monkeypatch.setattr(torch.Tensor, "sort", lambda _self: sorts.release())
    with provocations.around("plain"):
        assert not sorts.acquire(timeout=0.05)
    with provocations.around("busy threads"):
        for _ in range(3):
            assert sorts.acquire(timeout=20), "no thread works"
    thread = provocations._busy._thread
    provocations.close()
    assert not thread.is_alive()


class Streams:
    """A device that writes down what is asked of it."""

    def __init__(self):
        self.asked = []
        self.current = None

    Stream = object

    @contextlib.contextmanager
    def stream(self, stream):
        self.current = stream
        yield
        self.current = None

    def _sleep(self, _cycles):
        self.asked.append(("occupied", self.current is not None))

    def empty_cache(self):
        self.asked.append(("emptied", self.current is not None))

    def synchronize(self):
        pass


def test_a_gpu_is_kept_busy_on_other_streams_occupied_in_part_and_its_cache_emptied(monkeypatch):
    device = Streams()
    multiplied = []

    class Load:
        def __matmul__(self, other):
            multiplied.append(device.current)
            return self

    monkeypatch.setattr(torch, "cuda", device)
    monkeypatch.setattr(modes, "torch", types.SimpleNamespace(cuda=device, zeros=lambda *_, **__: Load()))
    provocations = modes.Provocations("cuda", seed=3)
    assert set(provocations.names) == {
        "plain", "other addresses", "busy streams", "other occupancy", "emptied cache"
    }  # fmt: skip
    with provocations.around("busy streams"):
        assert len(set(multiplied)) == len(multiplied) == 4
        assert None not in multiplied
        assert len(provocations._held) == 4
    assert not provocations._held
    with provocations.around("other occupancy"):
        assert device.asked
        assert set(device.asked) == {("occupied", True)}
    device.asked.clear()
    with provocations.around("emptied cache"):
        assert device.asked == [("emptied", False)]
    device.asked.clear()
    with provocations.around("plain"):
        assert not device.asked


def program(call, **more):
    return Program(inputs=(("x", "normal(50)"),), call=call, direction="forward", **more)


def test_every_provocation_takes_its_part_of_the_runs():
    task = Task(program=program("x + 1"), device="cpu", mode="default", runs=70, seconds=60.0)
    counts = {name: count for name, _, count in measure.measure(task).digests}
    assert counts == {"plain": 30, "other addresses": 30, "busy threads": 10}


def test_inputs_of_another_type_and_a_number_of_threads_reach_the_op():
    before = torch.get_num_threads()
    asked = program(
        "torch.tensor([float(torch.get_num_threads()), float(x.dtype is torch.float16)])", dtype="float16", threads=1
    )
    other = program("torch.tensor([1.0, 1.0])", dtype="float16", threads=1)
    digests = [
        measure.measure(Task(program=one, device="cpu", mode="default", runs=1, seconds=1.0)).digests
        for one in (asked, other)
    ]
    assert digests[0] == digests[1]
    assert torch.get_num_threads() == before


class Quick:
    """A measuring process without a process."""

    started: ClassVar[list[bool]] = []

    def __init__(self, device, *, threads, memory, spins):
        self.alive = True
        self.started.append(spins)

    def ask(self, task, timeout):
        return Batch(ending="ran", digests=(("plain", "a", task.runs),), inputs="i", seconds=1e-6)

    def close(self):
        pass


def test_runs_are_spread_over_fresh_processes_some_of_which_spin(monkeypatch):
    monkeypatch.setattr(run, "Child", Quick)
    Quick.started.clear()
    cell = Cell(program("x"), "default", "", 1)
    tallies = {}
    run.Sitting("cpu", {cell.key: cell}, tallies, run.Limits(runs=459, budget=60.0, processes=6)).measure()
    assert Quick.started == [False, True, False, False, True, False]
    assert len(tallies[cell.key].leading) == 6
    assert tallies[cell.key].runs >= 459


def test_a_process_that_has_started_already_takes_the_first_round(monkeypatch):
    monkeypatch.setattr(run, "Child", Quick)
    first = Quick("cpu", threads=0, memory=0, spins=False)
    Quick.started.clear()
    cell = Cell(program("x"), "default", "", 1)
    limits = run.Limits(runs=459, budget=60.0, processes=6)
    run.Sitting("cpu", {cell.key: cell}, {}, limits, first=first).measure()
    assert Quick.started == [True, False, False, True, False]


def test_after_the_first_round_what_is_cheap_comes_first(monkeypatch):
    asked = []

    class Costly(Quick):
        def ask(self, task, timeout):
            asked.append(task.program.call)
            cost = {"x": 3.0, "x + 1": 1.0, "x + 2": 2.0}[task.program.call]
            return Batch(ending="ran", digests=(("plain", "a", task.runs),), inputs="i", seconds=cost)

    monkeypatch.setattr(run, "Child", Costly)
    cells = [Cell(program(call), "default", "", 1) for call in ("x", "x + 1", "x + 2")]
    limits = run.Limits(runs=459, budget=60.0, processes=2)
    run.Sitting("cpu", {cell.key: cell for cell in cells}, {}, limits).measure()
    assert asked == ["x", "x + 1", "x + 2", "x + 1", "x + 2", "x"]


def test_threads_that_sleep_are_asked_for_unless_the_user_says_otherwise(monkeypatch):
    environments = []

    def started(*_, env, **__):
        environments.append(env.get("OMP_WAIT_POLICY"))
        raise OSError(2, "not started")

    monkeypatch.setattr(child.subprocess, "Popen", started)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    for spins, set_by_user in ((True, ""), (False, ""), (False, "active")):
        if set_by_user:
            monkeypatch.setenv("OMP_WAIT_POLICY", set_by_user)
        with pytest.raises(child.ChildError):
            child.Child("cpu", memory=1, spins=spins)
    assert environments == [None, "passive", "active"]


def test_a_bar_shows_on_a_terminal_and_is_gone_after(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for screen, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(command.sys, "stderr", screen)
        with command._Progress() as step:
            step(0.5, "x.take(index)")
        assert ("[============            ]  50% x.take(index)" in screen.getvalue()) is shown
        assert screen.getvalue().endswith("\r\x1b[K") is shown
