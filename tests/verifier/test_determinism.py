"""`deterministic()`: what holds inside, and that everything is put back."""

from __future__ import annotations

import builtins
import glob
import multiprocessing.pool
import os
import pathlib
import random
import sys
import threading
import time

import numpy as np
import pytest

from torchdet_lint.verifier import deterministic
from torchdet_lint.verifier.remedies import seeding

torch = pytest.importorskip("torch")
pytest.importorskip("torch._inductor.config")  # sets a variable of the environment when it is imported

SDP = ("flash", "mem_efficient", "cudnn", "math")


def state():
    """Everything that a block may change and must put back."""
    import concurrent.futures
    import secrets
    import uuid

    functions = [
        os.listdir, os.scandir, glob.os.scandir, time.time, os.urandom, os.getpid, uuid.uuid4, secrets.randbits,
        random.seed, random.Random.seed, random.SystemRandom.random, np.random.seed, np.random.bit_generator.randbits,
        concurrent.futures.as_completed, multiprocessing.pool.Pool.imap_unordered, builtins.__build_class__,
        torch.seed, torch.compile, torch.empty, torch.Tensor.__hash__, torch.Tensor.__init__, torch.Tensor.put_,
        torch.use_deterministic_algorithms, torch._C._set_deterministic_algorithms, torch._C._set_cudnn_benchmark,
        torch.utils.data.DataLoader.__init__, torch.utils.data.RandomSampler.__init__, torch.utils.data.random_split,
        multiprocessing.process.BaseProcess._bootstrap, type(torch.backends.cudnn).__dict__["benchmark"].setter,
    ]  # fmt: skip
    flags = [
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
        torch.get_num_threads(),
        *(getattr(torch._C, f"_get_{name}_sdp_enabled")() for name in SDP),
    ]
    numpy_state = np.random.get_state()
    generators = [random.getstate(), numpy_state[1].tobytes(), numpy_state[2], torch.get_rng_state().tolist()]
    variables = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return functions, flags, variables, generators


@pytest.fixture(autouse=True)
def unchanged():
    before = state()
    yield
    assert state() == before


def drawn():
    rng = np.random.default_rng()
    split = torch.utils.data.random_split(range(9), [5, 4])
    loader = torch.utils.data.DataLoader(range(8), batch_size=4, shuffle=True)
    return [
        random.random(), np.random.rand(), torch.rand(1).item(), rng.random(), random.Random().random(),
        *split[0], *[batch.tolist() for batch in loader],
    ]  # fmt: skip


def test_a_block_repeats_and_another_seed_differs():
    results = []
    for seed in (0, 0, 1):
        with deterministic(seed):
            results.append(drawn())
    assert results[0] == results[1] != results[2]


def test_a_block_that_raises_puts_everything_back():
    with pytest.raises(ZeroDivisionError), deterministic(3):
        drawn()
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = "changed"
        torch.utils.deterministic.fill_uninitialized_memory = True
        raise ZeroDivisionError


def test_a_block_that_was_set_otherwise_before_goes_back_to_that(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "strange")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = True
    try:
        before = state()
        with deterministic():
            assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.backends.cudnn.benchmark
        assert state() == before
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = False


def test_what_the_block_relaxes_is_refused_and_told_with_its_line():
    with deterministic() as block:
        torch.backends.cudnn.benchmark = True
        torch.use_deterministic_algorithms(False)
        with torch.backends.cudnn.flags(benchmark=True):
            assert not torch.backends.cudnn.benchmark
        assert torch.are_deterministic_algorithms_enabled()
    line = test_what_the_block_relaxes_is_refused_and_told_with_its_line.__code__.co_firstlineno
    told = [(event.code, pathlib.Path(event.file).name, event.line - line) for event in block.events]
    assert told == [
        ("TDL201", "test_determinism.py", 2),
        ("TDL203", "test_determinism.py", 3),
        ("TDL201", "test_determinism.py", 4),
        ("TDL202", "test_determinism.py", 4),
    ]


def test_blocks_nest_and_the_inner_one_hands_the_generators_back():
    with deterministic(5):
        first = torch.rand(1).item()
        expected = torch.rand(1).item()
    with deterministic(5):
        assert torch.rand(1).item() == first
        before = state()
        with deterministic(6, scope="ops"):
            torch.rand(100)
        assert state() == before
        assert torch.rand(1).item() == expected


def test_blocks_of_two_threads_may_end_in_any_order():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with deterministic(1):
            entered.set()
            leave.wait(10)
            assert torch.are_deterministic_algorithms_enabled()

    thread = threading.Thread(target=other)
    with deterministic(0):
        thread.start()
        assert entered.wait(10)
    # The first block has ended, the second still holds what it needs.
    assert torch.are_deterministic_algorithms_enabled()
    leave.set()
    thread.join()


def test_a_block_is_entered_once_and_wraps_a_function_often():
    block = deterministic()
    with block, pytest.raises(RuntimeError, match="already entered"):
        block.__enter__()

    @deterministic(7)
    def draw():
        return torch.rand(1).item()

    assert draw() == draw()
    with pytest.raises(ValueError, match="scope"):
        deterministic(scope="all")


def varying():
    table = torch.randn(20_000, requires_grad=True, generator=torch.Generator().manual_seed(0))
    index = torch.randint(0, 20_000, (100_000,), generator=torch.Generator().manual_seed(1))
    weight = torch.randn(100_000, generator=torch.Generator().manual_seed(2))
    found = set()
    for _ in range(10):
        table.grad = None
        (table[index] * weight).sum().backward()
        found.add(table.grad.numpy().tobytes())
    return len(found)


def test_the_mode_around_the_ops_that_need_it_suffices_and_leaves_the_others_alone():
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        assert varying() > 1
        with deterministic(scope="ops"):
            assert not torch.are_deterministic_algorithms_enabled()
            assert varying() == 1
        with deterministic():
            assert varying() == 1
    finally:
        torch.set_num_threads(threads)


def test_fill_says_whether_fresh_memory_is_filled():
    with deterministic(fill=True):
        assert torch.utils.deterministic.fill_uninitialized_memory
        assert torch.empty(9).isnan().all()
    with deterministic():
        assert not torch.utils.deterministic.fill_uninitialized_memory


def test_a_set_made_before_the_block_finds_its_tensors_inside():
    tensors = {torch.zeros(1) for _ in range(20)}
    with deterministic():
        assert all(tensor in tensors for tensor in list(tensors))


def test_the_clock_stays_real_except_where_it_makes_a_seed():
    with deterministic():
        start = time.time()
        assert abs(time.monotonic() - time.monotonic()) < 10
        assert start > 1_600_000_000
        pid = os.getpid()
        seed = int(time.time())
    with deterministic():
        assert seed == int(time.time())  # seed
    assert pid == os.getpid()


SEEDS = """\
torch.manual_seed(random.randint(0, 9))
rng = make(random.getrandbits(8))
np.random.RandomState(random.getrandbits(8))
loader(data, generator=made(random.getrandbits(8)))
np.random.Generator(np.random.PCG64(random.getrandbits(8)))
np.random.Philox(entropy=secrets.randbits(8))
parser.add_argument("--manualSeed", default=random.randint(1, 9))
"""
VALUES = """\
fake = generator(random.randint(0, 9))
fake = self.generator(noise, depth=random.randint(0, 9))
generator = Generator(width=random.randint(8, 9))
loss = F.cross_entropy(logits[random.randint(0, 9)], label)
loss = F.binary_cross_entropy(logits, labels[random.randint(0, 9)])
crop = image[random.randint(0, 9) :]
"""


@pytest.mark.parametrize(
    ("line", "seeds"), [(x, True) for x in SEEDS.splitlines()] + [(x, False) for x in VALUES.splitlines()]
)
def test_a_number_is_a_seed_where_its_statement_says_so(tmp_path, line, seeds):
    path = tmp_path / "program.py"
    path.write_text(line + "\n")
    assert seeding._makes_a_seed(str(path), 1, "<module>") is seeds


def test_nothing_of_the_process_is_held_after_the_block():
    with deterministic():
        pass
    assert not any("torchdet" in str(getattr(value, "__module__", "")) for value in vars(torch).values())
    assert "torchdet_lint" not in str(sys.modules["os"].listdir)
