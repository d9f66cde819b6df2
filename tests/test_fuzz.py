"""No program that Python's grammar allows makes the linter crash, and no bytes do; `make fuzz` goes on from here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fuzzing.making import Maker
from fuzzing.oracles import Input, judge
from fuzzing.shrinking import shrunk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

settings.register_profile(
    "suite", max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
settings.load_profile("suite")

PAST = sorted(Path(__file__).with_name("data").joinpath("fuzz").glob("*.json"))
HEAD = b"import torch, random, numpy as np, os\nfrom torch.utils.data import DataLoader\n"


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a program imports is not to be found in the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("empty"))
        yield


def holds(files: dict[str, bytes]) -> None:
    failure = judge(Input("source", files)).failure
    assert failure is None, failure.story


def grammatical() -> st.SearchStrategy[str]:
    import hypothesmith  # which takes seconds, and its grammar too

    return hypothesmith.from_grammar(auto_target=False)


@given(st.deferred(grammatical))
def test_any_grammatical_program(text: str) -> None:
    holds({"fuzz.py": b"import torch\n" + text.encode("utf-8", "surrogatepass")})


@pytest.mark.parametrize("text", json.loads(Path(__file__).with_name("data").joinpath("trees.json").read_text()))
def test_any_tree_of_libcst(text: str) -> None:
    """`hypothesmith.from_node` has made these texts; it takes a second for each, and `make fuzz` has it make others."""
    holds({"fuzz.py": HEAD + text.encode("utf-8", "surrogatepass")})


@settings(max_examples=10 * settings().max_examples)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    holds({"fuzz.py": data})
    holds({"fuzz.ipynb": data})


def test_examples_stirred() -> None:
    """What `make fuzz` begins with: examples, notebooks, configurations, baselines, caches and traces, stirred."""
    maker = Maker(1, [])
    for number in range(150):
        one = maker.make(number)
        failure = judge(one).failure
        assert failure is None, f"{one.encoded()}\n{failure.story}"


@pytest.mark.parametrize("path", PAST, ids=lambda path: path.stem)
def test_what_failed_once(path: Path) -> None:
    failure = judge(Input.decoded(path.read_text(encoding="ascii"))).failure
    assert failure is None, failure.story


def test_a_failure_is_made_small() -> None:
    large = Input("source", {"a.py": b"x = 1\n" * 50 + b"y = bad\n" + b"z = 3\n" * 50, "b.py": b"", "c.py": b"w\n"})
    small = shrunk(large, lambda one: b"bad" in one.files["a.py"] and "c.py" in one.files)
    assert small.files == {"a.py": b"bad", "c.py": b""}


BROKEN = {
    "exception": ("torchdet_lint.engine.run.reported", lambda *_: 1 // 0),
    "fix": ("torchdet_lint.fixes.patch._edited", lambda text, _: text.replace("import", "import  ")),
    "report": ("torchdet_lint.report.text.visible", lambda text, keep="": f"{text}\u202e"),
}


@pytest.mark.parametrize("oracle", sorted(BROKEN))
def test_an_oracle_that_does_not_hold_is_told(oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Input("source", {"a.py": b"import torch\nfrom torch.utils.data import DataLoader\nx = 1  # noqa: TDL201\n"})
    assert judge(one).failure is None
    monkeypatch.setattr(*BROKEN[oracle])
    failure = judge(one).failure
    assert failure is not None
    assert failure.oracle == oracle


@pytest.mark.parametrize(
    "text", ["f'{torch.seed()!r:>{width}}'", "match torch:\n    case [*_]:\n        pass\n", "type X = int"]
)
def test_newer_grammar(text: str) -> None:
    holds({"fuzz.py": b"import torch\n" + text.encode()})
