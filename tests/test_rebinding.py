"""A parameter that its function gives another value: what the constants of a call leave of it."""

from __future__ import annotations

import pytest

from torchdet_lint.api import lint_source

ASKED = """\
import random

def run(x=None):
    {}
    if x < 1.0:
        random.shuffle([1, 2])

"""
PICKED = """\
import random

def run(x="flip"):
    {}
    if "flip" in x:
        random.shuffle([1, 2])

"""
HANDED_ON = """\
import random

def inner(flag):
    if flag:
        random.shuffle([1, 2])

def run(x=None):
    {}

"""
KEPT = """\
import random

class Run:
    def __init__(self, x=None):
        {}

    def go(self):
        if self.x:
            random.shuffle([1, 2])

"""


def draws(program: str, body: str, call: str) -> bool:
    kept = program is KEPT
    source = program.format(body.replace("\n", "\n        " if kept else "\n    "))
    called = call.replace("run(", "Run(") + ".go()" if kept else call
    return bool(lint_source(f'{source}if __name__ == "__main__":\n    {called}\n', select=["TDL103"]))


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("x = 1.0 if x is None else x", {"run()": False, "run(0.5)": True, "run(None)": False, "run(2)": False}),
        ("x = x or 1.0", {"run()": False, "run(0.5)": True, "run(0)": False}),
        ("x = x if x is not None else 1.0", {"run()": False, "run(0.5)": True}),
        ("if not x: x = 1.0", {"run()": False, "run(0.5)": True}),
        ("if x is None: x = 0.5", {"run()": True, "run(1.0)": False}),
        ("if x is None: x: float = 1.0", {"run()": False, "run(0.5)": True}),
        ("with lock:\n    if x is None: x = 1.0", {"run()": False, "run(0.5)": True}),
        ("if x is None: x = compute()", {"run()": True, "run(1.0)": False}),
        ("if x is None or x > 1: x = 0.5", {"run()": True, "run(1.0)": True}),
        ("if x is None or late(): x = 2.0", {"run()": False, "run(0.5)": True}),
        ("if x is not None and late(): x = 2.0\nx = x or 1.0", {"run()": False, "run(0.5)": True}),
        ("if not (x is None or late()): x = 0.5", {"run(1.0)": True}),
        ("if x is not None: pass\nelse: x = 1.0", {"run()": False, "run(0.1)": True}),
        ("if x == 3: x = 0.5\nelse: x = 1.0", {"run(3)": True, "run(0.1)": False}),
        ("if x in (3, 4): x = 0.5", {"run(3)": True, "run(1.0)": False}),
        ("if x > 2: x = 0.5", {"run(3)": True, "run(1.0)": False}),
        ("x = 1.0", {"run()": False}),
        ("y = x or 1.0\nx = y", {"run()": True}),
        ("for _ in range(3): x = 0.5", {"run(1.0)": True, "run()": True}),
        ("if compute(): x = 0.5", {"run(1.0)": True}),
        ("x = float(x)", {"run(1.0)": True}),
        ("x += 1", {"run(1.0)": True}),
    ],
)
def test_a_branch_asks_for_what_became_of_a_parameter(body: str, calls: dict[str, bool]) -> None:
    assert {call: draws(ASKED, body, call) for call in calls} == calls


LISTED = "if isinstance(x, str): x = [x]"
EMPTIED = "if x is None: x = []"


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        (f"{EMPTIED}\n{LISTED}", {"run()": True, "run(None)": False, 'run("crop")': False, "run(names)": True}),
        (LISTED, {"run()": True, 'run("flipped")': False}),
        ("x = x or []", {"run()": True, "run(None)": False, 'run("")': False}),
        ("x = [] if x is None else x", {"run(None)": False, 'run("a flip")': True}),
        ("if not x: x = ()", {"run(None)": False, "run()": True}),
        ("if isinstance(x, (str, bytes)): x = [x]\nif x is None: x = []", {'run("crop")': False, "run()": True}),
        (f"{EMPTIED}\n{LISTED}\nx = [one.lower() for one in x]", {"run(None)": False, "run()": True}),
        (f"{EMPTIED}\n{LISTED}\nif len(x) > 0: x = [one.lower() for one in x]", {"run(None)": False, "run()": True}),
        (f"{EMPTIED}\nif len(x) == 0: x = ['crop']", {"run(None)": False, "run()": True}),
        ("if x is None: x = ['crop', 'flip']", {"run(None)": True, 'run("crop")': False}),
        ("if not isinstance(x, list): x = [x]", {"run()": True, 'run("flipped")': False}),
        (f"{EMPTIED}\nx.append('flip')", {"run(None)": True}),
        (f"{EMPTIED}\nfor one in names: x.insert(0, one)", {"run(None)": True}),
        (f"{EMPTIED}\nx += names", {"run(None)": True}),
        (f"{EMPTIED}\nx[:0] = names", {"run(None)": True}),
        (f"{EMPTIED}\nif compute(): x = names", {"run(None)": True}),
        ("if isinstance(x, Names): x = []", {"run()": True}),
    ],
)
def test_a_branch_asks_for_what_is_in_the_list_that_a_parameter_becomes(body: str, calls: dict[str, bool]) -> None:
    assert {call: draws(PICKED, body, call) for call in calls} == calls


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("if x is None: x = True\ninner(x)", {"run()": True, "run(False)": False}),
        ("x = x or False\ninner(x)", {"run()": False, "run(True)": True}),
        ("inner(x or False)", {"run()": False, "run(True)": True}),
        ("inner(x and False)", {"run()": False, "run(True)": False}),
        ("inner(False if x is None else x)", {"run()": False, "run(True)": True}),
        ("inner(True if x is None else x)", {"run()": True, "run(False)": False}),
        ("y = True if x is None else x\ninner(y)", {"run()": True, "run(False)": False}),
        ("if compute(): x = True\ninner(x)", {"run()": True, "run(False)": True}),
        ("inner(True if compute() else x)", {"run(False)": True}),
        ("if x is None: x = compute()\ninner(x)", {"run()": True, "run(False)": False}),
        ("for _ in range(2):\n    inner(x)\n    x = True", {"run(False)": True}),
        ("def turn():\n    nonlocal x\n    x = True\nx = x or False\nturn()\ninner(x)", {"run()": True}),
    ],
)
def test_a_call_is_handed_what_became_of_a_parameter(body: str, calls: dict[str, bool]) -> None:
    assert {call: draws(HANDED_ON, body, call) for call in calls} == calls


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("if x is None: x = True\nself.x = x", {"run()": True, "run(False)": False}),
        ("if x is None: x = False\nself.x = x", {"run()": False, "run(True)": True}),
        ("x = x or False\nself.x = x", {"run()": False, "run(True)": True}),
        ("if x is None: x = True\nkeep(locals())", {"run()": True, "run(False)": False}),
        ("if x is None: x = False\nkeep(locals())", {"run()": False, "run(True)": True}),
        ("self.x = x or False", {"run()": False, "run(True)": True}),
        ("self.x = x or []", {"run()": True, "run(True)": True}),
        ("if x is None: x = []\nself.x = x", {"run()": True, "run(True)": True}),
        ("self.x = False if x is None else x", {"run()": False, "run(True)": True}),
        ("self.x = True if x is None else x", {"run()": True, "run(False)": False}),
        ("self.x = compute() if x is None else x", {"run()": True, "run(False)": False}),
        ("if x is None:\n    self.x = True\nelse:\n    self.x = x", {"run()": True, "run(False)": False}),
        ("if x is None:\n    self.x = compute()\nelse:\n    self.x = x", {"run()": True, "run(False)": False}),
        ("if x is None:\n    self.x = False\nelse:\n    self.x = x", {"run()": False, "run(True)": True}),
    ],
)
def test_an_object_keeps_what_became_of_a_parameter(body: str, calls: dict[str, bool]) -> None:
    assert {call: draws(KEPT, body, call) for call in calls} == calls


@pytest.mark.parametrize("given", ["True", "False", "kind", ""])
def test_a_loader_runs_what_its_data_set_was_made_with(given: str) -> None:
    source = KEPT.format("self.x = x or False").replace("go(self)", "__getitem__(self, index)")
    source = f"from torch.utils.data import DataLoader\n{source}def load(kind=True):\n    data = Run({given})\n"
    source += "    for row in DataLoader(data):\n        print(row)\n\n"
    source += 'if __name__ == "__main__":\n    load()\n    print(Run(True), Run())\n'
    assert bool(lint_source(source, select=["TDL103"])) is (given in ("True", "kind"))
