"""The result of a comparison, plain data: divergences with their evidence, partings of the paths, and the outcome."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchdet_lint.verifier.comparison.losses import Losses
from torchdet_lint.verifier.comparison.picture import Picture
from torchdet_lint.verifier.trace import Site

Source = Literal["op", "random", "outside", "unwritten", "number", "order", "race", "path", ""]


class Evidence(msgspec.Struct, frozen=True):
    """What the two records say about the reason.

    `generators` tells for each of `python`, `numpy` and `torch` whether its global generator was `equal`, `differs`,
    `idle` (it differs, and was not drawn from since the data before), `taken` (it differs, and a number that differed
    may have been drawn from it since then) or `unused` so far, where data came from outside, or next did after a number
    or an order differed. `arrival` is where a worker's batch was received, or (`loaded`) what `torch.load` read, or
    (`received`) where another process of the group was asked for it, or (`unwritten`) where the
    memory was allocated. `permuted`: the place made the same values in another order, or read them so. `shared`: the
    data lies in memory that processes share. `seeded_at` is where torch was seeded after an unseeded draw
    (`seeded_later`). `overtaking` are the tasks of asyncio that came first in runs A and B where these first went
    through them in another order, and `arrival` the line there.
    """

    inputs_equal: bool
    numbers_equal: bool
    seeds_equal: bool | None = None
    unseeded: bool = False
    seeded_later: bool = False
    own_generator: bool = False
    unwritten: bool = False
    generators: dict[str, str] = {}
    seeded_at: str = ""
    arrival: str = ""
    loaded: bool = False
    received: bool = False
    shared: bool = False
    permuted: bool = False
    overtaking: tuple[str, str] = ("", "")


class Divergence(msgspec.Struct, frozen=True):
    """All that differs at one site: the first record that did, how many did, and why.

    `index` counts the records of run A's stream from 0; `other` is where run B goes instead, for parted paths;
    `outputs` numbers the outputs of the op that differ, from 0. `step` and `epoch` are the optimizer step and the pass
    over the data, from 1, in which the first did; 0 where none is known. `index_b` is that of run B. `reason` is why
    the program expects it. `task` is the task of asyncio that it was in.
    """

    site: Site
    index: int
    kind: Literal["cause", "consequence", "path"]
    source: Source
    evidence: Evidence
    differing: int = 1
    compared: int = 1
    outputs: tuple[int, ...] = ()
    stream: str = "main"
    other: Site | None = None
    step: int = 0
    epoch: int = 0
    index_b: int = -1
    reason: str = ""
    task: str = ""


class Parting(msgspec.Struct, frozen=True):
    """Where the runs take different paths after the same site: what each does next, how many ops until they meet."""

    index: int
    after: Site | None
    a: Site | None
    b: Site | None
    a_ops: int
    b_ops: int
    rejoined: bool


class Ended(msgspec.Struct, frozen=True):
    """A thread that was followed up to the record `ended_at`, and in a few words why no further."""

    stream: str
    ended_at: int
    why: str


class Lockstep(msgspec.Struct, frozen=True):
    """How far run B went on with run A's values where its own differed: after how many ops of all threads (`replaced`),
    and up to which record of the main thread (`ended_at`, -1: to its end), in a few words `why`. `threads` are the
    other ones that were not followed to their end.
    """

    replaced: int
    ended_at: int = -1
    why: str = ""
    threads: tuple[Ended, ...] = ()


class Comparison(msgspec.Struct, frozen=True):
    """The outcome. `divergences` are in order of execution; `first` is the earliest cause or parting.

    `persistence` is `transient` where later ops read what differed and came out equal again, and nothing differed since
    for at least as many ops as before; `persistent` otherwise, and empty for identical runs.
    `harmless` is `unwritten` where nothing differed but what went into memory that was not fully written yet, and every
    later reading was equal; `order` where every place made the same values in both runs, in another order, and nothing
    else followed: then only what the program keeps outside torch can tell whether that mattered.
    `devices` are those that the build of torch knows; `aside` counts the records of other threads and processes;
    `losses` are those of both runs, by step; `picture` is what a page shows besides. `lockstep` is None where each run
    went on by itself.
    """

    identical: bool
    compared: int
    a_records: int
    b_records: int
    differing: int
    divergences: tuple[Divergence, ...]
    partings: tuple[Parting, ...]
    persistence: Literal["", "transient", "persistent"]
    environment: dict[str, tuple[str, str]]
    harmless: Literal["", "order", "unwritten"] = ""
    notes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu",)
    aside: int = 0
    losses: Losses | None = None
    picture: Picture = Picture()
    lockstep: Lockstep | None = None

    @property
    def causes(self) -> tuple[Divergence, ...]:
        """The divergences that are not consequences of others, in order of execution."""
        return tuple(item for item in self.divergences if item.kind != "consequence")

    @property
    def first(self) -> Divergence | None:
        """The earliest divergence, or None."""
        return self.divergences[0] if self.divergences else None
