"""A call and the function of the project that it calls -> what that function is given."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.program.effects import Referent
from torchdet_lint.program.events import (
    AS_GIVEN,
    GENERATOR,
    GIVEN,
    INDIRECT,
    LENGTH,
    LOADED,
    NAMED,
    OF_LISTS,
    OWN,
    PASSED,
    PLAIN,
    PRESENT,
    REST,
    SPELLS,
    STARTED_WITH,
    Argument,
    Body,
    Event,
    Rebinding,
    become,
)
from torchdet_lint.program.syntax.named_texts import (
    BY_PARAMETER,
    DOTTED,
    KEYED_ITEM,
    OF_PARAMETER,
    longer,
    names_attribute,
    spelled,
    taken_as_text,
    with_text,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Mapping

    from torchdet_lint.catalogue.facts import Runner
    from torchdet_lint.program.effects import Node
    from torchdet_lint.program.lookup import Lookup

UNKNOWN = object()
_GLOBAL = ("torch.default_generator",)
_INIT = "__init__"
_ABOVE = ".__init__"
# So many constructors are looked at, each above the one before.
_CONSTRUCTORS = 4
NOTHING_GIVEN: Mapping[str, Any] = MappingProxyType({})
# So many parameters keep what they are passed on: switches, devices, generators, and others.
_ROOM = {"switch": 6, "device": 1, "generator": 2, "other": 1}
# So many options are told apart that a function takes by `**`.
_OPTIONS = 4
_DEVICES = frozenset({"cpu", "cuda", "mps", "xpu"})


def parameters_of(referent: Referent, body: Body) -> tuple[str, ...]:
    """The parameters of a function that a call passes: without `self` or `cls` of a method."""
    return body.parameters[1:] if body.first and referent.owner[1] else body.parameters


def of_class_above(lookup: Lookup, node: Node, name: str, referent: Referent, event: Event) -> tuple[Referent, Event]:
    """A call in `node` that gives a method of a class above the object itself, `Base.__init__(self, size)`, as the call
    of that object's method; `referent` and `event` as they are where it is none."""
    first = event.positional[0].names if event.positional else ()
    if tuple(first) != ("$self",) or name.startswith("$") or not node.owner[1]:
        return referent, event
    if referent.kind == "function":
        above = Referent("class", *referent.owner)
        body = lookup.files.summary(referent.file).body(referent.name)
        method = body is not None and bool(body.first) and referent.owner != node.owner
    else:
        above = Referent("external", "", referent.name.removesuffix(_ABOVE))
        method = referent.kind == "external" and referent.name.endswith(_ABOVE)
        referent = above if method else referent
    if not method or above not in lookup.family(node.owner):
        return referent, event
    return referent._replace(owner=node.owner), msgspec.structs.replace(event, positional=event.positional[1:])


def placed(referent: Referent, body: Body) -> tuple[str, ...]:
    """The parameters of a function that a call may pass by place."""
    names = parameters_of(referent, body)
    return names[: max(body.placed - len(body.parameters) + len(names), 0)]


def starred(body: Body) -> tuple[str, ...]:
    """`*args` and `**options` of a function that has either, without their stars."""
    return body.parameters[-2:] if body.stars == "***" else body.parameters[-1:]


def bound_arguments(referent: Referent, body: Body, event: Event) -> dict[str, Argument]:
    """What the call `event` passes to a function, by parameter."""
    return dict(zip(parameters_of(referent, body), event.positional, strict=False)) | event.keywords


def passed_constant(parameter: str, arguments: Mapping[str, Argument], event: Event, body: Body) -> Any:
    """The constant that the call `event` passes for a parameter of a function with this `body`, by its `arguments`, or
    leaves to the default; else `UNKNOWN`."""
    argument = arguments.get(parameter)
    if argument is None:
        return UNKNOWN if event.opaque else body.defaults.get(parameter, UNKNOWN)
    return argument.value if argument.known else UNKNOWN


def rest_of(
    referent: Referent, body: Body, event: Event, in_caller: Callable[[Argument], Any]
) -> tuple[tuple[str, bool, Any], ...] | None:
    """What the call `event` leaves for the `**options` of a function with this `body`: names, whether the value is a
    constant, and which; None where nobody can tell."""
    named = parameters_of(referent, body)[: -1 - (body.stars == "***")]
    if event.opaque or REST not in body.stars or len(event.positional) > len(named):
        return None
    found: list[tuple[str, bool, Any]] = []
    for name in sorted(event.keywords.keys() - {*named}):
        argument = event.keywords[name]
        value = argument.value if argument.known else in_caller(argument)
        plain = value is not UNKNOWN and isinstance(value, PLAIN)
        found.append((name, plain, value if plain else None))
    return tuple(found)


def few_options(
    referent: Referent, body: Body, event: Event, in_caller: Callable[[Argument], Any]
) -> tuple[tuple[str, bool, Any], ...] | None:
    """The same where these are few: of what is passed on only switches count."""

    def switch(argument: Argument) -> Any:
        value = in_caller(argument)
        return value if value is not UNKNOWN and _sort_of(value) == "switch" else UNKNOWN

    found = rest_of(referent, body, event, switch)
    return found if found is not None and len(found) <= _OPTIONS else None


def hands_rest_on(event: Event, body: Body) -> bool:
    """Whether a call in a function with this `body` is handed its `**options` as they came."""
    rest = event.keywords.get(REST)
    own = body.parameters[-1:] if REST in body.stars else ()
    return rest is not None and not rest.unsure and bool(own) and rest.names == (f"${own[0]}",)


def with_rest(event: Event, body: Body, given: tuple[tuple[str, bool, Any], ...]) -> Event:
    """The call `event` in a function with this `body` that hands on its `**options`, which are `given`, and its
    `*args`, which are none then."""
    passed = {name: Argument((), known=known, value=value) for name, known, value in given}
    keywords = passed | {name: one for name, one in event.keywords.items() if name != REST}
    none = (f"${body.parameters[-2]}",) if body.stars == "***" else None
    positional = tuple(one for one in event.positional if one.names != none)
    return msgspec.structs.replace(event, positional=positional, keywords=keywords, opaque=False)


def handed(runner: Runner, event: Event) -> list[Argument]:
    """The arguments of `event` that `runner` runs."""
    found = []
    for name in runner.arguments:
        if name in event.keywords:
            found.append(event.keywords[name])
        elif name in runner.parameters and runner.parameters.index(name) < len(event.positional):
            found.append(event.positional[runner.parameters.index(name)])
    return found


def started(runner: Runner, event: Event) -> Event | None:
    """The call of its target as which `event` starts a process, `mp.spawn(run, args=("train",))`, where it is told with
    what."""
    argument = event.keywords.get(STARTED_WITH)
    if argument is None and STARTED_WITH in runner.parameters[: len(event.positional)]:
        argument = event.positional[runner.parameters.index(STARTED_WITH)]
    if not runner.args or argument is None or not argument.elements:
        return None
    before = (Argument(),) if runner.args == "number" else ()
    return msgspec.structs.replace(event, positional=(*before, *argument.elements), keywords={}, opaque=False)


def is_present(argument: Argument | None) -> bool:
    """Whether an argument is evidently something, and no constant that a branch may ask for: a list, a tensor."""
    return argument is not None and (argument.present or (argument.known and not isinstance(argument.value, PLAIN)))


def parameter_of(argument: Argument) -> str | None:
    """The parameter of the function around that an argument passes on as it came."""
    return None if argument.rebound else parameter_in(argument)


def parameter_in(argument: Argument) -> str | None:
    """The parameter of the function around that an argument is, or is made of."""
    first = argument.names[0] if len(argument.names) == 1 else ""
    return first[1:] if first.startswith("$") and first[1:].isidentifier() else None


def constant_in(given: Mapping[str, Any], argument: Argument) -> Any:
    """The constant that an argument is in a function whose parameters are `given`, or `UNKNOWN`."""
    own = parameter_in(argument)
    if own is None and len(argument.names) == 1 and argument.names[0].startswith("$"):
        # An option, or an attribute of an object, which is one of several.
        values = given.get(argument.names[0][1:])
        return values[0] if isinstance(values, tuple) and len(values) == 1 else UNKNOWN
    return remade(given.get(own or "", UNKNOWN), argument.rebound)


def remade(value: Any, rebound: tuple[Rebinding, ...]) -> Any:
    """What a parameter that is `value`, or `UNKNOWN`, becomes."""
    known = become(value, rebound) if value is not UNKNOWN else None
    return UNKNOWN if known is None else known[0]


def setting_of(argument: Argument) -> str | None:
    """The attribute of `self`, as `self.train`, that an argument passes on."""
    first = argument.names[0] if len(argument.names) == 1 else ""
    return first[1:] if first.startswith("$self.") and first[6:].isidentifier() else None


def is_generator(lookup: Lookup, node: Node, argument: Argument) -> bool:
    """Whether an argument of a call in `node` is a generator of its own, for all that it may stand for."""
    found = [one for name in argument.names for one in lookup.evaluate(name, node.file, node.owner, node.name)]
    return bool(found) and all(one.kind == "external" and lookup.facts.is_generator(one.name) for one in found)


def gives_itself(lookup: Lookup, class_: tuple[str, str], name: str) -> bool:
    """Whether a constructor that makes an object of a class gives the next one above it an argument `name` that is no
    parameter."""
    found = lookup.class_attribute(Referent("instance", *class_), _INIT)
    for _ in range(_CONSTRUCTORS):
        if not found or found[0].kind != "function":
            break
        here = found[0]
        body = lookup.files.summary(here.file).body(here.name)
        above = [event for event in body.events if event.names[:1] and event.names[0].endswith(_ABOVE)] if body else []
        given = [event.keywords[name] for event in above if name in event.keywords]
        if any(not one.known and parameter_of(one) is None for one in given):
            return True
        found = [
            one
            for event in above
            for full in event.names
            for one in lookup.evaluate(full, here.file, here.owner, here.name)
        ]
    return False


def is_given(lookup: Lookup, node: Node, argument: Argument) -> bool:
    """Whether an argument of a call in `node` is a function or an object in sight, for all that it may stand for."""
    if any((name[1:], GIVEN) in node.given for name in argument.names):
        return True
    found = [lookup.evaluate(name, node.file, node.owner, node.name) for name in argument.names]
    kinds = {one.kind for referents in found for one in referents}
    return bool(found) and all(found) and kinds <= {"function", "class", "instance", "external"}


def lent(referent: Referent, body: Body | None, event: Event) -> tuple[tuple[str, str], ...]:
    """The generators among the parameters of a function that `event` leaves out, or passes on from here."""
    if body is None or event.opaque or not any("generator" in name for name in body.parameters):
        return ()
    given = bound_arguments(referent, body, event)
    found = []
    for name in body.parameters:
        if "generator" in name:
            argument = given.get(name)
            if argument is None or (argument.known and argument.value is None) or argument.names == _GLOBAL:
                found.append((name, ""))
            elif (own := parameter_of(argument)) is not None:
                found.append((name, own))
    return tuple(found)


def loaders_lent(
    referent: Referent, body: Body | None, event: Event, draws: Callable[[Argument], bool]
) -> Iterator[tuple[str, str]]:
    """The parameters that a function goes through, of which `event` passes a loader that `draws`, or a parameter."""
    given = bound_arguments(referent, body, event) if body is not None and body.loops else {}
    for name in body.loops if body is not None else ():
        argument = given.get(name)
        if argument is None:
            continue
        if draws(argument):
            yield f"{LOADED}{name}", ""
        elif argument.loader is None and (own := parameter_of(argument)) is not None:
            yield f"{LOADED}{name}", f"{LOADED}{own}"


def constants(
    referent: Referent,
    body: Body,
    event: Event,
    in_caller: Callable[[Argument], Any],
    wanted: Callable[[str], bool],
    given_there: Callable[[Argument], bool] = lambda _: False,
    here: Mapping[str, Any] = NOTHING_GIVEN,
) -> tuple[tuple[str, Any], ...]:
    """The constants that a call passes, or leaves to their defaults, for the parameters that decide on branches;
    `in_caller` gives the constant that an argument is in the caller, or `UNKNOWN`, and `given_there` whether it is
    evidently a function or an object; `here` is what the caller was given itself. Of those that are only given to
    other functions, switches and what turns something off (None, nought, no text) count, and what is `wanted`.

    What is passed on counts for few parameters: each function has a node for every choice of values that leads there.
    """
    given = bound_arguments(referent, body, event)
    found: dict[str, Any] = {}
    room = dict(_ROOM)
    for test in body.tests:
        name = test.parameter
        if test.kind == SPELLS:
            found |= _text_passed(name, given, event, body, here) if wanted(name) else {}
            continue
        if name.endswith(OF_LISTS):
            found |= _of_list(name, given, event, body, here)
            continue
        if test.kind in INDIRECT:
            for part in OF_LISTS:
                told = _of_list(f"{name}{part}", given, event, body, here)
                found |= told if told and wanted(f"{name}{part}") else {}
        argument = given.get(name)
        if event.opaque and (
            name not in event.keywords or (argument is not None and argument.unsure and test.kind != OWN)
        ):
            continue
        passed_on = argument if argument is not None and not argument.known else None
        if name in found or (passed_on is not None and not any(room.values())):
            continue
        value = in_caller(passed_on) if passed_on is not None else passed_constant(name, given, event, body)
        if test.kind == OWN and value is UNKNOWN and passed_on is not None and given_there(passed_on):
            value = GIVEN
        if (test.asks_for_none or test.kind in INDIRECT) and is_present(argument) and not isinstance(value, PLAIN):
            value = PRESENT
        if not isinstance(value, PLAIN) or (test.kind == OWN and value not in (GENERATOR, GIVEN)):
            continue
        sort = _sort_of(value)
        if test.kind in INDIRECT and not (sort == "switch" and test.kind == PASSED) and not wanted(name):
            continue
        if passed_on is not None and not is_present(passed_on):
            if not room[sort]:
                continue
            room[sort] -= 1
        found[name] = value
    return tuple(sorted(found.items()))


def _of_list(
    name: str, arguments: Mapping[str, Argument], event: Event, body: Body, here: Mapping[str, Any]
) -> dict[str, Any]:
    """What is known of the list that a call passes for the parameter in `name`, `flags[each]` or `flags[len]`, under
    that name: what each element is, where all of them are the same, or how many there are."""
    parameter, told = name.partition("[")[::2]
    argument = arguments.get(parameter)
    if event.opaque and (argument is None or argument.unsure or parameter not in event.keywords):
        return {}
    if argument is None:
        default = body.defaults.get(parameter)
        length = len(default) if isinstance(default, list) else -1
        argument = Argument((), True, default, length=length)
    elif argument.length == AS_GIVEN:
        own = parameter_in(argument) if name.endswith(LENGTH) else parameter_of(argument)
        value = here.get(f"{own}[{told}", UNKNOWN)
        return {} if value is UNKNOWN else {name: value}
    if argument.length < 0:
        return {}
    if name.endswith(LENGTH):
        return {name: argument.length}
    values = argument.value if argument.known and isinstance(argument.value, list) else []
    alike = bool(values) and all(type(one) is type(values[0]) and one == values[0] for one in values)
    return {name: values[0]} if alike and isinstance(values[0], PLAIN) else {}


def _text_passed(
    name: str, arguments: Mapping[str, Argument], event: Event, body: Body, here: Mapping[str, Any]
) -> dict[str, str]:
    """What is known of the text that a call passes for the parameter in `name`, `{model`, under that name."""
    parameter = name.removeprefix(NAMED)
    argument = arguments.get(parameter)
    default = body.defaults.get(parameter) if argument is None and not event.opaque else None
    argument = Argument((), True, default) if argument is None else argument
    word = argument.value if argument.known and isinstance(argument.value, str) else ""
    told = word if word.isidentifier() and _names_attribute(body, parameter) else _text_of(argument, here)
    return {name: told} if told else {}


def _names_attribute(body: Body, parameter: str) -> bool:
    """Whether a function calls the attribute of an object that its parameter names: `getattr(self, name)()`."""
    return any(names_attribute(name, parameter) for event in body.events for name in event.names)


def _text_of(argument: Argument, here: Mapping[str, Any]) -> str:
    """What braces hold of a text that is passed by a function which was given what is `here`: a constant, or the keys
    by which it was taken from a configuration; nothing where nobody can tell."""
    if argument.known:
        return spelled(argument.value) if isinstance(argument.value, str) and DOTTED.fullmatch(argument.value) else ""
    for name in argument.names:
        first, *keys = name.rpartition(")")[2].split(".")
        if not all(key.isidentifier() for key in keys) or (first and first[0] not in "$?@"):
            continue
        if first[:1] == "$" and first not in ("$self", "$cls"):
            told = text_given(first[1:], here)
            if told and not keys:
                return told
            return longer(told if told.startswith("?") else f"?{first[1:]}~", keys)
        if keys:
            return f"?{keys[0]}~/{'/'.join(keys[1:])}" if keys[1:] and first else f"?{'/'.join(keys)}"
    return ""


def text_given(parameter: str, given: Mapping[str, Any]) -> str:
    """What is known of the text that a parameter of a function is which was `given` that."""
    told, value = given.get(f"{NAMED}{parameter}", ""), given.get(parameter)
    return told or (spelled(value) if isinstance(value, str) and DOTTED.fullmatch(value) else "")


def with_texts(name: str, given: Mapping[str, Any]) -> str:
    """`name` with the texts and keys that the parameters in it are in a function which was `given` that."""
    if BY_PARAMETER in name:
        name = KEYED_ITEM.sub(lambda match: _item_by(match, given), name)
    for parameter in taken_as_text(name) if OF_PARAMETER in name else ():
        value = given.get(parameter)
        plain = value if isinstance(value, str) and value.isidentifier() and names_attribute(name, parameter) else ""
        if told := plain or text_given(parameter, given):
            name = with_text(name, parameter, told)
    return name


def _item_by(match: re.Match[str], given: Mapping[str, Any]) -> str:
    """An item by the key that a parameter is in a function which was `given` that; as it is where that is not known."""
    key = given.get(match[2]) if match[1] == "$" else None
    told = f"[={key}]"
    return told if isinstance(key, str) and KEYED_ITEM.fullmatch(told) is not None else match[0]


def known_in(given: Mapping[str, Any]) -> Callable[[Argument], Any]:
    """What tells the constant that an argument is in a function whose parameters are `given`, or `UNKNOWN`."""
    return lambda argument: constant_in(given, argument)


def _sort_of(value: Any) -> str:
    """What sort of value is passed on, of those that `_ROOM` counts."""
    if value in (GENERATOR, GIVEN):
        return "generator"
    if isinstance(value, bool) or not value:
        return "switch"
    return "device" if isinstance(value, str) and value.partition(":")[0] in _DEVICES else "other"


def ruled_out(body: Body, given: Mapping[str, Any]) -> Iterator[int]:
    """The arms of a function that do not run where its parameters are `given`; 0 for none."""
    return (test.rules_out(given[test.parameter]) for test in body.tests if test.parameter in given)


def at_call(outer: Event, inner: Event) -> Event:
    """The event `inner` of a callee as it happens at the call `outer`."""
    return Event(
        "call", outer.row, outer.column, outer.statement, inner.names, inner.positional, inner.keywords, inner.opaque,
        outer.branch, outer.deferred or inner.deferred, inner.locked, inner.idle, inner.trained, inner.bare,
        inner.ungraded or (outer.ungraded and not inner.regraded), outer.sized, outer.frozen,
        unapplied=outer.unapplied, regraded=inner.regraded or (outer.regraded and not inner.ungraded),
    )  # fmt: skip
