"""The linter's findings and a verified program: confirmed, not reached, or not reproduced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from torchdet_lint.verifier.cli import main
from torchdet_lint.verifier.recording.watching import reached
from torchdet_lint.verifier.trace import Trace  # noqa: F401
from torchdet_lint.verifier.verification.evidence.evidence import _state
from torchdet_lint.verifier.verification.outcome import FixOutcome, Outcome, RunSummary, Spread

PROGRAM = """\
import os
import threading

import numpy as np


def shards(folder):
    return [name for name in os.listdir(folder)]


def noise(n):
    return np.random.rand(
        n,
    )


def never():
    return np.random.rand(3)


def in_a_thread():
    return os.listdir(".")


class Data:
    names = os.listdir(".")


threading.Thread(target=in_a_thread).start()
if not os.fork():
    np.random.shuffle([1])
    os._exit(0)
os.wait()
print(shards("."), noise(4))
"""


@pytest.mark.parametrize("how", ["tracing", "own"])
def test_the_lines_that_a_program_reaches_are_noted_in_every_thread_and_process(tmp_path, how):
    """By tracing, as before Python 3.12, and by whatever this Python has."""
    program, out = tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    out.touch()
    wanted = list(range(1, PROGRAM.count("\n") + 1))
    order = json.dumps({"lines": {str(program): [n for n in wanted if n not in (1, 29)]}, "out": str(out)})
    source = (
        "import runpy, sys\n"
        + ("del sys.monitoring\n" if how == "tracing" and sys.version_info >= (3, 12) else "")
        + f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        + f"from torchdet_lint.verifier.recording.watching import reached\nreached.install({order!r})\n"
        + f"runpy.run_path({str(program)!r})\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {file for file, _ in rows} == {str(program.resolve())}
    found = {line for _, line in rows}
    assert {8, 12, 22, 26, 31} <= found
    assert not {1, 18, 29} & found
    assert reached.install.__doc__


def outcome(**more):
    runs = (RunSummary("A", "finished", 0, 1.0, 1), RunSummary("B", "finished", 0, 1.0, 1))
    empty = {"program": (), "runs": runs, "causes": (), "spread": Spread(1, 0, "", 0), "not_covered": ()}
    return Outcome(**{"verdict": "identical", "mode": "pair", "environment": {}, **empty, **more})


def row(code, line, end=None):
    return {"code": code, "filename": "a.py", "location": {"row": line}, "end_location": {"row": end or line}}


def state(one, rows, lines, report):
    path = Path("a.py").resolve()
    return _state(one, path, rows, {(str(path), line) for line in lines}, report)[0]


def test_a_fix_that_is_needed_confirms_the_one_finding_of_its_code_that_was_reached():
    fixed = outcome(fix=FixOutcome(True, ("TDL102",), ("TDL102",), 1.0))
    rows = [row("TDL102", 3, 5), row("TDL102", 9), row("TDL304", 5)]
    assert state(rows[0], rows, {4}, fixed) == "confirmed"
    assert state(rows[1], rows, {4}, fixed) == "not reached"
    assert state(rows[2], rows, {5}, fixed) == "not reproduced"
    # Which of two it is for is not established.
    assert state(rows[0], rows, {4, 9}, fixed) == "not reproduced"
    assert state(rows[0], rows, {4}, outcome()) == "not reproduced"


RUN = """\
import os

import numpy as np
import torch


def noise(n):
    return np.random.rand(n)


def never():
    return os.urandom(3)[0] + np.random.default_rng().random()


torch.backends.cudnn.benchmark = True
print(torch.tensor(noise(4)).sum().item())
"""


def test_a_finding_is_confirmed_not_reached_or_not_reproduced_and_check_and_sarif_carry_it(
    tmp_path, monkeypatch, capsys
):
    from torchdet_lint.cli.main import main as lint

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(RUN)
    words = ["verify", "--no-values", "--lint", "train.py", "--output-format", "json", "-o", "report.json", "train.py"]
    assert main(words) == 1
    judged = json.loads(Path("report.json").read_bytes())["evidence"]
    assert {(one["code"], one["line"]): one["state"] for one in judged} == {
        ("TDL102", 16): "confirmed",
        ("TDL104", 12): "not reached",
        ("TDL201", 15): "not reproduced",
    }
    capsys.readouterr()

    def linted(*more):
        with pytest.raises(SystemExit) as end:
            sys.exit(lint(["check", "--no-cache", "--isolated", "--evidence", "report.json", *more, "train.py"]))
        return end.value.code, capsys.readouterr()

    shown = linted()[1].out
    assert "= run: confirmed: aten.lift_fresh differed" in shown
    assert "= run: not reached: no run executed the line" in shown
    sarif = json.loads(linted("--output-format", "sarif")[1].out)
    states = [one["properties"]["evidence"]["state"] for one in sarif["runs"][0]["results"]]
    assert sorted(states) == ["confirmed", "not reached", "not reproduced"]
    rows = json.loads(linted("--output-format", "json")[1].out)
    assert sorted(one["evidence"]["state"] for one in rows) == ["confirmed", "not reached", "not reproduced"]
    # The file has changed since: what was seen of it says nothing of it now.
    Path("train.py").write_text("\n" + RUN)
    status, said = linted()
    assert "= run:" not in said.out
    assert "train.py has changed since report.json was made" in said.err
    Path("report.json").write_text("[]")
    status, said = linted()
    assert (status, "report.json" in said.err) == (2, True)
    assert msgspec.json.decode(b"[]") == []
