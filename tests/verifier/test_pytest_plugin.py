"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]

TESTS = """
import pytest, random, torch
import numpy as np

@pytest.mark.deterministic
def test_generators_are_put_back_between_the_runs():
    torch.randn(5) + torch.from_numpy(np.random.rand(5)) + random.random()

@pytest.mark.deterministic(stress=True)
def test_unwritten_memory_differs():
    torch.empty(10) + 1

@pytest.mark.deterministic(runs=3)
def test_fresh_entropy_differs(tmp_path):
    torch.from_numpy(np.random.default_rng().random(3)) * 2

@pytest.mark.deterministic
@pytest.mark.parametrize("number", [1, 2])
def test_with_arguments(number, tmp_path):
    assert number and tmp_path.exists()
    torch.ones(number).sum()

def test_the_fixture(assert_deterministic):
    assert_deterministic(lambda size: torch.rand(size).sum(), 4)

def test_the_fixture_fails(assert_deterministic):
    assert_deterministic(lambda: torch.empty(10) + 1, stress=True)

@pytest.mark.deterministic
def test_that_fails_by_itself():
    assert 1 == 2

@pytest.mark.deterministic
async def test_that_is_async():
    assert 1 == 2

@pytest.mark.deterministic(stres=True)
def test_with_a_typo():
    pass

@pytest.mark.deterministic(3)
def test_without_a_name():
    pass

CACHE = []

@pytest.mark.deterministic(runs=3)
def test_that_fills_a_cache_at_first():
    if not CACHE:
        CACHE.append(torch.arange(6).float().cos())
    (torch.ones(6) * 3 - 1).exp().sum()

@pytest.mark.deterministic
def test_that_runs_no_op():
    sorted("torch")

@pytest.mark.deterministic(runs=1)
def test_one_run_shows_nothing():
    pass
"""


def run(folder, source, *options):
    (folder / "test_it.py").write_text(source)
    plugin = [] if installed() else ["-p", "torchdet_lint.verifier.pytest_plugin"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *plugin,
        *options,
        str(folder / "test_it.py"),
    ]
    path = os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])
    env = {"PYTHONPATH": path, "PATH": "", "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=180)
    return done.stdout + done.stderr


def installed() -> bool:
    from importlib.metadata import entry_points

    return any(point.name == "torchdet-lint" for point in entry_points(group="pytest11"))


def test_marked_tests_fail_with_the_report_where_an_op_differs(tmp_path):
    output = run(tmp_path, TESTS)
    failed = set(re.findall(r"^FAILED test_it.py::(\w+)", output, re.MULTILINE))
    assert failed == {
        "test_unwritten_memory_differs",
        "test_fresh_entropy_differs",
        "test_the_fixture_fails",
        "test_that_fails_by_itself",
        "test_one_run_shows_nothing",
        "test_that_is_async",
        "test_with_a_typo",
        "test_without_a_name",
        "test_that_runs_no_op",
    }, output
    assert "5 passed" in output
    assert "an async test cannot be called again and again" in output
    assert "deterministic(stres): it takes runs, stress, seed, restore, each with its name" in output
    assert "deterministic(3): it takes" in output
    assert "TypeError" not in output
    assert "During handling" not in output
    assert "the test ran no op of torch, so that nothing was compared" in output
    assert "pytest_plugin.py" not in output
    assert "2 runs under stress diverged" in output
    assert "the hash seed is that of this process" in " ".join(output.split())
    assert "verify --fix" not in output
    assert "TDL501" in output
    assert "TDL104" in output
    assert "test_it.py:11" in output
    assert "give at least 2" in output


def test_the_option_seeds_every_test_and_says_so(tmp_path):
    source = "import torch\n\ndef test_a():\n    print('drew', torch.rand(1).item())\n"
    outputs = [run(tmp_path, source, "--torchdet=3", "-s", "-v") for _ in range(2)]
    assert len({re.search(r"drew .*", output)[0] for output in outputs}) == 1
    assert "torchdet-lint: every test from seed 3" in outputs[0]


def test_a_test_that_is_taken_for_the_seed_is_told_where_it_goes(tmp_path):
    output = run(tmp_path, "def test_a(): pass", "--torchdet")
    assert "test_it.py is no seed; a test goes before the option, or behind --torchdet=0" in output


def test_the_plugin_imports_nothing_of_torch_by_itself(tmp_path):
    source = "import sys\n\ndef test_a():\n    assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
    assert "1 passed" in run(tmp_path, source)


def test_the_seeder_for_pytest_randomly_seeds_torch():
    import torch

    from torchdet_lint.verifier.pytest_plugin import seed_everything, seed_torch

    state = torch.get_rng_state()
    try:
        for seeder in (seed_torch, seed_everything):
            seeder(5)
            first = torch.rand(1)
            seeder(5)
            assert torch.equal(first, torch.rand(1))
    finally:
        torch.set_rng_state(state)
