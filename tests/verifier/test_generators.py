"""The digests of generators' states: equal for equal states, also of one that was kept, and told apart by a draw."""

from __future__ import annotations

import random
import sys

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torchdet_lint.verifier.recording import generators  # noqa: E402


@pytest.fixture(autouse=True)
def put_back():
    kept = generators.kept()
    yield
    kept.restore()


def test_each_generator_has_another_digest_after_a_draw_and_the_same_one_in_the_same_state():
    kept = generators.kept()
    before = generators.quick_digests()
    assert generators.quick_digests() == before
    for number, draw in enumerate((random.random, np.random.rand, lambda: torch.rand(1))):
        draw()
        after = generators.quick_digests()
        assert [one != two for one, two in zip(before, after, strict=True)] == [n == number for n in range(3)]
        kept.restore()
        assert generators.quick_digests() == before


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="the state lies elsewhere")
def test_the_state_of_python_is_read_in_memory_and_has_the_digest_that_getstate_has():
    assert generators._python_state() is not None
    seen = set()
    for move in (lambda: random.seed(3), random.random, lambda: random.gauss(0, 1), lambda: random.randbytes(3000)):
        move()
        seen.add(generators.quick_python_digest())
        assert generators.quick_python_digest() == generators.python_digest()
    assert len(seen) == 4


def test_the_state_of_python_is_asked_for_where_it_is_not_found_in_memory(monkeypatch):
    monkeypatch.setattr(generators, "_python_state", lambda: None)
    before = generators.quick_python_digest()
    random.random()
    assert generators.quick_python_digest() == generators.python_digest() != before


def _normal(dtype):
    return lambda: torch.randn(1, dtype=dtype)


def test_the_state_of_torch_is_read_in_memory_with_the_normal_numbers_that_it_keeps_for_later():
    generators._torch_state.cache_clear()
    assert generators._torch_state() is not None
    single, double = _normal(torch.float32), _normal(torch.float64)
    moves = (lambda: torch.manual_seed(3), single, single, double, double, lambda: torch.rand(700), torch.seed)
    seen = set()
    for move in moves:
        move()
        seen.add(generators.quick_torch_digest())
        assert generators.quick_torch_digest() == generators.torch_digest()
    assert len(seen) == len(moves)


def test_looking_for_the_state_of_torch_leaves_its_generator_alone():
    before = generators.torch_digest()
    generators._torch_state.cache_clear()
    generators._torch_state()
    assert generators.torch_digest() == before


@pytest.mark.parametrize("hidden", [20, 24, 28, 36, 624 * 4])
def test_the_state_of_torch_is_asked_for_where_a_part_of_it_is_not_found_in_memory(monkeypatch, hidden):
    found = generators._engine

    class Blind:
        def __init__(self, memory):
            self.memory = memory

        @property
        def raw(self):
            return self.memory.raw[hidden:]

    monkeypatch.setattr(generators, "_engine", lambda *where: Blind(found(*where)))
    generators._torch_state.cache_clear()
    try:
        assert generators._torch_state() is None
        before = generators.quick_torch_digest()
        torch.rand(1)
        assert generators.quick_torch_digest() == generators.torch_digest() != before
    finally:
        generators._torch_state.cache_clear()


@pytest.mark.parametrize("seed", [0, 7])
def test_a_state_that_was_kept_has_the_digest_of_the_generator_itself(seed):
    np.random.seed(seed)
    for _ in range(3):
        state = np.random.get_state(legacy=False)
        assert generators.quick_state_digest(state) == generators.quick_numpy_digest()
        np.random.rand(700)


def test_a_generator_of_another_kind_is_digested_by_its_state():
    if not hasattr(np.random, "set_bit_generator"):
        pytest.skip("NumPy has one kind of global generator")
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        first = generators.quick_numpy_digest()
        assert first == generators.quick_state_digest(np.random.get_state(legacy=False)) == generators.numpy_digest()
        np.random.rand()
        assert generators.quick_numpy_digest() != first
    finally:
        np.random.set_bit_generator(before)
