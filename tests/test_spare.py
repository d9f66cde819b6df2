"""Trees that pass from a file that is done to the next: never two owners, bounded, and the findings are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.engine.linter import Linter
from torchdet_lint.module import tree
from torchdet_lint.module.tree import Spare

if TYPE_CHECKING:
    import libcst as cst
    import pytest

SHARED = "def draw(n):\n    x = set(range(n))\n    return [torch.rand(one) for one in x], random.Random()\n"


def test_a_tree_has_one_owner_at_a_time() -> None:
    spare = Spare()
    first, second = spare.parse("x = 1\n"), spare.parse("x = 1\n")
    assert first is not second
    spare.give("x = 1\n", first)
    spare.give("x = 1\n", second)
    assert spare.parse("x = 1\n") is first
    assert spare.parse("x = 1\n") not in (first, second)


def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    spare = Spare(most=14)
    texts = ["a = 1\n", "b = 1\n", "c = 1\n"]
    roots = {text: spare.parse(text) for text in texts}
    for text in texts:
        spare.give(text, roots[text])
    assert spare.parse("a = 1\n") is not roots["a = 1\n"]
    assert spare.parse("b = 1\n") is roots["b = 1\n"]
    spare.give("long_name = 12345\n", spare.parse("long_name = 12345\n"))
    assert spare.parse("c = 1\n") is roots["c = 1\n"]


def test_files_that_share_a_function_are_found_fault_with_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"{name}.py": f"import random\nimport torch\n{name} = 1\n{SHARED}".encode() for name in "abcd"}
    alone = {
        name: [(one.code, one.location, one.message) for one in run.examine(_linter(), {name: text})[0]]
        for name, text in texts.items()
    }
    parsed: list[str] = []
    parse = tree.parse

    def parsing(text: str) -> cst.Module:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(tree, "parse", parsing)
    monkeypatch.setattr("torchdet_lint.module.loading.SPARE", Spare())
    together, _ = run.examine(_linter(), texts)
    assert {
        name: [(one.code, one.location, one.message) for one in together if one.filename == name] for name in texts
    } == alone
    assert all(alone.values())
    assert parsed.count(SHARED) == 1


def _linter() -> Linter:
    return Linter(Settings(root="", select=("TDL104",)))
