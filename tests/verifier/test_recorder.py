from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import ctypes
import functools
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.comparison.explain import explain  # noqa: E402
from torchdet_lint.verifier.comparison.outcome import Divergence, Evidence  # noqa: E402
from torchdet_lint.verifier.recording import dispatcher, hashing  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.remedies.memory import fill_mode  # noqa: E402
from torchdet_lint.verifier.trace import Trace  # noqa: E402
from torchdet_lint.verifier.trace.listing import Asked, overview, records  # noqa: E402


def record(tmp_path, body, name="a"):
    path = tmp_path / f"{name}.tdtrace"
    with Recorder(path):
        body()
    return Trace(path)


def rows(opened, stream=None):
    stream = stream or opened.main
    sites = opened.sites(stream)
    return [(sites[record.site], record) for record in opened.records(stream)]


def named(opened, op):
    return [(site, record) for site, record in rows(opened) if site.op == op]


def here() -> int:
    import inspect

    return inspect.currentframe().f_back.f_lineno


class Picked(torch.autograd.Function):
    """An indexing whose gradient is written by hand."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        return table[index]

    @staticmethod
    def backward(ctx, grad):
        return torch.zeros(ctx.rows, grad.size(1)).index_put_(ctx.saved_tensors, grad, accumulate=True), None


def test_an_op_in_a_backward_of_the_users_own_has_the_line_there(tmp_path):
    """Also where the line that calls `backward()` stands in a method of that name."""

    class Trainer:
        def backward(self, loss):
            loss.backward()

    def body():
        table = torch.randn(10, 4, requires_grad=True)
        Trainer().backward(Picked.apply(table * 2, torch.tensor([1, 1, 3])).sum())

    opened = record(tmp_path, body)
    (site, _), *_ = named(opened, "aten.index_put_")
    # Before 3.11, code knows only its own name.
    function = "Picked.backward" if sys.version_info >= (3, 11) else "backward"
    assert (site.phase, site.function, site.forward_op, site.forward_line) == ("backward", function, "", 0)
    assert site.line == Picked.backward.__code__.co_firstlineno + 2
    assert site.text.startswith("return torch.zeros")
    called = Trainer.backward.__code__.co_firstlineno + 1
    by_engine = [site for site, _ in rows(opened) if site.phase == "backward" and site.line == called]
    assert any(site.forward_op == "aten.mul.Tensor" for site in by_engine)
    told = explain(Divergence(site, 0, "cause", "op", Evidence(inputs_equal=True, numbers_equal=True)))
    assert told.rule == "TDL402"
    assert told.sentence == "aten.index_put_ is not deterministic on these inputs"


def test_forward_and_backward_ops_have_the_users_lines(tmp_path):
    lines = {}

    def body():
        table = torch.randn(10, 4, requires_grad=True)
        lines["forward"] = here() + 1
        picked = table[torch.tensor([1, 1, 3])]
        lines["backward"] = here() + 1
        picked.sum().backward()

    opened = record(tmp_path, body)
    (site, _), *_ = named(opened, "aten.index_put")
    assert (site.phase, site.line) == ("backward", lines["backward"])
    assert (site.forward_op, site.forward_line) == ("aten.index.Tensor", lines["forward"])
    assert site.forward_file.endswith("test_recorder.py")


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: x.expand(3, 5, 4),
        lambda x: torch.utils.checkpoint.checkpoint(torch.tanh, x, use_reentrant=False),
        lambda x: x[1:3],
    ],
)
def test_backward_finds_its_forward_line_for_many_kinds_of_node(tmp_path, forward):
    lines = []

    def body():
        x = torch.ones(5, 4, requires_grad=True)
        lines.append(here() + 1)
        y = forward(x)
        lines.append(here())
        y.mul(2).sum().backward()

    opened = record(tmp_path, body)
    backward = {site.forward_line for site, _ in rows(opened) if site.phase == "backward" and site.forward_op}
    of_lambda = forward.__code__.co_firstlineno
    assert backward & {lines[0], of_lambda}


def test_arguments_written_in_place_are_digested(tmp_path):
    def body(value):
        x = torch.zeros(4, 4)
        x[:, 1] = value
        torch.add(x, 1, out=torch.empty(4, 4))
        x.add_(1)

    one = rows(record(tmp_path, lambda: body(1.0), "a"))
    two = rows(record(tmp_path, lambda: body(2.0), "b"))
    differ = [a[0].op for a, b in zip(one, two, strict=True) if a[1].digests != b[1].digests]
    assert differ[-2:] == ["aten.add.out", "aten.add_.Tensor"]
    assert differ[-3] in ("aten.copy_", "aten.fill_.Scalar", "aten.fill_.Tensor")


def test_data_from_numpy_carries_the_digests_of_the_generators(tmp_path):
    def body(seed):
        np.random.seed(seed)
        torch.from_numpy(np.random.rand(3)).sum()

    words = []
    for seed in (1, 1, 2):
        np.random.seed(99)
        opened = record(tmp_path, lambda seed=seed: body(seed))
        words.append(named(opened, "aten.lift_fresh")[0][1].outside)
    assert words[0] == words[1]
    assert words[0][0] != words[2][0]
    assert words[0][2] != words[2][2]
    assert words[0][1] == 0, "Python's generator was not used"


def test_what_torch_load_reads_is_told_from_a_batch(tmp_path):
    torch.save(torch.ones(3), tmp_path / "x.pt")

    def body():
        loaded = torch.load(tmp_path / "x.pt")
        loaded.mul(2)
        del loaded
        torch.from_numpy(np.ones(3)).mul(2)

    opened = record(tmp_path, body)
    sites = opened.sites(opened.main)
    arrivals = [one.arrival for site, one in rows(opened) if site.op == "aten.mul.Tensor"]
    assert sites[arrivals[0]].phase == "load"
    assert arrivals[1] is None


def test_a_write_through_numpy_is_noticed_where_it_is_read(tmp_path):
    def body(value):
        array = np.zeros(1000)
        x = torch.from_numpy(array)
        array[3] = value
        x.mul(2)

    marks = [named(record(tmp_path, lambda v=v: body(v), f"t{v}"), "aten.mul.Tensor")[0][1] for v in (1, 2)]
    assert all(mark.flags & trace.OUTSIDE for mark in marks)
    assert marks[0].outside[0] != marks[1].outside[0]


@pytest.mark.parametrize("written", [False, True])
def test_a_view_of_all_that_came_from_numpy_is_no_second_arrival(tmp_path, written):
    """Images are often transposed and then read: the bytes are those that were digested as they came."""

    def body():
        image = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        x = torch.from_numpy(image)
        if written:
            image[1, 1, 1] = 7
        return x.permute(2, 0, 1).contiguous(), x.view(4, 6).neg(), x[:1].neg()

    opened = record(tmp_path, body)
    read = [*named(opened, "aten.clone"), *named(opened, "aten.neg")]
    assert [bool(row.flags & trace.OUTSIDE) for _, row in read] == [written, False, True]
    assert read[0][1].inputs == read[1][1].inputs


@pytest.mark.parametrize("hand", [lambda x: x.numpy(), np.asarray, lambda x: np.stack([x, x])[0]])
def test_what_numpy_is_handed_is_recorded_as_a_read(tmp_path, hand):
    def body(value):
        x = torch.full((3,), value)
        x[1:].detach()
        return hand(x[1:])

    inherited = "numpy" not in vars(torch.Tensor)
    opened = [record(tmp_path, lambda v=v: body(v), f"{v}") for v in (1.0, 1.0, 2.0)]
    (site, one), *_ = named(opened[0], trace.HANDED)
    assert (Path(site.file).name, site.phase) == (Path(__file__).name, "forward")
    others = [named(one, trace.HANDED)[0][1] for one in opened[1:]]
    assert one == others[0]
    assert one.inputs != others[1].inputs
    assert one.digests != others[1].digests
    assert inherited == ("numpy" not in vars(torch.Tensor))


def test_memory_that_numpy_is_handed_to_fill_is_not_read(tmp_path):
    def body():
        x = torch.empty(4)
        x.numpy()[:] = 3
        with pytest.raises(RuntimeError):
            torch.ones(2, requires_grad=True).numpy()

    assert [site.op for site, _ in rows(record(tmp_path, body))] == ["aten.empty.memory_format", "aten.ones"]


def _writes_through_numpy(values, keep):
    torch.manual_seed(0)
    held = []

    def body():
        x = torch.zeros(4, 2)
        array = x[1:].numpy()
        if keep:
            held.append(array)
        x.mul(2)
        array[:, 0] = values[0]
        x.mul(2)
        x.mul(2)
        x.add_(1)
        array[:, 1] = values[1]
        del array
        x[2:].mul(2)
        x.mul(2)

    return body


@pytest.mark.parametrize("keep", [True, False])
def test_what_numpy_writes_to_a_tensor_came_from_outside_once(tmp_path, keep):
    opened = [
        record(tmp_path, _writes_through_numpy(v, keep), f"{n}") for n, v in enumerate([(1, 2), (1, 2), (1, 3), (4, 2)])
    ]
    reads = [[one for _, one in named(each, "aten.mul.Tensor")] for each in opened]
    assert [bool(one.flags & trace.OUTSIDE) for one in reads[0]] == [False, True, False, True, False]
    assert reads[0] == reads[1]
    differ = [[a.inputs != b.inputs for a, b in zip(reads[0], other, strict=True)] for other in reads[2:]]
    assert differ == [[False] * 3 + [True] * 2, [False] + [True] * 4]


def test_memory_that_numpy_was_handed_to_fill_differs_by_what_it_wrote(tmp_path):
    def body(garbage, value):
        x = torch.empty(5)
        (ctypes.c_float * 5).from_address(x.data_ptr())[:] = [garbage] * 5
        array = x.numpy()
        x[:2].mul(2)
        array[:2] = value
        x.index_select(0, torch.tensor([0]))
        x.index_select(0, torch.tensor([1]))

    runs = [record(tmp_path, lambda v=v: body(*v), f"{n}") for n, v in enumerate([(0, 1), (5, 1), (5, 2)])]
    for opened in runs:
        assert not named(opened, "aten.mul.Tensor")[0][1].flags & trace.OUTSIDE
        read = named(opened, "aten.index_select")[0][1].flags
        assert read == trace.UNWRITTEN | trace.OUTSIDE | trace.NUMPY_WROTE
    outcomes = [compare(tmp_path / "1.tdtrace", tmp_path / f"{n}.tdtrace") for n in (0, 2)]
    found = [[(item.site.op, item.source) for item in outcome.divergences] for outcome in outcomes]
    assert found[0] == [("aten.mul.Tensor", "unwritten")]
    assert found[1] == [("aten.index_select", "outside")] * 2
    assert [item.kind for item in outcomes[1].divergences] == ["cause", "consequence"]


def test_what_numpy_was_handed_is_forgotten_with_the_array(tmp_path):
    def body():
        x = torch.zeros(3)
        x.numpy()
        other = torch.zeros(3)
        array = other.numpy()
        other.set_(torch.ones(3))
        del x
        array = None
        for _ in range(50):
            torch.zeros(3).numpy()
        return array

    with Recorder(tmp_path / "a.tdtrace") as recorder:
        body()
        assert not recorder._run.loans
        assert not recorder._run.foreign


def test_the_lengths_of_a_padded_sequence_are_written_though_no_op_writes_them(tmp_path):
    from torch.nn.utils import rnn

    def body(shorter):
        lengths = torch.tensor([5 - shorter, 5])
        packed = rnn.pack_padded_sequence(torch.ones(5, 2, 3), lengths, enforce_sorted=False)
        rnn.pad_packed_sequence(packed)

    indexed = [named(record(tmp_path, lambda n=n: body(n), f"{n}"), "aten.index.Tensor")[-1][1] for n in (0, 1)]
    assert not any(one.flags & trace.UNWRITTEN for one in indexed)
    assert indexed[0].inputs != indexed[1].inputs


def test_data_in_shared_memory_is_flagged(tmp_path):
    def body():
        shared = torch.ones(3)
        shared.share_memory_()
        alone = torch.from_numpy(np.ones(3))
        for values in (shared, alone):
            values.numpy()[:] = 7
            values.mul(2)

    marks = named(record(tmp_path, body), "aten.mul.Tensor")
    assert [(mark.flags & trace.SHARED, bool(mark.flags & trace.OUTSIDE)) for _, mark in marks] == [
        (trace.SHARED, True),
        (0, True),
    ]


def test_memory_that_an_op_overwrote_is_still_read_again_where_others_may_write_to_it(tmp_path):
    def body():
        array = np.ones(3)
        values = torch.from_numpy(array)
        values.zero_()
        array[:] = 7
        values.mul(2)

    _, mark = named(record(tmp_path, body), "aten.mul.Tensor")[0]
    assert mark.flags & trace.OUTSIDE


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_what_is_known_of_a_tensor_is_known_when_its_storage_is_shared_or_cloned(tmp_path, strategy):
    def body():
        torch.manual_seed(0)
        torch.ones(300).share_memory_()
        torch.ones(300).untyped_storage().clone()
        torch.empty(0).set_(torch.ones(300).untyped_storage()).mul(2)

    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy(strategy)
    try:
        opened = record(tmp_path, body)
    finally:
        torch.multiprocessing.set_sharing_strategy(before)
    shared, cloned = named(opened, "aten.copy_")
    assert not shared[1].flags & trace.ARRIVED
    assert not cloned[1].flags & trace.OUTSIDE
    assert named(opened, "aten.mul.Tensor")[0][1].flags & trace.ARRIVED


def test_a_share_of_what_differs_already_is_no_cause_and_one_of_what_nothing_wrote_is_no_read(tmp_path):
    def body(value):
        torch.full((3000,), value).share_memory_()
        buffer = torch.empty(5000).share_memory_()
        buffer[:10] = 1
        buffer[:10].mul(2)
        buffer.fill_(3)
        buffer.mul(2)

    one, two = (record(tmp_path, lambda v=v: body(v), f"t{v}") for v in (1.0, 2.0))
    found = compare(one.path, two.path)
    assert [(item.kind, item.site.op) for item in found.divergences] == [
        ("cause", "aten.full"),
        ("consequence", "aten.copy_"),
    ]
    assert not any(mark.flags & trace.UNWRITTEN for _, mark in rows(one))


def test_what_an_op_writes_to_out_is_not_read_and_what_it_adds_is(tmp_path):
    def body():
        torch.add(torch.ones(3), 1, out=torch.empty(3))
        torch.add(torch.empty(3), torch.ones(3), out=torch.zeros(3))

    assert [bool(m.flags & trace.UNWRITTEN) for _, m in named(record(tmp_path, body), "aten.add.out")] == [False, True]


def test_draws_say_whether_and_how_the_generator_was_seeded(tmp_path):
    def body():
        torch.rand(2)
        torch.manual_seed(5)
        torch.rand(2)
        torch.rand(2, generator=torch.Generator().manual_seed(9))

    torch.seed()
    found = [record for _, record in rows(record(tmp_path, body)) if record.flags & trace.RANDOM]
    assert found[0].flags & trace.UNSEEDED
    assert [bool(r.flags & trace.UNSEEDED) for r in found] == [True, False, False]
    assert [r.seed for r in found[1:]] == [5, 9]
    assert found[2].flags & trace.DRAWN_FROM_OWN


def test_reading_unwritten_memory_is_marked(tmp_path):
    def body():
        torch.empty(5).mul(2)
        torch.empty(5).fill_(1).mul(3)
        half = torch.empty(6)
        half[:3] = 1
        half.mul(4)

    marks = [bool(r.flags & trace.UNWRITTEN) for s, r in rows(record(tmp_path, body)) if s.op == "aten.mul.Tensor"]
    assert marks == [True, False, True]


def test_numbers_that_python_reads_are_digested(tmp_path):
    def body(value):
        float(torch.tensor(value).item())

    digests = [
        named(record(tmp_path, lambda v=v: body(v), f"t{v}"), "aten._local_scalar_dense")[0][1].digests
        for v in (1.5, 2.5)
    ]
    assert digests[0] != digests[1]


def jagged() -> torch.Tensor:
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)


def test_memory_for_quantized_values_is_no_value(tmp_path):
    opened = record(
        tmp_path, lambda: torch.empty_quantized([3], torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8))
    )
    made = [r for s, r in rows(opened) if "empty" in s.op]
    assert made
    assert not any(r.digests for r in made)


def test_an_op_that_cannot_be_recorded_is_told_and_the_program_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(hashing, "blocks", dict)
    monkeypatch.setattr(hashing, "locator", lambda: bytes.fromhex)
    got = []
    opened = record(tmp_path, lambda: got.extend(torch.ones(2).add(1).tolist()))
    assert got == [2, 2]
    assert {note["missed"] for note in opened.notes} >= {
        "aten.add.Tensor could not be recorded: TypeError: fromhex() argument must be str, not Tensor"
    }
    told = compare(opened.path, opened.path).notes
    assert sum("aten.add.Tensor could not be recorded" in note for note in told) == 1


def without_python_below(recorder, until, function, *args):
    """Run an op in a thread of which the dispatcher is the first frame, as it is in threads of C++."""
    _thread.start_new_thread(recorder._mode.__torch_dispatch__, (function, (), args))
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_op_of_a_thread_without_python_is_no_record_and_what_it_wrote_came_from_outside(tmp_path):
    tensor, other = torch.ones(3), torch.full((3,), 2.0)
    with Recorder(tmp_path / "a.tdtrace") as recorder:
        tensor.mul(1)
        first = ctypes.c_float.from_address(tensor.data_ptr())
        without_python_below(recorder, lambda: first.value == 2, torch.ops.aten.copy_.default, tensor, other)
        tensor.mul(1)
    opened = Trace(tmp_path / "a.tdtrace")
    assert not opened.notes
    made = rows(opened)
    assert [site.op for site, _ in made] == ["aten.mul.Tensor"] * 2
    assert all(record.flags & trace.OUTSIDE for _, record in made)
    assert made[0][1].digests != made[1][1].digests


def lines_of(opened, op):
    return [site.line for site, _ in named(opened, op)]


def test_a_function_of_torch_that_is_called_on_two_lines_has_both(tmp_path):
    """Its frame remembers the line for as long as it runs; the next one may lie in the same memory."""
    clip = torch.nn.utils.clip_grad_norm_
    begin = here()

    def body():
        weights = [torch.ones(2, requires_grad=True) for _ in range(3)]
        sum(weights).sum().backward()
        clip(weights, 1.0, foreach=False)
        clip(weights, 1.0, foreach=False)
        with torch.no_grad():
            clip(weights, 1.0, foreach=False)
            clip(weights, 1.0, foreach=False)
        clip(weights, 1.0, foreach=False)

    opened = record(tmp_path, body)
    assert lines_of(opened, "aten.mul_.Tensor") == [begin + line for line in (5, 6, 8, 9, 10) for _ in range(3)]
    assert len({record.site for _, record in named(opened, "aten.mul_.Tensor")}) == 5


_RESUMED = """
def steps():
    while True:
        yield torch.ones(1).mul(2)
def first(it):
    return second(it)
def second(it):
    return third(it)
def third(it):
    return next(it)
"""


def test_a_generator_of_torch_that_goes_on_for_another_caller_has_the_line_of_that_one(tmp_path):
    """Its frame lives longer than one call of it."""
    room = {"torch": torch}
    exec(compile(_RESUMED, str(Path(torch.__file__).parent / "steps.py"), "exec"), room)
    begin = here()

    def body():
        steps = room["steps"]()
        room["first"](steps)
        room["first"](steps)
        room["third"](steps)

    opened = record(tmp_path, body)
    assert lines_of(opened, "aten.mul.Tensor") == [begin + line for line in (4, 5, 6)]


def test_a_tracer_sees_what_it_would_see(tmp_path):
    """One that begins while a function of torch runs, from a hook; and one that was there before keeps its frames."""
    seen = []

    def tracer(frame, event, _):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name != "hook":
            seen.append((event, frame.f_lineno))
        return tracer

    def body(settings):
        def hook(gradient):
            if settings == "in a hook":
                sys.settrace(tracer)
            return gradient * 2

        weight = torch.ones(2, requires_grad=True)
        before = weight * 2
        before.register_hook(hook)
        if settings == "before":
            sys.settrace(tracer)
        (before * 3).sum().backward()
        sys.settrace(None)
        return weight.grad.tolist()

    kept, got = sys.gettrace(), {}
    try:
        for settings in ("in a hook", "before"):
            seen.clear()
            plain = body(settings), tuple(seen)
            seen.clear()
            record(tmp_path, lambda settings=settings: got.update({settings: body(settings)}))
            assert (got[settings], tuple(seen)) == plain
            assert got[settings] == [12, 12]
    finally:
        sys.settrace(kept)


def test_a_backward_op_of_a_thread_of_autograds_own_has_the_line_of_its_forward_op(tmp_path, monkeypatch):
    tensor = torch.ones(3, requires_grad=True)
    with Recorder(tmp_path / "a.tdtrace") as recorder:
        tensor.add(1)
        node, line = tensor.mul(2).grad_fn, here()
        # Each thread has its own node: what the engine's would have is told to all.
        with monkeypatch.context() as patched:
            patched.setattr(dispatcher, "current_node", lambda: node)
            (stream,) = recorder._run.live.values()
            without_python_below(recorder, lambda: stream.records == 4, torch.ops.aten.neg.default, torch.ones(3))
    opened = Trace(tmp_path / "a.tdtrace")
    assert not opened.notes
    site = next(site for site, _ in rows(opened) if site.op == "aten.neg")
    assert (site.phase, site.file, site.forward_op, site.forward_line) == ("backward", "", "aten.mul.Tensor", line)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_what_a_signal_handler_raises_while_an_op_is_recorded_reaches_the_program(tmp_path, monkeypatch, dtype):
    tables = hashing.blocks()

    class Interrupted(dict):
        def get(self, dtype):
            signal.raise_signal(signal.SIGUSR1)
            return super().get(dtype)

    def handler(*_):
        raise TimeoutError("too slow")

    monkeypatch.setattr(hashing, "blocks", lambda: Interrupted(tables))
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError, match="too slow"):
            record(tmp_path, lambda: torch.ones(2, dtype=dtype))
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "body",
    [
        lambda: torch.sparse.mm(torch.eye(4).to_sparse(), torch.ones(4, 2)),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).mul(2),
        lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8).dequantize(),
        lambda: torch.complex(torch.ones(3), torch.ones(3)).conj().mul(2),
        lambda: torch.ones(4).to(torch.float8_e5m2).float(),
        lambda: torch.empty(0, 3).sum(),
        lambda: torch.nn.LSTM(3, 4, batch_first=True)(torch.ones(2, 5, 3)),
        lambda: torch.nn.functional.scaled_dot_product_attention(*(torch.ones(1, 2, 4, 8) for _ in range(3))),
        lambda: torch.func.vmap(torch.func.grad(lambda x: x.pow(2).sum()))(torch.ones(3, 2)),
        lambda: torch.jit.trace(lambda x: x * 2 + 1, torch.ones(3))(torch.ones(3)),
        lambda: torch.fft.fft(torch.ones(8)),
        lambda: torch.func.hessian(lambda x: x.pow(3).sum())(torch.ones(3)),
        lambda: torch.nn.Linear(3, 2)(jagged()).values().sum().backward(),
        lambda: torch.ones(3, device="meta").mul(2),
    ],
)
def test_programs_of_many_kinds_repeat(tmp_path, body):
    body()  # Some kinds of tensor are prepared by the first one.
    seeded = [torch.manual_seed(0) and rows(record(tmp_path, lambda: (torch.manual_seed(0), body()), n)) for n in "ab"]
    assert seeded[0]
    assert [(s, r.digests) for s, r in seeded[0]] == [(s, r.digests) for s, r in seeded[1]]


def small_training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Flatten(),
        torch.nn.Linear(144, 3),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(torch.rand(5, 1, 8, 8)), torch.randint(3, (5,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [*model.state_dict().values(), torch.get_rng_state()], random.getstate(), str(np.random.get_state())


def test_recording_changes_no_result(tmp_path):
    plain = small_training()
    results = []
    record(tmp_path, lambda: results.append(small_training()))
    assert all(torch.equal(a, b) for a, b in zip(plain[0], results[0][0], strict=True))
    assert plain[1:] == results[0][1:]


def test_everything_is_put_back(tmp_path):
    before = (os._exit, threading.Thread._bootstrap_inner)
    record(tmp_path, small_training)
    assert (os._exit, threading.Thread._bootstrap_inner) == before
    with pytest.raises(ZeroDivisionError):
        record(tmp_path, lambda: 1 / 0)
    assert (os._exit, threading.Thread._bootstrap_inner) == before


def test_a_mode_of_the_programs_hears_no_function_of_torch_that_the_recorder_calls(tmp_path):
    """The recorder looks at tensors; a mode that counts, logs or changes calls must not meet that."""

    class Heard(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.names.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    found = []
    layer = torch.nn.Linear(2, 1)
    loader = torch.utils.data.DataLoader(torch.arange(6.0).reshape(3, 2), 2, num_workers=1)

    def body():
        with Heard() as mode:
            x = torch.tensor([1.0, 2.0])
            array = torch.from_numpy(np.ones(2, dtype=np.float32))
            array.numpy()[0] = 3
            torch.autograd.backward(layer(x + array).sum())
            torch.ops.aten.sin(torch.Tensor([1.0])).item()
            for batch in loader:
                torch.cat([batch, batch])
        found.append(mode.names)

    body()
    record(tmp_path, body)
    assert found[0] == found[1]


def test_a_sparse_tensor_of_memory_that_numpy_has_is_read_like_any_other(tmp_path):
    """As graphs come from SciPy: its second reading found no storage, and what the op read was not recorded."""
    indices, values = np.array([[0, 1], [1, 0]]), np.ones(2, dtype=np.float32)

    def body(scale):
        adjacency = torch.sparse_coo_tensor(torch.from_numpy(indices), torch.from_numpy(values), (2, 2))
        support = torch.arange(4.0).reshape(2, 2) * scale
        for _ in range(3):
            support = torch.spmm(adjacency, support)

    one, two = record(tmp_path, lambda: body(1.0)), record(tmp_path, lambda: body(2.0), "b")
    assert "missed" not in str(one.notes)
    products = [named(opened, "aten.mm") for opened in (one, two)]
    assert [len(rows) for rows in products] == [3, 3]
    assert all(a.inputs != b.inputs for (_, a), (_, b) in zip(*products, strict=True))


def test_other_threads_have_streams_of_their_own(tmp_path):
    def body():
        thread = threading.Thread(target=lambda: torch.ones(3).mul(7))
        thread.start()
        thread.join()
        torch.ones(2)

    opened = record(tmp_path, body)
    assert [stream.kind for stream in opened.streams] == ["main", "thread"]
    assert [site.op for site, _ in rows(opened, opened.streams[1])] == ["aten.ones", "aten.mul.Tensor"]
    assert [site.op for site, _ in rows(opened)] == ["aten.ones"]


def test_an_index_is_recorded_with_its_numbers(tmp_path):
    x = torch.arange(9.0).requires_grad_()

    def body(index):
        return lambda: (x[index], x[1:index], x[index].sin().backward())

    picks = [named(record(tmp_path, body(index), str(index)), "aten.select.int") for index in (3, 3, 4)]
    assert picks[0] == picks[1]
    assert len(picks[0]) == 2
    (site, one), (_, other) = picks[0][0], picks[2][0]
    assert site.line == here() - 6
    assert one.inputs == other.inputs
    assert one.scalars != other.scalars
    assert one.digests != other.digests


def test_data_that_one_thread_receives_and_another_reads_has_the_line_where_they_arrived(tmp_path):
    written = torch.arange(4.0).numpy()

    def body():
        got = []

        def receive():
            for number in range(3):
                torch.ones(3).mul(number)
            storage = torch.frombuffer(written, dtype=torch.float32).untyped_storage()
            got.append(torch.empty(0).set_(storage))

        thread = threading.Thread(target=receive)
        thread.start()
        thread.join()
        return got[0] + 1

    opened = record(tmp_path, body)
    main, received = opened.main, opened.streams[1]
    (_, added), sites = named(opened, "aten.add.Tensor")[0], opened.sites(main)
    assert sites[added.arrival] in opened.sites(received)
    assert sites[added.arrival].op.startswith("aten.set_")
    assert len(set(sites)) == len(sites)


def test_threads_are_called_by_their_name_and_what_they_run(tmp_path):
    class Loader(threading.Thread):
        def run(self):
            torch.ones(2)

    def fill(number):
        torch.full((2,), number)

    def body():
        threads = [threading.Thread(target=functools.partial(fill, n), name="loader") for n in (1, 2)]
        threads += [threading.Thread(target=fill, args=(3,), name="a\nb"), Loader(name="own")]
        for thread in threads:
            thread.start()
            thread.join()
        with concurrent.futures.ThreadPoolExecutor(1, "pool") as pool:
            pool.submit(fill, 4).result()

    opened = record(tmp_path, body)
    assert [(stream.called, stream.role) for stream in opened.streams[1:]] == [
        ("thread loader (fill)", "thread"),
        ("thread loader (fill) #2", "thread"),
        ("thread a?b (fill)", "thread"),
        ("thread own (Loader)", "thread"),
        ("thread pool_0 (_worker)", "worker"),
    ]


def test_the_tasks_of_asyncio_are_called_by_their_name_and_coroutine(tmp_path):
    async def fetch(number):
        torch.full((2,), number)
        await asyncio.sleep(0)
        torch.full((3,), number).add(1)

    async def everything():
        await asyncio.gather(*[asyncio.create_task(fetch(n), name=f"part {n}") for n in (1, 2)])

    before = asyncio.Handle._run
    opened = record(tmp_path, lambda: (torch.ones(1), asyncio.run(everything()), torch.ones(2)))
    assert asyncio.Handle._run is before
    when = trace.Timeline(opened.marks(opened.main))
    one, two = (f"part {n} (fetch)" for n in (1, 2))
    assert [when.task(n) for n in range(8)] == ["", one, two, one, one, two, two, ""]
    told = [*overview(opened), *records(opened, Asked(op="add"))]
    assert any(f"tasks: {one} 3 ops, {two} 3 ops" in line for line in told)
    assert told[-1].endswith(f"[in {two}]")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_file_of_its_own(tmp_path):
    def body():
        torch.ones(2)
        pid = os.fork()
        if not pid:
            torch.ones(3).mul(5)
            os._exit(0)
        os.waitpid(pid, 0)
        torch.ones(4)

    opened = record(tmp_path, body)
    assert [stream.kind for stream in opened.streams] == ["main", "process"]
    assert [site.op for site, _ in rows(opened)] == ["aten.ones", "aten.ones"]
    assert [site.op for site, _ in rows(opened, opened.streams[1])] == ["aten.ones", "aten.mul.Tensor"]


def test_compiled_code_stays_compiled(tmp_path):
    calls = []

    def backend(graph, _inputs):
        calls.append(graph)
        return graph.forward

    def body():
        compiled = torch.compile(lambda x: x.sin().cos(), backend=backend)
        compiled(torch.ones(3))

    record(tmp_path, body)
    assert len(calls) == 1


def test_a_long_run_does_not_keep_its_records(tmp_path):
    def body():
        x = torch.ones(3)
        for _ in range(6_000):
            x = x + 1

    opened = record(tmp_path, body)
    assert opened.main.records == 6_001
    assert len(opened.main.blocks) > 2


def test_arriving_batches_are_no_ops_of_the_program_with_zeroed_memory_either(tmp_path):
    from torchdet_lint.verifier.remedies import fixes

    def body():
        loader = torch.utils.data.DataLoader(torch.arange(12), batch_size=2, num_workers=2)
        for batch in loader:
            batch + 1

    context = fixes.install(["TDL501"])
    try:
        opened = record(tmp_path, body)
    finally:
        context.patches.undo()
    # The number that the workers' seeds begin from is drawn into memory of its own.
    assert [site.op for site, _ in rows(opened)].count("aten.zero_") == 1


def test_minus_one_and_minus_two_are_two_numbers(tmp_path):
    value = torch.arange(16.0).reshape(2, 2, 4)
    for one, two in ((-1, -2), (-1.0, -2.0), (-1, -2.0)):

        def body(number, op):
            return lambda: op(value, number)

        for op in (lambda x, n: x.mul(n), lambda x, n: x.add(x, alpha=n)):
            a, b = (record(tmp_path, body(number, op), str(index)) for index, number in enumerate((one, two)))
            assert [r.scalars for _, r in rows(a)] != [r.scalars for _, r in rows(b)]
    dims = [record(tmp_path, lambda dim=dim: torch.softmax(value, dim), str(dim)) for dim in (-1, -2)]
    assert len({record.scalars for opened in dims for _, record in named(opened, "aten._softmax")}) == 2
    items = [record(tmp_path, lambda n=n: torch.tensor(n).item(), str(n)) for n in (-1, -2)]
    assert len({record.digests for opened in items for _, record in named(opened, "aten._local_scalar_dense")}) == 2


def test_what_follows_from_a_jagged_tensor_is_no_cause(tmp_path):
    def body(scale):
        def run():
            parts = [torch.ones(2, 3), torch.ones(4, 3)]
            value = torch.nested.nested_tensor(parts, layout=torch.jagged) * scale
            ((value + 1).relu() * 2).values().sum()

        return run

    body(1.0)()  # what torch does once, at first
    record(tmp_path, body(2.0), "a")
    record(tmp_path, body(3.0), "b")
    outcome = compare(tmp_path / "a.tdtrace", tmp_path / "b.tdtrace")
    assert [(cause.site.op, cause.source) for cause in outcome.causes] == [("aten.mul.Tensor", "number")]


def test_memory_that_is_handed_back_before_it_is_all_written_is_no_difference(tmp_path):
    """As FSDP2 gathers: an op writes this rank's part of a buffer, and returns the buffer."""
    library = torch.library.Library("torchdet_test", "DEF")
    library.define("copy_in(Tensor x, Tensor buffer) -> (Tensor, Tensor)")

    def copy_in(x, buffer):
        mine = buffer.narrow(0, 0, x.numel())
        mine.copy_(x)
        return mine, buffer

    library.impl("copy_in", copy_in, "CPU")
    dirty = iter((1, 2))

    def body():
        buffer = torch.empty(4)
        torch.frombuffer((ctypes.c_char * 16).from_address(buffer.data_ptr()), dtype=torch.float32).numpy()[:] = next(
            dirty
        )
        _, gathered = torch.ops.torchdet_test.copy_in(torch.ones(2), buffer)
        gathered[2:] = torch.ones(2)
        gathered.sum().item()

    record(tmp_path, body, "a")
    record(tmp_path, body, "b")
    outcome = compare(tmp_path / "a.tdtrace", tmp_path / "b.tdtrace")
    assert not [item for item in outcome.divergences if "copy_in" in item.site.op]


def test_what_linearize_traces_with_is_no_value_that_the_program_reads(tmp_path):
    def body(_):
        start = torch.ones(2, 3)
        _, pushed = torch.func.linearize(lambda x: (x.tanh() ** 2).sum(), start)
        return pushed(torch.ones(2, 3))

    opened = [record(tmp_path, lambda n=n: body(n), f"{n}") for n in (0, 1)]
    assert not any(one.flags & trace.UNWRITTEN for _, one in rows(opened[0]))
    assert compare(opened[0].path, opened[1].path).identical
    with fill_mode(0xFF), Recorder(tmp_path / "2.tdtrace"):
        body(0)
    with Recorder(tmp_path / "3.tdtrace"), fill_mode(0xFF):
        body(0)
    for n in (2, 3):
        assert compare(opened[0].path, tmp_path / f"{n}.tdtrace").identical
