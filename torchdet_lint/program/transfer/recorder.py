"""The events of one function -> the steps recorded of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.program.effects import Choice, Node, Process, Ref, Referent, Step
from torchdet_lint.program.events import CHOICE, GENERATOR, PRESENT, Event
from torchdet_lint.program.transfer.passing import UNKNOWN, constant_in, is_generator, setting_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from torchdet_lint.program.events import Argument
    from torchdet_lint.program.lookup import Lookup

# Of more than so many things that a call may be of none excludes the others.
_ALTERNATIVES = 8
_IN_SIGHT = ("function", "class", "instance")


class Recorder:
    """Records the steps of one node, at the event that is being looked at."""

    def __init__(self, lookup: Lookup, node: Node) -> None:
        self.lookup = lookup
        self.files = lookup.files
        self.facts = lookup.facts
        self.node = node
        self.found: list[Step] = []
        self.given = dict(node.given)
        # Attributes of `self` of which the constants decide what runs.
        self.decides: list[str] = []
        self.choices = 0
        self.choice: Choice | None = None
        self.calls = 0
        # The containers that the function goes through, as their elements are called, and on which branch.
        self.gone_through: set[tuple[str, tuple[int, ...]]] = set()
        # While the transforms are looked at that a call is given.
        self.hands_transforms = False
        self.event = Event("call", 1, 0, 1)
        last = node.name.rpartition(".")[2]
        self.initialises = bool(self.facts.hints.initialiser.search(last)) and (
            last not in ("__init__", "init", "setup") or lookup.derives(node.owner, self.facts.words.modules)
        )

    def add(
        self,
        kind: str,
        what: str = "",
        channel: str = "",
        node: Node | None = None,
        *,
        now: bool = True,
        lends: tuple[tuple[str, str], ...] = (),
        within: Process | None = None,
        alongside: bool = False,
    ) -> None:
        """Record a step at the event that is being looked at."""
        event = self.event
        if channel == "cublas" and kind == "draw" and not event.partly:
            self.add("flag", what, "on_cuda")
        ref = Ref(self.node.file, event.row, event.column, event.statement, what)
        weights = node is not None and kind == "call" and self.initialises
        now = now and not event.deferred
        self.found.append(
            Step(
                kind,
                ref,
                channel,
                node,
                now,
                event.branch,
                event.locked,
                weights,
                lends,
                event.ungraded,
                event.sized,
                event.trained,
                self.choice,
                event.unapplied,
                event.regraded,
                event.passing,
                within,
                alongside,
                bool(event.reloaded),
                event.evaluated,
            )
        )

    def alternatives(self, count: int) -> list[tuple[int, ...]]:
        """For each of so many things of which one happens, arms that exclude those of the others; in a crowd one of its
        own for each, which excludes none."""
        arms: list[tuple[int, ...]] = [()] * count
        if count > _ALTERNATIVES:
            self.choices += count
            return [(CHOICE + self.choices - number,) for number in range(count)]
        for pair in itertools.combinations(range(count), 2):
            self.choices += 1
            for one, arm in zip(pair, (CHOICE + self.choices, -CHOICE - self.choices), strict=True):
                arms[one] += (arm,)
        return arms

    def called_in_turn(self, event: Event) -> bool:
        """Whether `event` calls each element of a container that the function goes through, and not one of several, as
        where a test in the loop decides."""
        return any(
            name.startswith(container) and "__" not in name[len(container) :] and branch == event.branch
            for container, branch in self.gone_through
            for name in event.names
        )

    def one_of(self, found: Collection[Referent], *, whichever: bool = False) -> Iterator[Referent]:
        """Things of which one is called, in turn: what is recorded of one happens if that is the one; `whichever`
        implements a method. What is not in sight excludes nothing."""
        outer = self.choice
        candidates = [referent for referent in found if referent.kind in _IN_SIGHT]
        self.calls += 1
        call, number = self.calls, 0
        alike = len(candidates) > 1 and all(referent.file in self.files.guessed for referent in candidates)
        for referent in found:
            if len(candidates) > 1 and referent.kind in _IN_SIGHT:
                self.choice = Choice(call, number, len(candidates), whichever, alike)
                number += 1
            yield referent
            self.choice = outer

    def sometimes(self, event: Event) -> Event:
        """The event on a branch of its own."""
        self.choices += 1
        return msgspec.structs.replace(event, branch=(*event.branch, CHOICE + self.choices))

    def stands_for(self, name: str) -> tuple[Referent, ...]:
        """What a name of this node stands for."""
        return self.lookup.evaluate(name, self.node.file, self.node.owner, self.node.name)

    def constant_here(self, argument: Argument) -> Any:
        """The constant that a parameter here, or an attribute of the object, is known to be, or `UNKNOWN`."""
        value = self.given_here(argument)
        return UNKNOWN if value == PRESENT else value

    def given_here(self, argument: Argument) -> Any:
        """The same, or `PRESENT` where it is only known not to be None."""
        if any(self.given.get(name[1:]) == GENERATOR for name in argument.names if name[0] == "$"):
            return GENERATOR
        attribute = setting_of(argument)
        values = (constant_in(self.given, argument),) if attribute is None else self.of_self(attribute)
        if len(values) == 1 and values[0] is not UNKNOWN:
            return values[0]
        return GENERATOR if is_generator(self.lookup, self.node, argument) else UNKNOWN

    def of_self(self, name: str) -> tuple[Any, ...]:
        """The constants that the attribute `name`, as `self.train`, of the object may be; nothing is known if none. Of
        what some object of the program has it is that which this one was made with, where a call says so."""
        if not self.node.owner[1]:
            return ()
        self.decides.append(name[5:])
        values: tuple[Any, ...] = self.lookup.settings.get((*self.node.owner, name[5:]), ())
        return tuple(value for value in values if value == self.given.get(name, value)) or values

    def chooses_device(self, name: str) -> bool:
        """Whether `name` is of a device that somebody chose: `args.device`, and not the device that a tensor is on."""
        owner, _, last = name.rstrip("()").rpartition(".")
        if last.lstrip("$").lower() not in self.facts.hints.devices:
            return False
        holder = owner.rpartition(".")[2].strip("()?$")
        return last != "device" or not holder or self.facts.hints.options.search(holder) is not None

    def is_device_of_tensor(self, name: str) -> bool:
        """Whether `name` is of the device that a tensor is on: `x.device`, and not what an object here calls so."""
        owner, _, last = name.rpartition(".")
        return last == "device" and owner not in ("", "$self", "$cls") and not self.chooses_device(name)

    def environment(self, names: Iterable[str]) -> None:
        """What the environment variables `names` switch."""
        if "CUBLAS_WORKSPACE_CONFIG" in names:
            self.add("seed", "CUBLAS_WORKSPACE_CONFIG", "cublas")

    def seeded(self, what: str) -> None:
        """All generators are seeded."""
        for channel in ("python", "numpy", "torch", "cuda"):
            self.add("seed", what, channel)
