"""Where NumPy makes a generator without a seed: it is told there, and nowhere else."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from torchdet_lint.verifier.patching.patches import Patches  # noqa: E402
from torchdet_lint.verifier.recording import draws  # noqa: E402


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("np.random.default_rng()", 1),
        ("np.random.default_rng(3)", 0),
        ("np.random.RandomState()", 1),
        ("np.random.RandomState(None)", 1),
        ("np.random.RandomState(seed=None)", 1),
        ("np.random.RandomState(3)", 0),
        ("RandomState(seed=seed)", 0),
        ("np.random.Generator(np.random.PCG64())", 1),
    ],
)
def test_a_generator_without_a_seed_is_told(tmp_path, made, told):
    program = tmp_path / "program.py"
    program.write_text(f"import numpy as np\nfrom numpy.random import RandomState\nseed = 3\n{made}\n")
    calls = []
    patches = Patches()
    try:
        draws.watch_entropy(patches, lambda: calls.append(made))
        exec(compile(program.read_text(), str(program), "exec"), {})
    finally:
        patches.undo()
    assert len(calls) == told


def test_what_has_no_source_is_told(tmp_path):
    calls = []
    patches = Patches()
    try:
        draws.watch_entropy(patches, lambda: calls.append(1))
        exec("import numpy as np\nnp.random.RandomState(3)")
    finally:
        patches.undo()
    assert calls == [1]
