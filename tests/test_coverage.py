"""Every branch of every check is covered by the examples of the rule files alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = ROOT / "torchdet_lint" / "checks"
# What a user's own rule files run: the shipped examples cannot, tests/test_engine.py does.
OWN = r"def own_rule\("


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """coverage.py's report of a run over the examples, and nothing else, by file."""
    folder = tmp_path_factory.mktemp("coverage")
    settings = folder / "coveragerc"
    settings.write_text(f"[report]\nexclude_also =\n    {OWN}\n    if TYPE_CHECKING:\n    raise NotImplementedError\n")
    environment = {**os.environ, "COVERAGE_FILE": str(folder / "data"), "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    run = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "--branch", f"--include={CHECKS}/*"]
    rulebook = str(Path(__file__).with_name("rulebook.py"))
    done = subprocess.run([*run, rulebook], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    to_json = [sys.executable, "-m", "coverage", "json", f"--rcfile={settings}", "-o", str(folder / "report.json")]
    subprocess.run(to_json, cwd=folder, env=environment, capture_output=True, check=True)
    files = json.loads((folder / "report.json").read_text())["files"]
    return {str(Path(name).relative_to(CHECKS)): entry for name, entry in files.items()}


@pytest.mark.parametrize("name", sorted(str(path.relative_to(CHECKS)) for path in CHECKS.rglob("*.py")))
def test_every_branch_of_a_check_is_covered_by_examples(report, name):
    found = report[name]
    assert (found["missing_lines"], found["missing_branches"]) == ([], [])
