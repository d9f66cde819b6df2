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
