"""The linter does what it preaches: the same bytes for any hash seed, number of jobs, cache and order of files."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import rulebook

if TYPE_CHECKING:
    from pathlib import Path

from torchdet_lint.catalogue.texts import RULES_DIRECTORY

ROOT = RULES_DIRECTORY.parent
SEEDS = range(6)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every example of every rule as a file, each twelfth one again in another folder, and the example project."""
    root = tmp_path_factory.mktemp("corpus")
    (root / ".git").mkdir()
    for number, case in enumerate(rulebook.cases()):
        for folder in ("a",) if number % 12 else ("a", "b"):
            path = root / folder / f"{case.identity}.py".lower().replace("-", "_")
            path.parent.mkdir(exist_ok=True)
            path.write_text(case.example.code * (2 if folder == "b" else 1))
    for path in sorted((ROOT / "examples/birdsong").glob("*.py")):
        (root / path.name).write_bytes(path.read_bytes())
    return root


def lint(corpus: Path, *arguments: str, seed: int) -> bytes:
    command = [sys.executable, "-m", "torchdet_lint", "--output-format", "json", "--min-severity", "note", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, cwd=corpus, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    return done.stdout


def test_the_same_bytes_every_time(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six seeds, and with them 1, 2 and 4 jobs, a cold and a warm cache, and the files named in three orders."""
    names = sorted(str(path.relative_to(corpus)) for path in corpus.rglob("*.py"))
    orders = itertools.cycle([["."], names[::-1], names[1::2] + names[::2]])
    jobs = itertools.cycle(["1", "2", "4"])
    outputs = set()
    for seed, job, order in zip(SEEDS, jobs, orders, strict=False):
        cache = ["--cache-dir", str(corpus / f".torchdet_cache/{seed // 2}")]
        outputs.add(lint(corpus, *order, "--jobs", job, *cache, seed=seed))
    (only,) = outputs
    assert only.count(b'"code"') > len(names) / 4, "hardly anything is reported: this shows little"
