"""The edit of the source that is printed beside a set of fixes: tried on a copy, and verified."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from torchdet_lint.verifier.comparison.explain import Finding
from torchdet_lint.verifier.launch.launch import Program
from torchdet_lint.verifier.remedies.fixes import BY_RULE
from torchdet_lint.verifier.verification import editing

GENERATOR = (
    "import numpy as np\nimport torch\n\ntorch.manual_seed(0)\nrng = np.random.default_rng()\nprint(rng.random())\n"
)


class Verdict(NamedTuple):
    verdict: str
    runs: tuple[str, ...] = ("A", "B")


@pytest.fixture
def verify(tmp_path):
    """Calls a program equal if its text, read where it stands, has no unseeded generator; counts the calls."""
    calls = []

    def judge(program: Program) -> Verdict:
        text = Path(program.directory, program.target).read_text()
        assert Path(program.directory).resolve() != tmp_path.resolve()
        calls.append(text)
        return Verdict("diverged" if "default_rng()" in text else "identical")

    judge.calls = calls
    return judge


def program(folder, text, name="train.py"):
    (folder / name).write_text(text)
    return Program("script", name, directory=str(folder))


def cured(subject, codes, judge):
    return editing.cure(subject, codes, (), editing.reported(subject, ()), judge)


def test_the_command_is_one_whose_edit_was_verified_on_a_copy(tmp_path, verify):
    edit = cured(program(tmp_path, GENERATOR), ("TDL104",), verify)
    assert edit.command in (
        "torchdet-lint --fix --select TDL104 train.py",
        "torchdet-lint --fix --unsafe-fixes --select TDL104 train.py",
    )
    assert edit.runs == 4
    assert (tmp_path / "train.py").read_text() == GENERATOR
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("absolute", [False, True])
def test_a_program_outside_of_the_working_folder_is_edited_on_a_copy_of_its_own(tmp_path, absolute):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    program(there, GENERATOR)
    (there / "helper.py").write_text("")
    target = str(there / "train.py") if absolute else "../there/train.py"

    def judge(edited: Program) -> Verdict:
        assert edited.directory == str(here)
        assert Path(edited.target).parent.resolve() != there.resolve()
        assert Path(edited.target).with_name("helper.py").exists()
        return Verdict("diverged" if "default_rng()" in Path(edited.target).read_text() else "identical")

    edit = cured(Program("script", target, directory=str(here)), ("TDL104",), judge)
    assert (edit.runs, edit.command.rpartition(" ")[2]) == (4, target)
    assert (there / "train.py").read_text() == GENERATOR
    assert not [*here.iterdir()]


def test_an_edit_that_does_not_cure_is_not_printed(tmp_path, verify):
    text = GENERATOR + "other = eval('np.random.default_rng()')\n"
    assert cured(program(tmp_path, text), ("TDL104",), verify) is None
    assert verify.calls


def test_a_finding_is_named_from_where_the_user_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    program(tmp_path, GENERATOR, "sub/train.py")
    for directory in ("", str(tmp_path)):
        found = editing.reported(Program("script", "sub/train.py", directory=directory), ())
        assert {one.filename for one in found} == {"sub/train.py"}


def test_where_the_linter_has_no_finding_nothing_is_run(tmp_path, verify):
    assert cured(program(tmp_path, "print(1)\n"), ("TDL104",), verify) is None
    assert not verify.calls


def test_a_rule_that_the_linter_does_not_report_is_told_by_its_twin_that_it_does():
    twin = next(code for code, fix in BY_RULE.items() if fix == BY_RULE["TDL402"] and code != "TDL402")
    found = [Finding(twin, "", "train.py", 3), Finding("TDL601", "", "train.py", 5)]
    assert editing.spoken_of(("TDL402", "TDL601"), found) == tuple(sorted((twin, "TDL601")))
    assert editing.spoken_of(("TDL402",), []) == ("TDL402",)


def test_the_seed_of_everything_is_written_as_the_seed_that_the_program_lacks(tmp_path):
    def judge(edited: Program) -> Verdict:
        text = Path(edited.directory, edited.target).read_text()
        return Verdict("identical" if "random.seed(" in text else "diverged")

    source = "import random\nimport torch\n\ntorch.manual_seed(0)\nprint(torch.tensor(random.random()).item())\n"
    edit = cured(program(tmp_path, source), ("TDL106",), judge)
    assert "TDL103" in edit.command


def test_what_no_edit_cures_is_told_in_the_rules_words():
    (told,) = editing.by_hand(("TDL306", "TDL999"))
    assert told.startswith("by hand: TDL306: Use what keeps the order (`imap`,")
