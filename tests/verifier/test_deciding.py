"""Where the paths of two runs part: the conditions on the way, and what they may hang on."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.catalogue import loading  # noqa: E402
from torchdet_lint.verifier import verify_program  # noqa: E402
from torchdet_lint.verifier.comparison.deciding import deciding, told  # noqa: E402
from torchdet_lint.verifier.launch.launch import Program  # noqa: E402
from torchdet_lint.verifier.verification import machine  # noqa: E402
from torchdet_lint.verifier.verification.text import text  # noqa: E402

LOOP = """
import time
begin = time.time()
while time.time() - begin < 9:
    x = op(1)
y = op(2)
"""
BREAK = """
from time import monotonic as now
def left(end):
    return now() < end
def train(model, seconds):
    end = now() + seconds
    while True:
        for n in range(3):
            x = op(1)
        if not left(end):
            break
        x = op(2)
    return op(3)
train(None, 2)
op(4)
"""
BRANCHES = """
import os
flag = os.getpid() % 2
if flag == 0:
    x = op(1)
elif flag:
    x = op(2)
else:
    x = op(3)
if True:
    y = op(4)
"""
OBJECT = """
class Budget:
    def __init__(self, count):
        self.count = count
    def done(self):
        return not self.count
def words(text):
    return len(set(text))
budget = Budget(words("abc"))
others = {1, 2}
op(1)
if budget.done():
    raise SystemExit
op(2)
"""
CALLED = """
def one(x):
    return op(x)
def two(x):
    return one(x)
def three(x):
    if len(x) > 3:
        x = op(x)
    return op(x)
first = op(0)
for name in names():
    two(name)
match len(names()):
    case 3:
        op(3)
    case _:
        op(4)
values = [op(v) for v in names()]
three(values)
"""
NESTED = """
op(0)
if a:
    if b:
        if c:
            if d:
                op(1)
op(2)
"""
BEFORE = """
if a:
    op(1)
    if b:
        op(2)
op(3)
"""


@pytest.mark.parametrize(
    ("source", "after", "ways", "conditions", "reads"),
    [
        (LOOP, 4, (5, 6), (4,), {3: "the clock", 4: "the clock"}),
        (LOOP, 5, (5, 6), (4,), {3: "the clock", 4: "the clock"}),
        (BREAK, 9, (12, 13), (10,), {4: "the clock", 6: "the clock"}),
        (BREAK, 9, (12, 15), (10,), {4: "the clock", 6: "the clock"}),
        (BREAK, 9, (12, 0), (10,), {4: "the clock", 6: "the clock"}),
        (BREAK, 9, (13, 15), (10,), {4: "the clock", 6: "the clock"}),
        (BREAK, 13, (0, 0), None, {}),
        (BREAK, 14, (15, 0), None, {}),
        (BRANCHES, 0, (5, 7), (4, 6), {3: "the process id"}),
        (BRANCHES, 0, (5, 9), (4, 6), {3: "the process id"}),
        (BRANCHES, 5, (11, 0), None, {}),
        (OBJECT, 11, (14, 0), (12,), {}),
        (CALLED, 10, (3, 15), (11, 13), {}),
        (CALLED, 12, (15, 17), (13,), {}),
        (CALLED, 18, (18, 8), (18,), {}),
        (CALLED, 18, (8, 9), (7,), {}),
        (CALLED, 99, (8, 9), (7,), {}),
        (NESTED, 2, (7, 8), (3, 4, 5, 6), {}),
        (BEFORE, 3, (5, 6), (4,), {}),
        ("nothing", 1, (2, 3), None, {}),
        ("def broken(", 1, (1, 0), None, {}),
    ],
)
def test_the_conditions_on_the_way(tmp_path, source, after, ways, conditions, reads):
    (tmp_path / "train.py").write_text(source)
    for given in (ways, ways[::-1]):
        way = deciding(tmp_path, "train.py", after, given, loading.load().facts.entropy)
        assert (way and way.conditions) == conditions
        assert dict(way.reads if way else ()) == reads


def test_a_condition_hangs_on_what_makes_what_it_looks_at(tmp_path):
    (tmp_path / "train.py").write_text(OBJECT)
    way = deciding(tmp_path, "train.py", 11, (14, 0), {})
    assert {4, 6, 8, 9} <= way.behind
    assert 10 not in way.behind


def test_conditions_are_told_in_words(tmp_path):
    def words(source, after, ways, **more):
        (tmp_path / f"{len(source)}.py").write_text(source)
        way = deciding(tmp_path, f"{len(source)}.py", after, ways, loading.load().facts.entropy)
        return told(way, "a.py", **{"found": False, **more})

    assert words(LOOP, 5, (5, 6)) == "the condition on the way is at a.py:4, which may hang on the clock (a.py:3)"
    assert words(LOOP, 5, (5, 6), found=True) == "the condition on the way is at a.py:4"
    assert words(CALLED, 10, (3, 15)) == (
        "the conditions on the way are at a.py:11 and a.py:13 (hashes, files, an unseeded choice?)"
    )
    assert "not established" in words(NESTED, 2, (7, 8))


TIMED = """
import sys, time, torch

torch.manual_seed(0)
with open(sys.argv[1], "a+") as counter:
    counter.write(".")
    late = time.time() < 0 or counter.tell() % 2
x = torch.ones(4)
if late:
    x = x * 2
table = {word: n for n, word in enumerate(set(sys.argv))}
y = torch.arange(float(len(table)))
print((x.sum() + y.sum()).item())
"""


def test_what_does_not_decide_is_not_named(tmp_path, monkeypatch):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text(TIMED)
    monkeypatch.chdir(folder)
    report = verify_program(Program("script", "train.py", (str(tmp_path / "runs"),)), values=False)
    (cause,) = report.causes
    assert (cause.rule, cause.finding, cause.decided) == ("", None, "train.py:9")
    assert cause.message.endswith("condition on the way is at train.py:9, which may hang on the clock (train.py:7)")
    assert "1 no rule   train.py:9 (run A goes on at train.py:1" in text(report)
    assert "file=train.py,line=9," in machine.github(report)
    assert '"startLine": 9' in machine.sarif(report)
