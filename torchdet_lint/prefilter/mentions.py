"""A word of the catalogue in the text of a unit -> whether it may mean there what it is wanted for.

This decides what is parsed, by text and by the names that the file binds at top level. It may say yes in vain.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.allocations import Allocations
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from torchdet_lint.prefilter.library import Library, Meant
    from torchdet_lint.prefilter.skeleton import Skeleton

_TENSOR_MADE = lazy(r"\b\w*Tensor\s*\(|\bpartial[ \t]*\(|=\s*[\w.]*Tensor\s*(?:$|if\b)", re.MULTILINE)
_CHAIN = lazy(r"(?<![\w.)\]])([^\W\d]\w*)((?:\.[^\W\d]\w*)*)\.$")
_FAR = 120
_LOOKING_UP = frozenset({"getattr", "setattr", "delattr", "import_module", "__import__", "attrgetter", "methodcaller"})
_CALLED = lazy(r"\s*\(")
_BEFORE = frozenset(
    """return yield from in and or not if elif else while lambda is await async for del assert raise with except def
    class import as global nonlocal case match type print exec""".split()
)
_AFTER = "if else for in and or not is as async import from"
_WORD_AFTER = lazy(rf"[ \t]+(?!(?:{'|'.join(_AFTER.split())})\b)[^\W\d]")
_HYPHEN = lazy(r"\w-")
_LAST_WORD = lazy(r"(?<!\w)[^\W\d]\w*$")
_WORD_LENGTH = 40
_IMPORTED = lazy(r"\bimport\b\s*(\([^)]*\)|(?:\\\r?\n|[^\n#])*)")
_GIVEN = lazy(r"\b([^\W\d]\w*)\s*(?::=|=(?!=))|\b(?:as|for)\s+([^\W\d]\w*)")
_NAME = lazy(r"\w+|\*")
_DEFINE = lazy(r"^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(", re.MULTILINE)
_MARKS = lazy(r"[()\[\]{}:]")
_ANNOTATION = lazy(r"(?:->|:)[\w.\[\],\s|\"']*$")
_OBJECT = "="


class Mentions:
    """The names that a file binds at top level, and by them what its words may mean."""

    def __init__(self, text: str, skeleton: Skeleton, library: Library) -> None:
        self.library = library
        self._text = text
        self.stars = False
        self.bound: dict[str, set[str]] = {}
        for piece in skeleton.pieces:
            for name, target in piece.binds:
                if name == "*":
                    self.stars = True
                else:
                    self.bound.setdefault(name, set()).add(target)
            if piece.name and piece.kind != "header" and piece.owner < 0:
                self.bound.setdefault(piece.name, set()).add(_OBJECT)
        for class_ in skeleton.classes:
            self.bound.setdefault(class_.name, set()).add("")
        self.allocations = Allocations(text, self.bound, library.facts.memory, library.fills)

    def any(self, hits: frozenset[str], text: str, words: frozenset[str], *, header: bool) -> bool:
        """Whether one of `hits`, some of the `words` of a unit that reads `text`, may mean what it is wanted for.

        A type of tensor, which stands in every other annotation, counts where it is called or a class derives from it.
        Any other word counts by the name that it ends: `F.softmax` is none of the catalogue's, `self.scatter_add_` may
        be. A small word that the file does not bind (`take`, `pad`) is a variable of that name. A class that annotates
        a parameter is not made there.
        """
        types = {word for word in hits if word.endswith("Tensor")} if not header else set()
        if types and _TENSOR_MADE.search(text):
            return True
        hits -= types
        if not hits:
            return False
        unit = _UnitText(text, words)
        for word in sorted(hits):
            kind = word[:1].isupper() and word not in self.library.layers
            for start in places(word, text):
                if kind and unit.annotates(start, start + len(word)):
                    continue
                if not self._means(word, unit, start):
                    continue
                if word not in self.library.facts.memory.allocators or not self.allocations.idle(word, text, start):
                    return True
        return False

    def _means(self, word: str, unit: _UnitText, start: int) -> bool:
        text = unit.text
        before = text[start - 1] if start else " "
        if before == ".":
            chain = _CHAIN.search(text, max(0, start - _FAR), start)
            return (chain is None and unit.looks_up) or self._attribute(word, unit, start, chain)
        if before in "\"'":
            whole = text[start + len(word) : start + len(word) + 1] == before
            return unit.looks_up or (whole and self.library.meant(word) is None)
        if not self.stars and not self._name(word, unit):
            return False
        return not _is_prose(text, start, start + len(word))

    def _attribute(self, word: str, unit: _UnitText, start: int, chain: re.Match[str] | None) -> bool:
        meant = self.library.meant(word)
        if meant is None:
            return True
        root = chain[1] if chain is not None else ""
        used = meant.setting or _CALLED.match(unit.text, start + len(word)) is not None
        targets = self.bound.get(root, ())
        if used and root not in ("", "self", "cls") and "" not in targets and unit.may_bind(root):
            return True
        if not targets:
            held = meant.setting and chain is not None and bool(chain[2]) and self._keeps(meant)
            return used and (meant.method or held or (bool(root) and self.stars))
        assert chain is not None
        return any(self._target(meant, target, f"{chain[2]}.{word}", used) for target in targets)

    def _keeps(self, meant: Meant) -> bool:
        """Whether the file may keep what has the setting in an attribute: `self.cudnn = torch.backends.cudnn`."""
        owners = {name.split(".")[-2] for name in meant.names if name.count(".")}
        return any(re.search(rf"\.\w+\s*=\s*[\w.]*\b{owner}\b", self._text) for owner in sorted(owners))

    def _target(self, meant: Meant, target: str, rest: str, used: bool) -> bool:
        """Whether the name after `rest` may be meant where the root of the chain stands for `target`."""
        if target in ("", _OBJECT):
            return used and (meant.method or not target)
        name = self.library.canonical(target + rest)
        if target in STANDARD and rest.count(".") == 1:
            # A function of a module, no method of an object: `re.compile` is no `model.compile`.
            return name in meant.names
        other = target.partition(".")[0] not in self.library.roots
        return name in meant.names or (meant.method and used and other)

    def _name(self, word: str, unit: _UnitText) -> bool:
        meant = self.library.meant(word)
        if unit.may_import(word):
            return True
        targets = self.bound.get(word)
        if targets is None:
            return word in BUILTINS or (meant is None and not word.islower())
        if meant is None or "" in targets:
            return True
        return any(self.library.canonical(target) in meant.names for target in targets)


class _UnitText:
    """The text of a unit, and what it may bind itself, found when somebody asks."""

    def __init__(self, text: str, words: frozenset[str]) -> None:
        self.text = text
        self.imports = "import" in words
        self.looks_up = not words.isdisjoint(_LOOKING_UP)

    @functools.cached_property
    def _imported(self) -> frozenset[str]:
        return frozenset(_NAME.findall(" ".join(_IMPORTED.findall(self.text))))

    @functools.cached_property
    def _given(self) -> frozenset[str]:
        return frozenset(name for pair in _GIVEN.findall(self.text) for name in pair)

    @functools.cached_property
    def _signature(self) -> tuple[int, int]:
        """Where the parameters of a function begin, and its body."""
        define = _DEFINE.search(self.text)
        depth, start = 1, define.end() if define is not None else 0
        for mark in _MARKS.finditer(self.text, start) if define is not None else ():
            depth += {"(": 1, "[": 1, "{": 1, ":": 0}.get(mark[0], -1)
            if mark[0] == ":" and not depth:
                return start, mark.start()
        return 0, 0

    def annotates(self, start: int, end: int) -> bool:
        """Whether the class named there stands in an annotation of the function's signature."""
        first, last = self._signature
        if not first <= start < last or self.text[end : end + 1] == "(":
            return False
        return _ANNOTATION.search(self.text, max(first, start - _FAR), start) is not None

    def may_import(self, name: str) -> bool:
        """Whether an import in the unit may bind `name`."""
        return self.imports and (name in self._imported or "*" in self._imported)

    def may_bind(self, name: str) -> bool:
        """Whether `name` may be a module by another name that the unit gives it."""
        return name in self._given or self.may_import(name)


def _is_prose(text: str, start: int, end: int) -> bool:
    """Whether another word stands beside it: so it is in a text that somebody reads, not in code."""
    if _WORD_AFTER.match(text, end) or (_HYPHEN.match(text, max(0, start - 2)) and not _CALLED.match(text, end)):
        return True
    if text[start - 1 : start] not in (" ", "\t"):
        return False
    line = text[text.rfind("\n", 0, start) + 1 : start].rstrip()
    last = _LAST_WORD.search(line, max(0, len(line) - _WORD_LENGTH))
    return last is not None and last[0] not in _BEFORE
