"""A divergence that the traces alone leave open -> what the program's source and its generators say of its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.comparison.deciding import inside
from torchdet_lint.verifier.comparison.explain import GENERATORS, WHOSE, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from torchdet_lint.verifier.comparison.outcome import Divergence

    Seen = Callable[[str], str]

_OWN = "TDL104"
_MOST_PLACES = 3


def with_origin(why: Explanation, item: Divergence, root: Path, unseeded: Collection[str], seen: Seen) -> Explanation:
    """An explanation with the generators that may be behind it. `unseeded` are the places at which NumPy made one
    without a seed; `seen` tells how a place is shown.
    """
    if item.evidence.overtaking[0]:
        return _of_tasks(why, item, root, unseeded, seen)
    if why.rule or item.source != "outside" or _OWN not in why.also or not unseeded:
        return why
    told = " and ".join(map(seen, [*unseeded][:_MOST_PLACES]))
    words = f"{why.sentence.partition(': ')[0]}; NumPy made a generator without a seed at {told}"
    return Explanation(words, _OWN, tuple(code for code in why.also if code != _OWN))


def _of_tasks(why: Explanation, item: Divergence, root: Path, unseeded: Collection[str], seen: Seen) -> Explanation:
    """The order of tasks, with what the function reads that they run: a generator that differs may make that order."""
    file, _, line = item.evidence.arrival.rpartition(":")
    states = item.evidence.generators
    way = inside(root, file, int(line), {**loading.load().facts.entropy, **_draws(states)}) if file else None
    if way is None:
        return why
    made = [place for place in unseeded if _lies_in(place, file, way.behind)]
    reads = [(read, f"{file}:{number}") for number, read in way.reads]
    reads += [("NumPy's generator without a seed", place) for place in made]
    if not reads:
        return why
    told = " and ".join(f"{read} ({seen(place)})" for read, place in dict(reads[:_MOST_PLACES]).items())
    rules = [GENERATORS[name] for name, whose in WHOSE.items() if any(read.startswith(whose) for _, read in way.reads)]
    rule, *also = [*rules, *[_OWN][: len(made)], why.rule]
    return Explanation(f"{why.sentence}; that may hang on {told}", rule, (*also, *why.also))


def _draws(states: dict[str, str]) -> dict[str, str]:
    """What draws from a global generator that differed -> whose that is."""
    return {
        name: f"{WHOSE[row.library]} global generator"
        for row in loading.load().facts.draws
        if row.library in WHOSE and row.at == "call" and states.get(row.library) == "differs"
        for name in row.names
    }


def _lies_in(place: str, file: str, lines: Collection[int]) -> bool:
    name, _, line = place.rpartition(":")
    return name == file and int(line) in lines
