"""How many elements a list has that a call passes: what is left of the branches that ask for it."""

from __future__ import annotations

import pytest

from torchdet_lint.api import lint_source

ASKED = """\
import random

def run(xs{default}):
    {body}
    if {test}:
        random.shuffle([1, 2])

def hand_on(xs):
    {body}
    run(xs)

if __name__ == "__main__":
    y = input()
    {call}
"""
ONE = "if y:\n        zs = []\n        for x in xs:\n            {}\n        xs = zs"


def draws(test: str, call: str, body: str = "pass", default: str = "") -> bool:
    return bool(lint_source(ASKED.format(test=test, call=call, body=body, default=default), select=["TDL103"]))


@pytest.mark.parametrize(
    ("test", "calls"),
    [
        ("len(xs) > 1", {"run([y])": False, "run((y,))": False, "run([1])": False, "run([y, y])": True}),
        ("len(xs) == 2", {"run([y])": False, "run(xs=[y])": False, "run([y, y])": True, "run([*y])": True}),
        ("len(xs) in (2, 3)", {"run([y])": False, "run([y, y])": True}),
        ("len(xs) >= 2 and y", {"run([y])": False, "run([y, y])": True}),
        ("xs", {"run([])": False, "run([y])": True, "run(y)": True}),
        ("not xs", {"run([y])": False, "run([])": True}),
        ("len(xs)", {"run([])": False, "run([y])": True}),
        ("xs is None", {"run(y[1:])": False, "run(y[::2, 0])": False, "run(y[0])": True}),
    ],
)
def test_a_display_that_a_call_passes(test: str, calls: dict[str, bool]) -> None:
    assert {call: draws(test, call) for call in calls} == calls


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("z = [y]\n    run(z)", False),
        ("z = [y]\n    z.append(y)\n    run(z)", True),
        ("run([y])\n    run([y, y])", True),
        ("run(*y)", True),
        ("hand_on([y])", False),
        ("hand_on([y, y])", True),
        ("hand_on(y)", True),
    ],
)
def test_a_list_that_is_made_elsewhere(call: str, expected: bool) -> None:
    assert draws("len(xs) > 1", call) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("n = len(xs)", False),
        ("xs = [float(x) for x in xs]", False),
        ("xs = list(xs)", False),
        (ONE.format("zs.append(x)"), False),
        (ONE.format("zs.append(x)\n            zs.append(x)"), True),
        (ONE.format("if x:\n                zs.append(x)"), True),
        (ONE.format("for _ in y:\n                zs.append(x)"), True),
        (ONE.format("if x:\n                break\n            zs.append(x)"), True),
        ("xs = [float(x) for x in xs if x]", True),
        ("xs.append(1)", True),
        ("xs += [1]", True),
        ("xs += y", True),
        ("xs = f(xs)", True),
    ],
)
def test_what_the_function_makes_of_it(body: str, expected: bool) -> None:
    test = "n > 1" if body.startswith("n ") else "len(xs) > 1"
    assert draws(test, "run([1])", body) is expected
    assert draws("len(xs) > 1", "hand_on([1])", body) or not expected


def test_a_default() -> None:
    assert draws("xs", "run()", default="=()") is False
    assert draws("xs", "run(y)", default="=()") is True


def test_starred_parameters_hold_what_is_left() -> None:
    source = ASKED.format(test="len(xs) > 1", call="run([y], y)", body="pass", default="").replace("run(xs", "run(*xs")
    assert lint_source(source, select=["TDL103"])


def test_each_element_of_a_list_that_is_changed() -> None:
    source = (
        "import random\n\ndef run(flags):\n    for flag in flags:\n        if flag:\n            random.random()\n\n"
        'if __name__ == "__main__":\n    flags = [False]\n    {}\n    run(flags)\n'
    )
    assert not lint_source(source.format("pass"), select=["TDL103"])
    assert lint_source(source.format("flags[0] = True"), select=["TDL103"])
