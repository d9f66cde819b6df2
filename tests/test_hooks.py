"""Objects that another one keeps in a list and calls by the name of a method: which of their methods run."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

PROGRAM = """
import numpy as np

class Hook:
    def before_run(self, runner):
        pass

    def after_run(self, runner):
        pass

class Seed(Hook):
    def before_run(self, runner):
        np.random.seed(42)

class Report(Hook):
    def after_run(self, runner):
        print(runner.total)

class Noise(Hook):
    def before_run(self, runner):
        runner.total = np.random.rand()

class Runner:
    KEEPS

    def call(self, name):
        CALLS

    def train(self):
        self.call("before_run")
        self.total = DRAW
        self.call("after_run")

def main():
    MAKES

if __name__ == "__main__":
    main()
"""
EMPTY = "def __init__(self):\n    self.hooks = []\n\n"
REGISTERS = f"{EMPTY}def register(self, hook):\n    self.hooks.append(hook)"
GIVEN = "def __init__(self, hooks):\n    self.hooks = hooks"
CALLS = "for hook in self.hooks:\n    getattr(hook, name)(self)"
SEEDS = "runner = Runner()\nrunner.register(Seed())\nrunner.register(Report())\nrunner.train()"
ONE_BY_ONE = "runner = Runner()\nfor hook in (Seed(), Report()):\n    runner.register(hook)\nrunner.train()"
IF_THERE = """for hook in self.hooks:
    method = getattr(hook, name, None)
    if method is not None:
        method(self)"""
APPENDED = f"{GIVEN.replace('= hooks', '= []')}\n    for hook in hooks:\n        self.hooks.append(hook)"
LISTED = "Runner([Report(), Seed()]).train()"
DRAW = "np.random.rand()"


def codes(folder, keeps, calls, makes, draw):
    text = PROGRAM.replace("DRAW", draw)
    for word, part, indent in (("KEEPS", keeps, 4), ("CALLS", calls, 8), ("MAKES", makes, 4)):
        text = text.replace(word, part.replace("\n", f"\n{' ' * indent}"))
    (folder / "train.py").write_text(text, encoding="utf-8")
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    return {one.code for one in found}


@pytest.mark.parametrize(
    ("keeps", "calls", "makes"),
    [
        (REGISTERS, CALLS, SEEDS),
        (REGISTERS, CALLS.replace("(self)", "(runner=self)"), SEEDS.replace("(Seed())", "(hook=Seed())")),
        (REGISTERS.replace("append(", "insert(0, "), CALLS, SEEDS),
        (REGISTERS, CALLS, ONE_BY_ONE),
        (REGISTERS, "for hook in self.hooks:\n    hook.before_run(self)", SEEDS),
        (REGISTERS, "for place, hook in enumerate(self.hooks):\n    getattr(hook, name)(self)", SEEDS),
        (REGISTERS, "for hook in reversed(self.hooks):\n    getattr(hook, f'before_{name[7:]}')(self)", SEEDS),
        (REGISTERS, "for hook in self.hooks:\n    if hasattr(hook, name):\n        getattr(hook, name)(self)", SEEDS),
        (REGISTERS, IF_THERE, SEEDS),
        (
            f"{REGISTERS}\n\ndef register_all(self, hooks):\n    for hook in hooks:\n        self.register(hook)",
            CALLS,
            "runner = Runner()\nrunner.register_all([Report(), Seed()])\nrunner.train()",
        ),
        (f"{EMPTY}def register(self, *hooks):\n    self.hooks.extend(hooks)", CALLS, SEEDS),
        (GIVEN, CALLS, LISTED),
        (GIVEN.replace("= hooks", "= list(hooks or [])"), CALLS, LISTED),
        (APPENDED, CALLS, LISTED),
        ("def __init__(self):\n    self.hooks = [Seed(), Report()]", CALLS, "Runner().train()"),
        ("def __init__(self):\n    self.hooks = []\n    self.hooks.append(Seed())", CALLS, "Runner().train()"),
        # Of what nobody knows a method may seed which a class has that the program makes.
        (EMPTY, CALLS, "runner = Runner()\nrunner.hooks.append(Seed())\nrunner.train()"),
        (
            "def __init__(self):\n    self.hooks = {}\n\ndef register(self, key, hook):\n    self.hooks[key] = hook",
            "for hook in self.hooks.values():\n    getattr(hook, name)(self)",
            "runner = Runner()\nrunner.register('seed', Seed())\nrunner.train()",
        ),
    ],
)  # fmt: skip
def test_a_method_that_is_called_by_its_name_seeds(keeps, calls, makes, tmp_path):
    assert "TDL102" not in codes(tmp_path, keeps, calls, makes, DRAW)


@pytest.mark.parametrize(
    ("keeps", "calls", "makes", "draw"),
    [
        (REGISTERS, CALLS, SEEDS.replace("Seed", "Report"), DRAW),
        (REGISTERS, CALLS, SEEDS.replace("Seed", "Noise"), "1"),
        (GIVEN, CALLS, LISTED.replace("Seed", "Noise"), "1"),
        (REGISTERS, CALLS, "Runner().train()", DRAW),
        (REGISTERS, CALLS.replace("name", "'after_run'"), SEEDS, DRAW),
        # No object of the class that seeds is made.
        (EMPTY, CALLS, "runner = Runner()\nrunner.hooks.append(Report())\nrunner.train()", DRAW),
    ],
)
def test_another_method_or_object_does_not(keeps, calls, makes, draw, tmp_path):
    assert "TDL102" in codes(tmp_path, keeps, calls, makes, draw)
