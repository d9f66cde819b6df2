"""A name in a function that stands for an object which the function makes -> the constants that it is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.program.effects import Referent
from torchdet_lint.program.events import PLAIN
from torchdet_lint.program.transfer.passing import (
    UNKNOWN,
    bound_arguments,
    constant_in,
    parameter_in,
    passed_constant,
    remade,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup


def made_with(
    lookup: Lookup, body: Body | None, name: str, object_: Referent, method: Referent, given: Mapping[str, Any]
) -> tuple[tuple[str, Any], ...]:
    """What attributes that decide on branches of `method` are of the object that `name`, `data.Images()` or an
    attribute, stands for in a function with this `body`, which is `given` constants: of all the objects of the class
    that it makes, the same."""
    called = body_of(lookup, method)
    if body is None or called is None or not (name.endswith("()") or name.startswith("$self.")):
        return ()
    asked = {test.parameter for test in called.tests if test.parameter.startswith("self.")}
    calls = [event for event in body.events if asked and event.kind == "call"]
    if name.endswith("()"):
        made = [event for event in calls if name[:-2] in event.names]
    else:
        made = [event for event in calls if any(one.rpartition(".")[2] == object_.name for one in event.names)]
    found: dict[str, Any] = {}
    for attribute in sorted(asked):
        values = [_value(lookup, object_, attribute[5:], event, given) for event in made]
        if values and all(isinstance(one, PLAIN) and one == values[0] for one in values):
            found[attribute] = values[0]
    return tuple(found.items())


def body_of(lookup: Lookup, function: Referent) -> Body | None:
    """The body of a function of the project."""
    return lookup.files.summary(function.file).body(function.name)


def _value(lookup: Lookup, object_: Referent, attribute: str, event: Event, given: Mapping[str, Any]) -> Any:
    """The constant that `attribute` is of the object that the call `event` makes, or `UNKNOWN`: what the first class
    that has a constructor gives it. `given` are the constants of the function around."""
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
        parameter, arguments = parameter_in(told) or "", bound_arguments(constructor, body, event)
        argument = arguments.get(parameter)
        if argument is not None and not argument.known:
            return remade(constant_in(given, argument), told.rebound)
        return remade(passed_constant(parameter, arguments, event, body), told.rebound)
    return UNKNOWN
