"""A class of the project that derives from a loader -> the library's call that the making of an object amounts to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from torchdet_lint.program.effects import Referent
from torchdet_lint.program.events import GENERATOR, REST, Argument
from torchdet_lint.program.transfer.passing import (
    UNKNOWN,
    constant_in,
    parameter_in,
    parameters_of,
    placed,
    remade,
    starred,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.catalogue.facts import Runner
    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup

_INIT = "__init__"
_ABOVE = ".__init__"
_SUPER = "$super."
# So many constructors are looked through, each above the one before.
_CONSTRUCTORS = 4
_TORCHS_SEED = "torch.initial_seed"


class Own(NamedTuple):
    """What a constructor names itself: its name there, the body of the constructor, and what the name stands for."""

    name: str
    body: Body
    found: tuple[Referent, ...]


class MadeLoader(NamedTuple):
    """The loader `name` of a library, the call of it, what stands in that for what constructors name themselves, and
    whether there are `constructors` of the project."""

    name: str
    event: Event
    own: Mapping[str, Own]
    constructors: bool = False


class _Constructor(NamedTuple):
    """A constructor of the project, and the one call of the constructor above it."""

    referent: Referent
    body: Body
    above: Event


class Loaders:
    """The loaders that a project derives from those of libraries."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self._ways: dict[tuple[str, str], tuple[str, tuple[_Constructor, ...]] | None] = {}

    def made(self, class_: tuple[str, str], event: Event) -> MadeLoader | None:
        """What the call `event` of a class amounts to, where its constructors are in sight, each of which calls the one
        above it once."""
        way = self._way(class_)
        if way is None:
            return None
        name, constructors = way
        own: dict[str, Own] = {}
        for one in constructors:
            event = self._handed_on(one, event, own)
        return MadeLoader(name, event, own, constructors=bool(constructors))

    def tells(self, class_: tuple[str, str], function: str, event: Event) -> bool:
        """Whether `event`, in the constructor `function` of an object of a class, calls the library's constructor, of
        which whoever makes the object tells."""
        way = self._way(class_) if event.names[:1] and event.names[0].endswith(_ABOVE) else None
        last = way[1][-1] if way is not None and way[1] else None
        return last is not None and last.referent.name == function and last.above.row == event.row

    def _way(self, class_: tuple[str, str]) -> tuple[str, tuple[_Constructor, ...]] | None:
        """The library's loader from which a class is derived, and the constructors that lead there."""
        if class_ not in self._ways:
            self._ways[class_] = self._found_way(class_) if self._is_a_loader(class_) else None
        return self._ways[class_]

    def _is_a_loader(self, class_: tuple[str, str]) -> bool:
        family = self.lookup.family(class_) if class_[1] else ()
        return any(one.kind == "external" and self._loads(one.name) for one in family)

    def _loads(self, name: str) -> bool:
        """Whether `name` is of a library's loader."""
        return not self.lookup.facts.loaders.isdisjoint(self.lookup.facts.spellings(name))

    def _found_way(self, class_: tuple[str, str]) -> tuple[str, tuple[_Constructor, ...]] | None:
        found = list(self.lookup.class_attribute(Referent("instance", *class_), _INIT))
        way: list[_Constructor] = []
        while len(found) == 1 and len(way) <= _CONSTRUCTORS:
            here = found[0]
            if here.kind == "external":
                name = here.name.removesuffix(_ABOVE)
                return (name, tuple(way)) if self._loads(name) else None
            body = self.lookup.files.summary(here.file).body(here.name) if here.kind == "function" else None
            above = [one for one in body.events if one.names[:1] and one.names[0].endswith(_ABOVE)] if body else []
            if body is None or len(above) != 1:
                return None
            way.append(_Constructor(here, body, above[0]))
            names = above[0].names
            evaluate = self.lookup.evaluate
            found = [one for name in names for one in evaluate(name, here.file, here.owner, here.name)]
        return None

    def _handed_on(self, constructor: _Constructor, event: Event, own: dict[str, Own]) -> Event:
        """The call of the constructor above the one that `event` calls, with what that is given filled in."""
        referent, body, above = constructor
        stars = starred(body) if body.stars else ()
        args = (f"${stars[0]}",) if body.stars.startswith("*") and body.stars != REST else None
        options = (f"${stars[-1]}",) if body.stars.endswith(REST) else None
        takes = placed(referent, body)
        named = frozenset(parameters_of(referent, body)) - {*stars}
        given = dict(zip(takes, event.positional, strict=False))
        given |= {name: one for name, one in event.keywords.items() if name in named}
        rest = {name: one for name, one in event.keywords.items() if name not in named}

        def passed(argument: Argument) -> Argument | None:
            if argument.known or not argument.names:
                return argument
            parameter = parameter_in(argument)
            if parameter not in named:
                return self._own(argument, constructor, own)
            one = given.get(parameter) if parameter is not None else None
            if one is None:
                default = body.defaults.get(parameter, UNKNOWN)
                if event.opaque and not argument.rebound:
                    return None
                one = Argument((), known=True, value=default) if default is not UNKNOWN else Argument()
            return _rebound(one, argument) if argument.rebound else one

        # `DataLoader.__init__(self, rows)` names the object, too.
        first = not above.names[0].startswith(_SUPER) and [one.names for one in above.positional[:1]] == [("$self",)]
        positional: list[Argument] = []
        for argument in above.positional[first:]:
            more = event.positional[len(takes) :] if argument.names == args else (passed(argument) or Argument(),)
            positional += more
        keywords: dict[str, Argument] = {}
        hands_rest_on = REST in above.keywords and above.keywords[REST].names == options
        if hands_rest_on:
            keywords |= rest
        for name, argument in above.keywords.items():
            if name != REST and (one := passed(argument)) is not None:
                keywords[name] = one
        # Of what is unpacked, these are in sight.
        handed_on = hands_rest_on or any(argument.names == args for argument in above.positional)
        changed = hands_rest_on and above.keywords[REST].unsure
        opaque = event.opaque or changed or (above.opaque and not handed_on)
        return msgspec.structs.replace(event, positional=tuple(positional), keywords=keywords, opaque=opaque)

    def _own(self, argument: Argument, constructor: _Constructor, own: dict[str, Own]) -> Argument:
        """An argument that a constructor names itself."""
        here, body, _ = constructor
        found = tuple(
            one for name in argument.names for one in self.lookup.evaluate(name, here.file, here.owner, here.name)
        )
        generators = [one.kind == "external" and self.lookup.facts.is_generator(one.name) for one in found]
        if generators and all(generators):
            follows = any(_TORCHS_SEED in event.names for event in body.events)
            return Argument(present=True) if follows else Argument((), known=True, value=GENERATOR)
        name = f"<{len(own)}>"
        own[name] = Own(argument.names[0], body, found)
        return Argument((name,), present=argument.present)


def working(event: Event, runner: Runner, constant: Mapping[str, Any]) -> Event:
    """The call `event` of a loader in a function whose parameters are `constant`, which has workers, as its caller has
    it."""
    told = {runner.workers: Argument((), known=True, value=1)}
    generator = event.keywords.get("generator")
    if generator is not None and not generator.known and constant_in(constant, generator) == GENERATOR:
        told["generator"] = Argument((), known=True, value=GENERATOR)
    return msgspec.structs.replace(event, keywords={**event.keywords, **told})


def _rebound(given: Argument, argument: Argument) -> Argument:
    """What becomes of what is `given` for a parameter that the constructor gives another value."""
    value: Any = remade(given.value, argument.rebound) if given.known else UNKNOWN
    return Argument() if value is UNKNOWN else Argument((), known=True, value=value)
