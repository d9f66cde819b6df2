"""The search for the smallest set of fixes, against a program whose needs are known."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from torchdet_lint.verifier import Interventions
from torchdet_lint.verifier.comparison.explain import Finding
from torchdet_lint.verifier.remedies import fixes
from torchdet_lint.verifier.verification.minimise import Smallest, minimise
from torchdet_lint.verifier.verification.outcome import Cause
from torchdet_lint.verifier.verification.repair import _spoken, settled

EVERY = Interventions(fixes.every_code())


class Program:
    """Needs all the fixes in `needs`; its report names the cause of the first that is missing, if it is `telling`."""

    def __init__(self, *needs, telling=True, lucky=()):
        self.needs, self.telling, self.lucky, self.runs = needs, telling, list(lucky), 0
        self.most = 1000

    def __call__(self, interventions):
        self.runs += 1
        if interventions.fixes in self.lucky:
            self.lucky.remove(interventions.fixes)
            return self.report("identical")
        names = {fixes.BY_RULE[code] for code in interventions.fixes}
        missing = [code for code in self.needs if fixes.BY_RULE[code] not in names]
        return self.report("diverged", missing) if missing else self.report("identical")

    def report(self, verdict, missing=()):
        causes = [SimpleNamespace(rule=code, also=()) for code in missing[:1]] if self.telling else []
        return SimpleNamespace(verdict=verdict, causes=causes)

    def smallest(self):
        plain = self(Interventions())
        fixed = self(EVERY)
        self.runs = 0
        return minimise(self, EVERY, plain, fixed, most=self.most).codes


@pytest.mark.parametrize("needs", [("TDL101",), ("TDL101", "TDL302"), ("TDL104", "TDL306", "TDL403", "TDL501")])
@pytest.mark.parametrize("telling", [True, False])
def test_the_set_that_is_needed_is_found(needs, telling):
    program = Program(*needs, telling=telling)
    found = program.smallest()
    assert {fixes.BY_RULE[code] for code in found} == {fixes.BY_RULE[code] for code in needs}
    if telling:
        assert found == needs


def test_causes_that_are_named_save_most_of_the_runs():
    told, untold = Program("TDL101", "TDL302"), Program("TDL101", "TDL302", telling=False)
    told.smallest()
    untold.smallest()
    assert told.runs <= 6 < untold.runs < 40


def test_rules_that_share_a_fix_count_once_under_the_code_that_a_cause_names():
    assert Program("TDL403").smallest() == ("TDL403",)
    assert Program("TDL208", telling=False).smallest() == ("TDL203",)


def test_a_cause_that_is_named_wrongly_is_left_out_again():
    class Misled(Program):
        def report(self, verdict, missing=()):
            causes = [SimpleNamespace(rule=code, also=("TDL102", "TDL999")) for code in missing[:1]]
            return SimpleNamespace(verdict=verdict, causes=causes)

    assert Misled("TDL103").smallest() == ("TDL103",)


def test_a_set_that_luck_made_look_sufficient_does_not_survive_the_confirmation():
    program = Program("TDL101", "TDL302", lucky=[("TDL101",)])
    assert program.smallest() == ("TDL101", "TDL302")


def test_a_program_that_only_the_whole_set_cures_keeps_it():
    every = tuple({fixes.BY_RULE[code]: code for code in reversed(fixes.every_code())}.values())
    assert len(Program(*every, telling=False).smallest()) == len(fixes.FIXES)


def test_what_is_left_out_shows_what_it_cures():
    program = Program("TDL101", "TDL302", "TDL501")
    plain, fixed = program(Interventions()), program(EVERY)
    found = minimise(program, EVERY, plain, fixed)
    assert {code: [cause.rule for cause in one.causes] for code, one in found.without.items()} == {
        code: [code] for code in program.needs
    }
    assert not found.spent


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_search_ends_with_its_budget_and_gives_a_set_that_sufficed(most):
    """A set that was seen to suffice stays one, however little could be left out of it."""
    program = Program("TDL101", "TDL302", "TDL501", telling=False)
    plain, fixed = program(Interventions()), program(EVERY)
    program.runs = 0
    found = minimise(program, EVERY, plain, fixed, most=most)
    assert program.runs <= most
    assert found.spent
    assert found.report.verdict == "identical"
    assert program(Interventions(found.codes)).verdict == "identical"
    assert not found.without


def cause(rule, line, *also, index=0):
    return Cause(
        rule=rule, name="", also=also, message="a batch differed", kind="cause", source="outside", op="batch",
        phase="forward", file="train.py", line=line, function="f", forward_op="", forward_file="", forward_line=0,
        op_index=index or line, differing=1, compared=1, inputs_equal=True, generators={}, stream="main",
    )  # fmt: skip


def told(causes, **without):
    """Rule, line and whether it is proven, where the smallest set is that of `without`."""
    reports = {code: SimpleNamespace(causes=tuple(found)) for code, found in without.items()}
    smallest = Smallest(tuple(sorted(without)), SimpleNamespace(verdict="identical"), reports)
    return [(one.rule, one.line, one.proven) for one in settled(causes, smallest, ())]


def test_the_cause_that_is_named_is_the_one_whose_fix_cures():
    """Three batches were laid to the workers, and sorting the files alone makes the runs equal."""
    causes = [cause("TDL301", 5, "TDL304"), cause("TDL301", 9), cause("TDL301", 12)]
    assert told(causes, TDL304=causes) == [("TDL304", 5, True)]
    (one,) = settled(causes[:1], Smallest(("TDL304",), None, {"TDL304": SimpleNamespace(causes=causes)}), ())
    assert one.name == "unordered-files"
    assert one.also == ()
    assert "a batch differed" not in one.message


def test_a_rule_that_has_the_same_fix_stays():
    """Deterministic mode is the fix of TDL403 and of TDL203."""
    causes = [cause("TDL403", 5)]
    assert told(causes, TDL203=causes) == [("TDL403", 5, True)]


def test_every_place_of_a_rule_whose_fix_cures_stays():
    causes = [cause("TDL101", 5), cause("TDL101", 9), cause("TDL102", 7)]
    assert told(causes, TDL101=causes) == [("TDL101", 5, True), ("TDL101", 9, True)]


def test_a_second_cause_that_the_first_had_hidden_is_told():
    causes = [cause("TDL101", 3)]
    found = told(causes, TDL101=causes, TDL305=[cause("TDL305", 8)])
    assert found == [("TDL101", 3, True), ("TDL305", 8, True)]


def test_what_follows_from_another_generator_is_no_cause():
    """The loader's lines differ while NumPy's generator does, and are equal once torch is seeded."""
    causes = [cause("TDL101", 3), cause("TDL102", 5), cause("TDL102", 9)]
    found = told(causes, TDL101=[causes[0]], TDL102=[causes[2]])
    assert found == [("TDL101", 3, True), ("TDL102", 9, True)]


def test_where_the_search_was_cut_off_nothing_is_proven():
    causes = [cause("TDL301", 5)]
    smallest = Smallest(("TDL301", "TDL304"), SimpleNamespace(verdict="identical"), {}, spent=True)
    assert settled(causes, smallest, ()) == tuple(causes)


@pytest.mark.parametrize("reported", [False, True])
def test_a_proven_hash_seed_may_be_the_order_of_a_set_where_the_linter_sees_no_hash(reported):
    open_one = cause("", 5)
    smallest = Smallest(("TDL601",), None, {"TDL601": SimpleNamespace(causes=[open_one])})
    found = [Finding("TDL601", "`hash(name)` decides", "data.py", 3)] if reported else []
    (told,) = settled([open_one], smallest, found)
    assert (told.rule, told.proven) == ("TDL601", True)
    assert told.also == (() if reported else ("TDL305",))
    assert ("order of a set" in told.message) == (not reported)
    assert ("sorted(set(x))" in told.instead) == (not reported)
    assert "zlib.crc32" in told.instead
    assert _spoken(("TDL104", "TDL601"), found) == ("TDL104", "TDL601", *told.also)


class Either(Program):
    """A pinned hash seed puts a set of words in order too."""

    def __call__(self, interventions):
        cured = {"TDL305", "TDL601"} & set(interventions.fixes) and "TDL101" in interventions.fixes
        return self.report("identical" if cured else "diverged")

    def report(self, verdict, missing=()):
        causes = [SimpleNamespace(rule="TDL101", also=()), SimpleNamespace(rule="", also=("TDL601", "TDL305"))]
        return SimpleNamespace(verdict=verdict, causes=causes if verdict == "diverged" else ())


@pytest.mark.parametrize(("reported", "other"), [(["TDL101", "TDL305"], "TDL305"), (["TDL101", "TDL601"], "TDL601")])
def test_of_two_fixes_that_both_cure_the_one_that_the_linter_speaks_of_is_taken(reported, other):
    program = Either()
    plain, fixed = program.report("diverged"), program.report("identical")
    assert minimise(program, EVERY, plain, fixed, reported=reported).codes == ("TDL101", other)
