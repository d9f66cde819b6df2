"""A name in a function that stands for an object which the function makes -> the constants that it is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.program.effects import Referent
from torchdet_lint.program.events import PLAIN
from torchdet_lint.program.transfer.passing import UNKNOWN, bound_arguments, parameter_of, passed_constant

if TYPE_CHECKING:
    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup


def made_with(
    lookup: Lookup, body: Body | None, name: str, object_: Referent, method: Referent
) -> tuple[tuple[str, Any], ...]:
    """What attributes that decide on branches of `method` are of the object that `name`, `data.Images()`, stands for in
    a function with this `body`: of all the objects of the class that it makes, the same."""
    called = body_of(lookup, method)
    if body is None or called is None or not name.endswith("()"):
        return ()
    asked = {test.parameter for test in called.tests if test.parameter.startswith("self.")}
    made = [event for event in body.events if asked and event.kind == "call" and name[:-2] in event.names]
    found: dict[str, Any] = {}
    for attribute in sorted(asked):
        values = [_value(lookup, object_, attribute[5:], event) for event in made]
        if values and all(isinstance(one, PLAIN) and one == values[0] for one in values):
            found[attribute] = values[0]
    return tuple(found.items())


def body_of(lookup: Lookup, function: Referent) -> Body | None:
    """The body of a function of the project."""
    return lookup.files.summary(function.file).body(function.name)


def _value(lookup: Lookup, object_: Referent, attribute: str, event: Event) -> Any:
    """The constant that `attribute` is of the object that the call `event` makes, or `UNKNOWN`: what the first class
    that has a constructor gives it."""
    for kind in lookup.family((object_.file, object_.name)):
        if kind.kind != "class":
            continue
        constructor = Referent("function", kind.file, f"{kind.name}.__init__", (kind.file, kind.name))
        body = body_of(lookup, constructor)
        if body is None:
            continue
        told = lookup.files.summary(kind.file).setting(kind.name, attribute)
        if told is None or told.known or event.opaque:
            return told.value if told is not None and told.known else UNKNOWN
        return passed_constant(parameter_of(told) or "", bound_arguments(constructor, body, event), event, body)
    return UNKNOWN
