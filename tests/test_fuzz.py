"""No program that Python's grammar allows makes the linter crash, and no bytes at all do."""

from __future__ import annotations

import os

import hypothesmith
import pytest
import rulebook
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.engine.linter import SYNTAX, Linter
from torchdet_lint.fixes import patch
from torchdet_lint.source.decoding import decode

settings.register_profile(
    "suite", max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

LINTER = Linter(Settings(root="", min_severity="note"))
EXAMPLES = [case.example.code for case in rulebook.cases()]
NAMES = ["torch", "np", "random", "DataLoader", "x", "self", "loader", "F", "nn", "index_add_", "seed", "os"]


def survives(text: str) -> None:
    """Every check runs through, every finding stands inside the text, and what the fixes make of it is Python."""
    data = text.encode("utf-8", "surrogatepass")
    findings, errors = run.examine(LINTER, {"fuzz.py": data})
    assert errors == []
    lines = text.splitlines() or [""]
    for finding in findings:
        assert 1 <= finding.location.row <= len(lines) + 1
        assert finding.location <= finding.end_location
    if not any(finding.code == SYNTAX for finding in findings):
        patched = patch.apply(decode("fuzz.py", data), [finding.fix for finding in findings if finding.fix is not None])
        again, errors = run.examine(LINTER, {"fuzz.py": patched.data})
        assert errors == []
        assert SYNTAX not in {finding.code for finding in again}


@given(hypothesmith.from_grammar(auto_target=False))
def test_any_grammatical_program(text: str) -> None:
    survives("import torch\n" + text)


@given(hypothesmith.from_node(auto_target=False))
def test_any_tree_of_libcst(text: str) -> None:
    survives("import torch, random, numpy as np, os\nfrom torch.utils.data import DataLoader\n" + text)


@settings(max_examples=10 * settings().max_examples)
@given(st.sampled_from(EXAMPLES), st.data())
def test_any_example_cut_and_stirred(text: str, data: st.DataObject) -> None:
    """Faulty code with a piece cut out, doubled or renamed: near to what people type, and often no Python."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 80)))
    middle = data.draw(
        st.sampled_from(["", text[start:end] * 2, *NAMES, "(", "*", "**", "lambda: ", ":=", "\n", "\t", "\r"])
    )
    survives(text[:start] + middle + text[end:])


@settings(max_examples=10 * settings().max_examples)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for name in ("fuzz.py", "fuzz.ipynb"):
        _, errors = run.examine(LINTER, {name: data})
        assert errors == []


@pytest.mark.parametrize(
    "text", ["f'{torch.seed()!r:>{width}}'", "match torch:\n    case [*_]:\n        pass\n", "type X = int"]
)
def test_newer_grammar(text: str) -> None:
    survives("import torch\n" + text)
