"""`audit()`: what one run shows, with its lines, and nothing that is not so."""

from __future__ import annotations

import random

import numpy as np
import pytest

from torchdet_lint.verifier import audit

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def kept():
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


def lines(found, function):
    first = function.__code__.co_firstlineno
    assert {item.file for item in found} <= {"test_auditing.py"}
    return sorted((item.line - first, item.code) for item in found)


def test_draws_before_any_seed_are_found_and_those_after_one_are_not():
    torch.seed()
    np.random.set_state(np.random.RandomState(np.random.MT19937()).get_state())
    with audit() as found:
        torch.rand(3)
        random.random()
        torch.manual_seed(0)
        random.seed(0)
        torch.nn.Linear(2, 2)(torch.rand(2))
        random.shuffle([1, 2])
    test = test_draws_before_any_seed_are_found_and_those_after_one_are_not
    assert lines(found, test) == [(4, "TDL101"), (5, "TDL103")]
    assert [item.certain for item in found] == [True, False]


def test_numpy_is_unseeded_until_it_is_seeded():
    import subprocess
    import sys

    source = """
import numpy as np
from torchdet_lint.verifier import audit
with audit() as first:
    np.random.rand()
    np.random.seed(0)
    np.random.rand()
with audit() as second:
    np.random.rand()
print([(item.code, item.line) for item in first], list(second))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "[('TDL102', 5)] []\n"


def test_a_read_of_unwritten_memory_is_found_and_a_written_buffer_is_not():
    torch.manual_seed(0)
    with audit() as found:
        written = torch.empty(5)
        written.fill_(1)
        torch.empty(5) + 1
        written + 1
        torch.nn.Linear(2, 2)(torch.zeros(2)).sum().backward()
    assert lines(found, test_a_read_of_unwritten_memory_is_found_and_a_written_buffer_is_not) == [(5, "TDL501")]


def test_switches_that_the_block_turns_are_found_and_take_effect():
    torch.manual_seed(0)
    try:
        with audit() as found:
            torch.backends.cudnn.benchmark = True
            torch.use_deterministic_algorithms(True)
            torch.utils.deterministic.fill_uninitialized_memory = False
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.backends.cudnn.deterministic = True
            assert torch.backends.cudnn.benchmark
        expected = [(4, "TDL201"), (6, "TDL206"), (7, "TDL204")]
        assert lines(found, test_switches_that_the_block_turns_are_found_and_take_effect) == expected
        assert str(next(iter(found))).endswith("TDL201 torch.backends.cudnn.benchmark = True")
    finally:
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = False
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True


def test_a_clean_block_has_no_findings_and_computes_what_it_would_without():
    def step():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
        model(torch.rand(2, 4)).sum().backward()
        return model[0].weight.grad.tolist()

    with audit() as found:
        inside = step()
    assert (len(found), inside) == (0, step())


def test_a_block_that_raises_is_reported_up_to_there_and_puts_the_functions_back():
    before = random.random, np.random.rand, torch._C._set_cudnn_benchmark
    with pytest.raises(ZeroDivisionError), audit() as found:
        random.random()
        raise ZeroDivisionError
    assert [item.code for item in found] == ["TDL103"]
    assert (random.random, np.random.rand, torch._C._set_cudnn_benchmark) == before
    with pytest.raises(RuntimeError, match="has been used"):
        found.__enter__()


def test_a_generator_of_numpys_without_a_seed_is_found_where_it_is_made():
    original = np.random.default_rng
    with audit() as found:
        np.random.default_rng(0).random()
        np.random.default_rng().random()
        np.random.default_rng(seed=None).random()
        np.random.default_rng(np.random.PCG64(1)).random()
    test = test_a_generator_of_numpys_without_a_seed_is_found_where_it_is_made
    assert lines(found, test) == [(4, "TDL104"), (5, "TDL104")]
    assert np.random.default_rng is original
