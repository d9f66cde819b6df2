"""The evidence that `make evidence` reads from the installed torch: kept, and in agreement with the tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

evidence: Any = pytest.importorskip("evidence")


def test_the_tables_say_what_the_installed_torch_says() -> None:
    assert list(evidence.differences()) == []


def test_what_was_kept_is_what_the_installed_torch_says() -> None:
    path = evidence.path_of(evidence.INSTALLED)
    if not path.is_file():
        pytest.skip("no evidence is kept of this release: run `make evidence`")
    assert json.loads(path.read_text(encoding="utf-8")) == evidence.gathered(), "run `make evidence`"


def test_what_changed_between_releases_is_told() -> None:
    now = evidence.gathered()
    before = {
        **now,
        "documented": [*now["documented"][1:], "torch.gone throws, forward, cuda"],
        "signatures": {**now["signatures"], "torch.bincount": ["input"]},
    }
    assert sorted(evidence.changes(before, now)) == sorted(
        [
            f"+ documented: {now['documented'][0]}",
            "- documented: torch.gone throws, forward, cuda",
            "- signatures: torch.bincount: ['input']",
            f"+ signatures: torch.bincount: {now['signatures']['torch.bincount']}",
        ]
    )


def test_the_tables_have_all_that_was_found_to_draw() -> None:
    assert list(evidence.unlisted()) == []


def test_what_draws_and_is_not_listed_is_told_of(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = {"numpy.random.rand": ["numpy"], "numpy.random.rant": ["numpy"], "scipy.stats.norm.rvs": ["python"]}
    monkeypatch.setattr(evidence, "DRAWS", tmp_path / "draws.json")
    evidence.DRAWS.write_text(json.dumps({"numpy": {"version": "2.4.6", "tried": 3, "draws": draws}}))
    assert list(evidence.unlisted()) == [
        "generators.toml: numpy.random.rant draws from numpy, and is not listed",
        "generators.toml: scipy.stats.norm.rvs draws from python, and is not listed",
    ]


def test_a_call_that_draws_is_told_from_one_that_seeds_and_one_that_does_nothing() -> None:
    drawing = evidence.drawing
    numpy, torch = drawing.np, drawing.torch

    def seeds() -> None:
        torch.manual_seed(3)

    def draws_and_raises() -> None:
        numpy.random.rand()
        raise ValueError

    assert drawing.changed(seeds)[0] == set()
    assert drawing.changed(draws_and_raises)[0] == {"numpy"}
    assert drawing.changed(lambda: (torch.rand(1), drawing.random.random()))[0] == {"python", "torch"}
    assert drawing.changed(lambda: 3) == (set(), 3)


def test_a_library_that_is_not_installed_is_not_checked(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "DRAWS", tmp_path / "draws.json")
    monkeypatch.setattr(evidence.drawing, "LIBRARIES", {"no-such-library": ("no_such",)})
    assert list(evidence.swept()) == ["no-such-library: not installed, not checked"]
    assert json.loads(evidence.DRAWS.read_text()) == {}


def test_a_table_that_lacks_something_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(evidence.torchfacts.WRONG_DOCUMENTS, "torch.bincount throws", "for this test")
    monkeypatch.delitem(evidence.torchfacts.NOT_DOCUMENTED, "torch.take")
    monkeypatch.setattr(evidence.torchfacts, "random_ops", lambda: {"rand": ("torch.rand", "torch.random_number")})
    monkeypatch.setattr(evidence.torchfacts, "signed", lambda ops: [("torch.bincount", ("x",)), ("torch.gone", ("x",))])
    told = list(evidence.differences())
    assert len(told) == 6
    assert sum(line.startswith("ops.toml: the documentation says torch.bincount throws") for line in told) == 1
    assert "ops.toml: torch.take (backward) is not documented in this release" in told
    assert "ops.toml: torch.gone(x) is not there" in told
    assert "generators.toml: torch.random_number draws, and is not listed" in told
