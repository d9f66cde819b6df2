"""Where, when and how much two runs differ: steps, losses, compiled regions, allocations, the tensors themselves."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import types
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.comparison.losses import MOST_ROWS, Loss, Losses, losses  # noqa: E402
from torchdet_lint.verifier.launch.launch import Program  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.recording.watching import updates  # noqa: E402
from torchdet_lint.verifier.trace import Mark, Timeline, Trace  # noqa: E402
from torchdet_lint.verifier.verification import session as sessions  # noqa: E402
from torchdet_lint.verifier.verification.closer import numbers  # noqa: E402
from torchdet_lint.verifier.verification.closer.look import look  # noqa: E402
from torchdet_lint.verifier.verification.closer.wording import amounts  # noqa: E402
from torchdet_lint.verifier.verification.options import VerifyOptions  # noqa: E402
from torchdet_lint.verifier.verification.outcome import Values  # noqa: E402
from torchdet_lint.verifier.verification.text import text  # noqa: E402
from torchdet_lint.verifier.verification.verify import compare_traces  # noqa: E402


def recorded(path, body, **options):
    with Recorder(path, roots=[os.path.dirname(__file__)], **options):  # noqa: PTH120
        body()
    return path


def training(shift=0.0, at=2, optimizer=torch.optim.SGD):
    """Two passes over three batches; the input of step `at` is shifted."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    optimizer = optimizer(net.parameters(), lr=0.1)
    data = torch.utils.data.DataLoader(torch.randn(6, 4), batch_size=2)
    step = 0
    for _ in range(2):
        for batch in data:
            step += 1
            pushed = torch.full((), shift if step == at else 0.0)
            loss = net(batch + pushed).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def test_steps_losses_and_passes_are_marked(tmp_path):
    opened = Trace(recorded(tmp_path / "a.tdtrace", training))
    marks = opened.marks(opened.main)
    assert [mark.kind for mark in marks] == ["seed", *["pass", *["loss", "step"] * 3] * 2]
    assert [mark.number for mark in marks if mark.kind == "pass"] == [1, 2]
    assert [mark.number for mark in marks if mark.kind == "step"] == [1, 2, 3, 4, 5, 6]
    values = [mark.value for mark in marks if mark.kind == "loss"]
    assert values[0] > values[3] > 0
    ops = [site.op for site in opened.sites(opened.main)]
    assert "aten._local_scalar_dense" not in ops[ops.index("aten.mean") :]
    assert torch.autograd.backward.__module__ == "torch.autograd"
    assert not hasattr(torch.autograd.backward, "__wrapped__")


def test_the_first_difference_has_its_step_and_its_pass_and_the_losses_are_told_by_step(tmp_path):
    a = recorded(tmp_path / "a.tdtrace", training)
    b = recorded(tmp_path / "b.tdtrace", lambda: training(0.25, at=5))
    report = compare_traces(a, b)
    assert (report.first.step, report.first.epoch) == (5, 2)
    losses = report.losses
    assert (losses.compared, losses.differing, losses.first.step, losses.last.step) == (6, 2, 5, 6)
    assert losses.largest == max(abs(row.a - row.b) for row in losses.rows)
    assert "first in step 5, pass 2 over the data" in text(report)
    assert "loss: differs from step 5 on" in text(report)


def test_a_timeline_counts_the_optimizer_that_makes_the_most_steps():
    marks = [Mark(3, "step", 1, 0.0, "G 1"), Mark(5, "step", 1, 0.0, "D 2"), Mark(9, "step", 2, 0.0, "D 2")]
    when = Timeline(marks)
    assert [when.step(index) for index in (0, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]
    assert Timeline(()).step(7) == Timeline(()).epoch(7) == 0


def test_many_losses_are_thinned_and_what_is_no_number_is_counted():
    def of(values):
        return Timeline([Mark(n, "loss", 0, value, "") for n, value in enumerate(values)])

    one = [1.0] * 5000
    two = [*one]
    two[1237], two[4000] = 1.5, float("nan")
    told = losses(of(one), of([*two, 7.0]))
    assert (told.compared, told.differing, told.unpaired, told.not_finite, told.largest) == (5000, 2, 1, 1, 0.5)
    assert len(told.rows) <= MOST_ROWS
    assert 1.5 in [row.b for row in told.rows]
    assert losses(of([]), of([])) is None


def packed(kind, *values):
    return struct.pack(f"<{len(values)}{kind}", *values)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("dtype", "kind", "a", "b", "expected"),
    [
        ("float32", "f", [1, 2], [1, 2], (0, 0.0, 0, (), 0)),
        ("float32", "f", [1, 2, 4], [1, 2 + 2**-22, 4], (1, 2**-22, 1, (1,), 0)),
        ("float32", "f", [0.0, 1], [-0.0, 1], (1, 0.0, 0, (0,), 0)),
        ("float32", "f", [-(2**-149), 1], [2**-149, 1], (1, 2**-148, 2, (0,), 0)),
        ("float64", "d", [1e300, 1], [-1e300, 1], (1, 2e300, 2**62, (0,), 0)),
        ("float32", "f", [NAN, 1, 2], [1, 1, 2.5], (2, 0.5, 2**21, (2,), 1)),
        ("float32", "f", [INF], [1], (1, 0.0, 0, (0,), 1)),
        ("int64", "q", [3, 5], [3, -5], (1, 10.0, 0, (1,), 0)),
        ("bool", "?", [True, False], [True, True], (1, 1.0, 0, (1,), 0)),
    ],
)
def test_how_much_two_tensors_differ(dtype, kind, a, b, expected):
    size = numbers.compare(dtype, [len(a)], packed(kind, *a), packed(kind, *b))
    assert (size.differing, size.largest, size.ulp, size.place, size.not_finite) == expected
    assert size.elements == len(a)


def test_losses_without_an_optimizer_are_told_by_how_many_differ():
    told = Losses(3, 2, 1.0, 0.5, Loss(0, 1.0, 2.0), Loss(0, 1.0, 1.5))
    (line,) = amounts(types.SimpleNamespace(values=(), verdict="diverged", losses=told))
    assert line.startswith("loss: differs in 2 of 3, first (1 | 2), by at most 1 ")


def test_equal_losses_are_told_with_the_last_for_it_may_be_no_number():
    nan = float("nan")
    told = Losses(2, 0, 0.0, 0.0, None, Loss(2, nan, nan))
    (line,) = amounts(types.SimpleNamespace(values=(), verdict="diverged", losses=told))
    assert line == "loss: equal in both runs, 2 of 2; the last is nan"


@pytest.mark.parametrize(
    ("not_finite", "said"),
    [
        (4, "4 of 8 of w and 1 more tensor differ, all where a run has no finite number: nan | 1 at [0]"),
        (3, "4 of 8 of w and 1 more tensor differ, the largest by 0 (relative 0): nan | 1 at [0]; 3 not finite"),
    ],
)
def test_a_difference_without_a_size_is_told_as_such(not_finite, said):
    fields = {"op": "aten.mul", "phase": "forward", "step": 0, "tensors": 2, "tensors_differing": 2, "name": "w"}
    size = {"dtype": "float32", "shape": (8,), "elements": 8, "differing": 4, "largest": 0.0, "relative": 0.0}
    value = Values(**fields, **size, ulp=0, index=(0,), a=float("nan"), b=1.0, not_finite=not_finite)
    (line,) = amounts(types.SimpleNamespace(values=(value,), verdict="diverged", losses=None))
    assert line == f"values: {said}"


def test_the_place_of_the_largest_difference_is_told_by_its_index():
    a, b = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)
    b[0, 1, 1], b[1, 2, 3] = 1.0, 3.0
    size = numbers.compare("float32", [2, 3, 4], *(bytes(t.flatten().view(torch.uint8).tolist()) for t in (a, b)))
    assert (size.place, size.a, size.b, size.relative) == ((1, 2, 3), 0.0, 3.0, 1.0)


class Session(NamedTuple):
    """What `look` needs of a session: the bodies of two runs, each run again in a fork."""

    folder: object
    bodies: tuple
    results: tuple = (0, 1)
    workspace: object = types.SimpleNamespace(in_place="")

    def closeup(self, number, stream, targets, replay):
        room = self.folder / f"{number}.closeup"
        room.mkdir()
        if not os.fork():
            order = {"folder": str(room), "stream": stream, "targets": targets, "replay": replay}
            recorded(self.folder / "again.tdtrace", self.bodies[number], closeup=order)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        return room


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_second_pass_keeps_the_tensors_at_the_first_difference_and_at_the_first_parameter(tmp_path):
    bodies = (training, lambda: training(0.5, at=2))
    paths = [recorded(tmp_path / f"{number}.tdtrace", body) for number, body in enumerate(bodies)]
    values = look(Session(tmp_path, bodies), compare(*paths), replay=5)
    first, parameter = values
    assert (first.op, first.step, first.elements, first.differing) == ("aten.full", 2, 1, 1)
    assert (first.a, first.b, first.largest, first.relative) == (0.0, 0.5, 0.5, 1.0)
    assert (parameter.phase, parameter.step, parameter.name) == ("optimizer", 2, "weight")
    assert (parameter.tensors, parameter.tensors_differing, parameter.shape) == (2, 2, (1, 4))
    assert 0 < parameter.largest < 1
    assert (parameter.differing, parameter.elements) == (4, 4)


@pytest.fixture
def two_ranks():
    """A mesh of two processes, of which one is there: what it asks the other for comes at once, and means nothing."""
    tensors = pytest.importorskip("torch.distributed.tensor")
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    torch.distributed.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=2)
    try:
        yield tensors.DTensor, torch.distributed.init_device_mesh("cpu", (2,)), [tensors.Shard(1)]
    finally:
        torch.distributed.destroy_process_group()


def test_a_part_of_a_tensor_that_nothing_has_written_is_told_where_it_was_allocated(tmp_path, two_ranks):
    pytest.importorskip("torch.distributed.fsdp")
    kind, mesh, placements = two_ranks

    def body(value):
        shape = kind.from_local(torch.ones(2, 3), mesh, placements)
        weight = torch.empty_like(shape).to_local()  # the allocation
        (ctypes.c_float * 6).from_address(weight.data_ptr())[:] = [value] * 6
        every = torch.empty(12)
        (ctypes.c_float * 12).from_address(every.data_ptr())[:] = [value + 1] * 12
        torch.ops.fsdp.all_gather_copy_in([torch.ones(6)], every, [6], 6, 0)
        torch.ops.fsdp.all_gather_copy_in([weight.view(-1)], every, [6], 6, 0)  # what FSDP2 sends to the other

    paths = [recorded(tmp_path / f"{value}.tdtrace", lambda value=value: body(value)) for value in (1, 2)]
    (cause,) = compare_traces(*paths).causes
    assert (cause.rule, cause.source, cause.op) == ("TDL501", "unwritten", "fsdp.all_gather_copy_in")
    assert cause.line == body.__code__.co_firstlineno + 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_second_pass_asks_no_other_process_for_a_part_of_a_tensor(tmp_path, two_ranks):
    kind, mesh, placements = two_ranks

    def body(factor):
        net = torch.nn.Module()
        net.weight = torch.nn.Parameter(kind.from_local(torch.ones(2, 3), mesh, placements) * factor)
        net.weight.grad = torch.ones_like(net.weight)
        torch.optim.SGD(net.parameters(), lr=0.1).step()

    bodies = (lambda: body(2.0), lambda: body(3.0))
    paths = [recorded(tmp_path / f"{number}.tdtrace", body) for number, body in enumerate(bodies)]
    first, parameter = look(Session(tmp_path, bodies), compare(*paths), replay=5)
    assert (first.op, first.shape, first.differing, first.a, first.b) == ("aten.mul.Tensor", (2, 3), 6, 2.0, 3.0)
    assert first.one_ulp == 0.0  # the other process does not repeat the op
    assert (parameter.name, parameter.shape, parameter.differing) == ("weight", (2, 3), 6)


def test_a_second_pass_that_is_interrupted_is_the_last(tmp_path, monkeypatch):
    session = sessions.Session(Program("script", "train.py"), VerifyOptions(), tmp_path, None)
    ended = types.SimpleNamespace(status="interrupted")
    monkeypatch.setattr(session, "_started", lambda *_: ended)
    with pytest.raises(KeyboardInterrupt):
        session.closeup(0, "main", [1], 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_what_an_optimizer_keeps_for_a_parameter_is_called_so(tmp_path, monkeypatch):
    monkeypatch.setattr(updates, "watch", lambda *_: None)
    bodies = [lambda shift=shift: training(shift, optimizer=torch.optim.Adam) for shift in (0.0, 0.5)]
    paths = [recorded(tmp_path / f"{number}.tdtrace", body) for number, body in enumerate(bodies)]
    _, kept = values = look(Session(tmp_path, bodies), compare(*paths), replay=5)
    assert kept.name == "exp_avg of weight"
    line = amounts(types.SimpleNamespace(values=values, verdict="", losses=None))[-1]
    assert line.startswith("the optimizer, in step 2: 4 of 4 of exp_avg of weight differ")


@pytest.mark.parametrize(
    ("differing", "said"),
    [
        ((0, 0), ["values: a second pass showed no difference at aten.add: how much differs is not established"]),
        ((0, 1), ["values: a second pass showed no difference at aten.add", "the optimizer, in step 1: 1 of 2 of w "]),
        ((1, 0), ["values: 1 of 2 of the output of aten.add differ, "]),
    ],
)
def test_what_is_not_established_is_said_only_where_nothing_is(differing, said):
    places = (("aten.add", "forward", ""), ("optim.sgd", "optimizer", "w"))
    values = [
        Values(op, phase, 1, 1, count, name, "float32", (2,), 2, count, 0.5, 0.5, 0, (0,), 1.0, 1.5)
        for (op, phase, name), count in zip(places, differing, strict=True)
    ]
    lines = amounts(types.SimpleNamespace(values=values, verdict="", losses=None))
    assert [line[: len(start)] for line, start in zip(lines, said, strict=True)] == said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_tensor_of_another_shape_is_told_by_its_shapes(tmp_path):
    bodies = [lambda rows=rows: torch.stack([torch.ones(3).mul(2)] * rows) for rows in (2, 4)]
    paths = [recorded(tmp_path / f"{number}.tdtrace", body) for number, body in enumerate(bodies)]
    [kept] = values = look(Session(tmp_path, bodies), compare(*paths))
    assert (kept.shape, kept.other_shape, kept.differing) == ((2, 3), (4, 3), 0)
    assert amounts(types.SimpleNamespace(values=values, verdict="", losses=None)) == [
        "values: the output of aten.stack has the shape [2, 3] | [4, 3]"
    ]


class Wobbly:
    """An op of ours whose second output is off by `size` in every call but the first of a run."""

    def __init__(self):
        self.library = torch.library.Library("wobbly", "DEF")
        self.library.define("add(Tensor x) -> Tensor")
        self.library.impl("add", self.add, "CPU")
        self.size, self.calls = 0.0, 0

    def add(self, x):
        self.calls += 1
        out = x + 1
        out[1] += self.size * (self.calls % 3)
        return out


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_an_op_is_repeated_on_the_same_inputs_and_its_difference_is_held_against_one_ulp(tmp_path):
    op = Wobbly()

    def body(size):
        op.size, op.calls = size, 0
        torch.ops.wobbly.add(torch.arange(4.0))

    for name, size, expected in (("small", 2**-22, "rounding"), ("large", 1.0, "larger")):
        folder = tmp_path / name
        folder.mkdir()
        bodies = (lambda: body(0.0), lambda size=size: body(size))
        paths = [recorded(folder / f"{number}.tdtrace", one) for number, one in enumerate(bodies)]
        (value,) = look(Session(folder, bodies), compare(*paths), replay=9)
        assert (value.op, value.differing, value.index, value.size) == ("wobbly.add", 1, (1,), expected)
        # Run A always gives the same; run B one of three results each time.
        assert (value.replayed, value.replay_differing) == (18, 6)
        assert value.replay_low < 6 / 18 < value.replay_high


def test_memory_that_nothing_has_written_is_told_where_it_was_allocated(tmp_path):
    def body(value):
        scratch = torch.empty(3)  # the allocation
        # Behind torch's back: what was in that memory before.
        (ctypes.c_float * 3).from_address(scratch.data_ptr())[:] = [value] * 3
        return scratch + 1  # the reader

    paths = [recorded(tmp_path / f"{value}.tdtrace", lambda value=value: body(value)) for value in (1, 2)]
    (cause,) = compare_traces(*paths).causes
    first = body.__code__.co_firstlineno
    assert (cause.rule, cause.source, cause.line) == ("TDL501", "unwritten", first + 1)
    assert cause.reader.endswith(f"test_closer.py:{first + 4}")
    assert "allocated there, read at" in text(compare_traces(*paths))


KERNELS = """
cpp_fused_sum_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
        out_ptr0[0] = tmp_acc0;
''')
cpp_fused_add_embedding_dense_backward_1 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
        atomic_add_vec<float, 2, 1>(out_ptr0, tmp1, tmp0);
''')
"""


@pytest.mark.parametrize(
    ("source", "op", "said"),
    [
        (KERNELS, f"{trace.REGION}.embedding_dense_backward", "its embedding_dense_backward adds"),
        (KERNELS.replace("_embedding", "_x"), f"{trace.REGION}.cpp_fused_add_x_dense_backward_1", "backward_1 adds"),
        (KERNELS.replace("atomic_add_vec<", "add_vec<"), trace.REGION, "a kernel of Inductor's may add"),
        (None, trace.REGION, "a kernel of Inductor's may add"),
    ],
)
def test_a_compiled_region_is_one_op_whatever_runs_inside(tmp_path, monkeypatch, source, op, said):
    """`CompiledFxGraph` is what Inductor makes of a graph; here one that is written by hand."""

    class CompiledFxGraph:
        mutated_input_idxs = (1,)
        source_code = source

        def __call__(self, inputs):
            first, second = inputs
            inputs.clear()
            second.add_(1)
            return (first * self.factor,)

    home = types.ModuleType("torch._inductor.output_code")
    CompiledFxGraph.__module__ = home.__name__
    home.CompiledFxGraph = CompiledFxGraph
    monkeypatch.setitem(sys.modules, home.__name__, home)
    graph = CompiledFxGraph()

    def body(factor):
        graph.factor = factor
        state = torch.zeros(2)
        (out,) = graph([torch.ones(2), state])
        return out + state

    paths = [recorded(tmp_path / f"{factor}.tdtrace", lambda factor=factor: body(factor)) for factor in (2, 3)]
    opened = Trace(paths[0])
    assert [site.op for site in opened.sites(opened.main)] == [
        "aten.zeros",
        "aten.ones",
        op,
        "aten.add.Tensor",
    ]
    differing = compare_traces(*paths)
    (cause,) = differing.causes
    for report in (differing, compare_traces(paths[0], paths[0])):
        assert any("inside of compiled code" in note for note in report.not_covered)
    assert (cause.op, cause.source, cause.rule) == (op, "op", "TDL203")
    assert "torch.compile compiled" in cause.message
    assert f"{said} in another order" in cause.message.replace(" with atomics", "")
    assert not hasattr(CompiledFxGraph.__call__, "__wrapped__")


def test_a_tolerance_is_told_after_the_bitwise_verdict_and_decides_the_exit_status(tmp_path, monkeypatch, capsys):
    from torchdet_lint.verifier.cli import main

    monkeypatch.chdir(tmp_path)
    bodies = {
        "a": training,
        "near": lambda: training(1e-5),
        "far": lambda: training(0.5),
        "none": lambda: torch.ones(1),
        "nan": lambda: training(NAN),
    }
    for name, body in bodies.items():
        recorded(tmp_path / f"{name}.tdtrace", body)

    def compared(name, *options):
        status = main(["compare", "a.tdtrace", f"{name}.tdtrace", "--no-lint", *options])
        return status, capsys.readouterr().out.splitlines()

    status, lines = compared("near", "--tolerance", "1e-3")
    assert (status, lines[0][:18], lines[1][:28]) == (0, "✗ 2 runs diverged ", "✓ within the tolerance 0.001")
    assert compared("near")[0] == 1
    status, lines = compared("near", "--tolerance", "1e-9")
    assert (status, lines[1][:26]) == (1, "✗ not within the tolerance")
    assert compared("far", "--tolerance", "1e-3")[0] == 1
    status, lines = compared("none", "--tolerance", "0.5")
    assert (status, "no loss is in both recordings" in lines[1]) == (1, True)
    status, lines = compared("nan", "--tolerance", "0.5")
    assert (status, "not finite in one run" in lines[1]) == (1, True)
    assert compared("a", "--tolerance", "0")[0] == 0


def test_a_trace_is_shown_by_step_by_op_and_by_place_without_torch(tmp_path, monkeypatch, capsys):
    from torchdet_lint.verifier import cli

    path = str(recorded(tmp_path / "a.tdtrace", training))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    def shown(*options):
        status = cli.main(["show", path, *options])
        told = capsys.readouterr()
        return status, told.out.splitlines(), told.err

    status, lines, _ = shown()
    assert status == 0
    assert any(line.startswith("main: ") and "6 optimizer steps, loss " in line for line in lines)
    assert any(line.split() == ["6", "aten.addmm,", "forward"] for line in lines)
    _, lines, _ = shown("--step", "5")
    assert lines[0].startswith("step 5, loss ")
    everything = [json.loads(line) for line in shown("--output-format", "json", "--limit", "9999")[1]]
    assert [row["index"] for row in everything] == list(range(len(everything)))
    assert len(lines) - 1 == sum(row["step"] == 5 for row in everything)
    row = next(row for row in everything if row["op"] == "aten.normal_" or row["flags"])
    assert "random" in row["flags"]
    _, lines, _ = shown("--op", "addmm", "--limit", "2")
    assert [line.split()[1] for line in lines if "#" in line] == ["aten.addmm,", "aten.addmm,"]
    assert lines[-1] == "… and 4 more (--limit 6 shows them)"
    place = f"{row['file']}:{row['line']}"
    assert all(f", {place}" in line for line in shown("--at", place)[1] if "#" in line)
    assert shown("--at", "nowhere.py")[1][0].startswith("no record fits; main: ")
    said = f"torchdet-lint: error: show: {path}: no stream rank 7; there are main\n"
    assert shown("--stream", "rank 7")[::2] == (2, said)
    assert shown("--limit", "0")[0] == 2


def test_what_a_strange_trace_holds_steers_no_terminal(tmp_path, capsys):
    from torchdet_lint.verifier import cli

    writer = trace.Writer(tmp_path / "a.tdtrace")
    writer.json(b"H", 0, {"program": ["\x1b[2Jx.py\n"], "environment": {}})
    writer.json(b"F", writer.stream("main", "main"), {"records": 0})
    writer.close()
    assert cli.main(["show", str(tmp_path / "a.tdtrace")]) == 0
    assert capsys.readouterr().out.startswith("program: �[2Jx.py�\n")
    writer = trace.Writer(tmp_path / "b.tdtrace")
    writer.json(b"H", 0, {"environment": {}})
    writer.json(b"T", writer.stream("main", "main"), [[1, "step", "x", 0, ""]])
    writer.close()
    assert cli.main(["show", str(tmp_path / "b.tdtrace")]) == 2
    assert "damaged" in capsys.readouterr().err


def test_what_a_program_expects_to_differ_is_told_with_its_reason_and_is_no_divergence(tmp_path):
    from torchdet_lint.verifier import expected

    def body(noise, *, leaks=False, longer=False):
        torch.manual_seed(0)
        weight = torch.ones(3)
        with expected("the noise\nof a demo"), expected("within"):
            shown = weight * noise
            for _ in range(1 + longer):
                shown = shown.sin()
        total = weight + (shown if leaks else weight)
        return [total.exp(), total.cos(), total.tan(), total.abs(), total.neg()]

    def compared(one, two):
        paths = [tmp_path / "a.tdtrace", tmp_path / "b.tdtrace"]
        for path, options in zip(paths, (one, two), strict=True):
            recorded(path, lambda options=options: body(**options))
        return compare_traces(*paths)

    report = compared({"noise": 1.0}, {"noise": 2.0})
    assert (report.verdict, report.spread.differing) == ("identical", 0)
    told = [note for note in report.not_covered if note.startswith("expected to differ: ")]
    assert [note.split()[4:5] + note.split("executions ")[1:] for note in told] == [
        ["aten.mul.Tensor,", "(the noise of a demo)"],
        ["aten.sin,", "(the noise of a demo)"],
    ]
    # What leaves the block is no longer expected, and has its cause there.
    report = compared({"noise": 1.0, "leaks": True}, {"noise": 2.0, "leaks": True})
    assert report.verdict == "diverged"
    assert [cause.op for cause in report.causes] == ["aten.mul.Tensor", "aten.sin"]
    assert "expected to differ (the noise of a demo), and ops outside" in report.causes[0].message
    report = compared({"noise": 1.0}, {"noise": 1.0, "longer": True})
    assert report.verdict == "identical"
    assert "expected to go another way: the noise of a demo" in report.not_covered
    with pytest.raises(ValueError, match="needs a reason"):
        expected(" ")


def test_what_differs_before_and_after_an_expected_block_is_a_divergence(tmp_path):
    from torchdet_lint.verifier import expected

    @expected("of no matter")
    def inside(value):
        return value * 2

    def body(before, after):
        first = torch.full((2,), before)
        inside(first)
        return torch.full((3,), after)

    path = recorded(tmp_path / "a.tdtrace", lambda: body(1.0, 1.0))
    for values in ((2.0, 1.0), (1.0, 2.0)):
        other = recorded(tmp_path / "b.tdtrace", lambda values=values: body(*values))
        report = compare_traces(path, other)
        assert report.verdict == "diverged"
        assert report.first.op == "aten.full"
