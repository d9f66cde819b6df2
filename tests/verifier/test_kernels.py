"""What runs on a GPU beside torch's ops, play-acted on the CPU: graphs, kernels, the engine's own threads, digests."""

from __future__ import annotations

import sys
import threading
import types

import pytest

torch = pytest.importorskip("torch")

from recordings import recorded, records  # noqa: E402
from torch.utils import _python_dispatch  # noqa: E402

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.comparison.explain import explain  # noqa: E402
from torchdet_lint.verifier.recording import hashing  # noqa: E402
from torchdet_lint.verifier.recording.op.places import places  # noqa: E402
from torchdet_lint.verifier.recording.watching import progress  # noqa: E402
from torchdet_lint.verifier.trace import Trace  # noqa: E402


class Graph:
    """As `torch.cuda.CUDAGraph` behaves: what is called in between is done at each replay, and not before."""

    capturing = False

    def __init__(self, work):
        self.work = work

    def capture_begin(self, pool=None):
        Graph.capturing = True

    def capture_end(self):
        Graph.capturing = False

    def replay(self):
        with _python_dispatch._disable_current_modes():
            self.work()


@pytest.fixture
def graphs(monkeypatch):
    monkeypatch.setattr(torch.cuda.graphs, "CUDAGraph", Graph)
    digest = hashing.digest_bytes

    def guarded(buffer, seed=0):
        assert not Graph.capturing, "a digest waits for the GPU, which ends the capture"
        return digest(buffer, seed)

    monkeypatch.setattr(hashing, "digest_bytes", guarded)


def replays(tmp_path, factors, name="a"):
    def body():
        given, weight = torch.ones(4), torch.full((4,), 3.0)
        out = torch.zeros(4)
        left = iter(factors)
        graph = Graph(lambda: out.copy_(given * weight * next(left)))
        graph.capture_begin()
        hidden = given * weight
        out.copy_(hidden)
        graph.capture_end()
        del hidden
        for step in range(len(factors)):
            given.fill_(step + 1.0)
            graph.replay()
            (out + 1).sum()

    return recorded(tmp_path, body, name)


def test_the_ops_of_a_graph_are_recorded_when_it_is_replayed(tmp_path, graphs):
    found = records(replays(tmp_path, [1, 1, 1]))
    assert "aten.mul.Tensor" not in {site.op for site, _ in found}
    of_graph = [record for site, record in found if site.op == trace.GRAPH]
    assert len(of_graph) == 3
    assert len({record.inputs for record in of_graph}) == len({record.digests for record in of_graph}) == 3
    # What it wrote is known afterwards: nothing comes from outside.
    assert not [site for site, record in found if record.outside is not None]
    opened = Trace(tmp_path / "a.tdtrace")
    assert not [note for note in opened.notes if "missed" in note]


def test_replays_are_compared_as_one_op(tmp_path, graphs):
    a, b = replays(tmp_path, [1, 1, 1]), replays(tmp_path, [1, 1, 1], "b")
    assert compare(a, b).identical
    assert any("CUDA graphs" in note for note in compare(a, b).notes)
    [cause] = [item for item in compare(a, replays(tmp_path, [1, 2, 1], "c")).divergences if item.kind == "cause"]
    assert (cause.site.op, explain(cause).rule) == (trace.GRAPH, "TDL203")
    assert cause.site.text == "graph.replay()"


@pytest.fixture
def triton(monkeypatch):
    module = types.ModuleType("triton.runtime.jit")

    class JITFunction:
        def __init__(self, fn):
            self.fn, self.__name__ = fn, fn.__name__

        def run(self, *args, grid, warmup, **kwargs):
            if not warmup:
                with _python_dispatch._disable_current_modes():
                    self.fn(*args, **kwargs)

    tuning = types.ModuleType("triton.runtime.autotuner")

    class Autotuner:
        def __init__(self, fn):
            self.fn = fn

        def run(self, *args, **kwargs):
            for _ in range(3):
                self.fn.run(*args, **kwargs)

    module.JITFunction, tuning.Autotuner = JITFunction, Autotuner
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", module)
    monkeypatch.setitem(sys.modules, "triton.runtime.autotuner", tuning)
    return module, tuning


@pytest.mark.parametrize("tuned", [False, True])
def test_a_kernel_of_triton_is_one_op(tmp_path, triton, tuned):
    def launched(factor, name):
        def scale(given, out):
            out.copy_(given * factor)

        def body():
            given, out = torch.ones(4), torch.empty(4)
            kernel = triton[0].JITFunction(scale)
            kernel = triton[1].Autotuner(kernel) if tuned else kernel
            kernel.run(given, out, grid=(1,), warmup=True)
            kernel.run(given, out=out, grid=(1,), warmup=False)
            out.sum()

        return recorded(tmp_path, body, name)

    found = records(launched(2, "a"))
    kernels = [record for site, record in found if site.op == "triton.scale"]
    assert len(kernels) == 1
    assert not kernels[0].flags & trace.UNWRITTEN
    # The memory that it filled is written now, and known.
    reads = next(record for site, record in found if site.op == "aten.sum")
    assert not reads.flags & trace.UNWRITTEN
    assert reads.outside is None
    assert compare(tmp_path / "a.tdtrace", launched(2, "b")).identical
    [cause] = [item for item in compare(tmp_path / "a.tdtrace", launched(3, "c")).divergences if item.kind == "cause"]
    assert explain(cause).rule == "TDL407"
    assert explain(cause).sentence == "the Triton kernel scale read equal values and wrote different ones"


def test_lengths_of_ctc_become_numbers_on_a_gpu_alone(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "ctc_loss", lambda *args, **kwargs: seen.append((args[2:], kwargs)))
    on_gpu, on_cpu = types.SimpleNamespace(is_cuda=True), types.SimpleNamespace(is_cuda=False)
    lengths, targets = torch.tensor([5, 4]), torch.tensor([2, 3])

    def body():
        torch.ctc_loss(on_gpu, None, lengths, targets, 0, zero_infinity=True)
        torch.ctc_loss(on_gpu, None, (5, 4), targets)
        torch.ctc_loss(on_cpu, None, input_lengths=lengths, target_lengths=targets)

    recorded(tmp_path, body)
    assert seen[0] == (([5, 4], [2, 3], 0), {"zero_infinity": True})
    assert seen[1][0][0] == (5, 4)
    assert seen[1][0][1] is targets
    assert seen[2][0] == (lengths, targets)


def test_what_the_engine_runs_in_its_own_thread_belongs_to_who_waits_for_it(tmp_path, monkeypatch):
    node = types.SimpleNamespace(_sequence_nr=lambda: 0)
    rows = []

    def body():
        weight = torch.ones(3, requires_grad=True)
        run = next(iter(progress.RUNS))
        stream = next(iter(run.live.values()))

        def in_its_thread():
            monkeypatch.setattr(progress, "current_node", lambda: node)
            monkeypatch.setattr(_python_dispatch, "_get_current_dispatch_mode_stack", lambda: [stream.mode])
            rows.append(progress._here(run) is stream)
            found = places(run, stream).find(run.plan_named("aten.thing"), node, None)
            rows.append(stream.rows[found])
            monkeypatch.undo()

        def hooked(grad):
            ident, stream.ident = stream.ident, -1
            thread = threading.Thread(target=in_its_thread)
            thread._bootstrap_inner = types.MethodType(plain, thread)
            thread.start()
            thread.join()
            stream.ident = ident

        weight.register_hook(hooked)
        torch.autograd.grad(outputs=weight.sum(), inputs=weight)

    plain = threading.Thread._bootstrap_inner
    recorded(tmp_path, body)
    assert rows[0]
    assert (rows[1].phase, rows[1].text) == ("backward", "torch.autograd.grad(outputs=weight.sum(), inputs=weight)")


def test_a_digest_that_ops_make_is_no_op_of_the_program(tmp_path, monkeypatch):
    """As on a GPU, also where it is made outside of the handler of an op: for NumPy, a batch or a whole call."""

    def locator(digest=None):
        return lambda tensor: (hashing.multilinear(hashing._flat(tensor.detach())[0]), 0)

    monkeypatch.setattr(hashing, "locator", locator)

    def body():
        given = torch.arange(6.0)
        given.numpy()
        run = next(iter(progress.RUNS))
        stream = next(iter(run.live.values()))
        stream.batch([given])
        stream.whole("some.call", [given], lambda: given, lambda out: (out, [given]))

    names = [site.op for site, _ in records(recorded(tmp_path, body))]
    assert names == ["aten.arange", trace.HANDED, trace.BATCH, "some.call"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("count", [1, 7, hashing.CHUNK, hashing.CHUNK + 3])
def test_the_digest_of_two_kernels_is_the_one_that_stays_on_the_device(dtype, count):
    flat = torch.arange(count).to(dtype)
    words = hashing.multilinear_on_device(flat)
    assert hashing.multilinear(flat) == int(words.item()) & hashing.MASK
    many = int(hashing.many_on_device([flat, flat])[1]) & hashing.MASK
    assert many == hashing.multilinear(flat) ^ (hash(flat.shape) & hashing.MASK)
