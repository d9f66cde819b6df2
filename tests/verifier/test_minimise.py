"""The search for the smallest set of fixes, against a program whose needs are known."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from torchdet_lint.verifier import Interventions
from torchdet_lint.verifier.remedies import fixes
from torchdet_lint.verifier.verification.minimise import minimise

EVERY = Interventions(fixes.every_code())


class Program:
    """Needs all the fixes in `needs`; its report names the cause of the first that is missing, if it is `telling`."""

    def __init__(self, *needs, telling=True, lucky=()):
        self.needs, self.telling, self.lucky, self.runs = needs, telling, list(lucky), 0

    def __call__(self, *, interventions, lint):
        assert lint is False
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
        plain = self(interventions=Interventions(), lint=False)
        fixed = self(interventions=EVERY, lint=False)
        self.runs = 0
        return minimise(self, EVERY, plain, fixed)[0]


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
