"""Every example of every rule file, against all rules."""

from __future__ import annotations

import ast

import pytest
import rulebook

from torchdet_lint.catalogue import loading
from torchdet_lint.checks import CHECKS

CASES = list(rulebook.cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.identity)
def test_example(case):
    assert rulebook.reported(case.example, program=case.program) == rulebook.marks(case.example.code)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.identity)
def test_example_is_well_kept(case):
    code = case.example.code
    if case.code != "TDL001":
        ast.parse(code)
    own = {found for _, found in rulebook.marks(code)}
    if case.kind == "bad":
        assert case.code in own | {found for _, found in rulebook.marks(code, "todo")}, "a bad example expects its code"
    else:
        assert case.code not in own, "a good example expects another code at most"


def test_examples_are_not_repeated():
    seen: dict[tuple[object, ...], str] = {}
    for case in CASES:
        key = (case.example.code, case.example.torch_version, case.example.devices, tuple(case.example.files.items()))
        assert key not in seen, f"{case.identity} repeats {seen[key]}"
        seen[key] = case.identity


def test_every_check_has_a_rule_file():
    assert set(CHECKS) <= set(loading.load().rules)
