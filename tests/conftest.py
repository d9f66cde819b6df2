from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Hundreds of tests start Python: byte code is kept, as it is where people install the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# And they end sooner with what this folder has for them.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).with_name("startup")), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# A shell may have its background jobs ignore these, and what a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# By CPU time. With a file for each worker, whoever is done first takes the next one: the long ones must not come last.
LONGEST = """test_probe test_experiment test_fix_examples test_deterministic test_shapes test_verify test_planted
    test_coverage test_rules test_reliability test_mentions test_processes test_writing test_fuzz test_spelling test_lsp
    test_precommit test_hostile test_leftovers test_resume test_verify_planted test_auditing test_pytest_plugin
    test_strict test_environment test_forecast test_picked test_packaging test_tree test_program test_reach
    test_two_readers test_house test_ranks test_subclasses test_cache_walk test_engine""".split()
RANK = {name: rank for rank, name in enumerate(LONGEST)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest first; within a file the order stays."""
    items.sort(key=lambda item: RANK.get(item.path.stem, len(RANK)))


@pytest.fixture(scope="session", autouse=True)
def nowhere(tmp_path_factory):
    """An empty working folder: where a text is linted, the files around it are searched for what uses it."""
    os.chdir(tmp_path_factory.mktemp("nowhere"))


@pytest.fixture(scope="module", autouse=True)
def settled():
    """What the modules before have left is no more looked at for garbage: in a fork each look copies all of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def project(tmp_path):
    """Writes files into a folder, `train_DOT_py="…"`, which it gives."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_DOT_", ".")).write_text(text)
        return tmp_path

    return write
