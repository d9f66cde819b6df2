"""Skeletons that files share: each text is cut once, a tree is handed out once, and what is kept is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchdet_lint.module import cutting
from torchdet_lint.module.cutting import Cuts
from torchdet_lint.prefilter.skeleton import Skeleton, SyntaxFault

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "import torch\n\n\ndef draw():\n    return torch.rand(1)\n"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    cut: Callable[[str], Skeleton] = cutting.cut

    def counting(text: str) -> Skeleton:
        seen.append(text)
        return cut(text)

    monkeypatch.setattr(cutting, "cut", counting)
    return seen


def test_a_neighbour_that_is_linted_later_is_cut_once(counted: list[str]) -> None:
    cuts = Cuts()
    beside = cuts.alone(TEXT)
    own = cuts.with_tree(TEXT)
    assert (beside.tree, counted) == (None, [TEXT])
    assert own.tree is not None
    assert own._replace(tree=None) == beside == cuts.alone(TEXT)
    assert counted == [TEXT]


def test_a_tree_is_handed_out_once(counted: list[str]) -> None:
    cuts = Cuts()
    first, second = cuts.with_tree(TEXT), cuts.with_tree(TEXT)
    assert first.tree is not None
    assert second.tree is not None
    assert first.tree is not second.tree
    assert counted == [TEXT, TEXT]


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(counted: list[str]) -> None:
    cuts = Cuts(most=24)
    texts = [f"{name} = 1\n" for name in "abcde"]
    for text in texts:
        cuts.alone(text)
    for text in reversed(texts):
        cuts.alone(text)
    assert counted == [*texts, "a = 1\n"]
    counted.clear()
    cuts.alone("long_name = 12345\n")
    cuts.alone("long_name = 12345\n")
    assert len(counted) == 2


def test_what_is_no_python_is_refused_each_time(counted: list[str]) -> None:
    cuts = Cuts()
    for ask in (cuts.with_tree, cuts.alone):
        with pytest.raises(SyntaxFault):
            ask("def (\n")
    assert len(counted) == 2
