"""Rules of the user's own: a file to begin with, and its examples as tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdet_lint.catalogue import explain, loading, ops
from torchdet_lint.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["rule", "new", "ACME001-fast-scatter"]) == 0


RULE = Path("ACME001-fast-scatter.toml")


def test_a_new_rule_holds_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "test", str(RULE)]) == 0
    assert capsys.readouterr().out.endswith(f"{RULE}: 2 examples hold\n")
    Path("torchdet-lint.toml").write_text("rule-files = ['ACME*.toml']\nextend-select = ['ACME']\n")
    Path("a.py").write_text("import acme.ops as o\no.fast_scatter(x)\n")
    assert main(["a.py", "--no-cache", "--output-format", "concise", "-q"]) == 1
    out = capsys.readouterr().out
    assert out == "a.py:2:1: ACME001 `acme.ops.fast_scatter` adds in the order in which threads arrive\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("  # expect: ACME001", "", "bad example 1: example.py:2: reported, and not marked `# expect: ACME001`"),
        ("\nsorted_scatter(x", "  # expect: ACME001\nsorted_scatter(x", "good example 2: example.py:1: marked"),
        ("[[bad]]", "[[good]]", "there is no [[bad]] example"),
    ],
)
def test_examples_that_do_not_hold(before: str, after: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    RULE.write_text(RULE.read_text().replace(before, after))
    assert main(["rule", "test", str(RULE)]) == 1
    assert said in capsys.readouterr().out


def test_a_file_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    RULE.write_text("mine")
    assert main(["rule", "new", "ACME001-fast-scatter"]) == 2
    assert capsys.readouterr().err.endswith("is already there\n")
    assert RULE.read_text() == "mine"


@pytest.mark.parametrize("name", ["ACME001", "TDL999-x", "../ACME001-x", "acme"])
def test_a_name_that_is_none(name: str) -> None:
    assert main(["rule", "new", name]) == 2


def test_a_broken_file_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    RULE.write_text("sumary = 's'\n")
    assert main(["rule", "test", str(RULE)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_rule_is_as_wide_as_the_terminal(width: int) -> None:
    known = loading.load()
    for rule in known.rules.values():
        text = list(explain.as_text(rule, ops.ops_of(rule.code, known.facts.ops), None, width))
        wide = [line for line in text if len(line) > width and not line.startswith(("See ", "Page: ", rule.code))]
        assert [line for line in wide if len(line.split()) > 1] == []


def test_a_rule_of_ones_own_has_no_page_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    Path("torchdet-lint.toml").write_text("rule-files = ['ACME*.toml']\n")
    assert main(["rule", "ACME001"]) == 0
    out = capsys.readouterr().out
    assert "adds with atomics" in out
    assert "Page:" not in out


def test_a_page_of_ones_own_is_linked_to(capsys: pytest.CaptureFixture[str]) -> None:
    Path("torchdet-lint.toml").write_text("rule-files = ['ACME*.toml']\nextend-select = ['ACME']\n")
    Path("a.py").write_text("import acme.ops as o\no.fast_scatter(x)\n")
    assert main(["a.py", "--no-cache", "--output-format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["url"] is None
    assert main(["a.py", "--no-cache", "--output-format", "sarif"]) == 1
    (rule,) = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    assert "helpUri" not in rule
    RULE.write_text(RULE.read_text().replace("# url = ", "url = "))
    for _ in ("cold", "from the cache"):
        assert main(["a.py", "--output-format", "json"]) == 1
        assert json.loads(capsys.readouterr().out)[0]["url"] == "https://acme.example/rules/ACME001"
    assert main(["a.py", "--no-cache", "--output-format", "sarif"]) == 1
    (rule,) = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://acme.example/rules/ACME001"
    assert rule["help"]["markdown"].startswith("**[ACME001](https://acme.example/rules/ACME001)** fast-scatter:")
    assert main(["rule", "ACME001"]) == 0
    assert "Page: https://acme.example/rules/ACME001\n" in capsys.readouterr().out
    RULE.write_text(RULE.read_text().replace('"https://acme', '"javascript:acme'))
    assert main(["a.py"]) == 2
    assert "url: expected an address" in capsys.readouterr().err


def test_own_rules_of_a_nested_configuration_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("")
    Path("part/rules").mkdir(parents=True)
    RULE.rename(Path("part/rules") / RULE)
    Path("part/torchdet-lint.toml").write_text("rule-files = ['rules/*.toml']\nextend-select = ['ACME']\n")
    Path("part/a.py").write_text("import acme.ops as o\no.fast_scatter(x)\n")
    Path("b.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    assert main([".", "--no-cache", "--output-format", "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["ACME001", "TDL201"]
    assert [result["ruleIndex"] for result in run["results"]] == [1, 0]
