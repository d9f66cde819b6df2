"""What several processes print is held against each other process by process."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("torch")

from torchdet_lint.verifier.launch.launch import Program
from torchdet_lint.verifier.patching import outputs
from torchdet_lint.verifier.verification.leftovers.leftovers import Remains, compare_left
from torchdet_lint.verifier.verification.verify import verify_program

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

RACING = """
import os, random, subprocess, sys, time

def work(name, low):
    for number in range(3):
        time.sleep(random.random() / 20)
        sys.stdout.write(f"{name} ")
        sys.stdout.flush()
        time.sleep(random.random() / 20)
        print(f"has value {random.random() if low and number == 1 else number}", flush=True)

if len(sys.argv) > 2:
    work(sys.argv[1], False)
    sys.exit()
print("begins", flush=True)
for name in ("one", "two"):
    if not os.fork():
        random.seed()
        work(name, name == "two" and sys.argv[1:] == ["differ"])
        os._exit(0)
started = [subprocess.Popen([sys.executable, __file__, name, "below"]) for name in ("three", "four")]
os.wait(), os.wait(), [one.wait() for one in started]
captured = subprocess.run([sys.executable, "-c", "print('caught')"], capture_output=True, text=True)
print("ends", captured.stdout)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "racing.py").write_text(RACING)
    return str(tmp_path / "racing.py")


def test_lines_that_come_between_each_other_are_no_difference(script, tmp_path):
    report = verify_program(Program("script", script), runs=3, lint=False, keep=tmp_path / "kept")
    assert (report.verdict, report.left) == ("identical", ())
    printed = (tmp_path / "kept" / "C.out").read_text().splitlines()
    assert printed[:3] == ["begins", "ends caught", ""]
    lines = {name: [f"{name} has value {number}" for number in range(3)] for name in ("one", "two", "three", "four")}
    assert printed[3:] == [*lines["one"], *lines["two"], *lines["four"], *lines["three"]]
    assert not [*(tmp_path / "kept").glob("run.out*")]


def test_a_line_that_differs_is_told_beside_that_of_the_same_process(script):
    report = verify_program(Program("script", script, ("differ",)), lint=False)
    (left,) = report.left
    assert left.difference.startswith("line 8: 'two has value 0.")
    assert "| 'two has value 0." in left.difference


def test_texts_that_do_not_end_with_a_line_are_put_together_by_lines(tmp_path):
    for name, text in (("run.out", "a"), ("run.out.z.7", "d"), ("run.out.b.20", "c\n"), ("run.out.b.3", "b")):
        (tmp_path / name).write_text(text)
    printed = outputs.gather(tmp_path / "run.out", tmp_path / "A.out")
    assert printed == (("b 1", 2), ("b 2", 3), ("z 1", 4))
    assert (tmp_path / "A.out").read_text() == "a\nb\nc\nd"
    assert [path.name for path in tmp_path.iterdir()] == ["A.out"]


def test_lines_that_one_run_alone_has_leave_those_of_other_processes_in_pairs(tmp_path):
    runs = []
    for name, lines in (("a", "x\none 1\none 2\ntwo 5\n"), ("b", "x\none 7\ntwo 6\n")):
        (tmp_path / name).write_text(lines)
        printed = outputs.Printed("one", 2), outputs.Printed("two", 2 + lines.count("one"))
        runs.append(Remains({}, tmp_path / name, 0, printed=printed))
    (left,) = compare_left(*runs, ordered=False).certain
    assert left.difference == "line 2: 'one 1' | 'one 7'"
    assert left.last == "'two 5' | 'two 6'"
