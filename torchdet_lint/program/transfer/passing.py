"""A call and the function of the project that it calls -> what that function is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.program.events import PASSED, PLAIN, Argument, Body, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchdet_lint.program.effects import Referent

_UNKNOWN = object()


def bound_arguments(referent: Referent, body: Body, event: Event) -> dict[str, Argument]:
    """What the call `event` passes to a function, by parameter."""
    parameters = body.parameters[1:] if body.first and referent.owner[1] else body.parameters
    return dict(zip(parameters, event.positional, strict=False)) | event.keywords


def parameter_of(argument: Argument) -> str | None:
    """The parameter of the function around that an argument passes on."""
    first = argument.names[0] if len(argument.names) == 1 else ""
    return first[1:] if first.startswith("$") and first[1:].isidentifier() else None


def setting_of(argument: Argument) -> str | None:
    """The attribute of `self`, as `self.train`, that an argument passes on."""
    first = argument.names[0] if len(argument.names) == 1 else ""
    return first[1:] if first.startswith("$self.") and first[6:].isidentifier() else None


def lent(referent: Referent, body: Body | None, event: Event) -> tuple[tuple[str, str], ...]:
    """The generators among the parameters of a function that `event` leaves out, or passes on from here."""
    if body is None or event.opaque or not any("generator" in name for name in body.parameters):
        return ()
    given = bound_arguments(referent, body, event)
    found = []
    for name in body.parameters:
        if "generator" in name:
            argument = given.get(name)
            if argument is None or (argument.known and argument.value is None):
                found.append((name, ""))
            elif (own := parameter_of(argument)) is not None:
                found.append((name, own))
    return tuple(found)


def constants(
    referent: Referent, body: Body, event: Event, here: Mapping[str, Any], of_self: Callable[[str], tuple[Any, ...]]
) -> tuple[tuple[str, Any], ...]:
    """The constants that a call passes, or leaves to their defaults, for the parameters that decide on branches;
    `here` are those of the function around it, `of_self` gives those of its object. What is only handed on counts where
    it is a switch, or turns something off: None, nought, no text."""
    if event.opaque:
        return ()
    given = bound_arguments(referent, body, event)
    found: dict[str, Any] = {}
    for test in body.tests:
        argument = given.get(test.parameter)
        if argument is not None and argument.known:
            value = argument.value
        elif argument is None:
            value = body.defaults.get(test.parameter, _UNKNOWN)
        elif (attribute := setting_of(argument)) is not None:
            values = of_self(attribute)
            value = values[0] if len(values) == 1 else _UNKNOWN
        else:
            value = here.get(parameter_of(argument) or "", _UNKNOWN)
        if isinstance(value, PLAIN) and (test.kind != PASSED or isinstance(value, bool) or not value):
            found[test.parameter] = value
    return tuple(sorted(found.items()))


def at_call(outer: Event, inner: Event) -> Event:
    """The event `inner` of a callee as it happens at the call `outer`."""
    return Event(
        "call", outer.row, outer.column, outer.statement, inner.names, inner.positional, inner.keywords, inner.opaque,
        outer.branch, outer.deferred or inner.deferred, inner.locked, inner.idle, inner.trained, inner.bare,
        outer.ungraded or inner.ungraded, outer.sized, outer.frozen,
    )  # fmt: skip
