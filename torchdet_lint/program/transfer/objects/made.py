"""A name in a function that stands for an object which the function makes -> the constants that it is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.assigned import ANY, OPTION
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
    from collections.abc import Mapping, Sequence

    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup


def made_with(
    lookup: Lookup,
    body: Body | None,
    name: str,
    object_: Referent,
    method: Referent,
    given: Mapping[str, Any],
    place: tuple[int, ...] = (),
) -> tuple[tuple[str, Any], ...]:
    """What attributes that decide on branches of `method` are of the object that `name`, `data.Images()` or an
    attribute, stands for in a function with this `body`, which is `given` constants: of the object that is made at a
    `place`, by row and column, or of all the objects of the class that it makes, the same."""
    called = body_of(lookup, method)
    if body is None or called is None or not (name.endswith("()") or name.startswith("$self.")):
        return ()
    asked = {test.parameter for test in called.tests if test.parameter.startswith("self.")}
    calls = [event for event in body.events if asked and event.kind == "call"]
    if name.endswith("()"):
        made = [event for event in calls if name[:-2] in event.names]
    else:
        made = [event for event in calls if any(one.rpartition(".")[2] == object_.name for one in event.names)]
    made = [event for event in made if (event.row, event.column) == place] or made
    found: dict[str, Any] = {}
    for attribute in sorted(asked):
        values = [_value(lookup, object_, attribute[5:], event, given) for event in made]
        if values and all(isinstance(one, PLAIN) and one == values[0] for one in values):
            found[attribute] = values[0]
    return tuple(found.items())


def setting_held(
    lookup: Lookup,
    owner: Referent,
    attribute: str,
    made: Sequence[tuple[Event, Mapping[str, Any]]],
    files: frozenset[str],
) -> Any:
    """The text or the switch that `attribute` is of the class `owner`, or of an object of it that the calls `made`
    make, each in a function that was given constants; `UNKNOWN` where that is not known. What is named in capitals is
    there to be changed, and none of `files` may give such an attribute to an object."""
    if attribute.isupper() or (owner.kind == "instance" and not made):
        return UNKNOWN
    around = files.union(kind.file for kind in lookup.family((owner.file, owner.name)) if kind.kind == "class")
    if any(ANY in lookup.files.summary(file).assigned for file in sorted(around)):
        return UNKNOWN
    if any(lookup.files.assignments(name, around) for name in (attribute, OPTION + attribute)):
        return UNKNOWN
    if owner.kind == "class":
        values = [_field(lookup, owner, attribute, None, {})]
    else:
        values = [_held(lookup, owner, attribute, event, given) for event, given in made]
    first = values[0]
    alike = all(type(one) is type(first) and one == first for one in values)
    return first if isinstance(first, (str, bool)) and alike else UNKNOWN


def _held(lookup: Lookup, owner: Referent, attribute: str, event: Event, given: Mapping[str, Any]) -> Any:
    """The constant that `attribute` is of an object that the call `event` makes, or `UNKNOWN`."""
    value = _value(lookup, owner, attribute, event, given)
    return _field(lookup, owner, attribute, event, given) if value is UNKNOWN else value


def _field(lookup: Lookup, owner: Referent, attribute: str, event: Event | None, given: Mapping[str, Any]) -> Any:
    """The same of what the body of a class gives the attribute, and a call to the field of a data class."""
    for kind in lookup.family((owner.file, owner.name)):
        summary = lookup.files.summary(kind.file) if kind.kind == "class" else None
        own = summary.class_summary(kind.name) if summary is not None else None
        told = summary.setting(kind.name, attribute) if summary is not None else None
        if own is not None and attribute in own.methods:
            return UNKNOWN
        if summary is None or told is None:
            continue
        passed = event.keywords.get(attribute) if event is not None else None
        if passed is not None:
            return passed.value if passed.known else constant_in(given, passed)
        field = summary.field(kind.name, attribute)
        given_more = event is not None and (event.positional or event.opaque)
        return field.value if field is not None and not given_more else UNKNOWN
    return UNKNOWN


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
