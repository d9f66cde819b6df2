"""The planted programs before the verifier itself: found, with the rule among those named, and cured by it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchdet_lint.verifier import Interventions
from torchdet_lint.verifier.launch.launch import Program
from torchdet_lint.verifier.remedies import fixes
from torchdet_lint.verifier.verification.options import VerifyOptions

pytest.importorskip("torch")

HERE = Path(__file__).parent
PLANTED = sorted((HERE / "planted").glob("*.py"))
DETERMINISTIC = sorted((HERE / "deterministic").glob("*.py"))
# A process that does without torch is not recorded: what it hands over is data from outside.
UNNAMED = ("unseeded_processes",)
SOME = [HERE / "planted" / f"{name}.py" for name in ("op_index_backward", "set_of_words", "unwritten_small")]


def verified(path, **options):
    from torchdet_lint.verifier.verification.verify import verify_program

    return verify_program(Program("script", str(path)), mode="stress", lint=False, timeout=240, **options)


def check_found(path):
    rule = re.match(r'"""rule: (TDL\d{3})', path.read_text())[1]
    report = verified(path)
    assert report.verdict == "diverged", report.failure
    named = {code for cause in report.causes for code in (cause.rule, *cause.also)}
    assert rule in named or path.stem in UNNAMED


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.stem)
def test_a_planted_program_is_found_by_one_stress_pair_and_its_rule_named(path):
    check_found(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
def test_every_planted_program_is_found_by_one_stress_pair_and_its_rule_named(path):
    check_found(path)


@pytest.mark.slow
def test_the_smallest_set_of_fixes_is_told_with_its_price_and_the_command_for_the_source():
    from torchdet_lint.verifier.verification.repair import verify_fixed

    program = Program("script", str(HERE / "planted" / "late_seed.py"))
    report = verify_fixed(program, VerifyOptions(interventions=Interventions(fixes.every_code()), timeout=240))
    assert report.verdict == "identical"
    assert report.fix.cured
    assert [fixes.BY_RULE[code] for code in report.fix.fixes] in (["seed-torch"], ["seed-everything"])
    assert report.fix.ratio > 0
    assert "torchdet-lint --fix" in report.fix.command


@pytest.mark.slow
@pytest.mark.parametrize("path", DETERMINISTIC, ids=lambda path: path.stem)
def test_a_deterministic_program_is_never_flagged_in_twenty_runs(path):
    report = verified(path, runs=20)
    assert report.verdict == "identical", report.causes
