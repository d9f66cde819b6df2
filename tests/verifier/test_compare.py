from __future__ import annotations

import itertools
import json
import time
import tracemalloc
import zlib

import msgspec
import pytest

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.comparison import explain as explain_module
from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.comparison.explain import Finding, explain, standing_on
from torchdet_lint.verifier.comparison.lasting import Lasting
from torchdet_lint.verifier.comparison.outcome import Divergence, Evidence
from torchdet_lint.verifier.trace import Site, TraceError, Writer
from torchdet_lint.verifier.trace.format import BLOCK
from torchdet_lint.verifier.verification.report import _rare
from torchdet_lint.verifier.verification.text import text
from torchdet_lint.verifier.verification.verify import compare_traces


def op(line, name="mul", phase="forward", **more):
    return Site(f"aten.{name}", phase, "train.py", line, "main", **more)


def make(path, records, sites=None, hash_name="xxh3-64", block=64, aside=(), threads=1):
    """Write a trace: `records` are (site, inputs, digests[, flags, extra words])."""
    order = list(dict.fromkeys(record[0] for record in records))
    numbers = {site: number for number, site in enumerate(order)}
    writer = Writer(path)
    writer.json(b"H", 0, {"hash": hash_name, "environment": {"torch": "2.13.0", "threads": threads, "variables": {}}})
    for kind, rows, *name in (("main", records), *aside):
        stream = writer.stream(kind, *(name or [kind]), role=kind if name else "worker")
        for row in rows:
            numbers.setdefault(row[0], len(numbers))
        writer.json(b"D", stream, list(numbers))
        writer.block(b"R", stream, b"")
        for start in range(0, len(rows), block):
            words = itertools.chain.from_iterable(encode(numbers, *row) for row in rows[start : start + block])
            writer.block(b"R", stream, trace.words(list(words)))
        writer.json(b"F", stream, {"records": len(rows)})
    writer.close()
    return path


def make_tasks(path, records):
    """Write a trace of one thread: `records` are (task, site, inputs, digests)."""
    make(path, [record[1:] for record in records])
    with path.open("ab") as out:
        payload = json.dumps([(n, "task", 1, 0.0, record[0]) for n, record in enumerate(records) if record[0]]).encode()
        out.write(BLOCK.pack(b"T", 0, len(payload), zlib.crc32(payload)) + payload)
    return path


def encode(numbers, site, inputs, digests, flags=0, extra=(), scalars=0):
    return (numbers[site] | len(digests) << 32 | flags << 48, scalars, inputs, *digests, *extra)


def steps(count, start=0):
    return [(op(line), 100 + n, (1000 + n * 10 + line,)) for n in range(start, start + count) for line in range(1, 9)]


@pytest.fixture
def pair(tmp_path):
    def run(a, b, **more):
        options = {"moved": more.pop("moved", False)}
        return compare(make(tmp_path / "a.tdtrace", a, **more), make(tmp_path / "b.tdtrace", b, **more), **options)

    return run


def with_losses(path, values):
    """Add marks to a trace: the loss of each step, and the step, three records a step."""
    rows = [
        row
        for n, value in enumerate(values)
        for row in ((3 * n, "loss", 0, value, ""), (3 * n + 2, "step", 1, 0.0, "SGD 1"))
    ]
    payload = json.dumps(rows).encode()
    with path.open("ab") as out:
        out.write(BLOCK.pack(b"T", 0, len(payload), zlib.crc32(payload)) + payload)
    return path


@pytest.mark.parametrize(
    ("equal", "differing", "cause", "lasts"),
    [
        (0, 3, True, True),
        (0, 2, True, False),
        (4, 4, True, True),
        (4, 3, True, False),
        (2, 0, True, False),
        (0, 6, False, False),
    ],
)
def test_a_difference_lasts_once_the_losses_have_differed_for_long_enough(tmp_path, equal, differing, cause, lasts):
    def run(name, steps, other):
        records = [
            (op(line), 1, (7 + line + (other and cause and step >= equal),))
            for step in range(steps)
            for line in (3, 4, 5)
        ]
        return with_losses(make(tmp_path / name, records), [1.0 + (other and step >= equal) for step in range(steps)])

    ended, growing = run("a", 20, 0), run("b", equal + differing, 1)
    assert Lasting(ended, growing)() == lasts
    outcome = compare(ended, growing, early=True)
    assert outcome.identical == (not cause or not differing)
    assert (outcome.compared, outcome.partings, outcome.losses.unpaired) == (3 * (equal + differing), (), 0)


def test_equal_traces_are_identical(pair):
    outcome = pair(steps(50), steps(50))
    assert outcome.identical
    assert (outcome.compared, outcome.differing, outcome.divergences, outcome.persistence) == (400, 0, (), "")


def test_an_op_with_equal_inputs_and_another_output_is_the_cause(pair):
    a, b = steps(10), steps(10)
    b[33] = (a[33][0], a[33][1], (5,))
    b[34] = (a[34][0], 7, (6,))
    outcome = pair(a, b)
    assert [(d.kind, d.source, d.index) for d in outcome.divergences] == [("cause", "op", 33), ("consequence", "", 34)]
    assert outcome.first.site == op(2)
    assert len(outcome.causes) == 1


def test_a_later_op_with_equal_inputs_is_a_cause_of_its_own(pair):
    a, b = steps(10), steps(10)
    for index in (20, 61):
        b[index] = (a[index][0], a[index][1], (index,))
    assert [d.index for d in pair(a, b).causes] == [20, 61]


def test_every_execution_of_a_place_counts_once(pair):
    a = steps(10)
    b = [(s, i, (d[0] + 1,) if s == op(3) else d) for s, i, d in a]
    (found,) = pair(a, b).causes
    assert (found.differing, found.compared) == (10, 10)


@pytest.mark.parametrize(("same", "kind"), [(True, "transient"), (False, "persistent")])
def test_what_heals_is_told_from_what_lasts(pair, same, kind):
    a, b = steps(4), steps(4)
    b[5] = (a[5][0], a[5][1], (5,))
    b[6] = (a[6][0], 77, a[6][2] if same else (9,))
    assert pair(a, b).persistence == kind


def test_a_draw_from_a_generator_that_nobody_seeded(pair):
    a = [(op(1, "rand"), 0, (11,), trace.RANDOM | trace.UNSEEDED, (901,)), *steps(1)]
    b = [(op(1, "rand"), 0, (12,), trace.RANDOM | trace.UNSEEDED, (902,)), *steps(1)]
    (found,) = pair(a, b).causes
    assert found.source == "random"
    assert found.evidence.unseeded
    assert found.evidence.seeds_equal is False


def test_draws_after_the_first_from_one_generator_follow_from_it(pair):
    flags = trace.RANDOM | trace.UNSEEDED
    a = [(op(n, "rand"), 0, (n,), flags, (901,)) for n in range(1, 5)]
    b = [(op(n, "rand"), 0, (n + 50,), flags, (902,)) for n in range(1, 5)]
    assert [d.kind for d in pair(a, b).divergences] == ["cause"] + ["consequence"] * 3


def test_data_from_outside_names_the_generators_that_differ(pair):
    flags = trace.OUTSIDE
    a = [(op(1, "lift_fresh"), 0, (1,), flags, (1, 5, 6, 0)), *steps(1)]
    b = [(op(1, "lift_fresh"), 0, (2,), flags, (2, 5, 7, 0)), *steps(1)]
    (found,) = pair(a, b).causes
    assert (found.source, found.evidence.generators) == (
        "outside",
        {"python": "equal", "numpy": "differs", "torch": "unused"},
    )


def test_a_checkpoint_that_differs_after_something_else_did_follows_from_it(pair):
    flags = trace.OUTSIDE | trace.ARRIVED
    read = [(op(1, phase="load"), 1, (1,)), (op(2), 2, (2,))]
    for before, kind in ((2, "cause"), (77, "consequence")):
        loaded = [[*read, (op(3), 3, (digest,), flags, (digest, 0, 0, 0, 0))] for digest in (8, 9)]
        loaded[1][1] = (op(2), 2, (before,))
        found = {item.site.line: item for item in pair(*loaded).divergences}
        assert (found[3].kind, found[3].source) == (kind, "outside")
        assert found[3].evidence.loaded
        told = explain(found[3])
        assert told.sentence.startswith("what torch.load read at train.py:1 differed")
        assert told.rule == ""


def test_an_optimizer_that_meets_what_another_process_wrote_races_with_it(pair):
    rows = [[(op(3, phase="optimizer"), 3, (n,), trace.OUTSIDE, (n, 0, 0, 0))] for n in (8, 9)]
    (found,) = pair(*rows).divergences
    assert explain(found).rule == ""
    assert explain(msgspec.structs.replace(found, stream="process spawn 1")).rule == "TDL307"


@pytest.mark.parametrize(
    ("arrival", "stream", "rule"),
    [
        ("", "process spawn 1", "TDL307"),
        ("/lib/multiprocessing/spawn.py", "process spawn 1", "TDL307"),
        ("", "main", ""),
        ("train.py", "process spawn 1", "TDL301"),  # from a queue: whoever sent it decides
    ],
)
def test_memory_that_processes_share_is_told_as_such_where_one_reads_it(pair, arrival, stream, rule):
    rows = []
    for n in (8, 9):
        came = [(op(1, "set_")._replace(file=arrival), 0, (1,))] if arrival else []
        flags = trace.OUTSIDE | trace.SHARED | (trace.ARRIVED if arrival else 0)
        rows.append([*came, (op(3), 3, (n,), flags, (n, 0, 0, 0, *([0] if arrival else [])))])
    (found,) = pair(*rows).divergences
    told = explain(msgspec.structs.replace(found, stream=stream))
    assert found.evidence.shared
    assert told.rule == rule
    assert ("memory that processes share" in told.sentence) == (rule != "TDL301")


def test_what_the_main_thread_reads_of_shared_memory_follows_from_the_processes_that_write_there(tmp_path):
    """The lines are the same: a model that processes train and the main thread tests."""
    shared = {"flags": trace.OUTSIDE | trace.SHARED}
    paths = []
    for n in (8, 9):
        row = (op(3), 3, (n,), *shared.values(), (n, 0, 0, 0))
        twin = ("process", [(op(2), 1, (1,)), row], "spawn 1")
        paths.append(make(tmp_path / str(n), [(op(2), 1, (1,)), row], aside=[twin]))
    (cause,) = compare(*paths).causes
    assert (cause.stream, explain(cause).rule) == ("process spawn 1", "TDL307")


def test_processes_that_race_for_several_tensors_of_a_model_are_one_cause(tmp_path):
    paths = []
    for n in (8, 9):
        read = [(op(line), line, (n,), trace.OUTSIDE | trace.SHARED, (n, 0, 0, 0)) for line in (3, 4, 5)]
        drawn = (op(6, "rand"), 0, (n,), trace.RANDOM | trace.UNSEEDED, (n,))
        aside = ("process", [(op(2), 1, (1,)), *read, drawn], "spawn 1")
        paths.append(make(tmp_path / str(n), [(op(1), 1, (1,))], aside=[aside]))
    report = compare_traces(*paths)
    race, other = report.causes
    assert (race.rule, race.line, other.line) == ("TDL307", 3, 6)
    assert race.message.endswith("; so it was at 2 more of its reads")
    assert report.spread.consequences == 2


def test_several_reads_of_memory_that_one_line_left_unwritten_are_one_cause(tmp_path):
    paths = []
    for n in (8, 9):
        flags = trace.UNWRITTEN | trace.ARRIVED
        reads = [(op(line), 5, (n,), flags, (origin,)) for line, origin in ((3, 0), (4, 0), (6, 1))]
        made = [(op(line, "empty.memory_format"), 0, ()) for line in (1, 2)]
        paths.append(make(tmp_path / str(n), [*made, *reads]))
    one, other = compare_traces(*paths).causes
    assert (one.rule, one.line, other.rule, other.line) == ("TDL501", 1, "TDL501", 2)
    assert one.message.endswith("; so it was at 1 more of its reads")
    assert other.message == "it read memory that nothing had written"


def test_data_of_one_generator_that_come_in_at_several_places_have_one_cause(tmp_path):
    paths = []
    for n in (5, 8):
        came = [
            (op(line, "lift_fresh"), 0, (line + n,), trace.OUTSIDE, (line + n, 5, line + n, 0)) for line in (3, 4, 6)
        ]
        paths.append(make(tmp_path / str(n), [*came, *steps(1)]))
    report = compare_traces(*paths)
    (numpy,) = report.causes
    assert (numpy.rule, numpy.line, numpy.places) == ("TDL102", 3, ("train.py:4", "train.py:6"))
    assert "  also at train.py:4, train.py:6\n" in text(report)
    assert report.spread.consequences == 0


@pytest.mark.parametrize(
    ("states", "rule"),
    [
        ({"python": "equal", "numpy": "unused", "torch": "equal"}, ""),
        ({"python": "equal", "numpy": "equal", "torch": "equal"}, ""),
        ({"python": "equal", "numpy": "unused", "torch": "differs"}, "TDL301"),
        ({"python": "equal", "numpy": "differs", "torch": "equal"}, "TDL301"),
        ({"python": "unused", "numpy": "unused", "torch": "unused"}, "TDL301"),
    ],
)
def test_a_batch_is_laid_to_the_workers_seeds_only_where_a_generator_may_differ(states, rule):
    evidence = Evidence(inputs_equal=True, numbers_equal=True, generators=states)
    item = Divergence(op(3)._replace(op=trace.BATCH), 0, "cause", "outside", evidence)
    assert explain(item).rule == rule


@pytest.mark.parametrize("source", ["number", "order"])
def test_a_generator_that_did_not_differ_is_no_candidate(source):
    for python, numpy in (("equal", "idle"), ("idle", "unused"), ("", "")):
        evidence = Evidence(inputs_equal=True, numbers_equal=False, generators={"python": python, "numpy": numpy})
        also = explain(Divergence(op(3), 0, "cause", source, evidence)).also
        assert ("TDL103" in also, "TDL102" in also) == (python != "equal", numpy != "unused")
        assert {"TDL304", "TDL305"} <= {*also}


@pytest.mark.parametrize(
    ("stream", "name", "rule"),
    [
        ("process spawn 2", "add_.Tensor", "TDL307"),
        ("process rank 1 (spawn)", "add_.Tensor", ""),
        ("main", "add_.Tensor", ""),
        ("process spawn 2", "index_put_", "TDL402"),
    ],
)
def test_an_optimizer_that_turns_equal_values_into_others_races_with_the_process_that_wrote_there(
    pair, stream, name, rule
):
    (found,) = pair(*([(op(3, name, phase="optimizer"), 3, (n,))] for n in (8, 9))).divergences
    assert found.source == "op"
    assert explain(msgspec.structs.replace(found, stream=stream)).rule == rule
    met = msgspec.structs.replace(found, stream=stream, source="order")
    assert explain(met).rule == ("TDL307" if stream == "process spawn 2" else "")


@pytest.mark.parametrize(
    ("states", "rule"), [((5, 5, 3), ""), ((5, 6, 3), "TDL103"), ((0, 0, 4), "TDL102"), ((5, 6, 4), "TDL103")]
)
def test_what_python_chose_is_laid_to_the_generator_that_differs_when_data_next_comes_in(pair, states, rule):
    python_a, python_b, numpy_b = states

    def run(inputs, python, numpy):
        return [
            (op(1, "clone"), inputs, (inputs,)),
            (op(2), inputs, (inputs,)),
            (op(3, "lift_fresh"), 0, (1,), trace.OUTSIDE, (1, python, numpy, 0)),
        ]

    (found,) = pair(run(7, python_a, 3), run(8, python_b, numpy_b)).causes
    assert (found.source, explain(found).rule) == ("order", rule)


@pytest.mark.parametrize(("numpy", "kinds"), [(0, ["cause"]), (6, ["cause", "cause"])])
def test_a_number_that_python_read_and_handed_back_is_no_cause(pair, numpy, kinds):
    def run(seed, other):
        return [
            (op(1, "randint"), 0, (seed,), trace.RANDOM | trace.UNSEEDED, (seed,)),
            (op(2, "_local_scalar_dense"), seed, (seed,)),
            (op(3, "lift_fresh"), 0, (seed + 1,), trace.OUTSIDE, (seed + 1, 0, other, 0)),
        ]

    assert [found.kind for found in pair(run(7, 5), run(8, 5 + numpy)).causes] == kinds


def test_a_generator_that_was_not_drawn_from_since_is_idle(pair):
    def run(states, value):
        extra = [(1, 0, states[0], 0), (value, states[1], states[0], 0)]
        return [(op(n, "lift_fresh"), 0, (value * n,), trace.OUTSIDE, extra[n]) for n in range(2)]

    second = pair(run((5, 6), 1), run((7, 8), 2)).causes[-1]
    assert second.evidence.generators == {"python": "differs", "numpy": "idle", "torch": "unused"}


def test_a_number_from_python_is_a_cause(pair):
    a = [*steps(1), (op(20), 5, (1,), 0, (), 44)]
    b = [*steps(1), (op(20), 5, (2,), 0, (), 45)]
    assert [d.source for d in pair(a, b).causes] == ["number"]


def test_a_generator_that_gave_equal_data_may_have_given_the_number_too(pair):
    def run(number):
        came = (op(1, "lift_fresh"), 0, (7,), trace.OUTSIDE, (7, 10 + number, 0, 0))
        later = (op(3, "lift_fresh"), 0, (8,), trace.OUTSIDE, (8, 10 + number, 0, 0))
        return [came, (op(2), 5, (number,), 0, (), number), later]

    (cause,) = pair(run(1), run(2)).causes
    assert (cause.source, cause.evidence.generators["python"]) == ("number", "idle")
    found = explain(cause)
    assert found.rule == "" and found.also[0] == "TDL103"
    assert found.sentence.endswith("; Python's global generator differs too, and was last drawn from before that")


def test_tensors_met_in_another_order(pair):
    a = [*steps(1), (op(20), 5, (1,)), (op(20), 6, (2,))]
    b = [*steps(1), (op(20), 6, (2,)), (op(20), 5, (1,))]
    assert [d.source for d in pair(a, b).causes] == ["order"]


def test_paths_that_part_meet_again(pair):
    a = steps(20)
    b = a[:50] + [(op(90 + n), n, (n,)) for n in range(5)] + a[50:]
    outcome = pair(a, b)
    (parting,) = outcome.partings
    assert (parting.index, parting.a_ops, parting.b_ops, parting.rejoined) == (50, 0, 5, True)
    assert (parting.after, parting.a, parting.b) == (a[49][0], a[50][0], op(90))
    assert outcome.first.source == "path"
    assert outcome.compared == len(a)


def test_a_longer_run_is_an_answer(pair):
    outcome = pair(steps(10), steps(12))
    (parting,) = outcome.partings
    assert (parting.a, parting.a_ops, parting.b, parting.b_ops, parting.rejoined) == (None, 0, op(1), 16, False)
    assert not outcome.identical


def test_paths_that_never_meet_again_end_the_comparison(pair):
    a, b = steps(3), steps(2) + [(op(200 + n), n, (n,)) for n in range(30)]
    (parting,) = pair(a, b).partings
    assert (parting.a_ops, parting.b_ops, parting.rejoined) == (8, 30, False)


@pytest.mark.parametrize("order", [1, -1])
def test_threads_may_share_their_work_differently(pair, tmp_path, order):
    work = [(op(40 + n), n, (n,)) for n in range(6)]
    a = make(tmp_path / "a.tdtrace", steps(2), aside=[("thread", work[:3]), ("thread", work[3:])])
    b = make(tmp_path / "b.tdtrace", steps(2), aside=[("thread", work[::-1][:5]), ("thread", work[::-1][5:])])
    assert compare(a, b).identical


def test_other_values_in_threads_are_a_difference(tmp_path):
    work = [(op(40 + n), n, (n,)) for n in range(6)]
    other = [*work[:5], (op(45), 5, (99,))]
    a = make(tmp_path / "a.tdtrace", steps(2), aside=[("thread", work)])
    b = make(tmp_path / "b.tdtrace", steps(2), aside=[("thread", other)])
    (found,) = compare(a, b).causes
    assert (found.site, found.stream) == (op(45), "thread")
    assert explain(found).rule == "TDL306"


def named_threads(tmp_path, name, values, main):
    """A trace in which two threads change one tensor: `values` are what each reads and makes."""
    threads = [("thread", [(op(50), read, (made,))], f"thread {who} (work)") for who, read, made in values]
    return make(tmp_path / f"{name}.tdtrace", main, aside=threads)


def test_threads_that_meet_what_others_wrote_race(tmp_path):
    read = [(op(60, "sum"), 1, (1,))]
    a = named_threads(tmp_path, "a", [("one", 0, 11), ("two", 11, 12)], read)
    b = named_threads(tmp_path, "b", [("one", 22, 21), ("two", 0, 22)], [(op(60, "sum"), 2, (2,))])
    (race,) = compare(a, b).causes
    assert (race.site, race.source, race.stream) == (op(50), "race", "thread one (work)")
    told = explain(race)
    assert told.rule == "TDL307"
    assert "thread one (work) read what another thread had written" in told.sentence


def test_an_op_that_differs_in_a_thread_is_the_cause_and_no_race(tmp_path):
    read = [(op(60, "sum"), 1, (1,))]
    a = named_threads(tmp_path, "a", [("one", 5, 11), ("two", 6, 12)], read)
    b = named_threads(tmp_path, "b", [("one", 5, 21), ("two", 7, 13)], [(op(60, "sum"), 2, (2,))])
    (cause,) = compare(a, b).causes
    assert (cause.site, cause.source, cause.stream) == (op(50), "op", "thread one (work)")


def test_tasks_in_another_order_that_do_the_same_are_no_difference(tmp_path):
    work = [(task, op(line), line, (10 * line + n,)) for n, task in enumerate(("one", "two")) for line in (1, 2)]
    end = ("", op(9), 9, (99,))
    a = make_tasks(tmp_path / "a.tdtrace", [*work, end])
    b = make_tasks(tmp_path / "b.tdtrace", [*work[2:], *work[:2], end])
    outcome = compare(a, b)
    assert (outcome.identical, outcome.differing, outcome.partings) == (True, 0, ())
    assert "asyncio" in outcome.notes[0]


def test_a_thread_that_reads_ahead_by_another_amount_is_no_difference(tmp_path):
    work = [(op(40 + n), n, (n,)) for n in range(6)]
    a = make(tmp_path / "a.tdtrace", steps(2), aside=[("thread", work, "thread loader (fill)")])
    b = make(tmp_path / "b.tdtrace", steps(2), aside=[("thread", work[:4], "thread loader (fill)")])
    outcome = compare(a, b)
    assert outcome.identical
    assert outcome.notes == ("the work done in other threads was not the same amount and was not compared",)


@pytest.mark.parametrize(("read", "made", "source"), [(31, 77, "race"), (1, 77, "op")])
def test_a_task_is_compared_with_its_twin(tmp_path, read, made, source):
    one = [("one", op(1), 1, (11,)), ("one", op(2), 2, (12,))]
    two = [("two", op(1), 1, (13,)), ("two", op(2), 2, (14,))]
    changed = [("two", op(1), read, (made,)), ("two", op(2), made, (made + 1,))]
    a = make_tasks(tmp_path / "a.tdtrace", [*one, *two])
    b = make_tasks(tmp_path / "b.tdtrace", [*changed, *one])
    (cause,) = compare(a, b).causes
    assert (cause.task, cause.site, cause.source, cause.index, cause.index_b) == ("two", op(1), source, 2, 0)
    assert explain(cause).sentence.startswith("tasks race: two" if source == "race" else "it read equal values")


def test_tasks_that_went_on_in_another_order_are_named_where_the_main_thread_reads_what_they_left(tmp_path):
    work = [(task, op(line), line, (10 * line + n,)) for n, task in enumerate(("one", "two")) for line in (1, 2)]
    a = make_tasks(tmp_path / "a.tdtrace", [*work, ("", op(9), 9, (99,))])
    b = make_tasks(tmp_path / "b.tdtrace", [*work[2:], *work[:2], ("", op(9), 8, (98,))])
    (cause,) = compare(a, b).causes
    assert (cause.site, cause.source, cause.evidence.overtaking) == (op(9), "race", ("one", "two"))
    why = explain(cause)
    assert (why.rule, why.also) == ("TDL306", ())
    assert why.sentence == f"tasks ran in another order: one came first in run A, two in run B ({op(1).place})"


def test_workers_that_read_ahead_by_another_amount_are_no_difference(tmp_path):
    work = [(op(40 + n), n, (n,)) for n in range(6)]
    a = make(tmp_path / "a.tdtrace", steps(2), aside=[("process", work)])
    b = make(tmp_path / "b.tdtrace", steps(2), aside=[("process", work[:4])])
    assert compare(a, b).identical


def test_hashes_of_different_names_are_not_compared(tmp_path):
    a = make(tmp_path / "a.tdtrace", steps(1))
    b = make(tmp_path / "b.tdtrace", steps(1), hash_name="crc32-sum64")
    with pytest.raises(TraceError, match="not comparable") as raised:
        compare(a, b)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("edits", [0, 20])
def test_long_traces_take_seconds_and_bounded_memory(tmp_path, edits):
    a = steps(12_500)
    b = list(a)
    for n in range(edits):
        at = 1_000 + n * 4_000
        b[at : at + n % 3] = [(op(300 + k), k, (k,)) for k in range(2 + n % 2)]
    for record in range(50_000, 60_000):
        if edits:
            b[record] = (b[record][0], 1, (3,))
    paths = [make(tmp_path / f"{name}.tdtrace", rows, block=2_000) for name, rows in (("a", a), ("b", b))]
    tracemalloc.start()
    begin = time.process_time()
    outcome = compare(*paths)
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(outcome.partings) == edits
    assert seconds < 20
    assert peak < 20e6


def test_a_last_op_that_happens_to_agree_heals_nothing(pair):
    a = steps(10)
    b = [(s, 7, (d[0] + 1,)) for s, i, d in a]
    b[-1] = (a[-1][0], 7, a[-1][2])
    assert pair(a, b).persistence == "persistent"


def training(shift, extra=0, weights=0):
    """Three steps of a program whose lines stand `shift` further down, with other values from `weights` on."""
    sites = [op(line + shift, text=f"x = layer{line}(x)") for line in range(1, 5)]
    back = [
        op(9 + shift, "mm", "backward", text="loss.backward()", forward_op="aten.mul", forward_file="train.py",
           forward_line=line + shift)
        for line in range(4, 0, -1)
    ]  # fmt: skip
    for step in range(3):
        for number, site in enumerate(sites + back):
            yield site, 10 * step + number, (1000 + 10 * step + number + (weights if step else 0),)
        if extra:
            yield op(extra, text="print(loss.item())"), 7, (70 + step,)


def test_lines_that_moved_are_the_same_lines(pair):
    """A comment line above, as between two commits: every op has its twin, and nothing differs."""
    before, after = [*training(0)], [*training(1)]
    assert not pair(before, after).identical
    outcome = pair(before, after, moved=True)
    assert outcome.identical
    assert (outcome.compared, outcome.partings) == (24, ())


def test_what_differs_between_two_commits_is_told_with_its_line(pair):
    outcome = pair([*training(0)], [*training(3, weights=500)], moved=True)
    assert [item.site.line for item in outcome.causes] == [1, 2, 3, 4, 9, 9, 9, 9]
    assert {item.differing for item in outcome.causes} == {2}
    backward = [item.site for item in outcome.causes if item.site.phase == "backward"]
    assert [site.forward_line for site in backward] == [4, 3, 2, 1]


def test_a_line_that_one_commit_alone_has_parts_the_paths_there_and_nowhere_else(pair):
    outcome = pair([*training(0)], [*training(1, extra=20)], moved=True)
    assert [(part.a_ops, part.b_ops) for part in outcome.partings] == [(0, 1), (0, 1), (0, 1)]
    assert outcome.differing == 0


def test_another_statement_on_the_same_line_is_another_place(pair):
    one = [(op(3, text="y = torch.relu(x)"), 1, (10,)), (op(4, text="z = y * 2"), 2, (20,))]
    two = [(op(3, text="y = torch.tanh(x)"), 1, (10,)), (op(4, text="z = y * 2"), 2, (20,))]
    assert pair(one, one, moved=True).identical
    assert pair(one, two, moved=True).partings


def test_a_differing_environment_is_said_first_and_no_rule_explains_the_rest(tmp_path):
    """One thread against four: the op is not nondeterministic, and deterministic mode does not help."""
    a = make(tmp_path / "a.tdtrace", [(op(1, "addmm"), 1, (10,)), (op(2, "index_put_"), 2, (20,))], threads=1)
    b = make(tmp_path / "b.tdtrace", [(op(1, "addmm"), 1, (10,)), (op(2, "index_put_"), 2, (21,))], threads=4)
    report = compare_traces(a, b)
    lines = text(report).splitlines()
    assert lines[0].startswith("✗ 2 runs diverged")
    assert lines[1] == "environments differ: threads: 1 | 4"
    assert (report.first.rule, report.first.also) == ("", ())
    assert "in another environment" in report.first.message
    same = make(tmp_path / "c.tdtrace", [(op(1, "addmm"), 1, (10,)), (op(2, "index_put_"), 2, (21,))], threads=1)
    assert compare_traces(a, same).first.rule == "TDL402"


@pytest.mark.parametrize(
    ("between", "numpy", "kinds"),
    [
        (0, 0, {1: "cause", 2: "consequence", 3: "consequence"}),
        # Something else happened since: the order of files, say, is a cause of its own.
        (1, 0, {1: "cause", 2: "consequence", 3: "cause"}),
        (0, 1, {1: "cause", 2: "consequence", 3: "cause"}),
    ],
)
def test_what_comes_in_right_after_data_that_were_handed_back_is_no_cause(pair, between, numpy, kinds):
    """NumPy read a tensor that differed, without an op: what a library made of it comes in as two tensors."""

    def run(seed):
        drawn = seed if numpy else 0
        return [
            (op(1, "randn"), 0, (seed,), trace.RANDOM | trace.UNSEEDED, (seed,)),
            (op(2, "lift_fresh"), 0, (seed + 1,), trace.OUTSIDE, (seed + 1, 0, 0, seed)),
            *[(op(9, "ones"), 0, (1,))] * between,
            (op(3, "mm"), 0, (seed + 2,), trace.OUTSIDE, (seed + 2, 0, drawn, seed)),
        ]

    assert {item.site.line: item.kind for item in pair(run(70), run(80)).divergences} == kinds


def test_what_follows_from_another_generator_is_no_cause_where_numpy_was_drawn_from_elsewhere(pair):
    """A shuffled order, which torch drew, picks the images; NumPy draws the noise elsewhere and is unseeded too."""

    def run(seed, noise):
        rows = [
            (op(1, "randperm"), 0, (seed,), trace.RANDOM | trace.UNSEEDED, (seed,)),
            (op(2, "_local_scalar_dense"), seed, (seed,)),
        ]
        for step in range(3):
            drawn = noise * (step + 1)
            rows.append((op(3, "lift_fresh"), 0, (seed + step,), trace.OUTSIDE, (seed + step, 0, drawn - noise, seed)))
            rows.append((op(4, "lift_fresh"), 0, (drawn,), trace.OUTSIDE, (drawn, 0, drawn, seed)))
        return rows

    found = {item.site.line: item.kind for item in pair(run(70, 5), run(80, 6)).divergences}
    assert found == {1: "cause", 2: "consequence", 3: "consequence", 4: "cause"}


def batch(*states):
    generators = dict(zip(("python", "numpy", "torch"), states, strict=True))
    return Divergence(
        Site(trace.BATCH, "data", "train.py", 5, "main"), 0, "cause", "outside",
        Evidence(inputs_equal=True, numbers_equal=True, generators=generators),
    )  # fmt: skip


def test_a_batch_is_laid_to_the_workers_generators_only_where_a_generator_differs(tmp_path):
    """Where all three agree the linter's error is told, and not its warning."""
    agreeing, differing = explain(batch("equal", "equal", "equal")), explain(batch("equal", "differs", "equal"))
    assert agreeing.rule == ""
    assert {"TDL304", "TDL305", "TDL104", "TDL301"} <= set(agreeing.also)
    assert differing.rule == "TDL301"
    warned = Finding("TDL301", "no worker_init_fn", str(tmp_path / "train.py"), 20, "warning")
    error = Finding("TDL304", "os.listdir", str(tmp_path / "train.py"), 88, "error")
    for said in ([warned, error], [error, warned]):
        assert standing_on(batch("equal", "equal", "equal"), agreeing, said, tmp_path) is error
    assert standing_on(batch("equal", "differs", "equal"), differing, [warned, error], tmp_path) is warned


def test_a_difference_that_may_follow_is_a_cause_where_the_linter_finds_one_of_its_own(tmp_path, monkeypatch):
    """Data that came in after a tensor that differed was read: nothing but the source tells where it is from."""
    (tmp_path / "train.py").write_text("a\nb\nc\n")
    read = op(2, "_local_scalar_dense")
    taken = op(3, "lift_fresh")
    extra = {"flags": trace.OUTSIDE}
    a = [(op(1), 1, (1,)), (read, 1, (1,)), (taken, 0, (5,), *extra.values(), (5, 0, 0, 0))]
    b = [(op(1), 1, (2,)), (read, 2, (2,)), (taken, 0, (6,), *extra.values(), (6, 0, 0, 0))]
    make(tmp_path / "a.tdtrace", a)
    make(tmp_path / "b.tdtrace", b)
    monkeypatch.chdir(tmp_path)
    named = {}
    for severity in ("error", "warning"):
        found = (Finding("TDL305", "a set", str(tmp_path / "train.py"), 3, severity),)
        monkeypatch.setattr(explain_module, "lint", lambda *_, found=found, **__: found)
        report = compare_traces(tmp_path / "a.tdtrace", tmp_path / "b.tdtrace", lint=True)
        named[severity] = [(cause.line, cause.rule) for cause in report.causes]
        assert report.spread.consequences == 3 - len(report.causes)
    assert named == {"error": [(1, ""), (3, "TDL305")], "warning": [(1, "")]}


def test_an_index_that_differs_first_is_the_cause_and_later_ones_may_follow(pair):
    pick = op(4, "select.int")
    one = [(pick, 9, (1,), 0, (), 1), (op(5), 1, (1,))]
    two = [(pick, 9, (2,), 0, (), 2), (op(5), 2, (2,))]
    (cause,) = pair(one, two).causes
    assert (cause.site, cause.source) == (pick, "number")
    before = [(op(1), 1, (1,))], [(op(1), 1, (7,))]
    found = pair(before[0] + one, before[1] + two).divergences
    assert [(item.kind, item.source) for item in found] == [
        ("cause", "op"),
        ("consequence", "number"),
        ("consequence", ""),
    ]


@pytest.mark.parametrize(("between", "state"), [([], "taken"), ([op(6)], "differs")])
def test_a_generator_that_a_number_may_have_been_drawn_from_says_little_of_the_data_after_it(
    pair, tmp_path, monkeypatch, between, state
):
    """The generator is known to have been drawn from again only where other data came in between."""
    pick, first, data = op(4, "select.int"), op(2, "lift_fresh"), op(9, "lift_fresh")
    runs = []
    for run in (1, 2):
        begin = [(first, 0, (run,), trace.OUTSIDE, (run, 0, 0, 0)), (pick, 9, (run,), 0, (), run)]
        middle = [(site, 0, (7,), trace.OUTSIDE, (7, 10 + run, 0, 0)) for site in between]
        runs.append([*begin, *middle, (data, 0, (run,), trace.OUTSIDE, (run, 20 + run, 0, 0))])
    last = pair(*runs).divergences[-1]
    assert (last.site, last.evidence.generators["python"]) == (data, state)
    found = (Finding("TDL305", "a set", str(tmp_path / "train.py"), 9), Finding("TDL103", "x (line 4)", "train.py", 1))
    monkeypatch.setattr(explain_module, "lint", lambda *_, **__: found)
    monkeypatch.chdir(tmp_path)
    report = compare_traces(tmp_path / "a.tdtrace", tmp_path / "b.tdtrace", lint=True)
    told = next(cause for cause in report.causes if "train.py:9" in (f"{cause.file}:{cause.line}", *cause.places))
    assert told.rule == ("TDL305" if state == "taken" else "TDL103")


@pytest.mark.parametrize(("runs", "k", "share"), [(2, 2, 50), (3, 2, 75), (6, 2, 97), (12, 4, 97), (59, 20, 95)])
def test_equal_runs_say_how_rare_a_fault_they_would_have_seen(runs, k, share):
    assert _rare(runs).startswith(
        f"rare faults: {runs} runs would have shown one that occurs in 1 of {k} runs with a probability of {share} %"
    )
