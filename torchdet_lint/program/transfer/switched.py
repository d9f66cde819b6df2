"""A program -> the constants that attributes are given right after their objects are made: `model.drop = False`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.program.effects import STARTED, Node
from torchdet_lint.program.events import GUARD, MODULE, PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.program.events import Event
    from torchdet_lint.program.kept_objects import Notes
    from torchdet_lint.program.lookup import Lookup


def switched(lookup: Lookup, notes: Mapping[Node, Notes], owner: tuple[str, str], name: str, count: int) -> list[Any]:
    """What the attribute `name` of all objects of the class `owner` is, which the program assigns `count` times from
    outside: each time of an object that the function has just made, and has not used. Nothing where it is not so."""
    places: dict[tuple[str, str], tuple[Node, list[Event]]] = {}
    for node, told in notes.items():
        made = [event for referent, event in told.constructors if referent.owner == owner]
        if made:
            places[node.file, node.name] = node, made
    values = [_right_after(lookup, node, made, name) for node, made in places.values()]
    known = [value[0] for value in values if value is not None]
    alike = all(type(value) is type(known[0]) and value == known[0] for value in known)
    return known[:1] if len(known) == len(values) == count and alike else []


def _right_after(lookup: Lookup, node: Node, made: Sequence[Event], name: str) -> tuple[Any] | None:
    """The constant, in a 1-tuple, that `node` gives the attribute `name` of the one object that it makes, come what
    may and before anything else is done with it."""
    body = lookup.files.summary(node.file).body(MODULE if node.name == STARTED else node.name)
    if body is None or len(made) != 1:
        return None
    maker = made[0]
    objects = {f"{one}()" for one in maker.names}
    after = False
    for event in body.events:
        if (event.row, event.column, event.kind) == (maker.row, maker.column, "call"):
            after = True
        elif after and event.kind == "set" and any(one.rpartition(".")[0] in objects for one in event.names):
            if not any(one.rpartition(".")[2] == name for one in event.names):
                continue
            value = event.positional[0]
            always = set(event.branch) <= {GUARD, *maker.branch}
            return (value.value,) if always and value.known and isinstance(value.value, PLAIN) else None
        elif after and _is_used(event, objects):
            return None
    return None


def _is_used(event: Event, objects: set[str]) -> bool:
    """Whether one of `objects` is called, or given to a call."""
    given = (name for argument in (*event.positional, *event.keywords.values()) for name in argument.names)
    return any(name.startswith(one) for name in (*event.names, *given) for one in objects)
