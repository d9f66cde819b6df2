"""A program -> the constants that its objects are made with, for the attributes that decide on branches: `self.train`.

An attribute counts that the constructor alone assigns, once. It has the values that all the calls give which make an
object of the class. Where a file that the program runs assigns an attribute of that name to some other object than
`self`, that may be this one, and nothing is known, unless it is so for each object as soon as it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.assigned import ANY
from torchdet_lint.program.events import (
    ELSE,
    EMPTY,
    GENERATOR,
    NONE,
    NOTHING,
    OFF_WITH,
    PLAIN,
    PRESENT,
    SOME,
    SPELT,
    Argument,
)
from torchdet_lint.program.transfer.passing import (
    UNKNOWN,
    bound_arguments,
    constant_in,
    is_generator,
    is_present,
    parameter_in,
    parameter_of,
    passed_constant,
    remade,
)
from torchdet_lint.program.transfer.switched import switched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.program.effects import Node, Referent, Settings
    from torchdet_lint.program.events import Event
    from torchdet_lint.program.kept_objects import Notes
    from torchdet_lint.program.lookup import Lookup

_Slot = tuple[tuple[str, str], tuple[str, str], str]
"""The class of an object, the constructor, and a parameter of it."""
_VALUES = 4


class ObjectSettings:
    """What the objects of one program were made with, by the notes on the nodes that it reaches."""

    def __init__(self, lookup: Lookup, notes: Mapping[Node, Notes], files: frozenset[str]) -> None:
        """`files` are those that the program runs."""
        self.lookup = lookup
        self.notes = notes
        self.files = files
        self._values: dict[_Slot, list[Any]] | None = None

    def of(self) -> Settings:
        """The attributes of which all values are known, of those that some node asks."""
        found: Settings = {}
        asked = {(*node.owner, name): None for node, notes in self.notes.items() for name in notes.decides}
        for file, class_, name in asked:
            values = self._of((file, class_), name)
            if values and UNKNOWN not in values:
                found[file, class_, name] = tuple(values)
        return found

    def _of(self, owner: tuple[str, str], name: str) -> list[Any]:
        """What the attribute `name` of the objects of a class may be."""
        name, _, entry = name.partition(".")
        places: list[tuple[tuple[str, str], Argument]] = []
        for kind in self.lookup.family(owner):
            if kind.kind == "class":
                summary = self.lookup.files.summary(kind.file)
                if ANY in summary.assigned:
                    return []
                told = summary.setting(kind.name, name)
                if told is not None:
                    places.append(((kind.file, f"{kind.name}.__init__"), told))
        if len(places) != 1:
            return []
        place, told = places[0]
        if entry:
            held = parameter_of(told)
            changed = self.lookup.files.assignments(name, self.files)
            return self._entry(owner, place, f"{held}.{entry}") if held and not changed else []
        if outside := self.lookup.files.assignments(name, self.files):
            return switched(self.lookup, self.notes, owner, name, outside) if told != Argument() else []
        if told.known:
            return [told.value]
        return self._made_of(told, owner, place)

    def _entry(self, owner: tuple[str, str], place: tuple[str, str], entry: str) -> list[Any]:
        """What an entry of a parameter, or an attribute of it, may be, `config.encoder`, that the constructor `place`
        of the objects of a class is given: by all that make one."""
        found: list[Any] = []
        for node in self.notes:
            if node.owner == owner and (node.file, node.name) == place:
                values = dict(node.given).get(entry, UNKNOWN)
                for value in values if isinstance(values, tuple) else (UNKNOWN,):
                    _add(found, value)
        return found

    def _made_of(self, told: Argument, owner: tuple[str, str], place: tuple[str, str]) -> list[Any]:
        """What an attribute may be that the constructor `place` makes of a parameter, as `told`."""
        if self._values is None:
            self._values = self._passed()
        if told.names[:1] == (OFF_WITH,):
            values = self._values.get((owner, place, told.names[1][1:]), [])
            return [] if any(value is UNKNOWN or value for value in values) else values
        if told.names[:1] == (NOTHING,):
            values = self._values.get((owner, place, told.names[1][1:]), [])
            if told.names[2:] == (EMPTY,):
                return [""] if values and all(value is None for value in values) else []
            return [None] if values and not any(value is UNKNOWN or value for value in values) else []
        if told.names[:1] == (SPELT,):
            values = self._values.get((owner, place, told.names[1][1:]), [])
            return [getattr(value, told.names[2])() if isinstance(value, str) else UNKNOWN for value in values]
        if told.names[:1] == (ELSE,):
            values = self._values.get((owner, place, told.names[1][1:]), [])
            return values if values == [GENERATOR] else []
        if told.names[:1] in ((NONE,), (SOME,)):
            values = self._values.get((owner, place, told.names[1][1:]), [])
            asked = told.names[0] == NONE
            return [value if value is UNKNOWN else (value is None) is asked for value in values]
        values = self._values.get((owner, place, parameter_in(told) or ""), [])
        made = (remade(value, told.rebound) for value in values)
        # A list that is kept may get other elements.
        return [value if isinstance(value, PLAIN) else UNKNOWN for value in made]

    def _passed(self) -> dict[_Slot, list[Any]]:
        """The constants that each constructor is passed for each parameter, from one constructor to the next."""
        found: dict[_Slot, list[Any]] = {}
        leads: dict[_Slot, list[_Slot]] = {}
        for node, notes in self.notes.items():
            for referent, event in notes.constructors:
                for parameter, value, source in self._arguments(node, referent, event):
                    slot = (referent.owner, (referent.file, referent.name), parameter)
                    if source:
                        leads.setdefault((node.owner, (node.file, node.name), source), []).append(slot)
                    else:
                        _add(found.setdefault(slot, []), value)
        queue = list(found)
        while queue:
            slot = queue.pop()
            for following in leads.get(slot, ()):
                values = found.setdefault(following, [])
                new = [value for value in found[slot] if _add(values, value)]
                if new:
                    queue.append(following)
        return found

    def _arguments(self, node: Node, referent: Referent, event: Event) -> Iterator[tuple[str, Any, str]]:
        """What the call `event`, which `node` makes of the constructor `referent`, passes for each parameter: a value,
        or the name of a parameter of the constructor that `node` is."""
        body = self.lookup.files.summary(referent.file).body(referent.name)
        if body is None:
            return
        given = event.keywords if event.opaque else bound_arguments(referent, body, event)
        here = dict(node.given)
        for parameter in body.parameters[1:]:
            argument = given.get(parameter)
            own = parameter_of(argument) if argument is not None and not argument.known else None
            known = constant_in(here, argument) if argument is not None and not argument.known else UNKNOWN
            if known is UNKNOWN and argument is not None and len(argument.names) == 1:
                told = self.lookup.files.switches.of(argument.names[0])
                known = UNKNOWN if told is None else told
            if known is not UNKNOWN:
                yield parameter, known, ""
            elif own is not None and node.owner[1] and node.name.endswith(".__init__"):
                yield parameter, UNKNOWN, own
            elif argument is not None and is_generator(self.lookup, node, argument):
                yield parameter, GENERATOR, ""
            elif is_present(argument):
                yield parameter, PRESENT, ""
            else:
                value = passed_constant(parameter, given, event, body)
                yield parameter, value if isinstance(value, PLAIN) else UNKNOWN, ""


def _add(values: list[Any], value: Any) -> bool:
    """Whether `value` is new among the few `values`, to which it is added; where one is unknown, no other matters."""
    if UNKNOWN in values or any(type(value) is type(one) and value == one for one in values):
        return False
    values.append(value if len(values) < _VALUES else UNKNOWN)
    return True
