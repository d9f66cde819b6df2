"""The seeds that a file gives its generators -> a seed for one more, so that no two of them draw the same numbers."""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.tables.conventions import Conventions
    from torchdet_lint.dataflow.seeding.seed_calls import SeedCalls

NUMBER = "{seed}"
INITIAL_SEED = "{torch}.initial_seed()"
# A hole for what is added to the initial seed once all fixes of the file are known, and what the generator draws.
APART = lazy(r"\{apart(?:\.(permutes|kept))?\}")
# No program runs as so many processes.
_RANKS = 10_000
# A generator that is seeded anew for each epoch, or each of whatever is counted.
_COUNTS_ON = lazy(r"(?<!\btorch)(?<!cuda)\.manual_seed\(\s*[\w.]+\s*\+\s*[A-Za-z_]")
_SEEDS = "seed"
_OFFSET = lazy(r"(?:\s*%\s*2\s*\*\*\s*32)?(?:\s*\+\s*(\d+))?")
_NUMBER = lazy(r"(\d+)(?:\s*\+\s*(\d+))?(?![\w.])")
_NAME = lazy(r"[A-Za-z_]\w*(?=\s*[,)])")
_LONGEST_SEED = 80
# NumPy takes no seed from here on.
_SEEDS_END = 2**32


class TakenSeeds:
    """The seeds that one file gives its generators, and those given out to them so far."""

    def __init__(self, calls: SeedCalls) -> None:
        self.calls = calls
        self.chains = calls.chains
        self.conventions = calls.conventions
        self.text = calls.module.text
        self.given: dict[str, int] = {}

    def unlike(self, text: str, libraries: Sequence[str], elsewhere: Callable[[str], Iterable[int]]) -> str:
        """`text`, a seed for `libraries`, or a number above it, so that no object draws the same that this file, or
        another of the program, gives a seed; `elsewhere` has the numbers of those, by library."""
        number = int(text) if text.isdecimal() else 0 if text == NUMBER else None
        taken: set[int] = set()
        for library in libraries:
            if number is not None:
                numbers = itertools.chain(numbers_given(self.conventions, library, self.text), elsewhere(library))
                taken.update(one - number for one in numbers)
                continue
            for match in self.conventions.gives_its_own(library).finditer(self.text):
                place = match.end()
                found = _OFFSET.match(self.text, place + len(text))
                if self.text.startswith(text, place) and found is not None:
                    taken.add(int(found[1] or 0))
        above = next(above for above in itertools.count() if above not in taken)
        return added(text, f" + {above}" if above else "")

    def apart(self, key: str, written: str, start: int = 0) -> str:
        """What is added to a seed so that no two generators of the file draw the same numbers."""
        if written.isdecimal():
            taken = self._first_free(int(written) + max(self.given.get(key, 0), start))
            self._following[taken] = taken + 1
            number = taken - int(written)
            self.given[key] = number + 1
            return f" + {number}" if number else ""
        if key not in self.given:
            text = written.replace("{torch}", "torch")
            known = [int(match[1] or 0) + 1 for at in self._starting_with(text) if (match := self._offset(text, at))]
            known += self._given_torchs_seed if key == INITIAL_SEED else ()
            self.given[key] = max(known, default=start)
        number = max(self.given[key], start)
        self.given[key] = number + 1
        # The next numbers are those of the processes that come next.
        return f" + {number * (_RANKS if self._seeds_by_rank else 1)}" if number else ""

    @functools.cached_property
    def _given_torchs_seed(self) -> list[int]:
        """What has to be added at least to the seed that the file gives torch, for each object that it gives the same
        one: a generator, or a sampler, which counts its epochs on from there."""
        found = [_RANKS] if _COUNTS_ON.search(self.text) else []
        for seed in sorted({text for one, text in self.calls.written if "torch" in one.libraries}):
            text = re.escape(seed)
            for given in re.finditer(rf"(?<!\btorch)(?<!cuda)\.manual_seed\(\s*{text}\s*(\)|\+\s*(\w+))", self.text):
                added = given[2] or "0"
                found.append(int(added) + 1 if added.isdecimal() else _RANKS)
            if re.search(rf"Sampler\((?:[^()]|\([^()]*\))*\bseed\s*=\s*{text}\s*[,)]", self.text):
                found.append(_RANKS)
        return found

    @functools.cached_property
    def _seeds_by_rank(self) -> bool:
        """Whether the file seeds something with the number of a process: `torch.manual_seed(seed + rank)`, or puts it
        into a name that speaks of a seed."""
        nodes = walk(self.chains.tree) if self.chains.tree is not None else ()
        if any(
            isinstance(node, ast.Assign)
            and any(_SEEDS in dotted_name(target).lower() for target in node.targets)
            and self._is_of_process(node.value)
            for node in nodes
        ):
            return True
        return any(
            _SEEDS in name.lower() and any(map(self._is_of_process, use.args))
            for name, uses in self.chains.uses.items()
            for use in (self.chains.parents[one] for one in uses)
            if isinstance(use, ast.Call)
        )

    def _is_of_process(self, node: ast.expr) -> bool:
        words = (
            dotted_name(one).rpartition(".")[2] for one in walk(node) if isinstance(one, (ast.Name, ast.Attribute))
        )
        return any(word and self.conventions.numbers_process.search(word) for word in words)

    def by_all(self, key: str, written: str) -> str:
        """Nothing, for the global generators share a seed; the objects of the file get others."""
        if key not in self.given:
            self.apart(key, written)
        return ""

    def _offset(self, text: str, at: int) -> re.Match[str] | None:
        found = self.text.startswith(text, at)
        return _OFFSET.match(self.text, at + len(text)) if found else None

    def _starting_with(self, text: str) -> Iterator[int]:
        """Where the file gives a generator something that starts as `text` does."""
        text = text[:_LONGEST_SEED]
        for at in range(bisect.bisect_left(self._seeds_given, (text, 0)), len(self._seeds_given)):
            given, place = self._seeds_given[at]
            if not given.startswith(text):
                return
            yield place

    def _first_free(self, number: int) -> int:
        """The first number from `number` on that no generator of the file is given."""
        passed = []
        while number in self._following:
            passed.append(number)
            number = self._following[number]
        self._following.update(dict.fromkeys(passed, number))
        return number

    @functools.cached_property
    def _following(self) -> dict[int, int]:
        """The numbers that the file gives generators, and those given out so far: each with one above it, up to which
        all are given."""
        found = (_NUMBER.match(self.text, place) for _, place in self._seeds_given)
        numbers = {int(one[1]) + int(one[2] or 0) for one in found if one is not None}
        following: dict[int, int] = {}
        for number in sorted(numbers, reverse=True):
            following[number] = following.get(number + 1, number + 1)
        return following

    @functools.cached_property
    def _seeds_given(self) -> list[tuple[str, int]]:
        """What the file gives generators, the beginning of its text, and where, sorted."""
        text, places = self.text, set[int]()
        for match in self.conventions.is_given.finditer(text):
            places |= {match.end(), match.end() + len(match[1] or "")}
        places |= {place + 1 for place in places if text.startswith("(", place)}
        return sorted((text[at : at + _LONGEST_SEED], at) for at in places)


def numbers_given(conventions: Conventions, library: str, text: str) -> frozenset[int]:
    """The numbers that a file with that text gives objects which then draw as the global generator of `library` does;
    -1 for what is no number."""
    return frozenset(_number_at(text, match.end()) for match in conventions.gives_its_own(library).finditer(text))


def _number_at(text: str, place: int) -> int:
    """The number that stands at a place of a file, or is what the name there is bound to; -1 for anything else."""
    name = _NAME.match(text, place)
    if name is not None:
        bound = re.search(rf"^{name[0]}[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*(?=\d)", text, re.MULTILINE)
        place = bound.end() if bound is not None else place
    found = _NUMBER.match(text, place)
    return int(found[1]) + int(found[2] or 0) if found is not None else -1


def added(seed: str, offset: str) -> str:
    """A seed and what `apart` adds to it: the sum where the seed is a number."""
    if not seed.isdecimal() or not offset:
        return seed + offset
    return str((int(seed) + int(offset.removeprefix(" + "))) % _SEEDS_END)
