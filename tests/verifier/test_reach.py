"""Processes that are out of reach, and seeds that no fix can hold: each is told in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from torchdet_lint.verifier import cli
from torchdet_lint.verifier.patching import reach
from torchdet_lint.verifier.patching.inheritance import with_bootstrap
from torchdet_lint.verifier.patching.patches import Patches

HOME = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "environment", "says"),
    [
        ([sys.executable, "job.py", "-S"], None, ""),
        ([sys.executable, "-u", "-m", "job", "-I"], None, ""),
        ([sys.executable, "-W", "ignore", "-c", "1"], None, ""),
        (["bash", "-c", "python -S job.py"], None, ""),
        (["python3.12", "-S", "job.py"], None, "with -S"),
        ([Path(sys.executable), "-uS", "job.py"], None, "with -S"),
        ("python -S -c 1", None, "with -S"),
        ([sys.executable, "job.py"], {"PATH": "/bin"}, "PYTHONPATH"),
        ([sys.executable, "job.py"], with_bootstrap({}, {}), ""),
        (["ls"], {}, ""),
        ([], None, ""),
        (7, None, ""),
    ],
)
def test_the_command_line_and_the_environment_tell(words, environment, says):
    reason = reach.why_unreached(words, environment)
    assert says in reason
    assert bool(says) == bool(reason)


def test_an_isolated_interpreter_is_reached_where_the_package_is_installed(monkeypatch):
    for installed in (True, False):
        monkeypatch.setattr(reach, "_has_path_file", lambda installed=installed: installed)
        assert bool(reach.why_unreached([sys.executable, "-I", "job.py"], None)) is not installed


@pytest.mark.parametrize(("file", "told"), [("torch/_inductor/cpu_vec_isa.py", 0), ("torch/hub.py", 1)])
def test_what_the_compiler_starts_runs_nothing_of_the_programs(file, told):
    said = []
    source = "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', '1'], check=True)\n"
    patches = Patches()
    reach.watch(patches, types.SimpleNamespace(report=lambda *words: said.append(words)))
    try:
        exec(compile(source, f"/lib/site-packages/{file}", "exec"), {})
    finally:
        patches.undo()
    assert len(said) == told


def verify(folder, source, *options):
    (folder / "program.py").write_text(source)
    command = [sys.executable, "-m", "torchdet_lint", *options, "program.py"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join([str(HOME), os.environ["PYTHONPATH"]])}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)


UNREACHED = (
    "import subprocess, sys\nimport torch\nsubprocess.run([sys.executable, '-S', '-c', 'print(7)'], check=True)\n"
)


def test_a_process_out_of_reach_is_told_with_the_line_that_starts_it(tmp_path):
    pytest.importorskip("torch")
    done = verify(tmp_path, UNREACHED, "verify", "--no-lint")
    assert done.returncode == 0
    assert "not covered: program.py:3: a Python process starts with -S" in done.stdout
    done = verify(tmp_path, UNREACHED, "run", "--fix=TDL103")
    assert (done.returncode, done.stdout) == (0, "7\n")
    assert len(done.stderr.splitlines()) == 1
    assert "program.py:3: a Python process starts with -S" in done.stderr


@pytest.mark.usefixtures("forks")
def test_seeds_that_no_fix_can_hold_are_found_and_told(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    source = (
        "import datetime, torch\n"
        "torch.manual_seed(int(datetime.datetime.now().timestamp() * 1e6))\n"
        "torch.rand(3)\n"
        "generator = torch.Generator()\n"
        "generator.seed()\n"
        "print(torch.rand(3, generator=generator))\n"
    )
    (tmp_path / "program.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["verify", "--no-lint", "--no-values", "--fix=TDL105", "program.py"]) == 1
    out = capsys.readouterr().out
    causes = [line.split()[:4] for line in out.splitlines() if " TDL105 entropy-seed " in line]
    assert [(cause[0], cause[3]) for cause in causes] == [("1", "program.py:3"), ("2", "program.py:6")], out
    assert "TDL105: datetime.now() and torch.Generator().seed() cannot be reached" in out
