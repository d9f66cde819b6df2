"""Planted programs of one cause each: a stress pair tells every one from itself, and its rule's fix makes it agree.

Here the evidence is what the programs print; `test_verify_planted.py` shows them to the verifier itself.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchdet_lint.verifier import Interventions, environment
from torchdet_lint.verifier.remedies import fixes

pytest.importorskip("torch")
if not hasattr(os, "fork"):
    pytest.skip("needs os.fork", allow_module_level=True)

HERE = Path(__file__).parent
PLANTED = sorted((HERE / "planted").glob("*.py"))
DETERMINISTIC = sorted((HERE / "deterministic").glob("*.py"))
_RULE = re.compile(r'"""rule: (TDL\d{3})\. ')


def rule_of(program: Path) -> str:
    return _RULE.match(program.read_text())[1]


CODES = sorted({rule_of(program) for program in PLANTED})
# Variables are read before the first line of Python; a spawned child has only the environment to learn from.
BEFORE_THE_START = [code for code in CODES if fixes.resolve([code])[0].variables or code == "TDL108"]


def outputs(folder: Path, interventions: list[Interventions], programs: list[str]) -> list[dict[str, str]]:
    """What each program (`path`, or `path@CODE`) printed under each of the interventions; the runs go side by side."""
    runs = []
    for number, intervention in enumerate(interventions):
        output = folder / str(number)
        output.mkdir()
        env = environment(intervention, events=folder / f"events-{number}")
        command = [sys.executable, str(HERE / "zygote.py"), str(output), *programs]
        with (folder / f"stderr-{number}").open("w") as errors:
            runs.append((output, subprocess.Popen(command, env=env, cwd=folder, stderr=errors)))
    for _, process in runs:
        try:
            process.wait(timeout=560)
        finally:
            process.kill()
    printed = [{file.name: file.read_text() for file in output.iterdir()} for output, _ in runs]
    for number, table in enumerate(printed):
        failed = [name for name, text in table.items() if not text.endswith("exit 0\n")]
        assert len(table) == len(programs)
        assert not failed, (failed, (folder / f"stderr-{number}").read_text())
    return printed


def test_there_are_enough_programs_and_every_fixable_rule_that_can_differ_on_a_cpu_has_one():
    assert len(PLANTED) >= 40
    assert set(CODES) == {
        *(f"TDL{number}" for number in (*range(101, 109), 203, 204, 206, 208, *range(301, 307), 308)),
        *(f"TDL{number}" for number in (401, 402, 403, 501, 601)),
    }


def test_one_stress_pair_differs_in_every_planted_program_and_in_none_that_is_fixed_or_deterministic(tmp_path):
    fixed = [f"{program}@{code}" for program in PLANTED if (code := rule_of(program)) not in BEFORE_THE_START]
    programs = [*map(str, PLANTED), *map(str, DETERMINISTIC), *fixed]
    first, second = outputs(tmp_path, [Interventions(stress="A"), Interventions(stress="B")], programs)
    differing = sorted(name for name in first if first[name] != second[name])
    assert differing == [program.stem for program in PLANTED]


# Fixes that cannot stand in for each other share their processes: a hash seed, seeded draws and fresh memory.
TOGETHER = [("TDL108",), ("TDL305",), ("TDL101", "TDL501", "TDL601")]


def test_no_fix_that_the_environment_brings_is_left_out():
    assert {code for codes in TOGETHER for code in codes} == {*BEFORE_THE_START, "TDL101"}


@pytest.mark.parametrize("codes", TOGETHER, ids=" ".join)
def test_a_fix_that_the_environment_brings_makes_its_programs_agree_under_stress(tmp_path, codes):
    programs = [str(program) for program in PLANTED if rule_of(program) in codes]
    first, second = outputs(tmp_path, [Interventions(codes, "A"), Interventions(codes, "B")], programs)
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
def test_a_fix_applied_from_the_start_makes_its_programs_agree_without_stress_too(tmp_path, code):
    programs = [str(program) for program in PLANTED if rule_of(program) == code]
    first, second = outputs(tmp_path, [Interventions((code,)), Interventions((code,))], programs)
    assert first == second


@pytest.mark.slow
def test_twenty_runs_of_the_deterministic_programs_agree(tmp_path):
    expected = None
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        sides = [Interventions(stress="A"), Interventions(stress="B")]
        for printed in outputs(folder, sides, [*map(str, DETERMINISTIC)]):
            expected = expected or printed
            assert printed == expected
