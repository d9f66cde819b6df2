"""A program -> what its constructors are given, for the attributes that keep it: `self.algorithm = algorithm`.

What an object is given differs from program to program, so this is asked of each, of the functions that it reaches and
that call a method of such an attribute; only these, and what is reached from there, are looked at again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.program.effects import REFERENTS, TOKEN, Node, Referent
from torchdet_lint.program.transfer.passing import bound_arguments, placed, starred

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torchdet_lint.program.effects import Kept, Made
    from torchdet_lint.program.events import Argument, Body, Event
    from torchdet_lint.program.lookup import Lookup
    from torchdet_lint.program.transfer.narrowing import Narrowing

_Constructor = tuple[tuple[str, str], tuple[str, str]]
Referents = dict["Referent", None]
"""Several referents, in the order in which the program gives them."""
Given = dict[_Constructor, dict[str, Referents]]
"""What a constructor is given, by the class of the object and the constructor; in this by the parameter, or by the
place in `*args`: `*0`."""
_ROUNDS = 3
_GIVEN = ("class", "function", "instance")
_ADDS = ("append", "insert", "extend", "add", "appendleft")
# The stars of a function that has `*args`.
_TAKES_MORE = ("*", "***")


class Notes(NamedTuple):
    """What a node does that bears on attributes: it calls constructors, and `factories`, functions that hand on what
    they are given; it `asks`, calls through attributes of `self` of which nobody knows what they are; and what
    attributes of `self` are, if constants, `decides` what it does. It `loads`, makes loaders."""

    constructors: tuple[tuple[Referent, Event], ...]
    factories: tuple[tuple[Referent, Event], ...]
    asks: tuple[str, ...]
    decides: tuple[str, ...]
    loads: tuple[Made, ...] = ()


class _Argument(NamedTuple):
    """What a call passes for a `parameter`: what is `known`, what the caller was given for its parameters `own`, and
    what its object `kept`, by constructor and path."""

    parameter: str
    known: Referents
    own: list[str]
    kept: list[tuple[tuple[str, str], str]]


class _Call(NamedTuple):
    """The call `event` of the constructor `called`, which has this `body`, in `node`."""

    node: Node
    body: Body
    called: Referent
    event: Event
    arguments: list[_Argument]


class KeptObjects:
    """What the objects of one program keep, by the notes on the nodes that it reaches."""

    def __init__(self, lookup: Lookup, notes: dict[Node, Notes], narrowing: Narrowing) -> None:
        self.lookup = lookup
        self.narrowing = narrowing
        self.notes = notes

    def asking(self) -> dict[Node, set[str]]:
        """The nodes that call through attributes which a constructor was given, and these attributes."""
        found: dict[Node, set[str]] = {}
        for node, notes in self.notes.items():
            for name in notes.asks:
                attribute = TOKEN.findall(name[1:])[1]
                if self._parameters(node.owner, attribute):
                    found.setdefault(node, set()).add(attribute)
        return found

    def of(self, asking: dict[Node, set[str]]) -> Kept:
        """What the attributes stand for that `asking` asks for, as far as the program shows."""
        asked = [
            (node.owner, attribute, self._parameters(node.owner, attribute))
            for node, attributes in asking.items()
            for attribute in sorted(attributes)
        ]
        given = self._given((owner, constructor) for owner, _, told in asked for constructor, _ in told)
        kept: Kept = {}
        for owner, attribute, told in asked:
            referents: dict[Referent, None] = {}
            for constructor, parameter in told:
                referents |= dict.fromkeys(
                    one
                    for one in self._kept(given.get((owner, constructor), {}), constructor, parameter)
                    # `optimizer = Wrapper(optimizer)`: what it keeps is what the name meant before.
                    if one.kind != "instance" or (one.file, one.name) != owner
                )
            if referents:
                kept[owner[0], owner[1], attribute] = tuple(referents)[:REFERENTS]
        return kept

    def _kept(self, given: Mapping[str, Referents], constructor: tuple[str, str], path: str) -> Referents:
        """What `path`, a parameter of `constructor` or an attribute of one, `data.loader`, stands for."""
        parameter, *attributes = path.split(".")
        found = self._passed(given, constructor, parameter)
        for attribute in attributes:
            told = [one for object_ in found for one in self.lookup.class_attribute(object_, attribute)]
            found = dict.fromkeys(one for one in told if one.kind in _GIVEN and one.file)
        return found

    def _passed(self, given: Mapping[str, Referents], constructor: tuple[str, str], parameter: str) -> Referents:
        """Of what `constructor` is given, that which its `parameter` stands for: all that is left, of `*args`."""
        body = self.lookup.files.summary(constructor[0]).body(constructor[1])
        if body is None or body.stars not in _TAKES_MORE or parameter != starred(body)[0]:
            return given.get(parameter, {})
        return {one: None for name, referents in given.items() if name.startswith("*") for one in referents}

    def _parameters(self, owner: tuple[str, str], attribute: str) -> list[tuple[tuple[str, str], str]]:
        """The constructors in which an object of `owner` is given the attribute, file and name, and the parameter, or
        the attribute of one."""
        for kind in self.lookup.family(owner) if owner[1] else ():
            if kind.kind == "class":
                names = self.lookup.files.summary(kind.file).attribute(kind.name, attribute)
                told = [name[1:] for name in names if name[0] == "$" and _is_dotted(name[1:])]
                if names:
                    place = (kind.file, f"{kind.name}.__init__")
                    return [*((place, name) for name in told), *self._registered(kind, attribute, told)]
        return []

    def _registered(self, class_: Referent, attribute: str, names: list[str]) -> Iterator[tuple[tuple[str, str], str]]:
        """The methods of a class that put one of their parameters `names` into the list which an attribute is."""
        summary = self.lookup.files.summary(class_.file)
        own = summary.class_summary(class_.name) if names else None
        for method, full in sorted(own.methods.items()) if own is not None else ():
            body = summary.body(full) if method != "__init__" else None
            kept = set(_put_into(body, attribute)) if body is not None else set()
            yield from (((class_.file, full), name) for name in names if name in kept)

    def _given(self, wanted: Iterable[_Constructor]) -> Given:
        """What the `wanted` constructors are given, and those from which these are given something."""
        found: Given = {}
        calls = self._calls(wanted)
        for _ in range(_ROUNDS):
            before = _size(found)
            for call in calls:
                given = found.setdefault((call.called.owner, (call.called.file, call.called.name)), {})
                for parameter, referents in self._passed_by(call, found):
                    given.setdefault(parameter, {}).update(referents)
            if _size(found) == before:
                break
        return found

    def _calls(self, wanted: Iterable[_Constructor]) -> list[_Call]:
        """The calls of the `wanted` constructors, and of those of which the callers are given what they pass on."""
        made: dict[_Constructor, list[tuple[int, Node, Referent, Event]]] = {}
        place = 0
        for node, notes in self.notes.items():
            for called, event in (*notes.constructors, *notes.factories):
                place += 1
                made.setdefault((called.owner, (called.file, called.name)), []).append((place, node, called, event))
        calls: dict[int, _Call] = {}
        queue = list(dict.fromkeys(wanted))
        known = set(queue)
        while queue:
            for place, node, called, event in made.get(queue.pop(), ()):
                body = self.lookup.files.summary(called.file).body(called.name)
                if body is None:
                    continue
                calls[place] = call = _Call(node, body, called, event, [*self._arguments(node, called, event, body)])
                asked = [(node.owner, constructor) for one in call.arguments for constructor, _ in one.kept]
                if event.opaque or any(one.own for one in call.arguments):
                    asked.append((node.owner, (node.file, node.name)))
                queue += [one for one in asked if one not in known]
                known.update(asked)
        return [calls[place] for place in sorted(calls)]

    def _arguments(self, node: Node, called: Referent, event: Event, body: Body) -> Iterator[_Argument]:
        """What the call `event`, which `node` makes of the constructor `called`, passes for its parameters."""
        for parameter, argument in _bound(called, body, event).items():
            known: Referents = {}
            own: list[str] = []
            kept: list[tuple[tuple[str, str], str]] = []
            for name in argument.names:
                for one in self.narrowing.narrowed(name, node):
                    if one.kind in _GIVEN and one.file:
                        known[one] = None
                    elif one.kind == "parameter":
                        own.append(one.name)
                    elif one.kind == "unknown" and name.startswith("$self."):
                        kept += self._parameters(node.owner, name[len("$self.") :])
            if known or own or kept:
                yield _Argument(parameter, known, own, kept)

    def _passed_by(self, call: _Call, found: Given) -> Iterator[tuple[str, Referents]]:
        """What a call passes for the parameters, by what is `found` so far."""
        node = call.node
        own = found.get((node.owner, (node.file, node.name)), {})
        yield from [(name, {**one}) for name, one in self._handed_on(node, call.body, call.called, call.event, own)]
        for parameter, known, names, kept in call.arguments:
            referents = {**known}
            for name in names:
                referents |= own.get(name, {})
            for constructor, path in kept:
                referents |= self._kept(found.get((node.owner, constructor), {}), constructor, path)
            if referents:
                yield parameter, referents

    def _handed_on(
        self, node: Node, body: Body, referent: Referent, event: Event, given: Mapping[str, Referents]
    ) -> Iterator[tuple[str, Referents]]:
        """What of that which `node` is `given` the call `event` of a function with this `body` hands on as `*args` and
        `**options`: those of `node` itself."""
        own = self.lookup.files.summary(node.file).body(node.name) if given and event.opaque else None
        if own is None or not own.stars:
            return
        stars = starred(own)
        named = own.parameters[: len(own.parameters) - len(stars)]
        by_place = [place for place, one in enumerate(event.positional) if one.names == (f"${stars[0]}",)]
        by_name = event.keywords.get("**")
        for name, referents in given.items():
            if name.startswith("*"):
                place = by_place[0] + int(name[1:]) if by_place else -1
                there = placed(referent, body)
                yield from [(there[place], referents)] if 0 <= place < len(there) else ()
            elif by_name is not None and by_name.names == (f"${stars[-1]}",) and name not in named:
                yield name, referents


def _is_dotted(name: str) -> bool:
    """Whether `name` is a name, or an attribute of one: of no object itself."""
    parts = name.split(".")
    return all(map(str.isidentifier, parts)) and (len(parts) == 1 or parts[0] != "self")


def _put_into(body: Body, attribute: str) -> Iterator[str]:
    """The parameters of a method with this `body` that it puts into the list which an attribute of its object is."""
    adding = [f"$self.{attribute}.{method}" for method in _ADDS]
    for event in body.events:
        if event.kind == "call" and event.positional and any(name in adding for name in event.names):
            yield from (name[1:] for name in event.positional[-1].names if name[0] == "$")


def _bound(referent: Referent, body: Body, event: Event) -> dict[str, Argument]:
    """What the call `event` passes to a function: by parameter, and what goes to its `*args` by its place there."""
    if body.stars not in _TAKES_MORE:
        return bound_arguments(referent, body, event)
    names = placed(referent, body)
    rest = {f"*{place}": one for place, one in enumerate(event.positional[len(names) :])}
    return {**dict(zip(names, event.positional, strict=False)), **rest, **event.keywords}


def _size(given: Given) -> int:
    return sum(len(referents) for one in given.values() for referents in one.values())


def notes_of(
    constructors: Iterable[tuple[Referent, Event]],
    factories: Iterable[tuple[Referent, Event]],
    asks: Iterable[str],
    decides: Iterable[str],
    loads: Iterable[Made],
) -> Notes | None:
    """Notes on a node, if there is anything to note."""
    once = (tuple(dict.fromkeys(asks)), tuple(dict.fromkeys(decides)), tuple(dict.fromkeys(loads)))
    notes = Notes(tuple(constructors), tuple(factories), *once)
    return notes if any(notes) else None
