"""What the environment may name: the verifier's own variables never make a Python write over a file of others."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.patching.events import Reporter, read_events
from torchdet_lint.verifier.patching.inheritance import EVENTS, INTERVENTIONS, RECORD, WITNESS, with_bootstrap

PRECIOUS = "export PATH=/precious\n"


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("variable", [WITNESS, EVENTS, RECORD])
def test_no_variable_makes_a_program_write_over_a_file(tmp_path, variable, link):
    precious = tmp_path / "precious"
    precious.write_text(PRECIOUS)
    named = tmp_path / "named"
    if link:
        named.symlink_to(precious)
    named = named if link else precious
    if variable == RECORD:
        # A child adds its number and `.part`; it says what goes wrong in a file with `.error` added.
        error = tmp_path / f"{named.name}.error"
        error.symlink_to(precious)
        (tmp_path / "sitecustomize.py").write_text(
            "import os\n"
            f"os.symlink({str(precious)!r}, {str(named)!r} + f'.{os.getpid()}.part')\n"
            "import torchdet_lint.verifier.launch.start as start\nstart.start_safely()\n"
        )
        value = json.dumps({"trace": str(named), "roots": [str(tmp_path)], "about": {}})
        environment = {**os.environ, RECORD: value}
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    else:
        environment = with_bootstrap({variable: str(named)})
    if variable == EVENTS:
        environment[INTERVENTIONS] = json.dumps({"fixes": ["TDL101"], "seed": 1, "strict": True})
    program = (
        "import torch, subprocess, sys\ntorch.rand(2) + 1\n"
        "try:\n    torch.cuda.manual_seed(1)\n    torch.seed()\nexcept Exception as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert precious.read_text() == PRECIOUS, done.stderr


def test_events_go_into_a_file_of_events_only(tmp_path, capsys):
    events, other = tmp_path / "events", tmp_path / "other"
    Reporter(str(events)).report("TDL101", "one")
    Reporter(str(events)).report("TDL102", "two")
    assert [event.code for event in read_events(events)] == ["TDL101", "TDL102"]
    assert capsys.readouterr().err == ""
    other.write_text(PRECIOUS)
    Reporter(str(other)).report("TDL101", "three")
    assert other.read_text() == PRECIOUS
    assert "three" in capsys.readouterr().err
    (tmp_path / "link").symlink_to(events)
    Reporter(str(tmp_path / "link")).report("TDL101", "four")
    assert len(read_events(events)) == 2


def test_a_trace_is_no_program_and_goes_over_nothing_but_a_trace(tmp_path):
    path, other = tmp_path / "run.tdtrace", tmp_path / "other"
    for _ in range(2):
        trace.Writer(path).close()
    assert not stat.S_IMODE(path.stat().st_mode) & 0o111
    other.write_text(PRECIOUS)
    with pytest.raises(trace.TraceError, match="is no trace of torchdet-lint, and is not written over"):
        trace.Writer(other)
    assert other.read_text() == PRECIOUS


def test_only_the_parts_of_a_trace_go(tmp_path):
    path = tmp_path / "run.tdtrace"
    kept = tmp_path / "run.tdtrace.mine.part"
    for name in (path, trace.part_of(path, 12)):
        trace.Writer(name).close()
    kept.write_text(PRECIOUS)
    trace.gather(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run.tdtrace", "run.tdtrace.mine.part"]
