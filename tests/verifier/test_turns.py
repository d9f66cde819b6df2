"""Threads that take turns, addresses that are held fixed, and what that proves of a divergence."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

pytest.importorskip("torch")

from torchdet_lint.verifier.comparison.explain import Finding
from torchdet_lint.verifier.comparison.outcome import Divergence, Evidence
from torchdet_lint.verifier.patching.events import Reporter
from torchdet_lint.verifier.remedies import stress, turns
from torchdet_lint.verifier.trace import Site
from torchdet_lint.verifier.verification.closer import axes
from torchdet_lint.verifier.verification.closer import turns as proof
from torchdet_lint.verifier.verification.outcome import Cause, Spread, VerifyError


@pytest.fixture(params=["A", "B"])
def side(request):
    context = stress.install(request.param, ("TDL304", "TDL501"), Reporter(quiet=True))
    yield request.param
    context.patches.undo()


def finished(count):
    done = []

    def work(number):
        time.sleep(random.random() / 100)
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def test_threads_end_in_the_order_of_their_starts_or_against_it(side, monkeypatch):
    # A busy machine may need longer to start the next thread.
    monkeypatch.setattr(turns, "_HELD_SECONDS", 0.5)
    orders = [finished(5) for _ in range(3)]
    assert orders == [[0, 1, 2, 3, 4] if side == "A" else [4, 3, 2, 1, 0]] * 3


@pytest.mark.usefixtures("side")
def test_threads_that_wait_for_each_other_go_on_and_are_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(turns, "_HELD_SECONDS", 0.01)
    there, back = queue.Queue(), queue.Queue()

    def answer():
        while (number := there.get()) is not None:
            back.put(number + 1)

    threads = [threading.Thread(target=answer) for _ in range(20)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    there.put(1)
    assert back.get(timeout=20) == 2
    for _ in threads:
        there.put(None)
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert time.monotonic() - begin < 10


def test_a_thread_of_a_library_is_left_alone(side, monkeypatch):
    waited = []
    monkeypatch.setattr(turns._Turns, "wait", lambda *_: waited.append(side))
    timer = threading.Timer(0.0, finished, (0,))
    timer.start()
    timer.join()
    assert not waited


SITES = [Site("aten.lift_fresh", "forward", "a.py", line, "part") for line in (3, 7, 99)]


def cause(line, rule=""):
    told = dict.fromkeys(("name", "message", "phase", "function", "forward_op", "forward_file"), "")
    counts = dict.fromkeys(("forward_line", "differing", "compared"), 0)
    return Cause(
        rule=rule, also=("TDL305", "TDL306"), kind="cause", source="outside", op="aten.lift_fresh", file="a.py",
        line=line, op_index=line, inputs_equal=True, generators={}, stream="main", **told, **counts,
    )  # fmt: skip


def differ(*lines):
    evidence = Evidence(inputs_equal=True, numbers_equal=True)
    return tuple(Divergence(site, site.line, "cause", "outside", evidence) for site in SITES if site.line in lines)


class Recorded:
    """A trace of a program that starts threads and passes two sites."""

    notes = ({"threads": "so"},)
    streams = ("main",)

    def __init__(self, _path):
        pass

    def sites(self, _stream):
        return SITES[:2]


class Told(msgspec.Struct, frozen=True):
    causes: tuple[Cause, ...]
    verdict: str = ""
    spread: Spread = Spread(9, 9, "persistent", 2)
    not_covered: tuple[str, ...] = ()


class Runs:
    """A session whose further runs differ at the lines that it is given, pair by pair."""

    workspace = SimpleNamespace(in_place="")
    results = (SimpleNamespace(seconds=1.0, cpu_seconds=1.0),)
    outcome = SimpleNamespace(causes=differ(3, 7, 99), divergences=(), partings=(), devices=("cpu",), environment={})
    root = Path()

    def __init__(self, in_turn, again):
        self.pairs = {"in-turn": in_turn, "again": again}
        self.asked = []

    def trace(self, _number):
        return ""

    def beside(self, name, *fixes, same_addresses=False):
        self.asked.append((name, *fixes, *["addresses"] * same_addresses))
        return SimpleNamespace(compared=lambda count: self.taken(name, count), trace=self.trace)

    def taken(self, name, count):
        for lines in self.pairs[name][:count]:
            if lines is None:
                raise VerifyError("it failed")
            yield differ(*lines)


@pytest.mark.parametrize(
    ("in_turn", "again", "named"),
    [
        ([()] * 3, [(3,)] * 2, {3}),
        ([(7,)] * 3, [(3, 7)] * 2, {3}),  # line 7 varies by itself
        ([()] * 3, [(3,), ()], set()),  # a difference that is rare: nothing is known
        ([(), (), (3,)], [(3,)] * 2, set()),
        ([(), None], [(3,)] * 2, set()),
        ([()] * 3, [(99,)] * 2, set()),  # with the threads in turn it is never reached
    ],
)
def test_the_order_of_threads_is_named_where_it_alone_decides(monkeypatch, in_turn, again, named):
    monkeypatch.setattr(proof, "Trace", Recorded)
    told = proof.settle(Runs(in_turn, again), Told((cause(3), cause(7), cause(99))))
    assert {one.line for one in told.causes if (one.rule, one.proven) == ("TDL306", True)} == named
    assert {one.rule for one in told.causes if one.line not in named} == {""}


@pytest.mark.parametrize("found", [False, True])
def test_the_order_of_a_set_is_no_more_than_a_guess_where_the_linter_sees_none(monkeypatch, found):
    monkeypatch.setattr(proof, "Trace", Recorded)
    finding = Finding("TDL305", "`set(names)` has no fixed order", "a.py", 3) if found else None
    guess = msgspec.structs.replace(cause(3, "TDL305"), source="order", finding=finding)
    (told,) = proof.settle(Runs([()] * 3, [(3,)] * 2), Told((guess,))).causes
    assert (told.rule, told.proven) == (("TDL305", False) if found else ("TDL306", True))


@pytest.mark.parametrize(
    ("in_turn", "again", "told"),
    [
        ([(7,)] * 3, [(3, 7)] * 2, True),
        ([()] * 3, [(3, 7)] * 2, False),  # what the threads read may follow from line 7, which did not differ either
        ([(7,)] * 3, [(7,), (3, 7)], False),
        ([(7,), (3, 7), (7,)], [(3, 7)] * 2, False),
    ],
)
def test_a_race_is_told_beside_another_cause_where_the_threads_in_turn_end_it_alone(monkeypatch, in_turn, again, told):
    monkeypatch.setattr(proof, "Trace", Recorded)
    race = msgspec.structs.replace(differ(3)[0], kind="consequence", source="race", stream="thread 1")
    runs = Runs(in_turn, again)
    monkeypatch.setattr(runs, "outcome", SimpleNamespace(**{**vars(Runs.outcome), "causes": differ(7)}))
    runs.outcome.divergences = (*differ(7), race)
    report = proof.settle(runs, Told((cause(7, "TDL102"),)))
    assert [(one.line, one.rule, one.proven) for one in report.causes[1:]] == [(3, "TDL307", True)] * told
    assert report.spread.consequences == 2 - told


def test_nothing_more_is_run_where_no_cause_is_open_or_no_thread_was_started(monkeypatch):
    runs = Runs([], [])
    report = SimpleNamespace(causes=(cause(3, "TDL102"),))
    assert proof.settle(runs, report) is report
    monkeypatch.setattr(proof, "Trace", lambda _path: SimpleNamespace(notes=[]))
    report = SimpleNamespace(causes=(cause(3),))
    assert proof.settle(runs, report) is report
    assert not runs.asked


@pytest.mark.parametrize(
    ("seconds", "cpu", "repeated"),
    [(300.0, 1.0, True), (61.0, 61.0, False), (700.0, 1.0, False), (61.0, 0.0, False), (59.0, 0.0, True)],
)
def test_a_run_is_repeated_by_what_it_takes_of_the_cpu(monkeypatch, seconds, cpu, repeated):
    monkeypatch.setattr(proof, "Trace", Recorded)
    runs = Runs([()] * 3, [(3,)] * 2)
    runs.results = (SimpleNamespace(seconds=seconds, cpu_seconds=cpu),)
    told = proof.settle(runs, Told((cause(3),)))
    assert (bool(runs.asked), told.causes[0].rule, bool(told.not_covered)) == (
        (True, "TDL306", False) if repeated else (False, "", True)
    )


class Held(Runs):
    """A session of which a place no longer differs under what is held there, by line."""

    def __init__(self, gone):
        super().__init__([], [])
        self.gone = gone

    def taken(self, name, count):
        for _ in range(count):
            yield differ(*(line for line in (3, 7) if name.removeprefix("held-") not in self.gone.get(line, ())))


@pytest.mark.parametrize(
    ("gone", "allowed", "rule", "held"),
    [
        (["addresses"], True, "TDL305", ("addresses",)),  # `id()`, say: no fix reaches it
        (["TDL305", "addresses"], True, "TDL305", ("TDL305", "addresses")),  # a set of objects
        (["TDL305", "TDL601", "addresses"], True, "TDL305", ("TDL305", "TDL601")),  # a set of text
        (["TDL305", "addresses"], False, "TDL305", ("TDL305",)),
        (["addresses"], False, "", ()),
    ],
)
def test_addresses_that_are_held_fixed_tell_a_set_of_objects_from_one_of_text(monkeypatch, gone, allowed, rule, held):
    monkeypatch.setattr(axes, "passed", lambda _: set(SITES[:2]))
    monkeypatch.setattr(axes, "fixed_addresses", lambda: contextlib.nullcontext(allowed))
    runs = Held({3: gone, 7: ["TDL306"]})
    told = axes.diagnose(runs, Told((cause(3), cause(7)), verdict="diverged"))
    first, second = told.causes
    assert (first.rule, first.gone_with) == (rule, held)
    assert ("the addresses of objects decide" in first.message) == ("addresses" in held)
    assert first.proven == ([code.startswith("TDL") for code in held].count(True) == 1)
    assert (second.rule, second.gone_with) == ("TDL306", ("TDL306",))
    assert ("held-addresses", "TDL601", "addresses") in runs.asked or "addresses" not in held
    assert bool(told.not_covered) == (not allowed)
