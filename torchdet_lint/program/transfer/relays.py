"""A function that is handed functions, classes and objects -> the functions of the project that it hands them on to,
and those defined in it that call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.effects import TOKEN, Referent
from torchdet_lint.program.transfer.passing import bound_arguments

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from torchdet_lint.program.events import Argument, Body, Event
    from torchdet_lint.program.lookup import Lookup

_USABLE = ("class", "function", "instance")


def handed_parameters(event: Event, bound: Collection[str]) -> list[str]:
    """Those of the parameters `bound` that a call hands on."""
    arguments = (*event.positional, *event.keywords.values())
    return sorted({_parameter(name) for argument in arguments for name in argument.names} & set(bound))


def relayed(
    lookup: Lookup, event: Event, caller: Referent, bound: Mapping[str, Sequence[Referent]]
) -> Iterator[tuple[Referent, Body, dict[str, list[Referent]]]]:
    """The functions, methods and constructors that the call `event` in `caller` may be of, and the functions,
    classes and objects that it gives them for parameters: `self._make_layer(block, 64)`."""
    for name in event.names:
        # A method of one parameter may be given another, and so may a class: `model.fit(data)`, `block(layers)`.
        tokens = TOKEN.findall(name[1:]) if name.startswith("$") else []
        targets = followed(lookup, bound[tokens[0]], tokens[1:]) if tokens and tokens[0] in bound else ()
        for target in targets or lookup.evaluate(name, caller.file, caller.owner, caller.name):
            for function in _functions(lookup, target):
                body = lookup.files.summary(function.file).body(function.name)
                given = bound_arguments(function, body, event) if body is not None else {}
                found = {use: _usable(argument, bound) for use, argument in given.items()}
                if body is not None and any(found.values()):
                    yield function, body, {use: referents for use, referents in found.items() if referents}


def followed(lookup: Lookup, referents: Sequence[Referent], tokens: Sequence[str]) -> list[Referent]:
    """What attributes and calls, `tokens`, of what a parameter was given stand for: of a class that it was given in a
    list, `blocks[0]`, the class itself."""
    if not (tokens and tokens[0].isdecimal()):
        return lookup.follow(referents, tokens)
    classes = [referent for referent in referents if referent.kind == "class"]
    others = [referent for referent in referents if referent.kind != "class"]
    return [*lookup.follow(classes, tokens[1:]), *lookup.follow(others, tokens)]


def captured(lookup: Lookup, referent: Referent, body: Body) -> dict[Referent, tuple[Body, tuple[str, ...]]]:
    """The functions that are defined in a function and call what that is given: with their bodies, and the parameters
    of the outer one that they call."""
    found: dict[Referent, tuple[Body, tuple[str, ...]]] = {}
    for name in body.inner:
        inner = lookup.files.summary(referent.file).body(name)
        uses = {use for use in inner.uses if use not in inner.parameters} if inner is not None else set()
        if inner is not None and not uses.isdisjoint(body.parameters):
            found[referent._replace(name=name)] = inner, tuple(sorted(uses.intersection(body.parameters)))
    return found


def _functions(lookup: Lookup, target: Referent) -> list[Referent]:
    """The function that a call of `target` runs."""
    if target.kind == "class":
        found = lookup.class_attribute(Referent("instance", target.file, target.name), "__init__")
        return [one for one in found if one.kind == "function"]
    return [target] if target.kind == "function" else []


def _usable(argument: Argument, bound: Mapping[str, Sequence[Referent]]) -> list[Referent]:
    """The functions, classes and objects that an argument stands for which passes on one of the parameters `bound`."""
    found = (
        referent
        for name in argument.names
        for referent in bound.get(_parameter(name), ())
        if referent.kind == "class" or name[1:].isidentifier()
    )
    return [referent for referent in found if referent.kind in _USABLE]


def _parameter(name: str) -> str:
    """The parameter that `name` stands for, or of which it is an element: `$block`, `$blocks.0`."""
    parameter, dot, rest = name[1:].partition(".") if name.startswith("$") else ("", "", "")
    return parameter if not dot or rest.isdecimal() else ""
