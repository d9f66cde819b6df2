"""The public names: loaded when they are used, and never shadowed by a module of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from torchdet_lint import verifier

NAMES = ("audit", "compare", "deterministic", "record", "verify")


def test_importing_the_package_imports_neither_torch_nor_numpy():
    source = "import sys, torchdet_lint.verifier; print([n for n in ('torch', 'numpy', 'libcst') if n in sys.modules])"
    root = str(Path(verifier.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout == "[]\n"


def test_no_module_of_the_package_takes_the_place_of_a_public_name():
    modules = {path.stem for path in Path(verifier.__file__).parent.glob("*.py")}
    assert modules.isdisjoint(NAMES)
    assert set(NAMES) < set(verifier.__all__) <= set(dir(verifier))


def test_the_public_names_are_callable_whatever_was_imported_before():
    import torchdet_lint.verifier.comparison.compare
    import torchdet_lint.verifier.verification.verify  # noqa: F401

    assert all(callable(getattr(verifier, name)) for name in NAMES)


def test_a_function_is_verified_and_two_recordings_are_compared(tmp_path):
    import torch

    report = verifier.verify(lambda: torch.ones(3).sum())
    assert report.ok
    assert not verifier.verify(lambda: torch.rand(3) * 2, restore=False).ok
    for name in "ab":
        with verifier.record(tmp_path / f"{name}.tdtrace"):
            torch.ones(3).sum()
    assert verifier.compare(tmp_path / "a.tdtrace", tmp_path / "b.tdtrace").ok
