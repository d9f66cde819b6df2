"""What is on the way to a seed -> whether the file uses it for other things too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.module.module import Module

_SEED = "seed"
_COMMENT = lazy(r"#[^\r\n]*")
# What is bound to a name that speaks of seeds becomes one.
_TO_A_SEED = lazy(r"(?i)\w*seed\w*[ \t]*=(?!=)[^\r\n]*")


class Uses:
    """The words of one file outside of what it seeds with."""

    def __init__(self, module: Module, seeds: Sequence[cst.CSTNode]) -> None:
        self.module = module
        self.seeds = seeds
        self._rest: str | None = None
        self._known: dict[str, bool] = {}

    def shared(self, there: Module, node: cst.CSTNode) -> cst.CSTNode | None:
        """`node`, a name, an attribute or a call of the file, where what it stands for is read for something else."""
        called = node.func if isinstance(node, cst.Call) else node
        word = last_word(called) if isinstance(called, (cst.Name, cst.Attribute)) else ""
        if there is not self.module or not word or _SEED in word.lower():
            return None
        if word not in self._known:
            self._known[word] = self._is_read(word, isinstance(called, cst.Attribute))
        return node if self._known[word] else None

    def _is_read(self, word: str, attribute: bool) -> bool:
        owner = r"\.\s*" if attribute else r"(?<![\w.])(?<!def )"
        read = re.compile(rf"{owner}{word}\b(?!\s*=[^=])")
        given = sum(len(read.findall(self.module.code(node))) for node in self.seeds)
        return len(read.findall(self._text)) > given

    @property
    def _text(self) -> str:
        """The file without its comments and what it binds to names that speak of seeds."""
        if self._rest is None:
            self._rest = _TO_A_SEED.sub("", _COMMENT.sub("", self.module.text))
        return self._rest
