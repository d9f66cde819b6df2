"""A parameter that a function hands on -> whether its value decides what runs, in what the function calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.program.effects import Referent
from torchdet_lint.program.events import INDIRECT, LOCATE, NAMED, OF_LISTS, REST, STARTED_WITH
from torchdet_lint.program.transfer.passing import bound_arguments, handed, hands_rest_on, starred, started
from torchdet_lint.program.transfer.relays import handed_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup

# So many calls a value is followed through to where it decides.
_HOPS = 2


class Wanted:
    """What the parameters of the functions of a project decide, worked out once each."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self._known: dict[tuple[Referent, str, int], bool] = {}
        self._options: dict[tuple[Referent, str, int], frozenset[str]] = {}
        self._hands_objects_on: dict[tuple[str, str], bool] = {}
        self._switches: dict[tuple[Referent, int], bool] = {}

    def decides(self, function: Referent, parameter: str, hops: int = _HOPS) -> bool:
        """Whether a branch asks `parameter` of `function`, or what takes it in at most so many calls: or an attribute
        does that its constructor gives it."""
        if parameter.startswith(NAMED):
            return self._spells(function, parameter)
        key = function, parameter, hops
        if key not in self._known:
            self._known[key] = False
            summary = self.lookup.files.summary(function.file)
            body = summary.body(function.name)
            if body is not None:
                asks = any(test.parameter == parameter and test.kind not in INDIRECT for test in body.tests)
                self._known[key] = asks or self._is_kept(function, parameter) or self._hands_on(
                    function, body, parameter, hops
                )  # fmt: skip
        return self._known[key]

    def _spells(self, function: Referent, parameter: str) -> bool:
        """Whether `function` gives the text that a parameter is, `{model`, or an entry of it, to what finds something
        by it: a function of a library, or of the project, that gives what a parameter of its own names."""
        key = function, parameter, 0
        if key not in self._known:
            self._known[key] = False
            body = self.lookup.files.summary(function.file).body(function.name)
            finders = dict.fromkeys(_given(body, f"${parameter[1:]}")) if body is not None else {}
            self._known[key] = any(self._finds(function, name) for name in finders)
        return self._known[key]

    def _finds(self, function: Referent, name: str) -> bool:
        """Whether `name`, in `function`, is of a function that finds what it gives by a text, or of an object of which
        a text names an attribute."""
        if name == LOCATE or name.endswith("."):
            return True
        for one in self.lookup.evaluate(name, function.file, function.owner, function.name):
            body = self.lookup.files.summary(one.file).body(one.name) if one.kind == "function" else None
            if one.name in self.lookup.facts.words.locates:
                return True
            if body is not None and any(f"{NAMED}$" in result for result in body.returns):
                return True
        return False

    def options(self, function: Referent, parameter: str, hops: int = _HOPS) -> frozenset[str]:
        """The attributes of `parameter` of `function` that branches ask, or those in what takes it in at most so many
        calls."""
        key = function, parameter, hops
        if key not in self._options:
            self._options[key] = frozenset()
            body = self.lookup.files.summary(function.file).body(function.name)
            owners = [test.parameter.partition(".") for test in body.tests] if body is not None else []
            found = {attribute for owner, _, attribute in owners if owner == parameter and attribute}
            found |= self._asked_of_kept(function, parameter)
            if body is not None and hops > 0:
                for callee, name in self._taking(function, body, parameter):
                    found |= self.options(callee, name, hops - 1)
                found |= self._deciding(function, body, parameter, hops - 1)
            self._options[key] = frozenset(found)
        return self._options[key]

    def _asked_of_kept(self, function: Referent, parameter: str) -> set[str]:
        """The attributes that branches in methods of a class ask of what its constructor keeps under the name that it
        has there, `if self.config.deep:`."""
        class_, _, method = function.name.rpartition(".")
        start = f"self.{parameter}"
        if method != "__init__" or not parameter.isidentifier() or not self._is_kept(function, parameter):
            return set()
        asks = rf"\b(?:if|elif|and|or|not)\b[^\n]*\b{start}[.\[]|=[ \t]*{start}[.\[]"
        if re.search(asks, self.lookup.files.text(function.file)) is None:
            return set()
        summary = self.lookup.files.summary(function.file)
        methods = summary.class_summary(class_)
        bodies = [summary.body(name) for name in sorted(methods.methods.values())] if methods is not None else []
        tests = [test.parameter for body in bodies if body is not None for test in body.tests]
        return {one[len(start) + 1 :] for one in tests if one.startswith(f"{start}.")}

    def _deciding(self, function: Referent, body: Body, parameter: str, hops: int) -> set[str]:
        """The attributes of the parameter that calls in a function pass to where they decide: `pick(cfg.type)`."""
        start = f"${parameter}."
        passed = {
            name
            for event in body.events
            if event.kind == "call"
            for argument in (*event.positional, *event.keywords.values())
            for name in argument.names[:1]
            if len(argument.names) == 1 and name.startswith(start) and name[len(start) :].isidentifier()
        }
        return {
            name[len(start) :]
            for name in passed
            if any(self.decides(callee, taken, hops) for callee, taken in self._taking(function, body, name[1:]))
        }

    def hands_objects_on(self, function: Referent, body: Body, event: Event) -> bool:
        """Whether the call `event` may give an object to `function`, which hands what it is given on."""
        arguments = (*event.positional, *event.keywords.values())
        if not any(argument.names for argument in arguments if not argument.known):
            return False
        key = function.file, function.name
        if key not in self._hands_objects_on:
            calls = (inner for inner in body.events if inner.kind == "call")
            self._hands_objects_on[key] = any(handed_parameters(inner, body.parameters) for inner in calls)
        return self._hands_objects_on[key]

    def switches(self, function: Referent, body: Body, hops: int = _HOPS) -> bool:
        """Whether the `**options` that `function` takes may hold the switch of deterministic mode that a library's
        trainer has: they reach one in at most so many calls."""
        if REST not in body.stars:
            return False
        key = function, hops
        if key not in self._switches:
            self._switches[key] = False
            calls = (event for event in body.events if event.kind == "call" and hands_rest_on(event, body))
            self._switches[key] = any(self._has_switch(function, event, hops) for event in calls)
        return self._switches[key]

    def options_decide(self, function: Referent, body: Body, hops: int = _HOPS) -> bool:
        """Whether a branch asks for one of the `**options` that `function` takes, in what it hands them to in at most
        so many calls."""
        if REST not in body.stars:
            return False
        key = function, REST, hops
        if key not in self._known:
            self._known[key] = False
            calls = (event for event in body.events if event.kind == "call" and hands_rest_on(event, body))
            self._known[key] = any(self._asks_of_rest(function, event, hops) for event in calls)
        return self._known[key]

    def _asks_of_rest(self, function: Referent, event: Event, hops: int) -> bool:
        """Whether what `event` hands the options of `function` on to asks for one that it does not pass itself."""
        for callee in self._called(function, event):
            inner = self.lookup.files.summary(callee.file).body(callee.name)
            passed = bound_arguments(callee, inner, event) if inner is not None else {}
            asked = (test for test in inner.tests if test.kind not in INDIRECT) if inner is not None else ()
            if inner is not None and any(
                one.parameter in inner.defaults and one.parameter not in passed for one in asked
            ):
                return True
            if inner is not None and hops > 1 and self.options_decide(callee, inner, hops - 1):
                return True
        return False

    def _has_switch(self, function: Referent, event: Event, hops: int) -> bool:
        """Whether a call in `function` is of what has such a switch, or hands its options on to that."""
        facts = self.lookup.facts
        names = (one for name in event.names for one in self._evaluated(function, name) if one.kind == "external")
        if any(row.give for one in names for full in facts.spellings(one.name) for row in facts.seeds.get(full, ())):
            return True
        for callee in self._called(function, event) if hops > 0 else ():
            inner = self.lookup.files.summary(callee.file).body(callee.name)
            if inner is not None and self.switches(callee, inner, hops - 1):
                return True
        return False

    def _evaluated(self, function: Referent, name: str) -> tuple[Referent, ...]:
        """What a name in `function` stands for: of a class without a constructor of its own, that of a library."""
        found = self.lookup.evaluate(name, function.file, function.owner, function.name)
        return tuple(
            one
            for referent in found
            for one in (self._constructors(referent) if referent.kind == "class" else [referent])
        )

    def _constructors(self, class_: Referent) -> list[Referent]:
        return self.lookup.class_attribute(Referent("instance", class_.file, class_.name), "__init__")

    def _is_kept(self, function: Referent, parameter: str) -> bool:
        """Whether `function` is a constructor that keeps the parameter under its name."""
        class_, _, method = function.name.rpartition(".")
        if method != "__init__":
            return False
        told = self.lookup.files.summary(function.file).setting(class_, parameter)
        return told is not None and told.names == (f"${parameter}",)

    def _hands_on(self, function: Referent, body: Body, parameter: str, hops: int) -> bool:
        """Whether a call in `function` passes the parameter to where it decides, or what is known of a list that it is
        given, `flags[each]`."""
        own, part = parameter.partition("[")[::2] if parameter.endswith(OF_LISTS) else (parameter, "")
        told = f"[{part}" if part else ""
        return hops > 0 and (
            any(self.decides(callee, f"{name}{told}", hops - 1) for callee, name in self._taking(function, body, own))
            or any(self.decides(target, f"{name}{told}", hops) for target, name in self._started(function, body, own))
        )

    def _started(self, function: Referent, body: Body, parameter: str) -> Iterator[tuple[Referent, str]]:
        """The targets of processes that `function` starts with the parameter, and what they call it."""
        whole = (f"${parameter}",)
        for event in body.events:
            argument = event.keywords.get(STARTED_WITH)
            if argument is None or not any(one.names == whole for one in argument.elements):
                continue
            external = (one.name for name in event.names for one in self._evaluated(function, name))
            for runner in (one for name in external for one in self.lookup.facts.runners.get(name, ())):
                call = started(runner, event)
                names = [name for given in handed(runner, event) for name in given.names]
                for target in self._called(function, msgspec.structs.replace(event, names=tuple(names))):
                    inner = self.lookup.files.summary(target.file).body(target.name)
                    bound = bound_arguments(target, inner, call) if inner is not None and call is not None else {}
                    yield from ((target, taken) for taken, one in bound.items() if one.names == whole)

    def _taking(self, function: Referent, body: Body, parameter: str) -> Iterator[tuple[Referent, str]]:
        """The functions to which a call in `function` passes the parameter as it is, and what they call it."""
        whole = (f"${parameter}",)
        for event in body.events:
            given = (*event.positional, *event.keywords.values()) if event.kind == "call" else ()
            if not any(argument.names == whole for argument in given):
                continue
            for callee in self._called(function, event):
                inner = self.lookup.files.summary(callee.file).body(callee.name)
                bound = bound_arguments(callee, inner, event) if inner is not None else {}
                rest = starred(inner)[-1] if inner is not None and REST in inner.stars else REST
                taken = ((rest if name == REST else name, argument) for name, argument in bound.items())
                yield from ((callee, name) for name, argument in taken if argument.names == whole)

    def _called(self, function: Referent, event: Event) -> Iterator[Referent]:
        """The functions of the project that a call in `function` runs, constructors among them."""
        for name in event.names:
            for referent in self.lookup.evaluate(name, function.file, function.owner, function.name):
                if referent.kind == "function":
                    yield referent
                elif referent.kind == "class":
                    yield from (one for one in self._constructors(referent) if one.kind == "function")


def _given(body: Body, parameter: str) -> Iterator[str]:
    """The names of what a function with this `body` gives `$parameter`, or an entry of it, first."""
    for event in body.events:
        first = [name for argument in event.positional[:1] for name in argument.names]
        if event.kind == "call" and any(name.partition(".")[0] == parameter for name in first):
            yield from event.names
    for name in (*(name for event in body.events for name in event.names), *body.returns):
        finder, brace, _ = name.partition(f"{NAMED}{parameter}")
        if brace:
            yield finder
