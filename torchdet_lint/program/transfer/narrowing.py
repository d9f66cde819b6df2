"""A name that stands for the result of a call -> what the call gives, with the constants that are passed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.program.effects import STARTED, TOKEN, Node, Referent
from torchdet_lint.program.events import AT, MODULE, unplaced
from torchdet_lint.program.syntax.named_texts import BY_PARAMETER, OF_PARAMETER
from torchdet_lint.program.transfer.fitting import fitting
from torchdet_lint.program.transfer.objects.entries import Entries
from torchdet_lint.program.transfer.objects.made import body_of, setting_held
from torchdet_lint.program.transfer.options import Options
from torchdet_lint.program.transfer.passing import (
    NOTHING_GIVEN,
    UNKNOWN,
    bound_arguments,
    constants,
    known_in,
    ruled_out,
    with_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torchdet_lint.program.events import Argument, Body, Event
    from torchdet_lint.program.lookup import Lookup
    from torchdet_lint.program.transfer.wanted import Wanted

# So many functions are looked through, of which one gives back what the next gives it.
_HOPS = 3
# What a name begins with of which its file does not show what it stands for.
_UNSEEN = "$?%=|"


class Narrowing:
    """What calls give: not what is made only in branches that the constants of a call rule out."""

    def __init__(self, lookup: Lookup, wanted: Wanted) -> None:
        self.lookup = lookup
        self.wanted = wanted
        self.options = Options(lookup, wanted)
        self.entries = Entries(lookup, wanted, self.options)
        self._calls: dict[tuple[str, str], dict[str, list[Event]]] = {}
        self._methods: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._known: dict[tuple[str, Node, int], tuple[Referent, ...]] = {}

    def by(self, lookup: Lookup) -> Narrowing:
        """The same of the same files, with what one program's objects keep."""
        other = Narrowing(lookup, self.wanted)
        other.options = self.options
        other.entries = Entries(lookup, self.wanted, self.options)
        other._calls, other._methods = self._calls, self._methods
        return other

    def narrowed(
        self, name: str, node: Node, in_caller: Callable[[Argument], Any] | None = None, hops: int = _HOPS
    ) -> tuple[Referent, ...]:
        """What `name` stands for in `node`; `in_caller` gives the constant that an argument is there, where the
        node alone does not."""
        if in_caller is not None:
            return self._narrowed(name, node, in_caller, hops)
        known = self._known.get((name, node, hops))
        if known is None:
            known = self._known[name, node, hops] = self._narrowed(name, node, None, hops)
        return known

    def _narrowed(
        self, name: str, node: Node, in_caller: Callable[[Argument], Any] | None, hops: int
    ) -> tuple[Referent, ...]:
        told = with_texts(name, dict(node.given)) if OF_PARAMETER in name or BY_PARAMETER in name else name
        found = self.lookup.evaluate(told, node.file, node.owner, node.name)
        gone: set[Referent] = set()
        calls = zip(_calls_in(name), _calls_in(told), strict=True) if found and hops >= 0 else ()
        for (called, _), (function, rest) in calls:
            mine, others = self._calling(called, node)
            if mine and not others and self._dead(mine, node):
                return ()
            if mine or others:
                gone |= self._left_out(function, rest, node, [*mine, *others], in_caller or _constants_of(node), hops)
        return tuple(one for one in found if one not in gone)

    def _left_out(
        self,
        function: str,
        rest: str,
        node: Node,
        events: list[Event],
        in_caller: Callable[[Argument], Any],
        hops: int,
    ) -> set[Referent]:
        """What `function` gives, and `rest` makes of it, to none of the calls `events` of it."""
        tokens = TOKEN.findall(rest)
        place = tokens[0] if tokens and tokens[0][0] == AT else ""
        given: set[Referent] = set()
        left_out: set[Referent] = set()
        callees = dict.fromkeys(self.lookup.evaluate(function, node.file, node.owner, node.name), function)
        fit = fitting(self.lookup, callees, events)
        if len(fit) == len(callees) and not any(self._choosing(callee) for callee in callees):
            return set()
        for callee in callees:
            every = set(self.lookup.follow([callee], ["()", *tokens[:1]] if place else ["()"]))
            some: set[Referent] = set()
            if callee in fit:
                some = every & self._given_by(callee, node, events, in_caller, hops - 1, every, place)
            given |= some
            left_out |= every - some
        if left_out <= given:
            return set()
        gone = set(self.lookup.follow(sorted(left_out - given), tokens))
        gone.difference_update(self.lookup.follow(sorted(given), tokens))
        return gone

    def _given_by(
        self,
        callee: Referent,
        caller: Node,
        events: list[Event],
        in_caller: Callable[[Argument], Any],
        hops: int,
        every: set[Referent],
        place: str,
    ) -> set[Referent]:
        """What of all that `callee` gives, `every`, at a `place` among others, it gives to one of the calls `events` in
        `caller`."""
        body = self._choosing(callee)
        if body is None:
            return every
        names = body.given_at(place)
        known = (self.lookup.evaluate(name, callee.file, callee.owner, callee.name) for name in names)
        if all(every.isdisjoint(referents) for referents in known):
            return every
        here = dict(caller.given)
        given = [
            (
                *constants(callee, body, event, in_caller, lambda name: self.wanted.decides(callee, name), here=here),
                *self.given(caller, here, callee, body, event),
            )
            for event in events
        ]
        found: set[Referent] = set()
        for one in dict.fromkeys(given):
            node = Node(callee.file, callee.name, callee.owner, one)
            dead = self._dead_arms(node)
            for name in names:
                arms = body.returned.get(unplaced(name), ())
                if not arms or any(map(dead.isdisjoint, arms)):
                    found.update(self.narrowed(name, node, hops=hops))
        return found

    def _choosing(self, callee: Referent) -> Body | None:
        """The body of a function that gives one thing or another, by what it is given; None for anything else."""
        body = body_of(self.lookup, callee) if callee.kind == "function" else None
        return body if body is not None and (body.tests or any("()" in name for name in body.returns)) else None

    def _dead(self, events: list[Event], node: Node) -> bool:
        """Whether none of `events` happens in `node`, for what it is given."""
        dead = self._dead_arms(node)
        return bool(dead) and all(not dead.isdisjoint(event.branch) for event in events)

    def _dead_arms(self, node: Node) -> set[int]:
        """The arms that do not run in `node`, for what it is given."""
        body = self.lookup.files.summary(node.file).body(MODULE if node.name == STARTED else node.name)
        if body is None or not body.tests:
            return set()
        return {*ruled_out(body, dict(node.given)), *self.options.ruled_out(node.file, body)} - {0}

    def given(
        self, node: Node, here: Mapping[str, Any], callee: Referent, body: Body, event: Event
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """What a call in `node`, which was given what is `here`, hands on to a function in options and objects, by the
        parameter that holds them: `args.model`, `config.type`."""
        yield from self.options.given(node, here, callee, body, event)
        yield from self.entries.given(node, here, callee, body, event, self._calling)
        for parameter, argument in bound_arguments(callee, body, event).items():
            name = argument.names[0] if len(argument.names) == 1 and not argument.known else "$"
            for attribute in sorted(self.wanted.options(callee, parameter)) if name[0] not in _UNSEEN else ():
                value = self.held(name, attribute, node, here, callee.file)
                if value is not UNKNOWN:
                    yield f"{parameter}.{attribute}", (value,)

    def held(self, name: str, attribute: str, node: Node, here: Mapping[str, Any], *files: str) -> Any:
        """The text that `attribute` is of the class or object that `name` stands for in `node`, which was given what is
        `here`, or whether it is on; `UNKNOWN` where that is not known, as where one of `files`, or what these import,
        gives it another one."""
        found = self.lookup.evaluate(name, node.file, node.owner, node.name)
        if len(found) != 1 or found[0].kind not in ("class", "instance"):
            return UNKNOWN
        around = self.options.with_imports(frozenset({node.file, found[0].file, *files}))
        if any(map(self.options.changes, sorted(around))):
            return UNKNOWN
        called = unplaced(name).removesuffix("()")
        mine, others = self._calling(called, node) if found[0].kind == "instance" else ([], [])
        made = [*((one, here) for one in mine), *((one, NOTHING_GIVEN) for one in others)]
        return setting_held(self.lookup, found[0], attribute, made, around)

    def _calling(self, function: str, node: Node) -> tuple[list[Event], list[Event]]:
        """The calls of `function` in `node`, and those in the functions around it and at top level of its file."""
        name = MODULE if node.name == STARTED else node.name
        mine = self._named(function, node, name)
        others: list[Event] = []
        while name != MODULE:
            name = name.rpartition(".")[0]
            others += self._named(function, node, name)
        return mine, others

    def _named(self, function: str, node: Node, name: str) -> list[Event]:
        """The calls of `function` in the function `name` of the file, or of a method by what its object is made of:
        `make().run()` for `made.run()`."""
        calls = self._calls_of(node.file, name)
        if (found := calls.get(function)) is not None:
            return found
        owner, _, method = function.rpartition(".")
        alike = self._methods[node.file, name].get(method) if owner not in ("", "@") else None
        if alike is None:
            return []
        meant = self.lookup.evaluate(function, node.file, node.owner, node.name)
        same = [one for one in alike if self.lookup.evaluate(one, node.file, node.owner, node.name) == meant]
        return [event for one in same for event in calls[one]]

    def _calls_of(self, file: str, name: str) -> dict[str, list[Event]]:
        """The calls in a function, by the names of what is called; those of methods are noted by their own names."""
        known = self._calls.get((file, name))
        if known is None:
            known = self._calls[file, name] = {}
            methods = self._methods[file, name] = {}
            body = self.lookup.files.summary(file).body(name)
            for event in body.events if body is not None else ():
                for called in event.names if event.kind == "call" else ():
                    known.setdefault(called, []).append(event)
            for called in known:
                owner, _, method = called.rpartition(".")
                if owner:
                    methods.setdefault(method, []).append(called)
        return known


def _calls_in(name: str) -> Iterator[tuple[str, str]]:
    """What `name` calls, one call after the other, each with what is done with its result."""
    function, paren, rest = name.partition("()")
    while paren:
        yield function, rest
        more, paren, rest = rest.partition("()")
        function = f"{function}(){more}"


def _constants_of(node: Node) -> Callable[[Argument], Any]:
    return known_in(dict(node.given))
