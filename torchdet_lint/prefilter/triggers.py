"""A text -> the words of the catalogue that stand in it, so that a rule may have something to say about it.

It reads text alone and imports no parser: most files of a project hold no such word, and cost no more than this.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.catalogue.ops import Op

IDENTIFIER = lazy(r"[^\W\d]\w*")
_WORD = lazy(r"\w")
_PUNCTUATION = bytes(one for one in range(128) if not (chr(one).isalnum() or chr(one) == "_"))
_APART = bytes.maketrans(_PUNCTUATION, b" " * len(_PUNCTUATION))
_QUOTED = lazy(r"""["']([\w+-]+)["']""")
_UNPACKED = "**self."
_Need = tuple[frozenset[str], ...]


@functools.lru_cache(maxsize=4)
def triggers_of(catalogue: Catalogue) -> Triggers:
    """The triggers of a catalogue, worked out once: an editor's server and programs lint more than once."""
    return Triggers(catalogue)


def spellings(mark: str) -> tuple[str, ...]:
    """`mark` as it stands in a file: `shuffle=True` and `shuffle = True`, `set(` and `set (`, `list( self.`."""
    equals = (mark, mark.replace("=", " = "), mark.replace("=", " ="))
    return tuple(dict.fromkeys((*equals, mark.replace("(", " ("), re.sub(r"\((?=.)", "( ", mark))))


class Triggers:
    """The words for which a statement is parsed, and what else must stand in the file for them to mean anything.

    `names` are the dotted names that end in a word, for the words that mean nothing by themselves; `roots` are what the
    names of others begin with, any of which a file may take from one that it takes whole. `quoted` are the texts that
    arguments must be, which another file may give to what an object keeps and unpacks.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.needs, self.names = _needs(catalogue)
        self.roots = frozenset[str]().union(*(need[0] for needs in self.needs.values() for need in needs if need))
        self.quoted = frozenset[str]().union(
            *(some for needs in self.needs.values() for need in needs for some in need[1:])
        )
        rules = catalogue.rules.values()
        self.marks = tuple(sorted({way for rule in rules for mark in rule.marks for way in spellings(mark)}))
        self.patterns = tuple(re.compile(text) for rule in rules for text in rule.patterns)

    def within(self, text: str) -> frozenset[str]:
        """The words of a file's `text` for which a rule wants the statement that holds them parsed."""
        present = words_in(text)
        candidates = present & self.needs.keys()
        if "import *" in text:
            present |= self.roots
        if any(len(need) > 1 for word in candidates for need in self.needs[word]):
            present.update(self.quoted if _UNPACKED in text else (f"'{word}'" for word in _QUOTED.findall(text)))
        return frozenset(
            word
            for word in candidates
            if any(all(not present.isdisjoint(some) for some in need) for need in self.needs[word])
        )

    def marked(self, text: str) -> bool:
        """Whether a check asked to look at a file like this and to decide itself what is parsed."""
        return any(mark in text for mark in self.marks) or any(pattern.search(text) for pattern in self.patterns)


def words_in(text: str) -> set[str]:
    """The words of `text`, numbers among them: what `IDENTIFIER` finds, in a third of the time."""
    return set(text.encode("utf-8", "replace").translate(_APART).decode().split())


def places(word: str, text: str) -> Iterator[int]:
    """Where `word` stands in `text`, whole."""
    if not word:
        return
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        before = text[start - 1 : start]
        if not (before == "_" or before.isalnum() or _WORD.match(text, end)):
            yield start
        start = text.find(word, end)


def op_names(ops: Iterable[Op]) -> Iterator[str]:
    """The spellings of the ops that are reported one by one."""
    for op in ops:
        if not (op.aggregate or op.silent_because):
            for spelling in op.spellings:
                yield spelling.name


def _needs(catalogue: Catalogue) -> tuple[dict[str, tuple[_Need, ...]], dict[str, frozenset[str]]]:
    """Word -> what else must stand in the file: of any one need a word of each set; and word -> names."""
    facts = catalogue.facts
    aliases: dict[str, set[str]] = {}
    for alias, target in facts.canonical.items():
        aliases.setdefault(_root(target), set()).add(_root(alias))
    for derived, base in facts.bases.items():
        aliases.setdefault(_root(base), set()).add(_root(derived))
    free = set(facts.triggers)
    rows: list[tuple[str, _Need]] = [(name, ()) for name in facts.bases]
    ops = [*facts.ops]
    for rule in catalogue.rules.values():
        if rule.scope != "project":
            free.update(rule.triggers)
            rows.extend((name, ()) for call in rule.calls for name in call.names)
            rows.extend((name, ()) for setting in rule.settings for name in setting.names)
            ops.extend(rule.ops)
    rows.extend((name, _values_of(op)) for op in ops for name in op_names((op,)))
    free.update(name.rpartition(".")[2] for op in ops for name in op_names((op,)) if _tells_alone(op, name))
    found: dict[str, dict[_Need, None]] = {}
    names: dict[str, set[str]] = {}
    for name, need in rows:
        word = name.rstrip("()").rpartition(".")[2]
        root = _root(name)
        if root == "builtins":
            free.add(word)
        elif word not in free:
            full = (frozenset({root, *aliases.get(root, ())}), *need)
            found.setdefault(word, {})[full] = None
            names.setdefault(word, set()).add(name.removesuffix("()"))
    needs = {word: tuple(needs) for word, needs in found.items() if word not in free} | dict.fromkeys(free, ((),))
    return needs, {word: frozenset(full) for word, full in names.items() if word not in free}


def _tells_alone(op: Op, name: str) -> bool:
    """Whether `name` is an in-place method that only a tensor has: a file may call it and never say `torch`."""
    return op.receiver == "distinctive" and name.startswith("torch.Tensor.") and name.endswith("_")


def _values_of(op: Op) -> _Need:
    """The quoted texts of each argument that must be one of a few texts and is none of them by default."""
    need: list[frozenset[str]] = []
    for condition in op.when:
        values = [value for value in condition.values if isinstance(value, str)]
        if condition.test == "in" and len(values) == len(condition.values) and condition.default not in values:
            need.append(frozenset(f"'{value}'" for value in values))
    return tuple(need)


def _root(name: str) -> str:
    return name.partition(".")[0]
